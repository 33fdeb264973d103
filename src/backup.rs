//! `atoll backup` and `atoll restore`: copies of the runs of a store, which may be worked on meanwhile.

use crate::failure::Failure;
use crate::progress::counted;
use crate::store_argument::{self, StoreArgument, run_id};
use crate::terminal::{message, out};
use run::backup::{Copied, copy_run};
use run::{RunId, layout};
use std::path::PathBuf;
use std::process::ExitCode;
use store::{Location, Path, Store, StoreError};

#[derive(clap::Args)]
pub(crate) struct BackupArguments {
    /// Where to copy the runs: an empty folder, or `s3://BUCKET/PREFIX`
    to: PathBuf,
    #[command(flatten)]
    store: StoreArgument,
    /// Copy only this run; may be given several times
    #[arg(long = "run", value_name = "RUN")]
    runs: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct RestoreArguments {
    /// The copy: a folder, or `s3://BUCKET/PREFIX`
    from: PathBuf,
    #[command(flatten)]
    store: StoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn backup(arguments: BackupArguments) -> Result<ExitCode, Failure> {
    let from = arguments.store.open().await?;
    let runs = match &arguments.runs[..] {
        [] => all(&from).await?,
        names => names.iter().map(|name| run_id(name)).collect::<Result<_, _>>()?,
    };
    let to = store_argument::create(&Location::parse(arguments.to.as_os_str())?).await?;
    let place = arguments.to.display().to_string();
    copy_all(&from, &to, &place, runs, arguments.json).await
}

pub(crate) async fn restore(arguments: RestoreArguments) -> Result<ExitCode, Failure> {
    let from = store_argument::open(&Location::parse(arguments.from.as_os_str())?).await;
    let from = from.map_err(|failure| match failure {
        Failure::Store(StoreError::NoSuchFolder { folder }) => {
            Failure::Other(format!("no backup in `{}`", folder.display()))
        }
        failure => failure,
    })?;
    let runs = all(&from).await?;
    let to = arguments.store.create().await?;
    let place = arguments.store.folder().display().to_string();
    copy_all(&from, &to, &place, runs, arguments.json).await
}

/// All runs of a store, studies too.
async fn all(store: &Store) -> Result<Vec<RunId>, Failure> {
    let mut runs = vec![];
    for run in store.folders(&layout::runs()).await?.iter().filter_map(layout::run_of_folder) {
        if run::stored::is_run(store, &run).await? {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// Copies runs to an empty store. One that is refused does not keep the others from being copied.
async fn copy_all(
    from: &Store,
    to: &Store,
    place: &str,
    runs: Vec<RunId>,
    json: bool,
) -> Result<ExitCode, Failure> {
    if !to.list(&layout::runs()).await?.is_empty() || !to.list(&Path::from("claims")).await?.is_empty() {
        return Err(Failure::Usage(format!("expected an empty place, found a store in {place}")));
    }
    let (mut copied, mut refused) = (vec![], vec![]);
    for run in runs {
        match copy_run(from, to, &run).await {
            Ok(Copied { objects, bytes }) => {
                if !json {
                    out!("{run}: {}, {}", counted(objects, "object", "objects"), crate::check::bytes(bytes));
                }
                copied.push(serde_json::json!({ "run": run.as_str(), "objects": objects, "bytes": bytes }));
            }
            Err(error) => {
                message!("error: {error}");
                refused.push(serde_json::json!({ "run": run.as_str(), "reason": error.to_string() }));
            }
        }
    }
    let is_whole = refused.is_empty();
    if json {
        out!("{}", serde_json::json!({ "ok": is_whole, "copied": copied, "refused": refused }));
    } else if !is_whole {
        message!("{} of {} runs were not copied", refused.len(), refused.len() + copied.len());
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
