//! The results of finished runs, as files for people: champions, statistics, tables and the report.

use crate::failure::Failure;
use crate::store_argument::{StoreArgument, run_id};
use crate::tournament::PlayedTournament;
use crate::{cells, export, report, sources};
use archipelago::cell::CellPlan;
use experiment::Plan;
use run::RunId;
use std::path::Path;
use std::time::Duration;
use store::Store;

/// Writes the results of what a file describes into `folder/RUN`, for each of its runs.
pub(crate) async fn write(
    folder: &Path,
    store: &Store,
    place: &StoreArgument,
    file: &str,
) -> Result<(), Failure> {
    for run in runs(store, file).await? {
        let folder = folder.join(run.as_str());
        match cells::stored(store, &run).await? {
            Some(CellPlan::Tournament(_)) => {
                let played = PlayedTournament::read(store, &run, Duration::ZERO).await?;
                export::save_all(&folder, &played.files(&place.flag())?)?;
            }
            Some(CellPlan::Sweep(_)) => report::save(store, &run, place, &folder).await?,
            None => {
                export::save_all(&folder, &run::export::read(store, &run).await?.files())?;
                report::save(store, &run, place, &folder).await?;
            }
        }
        tracing::info!(%run, folder = %folder.display(), "exported");
    }
    Ok(())
}

/// The runs of a file: a study has those of its experiments, and one for its tournament.
async fn runs(store: &Store, file: &str) -> Result<Vec<RunId>, Failure> {
    let plan = experiment::load(file.as_ref(), None)?;
    if let Plan::Tournament(games) = &plan {
        return Ok(vec![run_id(&games.run_id())?]);
    }
    let mut runs = sources::present(store, &[file.to_owned()]).await?.runs;
    if let Plan::Study(study) = &plan
        && study.tournament.is_some()
    {
        runs.push(run::study::part_run(&run_id(&study.run_id())?, experiment::GAMES, 0)?);
    }
    Ok(runs)
}
