//! The results of finished runs, as files for people: champions, statistics, tables and the report.

use crate::failure::Failure;
use crate::store_argument::StoreArgument;
use crate::{cells, export, report, sources};
use std::path::Path;
use store::Store;

/// Writes the results of what a file describes into `folder/RUN`, for each of its runs.
pub(crate) async fn write(
    folder: &Path,
    store: &Store,
    place: &StoreArgument,
    file: String,
) -> Result<(), Failure> {
    for run in sources::present(store, &[file]).await?.runs {
        let folder = folder.join(run.as_str());
        if cells::stored(store, &run).await?.is_none() {
            export::save_all(&folder, &run::export::read(store, &run).await?.files())?;
        }
        match report::save(store, &run, place, &folder).await {
            // A tournament has a page of its own, and its games are in the store.
            Err(Failure::Usage(reason)) => tracing::warn!(%run, reason, "no report"),
            saved => saved?,
        }
        tracing::info!(%run, folder = %folder.display(), "exported");
    }
    Ok(())
}
