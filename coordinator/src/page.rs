//! Pages of the ledger: what is written of one island at a time.
//!
//! A page owns what it writes, so that nobody waits for the store but those who want to know that it is written.

use crate::ledger::LedgerError;
use crate::record::{EpochRecord, StoredCheckpoint};
use crate::thinning::checkpoint_place;
use archipelago::{LeftBehind, Mark, Remains};
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use store::{Kind, Place, RunId, Store, StoreError};

/// How many pages are written at a time: enough to hide the latency of a store, and to leave the cores to others.
const AT_A_TIME: usize = 32;

/// What is to be written of one island.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) island: u32,
    /// States that are to be kept for good, by their epochs.
    pub(crate) milestones: Vec<(u64, LeftBehind)>,
    pub(crate) batches: Vec<Batch>,
    pub(crate) checkpoint: Option<Inside>,
}

/// Records that share one object, and what the last of their epochs left behind.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) epoch: u64,
    pub(crate) left: LeftBehind,
    pub(crate) records: Vec<EpochRecord>,
}

/// A checkpoint inside an epoch.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
    pub(crate) stored: StoredCheckpoint,
}

/// Pages of one run that are written together.
pub(crate) struct Writing {
    pub(crate) store: Store,
    pub(crate) run: RunId,
    pub(crate) pages: Vec<Arc<Page>>,
}

impl Writing {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The islands that are written.
    pub(crate) fn islands(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().map(|page| page.island)
    }

    /// Writes all pages.
    pub(crate) async fn write(&self) -> Result<(), LedgerError> {
        let pages = stream::iter(&self.pages).map(Ok);
        pages.try_for_each_concurrent(AT_A_TIME, |page| page.write(&self.store, &self.run)).await
    }
}

impl Page {
    /// Writes milestones, then each batch with the state at its end, then the checkpoint that goes on from there.
    async fn write(&self, store: &Store, run: &RunId) -> Result<(), LedgerError> {
        for (epoch, left) in &self.milestones {
            self.write_state(store, run, *epoch, left).await?;
        }
        for batch in &self.batches {
            // The state comes first, because a record promises it.
            self.write_state(store, run, batch.epoch, &batch.left).await?;
            self.write_records(store, run, batch).await?;
        }
        if let Some(inside) = &self.checkpoint {
            self.write_checkpoint(store, run, inside).await?;
        }
        Ok(())
    }

    async fn write_state(
        &self,
        store: &Store,
        run: &RunId,
        epoch: u64,
        left: &LeftBehind,
    ) -> Result<(), LedgerError> {
        let island = self.island;
        let place = Place::State { island, epoch: epoch as u32 };
        let remains = Remains { epoch, state: left.state.to_vec(), departure: left.departure.to_vec() };
        match store.create_value(&place.in_run(run), Kind::IslandState, &remains).await {
            Err(StoreError::Differs { .. }) => Err(LedgerError::Differs { island, epoch }),
            created => Ok(created.map(|_| ())?),
        }
    }

    async fn write_records(&self, store: &Store, run: &RunId, batch: &Batch) -> Result<(), LedgerError> {
        let (island, epoch) = (self.island, batch.epoch);
        let path = Place::Record { island, epoch: epoch as u32 }.in_run(run);
        match store.create_value(&path, Kind::EpochRecord, &batch.records).await {
            Err(StoreError::Differs { .. }) => {
                // Another process wrote it, in its own time: only what results depend on must agree.
                let other: Vec<EpochRecord> = store.read_value(&path, Kind::EpochRecord).await?;
                if last_mark(&other) == last_mark(&batch.records) {
                    Ok(())
                } else {
                    Err(LedgerError::Differs { island, epoch })
                }
            }
            created => Ok(created.map(|_| ())?),
        }
    }

    async fn write_checkpoint(&self, store: &Store, run: &RunId, inside: &Inside) -> Result<(), LedgerError> {
        let path = checkpoint_place(self.island, (inside.epoch, inside.generation)).in_run(run);
        match store.create_value(&path, Kind::Checkpoint, &inside.stored).await {
            // A checkpoint is computed again to the same bits, only its time differs.
            Err(StoreError::Differs { .. }) => Ok(()),
            created => Ok(created.map(|_| ())?),
        }
    }
}

fn last_mark(records: &[EpochRecord]) -> Option<&Mark> {
    records.last().map(|record| &record.mark)
}
