//! The results of finished runs, as files for people: champions, statistics, tables and the report.

use crate::failure::Failure;
use crate::sources::{self, Present};
use crate::store_argument::{StoreArgument, run_id};
use crate::tournament::PlayedTournament;
use crate::{cells, export, report};
use archipelago::cell::CellPlan;
use experiment::Plan;
use run::RunId;
use std::path::Path;
use store::Store;

/// Writes the results of a run into `folder/RUN`: those of a study for each of its runs.
pub(crate) async fn write(
    folder: &Path,
    store: &Store,
    place: &StoreArgument,
    run: &str,
) -> Result<(), Failure> {
    for run in runs(store, run_id(run)?).await? {
        let folder = folder.join(run.as_str());
        match cells::stored(store, &run).await? {
            Some(CellPlan::Tournament(_)) => {
                let played = PlayedTournament::read(store, &run).await?;
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

/// The runs of a study are those of its experiments, and one for its tournament.
async fn runs(store: &Store, run: RunId) -> Result<Vec<RunId>, Failure> {
    match run::stored::read_plan(store, &run).await?.0 {
        Plan::Study(_) => {
            let Present { mut runs, games, .. } = sources::present(store, &[run.to_string()]).await?;
            runs.extend(games);
            Ok(runs)
        }
        _ => Ok(vec![run]),
    }
}
