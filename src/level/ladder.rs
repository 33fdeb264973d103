//! `atoll level ladder`: the levels that runs have found, as files and as a page to play them on.

use super::rung::{Rung, Target, write_all};
use super::{Form, Level, Playing};
use crate::failure::Failure;
use crate::sources;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use lockkey::Method;
use match3::{Game, Player};
use problems::{LockKey, Match3, ProblemSpec};
use run::RunId;
use run::states::{StateView, States};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Store;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Runs, or the experiments and studies that were run
    #[arg(required = true, value_name = "RUN|FILE")]
    sources: Vec<String>,
    #[command(flatten)]
    store: StoreArgument,
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "levels")]
    to: PathBuf,
    /// Number of plays of each Match-3 board
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    plays: u32,
    /// Seed of these plays; must differ from the seed of the search
    #[arg(long, default_value_t = 2)]
    seed: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let mut rungs = vec![];
    let mut unfinished = vec![];
    for source in &arguments.sources {
        let sources::Present { runs, missing, .. } =
            sources::levels(&store, std::slice::from_ref(source)).await?;
        unfinished.extend(missing);
        for run in runs {
            match Found::read(&store, &run).await? {
                Some(found) => rungs.extend(found.rungs(arguments, &group_of(source))?),
                None => unfinished.push(format!("The run {run} has no epoch yet.")),
            }
        }
    }
    if rungs.is_empty() {
        let message = format!("expected runs with levels, found none: {}", unfinished.join(" "));
        return Err(Failure::Usage(message));
    }
    write_all(&arguments.to, &rungs)?;
    for rung in &rungs {
        out!("{:<32} target {:<12} {}", rung.name, rung.target.to_string(), rung.summary());
    }
    for message in unfinished {
        message!("note: {message}");
    }
    out!("{}", arguments.to.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// The levels of one source are a group, which people compare with each other.
fn group_of(source: &str) -> String {
    Path::new(source)
        .file_stem()
        .map_or_else(|| source.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// A problem whose solutions are levels.
enum Maker {
    LockKey(LockKey),
    Match3(Match3, Box<Game>),
}

/// What a level reaches.
struct Measure {
    /// The number of the nearest target.
    nearest: usize,
    value: f64,
    /// The standard error of the value, where it is an estimate.
    error: Option<f64>,
}

/// Plays that tell near which target a board lies.
const GLANCE: u32 = 512;

impl Maker {
    fn of(problem: &ProblemSpec) -> Result<Self, Failure> {
        match problem {
            ProblemSpec::LockKey(spec) => Ok(Self::LockKey(spec.clone())),
            ProblemSpec::Match3(spec) => {
                let game = Game::new(&spec.rules).map_err(|error| Failure::Config(error.to_string()))?;
                Ok(Self::Match3(spec.clone(), Box::new(game)))
            }
            _ => {
                let found = run::history::word(&serde_json::json!(problem));
                let message =
                    format!("expected a run of the problem `lock-key` or `match3`, found `{found}`");
                Err(Failure::Usage(message))
            }
        }
    }

    fn targets(&self) -> Vec<Target> {
        match self {
            Self::LockKey(spec) => spec.targets.iter().map(|&target| Target::Nodes(target)).collect(),
            Self::Match3(spec, _) => spec.wanted().iter().map(|&target| Target::Passing(target)).collect(),
        }
    }

    fn level(&self, genome: &[f64]) -> Result<Level, Failure> {
        let level = match self {
            Self::LockKey(spec) => spec.level(genome).map(Level::LockKey),
            Self::Match3(spec, _) => spec.level(genome).map(Level::Match3),
        };
        level.map_err(|error| Failure::Other(error.to_string()))
    }

    /// The number of the target that a level comes nearest to, and what it reaches, at a glance.
    fn measure(&self, level: &Level) -> Measure {
        match (self, level) {
            (Self::LockKey(spec), Level::LockKey(level)) => {
                let figures = level.difficulty_by(spec.astar);
                let value: f64 = figures.map_or(0.0, |figures| spec.difficulty(&figures).into());
                let miss = |&index: &usize| (f64::from(spec.targets[index]) - value).abs();
                let nearest = (0..spec.targets.len()).min_by(|one, other| miss(one).total_cmp(&miss(other)));
                Measure { nearest: nearest.unwrap_or(0), value, error: None }
            }
            (Self::Match3(spec, game), Level::Match3(level)) => {
                match game.rate(&level.board, spec.player, spec.plays.seed, GLANCE) {
                    Ok(rating) => {
                        let nearest = spec.nearest(&rating);
                        let target = spec.wanted()[nearest];
                        let error = Some(target.error(&rating));
                        Measure { nearest, value: target.measure(&rating), error }
                    }
                    Err(_) => Measure { nearest: 0, value: 0.0, error: None },
                }
            }
            _ => unreachable!("a problem makes levels of its own game"),
        }
    }

    fn playing(&self, plays: u32, seed: u64) -> Playing {
        let search = match self {
            Self::LockKey(spec) => spec.astar.into(),
            Self::Match3(..) => super::SearchArguments::default(),
        };
        Playing { search, player: self.player(), plays, seed }
    }

    /// The figure of a lock-and-key level that its targets mean.
    fn counted(&self) -> &'static str {
        match self {
            Self::LockKey(LockKey { count: Method::Optimised, .. }) => "optimised",
            _ => "plain",
        }
    }

    fn player(&self) -> Player {
        match self {
            Self::LockKey(_) => Player::Random,
            Self::Match3(spec, _) => spec.player,
        }
    }

    /// What a genome is, in the words of the experiment.
    fn genome(&self, genome: &[f64]) -> Value {
        match self {
            Self::Match3(spec, _) => match spec.seed(genome) {
                Some(seed) => json!({ "kind": "seed", "seed": seed }),
                None => json!({ "kind": "cells" }),
            },
            Self::LockKey(spec) => json!({ "kind": "level", "blueprint": spec.level, "genes": genome }),
        }
    }
}

/// The fittest candidate near each target, the first of equals.
fn chosen<'a>(maker: &Maker, candidates: &'a [Candidate]) -> Result<Vec<(Target, &'a Candidate)>, Failure> {
    let targets = maker.targets();
    let mut best: Vec<Option<&Candidate>> = vec![None; targets.len()];
    for candidate in candidates {
        let nearest = maker.measure(&maker.level(&candidate.genome)?).nearest;
        if best[nearest].is_none_or(|best| candidate.fitness > best.fitness) {
            best[nearest] = Some(candidate);
        }
    }
    Ok(targets.into_iter().zip(best).filter_map(|(target, best)| Some((target, best?))).collect())
}

/// The champion and all others of an island's state.
fn candidates_of(island: u32, view: StateView) -> impl Iterator<Item = Candidate> {
    let StateView { epoch, champion, residents } = view;
    let champion = (Some(champion.generation), champion.fitness, champion.genome);
    let residents = residents.into_iter().map(|each| (None, each.fitness, each.genome));
    let candidate =
        move |(generation, fitness, genome)| Candidate { island, epoch, generation, fitness, genome };
    [champion].into_iter().chain(residents).map(candidate)
}

/// The fittest level near a target, as reports show it.
pub(crate) struct Best {
    pub(crate) target: f64,
    /// What it reached, at a glance, and the standard error of that, where it is an estimate.
    pub(crate) measure: f64,
    pub(crate) error: Option<f64>,
    pub(crate) fitness: f64,
    pub(crate) island: u32,
    pub(crate) svg: String,
}

/// The most candidates that reports look at.
const CANDIDATES: usize = 4000;

/// The fittest level near each target among those in some islands' states.
pub(crate) fn best(problem: &ProblemSpec, states: Vec<(u32, StateView)>) -> Result<Vec<Best>, Failure> {
    let maker = Maker::of(problem)?;
    let candidates = states.into_iter().flat_map(|(island, view)| candidates_of(island, view));
    let mut candidates: Vec<Candidate> = candidates.collect();
    candidates.sort_by(|one, other| other.fitness.total_cmp(&one.fitness));
    candidates.truncate(CANDIDATES);
    let playing = maker.playing(GLANCE, 2);
    let drawn = |(target, candidate): (Target, &Candidate)| {
        let level = maker.level(&candidate.genome)?;
        let svg =
            level.exported(Form::Svg, &playing, "").map_err(|error| Failure::Other(error.to_string()))?;
        let Measure { value: measure, error, .. } = maker.measure(&level);
        let (target, fitness, island) = (target.value(), candidate.fitness, candidate.island);
        Ok(Best { target, measure, error, fitness, island, svg })
    };
    chosen(&maker, &candidates)?.into_iter().map(drawn).collect()
}

/// All levels that a run has left behind.
struct Found {
    run: RunId,
    states: States,
    maker: Maker,
    candidates: Vec<Candidate>,
}

struct Candidate {
    island: u32,
    epoch: u64,
    /// Of champions, the generation in which they appeared.
    generation: Option<u64>,
    fitness: f64,
    genome: Vec<f64>,
}

impl Found {
    /// Nothing, if the run has no epoch yet.
    async fn read(store: &Store, run: &RunId) -> Result<Option<Self>, Failure> {
        let states = States::open(store, run).await?;
        let maker = Maker::of(&states.experiment.file().problem)?;
        let mut candidates = vec![];
        for island in 0..states.islands() {
            let Some(&epoch) = states.epochs(island).last() else { continue };
            candidates.extend(candidates_of(island, states.read(island, epoch).await?));
        }
        let is_empty = candidates.is_empty();
        Ok((!is_empty).then(|| Self { run: run.clone(), states, maker, candidates }))
    }

    /// The fittest candidate near each target, the first of equals.
    fn chosen(&self) -> Result<Vec<(Target, &Candidate)>, Failure> {
        chosen(&self.maker, &self.candidates)
    }

    fn rungs(&self, arguments: &Arguments, group: &str) -> Result<Vec<Rung>, Failure> {
        let chosen = self.chosen()?;
        let name = self.states.experiment.name();
        let playing = self.maker.playing(arguments.plays, arguments.seed);
        let several = chosen.len() > 1;
        let rung = |(index, (target, candidate)): (usize, (Target, &Candidate))| {
            let level = self.maker.level(&candidate.genome)?;
            let figures = level.rating(&playing).map_err(|error| Failure::Other(error.to_string()))?;
            let name = if several { format!("{name}-{}", index + 1) } else { name.to_owned() };
            let (found, counted) = (self.story(target, candidate), self.maker.counted());
            let group = group.to_owned();
            Ok(Rung { name, group, level, figures, found, playing, target, counted })
        };
        chosen.into_iter().enumerate().map(rung).collect()
    }

    /// How a level was found.
    fn story(&self, target: Target, candidate: &Candidate) -> Value {
        let experiment = &self.states.experiment;
        json!({
            "run": self.run.as_str(),
            "experiment": experiment.name(),
            "seed": experiment.seed(),
            "island": candidate.island,
            "epoch": candidate.epoch,
            "generation": candidate.generation,
            "target": target.json(),
            "fitness": candidate.fitness,
            "genome": self.maker.genome(&candidate.genome),
        })
    }
}
