//! Studies: what their experiments and their tournament came to, as tables.

use crate::failure::Failure;
use crate::run::How;
use crate::summary;
use crate::terminal::{out, write_out};
use crate::tournament::PlayedTournament;
use evolution::digest::Digest;
use experiment::Study;
use report::text::number;
use run::{FinishedRun, RunId};
use std::process::ExitCode;
use store::Store;

/// Prints the tables of a finished study.
pub(crate) async fn present(
    store: &Store,
    run: &RunId,
    plan: &Study,
    how: &How,
) -> Result<ExitCode, Failure> {
    let mut results = vec![];
    for (part, number) in plan.parts.iter().zip(1..) {
        let run = run::study::part_run(run, &part.name, number)?;
        let finished = FinishedRun::read(store, &run).await?;
        results.push((part.name.as_str(), run, finished.best()?, finished.digest));
    }
    let games = if plan.tournament.is_some() {
        let run = run::study::part_run(run, experiment::GAMES, 0)?;
        Some(PlayedTournament::read(store, &run).await?)
    } else {
        None
    };
    let played = games.as_ref().and_then(|games| games.progress.digest());
    let digests = results.iter().map(|(_, _, _, digest)| digest).chain(&played);
    let digest = Digest::of_parts("atoll study digest", digests.map(|digest| &digest.0[..]));
    if how.json {
        let parts: Vec<serde_json::Value> = results
            .iter()
            .map(|(name, run, (_, champion), digest)| {
                let best = summary::finite(champion.fitness);
                serde_json::json!({
                    "name": name, "run": run.as_str(), "best_fitness": best, "digest": digest.to_string(),
                })
            })
            .collect();
        let mut object = serde_json::json!({
            "run": run.as_str(), "study": plan.name, "digest": digest.to_string(), "parts": parts,
        });
        if let Some(games) = &games {
            object["tournament"] = games.object();
        }
        out!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    out!("| experiment | best fitness | island | generation | run |");
    out!("|---|---|---|---|---|");
    for (name, run, (island, champion), _) in &results {
        out!("| {name} | {} | {island} | {} | {run} |", number(champion.fitness), champion.generation);
    }
    if let Some(games) = &games {
        write_out!("\n{}\n", games.markdown());
    }
    out!("digest {digest}");
    let flag = how.store.flag();
    out!("next:");
    out!("  compare the experiments                  atoll report {run}{flag}");
    if let Some(games) = &games {
        out!("  open the report of the tournament        atoll report {}{flag}", games.run);
    }
    out!("  verify stored data and recompute epochs  atoll verify {run}{flag}");
    Ok(ExitCode::SUCCESS)
}
