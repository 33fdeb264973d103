//! Every problem that can be evolved, and the only list of them.
//!
//! This is the one place where a problem's types are erased: a [`ProblemSpec`], as it stands in an experiment,
//! becomes an [`Evolver`] that goes from bytes to bytes. The crate deliberately knows nothing of files, budgets or
//! clusters.
//!
//! ```
//! use problems::{OneMax, ProblemSpec};
//!
//! let spec = ProblemSpec::Onemax(OneMax { length: 10, ..OneMax::default() });
//! assert!(spec.traits()?.absolute);
//! # Ok::<(), problems::ProblemError>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod checkers;
mod lock_key;
mod match3;
mod maze;
mod onemax;
mod rastrigin;
mod spare;

pub use checkers::{BookKey, Checkers, Consult, Endgame, Learners, Learning, NamedBook, Ties};
pub use lock_key::LockKey;
pub use match3::{BoardOperators, Crossing, Genome, Match3, Plays};
pub use maze::{Founders, Maze, Operators, PathOperators, Repair};
pub use onemax::OneMax;
pub use rastrigin::Rastrigin;

use evolution::epoch::{Evolver, World};
use evolution::gene::Gene;
use evolution::island::Setting;
use evolution::population::Cost;
use evolution::problem::{Axis, Breeder, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::any::TypeId;
use std::sync::Arc;

/// A problem and its parameters, as they stand in an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProblemSpec {
    /// Count the genes that are symbol 1.
    Onemax(OneMax),
    /// Minimise Rastrigin's function.
    Rastrigin(Rastrigin),
    /// Collect points on a board of numbers.
    Maze(Maze),
    /// Win games of checkers.
    Checkers(Checkers),
    /// Make lock-and-key levels of a wanted difficulty.
    LockKey(LockKey),
    /// Make Match-3 boards of a wanted pass rate.
    Match3(Match3),
}

/// A problem that cannot be posed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProblemError {
    /// The key of the experiment that is at fault.
    pub key: String,
    /// What was expected and found.
    pub message: String,
}

impl ProblemError {
    fn new(key: &str, message: &dyn std::fmt::Display) -> Self {
        Self { key: key.to_owned(), message: message.to_string() }
    }
}

/// What checks and estimates need to know of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Traits {
    /// Whether genes are real numbers, as evolution strategies need.
    pub real: bool,
    /// The values that a gene may take, to tell from those of other problems.
    pub domain: String,
    /// Genes in a genome.
    pub length: usize,
    /// Bytes of a genome.
    pub bytes: usize,
    /// Whether fitness has a meaning beyond one judgement.
    pub absolute: bool,
    /// Whether real genes must be mutated by steps, because their domain is far wider than the values that make sense.
    pub needs_step: bool,
    /// Evaluations that judging one individual takes.
    pub evaluations: u64,
    /// The axes along which individuals are described.
    pub axes: Vec<Axis>,
    /// The most bytes that an island remembers of learning.
    pub memory: u64,
    /// The most former champions of an island that its individuals play against.
    pub opponents: u64,
    /// About how long one evaluation takes.
    pub cost: Cost,
    /// About how long a child takes, where the problem makes children by operators of its own.
    pub breeding: Option<Cost>,
}

/// Something that is done with a problem of any type.
trait Use {
    type Answer;
    fn with<P: Problem + 'static>(self, problem: P) -> Self::Answer;
}

struct Describe;

impl Use for Describe {
    type Answer = Traits;

    fn with<P: Problem + 'static>(self, problem: P) -> Traits {
        let length = problem.shape().length;
        Traits {
            real: TypeId::of::<<P::Gene as Gene>::Domain>() != TypeId::of::<evolution::gene::Alphabet>(),
            domain: format!("{:?}", problem.shape().domain),
            length,
            bytes: length * size_of::<P::Gene>(),
            absolute: problem.absolute(),
            needs_step: problem.needs_step(),
            evaluations: problem.evaluations(),
            axes: problem.axes(),
            memory: problem.memory_bytes(),
            opponents: problem.hall() as u64,
            cost: problem.cost(),
            breeding: problem.breeder().map(Breeder::cost),
        }
    }
}

struct Settle(Setting);

impl Use for Settle {
    type Answer = Arc<dyn Evolver>;

    fn with<P: Problem + 'static>(self, problem: P) -> Self::Answer {
        Arc::new(World::new(problem, self.0))
    }
}

impl ProblemSpec {
    /// The list of problems.
    fn pose<U: Use>(&self, purpose: U) -> Result<U::Answer, ProblemError> {
        Ok(match self {
            Self::Onemax(onemax) => purpose.with(onemax.clone()),
            Self::Rastrigin(rastrigin) => purpose.with(rastrigin.clone()),
            Self::Maze(maze) => purpose.with(maze.problem()?),
            Self::Checkers(checkers) => purpose.with(checkers.problem()?),
            Self::LockKey(lock_key) => purpose.with(lock_key.problem()?),
            Self::Match3(match3) => purpose.with(match3.problem()?),
        })
    }

    /// What checks and estimates need to know.
    pub fn traits(&self) -> Result<Traits, ProblemError> {
        self.pose(Describe)
    }

    /// What the problem is called in an experiment.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Onemax(_) => "onemax",
            Self::Rastrigin(_) => "rastrigin",
            Self::Maze(_) => "maze",
            Self::Checkers(_) => "checkers",
            Self::LockKey(_) => "lock-key",
            Self::Match3(_) => "match3",
        }
    }

    /// Computes what all evaluations share, so that none of them has to wait for it.
    pub fn prepare(&self) {
        if let Self::Checkers(checkers) = self {
            checkers.prepare();
        }
    }

    /// A genome as its problem writes it, or else number by number.
    pub fn show(&self, genome: &[f64]) -> String {
        let joined = |between: &str, show: fn(&f64) -> String| {
            genome.iter().map(show).collect::<Vec<_>>().join(between)
        };
        match self {
            Self::Maze(_) => genome.iter().map(|&gene| maze::letter(gene)).collect(),
            Self::Onemax(_) => joined("", f64::to_string),
            Self::Checkers(_) => match genome.split_last() {
                Some((king, weights)) => format!("{} weights, a king worth {king:.2}", weights.len()),
                None => String::new(),
            },
            Self::LockKey(lock_key) => lock_key.show(genome),
            Self::Match3(match3) => match3.show(genome),
            Self::Rastrigin(_) => joined(" ", |gene| format!("{gene:.6}")),
        }
    }

    /// The player file of a genome; nothing where those who are evolved do not play.
    pub fn player_file(&self, genome: &[f64]) -> Option<Vec<u8>> {
        let Self::Checkers(checkers) = self else { return None };
        let weights: Vec<f32> = genome.iter().map(|&gene| gene as f32).collect();
        let network = ::checkers::Network::new(checkers.architecture(), &weights).ok()?;
        Some(network.to_player_file())
    }

    /// What evolves the problem's islands in a setting.
    pub fn evolver(&self, setting: Setting) -> Result<Arc<dyn Evolver>, ProblemError> {
        self.pose(Settle(setting))
    }
}
