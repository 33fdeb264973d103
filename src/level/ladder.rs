//! `atoll level ladder`: the levels that runs have found, as files and as a page to play them on.

use super::{Form, Level, Playing, raster};
use crate::failure::Failure;
use crate::sources;
use crate::store_argument::StoreArgument;
use crate::terminal::out;
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
    /// How often each Match-3 board is played anew
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    plays: u32,
    /// The seed of these plays, which is to be another than that of the search
    #[arg(long, default_value_t = 2)]
    seed: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let mut rungs = vec![];
    for run in sources::levels(&store, &arguments.sources).await? {
        rungs.extend(Found::read(&store, &run).await?.rungs(arguments)?);
    }
    write_all(&arguments.to, &rungs)?;
    for rung in &rungs {
        out!("{:<32} target {:<6} {}", rung.name, rung.found["target"], rung.summary());
    }
    out!("{}", arguments.to.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// A problem whose solutions are levels.
enum Maker {
    LockKey(LockKey),
    Match3(Match3, Box<Game>),
}

/// Plays that tell near which target a board lies.
const GLANCE: u32 = 512;

/// Plays of a histogram.
const HISTOGRAM: u32 = 10_000;

impl Maker {
    fn of(problem: &ProblemSpec) -> Result<Self, Failure> {
        match problem {
            ProblemSpec::LockKey(spec) => Ok(Self::LockKey(spec.clone())),
            ProblemSpec::Match3(spec) => {
                let game = Game::new(&spec.rules).map_err(|error| Failure::Config(error.to_string()))?;
                Ok(Self::Match3(spec.clone(), Box::new(game)))
            }
            _ => {
                let message = "expected a run of the problem `lock-key` or `match3`, found another";
                Err(Failure::Usage(message.to_owned()))
            }
        }
    }

    fn targets(&self) -> Vec<f64> {
        match self {
            Self::LockKey(spec) => spec.targets.iter().map(|&target| target.into()).collect(),
            Self::Match3(spec, _) => spec.targets.clone(),
        }
    }

    fn level(&self, genome: &[f64]) -> Result<Level, Failure> {
        let level = match self {
            Self::LockKey(spec) => spec.level(genome).map(Level::LockKey),
            Self::Match3(spec, _) => spec.level(genome).map(Level::Match3),
        };
        level.map_err(|error| Failure::Other(error.to_string()))
    }

    /// What is compared with the targets, at a glance.
    fn measure(&self, level: &Level) -> f64 {
        match (self, level) {
            (Self::LockKey(spec), Level::LockKey(level)) => {
                level.difficulty().map_or(0.0, |figures| spec.difficulty(&figures).into())
            }
            (Self::Match3(spec, game), Level::Match3(level)) => game
                .rate(&level.board, spec.player, spec.plays.seed, GLANCE)
                .map_or(0.0, |rating| rating.estimate),
            _ => unreachable!("a problem makes levels of its own game"),
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
fn chosen<'a>(maker: &Maker, candidates: &'a [Candidate]) -> Result<Vec<(f64, &'a Candidate)>, Failure> {
    let targets = maker.targets();
    let mut best: Vec<Option<&Candidate>> = vec![None; targets.len()];
    for candidate in candidates {
        let measure = maker.measure(&maker.level(&candidate.genome)?);
        let nearest = nearest(&targets, measure);
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
    /// What it reached, at a glance.
    pub(crate) measure: f64,
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
    let playing = Playing { player: maker.player(), plays: GLANCE, seed: 2 };
    let drawn = |(target, candidate): (f64, &Candidate)| {
        let level = maker.level(&candidate.genome)?;
        let svg =
            level.exported(Form::Svg, &playing, "").map_err(|error| Failure::Other(error.to_string()))?;
        let (measure, fitness, island) = (maker.measure(&level), candidate.fitness, candidate.island);
        Ok(Best { target, measure, fitness, island, svg })
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
    async fn read(store: &Store, run: &RunId) -> Result<Self, Failure> {
        let states = States::open(store, run).await?;
        let maker = Maker::of(&states.experiment.file().problem)?;
        let mut candidates = vec![];
        for island in 0..states.islands() {
            let Some(&epoch) = states.epochs(island).last() else { continue };
            candidates.extend(candidates_of(island, states.read(island, epoch).await?));
        }
        if candidates.is_empty() {
            return Err(Failure::Usage(format!("expected a run with levels, but {run} has no epoch yet")));
        }
        Ok(Self { run: run.clone(), states, maker, candidates })
    }

    /// The fittest candidate near each target, the first of equals.
    fn chosen(&self) -> Result<Vec<(f64, &Candidate)>, Failure> {
        chosen(&self.maker, &self.candidates)
    }

    fn rungs(&self, arguments: &Arguments) -> Result<Vec<Rung>, Failure> {
        let chosen = self.chosen()?;
        let name = self.states.experiment.name();
        let playing = Playing { player: self.maker.player(), plays: arguments.plays, seed: arguments.seed };
        let several = chosen.len() > 1;
        let rung = |(index, (target, candidate)): (usize, (f64, &Candidate))| {
            let level = self.maker.level(&candidate.genome)?;
            let figures = level.rating(&playing).map_err(|error| Failure::Other(error.to_string()))?;
            let name = if several { format!("{name}-{}", index + 1) } else { name.to_owned() };
            Ok(Rung { name, figures, found: self.story(target, candidate), level, playing, target })
        };
        chosen.into_iter().enumerate().map(rung).collect()
    }

    /// How a level was found.
    fn story(&self, target: f64, candidate: &Candidate) -> Value {
        let experiment = &self.states.experiment;
        json!({
            "run": self.run.as_str(),
            "experiment": experiment.name(),
            "seed": experiment.seed(),
            "island": candidate.island,
            "epoch": candidate.epoch,
            "generation": candidate.generation,
            "target": target,
            "fitness": candidate.fitness,
            "genome": self.maker.genome(&candidate.genome),
        })
    }
}

fn nearest(targets: &[f64], measure: f64) -> usize {
    let miss = |index: &usize| (targets[*index] - measure).abs();
    (0..targets.len()).min_by(|one, other| miss(one).total_cmp(&miss(other))).unwrap_or(0)
}

/// A level of the ladder, with its figures and its story.
struct Rung {
    name: String,
    level: Level,
    figures: Value,
    found: Value,
    playing: Playing,
    target: f64,
}

impl Rung {
    fn summary(&self) -> String {
        let figure = |name: &str| self.figures[name].as_f64().unwrap_or(0.0);
        match &self.level {
            Level::LockKey(_) => {
                format!(
                    "{} nodes, {} optimised, {} steps",
                    figure("plain"),
                    figure("optimised"),
                    figure("steps")
                )
            }
            Level::Match3(_) => {
                let interval = &self.figures["interval"];
                format!(
                    "estimate {:.4}, passed {:.4} ({:.4} to {:.4})",
                    figure("estimate"),
                    figure("passed"),
                    interval[0].as_f64().unwrap_or(0.0),
                    interval[1].as_f64().unwrap_or(0.0)
                )
            }
        }
    }

    /// The difficulty and its target, as the page draws them: nodes, or the percentage of plays that fail.
    fn difficulty(&self) -> (f64, f64) {
        let figure = |name: &str| self.figures[name].as_f64().unwrap_or(0.0);
        match &self.level {
            Level::LockKey(_) => (figure("plain"), self.target),
            Level::Match3(_) => (100.0 * (1.0 - figure("estimate")), 100.0 * (1.0 - self.target)),
        }
    }

    fn json(&self) -> Value {
        match &self.level {
            Level::LockKey(level) => {
                let mut object = level.to_json(Some(&self.found));
                object["proof"] = json!(level.verdict());
                object
            }
            Level::Match3(level) => {
                let mut object = level.to_json(None, Some(&self.found));
                object["metrics"] = self.figures.clone();
                object["player"] = json!(self.playing.player);
                object
            }
        }
    }

    /// What the page knows of it.
    fn entry(&self) -> Result<Value, Failure> {
        let mut entry = self.level.description();
        let (difficulty, target) = self.difficulty();
        let figures = self.figures.as_object().into_iter().flatten();
        let figures: Vec<[String; 2]> = [["target".to_owned(), self.target.to_string()]]
            .into_iter()
            .chain(figures.map(|(name, value)| [name.clone(), value.to_string()]))
            .chain([["run".to_owned(), self.found["run"].as_str().unwrap_or("").to_owned()]])
            .collect();
        let form = if matches!(self.level, Level::LockKey(_)) { Form::Svg } else { Form::Histogram };
        super::merge(
            &mut entry,
            json!({
                "name": self.name, "difficulty": difficulty, "target": target, "figures": figures,
                "picture": self.form(form)?,
            }),
        );
        Ok(entry)
    }

    fn form(&self, form: Form) -> Result<String, Failure> {
        // A histogram shows no more than these.
        let playing = Playing { plays: self.playing.plays.min(HISTOGRAM), ..self.playing };
        let text = self.level.exported(form, &playing, &self.name);
        text.map_err(|problem| Failure::Other(problem.to_string()))
    }

    /// Its files, by the ends of their names.
    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
        let svg = self.form(Form::Svg)?;
        let png = raster::to_png(&svg, 2).map_err(|error| Failure::Other(error.to_string()))?;
        let mut files = vec![
            (".json", format!("{}\n", self.json()).into_bytes()),
            (".svg", svg.into_bytes()),
            (".png", png),
            (".tmj", self.form(Form::Tiled)?.into_bytes()),
        ];
        if matches!(self.level, Level::Match3(_)) {
            files.push((".scores.svg", self.form(Form::Histogram)?.into_bytes()));
        }
        Ok(files)
    }
}

fn write_all(folder: &Path, rungs: &[Rung]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Other(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|error| failed(&path, error))
    };
    for (number, rung) in rungs.iter().enumerate() {
        for (end, bytes) in rung.files()? {
            write(&format!("{:02}-{}{end}", number + 1, rung.name), &bytes)?;
        }
        let (name, sheet) = rung.level.tile_sheet();
        write(name, sheet.as_bytes())?;
    }
    let entries: Result<Vec<Value>, Failure> = rungs.iter().map(Rung::entry).collect();
    write("index.html", page(&Value::Array(entries?)).as_bytes())
}

/// The page with these levels on it. A script ends at the first `</`, wherever that stands.
fn page(levels: &Value) -> String {
    let levels = levels.to_string().replace("</", "<\\/");
    include_str!("page.html").replacen("/*LEVELS*/[]", &levels, 1)
}
