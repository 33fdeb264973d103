//! Group commit: what has been done in a run and is not written yet.
//!
//! Epochs may be far shorter than it takes to store one, so they are collected and written together; a crash then
//! costs what was not written yet, and it is computed again to the same bits. This is pure bookkeeping: note what is
//! done, take a batch of objects, write it without holding any lock, and settle it. While a batch is being written,
//! newer results of its islands wait.

use crate::epochs::StoredEpochs;
use crate::journal::JournalError;
use crate::layout::{Place, RunId};
use crate::pruning::Pruning;
use crate::record::EpochRecord;
use crate::write_batch::{CheckpointWrite, IslandWrites, RecordBatch, WriteBatch, checkpoint_place};
use archipelago::{Archipelago, LeftBehind};
use evolution::epoch::EpochOutcome;
use experiment::file::Retention;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::StoreError;

/// How many records, and how many bytes of milestones, may wait to be written.
const MAX_PENDING: usize = 4096;
const MAX_PENDING_BYTES: usize = 64 << 20;
/// How many islands are pruned together.
const PRUNED_AT_ONCE: usize = 64;

/// Why something of a run could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal failed, or another writer has taken it over.
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

impl WriteError {
    /// Whether the store itself failed, so that a retry may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Journal(JournalError::Store(_)))
    }

    /// Whether another coordinator that writes and deletes at the same time may cause this.
    pub fn is_of_another(&self) -> bool {
        match self {
            Self::Store(error) | Self::Journal(JournalError::Store(error)) => error.is_missing(),
            Self::Journal(JournalError::Fenced { .. }) => true,
            _ => false,
        }
    }
}

/// The bookkeeping of one run's writes.
#[derive(Clone, Debug, Hash)]
pub struct GroupCommit {
    run: RunId,
    retention: Retention,
    islands: Vec<Kept>,
    /// Islands of which something was written since they were last pruned.
    unpruned: BTreeSet<u32>,
}

/// What is kept of one island.
#[derive(Clone, Debug, Default, Hash)]
struct Kept {
    /// Records that are not written yet.
    pending: Vec<EpochRecord>,
    /// States that are to be kept permanently, and are not written yet, by their epochs.
    milestones: Vec<(u64, LeftBehind)>,
    /// A checkpoint that is not written yet.
    inside: Option<CheckpointWrite>,
    /// What is being written, or could not be: it is written as it is, or not at all.
    writes: Option<Arc<IslandWrites>>,
    /// How many batches were made.
    sequence: u64,
    /// Epochs whose records are written, and the generations that they end with.
    written: u64,
    generation: u64,
    /// Epochs whose states are stored.
    states: BTreeSet<u64>,
    /// The newest checkpoint inside an epoch that is stored, and those before it.
    checkpoint: Option<(u64, u64)>,
    superseded: BTreeSet<(u64, u64)>,
}

impl GroupCommit {
    /// Continues after stored epochs, which have been cut.
    pub fn new(run: &RunId, retention: &Retention, stored: &StoredEpochs) -> Self {
        let islands = (0..stored.records.len()).map(|island| Kept {
            written: stored.records[island].len() as u64,
            generation: stored.records[island].last().map_or(0, |last| last.mark.standing.generation),
            states: stored.states[island].clone(),
            checkpoint: stored.checkpoints[island].last().copied(),
            ..Kept::default()
        });
        let islands = islands.collect();
        Self { run: run.clone(), retention: retention.clone(), islands, unpruned: BTreeSet::new() }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Takes the record of an epoch, and its state if that is a milestone, to be written with the next batch.
    pub fn note(&mut self, island: u32, record: EpochRecord, outcome: &EpochOutcome) {
        let epoch = record.mark.epoch;
        let kept = &mut self.islands[island as usize];
        kept.pending.push(record);
        if is_milestone(&self.retention, epoch) {
            let EpochOutcome { state, departure, digest, .. } = outcome.clone();
            kept.milestones.push((epoch, LeftBehind { state, departure, digest }));
        }
    }

    /// Takes a checkpoint inside an epoch, to be written after the epochs before it.
    pub fn note_checkpoint(&mut self, island: u32, checkpoint: CheckpointWrite) {
        self.islands[island as usize].inside = Some(checkpoint);
    }

    /// Whether so much is pending that it should be written, however short the time.
    pub fn is_heavy(&self) -> bool {
        let records: usize = self.islands.iter().map(|kept| kept.pending.len()).sum();
        let milestones = self.islands.iter().flat_map(|kept| &kept.milestones);
        records > MAX_PENDING
            || milestones.map(|(_, left)| left.state.len()).sum::<usize>() > MAX_PENDING_BYTES
    }

    /// The generations of an island that a crash would cost now.
    pub fn at_stake(&self, island: u32) -> u64 {
        let kept = &self.islands[island as usize];
        kept.last_noted().map_or(0, |last| last.mark.standing.generation - kept.generation)
    }

    /// How many epochs of an island are durable.
    pub fn written(&self, island: u32) -> u64 {
        self.islands[island as usize].written
    }

    /// Whether a checkpoint of an island waits to be written.
    pub fn has_checkpoint_waiting(&self, island: u32) -> bool {
        let kept = &self.islands[island as usize];
        kept.inside.is_some() || kept.writes.as_ref().is_some_and(|writes| writes.checkpoint.is_some())
    }

    /// Whether something of an island is not written yet.
    pub fn is_unwritten(&self, island: u32) -> bool {
        self.islands[island as usize].is_unwritten()
    }

    /// Whether everything is written, and nothing is left to be deleted.
    pub fn is_settled(&self, archipelago: &Archipelago) -> bool {
        let safe = self.safe(archipelago);
        let is_pruned =
            |kept: &Kept| kept.outdated(&self.retention, safe).is_empty() && kept.superseded.is_empty();
        self.islands.iter().all(|kept| !kept.is_unwritten() && is_pruned(kept))
    }

    /// Takes what is to be written of these islands. Until it is settled, nothing newer of them is written; taking
    /// it again before that gives the same objects.
    pub fn take(&mut self, islands: impl IntoIterator<Item = u32>, archipelago: &Archipelago) -> WriteBatch {
        let mut writes = vec![];
        for island in islands {
            writes.extend(self.islands[island as usize].take(island, archipelago));
        }
        WriteBatch { run: self.run.clone(), islands: writes }
    }

    /// Notes that a batch is durable.
    pub fn settle(&mut self, batch: &WriteBatch) {
        for writes in &batch.islands {
            self.islands[writes.island as usize].settle(writes);
            self.unpruned.insert(writes.island);
        }
    }

    /// What retention does not keep of some islands of which something was written; nothing if there is none.
    pub fn pruning(&mut self, archipelago: &Archipelago) -> Option<Pruning> {
        let safe = self.safe(archipelago);
        while !self.unpruned.is_empty() {
            let mut places = vec![];
            for _ in 0..PRUNED_AT_ONCE {
                let Some(island) = self.unpruned.pop_first() else { break };
                places.extend(self.islands[island as usize].old(island, &self.retention, safe));
            }
            if !places.is_empty() {
                return Some(Pruning { run: self.run.clone(), places });
            }
        }
        None
    }

    /// Has all islands pruned, whether something was written of them or not.
    pub fn prune_everything(&mut self) {
        self.unpruned.extend(0..self.islands.len() as u32);
    }

    /// Notes that objects were deleted.
    pub fn settle_pruning(&mut self, pruning: &Pruning) {
        for place in &pruning.places {
            match *place {
                Place::State { island, epoch } => {
                    self.islands[island as usize].states.remove(&u64::from(epoch));
                }
                Place::Checkpoint { island, epoch, generation } => {
                    let inside = (u64::from(epoch), u64::from(generation));
                    self.islands[island as usize].superseded.remove(&inside);
                }
                _ => {}
            }
        }
    }

    /// The first epoch from which the run might have to be resumed.
    fn safe(&self, archipelago: &Archipelago) -> u64 {
        let slowest = self.islands.iter().map(|kept| kept.written).min().unwrap_or(0);
        slowest.min(archipelago.complete_epochs()).saturating_sub(1)
    }

    /// Drops what was not written yet of epochs after the last one that counts.
    pub fn discard_beyond(&mut self, epoch: u64) {
        for kept in &mut self.islands {
            kept.pending.retain(|record| record.mark.epoch <= epoch);
            kept.milestones.retain(|(milestone, _)| *milestone <= epoch);
            kept.inside = None;
        }
    }
}

/// Whether the state of an epoch is kept permanently.
fn is_milestone(retention: &Retention, epoch: u64) -> bool {
    retention.milestones.is_some_and(|every| (epoch + 1).is_multiple_of(every))
}

impl Kept {
    fn is_unwritten(&self) -> bool {
        !self.pending.is_empty() || self.inside.is_some() || self.writes.is_some()
    }

    /// The last epoch that is done, but not known to be written.
    fn last_noted(&self) -> Option<&EpochRecord> {
        let being_written = || self.writes.as_ref()?.batches.last()?.records.last();
        self.pending.last().or_else(being_written)
    }

    /// What is being written, or else what is next.
    fn take(&mut self, island: u32, archipelago: &Archipelago) -> Option<Arc<IslandWrites>> {
        if self.writes.is_none() {
            let milestones = std::mem::take(&mut self.milestones);
            let batches = self.batches(island, archipelago);
            let written = batches.last().map_or(self.written, |batch| batch.epoch + 1);
            let checkpoint = self.inside.take().filter(|inside| inside.epoch == written);
            let is_empty = batches.is_empty() && checkpoint.is_none();
            if !is_empty {
                self.sequence += 1;
                let sequence = self.sequence;
                let writes = IslandWrites { island, sequence, milestones, batches, checkpoint };
                self.writes = Some(Arc::new(writes));
            }
        }
        self.writes.clone()
    }

    /// The pending records: one object for all epochs up to the last that is complete on all islands, and one for each
    /// epoch after it, so that every state the run may end with is there.
    fn batches(&mut self, island: u32, archipelago: &Archipelago) -> Vec<RecordBatch> {
        let last_complete = archipelago.complete_epochs().saturating_sub(1);
        let mut batches = vec![];
        while let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) {
            let epoch = last_complete.max(first.mark.epoch).min(last.mark.epoch);
            let count = self.pending.iter().take_while(|record| record.mark.epoch <= epoch).count();
            let left = archipelago.left_by(island, epoch);
            let left = left.expect("epochs since the last complete one are remembered");
            batches.push(RecordBatch { epoch, left, records: self.pending.drain(..count).collect() });
        }
        batches
    }

    /// States that retention does not keep: not the newest, not milestones, and none from which the run would have to be
    /// taken up.
    fn outdated(&self, retention: &Retention, safe: u64) -> Vec<u64> {
        let newest = self.states.iter().rev().nth(retention.keep as usize - 1).copied().unwrap_or(0);
        let old = self.states.range(..safe.min(newest)).copied();
        old.filter(|&epoch| !is_milestone(retention, epoch)).collect()
    }

    /// What retention does not keep.
    fn old(&self, island: u32, retention: &Retention, safe: u64) -> impl Iterator<Item = Place> {
        let states = self.outdated(retention, safe).into_iter();
        let states = states.map(move |epoch| Place::State { island, epoch: epoch as u32 });
        states.chain(self.superseded.iter().map(move |&inside| checkpoint_place(island, inside)))
    }

    fn settle(&mut self, writes: &IslandWrites) {
        if self.writes.as_ref().is_none_or(|out| out.sequence != writes.sequence) {
            return;
        }
        self.writes = None;
        self.states.extend(writes.milestones.iter().map(|(epoch, _)| *epoch));
        self.states.extend(writes.batches.iter().map(|batch| batch.epoch));
        if let Some(last) = writes.batches.last() {
            self.written = last.epoch + 1;
            self.generation = last.records.last().map_or(0, |last| last.mark.standing.generation);
        }
        let newest = writes.checkpoint.as_ref().map(|inside| (inside.epoch, inside.generation));
        let is_over =
            |stored: &(u64, u64)| stored.0 < self.written || newest.is_some_and(|new| new != *stored);
        self.superseded.extend(self.checkpoint.take_if(|stored| is_over(stored)));
        self.checkpoint = newest.or(self.checkpoint);
        self.superseded.retain(|inside| Some(*inside) != self.checkpoint);
    }
}
