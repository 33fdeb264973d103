//! The ledger: what has been done and decided in a run, kept in a store.
//!
//! Epochs may be far shorter than it takes to store one, so they are collected and written together; a crash then
//! costs what was not written yet, and it is computed again to the same bits. What is to be written is put together as
//! [pages](Page), and noted as written once they are: in between, the ledger is free for others.

use crate::history::Past;
use crate::page::{Batch, Cleared, Inside, Page, Writing, checkpoint_place};
use crate::record::{EpochRecord, RunEvent};
use archipelago::{Archipelago, LeftBehind};
use bytes::Bytes;
use evolution::epoch::EpochOutcome;
use experiment::file::Retention;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Claim, Journal, JournalError, Kind, Place, RunId, Store, StoreError};

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
    /// Without which nothing is deleted, if there may be other coordinators.
    claim: Option<Claim>,
    islands: Vec<Kept>,
}

/// What is kept of one island.
#[derive(Default)]
struct Kept {
    /// Records that are not written yet.
    pending: Vec<EpochRecord>,
    /// States that are to be kept for good, and are not written yet, by their epochs.
    milestones: Vec<(u64, LeftBehind)>,
    /// A checkpoint that is not written yet.
    inside: Option<Inside>,
    /// What is being written, or could not be: it is written as it is, or not at all.
    page: Option<Arc<Page>>,
    /// Epochs whose records are written, and the generations that they end with.
    written: u64,
    generation: u64,
    /// Epochs whose states are stored.
    states: BTreeSet<u64>,
    /// The newest checkpoint inside an epoch that is stored.
    checkpoint: Option<(u64, u64)>,
}

impl Ledger {
    /// Goes on after a past, which has been cut.
    pub(crate) fn new(
        store: &Store,
        journal: Journal,
        claim: Option<Claim>,
        retention: &Retention,
        past: &Past,
    ) -> Self {
        let islands = (0..past.records.len()).map(|island| Kept {
            written: past.records[island].len() as u64,
            generation: past.records[island].last().map_or(0, |last| last.mark.standing.generation),
            states: past.states[island].clone(),
            checkpoint: past.checkpoints[island].last().copied(),
            ..Kept::default()
        });
        Self {
            store: store.clone(),
            run: journal.run().clone(),
            journal,
            retention: retention.clone(),
            claim,
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
        let kept = &mut self.islands[island as usize];
        kept.pending.push(record);
        if is_milestone(&self.retention, epoch) {
            let EpochOutcome { state, departure, digest, .. } = outcome.clone();
            kept.milestones.push((epoch, LeftBehind { state, departure, digest }));
        }
    }

    /// Takes a checkpoint inside an epoch, to be written after the epochs before it.
    pub(crate) fn note_checkpoint(&mut self, island: u32, inside: Inside) {
        self.islands[island as usize].inside = Some(inside);
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

    /// How many epochs of an island are written.
    pub(crate) fn written(&self, island: u32) -> u64 {
        self.islands[island as usize].written
    }

    /// Whether a checkpoint of an island waits to be written.
    pub(crate) fn has_checkpoint_waiting(&self, island: u32) -> bool {
        let kept = &self.islands[island as usize];
        kept.inside.is_some() || kept.page.as_ref().is_some_and(|page| page.checkpoint.is_some())
    }

    /// Whether something of an island is not written yet.
    pub(crate) fn is_unwritten(&self, island: u32) -> bool {
        self.islands[island as usize].is_unwritten()
    }

    /// Whether everything is written, and nothing is left to be deleted.
    pub(crate) fn is_settled(&self, archipelago: &Archipelago) -> bool {
        let safe = self.safe(archipelago);
        self.islands
            .iter()
            .all(|kept| !kept.is_unwritten() && kept.outdated(&self.retention, safe).is_empty())
    }

    /// Puts together what is to be written of these islands, and what can be thinned out of their pasts. Until it is
    /// settled, nothing newer of them is written.
    pub(crate) fn pages(
        &mut self,
        islands: impl IntoIterator<Item = u32>,
        archipelago: &Archipelago,
    ) -> Writing {
        let safe = self.safe(archipelago);
        let mut pages = vec![];
        for island in islands {
            pages.extend(self.islands[island as usize].page(island, &self.retention, safe, archipelago));
        }
        Writing { store: self.store.clone(), run: self.run.clone(), claim: self.claim.clone(), pages }
    }

    /// Notes that pages are written.
    pub(crate) fn settle(&mut self, writing: &Writing, cleared: Cleared) {
        for page in &writing.pages {
            self.islands[page.island as usize].settle(page, cleared);
        }
    }

    /// Writes everything that is pending, and thins out the past.
    pub async fn flush(&mut self, archipelago: &Archipelago) -> Result<(), LedgerError> {
        loop {
            let writing = self.pages(0..self.islands.len() as u32, archipelago);
            if writing.is_empty() {
                return Ok(());
            }
            let cleared = writing.write().await?;
            self.settle(&writing, cleared);
            if cleared == Cleared::NotOurs {
                return Ok(());
            }
        }
    }

    /// The first epoch from which the run might have to be taken up.
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
    fn is_unwritten(&self) -> bool {
        !self.pending.is_empty() || self.inside.is_some() || self.page.is_some()
    }

    /// The last epoch that is done, but not known to be written.
    fn last_noted(&self) -> Option<&EpochRecord> {
        let being_written = || self.page.as_ref()?.batches.last()?.records.last();
        self.pending.last().or_else(being_written)
    }

    /// What is being written, or else what is next.
    fn page(
        &mut self,
        island: u32,
        retention: &Retention,
        safe: u64,
        archipelago: &Archipelago,
    ) -> Option<Arc<Page>> {
        if self.page.is_none() {
            let milestones = std::mem::take(&mut self.milestones);
            let batches = self.batches(island, archipelago);
            let written = batches.last().map_or(self.written, |batch| batch.epoch + 1);
            let checkpoint = self.inside.take().filter(|inside| inside.epoch == written);
            let states = self.outdated(retention, safe).into_iter();
            let old = states.map(|epoch| Place::State { island, epoch: epoch as u32 });
            let superseded = self.superseded(written, checkpoint.as_ref());
            let old: Vec<Place> =
                old.chain(superseded.map(|inside| checkpoint_place(island, inside))).collect();
            let is_empty = batches.is_empty() && checkpoint.is_none() && old.is_empty();
            self.page = (!is_empty).then(|| Page { island, milestones, batches, checkpoint, old }.into());
        }
        self.page.clone()
    }

    /// The pending records: one object for all epochs up to the last that is complete on all islands, and one for each
    /// epoch after it, so that every state the run may end with is there.
    fn batches(&mut self, island: u32, archipelago: &Archipelago) -> Vec<Batch> {
        let last_complete = archipelago.complete_epochs().saturating_sub(1);
        let mut batches = vec![];
        while let (Some(first), Some(last)) = (self.pending.first(), self.pending.last()) {
            let epoch = last_complete.max(first.mark.epoch).min(last.mark.epoch);
            let count = self.pending.iter().take_while(|record| record.mark.epoch <= epoch).count();
            let left = archipelago.left_by(island, epoch);
            let left = left.expect("epochs since the last complete one are remembered");
            batches.push(Batch { epoch, left, records: self.pending.drain(..count).collect() });
        }
        batches
    }

    /// States that nobody needs any more: not the newest, not milestones, and none from which the run would have to be
    /// taken up.
    fn outdated(&self, retention: &Retention, safe: u64) -> Vec<u64> {
        let newest = self.states.iter().rev().nth(retention.keep as usize - 1).copied().unwrap_or(0);
        let old = self.states.range(..safe.min(newest)).copied();
        old.filter(|&epoch| !is_milestone(retention, epoch)).collect()
    }

    /// The stored checkpoint, if so many epochs or another checkpoint go beyond it.
    fn superseded(&self, written: u64, by: Option<&Inside>) -> Option<(u64, u64)> {
        let beyond = |stored: (u64, u64)| by.is_some_and(|by| stored != (by.epoch, by.generation));
        self.checkpoint.filter(|&stored| stored.0 < written || beyond(stored))
    }

    fn settle(&mut self, page: &Arc<Page>, cleared: Cleared) {
        if !self.page.as_ref().is_some_and(|out| Arc::ptr_eq(out, page)) {
            return;
        }
        self.page = None;
        self.states.extend(page.milestones.iter().map(|(epoch, _)| *epoch));
        self.states.extend(page.batches.iter().map(|batch| batch.epoch));
        if let Some(last) = page.batches.last() {
            self.written = last.epoch + 1;
            self.generation = last.records.last().map_or(0, |last| last.mark.standing.generation);
        }
        for place in page.old.iter().filter(|_| cleared == Cleared::Yes) {
            match place {
                Place::State { epoch, .. } => drop(self.states.remove(&u64::from(*epoch))),
                _ => self.checkpoint = None,
            }
        }
        if let Some(inside) = &page.checkpoint {
            self.checkpoint = Some((inside.epoch, inside.generation));
        }
    }
}
