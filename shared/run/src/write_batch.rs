//! A batch of objects to be written: it owns what it holds, so that it can be written outside of any lock.

use crate::commit::WriteError;
use crate::journal::JournalHead;
use crate::layout::{Place, RunId, StateName};
use crate::record::{Commit, EpochRecord, StoredCheckpoint};
use archipelago::{LeftBehind, Remains};
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;
use store::{Kind, Store, StoreError};

/// How many objects are written at a time: enough to hide the latency of a store, and to leave the cores to others.
const AT_A_TIME: usize = 32;

/// Objects of one run that are written together.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct WriteBatch {
    /// The run.
    pub run: RunId,
    /// What is written; nothing if everything is.
    pub(crate) commit: Option<Arc<CommitWrite>>,
}

/// What is written of some islands: states, then one object with the records that promise them, then checkpoints.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct CommitWrite {
    pub(crate) term: u64,
    pub(crate) number: u64,
    pub(crate) journal: JournalHead,
    pub(crate) islands: Vec<IslandWrites>,
}

/// What is written of one island.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct IslandWrites {
    pub(crate) island: u32,
    pub(crate) states: Vec<(StateName, LeftBehind)>,
    pub(crate) records: Vec<EpochRecord>,
    pub(crate) checkpoint: Option<CheckpointWrite>,
}

/// A checkpoint inside an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckpointWrite {
    pub(crate) generation: u64,
    pub(crate) of: StateName,
    pub(crate) stored: StoredCheckpoint,
}

impl WriteBatch {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.commit.is_none()
    }

    /// The islands that are written.
    pub fn islands(&self) -> impl Iterator<Item = u32> {
        self.commit.iter().flat_map(|commit| &commit.islands).map(|writes| writes.island)
    }

    /// Writes all objects. Writing a batch again is harmless: objects are only ever created.
    ///
    /// # Errors
    /// If the store fails, or holds another result.
    pub async fn write(&self, store: &Store) -> Result<(), WriteError> {
        match &self.commit {
            Some(commit) => commit.write(store, &self.run).await,
            None => Ok(()),
        }
    }
}

impl CommitWrite {
    async fn write(&self, store: &Store, run: &RunId) -> Result<(), WriteError> {
        let states = self.islands.iter().flat_map(|writes| &writes.states);
        let states = stream::iter(states).map(Ok);
        states
            .try_for_each_concurrent(AT_A_TIME, |(name, left)| write_state(store, run, *name, left))
            .await?;
        self.write_records(store, run).await?;
        let checkpoints = self.islands.iter().filter_map(|writes| writes.checkpoint.as_ref());
        let checkpoints = stream::iter(checkpoints).map(Ok);
        checkpoints.try_for_each_concurrent(AT_A_TIME, |write| write_checkpoint(store, run, write)).await
    }

    async fn write_records(&self, store: &Store, run: &RunId) -> Result<(), WriteError> {
        let recorded = self.islands.iter().filter(|writes| !writes.records.is_empty());
        let islands: Vec<_> = recorded.map(|writes| (writes.island, writes.records.clone())).collect();
        if islands.is_empty() {
            return Ok(());
        }
        let place = Place::Commit { term: self.term, number: self.number };
        let commit = Commit { journal: self.journal, islands };
        store.create_value(&place.in_run(run), Kind::Commit, &commit).await?;
        Ok(())
    }
}

async fn write_state(
    store: &Store,
    run: &RunId,
    name: StateName,
    left: &LeftBehind,
) -> Result<(), WriteError> {
    let StateName { island, epoch, .. } = name;
    let remains = Remains { epoch, state: left.state.to_vec(), departure: left.departure.to_vec() };
    match store.create_value(&Place::State(name).in_run(run), Kind::IslandState, &remains).await {
        Err(StoreError::Differs { .. }) => Err(WriteError::Differs { island, epoch }),
        created => Ok(created.map(|_| ())?),
    }
}

async fn write_checkpoint(store: &Store, run: &RunId, write: &CheckpointWrite) -> Result<(), WriteError> {
    let place = Place::Checkpoint { generation: write.generation, of: write.of };
    match store.create_value(&place.in_run(run), Kind::Checkpoint, &write.stored).await {
        // A checkpoint is computed again to the same bits, only its time and its author differ.
        Err(StoreError::Differs { .. }) => Ok(()),
        created => Ok(created.map(|_| ())?),
    }
}
