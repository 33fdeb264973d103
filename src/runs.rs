//! `atoll runs`: what a store holds.

use crate::check::bytes;
use crate::clock;
use crate::failure::Failure;
use crate::protection::Credentials;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use crate::tournament::Outcome;
use crate::{remote, summary};
use archipelago::CellProgress;
use codec::Standing;
use report::text::{number, shortened};
use run::{Damage, Label, Recorded, RunId, StoredRun, listing};
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
    /// List only runs that have this label; if repeated, all of them
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<Label>,
    /// One JSON array on stdout
    #[arg(long)]
    json: bool,
}

/// All runs of a store, in the order of their names; the parts of a study follow it.
pub(crate) async fn all(store: &Store) -> Result<Vec<RunId>, Failure> {
    Ok(run::naming::all(store).await?)
}

struct Row {
    run: String,
    kind: &'static str,
    state: String,
    reached: Reached,
    created: Option<u64>,
    digest: Option<String>,
    /// Bytes of its objects; those of a study's parts count for the parts.
    disk: u64,
    labels: Vec<String>,
}

/// Whether a run has all of these labels.
pub(crate) fn has_labels(labels: &[String], wanted: &[Label]) -> bool {
    wanted.iter().all(|wanted| labels.iter().any(|label| label == wanted.as_str()))
}

/// The column of a list that shows labels; empty where no run has any.
pub(crate) struct LabelColumn(usize);

impl LabelColumn {
    pub(crate) fn of<'a>(labels: impl Iterator<Item = &'a [String]>) -> Self {
        let widest = labels.map(|labels| labels.join(" ").len()).max().unwrap_or(0);
        Self(if widest == 0 { 0 } else { widest.max("LABELS".len()) })
    }

    pub(crate) fn head(&self) -> String {
        self.padded("LABELS")
    }

    pub(crate) fn cell(&self, labels: &[String]) -> String {
        self.padded(&labels.join(" "))
    }

    fn padded(&self, text: &str) -> String {
        let width = self.0;
        if width == 0 { String::new() } else { format!("  {text:<width$}") }
    }
}

/// What a run came to: the same of a folder and of a coordinator.
pub(crate) enum Reached {
    /// One evolution.
    Evolution { generations: u64, best: f64 },
    /// A sweep: the cells that are done, and all. The best is not finite where there is none.
    Sweep { cells: u64, goal: u64, best: f64 },
    /// A tournament.
    Tournament {
        games: u64,
        /// Who is ahead, once something was played, if that is known here.
        strongest: Option<String>,
    },
    /// A study: the parts that are finished, and all.
    Study { parts: u64, goal: u64 },
}

impl Reached {
    const NOTHING: Self = Self::Evolution { generations: 0, best: f64::NAN };

    /// How far it is, and the best that there is, in a few letters each.
    pub(crate) fn columns(&self) -> [String; 2] {
        match self {
            Self::Evolution { generations, best } => [format!("generation {generations}"), number(*best)],
            Self::Sweep { cells, goal, best } => [format!("{cells}/{goal} cells"), number(*best)],
            Self::Tournament { games, strongest } => {
                let strongest = strongest.as_deref().unwrap_or("–");
                [format!("{games} games"), shortened(strongest, WIDTH - 1)]
            }
            Self::Study { parts, goal } => [format!("{parts}/{goal} parts"), "–".to_owned()],
        }
    }

    /// Adds the same to an object.
    pub(crate) fn add_to(&self, object: &mut serde_json::Value) {
        match self {
            Self::Evolution { generations, best } => {
                object["generations"] = (*generations).into();
                object["best_fitness"] = summary::finite(*best).into();
            }
            Self::Sweep { cells, goal, best } => {
                object["cells"] = (*cells).into();
                object["goal"] = (*goal).into();
                object["best_fitness"] = summary::finite(*best).into();
            }
            Self::Tournament { games, strongest } => {
                object["games"] = (*games).into();
                if let Some(strongest) = strongest {
                    object["strongest"] = strongest.as_str().into();
                }
            }
            Self::Study { parts, goal } => {
                object["parts"] = (*parts).into();
                object["goal"] = (*goal).into();
            }
        }
    }
}

/// Letters of the column that shows the best.
const WIDTH: usize = 14;

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    if let Some(url) = remote::chosen(arguments.coordinator.as_ref(), &arguments.store) {
        return remote::runs(&url, &arguments.credentials, &arguments.labels, arguments.json).await;
    }
    let store = arguments.store.open().await?;
    let mut rows = vec![];
    for run in all(&store).await? {
        let labels = labels(&store, &run).await;
        if has_labels(&labels, &arguments.labels) {
            rows.push(Row { labels, ..row(&store, &run).await });
        }
    }
    if arguments.json {
        let objects: Vec<serde_json::Value> = rows.iter().map(Row::to_json).collect();
        out!("{}", serde_json::Value::Array(objects));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() && !arguments.labels.is_empty() {
        message!("no run in {} has these labels", arguments.store.folder().display());
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        message!("no runs in {}; start one with `atoll run FILE`", arguments.store.folder().display());
        return Ok(ExitCode::SUCCESS);
    }
    let width = rows.iter().map(|row| row.run.len()).max().unwrap_or(3).max(3);
    let column = LabelColumn::of(rows.iter().map(|row| row.labels.as_slice()));
    out!(
        "{:<width$}  {:<10}  {:<9} {:>18}  {:>WIDTH$}  {:<19}  {:>8}{}  DIGEST",
        "RUN",
        "KIND",
        "STATE",
        "PROGRESS",
        "BEST",
        "CREATED",
        "DISK",
        column.head()
    );
    for row in rows {
        let digest = row.digest.as_deref().map_or("", |digest| &digest[..12]);
        let (Row { run, kind, state, .. }, [reached, best]) = (&row, row.reached.columns());
        let created = row.created.map_or("–".to_owned(), clock::show);
        let (disk, labels) = (bytes(row.disk), column.cell(&row.labels));
        out!(
            "{run:<width$}  {kind:<10}  {state:<9} {reached:>18}  {best:>WIDTH$}  {created:<19}  {disk:>8}{labels}  {digest}"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The labels of a run. A list is shown whether they can be read or not.
async fn labels(store: &Store, run: &RunId) -> Vec<String> {
    match run::labels::read(store, run).await {
        Ok(labels) => labels.to_strings(),
        Err(error) => {
            message!("{run}: labels: {error}");
            vec![]
        }
    }
}

/// A run that cannot be read is listed as damaged, and the others all the same.
async fn row(store: &Store, run: &RunId) -> Row {
    let disk = store.size_below(&run.folder()).await.unwrap_or(0);
    match read_row(store, run).await {
        Ok(row) => Row { disk, ..row },
        Err(error) => {
            message!("{run}: {error}");
            let (run, state) = (run.to_string(), "damaged".to_owned());
            Row {
                run,
                kind: "–",
                state,
                reached: Reached::NOTHING,
                created: None,
                digest: None,
                disk,
                labels: vec![],
            }
        }
    }
}

async fn read_row(store: &Store, run: &RunId) -> Result<Row, Failure> {
    let stored = StoredRun::read(store, run).await?;
    tell(run, stored.damage());
    let (kind, recorded) = (stored.kind().name(), stored.recorded());
    let is_damaged = !stored.damage().is_empty();
    let state =
        if is_damaged { "damaged".to_owned() } else { listing::state(store, run, &recorded.status).0 };
    let created = created(recorded);
    let digest = recorded.finished.as_ref().map(|finished| finished.digest.to_string());
    let reached = match &stored {
        StoredRun::Evolution(reader) => {
            let Standing { generation: generations, best, .. } = reader.stored().standing();
            Reached::Evolution { generations, best }
        }
        StoredRun::Jobs(jobs) => reached(&jobs.progress),
        StoredRun::Study(study) => {
            let parts = study.study.parts.len() + usize::from(study.study.tournament.is_some());
            Reached::Study { parts: study.finished, goal: parts as u64 }
        }
    };
    Ok(Row { run: run.to_string(), kind, state, reached, created, digest, disk: 0, labels: vec![] })
}

/// When a run was created.
fn created(recorded: &Recorded) -> Option<u64> {
    recorded.created.as_ref().map(|created| created.at)
}

/// Says what is wrong with a run.
fn tell(run: &RunId, damage: &[Damage]) {
    for damage in damage {
        message!("{run}: {damage}");
    }
}

/// What the cells of a sweep or a tournament came to.
fn reached(progress: &CellProgress) -> Reached {
    if let Some(outcome) = Outcome::of(progress) {
        let games = outcome.games();
        let strongest = outcome.standings().first().map(|first| first.name.to_owned());
        return Reached::Tournament { games, strongest: strongest.filter(|_| games > 0) };
    }
    Reached::Sweep {
        cells: progress.done().len() as u64,
        goal: u64::from(progress.plan().len()),
        best: progress.evolved().iter().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

impl Row {
    fn to_json(&self) -> serde_json::Value {
        let Self { run, kind, state, reached, created, digest, disk, labels } = self;
        let mut object = serde_json::json!({
            "run": run, "kind": kind, "state": state, "created": created.map(clock::iso), "digest": digest,
            "disk_bytes": disk, "labels": labels,
        });
        reached.add_to(&mut object);
        object
    }
}
