//! Sweeps and tournaments on this machine: all cells of a plan, side by side.

use crate::failure::Failure;
use crate::local::{PATIENCE, until};
use crate::run::{How, Which, choose_id};
use crate::signals::Signals;
use archipelago::Progress;
use archipelago::cell::{CellPlan, CellResult};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use run::{Place, RunId};
use run::{jobs, players};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Store, StoreError};
use tokio::sync::mpsc;
use tournament::{Contestant, EngineCommand};
use worker::{Pool, Stop};

/// The plan of cells that a run holds, if it is one.
pub(crate) async fn stored(store: &Store, run: &RunId) -> Result<Option<CellPlan>, Failure> {
    let path = Place::Experiment.in_run(run);
    let text = match store.read_text(&path, 1 << 20).await {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(CellPlan::of(experiment::parse(path.as_ref(), &text, None)?))
}

pub(crate) async fn is_finished(store: &Store, run: &RunId, plan: CellPlan) -> Result<bool, Failure> {
    Ok(jobs::read(store, run, plan).await?.is_complete())
}

/// The run of a plan, which may have been begun.
pub(crate) async fn create(store: &Store, plan: &CellPlan, which: &Which) -> Result<RunId, Failure> {
    let run = choose_id(store, &plan.run_id(), which).await?;
    create_as(store, &run, plan).await?;
    Ok(run)
}

/// Writes a plan as that of a run, unless it is there already.
pub(crate) async fn create_as(store: &Store, run: &RunId, plan: &CellPlan) -> Result<(), Failure> {
    match store.create_text(&Place::Experiment.in_run(run), plan.text()).await {
        Ok(_) => Ok(()),
        Err(StoreError::Differs { .. })
            if stored(store, run).await?.is_some_and(|stored| stored.digest() == plan.digest()) =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// What working on a plan came to.
pub(crate) enum Worked {
    /// All cells are done.
    Done {
        progress: Box<Progress>,
        time: Duration,
        /// Cells that had been done before.
        known: usize,
    },
    /// Somebody asked to stop.
    Stopped(ExitCode),
}

/// Computes the cells that are missing.
pub(crate) async fn work(store: &Store, run: &RunId, plan: CellPlan, how: &How) -> Result<Worked, Failure> {
    let start = Instant::now();
    // Whoever reads that it runs may stop it: we listen before we say so.
    let mut signals = Signals::listen()?;
    let mut progress = jobs::read(store, run, plan).await?;
    let (known, cells) = (progress.done().len(), progress.plan().len());
    let (kind, what) = match progress.plan() {
        CellPlan::Sweep(_) => ("sweep", "cells"),
        CellPlan::Tournament(_) => ("tournament", "batches of games"),
    };
    eprintln!("{kind} {run}: {cells} {what}, {known} done");
    // What is complete is only read, whoever played.
    if !progress.is_complete() {
        let engines = crate::engines::read(how.engines.as_deref())?;
        let contestants = contestants(store, run, progress.plan(), &engines).await?;
        let pool = how.pool()?;
        Working { store, run, pool: &pool, contestants }.compute(&mut progress, what, &mut signals).await?;
    }
    if !progress.is_complete() {
        let done = progress.done().len();
        eprintln!("stopped with {done} of {cells} {what} done; run the same command again to go on");
        return Ok(Worked::Stopped(ExitCode::from(signals.exit_code())));
    }
    Ok(Worked::Done { progress: Box::new(progress), time: start.elapsed(), known })
}

/// Who plays in a tournament; nobody in a sweep.
async fn contestants(
    store: &Store,
    run: &RunId,
    plan: &CellPlan,
    engines: &BTreeMap<String, EngineCommand>,
) -> Result<Arc<Vec<Contestant>>, Failure> {
    let CellPlan::Tournament(games) = plan else { return Ok(Arc::default()) };
    let files = players::read(store, run, games).await?;
    let contestants = games.contestants(&files, engines);
    contestants.map(Arc::new).map_err(|error| Failure::Config(error.to_string()))
}

/// Every engine that a plan names, for where none of them is asked to play.
fn silent_engines(plan: &CellPlan) -> BTreeMap<String, EngineCommand> {
    let players = match plan {
        CellPlan::Tournament(games) => games.players(),
        CellPlan::Sweep(_) => &[],
    };
    let nothing = EngineCommand { command: vec![], patience: Duration::ZERO };
    players.iter().filter_map(|player| Some((player.engine.clone()?, nothing.clone()))).collect()
}

/// A plan that is being worked on.
struct Working<'a> {
    store: &'a Store,
    run: &'a RunId,
    pool: &'a Pool,
    contestants: Arc<Vec<Contestant>>,
}

type Computed = (u32, Result<Option<CellResult>, String>);

impl Working<'_> {
    async fn compute(
        &self,
        progress: &mut Progress,
        what: &str,
        signals: &mut Signals,
    ) -> Result<(), Failure> {
        let plan = Arc::new(progress.plan().clone());
        let stop = Stop::default();
        let (sender, mut results) = mpsc::channel(2 * self.pool.threads());
        let bar = bar(progress, what);
        let mut next = 0;
        let mut running = 0;
        let mut deadline = None;
        loop {
            while running <= self.pool.threads() && deadline.is_none() {
                let Some(number) = progress.next(next) else { break };
                next = number + 1;
                self.begin(&plan, number, &stop, &sender);
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
                        let kept = jobs::keep(self.store, self.run, &plan, number, result).await?;
                        progress.add(number, kept);
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

    fn begin(&self, plan: &Arc<CellPlan>, number: u32, stop: &Stop, sender: &mpsc::Sender<Computed>) {
        let (plan, contestants) = (plan.clone(), self.contestants.clone());
        let (stop, sender) = (stop.clone(), sender.clone());
        self.pool.spawn(move || {
            let result = plan.compute(number, &contestants, || stop.is_asked());
            drop(sender.blocking_send((number, result.map_err(|error| error.to_string()))));
        });
    }
}

fn bar(progress: &Progress, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(progress.plan().len()));
    let style = format!("{{bar:24.cyan}} {{pos}}/{{len}} {what}, {{eta}} left");
    bar.set_style(ProgressStyle::with_template(&style).expect("the template is a constant"));
    bar.set_position(progress.done().len() as u64);
    bar
}

/// The results of cells that can have only one, computed once more.
pub(crate) async fn compute_again(
    store: &Store,
    run: &RunId,
    progress: &Progress,
    how: &How,
) -> Result<Vec<(u32, Result<CellResult, String>)>, Failure> {
    let plan = progress.plan();
    // The games of engines are never computed again: nobody needs to have them.
    let contestants = contestants(store, run, plan, &silent_engines(plan)).await?;
    let compute = |number: u32| {
        let result = plan.compute(number, &contestants, || false).map_err(|error| error.to_string());
        (number, result.map(|result| result.expect("nobody asks it to stop")))
    };
    let cells: Vec<u32> = progress.done().keys().copied().filter(|&number| plan.is_pure(number)).collect();
    Ok(how.pool()?.install(|| cells.into_par_iter().map(compute).collect()))
}
