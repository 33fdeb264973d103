//! The ledger: what has been done and decided in a run, kept in a store.
//!
//! Epochs may be far shorter than it takes to store one, so they are collected and written together; a crash then
//! costs what was not written yet, and it is computed again to the same bits.

use crate::history::Past;
use crate::record::{EpochRecord, RunEvent, StoredCheckpoint};
use archipelago::{Archipelago, Mark, Remains};
use bytes::Bytes;
use evolution::epoch::EpochOutcome;
use experiment::file::Retention;
use futures::future::try_join_all;
use std::collections::BTreeSet;
use store::{Journal, JournalError, Kind, Place, RunId, Store, StoreError};

/// How many records, and how many bytes of milestones, may wait to be written.
const MAX_PENDING: usize = 4096;
const MAX_PENDING_BYTES: usize = 64 << 20;

/// Why a run could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal failed, or belongs to somebody else by now.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An epoch is stored with another result.
    #[error(
        "island {island}, epoch {epoch}: the store holds another result than was computed now: corruption"
    )]
    Differs {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
}

impl LedgerError {
    /// Whether the store itself failed, which may pass.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Journal(JournalError::Store(_)))
    }

    /// Whether this comes of another coordinator that writes and deletes at the same time.
    pub(crate) fn is_of_another(&self) -> bool {
        match self {
            Self::Store(error) | Self::Journal(JournalError::Store(error)) => error.is_missing(),
            Self::Journal(JournalError::Fenced { .. }) => true,
            _ => false,
        }
    }
}

/// The keeper of a run's records.
pub struct Ledger {
    store: Store,
    run: RunId,
    journal: Journal,
    retention: Retention,
    islands: Vec<Kept>,
}

/// What is kept of one island.
#[derive(Default)]
struct Kept {
    /// Records that are not written yet.
    pending: Vec<EpochRecord>,
    /// States that are to be kept for good, and are not written yet.
    milestones: Vec<Remains>,
    /// Epochs whose records are written, and the generations that they end with.
    written: u64,
    generation: u64,
    /// Epochs whose states are stored.
    states: BTreeSet<u64>,
    /// The newest checkpoint inside an epoch.
    checkpoint: Option<(u64, u64)>,
}

impl Ledger {
    /// Goes on after a past, which has been cut.
    pub(crate) fn new(
        store: &Store,
        run: &RunId,
        journal: Journal,
        retention: &Retention,
        past: &Past,
    ) -> Self {
        let islands = (0..past.records.len()).map(|island| Kept {
            pending: vec![],
            milestones: vec![],
            written: past.records[island].len() as u64,
            generation: past.records[island].last().map_or(0, |last| last.mark.standing.generation),
            states: past.states[island].clone(),
            checkpoint: past.checkpoints[island].last().copied(),
        });
        Self {
            store: store.clone(),
            run: run.clone(),
            journal,
            retention: retention.clone(),
            islands: islands.collect(),
        }
    }

    /// Writes an event before it is acted on.
    pub async fn log(&mut self, event: &RunEvent) -> Result<(), LedgerError> {
        self.journal.append(event).await?;
        Ok(())
    }

    /// Takes the record of an epoch, and its state if that is a milestone, to be written with the next ones.
    pub fn note(&mut self, island: u32, record: EpochRecord, outcome: &EpochOutcome) {
        let epoch = record.mark.epoch;
        let milestone = is_milestone(&self.retention, epoch);
        let kept = &mut self.islands[island as usize];
        kept.pending.push(record);
        if milestone {
            let (state, departure) = (outcome.state.to_vec(), outcome.departure.to_vec());
            kept.milestones.push(Remains { epoch, state, departure });
        }
    }

    /// Whether so much is pending that it should be written, however short the time.
    pub fn is_heavy(&self) -> bool {
        let records: usize = self.islands.iter().map(|kept| kept.pending.len()).sum();
        let milestones = self.islands.iter().flat_map(|kept| &kept.milestones);
        records > MAX_PENDING
            || milestones.map(|remains| remains.state.len()).sum::<usize>() > MAX_PENDING_BYTES
    }

    /// The generations of an island that a crash would cost now.
    pub fn at_stake(&self, island: u32) -> u64 {
        let kept = &self.islands[island as usize];
        kept.pending.last().map_or(0, |last| last.mark.standing.generation - kept.generation)
    }

    /// Writes everything that is pending, and thins out the past.
    pub async fn flush(&mut self, archipelago: &Archipelago) -> Result<(), LedgerError> {
        let last_complete = archipelago.complete_epochs().saturating_sub(1);
        let (store, run) = (&self.store, &self.run);
        let islands = self.islands.iter_mut().enumerate().filter(|(_, kept)| !kept.pending.is_empty());
        try_join_all(
            islands.map(|(island, kept)| kept.flush(store, run, island as u32, last_complete, archipelago)),
        )
        .await?;
        self.thin_out(last_complete).await?;
        Ok(())
    }

    /// Writes a checkpoint inside an epoch, and drops the one before it.
    pub async fn checkpoint(
        &mut self,
        archipelago: &Archipelago,
        island: u32,
        (epoch, generation): (u64, u64),
        checkpoint: &StoredCheckpoint,
    ) -> Result<(), LedgerError> {
        // It goes on from the epochs before it, so they are written first.
        self.flush(archipelago).await?;
        let kept = &mut self.islands[island as usize];
        if kept.written != epoch {
            return Ok(());
        }
        let place = |(epoch, generation): (u64, u64)| {
            Place::Checkpoint { island, epoch: epoch as u32, generation: generation as u32 }.in_run(&self.run)
        };
        let path = place((epoch, generation));
        match self.store.create_value(&path, Kind::Checkpoint, checkpoint).await {
            // A checkpoint is computed again to the same bits, only its time differs.
            Ok(_) | Err(StoreError::Differs { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let before = kept.checkpoint.replace((epoch, generation)).filter(|&old| old != (epoch, generation));
        if let Some(before) = before {
            self.store.delete(&place(before)).await?;
        }
        Ok(())
    }

    /// Deletes states that nobody needs any more: not the newest, not milestones, and none from which the run would
    /// have to be taken up.
    async fn thin_out(&mut self, last_complete: u64) -> Result<(), LedgerError> {
        let slowest = self.islands.iter().map(|kept| kept.written).min().unwrap_or(0).saturating_sub(1);
        let safe = slowest.min(last_complete);
        for (island, kept) in self.islands.iter_mut().enumerate() {
            let newest = kept.states.iter().rev().nth(self.retention.keep as usize - 1).copied().unwrap_or(0);
            let retention = &self.retention;
            let milestone = |epoch: u64| is_milestone(retention, epoch);
            let old: Vec<u64> = kept
                .states
                .iter()
                .copied()
                .filter(|&epoch| epoch < safe && epoch < newest && !milestone(epoch))
                .collect();
            for epoch in old {
                let place = Place::State { island: island as u32, epoch: epoch as u32 };
                self.store.delete(&place.in_run(&self.run)).await?;
                kept.states.remove(&epoch);
            }
        }
        Ok(())
    }

    /// Drops what was not written yet of epochs after the last one that counts.
    pub fn discard_beyond(&mut self, epoch: u64) {
        for kept in &mut self.islands {
            kept.pending.retain(|record| record.mark.epoch <= epoch);
            kept.milestones.retain(|remains| remains.epoch <= epoch);
        }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Creates a text beside the records, unless it is there.
    pub async fn artifact(&self, name: &str, text: &str) -> Result<(), LedgerError> {
        let name = store::ArtifactName::new(name).expect("artifacts are named by us");
        match self.store.create_text(&Place::Artifact(name).in_run(&self.run), text).await {
            Ok(_) | Err(StoreError::Differs { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates an artifact of bytes.
    pub async fn artifact_bytes(&self, name: &str, bytes: Bytes) -> Result<(), LedgerError> {
        let name = store::ArtifactName::new(name).expect("artifacts are named by us");
        let path = Place::Artifact(name).in_run(&self.run);
        self.store.create(&path, Kind::Artifact, bytes).await?;
        Ok(())
    }
}

/// Whether the state of an epoch is kept for good.
fn is_milestone(retention: &Retention, epoch: u64) -> bool {
    retention.milestones.is_some_and(|every| (epoch + 1).is_multiple_of(every))
}

impl Kept {
    /// Writes the pending records: one object for all epochs up to the last that is complete on all islands, and one
    /// for each epoch after it, so that every state the run may end with is there.
    async fn flush(
        &mut self,
        store: &Store,
        run: &RunId,
        island: u32,
        last_complete: u64,
        archipelago: &Archipelago,
    ) -> Result<(), LedgerError> {
        for remains in std::mem::take(&mut self.milestones) {
            self.write_state(store, run, island, &remains).await?;
        }
        while !self.pending.is_empty() {
            let first = self.pending[0].mark.epoch;
            let last = self.pending.iter().map(|record| record.mark.epoch).max().unwrap_or(first);
            let until = last_complete.max(first).min(last);
            let count = self.pending.iter().take_while(|record| record.mark.epoch <= until).count();
            let remains = archipelago
                .remains(island, until)
                .expect("epochs since the last complete one are remembered");
            self.write(store, run, island, &remains, count).await?;
        }
        Ok(())
    }

    async fn write_state(
        &mut self,
        store: &Store,
        run: &RunId,
        island: u32,
        remains: &Remains,
    ) -> Result<(), LedgerError> {
        let epoch = remains.epoch;
        let place = Place::State { island, epoch: epoch as u32 };
        match store.create_value(&place.in_run(run), Kind::IslandState, remains).await {
            Ok(_) => {}
            Err(StoreError::Differs { .. }) => return Err(LedgerError::Differs { island, epoch }),
            Err(error) => return Err(error.into()),
        }
        self.states.insert(epoch);
        Ok(())
    }

    /// Writes one object of records and the state at its end; the state first, because a record promises it.
    async fn write(
        &mut self,
        store: &Store,
        run: &RunId,
        island: u32,
        remains: &Remains,
        count: usize,
    ) -> Result<(), LedgerError> {
        let epoch = remains.epoch;
        self.write_state(store, run, island, remains).await?;
        let batch: Vec<EpochRecord> = self.pending[..count].to_vec();
        let path = Place::Record { island, epoch: epoch as u32 }.in_run(run);
        match store.create_value(&path, Kind::EpochRecord, &batch).await {
            Ok(_) => {}
            Err(StoreError::Differs { .. }) => {
                // Another process wrote it, in its own time: only what results depend on must agree.
                let other: Vec<EpochRecord> = store.read_value(&path, Kind::EpochRecord).await?;
                let marks = |batch: &[EpochRecord]| -> Option<Mark> { batch.last().map(|r| r.mark.clone()) };
                if marks(&other) != marks(&batch) {
                    return Err(LedgerError::Differs { island, epoch });
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.pending.drain(..count);
        self.written = epoch + 1;
        self.generation = batch.last().map_or(0, |last| last.mark.standing.generation);
        if let Some((inside, generation)) = self.checkpoint.take_if(|(inside, _)| *inside <= epoch) {
            let place = Place::Checkpoint { island, epoch: inside as u32, generation: generation as u32 };
            store.delete(&place.in_run(run)).await?;
        }
        Ok(())
    }
}
