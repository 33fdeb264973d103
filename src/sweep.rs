//! Sweeps: what their cells came to, as tables.

use crate::drive::Driven;
use crate::export::save_all;
use crate::failure::Failure;
use crate::maze_study;
use crate::run::How;
use crate::terminal::{message, out};
use archipelago::cell::{CellPlan, Evolved};
use evolution::digest::Digest;
use experiment::file::SweepReport;
use experiment::{Cell, Sweep};
use report::text::{number, rounded};
use run::RunId;
use run::jobs::StoredJobs;
use std::path::PathBuf;
use std::process::ExitCode;
use store::Store;

/// Prints the table of a finished sweep.
pub(crate) async fn present(
    store: &Store,
    plan: &Sweep,
    driven: &Driven,
    how: &How,
) -> Result<ExitCode, Failure> {
    let run = &driven.run;
    let stored = StoredJobs::read(store, run, CellPlan::Sweep(Box::new(plan.clone()))).await?;
    let progress = stored.sound(run)?.progress;
    let digest = progress.digest().expect("all cells are done");
    let results: Vec<Evolved> = progress.evolved().into_iter().cloned().collect();
    let report = report(run, plan, &results, how)?;
    if how.json {
        print_json(run, plan, &results, &digest, driven);
    } else {
        match report {
            Some(tables) => out!("{tables}"),
            None => print_table(plan, &results),
        }
        out!("{} cells, {}", plan.len(), driven.shown_session());
        out!("digest {digest}");
        let flag = how.store.flag();
        out!("next:");
        out!("  open the report                         atoll report {run}{flag}");
        out!("  verify stored data and recompute cells  atoll verify {run}{flag}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what is to be made of the results, and answers the part of it that is for people.
fn report(run: &RunId, plan: &Sweep, results: &[Evolved], how: &How) -> Result<Option<String>, Failure> {
    let Some(SweepReport::MazeStudy) = plan.report else { return Ok(None) };
    let files = how.pool()?.install(|| maze_study::files(plan, results));
    let folder = PathBuf::from(format!("{run}-report"));
    save_all(&folder, &files)?;
    message!("tables and plot are in {}", folder.display());
    Ok(files.into_iter().next().map(|(_, tables)| tables))
}

fn print_json(run: &RunId, plan: &Sweep, results: &[Evolved], digest: &Digest, driven: &Driven) {
    let session = driven.session().as_secs_f64();
    let evaluations: u64 = results.iter().map(|result| result.evaluations).sum();
    let best = results.iter().map(|result| result.best).fold(f64::NEG_INFINITY, f64::max);
    let cells: Vec<serde_json::Value> = results
        .iter()
        .enumerate()
        .map(|(number, result)| {
            let Cell { values, repeat, experiment, .. } = plan.cell(number as u32);
            let values: serde_json::Map<_, _> = plan.keys.iter().cloned().zip(values).collect();
            serde_json::json!({
                "cell": number, "values": values, "repeat": repeat, "seed": experiment.seed(),
                "best_fitness": crate::summary::finite(result.best), "generations": result.generations,
                "evaluations": result.evaluations, "digest": result.digest.to_string(),
            })
        })
        .collect();
    let object = serde_json::json!({
        "run": run.as_str(), "digest": digest.to_string(), "best_fitness": crate::summary::finite(best),
        "generations": results.iter().map(|result| result.generations).max(), "evaluations": evaluations,
        "evaluations_per_second": evaluations.saturating_sub(driven.before) as f64 / session.max(1e-9),
        "seconds": driven.total().as_secs_f64(), "session_seconds": session, "cells": cells,
    });
    out!("{object}");
}

/// A row for each combination of values: the mean, the deviation and the best over its repeats.
fn print_table(plan: &Sweep, results: &[Evolved]) {
    out!("| {} | mean | deviation | best | evaluations |", plan.keys.join(" | "));
    out!("|{}", "---|".repeat(plan.keys.len() + 4));
    for (point, repeats) in results.chunks(plan.repeats as usize).enumerate() {
        let values: Vec<String> = plan.cell(point as u32 * plan.repeats).values.iter().map(shown).collect();
        let count = repeats.len() as f64;
        let mean = repeats.iter().map(|result| result.best).sum::<f64>() / count;
        let variance =
            repeats.iter().map(|result| (result.best - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let best = repeats.iter().map(|result| result.best).fold(f64::NEG_INFINITY, f64::max);
        let evaluations: u64 = repeats.iter().map(|result| result.evaluations).sum();
        out!(
            "| {} | {} | {} | {} | {evaluations} |",
            values.join(" | "),
            rounded(mean, 6),
            rounded(variance.sqrt(), 3),
            number(best)
        );
    }
}

fn shown(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
