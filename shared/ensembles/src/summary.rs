//! Species as programs read them.

use crate::round_robin::RoundRobinStanding;
use crate::settings::Distance;
use crate::speciation::Speciation;
use serde::Serialize;

/// What was found, with the individuals by their names.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SpeciationSummary {
    /// How many individuals there are.
    pub population: usize,
    /// By what they are alike.
    pub distance: Distance,
    /// How near neighbours are.
    pub epsilon: f64,
    /// How many neighbours, itself counted, make a core.
    pub min_points: usize,
    /// Dense regions, before anything was done about noise.
    pub clusters: usize,
    /// The species.
    pub species: Vec<SpeciesSummary>,
    /// Those of no species.
    pub outsiders: Vec<String>,
    /// How much of the population's spread two dimensions keep, 0 to 1.
    pub spread_kept: f64,
}

/// A species.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SpeciesSummary {
    /// The best of its members, among themselves.
    pub representative: String,
    /// What its members scored against each other, the best first.
    pub standings: Vec<StandingSummary>,
}

/// What a member scored.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StandingSummary {
    /// The member.
    pub name: String,
    /// Games won.
    pub wins: u32,
    /// Games lost.
    pub losses: u32,
    /// Games drawn.
    pub draws: u32,
}

impl Speciation {
    /// What was found; individuals without a name go by their number.
    pub fn summary(&self, names: &[String]) -> SpeciationSummary {
        let name =
            |individual: usize| names.get(individual).cloned().unwrap_or_else(|| individual.to_string());
        let standing = |standing: &RoundRobinStanding| {
            let RoundRobinStanding { player, wins, losses, draws } = *standing;
            StandingSummary { name: name(player), wins, losses, draws }
        };
        let species = |(representative, standings): (usize, &Vec<RoundRobinStanding>)| SpeciesSummary {
            representative: name(representative),
            standings: standings.iter().map(standing).collect(),
        };
        SpeciationSummary {
            population: self.clustering().labels().len(),
            distance: self.distance(),
            epsilon: self.dbscan().epsilon,
            min_points: self.dbscan().min_points,
            clusters: self.clustering().clusters(),
            species: self.representatives().into_iter().zip(self.standings()).map(species).collect(),
            outsiders: self.species().outsiders().map(name).collect(),
            spread_kept: self.projection().kept,
        }
    }
}
