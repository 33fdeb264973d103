//! Plans of numbered cells, each a pure function of the plan and its number: a cell of a sweep is a whole run, of which
//! only the best is kept; a cell of a tournament is a batch of games.

use crate::solo::{self, SoloError};
use bincode::{Decode, Encode};
use evolution::activity::Activity;
use evolution::codec::{self, CodecError};
use evolution::digest::Digest;
use experiment::{Cell, Experiment, Plan, Sweep, Tournament};
use std::time::Duration;
use tournament::{Contestant, GameEnding, GameRecord, Pair, PlayedPair};

/// A plan of numbered cells.
#[derive(Clone, Debug)]
pub enum CellPlan {
    /// Experiments.
    Sweep(Box<Sweep>),
    /// Batches of games, between players who have been looked up.
    Tournament(Box<Tournament>),
}

/// The result of one cell.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum CellResult {
    /// Of a sweep.
    Evolved(Evolved),
    /// Of a tournament.
    Played(Vec<PlayedPair>),
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Evolved {
    /// The digest of its run.
    pub digest: Digest,
    /// The best fitness of all islands.
    pub best: f64,
    /// The generations of an island.
    pub generations: u64,
    /// The evaluations of all islands.
    pub evaluations: u64,
    /// The best champion's genes.
    pub genome: Vec<f64>,
}

/// A cell that cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// Its run failed.
    #[error(transparent)]
    Run(#[from] SoloError),
    /// Its champion cannot be read.
    #[error("its state {0}")]
    Champion(#[from] CodecError),
    /// The plan has no such cell.
    #[error("expected a cell below {cells}, found `{number}`")]
    Number {
        /// How many there are.
        cells: u32,
        /// The number.
        number: u32,
    },
}

impl CellPlan {
    /// The plan, if it is one of cells. Players of a tournament must have been looked up.
    pub fn of(plan: Plan) -> Option<Self> {
        match plan {
            Plan::Sweep(sweep) => Some(Self::Sweep(sweep)),
            Plan::Tournament(games) => games.is_resolved().then_some(Self::Tournament(games)),
            Plan::Single(_) | Plan::Study(_) => None,
        }
    }

    /// The text from which it can be read again.
    pub fn text(&self) -> &str {
        match self {
            Self::Sweep(sweep) => &sweep.text,
            Self::Tournament(games) => games.text(),
        }
    }

    /// How many cells there are.
    pub fn len(&self) -> u32 {
        match self {
            Self::Sweep(sweep) => sweep.len(),
            Self::Tournament(games) => games.schedule().len() as u32,
        }
    }

    /// Whether there are no cells; there always is one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digest of everything that its cells depend on.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Sweep(sweep) => sweep.digest(),
            Self::Tournament(games) => games.digest(),
        }
    }

    /// The name of its run.
    pub fn run_id(&self) -> String {
        match self {
            Self::Sweep(sweep) => sweep.run_id(),
            Self::Tournament(games) => games.run_id(),
        }
    }

    /// Whether a cell depends on the plan and its number alone. The results of others are kept, but are no part of
    /// a digest.
    pub fn is_pure(&self, number: u32) -> bool {
        match self {
            Self::Sweep(_) => true,
            Self::Tournament(games) => games.is_pure(games.schedule().batch(number).pairing),
        }
    }

    /// Whether this can be the result of a cell: of the right kind and size, and from the right openings
    /// with the right colours.
    pub fn fits(&self, number: u32, result: &CellResult) -> bool {
        match (self, result) {
            _ if number >= self.len() => false,
            (Self::Sweep(_), CellResult::Evolved(evolved)) => !evolved.best.is_nan(),
            (Self::Tournament(games), CellResult::Played(pairs)) => {
                let planned = &games.schedule().pairs()[games.schedule().batch(number).pairs];
                planned.len() == pairs.len()
                    && planned.iter().zip(pairs).all(|(pair, games)| is_of(pair, games))
            }
            _ => false,
        }
    }

    /// Whether a result of a worker is plausible, as far as can be checked without computing it: it fits, a run has a
    /// champion of its problem and kept to its budget, and each game can be played again and ended as it says. Only engines
    /// forfeit.
    pub fn is_sound(&self, number: u32, result: &CellResult) -> bool {
        if !self.fits(number, result) {
            return false;
        }
        let (games, pairs) = match (self, result) {
            (Self::Tournament(games), CellResult::Played(pairs)) => (games, pairs),
            (Self::Sweep(sweep), CellResult::Evolved(evolved)) => {
                return is_run(&sweep.cell(number).experiment, evolved);
            }
            _ => return false,
        };
        let (rules, may_forfeit) = (games.rules(), !self.is_pure(number));
        let is_allowed = |game: &GameRecord| may_forfeit || !matches!(game.ending, GameEnding::Forfeit(_));
        pairs.iter().flatten().all(|game| is_allowed(game) && game.is_game(rules))
    }

    /// About how long a cell takes, if that is known.
    pub fn time(&self, number: u32) -> Option<Duration> {
        match self {
            Self::Sweep(sweep) => sweep.cell(number).experiment.estimate(1).time,
            Self::Tournament(games) => Some(games.batch_time()),
        }
    }

    /// About how many bytes of memory a cell takes.
    pub fn memory(&self, number: u32) -> u64 {
        match self {
            Self::Sweep(sweep) => sweep.cell(number).experiment.estimate(1).memory,
            // Two players with the memory of their searches, and the games.
            Self::Tournament(_) => 4 << 20,
        }
    }

    /// A cell from its beginning to its end; nothing if it was asked to stop. The contestants are those of a tournament;
    /// a sweep has none.
    pub fn compute(
        &self,
        number: u32,
        contestants: &[Contestant],
        stop: impl Fn() -> bool,
    ) -> Result<Option<CellResult>, CellError> {
        if number >= self.len() {
            return Err(CellError::Number { cells: self.len(), number });
        }
        match self {
            Self::Sweep(sweep) => Ok(evolve(&sweep.cell(number), stop)?.map(CellResult::Evolved)),
            Self::Tournament(games) => Ok(play(games, number, contestants, stop).map(CellResult::Played)),
        }
    }
}

/// Whether two games are those of a pair: both from its opening, the first player Black in the first of them.
fn is_of(pair: &Pair, games: &PlayedPair) -> bool {
    let is_at =
        |game: &GameRecord, is_first| game.opening == pair.opening.number && game.first_is_black == is_first;
    is_at(&games[0], true) && is_at(&games[1], false)
}

/// Whether a run of an experiment can have come to this: a champion of its problem, within its budget.
fn is_run(experiment: &Experiment, evolved: &Evolved) -> bool {
    let Evolved { generations, evaluations, genome, .. } = evolved;
    let is_in_time = experiment.budget().generations.is_none_or(|most| *generations <= most);
    let is_genome = genome.len() == experiment.traits().length && genome.iter().all(|gene| gene.is_finite());
    is_in_time && *evaluations > 0 && is_genome
}

/// A whole run.
fn evolve(cell: &Cell, stop: impl Fn() -> bool) -> Result<Option<Evolved>, CellError> {
    let Some(outcome) = solo::evolve(&cell.experiment, stop)? else { return Ok(None) };
    let evolver = cell.experiment.evolver();
    let (digest, best, genome) = (outcome.digest, f64::NEG_INFINITY, vec![]);
    let mut result = Evolved { digest, best, generations: 0, evaluations: 0, genome };
    for (state, standing) in &outcome.islands {
        result.generations = standing.generation;
        result.evaluations += standing.evaluations;
        if result.genome.is_empty() || standing.best > result.best {
            let champion = evolver.champion(state)?;
            (result.best, result.genome) = (champion.fitness, champion.genome);
        }
    }
    Ok(Some(result))
}

/// A batch of games.
fn play(
    games: &Tournament,
    number: u32,
    contestants: &[Contestant],
    stop: impl Fn() -> bool,
) -> Option<Vec<PlayedPair>> {
    let batch = games.schedule().batch(number);
    let duel = games.duel(batch.pairing, contestants);
    let mut runner = duel.runner();
    let pairs = games.schedule().pairs()[batch.pairs].iter();
    let activity = Activity::current();
    let mut play = |pair: &Pair| {
        let played = duel.pair(&mut runner, *pair);
        if let Some(activity) = &activity {
            activity.add(2);
        }
        played
    };
    pairs.map(|pair| (!stop()).then(|| play(pair))).collect()
}

impl CellResult {
    /// The digest of what a digest of the whole depends on.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Evolved(evolved) => evolved.digest,
            Self::Played(pairs) => {
                Digest::of(&codec::encode(pairs).expect("a batch of games is far below any limit"))
            }
        }
    }
}
