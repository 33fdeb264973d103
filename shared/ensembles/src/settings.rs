//! How species are distinguished, and how their representatives are found.

use checkers::{DrawRules, Style};
use serde::Serialize;
use species::{Dbscan, Noise};

/// By what networks are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub enum Distance {
    /// Their weights, as points.
    #[default]
    Weights,
    /// Their evaluations of the same positions: networks with other weights, or other nodes, may be alike.
    Behaviour {
        /// How many positions.
        positions: usize,
    },
}

/// How species are distinguished, and how their representatives are found.
#[derive(Clone, Debug)]
pub struct SpeciationSettings {
    /// By what networks are alike.
    pub distance: Distance,
    /// Networks at most so far apart are neighbours; nothing: the knee of the k-distance curve decides.
    pub epsilon: Option<f64>,
    /// Neighbours, itself counted, that make a network the core of a species.
    pub min_points: usize,
    /// What becomes of networks in no dense region.
    pub noise: Noise,
    /// Plies to search in the round robins.
    pub depth: u32,
    /// Games of each two members of a species: a number of openings, each played with both colours.
    pub pairs: usize,
    /// Whether those leave who are behind the leader beyond doubt, so that `pairs` are only the most.
    pub race: bool,
    /// How they search in them, beside how far.
    pub style: Style,
    /// When these games are drawn.
    pub rules: DrawRules,
    /// Decides which openings are played, which positions are judged, and between equal moves where chance does.
    pub seed: u64,
}

impl Default for SpeciationSettings {
    fn default() -> Self {
        Self {
            distance: Distance::default(),
            epsilon: None,
            min_points: Dbscan::MIN_POINTS,
            noise: Noise::default(),
            depth: 4,
            pairs: 1,
            race: false,
            style: Style::default(),
            rules: DrawRules::default(),
            seed: 0,
        }
    }
}

impl Distance {
    /// By behaviour on as many positions as tell networks apart well within the noise of fewer.
    pub const BEHAVIOUR: Self = Self::Behaviour { positions: 256 };
    /// More positions are cut to this.
    pub const MOST_POSITIONS: usize = 4096;
}
