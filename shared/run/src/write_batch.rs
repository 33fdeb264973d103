//! A batch of objects to be written: it owns what it holds, so that it can be written outside of any lock.

use crate::commit::WriteError;
use crate::layout::{Place, RunId};
use crate::record::{EpochRecord, StoredCheckpoint};
use archipelago::{LeftBehind, Mark, Remains};
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use store::{Kind, Store, StoreError};

/// How many islands are written at a time: enough to hide the latency of a store, and to leave the cores to others.
const AT_A_TIME: usize = 32;

/// Objects of one run that are written together.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct WriteBatch {
    /// The run.
    pub run: RunId,
    /// What is written of each island.
    pub islands: Vec<Arc<IslandWrites>>,
}

/// What is to be written of one island.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct IslandWrites {
    /// The island.
    pub island: u32,
    /// Which of the island's batches this is.
    pub(crate) sequence: u64,
    /// States that are kept permanently, by their epochs.
    pub(crate) milestones: Vec<(u64, LeftBehind)>,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) checkpoint: Option<CheckpointWrite>,
}

/// Records that share one object, and what the last of their epochs left behind.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct RecordBatch {
    pub(crate) epoch: u64,
    pub(crate) left: LeftBehind,
    pub(crate) records: Vec<EpochRecord>,
}

/// A checkpoint inside an epoch.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct CheckpointWrite {
    /// The epoch.
    pub epoch: u64,
    /// The generation that it has reached.
    pub generation: u64,
    /// What is stored of it.
    pub stored: StoredCheckpoint,
}

impl WriteBatch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.islands.is_empty()
    }

    /// The islands that are written.
    pub fn islands(&self) -> impl Iterator<Item = u32> {
        self.islands.iter().map(|writes| writes.island)
    }

    /// Writes all objects. Writing a batch again is harmless: objects are only ever created.
    ///
    /// # Errors
    /// If the store fails, or holds another result.
    pub async fn write(&self, store: &Store) -> Result<(), WriteError> {
        let islands = stream::iter(&self.islands).map(Ok);
        islands.try_for_each_concurrent(AT_A_TIME, |writes| writes.write(store, &self.run)).await
    }
}

impl IslandWrites {
    /// Writes milestones, then each batch with the state at its end, then the checkpoint that continues from there.
    async fn write(&self, store: &Store, run: &RunId) -> Result<(), WriteError> {
        for (epoch, left) in &self.milestones {
            self.write_state(store, run, *epoch, left).await?;
        }
        for batch in &self.batches {
            // The state comes first, because a record promises it.
            self.write_state(store, run, batch.epoch, &batch.left).await?;
            self.write_records(store, run, batch).await?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            self.write_checkpoint(store, run, checkpoint).await?;
        }
        Ok(())
    }

    async fn write_state(
        &self,
        store: &Store,
        run: &RunId,
        epoch: u64,
        left: &LeftBehind,
    ) -> Result<(), WriteError> {
        let island = self.island;
        let place = Place::State { island, epoch: epoch as u32 };
        let remains = Remains { epoch, state: left.state.to_vec(), departure: left.departure.to_vec() };
        match store.create_value(&place.in_run(run), Kind::IslandState, &remains).await {
            Err(StoreError::Differs { .. }) => Err(WriteError::Differs { island, epoch }),
            created => Ok(created.map(|_| ())?),
        }
    }

    async fn write_records(&self, store: &Store, run: &RunId, batch: &RecordBatch) -> Result<(), WriteError> {
        let (island, epoch) = (self.island, batch.epoch);
        let path = Place::Record { island, epoch: epoch as u32 }.in_run(run);
        match store.create_value(&path, Kind::EpochRecord, &batch.records).await {
            Err(StoreError::Differs { .. }) => {
                // Another process wrote it, in its own time: only what results depend on must agree.
                let other: Vec<EpochRecord> = store.read_value(&path, Kind::EpochRecord).await?;
                if last_mark(&other) == last_mark(&batch.records) {
                    Ok(())
                } else {
                    Err(WriteError::Differs { island, epoch })
                }
            }
            created => Ok(created.map(|_| ())?),
        }
    }

    async fn write_checkpoint(
        &self,
        store: &Store,
        run: &RunId,
        checkpoint: &CheckpointWrite,
    ) -> Result<(), WriteError> {
        let CheckpointWrite { epoch, generation, stored } = checkpoint;
        let path = checkpoint_place(self.island, (*epoch, *generation)).in_run(run);
        match store.create_value(&path, Kind::Checkpoint, stored).await {
            // A checkpoint is computed again to the same bits, only its time differs.
            Err(StoreError::Differs { .. }) => Ok(()),
            created => Ok(created.map(|_| ())?),
        }
    }
}

fn last_mark(records: &[EpochRecord]) -> Option<&Mark> {
    records.last().map(|record| &record.mark)
}

/// Where a checkpoint lies.
pub(crate) fn checkpoint_place(island: u32, (epoch, generation): (u64, u64)) -> Place {
    Place::Checkpoint { island, epoch: epoch as u32, generation: generation as u32 }
}
