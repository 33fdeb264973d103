//! The keeper of one run: the run as it is open, joined with the store and the journal that it is written to.

use bytes::Bytes;
use codec::{Digest, Standing};
use evolution::epoch::EpochTask;
use experiment::Experiment;
use experiment::file::BudgetKeys;
use run::{Journal, OpenRun, Opening, Pruned, RunError, RunEvent, RunId};
use std::ops::{Deref, DerefMut};
use store::{Claim, Store};

/// One run, open in a store.
pub struct Keeper {
    open: OpenRun,
    journal: Journal,
    store: Store,
    claim: Option<Claim>,
}

impl Deref for Keeper {
    type Target = OpenRun;

    fn deref(&self) -> &OpenRun {
        &self.open
    }
}

impl DerefMut for Keeper {
    fn deref_mut(&mut self) -> &mut OpenRun {
        &mut self.open
    }
}

impl Keeper {
    /// Creates a run, unless it is there already, and opens it.
    pub async fn create(
        store: &Store,
        run: &RunId,
        experiment: &Experiment,
        guests: Option<Bytes>,
        opening: Opening,
    ) -> Result<Self, RunError> {
        let claim = opening.claim.clone();
        let (open, journal) = run::create(store, run, experiment, guests, opening).await?;
        Ok(Self { open, journal, store: store.clone(), claim })
    }

    /// Opens a run: whoever had it open before will find out when it writes its next event.
    pub async fn open(store: &Store, run: &RunId, opening: Opening) -> Result<Self, RunError> {
        let claim = opening.claim.clone();
        let (open, journal) = run::open(store, run, opening).await?;
        Ok(Self { open, journal, store: store.clone(), claim })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Writes an event to the run's journal before it is acted on.
    pub async fn log(&mut self, event: &RunEvent) -> Result<(), RunError> {
        self.journal.append(event).await?;
        Ok(())
    }

    /// Gives the run another budget.
    pub async fn extend(&mut self, budget: BudgetKeys, now: u64) -> Result<(), RunError> {
        let event = self.open.extension(&budget, now)?;
        self.log(&event).await?;
        self.open.extend(budget);
        Ok(())
    }

    /// Writes everything that is not written yet, and prunes.
    pub async fn flush(&mut self) -> Result<(), RunError> {
        loop {
            let batch = self.open.take_everything();
            if batch.is_empty() {
                break;
            }
            batch.write(&self.store).await?;
            self.open.settle(&batch);
        }
        self.open.prune_everything();
        while let Some(pruning) = self.open.pruning() {
            if pruning.delete(&self.store, self.claim.as_ref()).await? == Pruned::NotOurs {
                break;
            }
            self.open.settle_pruning(&pruning);
        }
        Ok(())
    }

    /// Writes a checkpoint inside an epoch, and whatever was done before it.
    pub async fn checkpoint(
        &mut self,
        task: &EpochTask,
        standing: Standing,
        bytes: &Bytes,
        elapsed: u64,
    ) -> Result<(), RunError> {
        self.open.note_checkpoint(task, standing, bytes, elapsed);
        self.flush().await
    }

    /// Ends the run at the last epoch that is complete everywhere, because its time is up. Answers whether there is
    /// such an epoch yet.
    pub async fn end_now(&mut self, now: u64) -> Result<bool, RunError> {
        let Some(ending) = self.open.ending_now() else { return Ok(false) };
        if let Some(end) = ending {
            self.log(&RunEvent::Decided { end: end.clone(), at: now }).await?;
            self.open.decide(end);
        }
        Ok(true)
    }

    /// Writes down that the run is finished, once it has ended.
    pub async fn finish(&mut self, now: u64, elapsed: u64) -> Result<Option<Digest>, RunError> {
        if let Some(event) = self.open.finish(now, elapsed) {
            self.flush().await?;
            self.log(&event).await?;
            self.open.note_finished();
        }
        Ok(self.open.archipelago().digest())
    }
}
