//! Group commit: results of a run that are not written yet.
//!
//! An epoch may be much shorter than a durable write, so epochs are collected and written together. A crash loses what was
//! not written yet; it is computed again, to the same bits. This is pure bookkeeping: note results, take a batch of objects,
//! write it without holding any lock, and settle it. Until a batch is settled, newer results wait.
//!
//! After every commit, the run can be resumed from everything that is durable: each island has its states from the last
//! epoch on that is durable on all islands, and everything that it took from others is durable with it.

use crate::epochs::StoredEpochs;
use crate::journal::{JournalError, JournalHead};
use crate::layout::{Place, RunId, StateName};
use crate::pruning::Pruning;
use crate::record::{EpochRecord, StoredCheckpoint};
use crate::write_batch::{CheckpointWrite, CommitWrite, IslandWrites, WriteBatch};
use crate::yardstick::Milestone;
use archipelago::{Archipelago, LeftBehind};
use evolution::epoch::EpochOutcome;
use experiment::file::Retention;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::StoreError;

/// The most records, and the most bytes of milestones, that may wait to be written.
const MAX_PENDING: usize = 1024;
const MAX_PENDING_BYTES: usize = 64 << 20;
/// Of a run with a yardstick, how many of the newest records of an island are remembered beside those whose states are
/// stored.
const REMEMBERED: u64 = 16;
/// How many islands are pruned together.
const PRUNED_AT_ONCE: usize = 64;

/// Why a write of a run failed.
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

    /// Whether the store failed without a statement about its contents, so that a retry may succeed.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Store(error) | Self::Journal(JournalError::Store(error)) => {
                !error.is_damage() && !error.is_permanent()
            }
            _ => false,
        }
    }

    /// Whether another coordinator that writes and deletes at the same time may cause this.
    pub fn is_of_another(&self) -> bool {
        match self {
            Self::Store(error) | Self::Journal(JournalError::Store(error)) => error.is_missing(),
            error => error.is_fenced(),
        }
    }

    /// Whether another coordinator has written the event that was to be written here.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Journal(JournalError::Fenced { .. }))
    }
}

/// The bookkeeping of one run's writes.
#[derive(Clone, Debug, Hash)]
pub struct GroupCommit {
    run: RunId,
    retention: Retention,
    names: Names,
    journal: JournalHead,
    islands: Vec<Kept>,
    /// The commit that is being written, or failed: it is written unchanged, before any other.
    unsettled: Option<Arc<CommitWrite>>,
    next: u64,
    /// Not in a commit yet: number of records, and bytes of milestones.
    pending: (usize, usize),
    /// Islands with writes since they were last pruned.
    unpruned: BTreeSet<u32>,
    /// Whether records are remembered, because champions of stored states are measured.
    is_measured: bool,
}

/// The parts that the names of new objects share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Names {
    /// The number of the event that opened the term.
    pub term: u64,
    /// How often results were retracted.
    pub attempt: u64,
    /// Whether epochs depend on arrival, so that names of states carry the term.
    pub asynchronous: bool,
}

impl Names {
    fn state(&self, island: u32, epoch: u64) -> StateName {
        let term = if self.asynchronous { self.term } else { 0 };
        StateName { island, epoch, attempt: self.attempt, term }
    }
}

/// One island.
#[derive(Clone, Debug, Default, Hash)]
struct Kept {
    /// Records that are not in a commit yet.
    pending: Vec<EpochRecord>,
    /// States that are to be kept permanently, and are not in a commit yet, by their epochs.
    milestones: Vec<(u64, LeftBehind)>,
    /// Records and milestones beyond the end of the run: they count only if it is extended.
    beyond: (Vec<EpochRecord>, Vec<(u64, LeftBehind)>),
    /// A checkpoint that is not in a commit yet.
    inside: Option<CheckpointWrite>,
    /// Whether it is in the unsettled commit.
    in_commit: bool,
    /// Epochs whose records are written, and the generations that they end with.
    written: u64,
    generation: u64,
    /// The generation at the end of what is in the unsettled commit, if that holds records.
    committing: Option<u64>,
    /// Epochs whose states are stored.
    states: BTreeMap<u64, StateName>,
    /// The records of these epochs, if champions are measured.
    records: BTreeMap<u64, EpochRecord>,
    /// The newest checkpoint inside an epoch that is stored, and those before it.
    checkpoint: Option<(u64, StateName)>,
    superseded: BTreeSet<(u64, StateName)>,
    /// States and checkpoints that lay beyond where the run was cut when it was opened.
    strays: BTreeSet<Place>,
}

impl GroupCommit {
    /// Continues after stored epochs, which have been cut.
    pub fn new(
        run: &RunId,
        retention: &Retention,
        names: Names,
        journal: JournalHead,
        stored: &StoredEpochs,
        beyond: Vec<Place>,
    ) -> Self {
        let mut strays: BTreeMap<u32, BTreeSet<Place>> = BTreeMap::new();
        for place in beyond {
            if let Some(of) = place.state() {
                strays.entry(of.island).or_default().insert(place);
            }
        }
        let islands = (0..stored.records.len()).map(|island| {
            let mut checkpoints = stored.checkpoints[island].clone();
            let checkpoint = checkpoints.pop_last();
            Kept {
                written: stored.records[island].len() as u64,
                generation: stored.records[island].last().map_or(0, |last| last.mark.standing.generation),
                states: stored.states[island].clone(),
                checkpoint,
                superseded: checkpoints.into_iter().collect(),
                strays: strays.remove(&(island as u32)).unwrap_or_default(),
                ..Kept::default()
            }
        });
        Self {
            run: run.clone(),
            retention: retention.clone(),
            names,
            journal,
            islands: islands.collect(),
            unsettled: None,
            next: 0,
            pending: (0, 0),
            unpruned: BTreeSet::new(),
            is_measured: false,
        }
    }

    /// Remembers the records of stored states, so that their champions can be measured.
    #[must_use]
    pub fn measured(mut self, stored: &StoredEpochs) -> Self {
        self.is_measured = true;
        for (kept, records) in self.islands.iter_mut().zip(&stored.records) {
            let of_states = records.iter().filter(|record| kept.states.contains_key(&record.mark.epoch));
            kept.records = of_states.map(|record| (record.mark.epoch, record.clone())).collect();
        }
        self
    }

    /// The champion of an island after an epoch whose state is stored, if champions are measured.
    pub fn milestone(&self, island: u32, epoch: u64) -> Option<Milestone> {
        let kept = self.islands.get(island as usize)?;
        let (name, record) = (*kept.states.get(&epoch)?, kept.records.get(&epoch)?.clone());
        Some(Milestone { name, record })
    }

    /// The epochs of an island from this one on whose states are stored and kept permanently, if champions are measured.
    pub fn milestones(&self, island: u32, from: u64) -> impl Iterator<Item = u64> {
        let kept = self.islands.get(island as usize);
        let epochs =
            kept.into_iter().flat_map(move |kept| kept.records.range(from..).map(|(&epoch, _)| epoch));
        epochs.filter(|&epoch| is_milestone(&self.retention, epoch))
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The term in which it writes.
    pub fn term(&self) -> u64 {
        self.names.term
    }

    /// Begins a term. Nothing may be unsettled.
    pub fn begin_term(&mut self, number: u64) {
        (self.names.term, self.next) = (number, 0);
    }

    /// Notes the end of the journal after an event was written.
    pub fn note_event(&mut self, journal: JournalHead) {
        self.journal = journal;
    }

    /// Takes the record of an epoch, and its state if that is a milestone, to be written with the next batch.
    pub fn note(&mut self, island: u32, record: EpochRecord, outcome: &EpochOutcome) {
        let epoch = record.mark.epoch;
        let kept = &mut self.islands[island as usize];
        kept.pending.push(record);
        self.pending.0 += 1;
        if is_milestone(&self.retention, epoch) {
            self.pending.1 += outcome.state.len();
            let EpochOutcome { state, departure, left, .. } = outcome.clone();
            kept.milestones.push((epoch, LeftBehind { state, departure, digest: left }));
        }
    }

    /// Takes a checkpoint inside an epoch, to be written after the epochs before it.
    pub fn note_checkpoint(&mut self, island: u32, epoch: u64, generation: u64, stored: StoredCheckpoint) {
        let of = self.names.state(island, epoch);
        self.islands[island as usize].inside = Some(CheckpointWrite { generation, of, stored });
    }

    /// The pending amount as a multiple of the amount that is written at once, whatever the time.
    pub fn weight(&self) -> usize {
        let (records, bytes) = self.pending;
        (records / MAX_PENDING).max(bytes / MAX_PENDING_BYTES)
    }

    fn count_pending(&mut self) {
        let records = self.islands.iter().map(|kept| kept.pending.len()).sum();
        let milestones = self.islands.iter().flat_map(|kept| &kept.milestones);
        self.pending = (records, milestones.map(|(_, left)| left.state.len()).sum());
    }

    /// The generations of an island that a crash would lose now.
    pub fn at_stake(&self, island: u32) -> u64 {
        let kept = &self.islands[island as usize];
        let last = kept.pending.last().map(|last| last.mark.standing.generation).or(kept.committing);
        last.map_or(0, |last| last - kept.generation)
    }

    /// How many epochs of an island are durable.
    pub fn written(&self, island: u32) -> u64 {
        self.islands[island as usize].written
    }

    /// Whether an island has results that are not written yet.
    pub fn is_unwritten(&self, island: u32) -> bool {
        self.islands[island as usize].is_unwritten()
    }

    /// Whether everything is written, and nothing is left to be deleted.
    pub fn is_settled(&self, archipelago: &Archipelago) -> bool {
        let safe = self.safe(archipelago);
        let is_pruned = |kept: &Kept| kept.old(&self.retention, self.names, safe).next().is_none();
        self.islands.iter().all(|kept| !kept.is_unwritten() && is_pruned(kept))
    }

    /// Whether a commit is not settled yet.
    pub fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }

    /// Takes what is to be written of these islands, and of others that must be durable with them. While a commit is not
    /// settled, it is the same objects again.
    pub fn take(&mut self, islands: impl IntoIterator<Item = u32>, archipelago: &Archipelago) -> WriteBatch {
        if self.unsettled.is_none() {
            let together = self.together(islands, archipelago);
            let writes: Vec<IslandWrites> = together
                .into_iter()
                .filter_map(|island| self.islands[island as usize].take(island, self.names, archipelago))
                .collect();
            if !writes.is_empty() {
                let (term, number, journal) = (self.names.term, self.next, self.journal);
                self.next += 1;
                self.unsettled = Some(Arc::new(CommitWrite { term, number, journal, islands: writes }));
                self.count_pending();
            }
        }
        WriteBatch { run: self.run.clone(), commit: self.unsettled.clone() }
    }

    /// Islands, and those that must be written with them: islands from which something has come to them, and, if states
    /// are left out that are no longer in memory, all that are not yet durable up to there.
    fn together(&self, islands: impl IntoIterator<Item = u32>, archipelago: &Archipelago) -> BTreeSet<u32> {
        let mut all = BTreeSet::new();
        self.add_with_senders(&mut all, islands, archipelago);
        let complete = archipelago.complete_epochs();
        if all.iter().any(|&island| self.islands[island as usize].leaves_out(complete)) {
            let is_behind = |island: &u32| self.islands[*island as usize].written < complete;
            let behind: Vec<u32> = (0..self.islands.len() as u32).filter(is_behind).collect();
            self.add_with_senders(&mut all, behind, archipelago);
        }
        all
    }

    /// Adds islands, and all from which something has come to them.
    fn add_with_senders(
        &self,
        all: &mut BTreeSet<u32>,
        islands: impl IntoIterator<Item = u32>,
        archipelago: &Archipelago,
    ) {
        let mut added: Vec<u32> = islands.into_iter().filter(|&island| all.insert(island)).collect();
        while let Some(island) = added.pop() {
            for &sender in archipelago.senders(island) {
                if self.is_unwritten(sender) && all.insert(sender) {
                    added.push(sender);
                }
            }
        }
    }

    /// Notes that a batch is durable.
    pub fn settle(&mut self, batch: &WriteBatch) {
        let Some(commit) = &batch.commit else { return };
        if self.unsettled.take_if(|unsettled| unsettled.number == commit.number).is_none() {
            return;
        }
        for writes in &commit.islands {
            let kept = &mut self.islands[writes.island as usize];
            kept.settle(writes);
            if self.is_measured {
                kept.remember(&writes.records);
            }
            self.unpruned.insert(writes.island);
        }
    }

    /// What retention does not keep of some of the islands with new writes; none if there is nothing to delete.
    pub fn pruning(&mut self, archipelago: &Archipelago) -> Option<Pruning> {
        let safe = self.safe(archipelago);
        while !self.unpruned.is_empty() {
            let mut places = vec![];
            for _ in 0..PRUNED_AT_ONCE {
                let Some(island) = self.unpruned.pop_first() else { break };
                places.extend(self.islands[island as usize].old(&self.retention, self.names, safe));
            }
            if !places.is_empty() {
                return Some(Pruning { run: self.run.clone(), places });
            }
        }
        None
    }

    /// Marks all islands for pruning, also those without new writes.
    pub fn prune_everything(&mut self) {
        self.unpruned.extend(0..self.islands.len() as u32);
    }

    /// Notes that objects were deleted.
    pub fn settle_pruning(&mut self, pruning: &Pruning) {
        for place in &pruning.places {
            if let Some(of) = place.state() {
                self.islands[of.island as usize].strays.remove(place);
            }
            match place {
                Place::State(name) => {
                    let states = &mut self.islands[name.island as usize].states;
                    if states.get(&name.epoch) == Some(name) {
                        states.remove(&name.epoch);
                        self.islands[name.island as usize].records.remove(&name.epoch);
                    }
                }
                Place::Checkpoint { generation, of } => {
                    self.islands[of.island as usize].superseded.remove(&(*generation, *of));
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

    /// Sets aside pending records of epochs after the last one that counts.
    pub fn set_aside_beyond(&mut self, epoch: u64) {
        for kept in &mut self.islands {
            let (records, milestones) = &mut kept.beyond;
            records.extend(kept.pending.extract_if(.., |record| record.mark.epoch > epoch));
            milestones.extend(kept.milestones.extract_if(.., |(milestone, _)| *milestone > epoch));
            kept.inside = None;
        }
        self.count_pending();
    }

    /// Takes back what was set aside, because the run continues.
    pub fn take_back(&mut self) {
        for kept in &mut self.islands {
            let (records, milestones) = std::mem::take(&mut kept.beyond);
            kept.pending.extend(records);
            kept.milestones.extend(milestones);
        }
        self.count_pending();
    }
}

/// Whether the state of an epoch is kept permanently.
pub(crate) fn is_milestone(retention: &Retention, epoch: u64) -> bool {
    retention.milestones.is_some_and(|every| (epoch + 1).is_multiple_of(every))
}

impl Kept {
    fn is_unwritten(&self) -> bool {
        !self.pending.is_empty() || self.inside.is_some() || self.in_commit
    }

    /// Whether states of unwritten epochs would be left out, because this number of epochs is complete everywhere.
    fn leaves_out(&self, complete: u64) -> bool {
        self.pending.first().is_some_and(|first| first.mark.epoch + 1 < complete)
    }

    /// What is next to be written.
    fn take(&mut self, island: u32, names: Names, archipelago: &Archipelago) -> Option<IslandWrites> {
        let mut states: BTreeMap<u64, LeftBehind> =
            std::mem::take(&mut self.milestones).into_iter().collect();
        let records = std::mem::take(&mut self.pending);
        // One state at the last epoch that is complete on all islands, and one for each epoch after it, so that every
        // state the run may end with is there.
        let last_complete = archipelago.complete_epochs().saturating_sub(1);
        if let (Some(first), Some(last)) = (records.first(), records.last()) {
            let first = last_complete.max(first.mark.epoch).min(last.mark.epoch);
            for epoch in first..=last.mark.epoch {
                let left = archipelago.left_by(island, epoch);
                let left = left.expect("epochs since the last complete one are remembered");
                states.insert(epoch, left);
            }
        }
        let written = records.last().map_or(self.written, |last| last.mark.epoch + 1);
        let checkpoint = self.inside.take().filter(|inside| inside.of.epoch == written);
        if records.is_empty() && checkpoint.is_none() {
            return None;
        }
        self.in_commit = true;
        self.committing = records.last().map(|last| last.mark.standing.generation);
        let states = states.into_iter().map(|(epoch, left)| (names.state(island, epoch), left)).collect();
        Some(IslandWrites { island, states, records, checkpoint })
    }

    /// States that retention does not keep: not the newest, not milestones, and none from which the run would have to be
    /// resumed.
    fn outdated(&self, retention: &Retention, safe: u64) -> Vec<StateName> {
        let newest = self.states.keys().rev().nth(retention.keep as usize - 1).copied().unwrap_or(0);
        let old = self.states.range(..safe.min(newest));
        old.filter(|(epoch, _)| !is_milestone(retention, **epoch)).map(|(_, name)| *name).collect()
    }

    /// What retention does not keep.
    fn old(&self, retention: &Retention, names: Names, safe: u64) -> impl Iterator<Item = Place> {
        let states = self.outdated(retention, safe).into_iter().map(Place::State);
        let checkpoints = self.superseded.iter();
        let checkpoints = checkpoints.map(|&(generation, of)| Place::Checkpoint { generation, of });
        let strays = self.strays.iter().filter(move |place| self.is_over(place, names, safe)).cloned();
        states.chain(checkpoints).chain(strays)
    }

    /// Whether an object beyond the cut will never be written or needed again: it has a name of an earlier term or
    /// attempt, or its epoch is long written. A delayed deletion can then do no harm, even if another process has opened
    /// the run since.
    fn is_over(&self, place: &Place, names: Names, safe: u64) -> bool {
        let Some(of) = place.state() else { return false };
        let is_earlier = of.attempt < names.attempt || names.asynchronous && of.term < names.term;
        let is_past = match place {
            Place::State(_) => of.epoch < safe,
            _ => of.epoch < self.written,
        };
        is_earlier || is_past
    }

    /// Remembers records of epochs whose champions may be measured.
    fn remember(&mut self, records: &[EpochRecord]) {
        self.records.extend(records.iter().map(|record| (record.mark.epoch, record.clone())));
        let (states, written) = (&self.states, self.written);
        self.records.retain(|epoch, _| states.contains_key(epoch) || epoch + REMEMBERED >= written);
    }

    fn settle(&mut self, writes: &IslandWrites) {
        (self.in_commit, self.committing) = (false, None);
        self.states.extend(writes.states.iter().map(|(name, _)| (name.epoch, *name)));
        for (name, _) in &writes.states {
            self.strays.remove(&Place::State(*name));
        }
        if let Some(CheckpointWrite { generation, of, .. }) = writes.checkpoint {
            self.strays.remove(&Place::Checkpoint { generation, of });
        }
        if let Some(last) = writes.records.last() {
            self.written = last.mark.epoch + 1;
            self.generation = last.mark.standing.generation;
        }
        let newest = writes.checkpoint.as_ref().map(|write| (write.generation, write.of));
        let is_over = |stored: &(u64, StateName)| {
            stored.1.epoch < self.written || newest.is_some_and(|new| new != *stored)
        };
        self.superseded.extend(self.checkpoint.take_if(|stored| is_over(stored)));
        self.checkpoint = newest.or(self.checkpoint);
        let current = self.checkpoint;
        self.superseded.retain(|inside| Some(*inside) != current);
    }
}
