//! `atoll repair`: makes a damaged run fit together again, after showing what that costs.

use crate::failure::Failure;
use crate::run::opening;
use crate::run_name;
use crate::served;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out, write_message};
use run::{Repair, RunError, RunId};
use std::io::{IsTerminal, stdin};
use std::process::ExitCode;
use store::Store;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to repair
    run: String,
    #[command(flatten)]
    store: StoreArgument,
    /// Repair without asking
    #[arg(long)]
    yes: bool,
    /// Print one JSON object; never asks
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    if arguments.yes {
        check_idle(&store, &run).await?;
    }
    let parts = plan_parts(&store, &run).await?;
    let repair = Repair::plan(&store, &run).await?;
    let is_needed = repair.is_needed();
    if !arguments.json {
        parts.iter().filter(|part| part.is_needed()).for_each(print);
        print(&repair);
    }
    let is_agreed =
        is_needed && (arguments.yes || !arguments.json && asks_and_hears_yes("Repair it? [y/N] ")?);
    if is_agreed {
        // A coordinator may have started while the question was asked.
        check_idle(&store, &run).await?;
        for part in parts.iter().filter(|part| part.is_needed()) {
            part.carry_out(&store, &opening()).await?;
        }
        repair.carry_out(&store, &opening()).await?;
    }
    if arguments.json {
        let mut found = object(&repair, is_agreed);
        if !parts.is_empty() {
            found["parts"] = parts.iter().map(|part| object(part, is_agreed && part.is_needed())).collect();
        }
        out!("{found}");
    } else if is_agreed && std::iter::once(&repair).chain(&parts).any(Repair::drops_results) {
        message!("repaired; resume it with `atoll resume {run}{}`", arguments.store.flag());
    } else if is_agreed {
        message!("repaired; no result was affected");
    } else if is_needed {
        message!("nothing was changed; repair it with `atoll repair {run} --yes{}`", arguments.store.flag());
    }
    Ok(if is_needed && !is_agreed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Rejects a run that a coordinator works on, or a part of it. In a folder the locks of the runs show that too.
async fn check_idle(store: &Store, run: &RunId) -> Result<(), Failure> {
    served::check_idle(store, run).await?;
    for part in run::study::stored_parts(store, run).await? {
        served::check_idle(store, &part).await?;
    }
    Ok(())
}

/// The repairs of a study's parts: those that are missing are computed again when the study is resumed.
async fn plan_parts(store: &Store, run: &RunId) -> Result<Vec<Repair>, Failure> {
    let mut parts = vec![];
    for part in run::study::stored_parts(store, run).await? {
        match Repair::plan(store, &part).await {
            Err(RunError::Unknown { .. }) => {}
            planned => parts.push(planned?),
        }
    }
    Ok(parts)
}

fn print(repair: &Repair) {
    let run = &repair.run;
    if !repair.is_needed() {
        out!("{run}: nothing to repair");
        return;
    }
    let reason = if repair.damage.is_empty() { " objects cannot be used" } else { "" };
    out!("{run} is damaged:{reason}");
    for damage in &repair.damage {
        out!("  {damage}");
    }
    if !repair.moved.is_empty() {
        out!("these objects would be moved to {}:", run.dropped());
        for (path, reason) in &repair.moved {
            out!("  {path}: {reason}");
        }
    }
    let again = repair.islands.iter().filter(|(recorded, left)| left < recorded);
    let (islands, epochs) =
        again.fold((0, 0), |(islands, epochs), (recorded, left)| (islands + 1, epochs + recorded - left));
    if epochs > 0 {
        out!("{epochs} epochs of {islands} islands would be computed again");
    }
    if repair.drops_results() {
        out!("the journal would record this; nothing would be deleted");
    } else {
        out!("no result is affected; nothing would be deleted");
    }
}

fn object(repair: &Repair, is_done: bool) -> serde_json::Value {
    let moved: Vec<serde_json::Value> = repair
        .moved
        .iter()
        .map(|(path, reason)| serde_json::json!({ "path": path.to_string(), "reason": reason }))
        .collect();
    let islands: Vec<serde_json::Value> = repair
        .islands
        .iter()
        .map(|(recorded, left)| serde_json::json!({ "recorded": recorded, "left": left }))
        .collect();
    serde_json::json!({
        "run": repair.run.as_str(), "needed": repair.is_needed(), "repaired": is_done, "damage": repair.damage,
        "moved": moved, "islands": islands,
    })
}

/// Asks on a terminal. Without one there is no answer.
pub(crate) fn asks_and_hears_yes(question: &str) -> Result<bool, Failure> {
    if !stdin().is_terminal() {
        return Ok(false);
    }
    write_message(format_args!("{question}"));
    let mut answer = String::new();
    let read = stdin().read_line(&mut answer);
    read.map_err(|error| Failure::Other(format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
