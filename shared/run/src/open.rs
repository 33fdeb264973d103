//! A run that is open for work: its islands and the bookkeeping of its writes, without a store.
//!
//! [`create`] and [`open`] read a run and append to its journal that it was opened. What they return is pure: it
//! notes outcomes and hands out batches to be written ([`WriteBatch`]) or deleted ([`Pruning`]), which the caller
//! carries out and settles.

use crate::commit::{GroupCommit, Names};
use crate::epochs::total;
use crate::event::{Owner, RunEvent};
use crate::fold::{Recorded, Status};
use crate::head::{GUESTS, Restored, RunError, RunHead, read_experiment};
use crate::journal::{Event, Journal, JournalHead};
use crate::layout::{ArtifactName, Place, RunId};
use crate::lock::Lock;
use crate::pruning::Pruning;
use crate::record::{EpochRecord, Labour, StoredCheckpoint};
use crate::summary::{Outline, RunKind};
use crate::write_batch::WriteBatch;
use crate::yardstick::Strengths;
use archipelago::{Archipelago, Completion, End};
use bytes::Bytes;
use codec::{Digest, Standing};
use evolution::epoch::{EpochOutcome, EpochTask, Packet};
use experiment::file::{BudgetKeys, Mode};
use experiment::{Experiment, SEMANTICS};
use std::sync::Arc;
use store::{Claim, Kind, Nonce, Store, StoreError};

/// Who opens a run, and when: a run reads no clock and draws nothing at random.
#[derive(Clone, Debug)]
pub struct Opening {
    /// A nonce that identifies this opening.
    pub nonce: Nonce,
    /// Milliseconds since 1970.
    pub now: u64,
    /// The process.
    pub owner: Owner,
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
    inherited: bool,
    owner: Owner,
    created: u64,
    status: Status,
    priority: i32,
    /// Whether a term was opened: without one nothing may be written.
    has_term: bool,
    strengths: Option<Strengths>,
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
    let (experiment, text) = read_experiment(store, run).await?;
    let (mut journal, events) = claim_journal(store, run, &opening).await?;
    let Opening { now: at, owner, .. } = opening;
    let head = RunHead::new(experiment, text, events);
    head.check(run)?;
    let recorded = head.recorded();
    let Restored { archipelago, stored, cuts, beyond } = head.restore(store, run).await?;
    // What was deleted from a finished run is computed again.
    let finished = recorded.finished.is_some() && archipelago.end().is_some();
    if head.events.is_empty() {
        let (experiment, text, version) = (head.experiment.digest(), head.text, owner.version.clone());
        let event = RunEvent::Created { experiment, text, semantics: SEMANTICS, version, at };
        journal.append(&event).await?;
    }
    let mut term = recorded.terms.last().map_or(0, |term| term.number);
    if !finished {
        term = journal.append(&RunEvent::Opened { owner: owner.clone(), cuts, batches: 0, at }).await?;
    }
    let asynchronous = head.experiment.mode() == Mode::Asynchronous;
    let names = Names { term, attempt: recorded.attempt, asynchronous };
    let retention = &head.experiment.file().retention;
    // What lies beyond the cut is computed again, as the journal says now. It is not deleted here: another coordinator that
    // opens the run may be writing objects of the same names by the time a delayed request is carried out.
    let commit = GroupCommit::new(run, retention, names, journal.head(), &stored, beyond);
    // What cannot be read is measured again, and nothing depends on it.
    let record = |island, epoch| stored.record(island, epoch);
    let (strengths, _) = Strengths::read(store, run, &head.experiment, record).await?;
    let commit = if strengths.is_some() { commit.measured(&stored) } else { commit };
    let mut checkpoints = vec![];
    let mut elapsed_before = stored.elapsed();
    for island in 0..stored.records.len() as u32 {
        let checkpoint = stored.checkpoint(store, run, island).await?;
        elapsed_before = checkpoint.as_ref().map_or(0, |c| c.elapsed).max(elapsed_before);
        checkpoints.push(checkpoint);
    }
    let open = OpenRun {
        experiment: Arc::new(head.experiment),
        archipelago,
        commit,
        checkpoints,
        elapsed_before,
        finished,
        inherited: recorded.owner().is_some(),
        owner,
        created: recorded.created.map_or(at, |created| created.at),
        status: recorded.status,
        priority: recorded.priority,
        has_term: !finished,
        strengths,
    };
    Ok((open, journal))
}

/// Claims a run for one writer, and reads its journal.
///
/// # Errors
/// [`RunError::Busy`] if another process works on the run; otherwise as for [`Journal::open`].
pub(crate) async fn claim_journal(
    store: &Store,
    run: &RunId,
    opening: &Opening,
) -> Result<(Journal, Vec<Event<RunEvent>>), RunError> {
    let busy = |owner: String| RunError::Busy { run: run.clone(), owner };
    let lock = match opening.claim {
        None => Some(Lock::take(store, run, &opening.owner)?),
        Some(_) => None,
    };
    if lock.is_none()
        && let Some(holder) = Lock::holder(store, run)?
    {
        return Err(busy(holder.to_string()));
    }
    let (journal, events) = Journal::open(store, run, opening.nonce).await?;
    let recorded = Recorded::of(events.iter().map(|event| &event.body));
    if lock.is_some()
        && recorded.status.is_open()
        && let Some(owner) = recorded.owner()
        && Lock::server(store)?.is_some_and(|server| server.is(owner))
    {
        return Err(busy(format!("the coordinator, {owner}")));
    }
    Ok((journal.locked(lock), events))
}

/// The checkpoint of an epoch, which is to take no more than it had taken when the checkpoint was made: asynchronously
/// more may have arrived since. If something is not remembered any more, or the checkpoint is one of other inputs, the
/// epoch starts again.
fn resume_at(archipelago: &Archipelago, task: &mut EpochTask, checkpoint: StoredCheckpoint) -> Option<Bytes> {
    let took = |packet: &Packet| checkpoint.took.contains(&(packet.from, packet.epoch));
    let packets: Vec<Packet> = task.packets.iter().filter(|packet| took(packet)).cloned().collect();
    let resumed = EpochTask { packets, ..task.clone() };
    if archipelago.inputs(&resumed) != checkpoint.inputs {
        return None;
    }
    *task = resumed;
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

    /// Its experiment, to be kept beside it.
    pub fn shared_experiment(&self) -> Arc<Experiment> {
        self.experiment.clone()
    }

    /// Its islands.
    pub fn archipelago(&self) -> &Archipelago {
        &self.archipelago
    }

    /// The bookkeeping of its writes.
    pub fn commit(&self) -> &GroupCommit {
        &self.commit
    }

    /// What had been measured of its champions, if they are measured.
    pub fn strengths(&self) -> Option<&Strengths> {
        self.strengths.as_ref()
    }

    /// For how long the run had been worked on before it was opened, in milliseconds.
    pub fn elapsed_before(&self) -> u64 {
        self.elapsed_before
    }

    /// Whether the run was finished before, and nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// How it stood when it was claimed.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// The priority that it had when it was claimed.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Whether it was open before.
    pub fn is_inherited(&self) -> bool {
        self.inherited
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
        let checkpoint =
            checkpoint.and_then(|checkpoint| resume_at(&self.archipelago, &mut task, checkpoint));
        Assignment { task, checkpoint }
    }

    /// Takes an epoch back that was assigned, because it is to begin again.
    pub fn release(&mut self, island: u32) {
        self.archipelago.release(island);
    }

    /// Takes an epoch's outcome, and returns whether it counts: what lies beyond the end of the run does not.
    ///
    /// # Errors
    /// If the outcome does not fit, or differs from one that was accepted before.
    pub fn complete(
        &mut self,
        task: &EpochTask,
        outcome: &EpochOutcome,
        labour: Labour,
    ) -> Result<bool, RunError> {
        match self.archipelago.complete(task, outcome)? {
            Completion::New(mark) => {
                let record = EpochRecord { mark, statistics: outcome.statistics.clone(), labour };
                self.commit.note(task.island, record, outcome);
                Ok(true)
            }
            Completion::Repeated => Ok(true),
            Completion::Late => Ok(false),
        }
    }

    /// Takes a checkpoint inside an epoch, to be written.
    pub fn note_checkpoint(&mut self, task: &EpochTask, standing: Standing, bytes: &Bytes, labour: Labour) {
        let took = task.packets.iter().map(|packet| (packet.from, packet.epoch)).collect();
        let Labour { worker, elapsed, .. } = labour;
        let inputs = self.archipelago.inputs(task);
        let stored = StoredCheckpoint { bytes: bytes.to_vec(), took, elapsed, worker, inputs };
        self.commit.note_checkpoint(task.island, task.epoch, standing.generation, stored);
    }

    /// The most generations of an island that a crash would cost now.
    pub fn at_stake(&self) -> u64 {
        let islands = 0..self.experiment.setting().islands.len() as u32;
        islands.map(|island| self.commit.at_stake(island)).max().unwrap_or(0)
    }

    fn set_aside_beyond_the_end(&mut self) {
        if let Some(end) = self.archipelago.end() {
            self.commit.set_aside_beyond(end.epoch);
        }
    }

    /// Takes what is to be written of these islands, and of others that must be durable with them.
    pub fn take_batch(&mut self, islands: impl IntoIterator<Item = u32>) -> WriteBatch {
        self.set_aside_beyond_the_end();
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
        self.set_aside_beyond_the_end();
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
        extended.map_err(|report| refused(report.without_places()))?;
        let done = self.archipelago.generation();
        if let Some(asked) = budget.generations.filter(|&asked| asked < done) {
            return Err(refused(format!("expected at least the {done} generations it has, found `{asked}`")));
        }
        let complete = self.archipelago.complete_epochs();
        let budget = serde_json::json!(budget).to_string();
        Ok((RunEvent::Extended { budget, complete, at: now }, complete))
    }

    /// Announces another budget, whose event is being written: until [`OpenRun::extend`] or
    /// [`OpenRun::withdraw_extension`] nothing beyond it is begun or taken.
    pub fn propose_extension(&mut self, budget: &BudgetKeys) {
        self.archipelago.propose_budget(budget.generations);
    }

    /// Continues with the current budget: the first proposed one could not be written.
    pub fn withdraw_extension(&mut self) {
        self.archipelago.withdraw_budget();
    }

    /// The event that opens a term, if there is none: to be written after [`OpenRun::extension`], and noted with
    /// [`OpenRun::begin_term`].
    pub fn opening(&self, now: u64) -> Option<RunEvent> {
        let islands = 0..self.experiment.setting().islands.len() as u32;
        let cuts = islands.map(|island| self.archipelago.done(island)).collect();
        let owner = self.owner.clone();
        (!self.has_term).then_some(RunEvent::Opened { owner, cuts, batches: 0, at: now })
    }

    /// Notes that a term was opened by the event of this number.
    pub fn begin_term(&mut self, number: u64) {
        self.commit.begin_term(number);
        self.has_term = true;
    }

    /// Notes the end of the journal after an event was written.
    pub fn note_event(&mut self, journal: JournalHead) {
        self.commit.note_event(journal);
    }

    /// When the run was created, in milliseconds since 1970.
    pub fn created(&self) -> u64 {
        self.created
    }

    /// The progress of the run, with the milliseconds that it has been computed.
    pub fn outline(&self, elapsed: u64) -> Outline {
        let islands = 0..self.experiment.setting().islands.len() as u32;
        let last = || islands.clone().filter_map(|island| self.archipelago.standing(island)).collect();
        let ends = self.archipelago.final_states();
        let standings: Vec<Standing> =
            ends.map_or_else(last, |ends| ends.into_iter().map(|(_, standing)| standing).collect());
        Outline {
            kind: RunKind::Evolution,
            standing: (!standings.is_empty()).then(|| total(standings.iter().copied(), islands.len())),
            goal: self.archipelago.generations(),
            islands: islands.end,
            elapsed,
        }
    }

    /// Replaces the budget of the run, after the event is written. `epochs` were complete everywhere then.
    pub fn extend(&mut self, budget: &BudgetKeys, complete: u64) {
        let Ok(extended) = self.experiment.with_budget(budget.clone()) else { return };
        self.archipelago.extend(complete, *extended.budget());
        self.commit.take_back();
        self.archipelago.judge_again();
        self.finished = false;
    }

    /// Where the run is to end because its time is up, if that is open: to be written as [`RunEvent::Decided`] before
    /// [`OpenRun::decide`], or else withdrawn. Nothing of it continues in between.
    pub fn propose_end(&mut self) -> Option<End> {
        self.archipelago.propose_end()
    }

    /// Continues: the end that was proposed could not be written.
    pub fn withdraw(&mut self) {
        self.archipelago.withdraw();
    }

    /// Ends the run as was decided, and written.
    pub fn decide(&mut self, end: End) {
        self.archipelago.decide(end);
    }

    /// The event that says that the run is finished, once it has ended and unless that was written before. Everything
    /// must have been written.
    pub fn finish(&self, now: u64, elapsed: u64) -> Option<RunEvent> {
        let (end, digest) = (self.archipelago.end()?.clone(), self.archipelago.digest()?);
        (!self.finished).then_some(RunEvent::Finished { end: Some(end), digest, at: now, elapsed })
    }

    /// Notes that the event of its end is written.
    pub fn note_finished(&mut self) {
        self.finished = true;
    }
}
