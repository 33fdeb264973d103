//! The ledger: what has been done and decided in a run, kept in a store.
//!
//! Epochs may be far shorter than it takes to store one, so they are collected and written together; a crash then
//! costs what was not written yet, and it is computed again to the same bits. What is to be written is put together as
//! pages, and noted as written once they are: in between, the ledger is free for others.

use crate::history::Past;
use crate::page::{Batch, Inside, Page, Writing};
use crate::record::{EpochRecord, RunEvent};
use crate::thinning::{Thinned, Thinning, checkpoint_place};
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
/// How many islands are thinned out together.
const THINNED_AT_ONCE: usize = 64;

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
    /// Islands of which something was written since they were last thinned out.
    overgrown: BTreeSet<u32>,
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
    /// The newest checkpoint inside an epoch that is stored, and those before it.
    checkpoint: Option<(u64, u64)>,
    superseded: BTreeSet<(u64, u64)>,
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
            overgrown: BTreeSet::new(),
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
        let is_thin =
            |kept: &Kept| kept.outdated(&self.retention, safe).is_empty() && kept.superseded.is_empty();
        self.islands.iter().all(|kept| !kept.is_unwritten() && is_thin(kept))
    }

    /// Puts together what is to be written of these islands. Until it is settled, nothing newer of them is written.
    pub(crate) fn pages(
        &mut self,
        islands: impl IntoIterator<Item = u32>,
        archipelago: &Archipelago,
    ) -> Writing {
        let mut pages = vec![];
        for island in islands {
            pages.extend(self.islands[island as usize].page(island, archipelago));
        }
        Writing { store: self.store.clone(), run: self.run.clone(), pages }
    }

    /// Notes that pages are written.
    pub(crate) fn settle(&mut self, writing: &Writing) {
        for page in &writing.pages {
            self.islands[page.island as usize].settle(page);
            self.overgrown.insert(page.island);
        }
    }

    /// What nobody needs any more of some islands of which something was written.
    pub(crate) fn thinning(&mut self, archipelago: &Archipelago) -> Thinning {
        let safe = self.safe(archipelago);
        let mut old = vec![];
        for _ in 0..THINNED_AT_ONCE {
            let Some(island) = self.overgrown.pop_first() else { break };
            old.extend(self.islands[island as usize].old(island, &self.retention, safe));
        }
        Thinning { store: self.store.clone(), run: self.run.clone(), claim: self.claim.clone(), old }
    }

    /// Has all islands thinned out, whether something was written of them or not.
    pub(crate) fn thin_out_everything(&mut self) {
        self.overgrown.extend(0..self.islands.len() as u32);
    }

    /// Whether some islands are to be thinned out.
    pub(crate) fn is_overgrown(&self) -> bool {
        !self.overgrown.is_empty()
    }

    /// Notes that something was deleted.
    pub(crate) fn forget(&mut self, thinning: &Thinning) {
        for place in &thinning.old {
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

    /// Writes everything that is pending, and thins out the past.
    pub async fn flush(&mut self, archipelago: &Archipelago) -> Result<(), LedgerError> {
        loop {
            let writing = self.pages(0..self.islands.len() as u32, archipelago);
            if writing.is_empty() {
                break;
            }
            writing.write().await?;
            self.settle(&writing);
        }
        self.thin_out_everything();
        while self.is_overgrown() {
            let thinning = self.thinning(archipelago);
            if thinning.is_empty() {
                continue;
            }
            if thinning.delete().await? == Thinned::NotOurs {
                break;
            }
            self.forget(&thinning);
        }
        Ok(())
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
    fn page(&mut self, island: u32, archipelago: &Archipelago) -> Option<Arc<Page>> {
        if self.page.is_none() {
            let milestones = std::mem::take(&mut self.milestones);
            let batches = self.batches(island, archipelago);
            let written = batches.last().map_or(self.written, |batch| batch.epoch + 1);
            let checkpoint = self.inside.take().filter(|inside| inside.epoch == written);
            let is_empty = batches.is_empty() && checkpoint.is_none();
            self.page = (!is_empty).then(|| Page { island, milestones, batches, checkpoint }.into());
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

    /// What nobody needs any more.
    fn old(&self, island: u32, retention: &Retention, safe: u64) -> impl Iterator<Item = Place> {
        let states = self.outdated(retention, safe).into_iter();
        let states = states.map(move |epoch| Place::State { island, epoch: epoch as u32 });
        states.chain(self.superseded.iter().map(move |&inside| checkpoint_place(island, inside)))
    }

    fn settle(&mut self, page: &Arc<Page>) {
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
        let newest = page.checkpoint.as_ref().map(|inside| (inside.epoch, inside.generation));
        let is_over =
            |stored: &(u64, u64)| stored.0 < self.written || newest.is_some_and(|new| new != *stored);
        self.superseded.extend(self.checkpoint.take_if(|stored| is_over(stored)));
        self.checkpoint = newest.or(self.checkpoint);
        self.superseded.retain(|inside| Some(*inside) != self.checkpoint);
    }
}
