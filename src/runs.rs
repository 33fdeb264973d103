//! `atoll runs`: what a store holds.

use crate::clock;
use crate::failure::Failure;
use crate::progress::number;
use crate::protection::Credentials;
use crate::store_argument::StoreArgument;
use crate::terminal::out;
use crate::tournament::Outcome;
use crate::{cells, remote, summary};
use archipelago::Progress;
use archipelago::cell::CellPlan;
use codec::Standing;
use experiment::document;
use report::text::shortened;
use run::epochs::total;
use run::jobs::StoredJobs;
use run::reader::Reader;
use run::{Damage, Lock, Place, Recorded, RunId, Status, layout};
use std::process::ExitCode;
use store::Store;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArgument,
    /// List runs of a coordinator instead of a local store; also `ATOLL_COORDINATOR`
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    /// One JSON array on stdout
    #[arg(long)]
    json: bool,
}

/// All runs of a store, in the order of their names. Studies are not among them, but their experiments are.
pub(crate) async fn all(store: &Store) -> Result<Vec<RunId>, Failure> {
    let folders = store.folders(&layout::runs()).await?;
    let mut runs = vec![];
    for run in folders.iter().filter_map(layout::run_of_folder) {
        let path = Place::Experiment.in_run(&run);
        match store.size(&path).await {
            Err(error) if error.is_missing() => {}
            _ if is_study(store, &path).await => {}
            _ => runs.push(run),
        }
    }
    Ok(runs)
}

async fn is_study(store: &Store, path: &store::Path) -> bool {
    let Ok(text) = store.read_text(path, document::MAX_STORED).await else { return false };
    let study = "study".parse().expect("a plain word is a key");
    document::parse(path.as_ref(), &text).is_ok_and(|document| document.get(&study).is_some())
}

struct Row {
    run: String,
    kind: &'static str,
    state: String,
    reached: Reached,
    created: String,
    digest: Option<String>,
}

/// What a run came to.
enum Reached {
    /// Evolution, or all of a sweep's.
    Fitness {
        generations: u64,
        /// Of a sweep the cells that are done, and all.
        cells: Option<(usize, u32)>,
        /// Not finite where there is none.
        best: f64,
    },
    /// A tournament.
    Games {
        games: u64,
        /// Who is ahead, once something was played.
        strongest: Option<String>,
    },
}

impl Reached {
    const NOTHING: Self = Self::Fitness { generations: 0, cells: None, best: f64::NAN };

    /// How far it is, and the best that there is, in a few letters each.
    fn columns(&self) -> [String; 2] {
        match self {
            Self::Fitness { cells: Some((done, all)), best, .. } => {
                [format!("{done}/{all} cells"), number(*best)]
            }
            Self::Fitness { generations, best, .. } => [format!("generation {generations}"), number(*best)],
            Self::Games { games, strongest } => {
                let strongest = strongest.as_deref().unwrap_or("-");
                [format!("{games} games"), shortened(strongest, WIDTH - 1)]
            }
        }
    }
}

/// Letters of the column that shows the best.
const WIDTH: usize = 14;

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(url) = remote::chosen(arguments.coordinator.as_ref(), &arguments.store) {
        return remote::runs(&url, &arguments.credentials, arguments.json).await;
    }
    let store = arguments.store.open().await?;
    let mut rows = vec![];
    for run in all(&store).await? {
        rows.push(row(&store, &run).await);
    }
    if arguments.json {
        let objects: Vec<serde_json::Value> = rows.iter().map(Row::to_json).collect();
        out!("{}", serde_json::Value::Array(objects));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        eprintln!("no runs in {}; start one with `atoll run FILE`", arguments.store.folder.display());
        return Ok(ExitCode::SUCCESS);
    }
    let width = rows.iter().map(|row| row.run.len()).max().unwrap_or(3).max(3);
    out!(
        "{:<width$}  {:<10}  {:<9} {:>18}  {:>WIDTH$}  {:<19}  DIGEST",
        "RUN",
        "KIND",
        "STATE",
        "PROGRESS",
        "BEST",
        "CREATED"
    );
    for row in rows {
        let digest = row.digest.as_deref().map_or("", |digest| &digest[..12]);
        let (Row { run, kind, state, created, .. }, [reached, best]) = (&row, row.reached.columns());
        out!("{run:<width$}  {kind:<10}  {state:<9} {reached:>18}  {best:>WIDTH$}  {created:<19}  {digest}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A run that cannot be read is listed as damaged, and the others all the same.
async fn row(store: &Store, run: &RunId) -> Row {
    match read_row(store, run).await {
        Ok(row) => row,
        Err(error) => {
            eprintln!("{run}: {error}");
            let (run, state) = (run.to_string(), "damaged".to_owned());
            Row { run, kind: "-", state, reached: Reached::NOTHING, created: "-".to_owned(), digest: None }
        }
    }
}

async fn read_row(store: &Store, run: &RunId) -> Result<Row, Failure> {
    if let Some(plan) = cells::stored(store, run).await? {
        let kind = match &plan {
            CellPlan::Sweep(_) => "sweep",
            CellPlan::Tournament(_) => "tournament",
        };
        let stored = StoredJobs::read(store, run, plan).await?;
        tell(run, &stored.damage);
        let state = state(store, run, &stored.damage, &stored.recorded.status);
        let (created, progress) = (created(&stored.recorded), stored.progress);
        let digest = progress.digest().map(|digest| digest.to_string());
        return Ok(Row { run: run.to_string(), kind, state, reached: reached(&progress), created, digest });
    }
    let reader = Reader::read(store, run).await?;
    tell(run, &reader.damage);
    let Standing { generation: generations, best, .. } = total(reader.stored().standings());
    let state = state(store, run, &reader.damage, &reader.recorded.status);
    let created = created(&reader.recorded);
    let digest = reader.recorded.finished.map(|finished| finished.digest.to_string());
    let reached = Reached::Fitness { generations, cells: None, best };
    Ok(Row { run: run.to_string(), kind: "evolution", state, reached, created, digest })
}

/// When a run was created.
fn created(recorded: &Recorded) -> String {
    recorded.created.as_ref().map_or("-".to_owned(), |created| clock::show(created.at))
}

/// How a run stands, in a word. One that is open is running if a process has it, and stopped otherwise.
fn state(store: &Store, run: &RunId, damage: &[Damage], status: &Status) -> String {
    let is_held = || {
        let holder = Lock::holder(store, run).ok().flatten();
        holder.is_some() || Lock::server(store).ok().flatten().is_some()
    };
    match status {
        _ if !damage.is_empty() => "damaged".to_owned(),
        // Who serves a bucket cannot be seen from here.
        Status::Open if store.folder_on_disk().is_none() => status.to_string(),
        Status::Open if is_held() => "running".to_owned(),
        Status::Open => "stopped".to_owned(),
        status => status.to_string(),
    }
}

/// Says what is wrong with a run.
fn tell(run: &RunId, damage: &[Damage]) {
    for damage in damage {
        eprintln!("{run}: {damage}");
    }
}

/// What the cells of a sweep or a tournament came to.
fn reached(progress: &Progress) -> Reached {
    if let Some(outcome) = Outcome::of(progress) {
        let games = outcome.games();
        let strongest = outcome.standings().first().map(|first| first.name.to_owned());
        return Reached::Games { games, strongest: strongest.filter(|_| games > 0) };
    }
    let cells = progress.evolved();
    Reached::Fitness {
        generations: cells.iter().map(|cell| cell.generations).max().unwrap_or(0),
        cells: Some((progress.done().len(), progress.plan().len())),
        best: cells.iter().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Row {
    fn to_json(&self) -> serde_json::Value {
        let Self { run, kind, state, reached, created, digest } = self;
        match reached {
            Reached::Fitness { generations, best, .. } => serde_json::json!({
                "run": run, "kind": kind, "state": state, "generations": generations,
                "best_fitness": summary::finite(*best), "created": created, "digest": digest,
            }),
            Reached::Games { games, strongest } => serde_json::json!({
                "run": run, "kind": kind, "state": state, "games": games, "strongest": strongest, "created": created,
                "digest": digest,
            }),
        }
    }
}
