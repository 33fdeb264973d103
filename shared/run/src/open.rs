//! A run that is open for work: its islands and the bookkeeping of its writes, without a store.
//!
//! [`create`] and [`open`] read a run and append to its journal that it was opened. What they return is pure: it
//! notes outcomes and hands out batches to be written ([`WriteBatch`]) or deleted ([`Pruning`]), which the caller
//! carries out and settles.

use crate::commit::GroupCommit;
use crate::event::RunEvent;
use crate::head::{GUESTS, RunError, RunHead, read_experiment};
use crate::journal::Journal;
use crate::layout::{ArtifactName, Place, RunId};
use crate::pruning::{Pruning, is_ours};
use crate::record::{EpochRecord, Labour, StoredCheckpoint};
use crate::write_batch::{CheckpointWrite, WriteBatch};
use archipelago::{Archipelago, Completion, End};
use bytes::Bytes;
use codec::{Digest, Standing};
use evolution::epoch::{EpochOutcome, EpochTask, Packet};
use experiment::file::BudgetKeys;
use experiment::{Experiment, SEMANTICS};
use std::sync::Arc;
use store::{Claim, Kind, Nonce, Store, StoreError};

/// Who opens a run, and when: a run reads no clock and draws nothing at random.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Tells this opening from all others.
    pub nonce: Nonce,
    /// Milliseconds since 1970.
    pub now: u64,
    /// The version of the program.
    pub version: String,
    /// The claim to the store, if there may be other coordinators: nothing is deleted once it is void.
    pub claim: Option<Claim>,
}

/// One run, open.
#[derive(Clone, Debug)]
pub struct OpenRun {
    experiment: Arc<Experiment>,
    archipelago: Archipelago,
    commit: GroupCommit,
    checkpoints: Vec<Option<StoredCheckpoint>>,
    elapsed_before: u64,
    finished: bool,
}

/// An epoch to be run, perhaps from somewhere inside it.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The epoch.
    pub task: EpochTask,
    /// Where to resume it.
    pub checkpoint: Option<Bytes>,
}

/// Creates a run, unless it is there already, and opens it.
///
/// # Errors
/// If the store fails, or the run id belongs to a different experiment.
pub async fn create(
    store: &Store,
    run: &RunId,
    experiment: &Experiment,
    guests: Option<Bytes>,
    opening: Opening,
) -> Result<(OpenRun, Journal), RunError> {
    write_experiment(store, run, experiment, guests).await?;
    open(store, run, opening).await
}

/// Writes down what a run is to compute, unless it is there already.
///
/// # Errors
/// If the store fails, or the run id belongs to a different experiment.
pub async fn write_experiment(
    store: &Store,
    run: &RunId,
    experiment: &Experiment,
    guests: Option<Bytes>,
) -> Result<(), RunError> {
    if let Some(guests) = guests {
        let place = Place::Artifact(ArtifactName::new(GUESTS).expect("it is a plain word"));
        store.create(&place.in_run(run), Kind::Artifact, guests).await?;
    }
    match store.create_text(&Place::Experiment.in_run(run), &experiment.to_toml()).await {
        Ok(_) => Ok(()),
        Err(StoreError::Differs { .. }) => {
            let found = read_experiment(store, run).await?.0.digest();
            let expected = experiment.digest();
            if found == expected {
                Ok(())
            } else {
                Err(RunError::Other { run: run.clone(), expected, found })
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a run: a process that had it open before finds out when it writes its next event.
///
/// # Errors
/// If the store fails, or what it holds of the run cannot be read.
pub async fn open(store: &Store, run: &RunId, opening: Opening) -> Result<(OpenRun, Journal), RunError> {
    let head = RunHead::read(store, run).await?;
    let Opening { nonce, now: at, version, claim } = opening;
    let (mut journal, events) = Journal::open::<RunEvent>(store, run, nonce).await?;
    let was_finished = head.recorded().finished.is_some();
    if events.is_empty() {
        let experiment = head.experiment.digest();
        let text = head.text;
        let version = version.clone();
        let event = RunEvent::Created { experiment, text, semantics: SEMANTICS, version, at };
        journal.append(&event).await?;
    } else if !was_finished {
        journal.append(&RunEvent::Opened { version: version.clone(), at }).await?;
    }
    let (archipelago, stored, beyond) = head.restore(store, run).await?;
    // What was deleted from a finished run is computed again.
    let finished = was_finished && archipelago.end().is_some();
    if was_finished && !finished {
        journal.append(&RunEvent::Opened { version, at }).await?;
    }
    if !beyond.is_empty() && is_ours(claim.as_ref()).await? {
        for place in beyond {
            store.delete(&place.in_run(run)).await?;
        }
    }
    let commit = GroupCommit::new(run, &head.experiment.file().retention, &stored);
    let mut checkpoints = vec![];
    let mut elapsed_before = stored.elapsed();
    for island in 0..stored.records.len() as u32 {
        let checkpoint = stored.checkpoint(store, run, island).await?;
        elapsed_before = checkpoint.as_ref().map_or(0, |c| c.elapsed).max(elapsed_before);
        checkpoints.push(checkpoint);
    }
    let experiment = Arc::new(head.experiment);
    Ok((OpenRun { experiment, archipelago, commit, checkpoints, elapsed_before, finished }, journal))
}

/// The checkpoint of an epoch, which is to take no more than it had taken when the checkpoint was made: asynchronously
/// more may have arrived since. If something is not remembered any more, the epoch begins anew.
fn resume_at(task: &mut EpochTask, checkpoint: StoredCheckpoint) -> Option<Bytes> {
    let took = |packet: &Packet| checkpoint.took.contains(&(packet.from, packet.epoch));
    if task.packets.iter().filter(|packet| took(packet)).count() < checkpoint.took.len() {
        return None;
    }
    task.packets.retain(took);
    Some(checkpoint.bytes.into())
}

impl OpenRun {
    /// The run.
    pub fn run(&self) -> &RunId {
        self.commit.run()
    }

    /// Its experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Its islands.
    pub fn archipelago(&self) -> &Archipelago {
        &self.archipelago
    }

    /// The bookkeeping of its writes.
    pub fn commit(&self) -> &GroupCommit {
        &self.commit
    }

    /// For how long the run had been worked on before it was opened, in milliseconds.
    pub fn elapsed_before(&self) -> u64 {
        self.elapsed_before
    }

    /// Whether the run was finished before, and nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// The next epoch that may be run, if there is one now.
    pub fn assign(&mut self) -> Option<Assignment> {
        let island = self.archipelago.next_ready()?;
        Some(self.assign_ready(island))
    }

    /// The next epoch of an island, if it may be run and its inputs are these.
    pub fn assign_known(&mut self, island: u32, epoch: u64, inputs: &Digest) -> Option<Assignment> {
        let task = self.archipelago.peek(island).filter(|task| task.epoch == epoch)?;
        (self.archipelago.inputs(&task) == *inputs).then(|| self.assign_ready(island))
    }

    /// The next epoch of an island that is ready.
    pub fn assign_ready(&mut self, island: u32) -> Assignment {
        let mut task = self.archipelago.begin(island);
        let checkpoint = self.checkpoints[island as usize].take();
        let checkpoint = checkpoint.and_then(|checkpoint| resume_at(&mut task, checkpoint));
        Assignment { task, checkpoint }
    }

    /// Takes an epoch back that was assigned, because it is to begin again.
    pub fn release(&mut self, island: u32) {
        self.archipelago.release(island);
    }

    /// Takes an epoch's outcome.
    ///
    /// # Errors
    /// If the outcome does not fit, or differs from one that was accepted before.
    pub fn complete(
        &mut self,
        task: &EpochTask,
        outcome: &EpochOutcome,
        labour: Labour,
    ) -> Result<(), RunError> {
        if let Completion::New(mark) = self.archipelago.complete(task, outcome)? {
            let record = EpochRecord { mark, statistics: outcome.statistics.clone(), labour };
            self.commit.note(task.island, record, outcome);
        }
        Ok(())
    }

    /// Takes a checkpoint inside an epoch, to be written.
    pub fn note_checkpoint(&mut self, task: &EpochTask, standing: Standing, bytes: &Bytes, elapsed: u64) {
        let took = task.packets.iter().map(|packet| (packet.from, packet.epoch)).collect();
        let stored = StoredCheckpoint { bytes: bytes.to_vec(), took, elapsed };
        let checkpoint = CheckpointWrite { epoch: task.epoch, generation: standing.generation, stored };
        self.commit.note_checkpoint(task.island, checkpoint);
    }

    /// The most generations of an island that a crash would cost now.
    pub fn at_stake(&self) -> u64 {
        let islands = 0..self.experiment.setting().islands.len() as u32;
        islands.map(|island| self.commit.at_stake(island)).max().unwrap_or(0)
    }

    fn discard_beyond_the_end(&mut self) {
        if let Some(end) = self.archipelago.end() {
            self.commit.discard_beyond(end.epoch);
        }
    }

    /// Takes what is to be written of these islands.
    pub fn take_batch(&mut self, islands: impl IntoIterator<Item = u32>) -> WriteBatch {
        self.discard_beyond_the_end();
        self.commit.take(islands, &self.archipelago)
    }

    /// Takes everything that is to be written.
    pub fn take_everything(&mut self) -> WriteBatch {
        self.take_batch(0..self.experiment.setting().islands.len() as u32)
    }

    /// Notes that a batch is durable.
    pub fn settle(&mut self, batch: &WriteBatch) {
        self.commit.settle(batch);
    }

    /// What may be deleted now, if there is something.
    pub fn pruning(&mut self) -> Option<Pruning> {
        self.commit.pruning(&self.archipelago)
    }

    /// Has everything deleted that retention does not keep.
    pub fn prune_everything(&mut self) {
        self.commit.prune_everything();
    }

    /// Notes that objects were deleted.
    pub fn settle_pruning(&mut self, pruning: &Pruning) {
        self.commit.settle_pruning(pruning);
    }

    /// Whether nothing is left to be written or deleted.
    pub fn is_settled(&mut self) -> bool {
        self.discard_beyond_the_end();
        self.commit.is_settled(&self.archipelago)
    }

    /// The event that gives the run another budget, to be written before [`OpenRun::extend`], and the epochs that are
    /// complete by then.
    ///
    /// # Errors
    /// If the run cannot have this budget.
    pub fn extension(&self, budget: &BudgetKeys, now: u64) -> Result<(RunEvent, u64), RunError> {
        let refused = |reason: String| RunError::Budget { run: self.run().clone(), reason };
        let extended = self.experiment.with_budget(budget.clone());
        extended.map_err(|report| refused(report.to_string()))?;
        let done = self.archipelago.generation();
        if let Some(asked) = budget.generations.filter(|&asked| asked < done) {
            return Err(refused(format!(
                "expected more than the {done} generations it has, found `{asked}`"
            )));
        }
        let complete = self.archipelago.complete_epochs();
        let budget = serde_json::json!(budget).to_string();
        Ok((RunEvent::Extended { budget, complete, at: now }, complete))
    }

    /// Gives the run another budget, after the event is written, which was when so many epochs were complete.
    pub fn extend(&mut self, budget: &BudgetKeys, complete: u64) {
        let Ok(extended) = self.experiment.with_budget(budget.clone()) else { return };
        self.archipelago.extend(complete, *extended.budget());
        self.archipelago.judge_again();
        self.finished = false;
    }

    /// Where the run ends if its time is up now, unless it has ended: to be written as [`RunEvent::Decided`] before
    /// [`OpenRun::decide`]. The outer value is nothing while no epoch is complete on all islands.
    pub fn ending_now(&self) -> Option<Option<End>> {
        let end = self.archipelago.ending_now()?;
        Some(self.archipelago.end().is_none().then_some(end))
    }

    /// Ends the run as was decided, and written.
    pub fn decide(&mut self, end: End) {
        self.archipelago.decide(end);
    }

    /// The event that says that the run is finished, once it has ended and unless that was written before. Everything
    /// must have been written.
    pub fn finish(&self, now: u64, elapsed: u64) -> Option<RunEvent> {
        let (end, digest) = (self.archipelago.end()?.clone(), self.archipelago.digest()?);
        (!self.finished).then_some(RunEvent::Finished { end, digest, at: now, elapsed })
    }

    /// Notes that the event of its end is written.
    pub fn note_finished(&mut self) {
        self.finished = true;
    }
}
