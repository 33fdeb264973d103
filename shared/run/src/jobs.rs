//! The stored results of a plan's jobs: cells of a sweep, batches of games of a tournament.

use crate::layout::{Place, RunId};
use archipelago::Progress;
use archipelago::cell::{CellPlan, CellResult, Evolved};
use store::{Kind, Path, Store, StoreError};
use tournament::PlayedPair;

/// Reads what is done of a plan.
pub async fn read(store: &Store, run: &RunId, plan: CellPlan) -> Result<Progress, StoreError> {
    let folder = match &plan {
        CellPlan::Sweep(_) => run.cells(),
        CellPlan::Tournament(_) => run.matches(),
    };
    let mut progress = Progress::new(plan);
    for path in store.list(&folder).await? {
        let Some((number, result)) = read_one(store, &path).await? else { continue };
        if progress.plan().fits(number, &result) {
            progress.add(number, result);
        }
    }
    Ok(progress)
}

async fn read_one(store: &Store, path: &Path) -> Result<Option<(u32, CellResult)>, StoreError> {
    Ok(match Place::of(path) {
        Some((_, Place::Cell(number))) => {
            let evolved: Evolved = store.read_value(path, Kind::Cell).await?;
            Some((number, CellResult::Evolved(evolved)))
        }
        Some((_, Place::Match(number))) => {
            let pairs: Vec<PlayedPair> = store.read_value(path, Kind::Match).await?;
            Some((number, CellResult::Played(pairs)))
        }
        _ => None,
    })
}

/// Keeps what a cell brought. Answers what is kept: of a cell that may bring different things, what came first.
///
/// # Errors
/// If the store fails, or keeps another result of a cell that can have only one.
pub async fn keep(
    store: &Store,
    run: &RunId,
    plan: &CellPlan,
    number: u32,
    result: CellResult,
) -> Result<CellResult, StoreError> {
    let path = place(run, plan, number);
    let created = match &result {
        CellResult::Evolved(evolved) => store.create_value(&path, Kind::Cell, evolved).await,
        CellResult::Played(pairs) => store.create_value(&path, Kind::Match, pairs).await,
    };
    match created {
        Err(StoreError::Differs { .. }) if !plan.is_pure(number) => {
            let first = stored(store, run, plan, number).await?;
            Ok(first.map_or(result, |(_, first)| first))
        }
        created => created.map(|_| result),
    }
}

/// What is stored of a cell, if that can be its result.
pub async fn stored(
    store: &Store,
    run: &RunId,
    plan: &CellPlan,
    number: u32,
) -> Result<Option<(u32, CellResult)>, StoreError> {
    let found = read_one(store, &place(run, plan, number)).await?;
    Ok(found.filter(|(number, result)| plan.fits(*number, result)))
}

fn place(run: &RunId, plan: &CellPlan, number: u32) -> Path {
    match plan {
        CellPlan::Sweep(_) => Place::Cell(number).in_run(run),
        CellPlan::Tournament(_) => Place::Match(number).in_run(run),
    }
}
