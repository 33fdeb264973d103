//! The cells of sweeps and tournaments that a store holds.

use crate::failure::Failure;
use crate::progress::Counter;
use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult};
use experiment::Plan;
use rayon::prelude::*;
use run::players;
use run::{RunError, RunId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tournament::{Contestant, EngineCommand};
use worker::Pool;

/// The plan that a run holds, if it is there.
async fn plan(store: &Store, run: &RunId) -> Result<Option<Plan>, Failure> {
    match run::stored::read_plan(store, run).await {
        Ok((plan, _)) => Ok(Some(plan)),
        Err(RunError::Unknown { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The plan of cells that a run holds, if it is one.
pub(crate) async fn stored(store: &Store, run: &RunId) -> Result<Option<CellPlan>, Failure> {
    Ok(plan(store, run).await?.and_then(CellPlan::of))
}

/// Checks that the workers of this machine have the engines of a plan, and the endgame database of an experiment: they would
/// wait for others that have them.
pub(crate) fn check_engines(plan: &Plan, engines: &BTreeMap<String, EngineCommand>) -> Result<(), Failure> {
    let games = match plan {
        Plan::Tournament(games) => Some(games.as_ref()),
        Plan::Study(study) => study.tournament.as_ref(),
        Plan::Single(experiment) => {
            return experiment.evolver().missing().map_or(Ok(()), |missing| Err(Failure::Config(missing)));
        }
        Plan::Sweep(_) => None,
    };
    let checked = games.map_or(Ok(()), |games| games.check_engines(engines));
    checked.map_err(|error| Failure::Config(error.to_string()))
}

/// Checks that all players can be loaded here, before the first game, and before the first part of a study.
pub(crate) async fn check_players(
    store: &Store,
    run: &RunId,
    engines: &BTreeMap<String, EngineCommand>,
) -> Result<(), Failure> {
    match plan(store, run).await? {
        Some(Plan::Tournament(games)) => {
            contestants(store, run, &CellPlan::Tournament(games), engines).await.map(|_| ())
        }
        Some(plan) => check_engines(&plan, engines),
        None => Ok(()),
    }
}

/// The players of a tournament; none in a sweep.
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

/// The results of cells that can have only one, computed once more.
pub(crate) async fn compute_again(
    store: &Store,
    run: &RunId,
    progress: &CellProgress,
    pool: &Pool,
) -> Result<Vec<(u32, Result<CellResult, String>)>, Failure> {
    let plan = progress.plan();
    // The games of engines are never recomputed, so the engines need not be installed.
    let contestants = contestants(store, run, plan, &silent_engines(plan)).await?;
    let cells: Vec<u32> = progress.done().keys().copied().filter(|&number| plan.is_pure(number)).collect();
    let counter = Counter::new("cells", cells.len() as u64);
    let compute = |number: u32| {
        let result = plan.compute(number, &contestants, || false).map_err(|error| error.to_string());
        counter.add(1);
        (number, result.map(|result| result.expect("it is never stopped")))
    };
    Ok(pool.install(|| cells.into_par_iter().map(compute).collect()))
}
