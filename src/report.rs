//! `atoll report`: writes the report of a run as HTML, Markdown and CSV.

mod archive;
mod browser;
mod checkers;
pub(crate) mod games;
mod levels;
mod maze;
mod read;
mod sweep;

use crate::cells;
use crate::clock;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::sources::{self, Present};
use crate::store_argument::StoreArgument;
use crate::summary;
use crate::terminal::{message, out};
use crate::tournament::PlayedTournament;
use archipelago::cell::CellPlan;
use report::run::{Run, Strengths};
use report::{Block, Document, Section};
use run::{RunId, Status};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Store;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run or experiment file to report on; several are compared
    #[arg(required = true, value_name = "RUN|FILE")]
    sources: Vec<String>,
    #[command(flatten)]
    store: StoreArgument,
    /// Folder to write to [default: RUN-report]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Open the report in a browser (`$BROWSER`, or the default browser)
    #[arg(long, conflicts_with = "json")]
    open: bool,
    /// Update the report until the run ends
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print one JSON object on stdout; write no files
    #[arg(long)]
    json: bool,
}

/// How long a watched run is left alone between two reports, at least, and as a multiple of what a report takes.
const PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: u32 = 10;

/// Seconds after which a watched page is reloaded.
const REFRESH: u32 = 5;

/// What a page is called.
const PAGE: &str = "report.html";

/// A report before it is written.
struct Report {
    document: Document,
    object: serde_json::Value,
    /// Files beside those of the document.
    files: Vec<(String, String)>,
    /// Whether nothing will change any more.
    is_final: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = sources::open(&arguments.store, &arguments.sources).await?;
    let present = sources::present(&store, &arguments.sources).await?;
    if arguments.json {
        out!("{}", Report::of(&store, &present, &arguments.store).await?.object);
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.to.clone().unwrap_or_else(|| PathBuf::from(folder_name(&present.runs)));
    // Listen for signals first: a reader of the message may stop the command at once.
    let mut signals = Signals::listen()?;
    let mut is_first = true;
    loop {
        let start = Instant::now();
        // Meanwhile more of a study may have been begun.
        let present = sources::present(&store, &arguments.sources).await?;
        let mut report = Report::of(&store, &present, &arguments.store).await?;
        let goes_on = arguments.watch && !report.is_final;
        report.document.refresh = goes_on.then_some(REFRESH);
        let files = report.files();
        write(&folder, &files)?;
        if is_first {
            for (name, _) in &files {
                out!("{}", folder.join(name).display());
            }
            if arguments.open {
                browser::open(&folder.join(PAGE))?;
            }
        }
        if !goes_on {
            return Ok(ExitCode::SUCCESS);
        }
        if is_first {
            message!("watching; stop with Ctrl-C");
            is_first = false;
        }
        tokio::select! {
            () = signals.asked() => return Ok(ExitCode::from(signals.exit_code())),
            () = tokio::time::sleep(PAUSE.max(PATIENCE * start.elapsed())) => {}
        }
    }
}

/// Writes the report of one run into a folder.
pub(crate) async fn save(
    store: &Store,
    run: &RunId,
    place: &StoreArgument,
    folder: &Path,
) -> Result<(), Failure> {
    let report = Report::of_runs(store, std::slice::from_ref(run), place).await?;
    write(folder, &report.files())
}

/// Whether games may be played to be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Games {
    Played,
    /// A coordinator plays none: it has other things to do.
    Omitted,
}

/// What runs have to show beside their curves, for the dashboard: what their problems found, the cells of sweeps and the
/// standings of tournaments so far.
pub(crate) fn exhibit(games: Games) -> coordinator::dashboard::Exhibit {
    Arc::new(move |store, run| {
        Box::pin(async move {
            sections(&store, &run, games).await.unwrap_or_else(|failure| {
                let notice = Block::Notice(vec![format!("This part could not be made: {failure}")]);
                vec![Section::new("found", "Results", vec![notice])]
            })
        })
    })
}

async fn sections(store: &Store, run: &RunId, games: Games) -> Result<Vec<Section>, Failure> {
    let recorded = run::listing::recorded(store, run).await;
    let is_finished = recorded.is_ok_and(|recorded| recorded.status == Status::Finished);
    let title = if is_finished { "Result" } else { "So far" };
    let so_far = |document: Document| {
        let headline = Section::new("so-far", title, vec![Block::Text(document.headline)]);
        std::iter::once(headline).chain(document.sections).collect()
    };
    match cells::stored(store, run).await? {
        Some(CellPlan::Sweep(plan)) => Ok(so_far(sweep::report(store, run, &plan, "").await?.document)),
        Some(CellPlan::Tournament(_)) => Ok(so_far(crate::tournament::document(store, run).await?)),
        None => {
            let mut read = read::Read::newest(store, run).await?;
            Ok(if games == Games::Omitted && read.plays_games() { vec![] } else { read.shown().await })
        }
    }
}

/// Opens an address in a browser.
pub(crate) fn open_url(url: &str) -> Result<(), Failure> {
    browser::open(Path::new(url))
}

/// The folder that a report is written to unless another is given.
fn folder_name(runs: &[RunId]) -> String {
    match runs {
        [run] => format!("{run}-report"),
        [one, other] => format!("{one}-{other}-report"),
        _ => "comparison-report".to_owned(),
    }
}

impl Report {
    async fn of(store: &Store, present: &Present, place: &StoreArgument) -> Result<Self, Failure> {
        let mut report = Self::of_runs(store, &present.runs, place).await?;
        if let Some(games) = &present.games {
            report.add_tournament(&PlayedTournament::read(store, games).await?, place)?;
        }
        if !present.missing.is_empty() {
            report.object["missing"] = serde_json::json!(present.missing);
            report.is_final = false;
            report.miss(&present.missing);
        }
        Ok(report)
    }

    /// Adds the tournament of a study: its sections before the last one, and its files.
    fn add_tournament(&mut self, played: &PlayedTournament, place: &StoreArgument) -> Result<(), Failure> {
        let shown = ["ratings", "teams", "pairings", "tests", "games"];
        let sections = played.document(&place.flag()).sections;
        let sections = sections.into_iter().filter(|section| shown.contains(&section.id));
        let sections =
            sections.map(|section| Section { title: format!("Tournament: {}", section.title), ..section });
        let end = self.document.sections.len().saturating_sub(1);
        self.document.sections.splice(end..end, sections);
        self.object["tournament"] = played.object();
        self.files.extend(played.tables()?);
        self.is_final &= played.progress.is_complete();
        Ok(())
    }

    /// Says what is missing, beside what else may be.
    fn miss(&mut self, lines: &[String]) {
        let sections = &mut self.document.sections;
        let notice = Block::Notice(lines.to_vec());
        if let Some(section) = sections.iter_mut().find(|section| section.id == "missing") {
            section.blocks.push(notice);
        } else {
            sections.insert(0, Section::new("missing", "What is missing", vec![notice]));
        }
    }

    async fn of_runs(store: &Store, runs: &[RunId], place: &StoreArgument) -> Result<Self, Failure> {
        match runs {
            [run] => match cells::stored(store, run).await? {
                Some(CellPlan::Sweep(plan)) => sweep::report(store, run, &plan, &place.flag()).await,
                Some(CellPlan::Tournament(_)) => Self::of_tournament(store, run, place).await,
                None => Self::of_run(store, run, place).await,
            },
            several => Self::of_several(store, several, place).await,
        }
    }

    async fn of_tournament(store: &Store, run: &RunId, place: &StoreArgument) -> Result<Self, Failure> {
        let played = PlayedTournament::read(store, run).await?;
        Ok(Self {
            object: played.object(),
            files: played.tables()?,
            is_final: played.progress.is_complete(),
            document: played.document(&place.flag()),
        })
    }

    async fn of_run(store: &Store, run: &RunId, place: &StoreArgument) -> Result<Self, Failure> {
        let mut read = read::Read::of(store, run, place.flag()).await?;
        let shown = read.shown().await;
        let run = read.run();
        Ok(Self {
            object: object(&run),
            files: vec![("experiment.toml".to_owned(), run.config.clone())],
            is_final: is_final(&run),
            document: report::run::document(&run, shown, made()),
        })
    }

    async fn of_several(store: &Store, runs: &[RunId], place: &StoreArgument) -> Result<Self, Failure> {
        let mut several = vec![];
        for run in runs {
            if cells::stored(store, run).await?.is_some() {
                let message = format!(
                    "expected runs to compare, found a sweep or a tournament, `{run}`; report on it alone"
                );
                return Err(Failure::Usage(message));
            }
            several.push(read::Read::of(store, run, place.flag()).await?.run());
        }
        let objects: Vec<serde_json::Value> = several.iter().map(object).collect();
        Ok(Self {
            object: serde_json::json!({ "runs": objects }),
            files: vec![],
            is_final: several.iter().all(is_final),
            document: report::compare::document(&several, made()),
        })
    }

    /// Everything that is written, by name; the page first.
    fn files(&self) -> Vec<(String, String)> {
        let mut files = vec![
            (PAGE.to_owned(), report::html::render(&self.document)),
            ("report.md".to_owned(), report::markdown::render(&self.document)),
        ];
        files.extend(report::markdown::pictures(&self.document));
        files.extend(report::csv::files(&self.document));
        files.extend(self.files.iter().cloned());
        files
    }
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Other(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, text) in files {
        let (path, new) = (folder.join(name), folder.join(format!(".{name}.new")));
        // A browser that reads it meanwhile sees the old page or the new one, and never half of one.
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// The one thing in a report that depends on when it is written.
pub(crate) fn made() -> String {
    format!("Written by atoll {} on {} UTC.", env!("CARGO_PKG_VERSION"), clock::show(clock::now()))
}

fn is_final(run: &Run) -> bool {
    matches!(run.state.as_str(), "finished" | "cancelled" | "failed")
}

/// What programs want to know of a run.
fn object(run: &Run) -> serde_json::Value {
    let islands: Vec<serde_json::Value> = run
        .islands
        .iter()
        .enumerate()
        .map(|(at, island)| {
            let last = island.epochs.last();
            let champion = island.champion.as_ref();
            serde_json::json!({
                "island": at, "algorithm": island.algorithm, "epochs": island.epochs.len(),
                "generation": last.map(|epoch| epoch.standing.generation),
                "best_fitness": last.and_then(|epoch| summary::finite(epoch.standing.best)),
                "diversity": last.map(|epoch| epoch.statistics.diversity),
                "champion": champion.map(|champion| champion.genome.trim_end()),
                "champion_generation": champion.map(|champion| champion.generation),
            })
        })
        .collect();
    let lost: u64 = run.losses.iter().map(|loss| loss.milliseconds).sum();
    serde_json::json!({
        "run": run.id, "problem": run.problem, "seed": run.seed, "state": run.state, "reason": run.reason,
        "digest": run.digest, "experiment_digest": run.experiment_digest, "versions": run.versions,
        "generations": run.generations(), "evaluations": run.evaluations(),
        "best_fitness": run.best().and_then(|(_, fitness)| summary::finite(fitness)),
        "best_island": run.best().map(|(island, _)| island), "seconds": run.elapsed as f64 / 1000.0,
        "restarts": run.restarts, "lost_seconds": lost as f64 / 1000.0, "damage": run.damage,
        "islands": islands, "strength": run.strengths.as_ref().map(strength),
    })
}

/// What programs want to know of the strength of a run's champions.
fn strength(strengths: &Strengths) -> serde_json::Value {
    let champion = |one: &report::run::Strength| {
        let scores = strengths.opponents.iter().zip(&one.scores).map(|(opponent, score)| {
            let [wins, draws, losses] = score.games;
            serde_json::json!({
                "opponent": opponent, "wins": wins, "draws": draws, "losses": losses, "score": score.score,
                "low": score.low, "high": score.high,
            })
        });
        serde_json::json!({
            "island": one.island, "epoch": one.epoch, "generation": one.generation, "elo": one.elo, "low": one.low,
            "high": one.high, "opponents": scores.collect::<Vec<_>>(),
        })
    };
    strengths.champions.iter().map(champion).collect()
}

/// What a problem has to show of a run.
struct Shown {
    /// The result in a sentence.
    lead: Option<String>,
    /// The island whose champion is shown, if it is not the one with the best fitness.
    champion: Option<u32>,
    blocks: Vec<Block>,
}

impl Shown {
    fn without_lead(blocks: Vec<Block>) -> Self {
        Self { lead: None, champion: None, blocks }
    }
}

/// A section about what a problem found, or the reason why there is none.
fn found(title: &str, blocks: Result<Vec<Block>, Failure>) -> Section {
    let blocks = blocks.unwrap_or_else(|failure| {
        vec![Block::Notice(vec![format!("This part could not be made: {failure}")])]
    });
    Section::new("found", title, blocks)
}
