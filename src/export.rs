//! `atoll export`: champions and statistics as JSON and CSV.

use crate::contender;
use crate::failure::Failure;
use crate::protection::Credentials;
use crate::remote::{self, Remote};
use crate::run_name;
use crate::store_argument::StoreArgument;
use crate::terminal::out;
use run::{RunError, RunId, export};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to export
    run: String,
    #[command(flatten)]
    store: StoreArgument,
    /// Export a run of a coordinator instead of a local store; also `ATOLL_COORDINATOR`
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    /// Folder to write to [default: RUN-export]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Write a checkers champion as a player file instead; the run may be named `RUN/ISLAND` or `RUN/ISLAND@EPOCH` too
    #[arg(long, value_name = "FILE", conflicts_with_all = ["coordinator", "to", "json"])]
    player: Option<PathBuf>,
    /// Print one JSON object on stdout; write no files
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let remotely = remote::chosen(arguments.coordinator.as_ref(), &arguments.store);
    if let Some(url) = remotely.filter(|_| arguments.player.is_none()) {
        return run_there(&url, arguments).await;
    }
    let store = arguments.store.open().await?;
    if let Some(file) = &arguments.player {
        let reference = run_name::complete(&store, contender::reference(&arguments.run)?).await?;
        let champion = reference.champion(&store).await?;
        let failed = |error| Failure::Other(format!("cannot write {}: {error}", file.display()));
        std::fs::write(file, champion).map_err(failed)?;
        out!("{}", file.display());
        return Ok(ExitCode::SUCCESS);
    }
    let run = run_name::find(&store, &arguments.run).await?;
    let export = export::read(&store, &run).await?;
    if arguments.json {
        out!("{}", export.object());
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.to.unwrap_or_else(|| PathBuf::from(format!("{run}-export")));
    write_all(&folder, &export.files())
}

/// The same of a run of a coordinator.
async fn run_there(url: &str, arguments: Arguments) -> Result<ExitCode, Failure> {
    let mut remote = Remote::connect(url, &arguments.credentials).await?;
    let run = RunId::new(remote.find(&arguments.run).await?)?;
    let files = remote.parts(run.as_str()).await?;
    if !files.contains_key("run.json") {
        let kind = remote::kind(&remote.look(run.as_str()).await?);
        return Err(RunError::Kind { run, kind }.into());
    }
    // Names come from another machine: only those that we know become files.
    let known = ["run.json", "champions.csv", "statistics.csv", "migrations.csv"];
    let text =
        |name: &str| String::from_utf8_lossy(files.get(name).map_or(&[], |bytes| &bytes[..])).into_owned();
    if arguments.json {
        let object: serde_json::Value =
            serde_json::from_str(&text("run.json")).map_err(|error| Failure::Other(error.to_string()))?;
        out!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.to.unwrap_or_else(|| PathBuf::from(format!("{run}-export")));
    let files: Vec<(&str, String)> = known.iter().map(|name| (*name, text(name))).collect();
    write_all(&folder, &files)
}

/// Writes files into a folder, and prints their names.
pub(crate) fn write_all(folder: &Path, files: &[(&str, String)]) -> Result<ExitCode, Failure> {
    save_all(folder, files)?;
    for (name, _) in files {
        out!("{}", folder.join(name).display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes files into a folder.
pub(crate) fn save_all(folder: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Other(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}
