//! The `[tournament]` table as it is written: names, defaults and ranges.

use problems::{BookKey, Ties};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tournament of checkers players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TournamentKeys {
    /// Who meets whom.
    #[serde(default)]
    pub format: FormatKey,
    /// The openings that each two play with both colours: the whole deck of 156, or this many spread over it, drawn by the
    /// seed.
    #[serde(default = "whole_deck")]
    #[schemars(range(min = 1, max = 156))]
    pub openings: u32,
    /// Which openings these are.
    #[serde(default, skip_serializing_if = "DeckKey::is_default")]
    #[schemars(extend("default" = "deck"))]
    pub deck: DeckKey,
    /// How often each two go through these openings; more than once only where one of the two leaves something to chance.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 10_000))]
    pub rounds: u32,
    /// Plies that players look ahead; longer while captures are pending.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 64))]
    pub depth: u32,
    /// Positions that a player may look at for a move, in place of `depth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000u64))]
    pub nodes: Option<u64>,
    /// Milliseconds that a player may take for a move, in place of `depth`: such games depend on the machine, and are no
    /// part of the digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_600_000))]
    pub milliseconds: Option<u64>,
    /// Whether the search of our own players knows the game so far: a position that stood on the board since the last
    /// capture or man's move counts as a draw in it.
    #[serde(default = "yes")]
    pub history: bool,
    /// When a game is drawn.
    #[serde(default)]
    pub draw: DrawKeys,
    /// End a game with the endgame database's result when this many pieces are left (0 to 4; 0: never).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 4), extend("default" = 0))]
    pub adjudicate: u32,
    /// A sequential test by which two players stop when enough has been played; without one they play all games.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sprt: Option<SprtKeys>,
    /// How `representatives` and `ensemble` group players into species.
    #[serde(default)]
    pub species: SpeciesKeys,
    /// Who plays.
    #[schemars(length(min = 1, max = 256))]
    pub players: Vec<PlayerKeys>,
    /// Published results, shown next to those of two teams.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub published: Vec<PublishedKeys>,
}

impl TournamentKeys {
    /// A round robin of these players from the whole deck, with every other key as it is when nothing is said.
    pub fn new(players: Vec<PlayerKeys>) -> Self {
        Self {
            format: FormatKey::default(),
            openings: whole_deck(),
            deck: DeckKey::default(),
            rounds: once(),
            depth: four(),
            nodes: None,
            milliseconds: None,
            history: yes(),
            draw: DrawKeys::default(),
            adjudicate: 0,
            sprt: None,
            species: SpeciesKeys::default(),
            players,
            published: vec![],
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn yes() -> bool {
    true
}

fn whole_deck() -> u32 {
    156
}

fn once() -> u32 {
    1
}

fn four() -> u32 {
    4
}

/// Where games start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeckKey {
    /// The three-move openings.
    #[default]
    Deck,
    /// Sharp starts with 11 men on each side, from which few games are drawn.
    Sharp,
    /// The initial position alone: one pair of games a round. Players differ from game to game by `ties` or a `book`.
    Start,
}

impl DeckKey {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who meets whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FormatKey {
    /// Every player plays all players of other teams.
    #[default]
    RoundRobin,
    /// The first player, and its team, play all others.
    Gauntlet,
    /// The n-th player of a team meets the n-th of every other team, such as champions of the same generation.
    Paired,
}

/// When a game is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrawKeys {
    /// When a position stands on the board for this many times; 0 for never.
    #[schemars(range(min = 0, max = 1000))]
    pub repetitions: u32,
    /// Draw after this many plies without a capture or a man's move; 0: never.
    #[schemars(range(min = 0, max = 10_000))]
    pub quiet_plies: u32,
    /// Draw after this many plies.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_plies: u32,
}

impl Default for DrawKeys {
    fn default() -> Self {
        Self { repetitions: 3, quiet_plies: 80, max_plies: 1000 }
    }
}

/// A sequential probability ratio test for each two players.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SprtKeys {
    /// Elo difference of the first hypothesis.
    #[schemars(range(min = -2000.0, max = 2000.0))]
    pub elo0: f64,
    /// Elo difference of the second hypothesis, which must be larger.
    #[schemars(range(min = -2000.0, max = 2000.0))]
    pub elo1: f64,
    /// Probability of accepting `elo1` although `elo0` is true (alpha).
    #[schemars(range(min = 0.0001, max = 0.4999))]
    pub alpha: f64,
    /// Probability of accepting `elo0` although `elo1` is true (beta).
    #[schemars(range(min = 0.0001, max = 0.4999))]
    pub beta: f64,
}

impl Default for SprtKeys {
    fn default() -> Self {
        Self { elo0: 0.0, elo1: 30.0, alpha: 0.05, beta: 0.05 }
    }
}

/// How players are grouped into species.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpeciesKeys {
    /// What the distance of two players is computed from.
    pub distance: DistanceKey,
    /// How far apart neighbours may be; the knee of the k-distance curve unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub epsilon: Option<f64>,
    /// Neighbours, itself counted, that make a player the core of a species.
    #[schemars(range(min = 1, max = 10_000))]
    pub min_points: u32,
    /// What to do with players that resemble no other.
    pub noise: NoiseKey,
    /// Plies that the members of a species look ahead when they play each other.
    #[schemars(range(min = 1, max = 64))]
    pub depth: u32,
    /// Openings that each two members of a species play, with both colours.
    #[schemars(range(min = 1, max = 156))]
    pub pairs: u32,
    /// Leave out members that are behind the leader beyond doubt, and stop when one is left: `pairs` is then the most.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub race: bool,
    /// Whether their search knows the game so far when they play each other.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub history: bool,
    /// Whether they search pending captures at the leaves to their end.
    #[serde(skip_serializing_if = "is_true")]
    #[schemars(extend("default" = true))]
    pub quiescence: bool,
    /// Which of equally good moves they play.
    #[serde(skip_serializing_if = "is_by_order")]
    #[schemars(extend("default" = "order"))]
    pub ties: Ties,
}

impl Default for SpeciesKeys {
    fn default() -> Self {
        Self {
            distance: DistanceKey::default(),
            epsilon: None,
            min_points: 4,
            noise: NoiseKey::default(),
            depth: 4,
            pairs: 1,
            race: false,
            history: false,
            quiescence: true,
            ties: Ties::Order,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_by_order(ties: &Ties) -> bool {
    *ties == Ties::Order
}

/// What the distance of two players is computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DistanceKey {
    /// Their weights.
    #[default]
    Weights,
    /// Their evaluations of the same positions.
    Behaviour,
}

/// What to do with players that resemble no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKey {
    /// They belong to no species.
    #[default]
    Drop,
    /// Each is a species of its own.
    Own,
    /// They belong to the nearest species.
    Nearest,
}

/// A player, or several of one run: exactly one of `player`, `representatives`, `ensemble` and `engine`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlayerKeys {
    /// What it is called in tables and games.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// `"material"`, `"random"`, a player file, or a champion: `"RUN"`, `"RUN/ISLAND"` or `"RUN/ISLAND@EPOCH"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<String>,
    /// The best of each species of what a run has evolved, as players `NAME.1`, `NAME.2` and so on: `"RUN"` (all
    /// islands), `"RUN/ISLAND"` or `"RUN/ISLAND@EPOCH"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub representatives: Option<String>,
    /// The same as one player, which decides by vote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensemble: Option<String>,
    /// An engine that speaks Hub, by its name in the worker's file of engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Players of one team do not meet each other; each is a team of its own unless this is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 60))]
    pub team: Option<String>,
    /// Plies that it looks ahead, if other than all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub depth: Option<u32>,
    /// Whether it asks the endgame database, and with how many pieces left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 4))]
    pub endgame: Option<u32>,
    /// When it asks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consult: Option<ConsultKey>,
    /// The player is unsure while its evaluation lies between these values, for either side; `[0.25, 0.75]` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 2), inner(range(min = 0.0, max = 1.0)))]
    pub unsure: Option<Vec<f64>>,
    /// Whether its search knows the game so far, if other than all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<bool>,
    /// Whether it searches pending captures at the leaves to their end. The default is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiescence: Option<bool>,
    /// Which of equally good moves it plays. The default is `order`, the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ties: Option<Ties>,
    /// A book of its own: it plays from it as long as the book has moves, its opponent does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub book: Option<BookKey>,
    /// The digest of its player file; written when the tournament begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// When a player asks the endgame database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConsultKey {
    /// Where its own value is unsure (the default).
    Unsure,
    /// Wherever the database knows the position.
    Always,
}

/// Published result of one team against another, from the first team's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishedKeys {
    /// The two teams.
    #[schemars(length(min = 2, max = 2))]
    pub teams: Vec<String>,
    /// Games that the first won.
    pub wins: u32,
    /// Games that it drew.
    pub draws: u32,
    /// Games that it lost.
    pub losses: u32,
    /// Who published them.
    #[schemars(length(max = 200))]
    pub source: String,
}
