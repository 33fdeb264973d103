//! Checkers by self-play: a genome is the weights of a network, its fitness what it scores against the others.

mod arena;
mod learning;
mod memory;
mod rivals;
mod schedule;
mod self_play;

pub(crate) use self_play::SelfPlay;

use crate::ProblemError;
use checkers::{
    Architecture, Book, Database, DrawRules, Endgames, Knowledge, NetworkShape, NodeKind, Opening,
    PlayerSpec, Style,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Evolve the Chellapilla-Fogel network by games of checkers on its island.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checkers {
    /// What the 91 nodes of the first layer do.
    pub nodes: Nodes,
    /// How many towers of these layers a network has.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "paper"))]
    pub shape: ShapeKey,
    /// Plies that players look ahead.
    #[schemars(range(min = 1, max = 20))]
    pub depth: u32,
    /// Encounters that each individual begins in a generation; others begin further ones with it.
    #[schemars(range(min = 1, max = 10_000))]
    pub games: u32,
    /// Opponents in these encounters.
    pub opponents: Opponents,
    /// Who has which colour in an encounter.
    pub colours: Colours,
    /// Where games start.
    pub openings: Openings,
    /// What a game is worth.
    pub points: Points,
    /// When a game is drawn.
    pub draw: Draw,
    /// Former champions of the island as further opponents.
    pub hall_of_fame: HallOfFame,
    /// A player that does not evolve as a further opponent.
    pub benchmark: Benchmark,
    /// How the champion of an epoch is found among the best of its last generation.
    pub champion: Confirmation,
    /// The networks that found an island.
    pub weights: Weights,
    /// How far players are apart, for crowding and for policies that look at similarity.
    pub distance: Distance,
    /// Endgame database of the evolving players.
    #[serde(skip_serializing_if = "Endgame::is_none")]
    pub endgame: Endgame,
    /// Whether the search knows the game so far: a position that stood on the board since the last capture or man's move
    /// counts as a draw in it, so that a player who is ahead does not step back into one.
    pub history: bool,
    /// Whether pending captures at the leaves of the search are searched to their end.
    pub quiescence: bool,
    /// Which of equally good moves is played.
    pub ties: Ties,
    /// Opening book of the evolving players, which play from it as long as it has moves; the benchmark has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<BookKey>,
    /// End a game with the endgame database's result when this many pieces are left (0 to 6; 0: never). 6 need
    /// `endgame.pieces = 6` too.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 6), extend("default" = 0))]
    pub adjudicate: u32,
    /// Random moves after the opening, the same for both games of a pair; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 40), extend("default" = 0))]
    pub random_plies: u32,
    /// Learning by gradient: what individuals learn is inherited.
    #[serde(skip_serializing_if = "Learning::is_none")]
    pub learning: Learning,
}

/// How individuals learn by gradient in each generation, from positions of their games.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Learning {
    /// Positions that a learner learns from in a generation, drawn from those of all games; 0 for no learning.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub positions: u32,
    /// Positions for one step along the gradient.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch: u32,
    /// The size of a step (Adam).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rate: f64,
    /// The share of what a position should be worth that comes from the search in the game; the rest is the result.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub search: f64,
    /// Which individuals learn.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "each"))]
    pub learners: Learners,
    /// Positions of earlier generations that an island remembers, the newest, to draw lessons from; 0 for those of this
    /// generation alone.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 2_000_000), extend("default" = 0))]
    pub memory: u32,
    /// Generations after which steps are half as large; 0 for never.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_000_000_000), extend("default" = 0))]
    pub half_life: u32,
    /// What remains of a game's result for each ply until its end: below 1 a quick win is worth more.
    #[serde(skip_serializing_if = "is_one")]
    #[schemars(range(min = 0.5, max = 1.0), extend("default" = 1.0))]
    pub discount: f64,
    /// Exclude positions more than this many plies after the last capture or man's move; 0: no limit.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 0))]
    pub quiet: u32,
    /// Whether a king's worth is learnt too.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub king: bool,
}

/// Which individuals learn in a generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learners {
    /// Each individual on its own, with a new optimiser in every generation.
    #[default]
    Each,
    /// The mean of all individuals, with one optimiser for the whole run. All of them move as the mean does, and the first
    /// becomes the mean itself, ranks first, and so stays on the island.
    Mean,
}

impl Default for Learning {
    fn default() -> Self {
        Self {
            positions: 0,
            batch: 64,
            rate: 0.001,
            search: 0.25,
            learners: Learners::Each,
            memory: 0,
            half_life: 0,
            discount: 1.0,
            quiet: 0,
            king: false,
        }
    }
}

impl Learning {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    clippy::float_cmp,
    reason = "serde wants a reference; 1 is exact"
)]
fn is_one(number: &f64) -> bool {
    *number == 1.0
}

/// What was always so is not written: experiments keep their digests.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Checkers {
    fn default() -> Self {
        Self {
            nodes: Nodes::Weighted,
            shape: ShapeKey::Paper,
            depth: 4,
            games: 5,
            opponents: Opponents::Random,
            colours: Colours::First,
            openings: Openings::Start,
            points: Points::default(),
            draw: Draw::default(),
            hall_of_fame: HallOfFame::default(),
            benchmark: Benchmark::default(),
            champion: Confirmation::default(),
            weights: Weights::default(),
            distance: Distance::Weights,
            endgame: Endgame::default(),
            history: true,
            quiescence: true,
            ties: Ties::Order,
            book: None,
            adjudicate: 0,
            random_plies: 0,
            learning: Learning::default(),
        }
    }
}

/// What the 91 nodes of the first layer do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nodes {
    /// Weigh the squares of their sub-boards.
    Weighted,
    /// Add up the pieces on them.
    Sum,
}

impl Nodes {
    /// As the game's own library calls them.
    fn kind(self) -> NodeKind {
        match self {
            Self::Weighted => NodeKind::Weighted,
            Self::Sum => NodeKind::Sum,
        }
    }
}

/// How many towers of the three hidden layers a network has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShapeKey {
    /// One, as published.
    #[default]
    Paper,
    /// Two side by side: twice as many nodes in each layer, whose sums meet in the value.
    Wide,
    /// One each for the opening (17 pieces and more), the middle and the end (8 pieces and less) of a game.
    Phases,
}

impl ShapeKey {
    /// As the game's own library calls it.
    fn of_networks(self) -> NetworkShape {
        match self {
            Self::Paper => NetworkShape::Paper,
            Self::Wide => NetworkShape::Wide,
            Self::Phases => NetworkShape::Phases,
        }
    }
}

/// Whom an individual meets in the encounters it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Opponents {
    /// Random individuals, different ones for each; both sides score.
    Random,
    /// The same few random individuals for all, from the same openings; only the individual that starts the encounter
    /// scores. Parents and children are compared in the same games.
    Panel,
}

/// Who has which colour in an encounter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Colours {
    /// One game, in which the individual that begins the encounter has the first move.
    First,
    /// Two games, with colours swapped.
    Swapped,
}

/// Where games start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Openings {
    /// At the initial position.
    Start,
    /// After a random one of the 156 three-move openings, drawn for each encounter.
    Deck,
    /// At a random one of the sharp starts: 11 men on each side, from which few games are drawn. They favour one side, so
    /// `colours` must be `swapped`.
    Sharp,
}

impl Openings {
    /// The starts to draw from, if there are several.
    fn starts(self) -> Option<&'static [Opening]> {
        match self {
            Self::Start => None,
            Self::Deck => Some(checkers::openings()),
            Self::Sharp => Some(checkers::sharp_openings()),
        }
    }
}

/// Which of equally good moves is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// The first of the legal moves.
    Order,
    /// The first in an order of the legal moves that follows from the game and the ply: deterministic players can play
    /// many games from one position.
    Random,
}

impl Ties {
    /// As the game's own library calls them.
    pub fn of_games(self) -> checkers::Ties {
        match self {
            Self::Order => checkers::Ties::Order,
            Self::Random => checkers::Ties::Random,
        }
    }
}

/// An opening book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BookKey {
    /// A built-in book.
    Named(NamedBook),
    /// Lines of play from the initial position, such as `"11-15 23-19 8-11"`; what more lines contain is played more
    /// often.
    Lines(#[schemars(length(min = 1, max = 10_000))] Vec<String>),
}

/// One of the built-in books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedBook {
    /// The first three moves of all openings of the deck.
    Deck,
}

impl BookKey {
    /// The book itself.
    pub fn book(&self) -> Result<Book, checkers::BookError> {
        match self {
            Self::Named(NamedBook::Deck) => Ok(Book::deck()),
            Self::Lines(lines) => Book::parse(&lines.join("\n")),
        }
    }
}

/// What a game is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Points {
    /// When it is won.
    #[schemars(range(min = -1000.0, max = 1000.0))]
    pub win: f64,
    /// When it is drawn.
    #[schemars(range(min = -1000.0, max = 1000.0))]
    pub draw: f64,
    /// When it is lost.
    #[schemars(range(min = -1000.0, max = 1000.0))]
    pub loss: f64,
}

impl Default for Points {
    fn default() -> Self {
        Self { win: 1.0, draw: 0.0, loss: -2.0 }
    }
}

/// When a game is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Draw {
    /// When a position stands on the board for this many times; 0 for never. Players choose by the position alone, so a
    /// game that came to a position again would never end.
    #[schemars(range(min = 0, max = 1000))]
    pub repetitions: u32,
    /// Draw after this many moves of each side.
    #[schemars(range(min = 1, max = 10_000))]
    pub moves: u32,
    /// Draw after this many plies without a capture or a man's move; 0: never.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1000), extend("default" = 0))]
    pub quiet: u32,
}

impl Default for Draw {
    fn default() -> Self {
        Self { repetitions: 2, moves: 100, quiet: 0 }
    }
}

impl Draw {
    fn rules(self) -> DrawRules {
        let repetitions = (self.repetitions > 0).then_some(self.repetitions);
        let quiet_plies = (self.quiet > 0).then_some(self.quiet);
        DrawRules { repetitions, quiet_plies, max_plies: 2 * self.moves, adjudicate: 0 }
    }
}

/// Former champions as further opponents: of the island, and of those that send it theirs (`islands.league`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HallOfFame {
    /// How many former champions are kept: those of the latest epochs, one for each.
    #[schemars(range(min = 0, max = 1000))]
    pub size: u32,
    /// Encounters of each individual with former champions.
    #[schemars(range(min = 0, max = 10_000))]
    pub games: u32,
    /// Which of them are met.
    #[schemars(extend("default" = "random"))]
    #[serde(skip_serializing_if = "is_default")]
    pub choice: Choice,
}

/// Which former champions are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Any of them, equally often.
    #[default]
    Random,
    /// More often those that the island lost to in the latest generations.
    Hardest,
}

/// A player that does not evolve as a further opponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Benchmark {
    /// Which player.
    pub player: BenchmarkPlayer,
    /// Encounters of each individual with it.
    #[schemars(range(min = 0, max = 10_000))]
    pub games: u32,
}

impl Default for Benchmark {
    fn default() -> Self {
        Self { player: BenchmarkPlayer::Material, games: 0 }
    }
}

/// Players that do not evolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkPlayer {
    /// Counts pieces, at the search depth of all players.
    Material,
    /// Plays any move.
    Random,
}

/// How the champion of an epoch is found among the best of its last generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Confirmation {
    /// How many of the best play a round robin.
    #[schemars(range(min = 1, max = 100))]
    pub contenders: u32,
    /// Pairs of games of each two of them with colours swapped, from where games start; from openings of the deck where
    /// that is the initial position and nothing is left to chance (`ties`, `book`).
    #[schemars(range(min = 1, max = 156))]
    pub pairs: u32,
    /// Leave out contenders that are behind the leader beyond doubt, and stop when one is left: `pairs` is then the most.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub race: bool,
}

impl Default for Confirmation {
    fn default() -> Self {
        Self { contenders: 4, pairs: 3, race: false }
    }
}

/// The networks that found an island.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Weights are drawn from minus this to this.
    #[schemars(range(min = 0.0, max = 16.0))]
    pub range: f64,
    /// What a king is worth at first, where a man is 1.
    #[schemars(range(min = 1.0, max = 3.0))]
    pub king: f64,
    /// How much a king's worth rises, falls or stays from parent to child in the evolution strategy, within 1 to 3;
    /// in other algorithms it is a gene like any other. 0 fixes it at `king` in every algorithm, unless it is learnt.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub king_step: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { range: 0.2, king: 2.0, king_step: 0.1 }
    }
}

/// How far players are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// By their weights.
    Weights,
    /// By what they think of 64 positions.
    Behaviour,
}

/// Endgame database of the evolving players, also used in their search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Endgame {
    /// Largest number of pieces in the database (0 to 6; 0: no database). Up to 4 are computed in seconds, 5 in a minute
    /// unless a folder holds them; for 6 each worker must name a folder (`endgame` in its settings).
    #[schemars(range(min = 0, max = 6))]
    pub pieces: u32,
    /// Digest of the database with 6 pieces, as `atoll endgame build --pieces 6` prints it: workers with another one get
    /// no work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9a-f]{64}$"))]
    pub digest: Option<DatabaseDigest>,
    /// When it is asked.
    pub consult: Consult,
    /// Lower end of the range of evaluations in which a player is unsure.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub from: f32,
    /// Upper end of that range.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub to: f32,
}

impl Default for Endgame {
    fn default() -> Self {
        Self { pieces: 0, digest: None, consult: Consult::Unsure, from: 0.25, to: 0.75 }
    }
}

/// The digest of a database, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DatabaseDigest([u8; 64]);

impl TryFrom<String> for DatabaseDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = <[u8; 64]>::try_from(text.as_bytes()).ok();
        let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let digits = digits.filter(|digits| digits.iter().all(is_digit));
        digits
            .map(Self)
            .ok_or_else(|| format!("expected 64 hexadecimal digits in lower case, found `{text}`"))
    }
}

impl From<DatabaseDigest> for String {
    fn from(digest: DatabaseDigest) -> Self {
        digest.to_string()
    }
}

impl std::fmt::Display for DatabaseDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(str::from_utf8(&self.0).expect("digits are text"))
    }
}

impl Endgame {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The database and when it is asked, if at all. It is read or computed when it is first needed.
    fn endgames(&self) -> Option<Endgames> {
        let database = Database::shared(self.pieces).ok()?;
        let consult = match self.consult {
            Consult::Unsure => checkers::Consult::Unsure { from: self.from, to: self.to },
            Consult::Always => checkers::Consult::Always,
        };
        Some(Endgames { database, consult })
    }
}

/// When the endgame database is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Consult {
    /// Where a player's own value is unsure.
    Unsure,
    /// Wherever the database knows the position.
    Always,
}

impl Checkers {
    /// What the evolving networks are like.
    pub fn architecture(&self) -> Architecture {
        Architecture { nodes: self.nodes.kind(), shape: self.shape.of_networks() }
    }

    /// A player with the knowledge that those have who evolve.
    pub fn informed(&self, player: PlayerSpec) -> PlayerSpec {
        match self.knowledge() {
            None => player,
            Some(knowledge) => PlayerSpec::Knowing { player: Box::new(player), knowledge },
        }
    }

    /// What evolving players know beside the position, and how they search, if that is not the default.
    fn knowledge(&self) -> Option<Knowledge> {
        let style = Style { history: self.history, quiescence: self.quiescence, ties: self.ties.of_games() };
        let book = self.book.as_ref().and_then(|book| book.book().ok()).map(Arc::new);
        let knowledge = Knowledge { book, endgames: self.endgame.endgames(), style };
        (!knowledge.is_none()).then_some(knowledge)
    }

    /// Computes the endgame databases of its games, which are shared.
    pub(crate) fn prepare(&self) {
        drop(self.knowledge());
        // Where no game is adjudicated, there is none of so few pieces.
        drop(Database::shared(self.rules().adjudicate));
    }

    /// The endgame database that this machine lacks: one that is too large to be computed where it is needed.
    pub(crate) fn missing(&self) -> Option<String> {
        let digest = self.endgame.digest?.to_string();
        match Database::shared(self.endgame.pieces) {
            Err(error) => Some(error.to_string()),
            Ok(database) if database.digest() == digest => None,
            Ok(database) => Some(format!(
                "expected an endgame database with the digest {digest}, found {}",
                database.digest()
            )),
        }
    }

    /// Whether former champions that win are met more often than others.
    pub(crate) fn meets_the_hardest(&self) -> bool {
        self.hall_of_fame.games > 0 && self.hall_of_fame.choice == Choice::Hardest
    }

    /// Whether two players can play several games from one position.
    fn leaves_to_chance(&self) -> bool {
        self.ties == Ties::Random || self.book.is_some()
    }

    /// When a game ends.
    fn rules(&self) -> DrawRules {
        DrawRules { adjudicate: self.adjudicate, ..self.draw.rules() }
    }

    /// The problem, if its keys fit together.
    pub(crate) fn problem(&self) -> Result<SelfPlay, ProblemError> {
        let HallOfFame { size, games, .. } = self.hall_of_fame;
        if games > 0 && size == 0 {
            let message = "expected a hall of fame with at least 1 champion to play with, found `size = 0`";
            return Err(ProblemError::new("problem.hall_of_fame.size", &message));
        }
        if self.points.win <= self.points.loss {
            let message = "expected a win to be worth more than a loss";
            return Err(ProblemError::new("problem.points", &message));
        }
        if self.endgame.pieces == 1 {
            let message = "expected a database of 2 to 6 pieces, or 0 for none, found `1`";
            return Err(ProblemError::new("problem.endgame.pieces", &message));
        }
        if self.endgame.digest.is_some() != (self.endgame.pieces > Database::COMPUTED) {
            let message = "expected the digest that `atoll endgame build --pieces 6` prints with a database of 6 pieces, and none \
                           with a smaller one, which follows from the rules";
            return Err(ProblemError::new("problem.endgame.digest", &message));
        }
        if self.adjudicate > Database::COMPUTED && self.endgame.pieces < self.adjudicate {
            let message = "expected `endgame.pieces = 6` too, with the digest of that database";
            return Err(ProblemError::new("problem.adjudicate", &message));
        }
        if self.endgame.from >= self.endgame.to {
            let Endgame { from, to, .. } = self.endgame;
            let message = format!("expected more than `from`, which is {from}, found `{to}`");
            return Err(ProblemError::new("problem.endgame.to", &message));
        }
        if self.adjudicate == 1 {
            let message = "expected a database of 2 to 6 pieces, or 0 for none, found `1`";
            return Err(ProblemError::new("problem.adjudicate", &message));
        }
        if self.openings == Openings::Sharp && self.colours == Colours::First {
            let message =
                "expected `swapped` with `openings = \"sharp\"`, whose starts favour one side, found `first`";
            return Err(ProblemError::new("problem.colours", &message));
        }
        if let Some(Err(error)) = self.book.as_ref().map(BookKey::book) {
            return Err(ProblemError::new("problem.book", &error));
        }
        Ok(SelfPlay::new(self.clone()))
    }
}
