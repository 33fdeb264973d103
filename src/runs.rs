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
use run::{Damage, Place, RunId, layout};
use std::process::ExitCode;
use store::Store;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArgument,
    /// List runs on a coordinator instead of a local store
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
    const NOTHING: Self = Self::Fitness { generations: 0, best: f64::NAN };

    /// How far it is, and the best that there is, in a few letters each.
    fn columns(&self) -> [String; 2] {
        match self {
            Self::Fitness { generations, best } => [generations.to_string(), number(*best)],
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
    if let Some(url) = &arguments.coordinator {
        return remote::runs(url, &arguments.credentials, arguments.json).await;
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
        "{:<width$}  {:<11} {:>13}  {:>WIDTH$}  {:<19}  DIGEST",
        "RUN",
        "STATE",
        "GENERATION",
        "BEST",
        "CREATED"
    );
    for row in rows {
        let digest = row.digest.as_deref().map_or("", |digest| &digest[..12]);
        let (Row { run, state, created, .. }, [reached, best]) = (&row, row.reached.columns());
        out!("{run:<width$}  {state:<11} {reached:>13}  {best:>WIDTH$}  {created:<19}  {digest}");
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
            Row { run, state, reached: Reached::NOTHING, created: "-".to_owned(), digest: None }
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
        let (state, progress) = (stored.state(), stored.progress);
        let digest = progress.digest().map(|digest| digest.to_string());
        let (run, created) = (run.to_string(), kind.to_owned());
        return Ok(Row { run, state, reached: reached(&progress), created, digest });
    }
    let reader = Reader::read(store, run).await?;
    tell(run, &reader.damage);
    let Standing { generation: generations, best, .. } = total(reader.stored().standings());
    let (state, recorded) = (reader.state(), reader.recorded);
    let created = recorded.created.as_ref().map_or("-".to_owned(), |created| clock::show(created.at));
    let digest = recorded.finished.map(|finished| finished.digest.to_string());
    let reached = Reached::Fitness { generations, best };
    Ok(Row { run: run.to_string(), state, reached, created, digest })
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
        best: cells.iter().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Row {
    fn to_json(&self) -> serde_json::Value {
        let Self { run, state, reached, created, digest } = self;
        match reached {
            Reached::Fitness { generations, best } => serde_json::json!({
                "run": run, "state": state, "generations": generations,
                "best_fitness": summary::finite(*best), "created": created, "digest": digest,
            }),
            Reached::Games { games, strongest } => serde_json::json!({
                "run": run, "state": state, "games": games, "strongest": strongest, "created": created,
                "digest": digest,
            }),
        }
    }
}
