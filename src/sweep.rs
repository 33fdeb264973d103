//! Sweeps: all cells of a plan, side by side, each a whole run in memory.

use crate::export::save_all;
use crate::failure::Failure;
use crate::local::{PATIENCE, until};
use crate::maze_study;
use crate::progress::number;
use crate::run::{How, choose_id};
use crate::signals::Signals;
use crate::terminal::out;
use archipelago::cell::{self, CellResult, sweep_digest};
use evolution::digest::Digest;
use experiment::file::SweepReport;
use experiment::{Cell, Plan, Sweep, duration};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use store::{Kind, Place, RunId, Store, StoreError};
use tokio::sync::mpsc;
use worker::Stop;

/// The sweep that a run holds, if it is one.
pub(crate) async fn stored(store: &Store, run: &RunId) -> Result<Option<Sweep>, Failure> {
    let path = Place::Experiment.in_run(run);
    let text = match store.read_text(&path, 1 << 20).await {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match experiment::parse(path.as_ref(), &text, None)? {
        Plan::Sweep(sweep) => Ok(Some(*sweep)),
        _ => Ok(None),
    }
}

/// The cells that are done.
pub(crate) async fn done(store: &Store, run: &RunId) -> Result<BTreeMap<u32, CellResult>, Failure> {
    let mut cells = BTreeMap::new();
    for path in store.list(&run.cells()).await? {
        if let Some((_, Place::Cell(number))) = Place::of(&path) {
            cells.insert(number, store.read_value(&path, Kind::Cell).await?);
        }
    }
    Ok(cells)
}

pub(crate) async fn is_finished(store: &Store, run: &RunId, plan: &Sweep) -> Result<bool, Failure> {
    Ok(done(store, run).await?.len() as u32 == plan.len())
}

pub(crate) async fn run(store: &Store, plan: &Sweep, fresh: bool, how: &How) -> Result<ExitCode, Failure> {
    let run = choose_id(store, &plan.run_id(), fresh).await?;
    match store.create_text(&Place::Experiment.in_run(&run), &plan.text).await {
        Ok(_) => {}
        Err(StoreError::Differs { .. })
            if stored(store, &run).await?.is_some_and(|s| s.digest() == plan.digest()) => {}
        Err(error) => return Err(error.into()),
    }
    resume(store, &run, plan, how).await
}

/// Computes the cells that are missing, and prints the table of all.
pub(crate) async fn resume(store: &Store, run: &RunId, plan: &Sweep, how: &How) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    // Whoever reads that it runs may stop it: we listen before we say so.
    let mut signals = Signals::listen()?;
    let mut cells = done(store, run).await?;
    let known = cells.len();
    eprintln!("sweep {run}: {} cells, {known} done", plan.len());
    let missing: Vec<u32> = (0..plan.len()).filter(|number| !cells.contains_key(number)).collect();
    compute(store, run, plan, how, &missing, &mut cells, &mut signals).await?;
    if cells.len() < plan.len() as usize {
        eprintln!(
            "stopped with {} of {} cells done; run the same command again to go on",
            cells.len(),
            plan.len()
        );
        return Ok(ExitCode::from(signals.exit_code()));
    }
    let results: Vec<CellResult> = cells.into_values().collect();
    let digest = sweep_digest(plan, &results);
    let report = report(run, plan, &results, how)?;
    if how.json {
        print_json(run, plan, &results, &digest, start.elapsed().as_secs_f64(), known);
    } else {
        match report {
            Some(tables) => out!("{tables}"),
            None => print_table(plan, &results),
        }
        out!("digest {digest}");
        out!("{} cells in {}", plan.len(), duration::show(start.elapsed()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what is to be made of the results, and answers the part of it that is for people.
fn report(run: &RunId, plan: &Sweep, results: &[CellResult], how: &How) -> Result<Option<String>, Failure> {
    let Some(SweepReport::MazeStudy) = plan.report else { return Ok(None) };
    let files = how.pool()?.install(|| maze_study::files(plan, results));
    let folder = PathBuf::from(format!("{run}-report"));
    save_all(&folder, &files)?;
    eprintln!("tables and plot are in {}", folder.display());
    Ok(files.into_iter().next().map(|(_, tables)| tables))
}

async fn compute(
    store: &Store,
    run: &RunId,
    plan: &Sweep,
    how: &How,
    missing: &[u32],
    cells: &mut BTreeMap<u32, CellResult>,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let pool = how.pool()?;
    let stop = Stop::default();
    let (sender, mut results) = mpsc::channel(2 * pool.threads());
    let bar = ProgressBar::new(u64::from(plan.len()));
    let style = "{bar:24.cyan} {pos}/{len} cells, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("the template is a constant"));
    bar.set_position(cells.len() as u64);
    let mut waiting = missing.iter();
    let mut running = 0;
    let mut deadline = None;
    loop {
        while running <= pool.threads() && deadline.is_none() {
            let Some(&number) = waiting.next() else { break };
            let (cell, stop, sender) = (plan.cell(number), stop.clone(), sender.clone());
            pool.spawn(move || drop(sender.blocking_send((number, cell::evolve(&cell, || stop.is_asked())))));
            running += 1;
        }
        if running == 0 {
            break;
        }
        tokio::select! {
            result = results.recv() => {
                running -= 1;
                let (number, result) = result.expect("we hold a sender");
                let result = result.map_err(|reason| Failure::Other(format!("cell {number} failed: {reason}")))?;
                if let Some(result) = result {
                    store.create_value(&Place::Cell(number).in_run(run), Kind::Cell, &result).await?;
                    cells.insert(number, result);
                    bar.inc(1);
                }
            }
            () = signals.asked_or_again(deadline.is_some()) => {
                if deadline.is_some() {
                    break;
                }
                stop.ask();
                deadline = Some(tokio::time::Instant::now() + PATIENCE);
            }
            () = until(deadline) => break,
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// The results of cells, computed once more on the pool that this is called in. Numbers that the plan does not have are
/// errors.
pub(crate) fn compute_again(plan: &Sweep, cells: &[(u32, CellResult)]) -> Vec<Result<CellResult, String>> {
    let compute = |(number, _): &(u32, CellResult)| {
        if *number >= plan.len() {
            return Err(format!("expected cells below {}", plan.len()));
        }
        let result = cell::evolve(&plan.cell(*number), || false).map_err(|error| error.to_string())?;
        Ok(result.expect("nobody asks it to stop"))
    };
    cells.par_iter().map(compute).collect()
}

fn print_json(
    run: &RunId,
    plan: &Sweep,
    results: &[CellResult],
    digest: &Digest,
    seconds: f64,
    known: usize,
) {
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
        "evaluations_per_second": if known == 0 { evaluations as f64 / seconds } else { 0.0 },
        "seconds": seconds, "cells": cells,
    });
    out!("{object}");
}

/// A row for each combination of values: the mean, the deviation and the best over its repeats.
fn print_table(plan: &Sweep, results: &[CellResult]) {
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
            number(mean),
            number(variance.sqrt()),
            number(best)
        );
    }
}

fn shown(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
