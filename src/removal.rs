//! `atoll rm` and `atoll gc`: removing runs, and completing a removal that was interrupted.

use crate::check::bytes;
use crate::failure::Failure;
use crate::repair::asks_and_hears_yes;
use crate::run::opening;
use crate::run_name;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use run::removal::{self, Removal, Removed};
use run::{Lock, RunError, RunId};
use std::process::ExitCode;
use store::Store;

#[derive(clap::Args)]
pub(crate) struct RmArguments {
    /// The runs to remove; a study is removed with its parts
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    #[command(flatten)]
    store: StoreArgument,
    /// Remove without asking
    #[arg(long)]
    yes: bool,
    /// Print one JSON object; never asks
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct GcArguments {
    #[command(flatten)]
    store: StoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn rm(arguments: RmArguments) -> Result<ExitCode, Failure> {
    let store = open(&arguments.store).await?;
    let mut runs: Vec<RunId> = vec![];
    for name in &arguments.runs {
        let run = run_name::find(&store, name).await?;
        if let Some(study) = removal::study_of(&store, &run).await? {
            return Err(Failure::Usage(format!(
                "run `{run}` is a part of the study `{study}`; remove the study with `atoll rm {study}`"
            )));
        }
        for run in removal::with_parts(&store, &run).await? {
            if !runs.contains(&run) {
                runs.push(run);
            }
        }
    }
    check_idle(&store, &runs)?;
    let opening = opening();
    let removal = Removal::plan(&store, &runs, opening.now).await?;
    if !arguments.json {
        for run in &removal.runs {
            message!("{}: {} objects, {}", run.run, run.objects, bytes(run.bytes));
        }
    }
    let count = if runs.len() == 1 { "1 run".to_owned() } else { format!("{} runs", runs.len()) };
    let question = format!("Remove {count} ({})? [y/N] ", bytes(removal.bytes()));
    if !arguments.yes && (arguments.json || !asks_and_hears_yes(&question)?) {
        if arguments.json {
            out!("{}", object(&Removed::default()));
        }
        message!("nothing was removed; `--yes` removes without asking");
        return Ok(ExitCode::FAILURE);
    }
    // A coordinator may have started while the question was asked.
    check_idle(&store, &runs)?;
    let number = removal.record(&store).await?;
    let removed = removal.carry_out(&store, number, &opening.owner).await?;
    show(&removed, arguments.json);
    Ok(exit_code(&removed))
}

pub(crate) async fn gc(arguments: GcArguments) -> Result<ExitCode, Failure> {
    let store = open(&arguments.store).await?;
    let opening = opening();
    let mut all = Removed::default();
    for (number, removal) in removal::pending(&store).await? {
        let runs: Result<Vec<RunId>, _> = removal.runs.iter().map(|run| RunId::new(&run.run)).collect();
        check_idle(&store, &runs?)?;
        let removed = removal.carry_out(&store, number, &opening.owner).await?;
        all.runs.extend(removed.runs);
        all.changed.extend(removed.changed);
        all.objects += removed.objects;
    }
    if all == Removed::default() && !arguments.json {
        message!("nothing to remove: no removal was interrupted");
        return Ok(ExitCode::SUCCESS);
    }
    show(&all, arguments.json);
    Ok(exit_code(&all))
}

/// Success only if every run was removed.
fn exit_code(removed: &Removed) -> ExitCode {
    if removed.changed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The store, which must be a folder: only there a process shows that it works on a run.
async fn open(argument: &StoreArgument) -> Result<Store, Failure> {
    let store = argument.open().await?;
    if store.folder_on_disk().is_none() {
        let place = argument.folder().display();
        let message =
            format!("expected a store in a folder, found `{place}`: a bucket does not show who uses it");
        return Err(Failure::Usage(message));
    }
    Ok(store)
}

/// Refuses runs that a process works on.
fn check_idle(store: &Store, runs: &[RunId]) -> Result<(), Failure> {
    for run in runs {
        if let Some(holder) = Lock::holder(store, run)? {
            return Err(RunError::Busy { run: run.clone(), owner: holder.to_string() }.into());
        }
    }
    match Lock::server(store)? {
        Some(server) => Err(Failure::Other(format!(
            "a coordinator serves this store ({server}), and may work on its runs; stop it first"
        ))),
        None => Ok(()),
    }
}

fn object(removed: &Removed) -> serde_json::Value {
    serde_json::json!({ "removed": removed.runs, "objects": removed.objects, "changed": removed.changed })
}

fn show(removed: &Removed, json: bool) {
    for run in &removed.changed {
        message!(
            "{run}: it changed after its removal was recorded, so it was kept; remove it with `atoll rm {run}`"
        );
    }
    if json {
        out!("{}", object(removed));
    } else {
        for run in &removed.runs {
            out!("removed {run}");
        }
    }
}
