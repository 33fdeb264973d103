//! The keeper of one run: its archipelago and its ledger, opened, driven and closed together.

use crate::history::Past;
use crate::ledger::{Ledger, LedgerError};
use crate::page::{Inside, Writing};
use crate::record::{EpochRecord, Labour, RunEvent, StoredCheckpoint};
use crate::thinning::{Thinning, is_ours};
use archipelago::{Archipelago, Completion, CompletionError, End, Mark};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, EpochTask, Packet, Standing};
use experiment::document::Report;
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan, SEMANTICS};
use store::{Claim, Journal, JournalError, Kind, Nonce, Place, RunId, Store, StoreError};

/// The largest experiment that is read back from a store.
const MAX_EXPERIMENT: u64 = 1 << 20;
/// The name of the artifact that holds the guests of a run.
const GUESTS: &str = "guests";

/// Why a run could not be opened or kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There is no such run.
    #[error("there is no run `{run}` in this store; `atoll runs` lists those there are")]
    Unknown {
        /// The run asked for.
        run: RunId,
    },
    /// Its experiment cannot be read.
    #[error("the stored experiment of run `{run}` is wrong:\n{report}")]
    Experiment {
        /// The run.
        run: RunId,
        /// What is wrong.
        report: Box<Report>,
    },
    /// It was begun by a version that means something else by the same experiment.
    #[error(
        "run `{run}` was begun with semantics version {found}, this program has {SEMANTICS}: its results would not \
         agree; finish it with the version that began it (`{version}`), or start anew with --fresh"
    )]
    Semantics {
        /// The run.
        run: RunId,
        /// Its version of semantics.
        found: u32,
        /// The version of the program that began it.
        version: String,
    },
    /// It holds another experiment than the one asked for.
    #[error("run `{run}` holds another experiment: expected the digest {expected}, found {found}")]
    Other {
        /// The run.
        run: RunId,
        /// The digest of the experiment asked for.
        expected: Digest,
        /// The digest of the one there.
        found: Digest,
    },
    /// Its guests are not those of its experiment.
    #[error("the guests of run `{run}` are not those that its experiment names: restore `artifacts/guests`")]
    Guests {
        /// The run.
        run: RunId,
    },
    /// It cannot be given such a budget.
    #[error("run `{run}` cannot be extended: {reason}")]
    Budget {
        /// The run.
        run: RunId,
        /// Why.
        reason: String,
    },
    /// A state that holds no champion.
    #[error("island {island}: its state {error}")]
    State {
        /// The island.
        island: usize,
        /// Why.
        error: evolution::codec::CodecError,
    },
    /// The store, the journal or an epoch.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An outcome that cannot be.
    #[error(transparent)]
    Completion(#[from] CompletionError),
}

impl From<StoreError> for KeepError {
    fn from(error: StoreError) -> Self {
        Self::Ledger(error.into())
    }
}

impl From<JournalError> for KeepError {
    fn from(error: JournalError) -> Self {
        Self::Ledger(error.into())
    }
}

/// Who opens a run, and when: what a keeper must be told, because it reads no clock and draws nothing.
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
pub struct Keeper {
    experiment: Experiment,
    archipelago: Archipelago,
    ledger: Ledger,
    checkpoints: Vec<Option<StoredCheckpoint>>,
    /// For how long the run had been worked on before it was opened, in milliseconds.
    elapsed_before: u64,
    finished: bool,
}

/// An epoch to be run, perhaps from somewhere inside it.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The epoch.
    pub task: EpochTask,
    /// Where to take it up.
    pub checkpoint: Option<Bytes>,
}

/// A run as its journal and its experiment tell it, without its islands.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// Its experiment.
    pub experiment: Experiment,
    /// The digest of the text that is stored of it.
    pub text: Digest,
    /// Its journal.
    pub events: Vec<RunEvent>,
}

impl RunHead {
    /// Reads what is stored of a run.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, KeepError> {
        let (experiment, text) = read_experiment(store, run).await?;
        let events: Vec<store::Event<RunEvent>> = store::journal::read_all(store, run).await?;
        let head = Self { experiment, text, events: events.into_iter().map(|event| event.body).collect() };
        head.check(run)?;
        Ok(head)
    }

    pub(crate) fn check(&self, run: &RunId) -> Result<(), KeepError> {
        match self.events.first() {
            Some(RunEvent::Created { semantics, version, .. }) if *semantics != SEMANTICS => {
                let (found, version) = (*semantics, version.clone());
                Err(KeepError::Semantics { run: run.clone(), found, version })
            }
            _ => Ok(()),
        }
    }

    /// How the run ended, if it is finished.
    pub fn finished(&self) -> Option<(&End, &Digest)> {
        match self.events.iter().rfind(|event| !event.is_aside())? {
            RunEvent::Finished { end, digest, .. } => Some((end, digest)),
            _ => None,
        }
    }

    /// The islands before their founding, with the budgets and decisions of the journal.
    pub fn archipelago(&self, guests: Option<Bytes>) -> Archipelago {
        let mut archipelago = Archipelago::new(&self.experiment, guests);
        for event in &self.events {
            match event {
                RunEvent::Extended { budget, complete, .. } => {
                    if let Some(budget) = self.extended(budget) {
                        archipelago.extend(*complete, budget);
                    }
                }
                RunEvent::Decided { end, .. } => archipelago.decide(end.clone()),
                _ => {}
            }
        }
        archipelago
    }

    /// The experiment's budget with another in its place.
    fn extended(&self, budget: &str) -> Option<experiment::Budget> {
        let keys: BudgetKeys = serde_json::from_str(budget).ok()?;
        self.experiment.with_budget(keys).ok().map(|experiment| *experiment.budget())
    }

    /// The islands as far as a store knows them, cut to where they fit together; and what lies beyond.
    pub async fn restore(
        &self,
        store: &Store,
        run: &RunId,
    ) -> Result<(Archipelago, Past, Vec<Place>), KeepError> {
        let guests = self.guests(store, run).await?;
        let mut archipelago = self.archipelago(guests);
        let mut past = Past::read(store, run, self.experiment.setting().islands.len() as u32).await?;
        let mark = |island: usize, epoch: u64| -> Option<&Mark> {
            past.records[island].get(epoch as usize).map(|record| &record.mark)
        };
        if let Some(end) = archipelago.end_of_marks(mark) {
            past.limit(end.epoch + 1);
        }
        let beyond = past.cut();
        archipelago.restore(past.histories(store, run).await?);
        Ok((archipelago, past, beyond))
    }

    async fn guests(&self, store: &Store, run: &RunId) -> Result<Option<Bytes>, KeepError> {
        let Some(expected) = &self.experiment.file().guests else { return Ok(None) };
        let place = Place::Artifact(store::ArtifactName::new(GUESTS).expect("it is a plain word"));
        let guests = store.read(&place.in_run(run), Kind::Artifact).await?;
        if Digest::of(&guests).to_string() != *expected {
            return Err(KeepError::Guests { run: run.clone() });
        }
        Ok(Some(guests))
    }
}

/// The stored experiment, and the digest of its text.
pub(crate) async fn read_experiment(store: &Store, run: &RunId) -> Result<(Experiment, Digest), KeepError> {
    let path = Place::Experiment.in_run(run);
    let text = store.read_text(&path, MAX_EXPERIMENT).await.map_err(|error| match error {
        error if error.is_missing() => KeepError::Unknown { run: run.clone() },
        error => error.into(),
    })?;
    let wrong = |report| KeepError::Experiment { run: run.clone(), report: Box::new(report) };
    match experiment::parse(path.as_ref(), &text, None).map_err(wrong)? {
        Plan::Single(experiment) => Ok((*experiment, Digest::of(text.as_bytes()))),
        Plan::Sweep(_) | Plan::Study(_) | Plan::Tournament(_) => Err(KeepError::Unknown { run: run.clone() }),
    }
}

/// The checkpoint of an epoch, which is to take no more than it had taken when the checkpoint was made: asynchronously
/// more may have arrived since. If something is not remembered any more, the epoch begins anew.
fn take_up(task: &mut EpochTask, checkpoint: StoredCheckpoint) -> Option<Bytes> {
    let took = |packet: &Packet| checkpoint.took.contains(&(packet.from, packet.epoch));
    if task.packets.iter().filter(|packet| took(packet)).count() < checkpoint.took.len() {
        return None;
    }
    task.packets.retain(took);
    Some(checkpoint.bytes.into())
}

impl Keeper {
    /// Creates a run, unless it is there already, and opens it.
    pub async fn create(
        store: &Store,
        run: &RunId,
        experiment: &Experiment,
        guests: Option<Bytes>,
        opening: Opening,
    ) -> Result<Self, KeepError> {
        if let Some(guests) = guests {
            let place = Place::Artifact(store::ArtifactName::new(GUESTS).expect("it is a plain word"));
            store.create(&place.in_run(run), Kind::Artifact, guests).await?;
        }
        match store.create_text(&Place::Experiment.in_run(run), &experiment.to_toml()).await {
            Ok(_) => {}
            Err(StoreError::Differs { .. }) => {
                let found = read_experiment(store, run).await?.0.digest();
                let expected = experiment.digest();
                if found != expected {
                    return Err(KeepError::Other { run: run.clone(), expected, found });
                }
            }
            Err(error) => return Err(error.into()),
        }
        Self::open(store, run, opening).await
    }

    /// Opens a run: whoever had it open before will find out when it writes its next event.
    pub async fn open(store: &Store, run: &RunId, opening: Opening) -> Result<Self, KeepError> {
        let head = RunHead::read(store, run).await?;
        let Opening { nonce, now: at, version, claim } = opening;
        let (mut journal, events) = Journal::open::<RunEvent>(store, run, nonce).await?;
        if events.is_empty() {
            let experiment = head.experiment.digest();
            let text = head.text;
            let version = version.clone();
            let event = RunEvent::Created { experiment, text, semantics: SEMANTICS, version, at };
            journal.append(&event).await?;
        } else if head.finished().is_none() {
            journal.append(&RunEvent::Opened { version: version.clone(), at }).await?;
        }
        let (archipelago, past, beyond) = head.restore(store, run).await?;
        // What was deleted from a finished run is computed again.
        let finished = head.finished().is_some() && archipelago.end().is_some();
        if head.finished().is_some() && !finished {
            journal.append(&RunEvent::Opened { version, at }).await?;
        }
        if !beyond.is_empty() && is_ours(claim.as_ref()).await? {
            for place in beyond {
                store.delete(&place.in_run(run)).await?;
            }
        }
        let retention = &head.experiment.file().retention;
        let ledger = Ledger::new(store, journal, claim, retention, &past);
        let mut checkpoints = vec![];
        let mut elapsed_before = past.elapsed();
        for island in 0..past.records.len() as u32 {
            let checkpoint = past.checkpoint(store, run, island).await?;
            elapsed_before = checkpoint.as_ref().map_or(0, |c| c.elapsed).max(elapsed_before);
            checkpoints.push(checkpoint);
        }
        Ok(Self { experiment: head.experiment, archipelago, ledger, checkpoints, elapsed_before, finished })
    }

    /// Gives the run another budget.
    pub async fn extend(&mut self, budget: BudgetKeys, now: u64) -> Result<(), KeepError> {
        let refused = |reason: String| KeepError::Budget { run: self.run().clone(), reason };
        let extended = self.experiment.with_budget(budget.clone());
        let extended = extended.map_err(|report| refused(report.to_string()))?;
        let done = self.archipelago.generation();
        if let Some(asked) = budget.generations.filter(|&asked| asked < done) {
            return Err(refused(format!(
                "expected more than the {done} generations it has, found `{asked}`"
            )));
        }
        let budget = serde_json::json!(budget).to_string();
        let complete = self.archipelago.complete_epochs();
        self.ledger.log(&RunEvent::Extended { budget, complete, at: now }).await?;
        self.archipelago.extend(complete, *extended.budget());
        self.archipelago.judge_again();
        self.finished = false;
        Ok(())
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        self.ledger.run()
    }

    /// Its experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Its islands.
    pub fn archipelago(&self) -> &Archipelago {
        &self.archipelago
    }

    /// Its ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
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
        Some(self.begin(island))
    }

    /// The next epoch of an island that is ready.
    pub(crate) fn assign_ready(&mut self, island: u32) -> Assignment {
        self.begin(island)
    }

    /// The next epoch of an island, if it may be run and its inputs are these.
    pub fn assign_known(&mut self, island: u32, epoch: u64, inputs: &Digest) -> Option<Assignment> {
        let task = self.archipelago.peek(island).filter(|task| task.epoch == epoch)?;
        (self.archipelago.inputs(&task) == *inputs).then(|| self.begin(island))
    }

    fn begin(&mut self, island: u32) -> Assignment {
        let mut task = self.archipelago.begin(island);
        let checkpoint = self.checkpoints[island as usize].take();
        let checkpoint = checkpoint.and_then(|checkpoint| take_up(&mut task, checkpoint));
        Assignment { task, checkpoint }
    }

    /// Writes an event to the run's journal before it is acted on.
    pub async fn log(&mut self, event: &RunEvent) -> Result<(), KeepError> {
        Ok(self.ledger.log(event).await?)
    }

    /// Takes an epoch's outcome.
    pub fn complete(
        &mut self,
        task: &EpochTask,
        outcome: &EpochOutcome,
        labour: Labour,
    ) -> Result<(), KeepError> {
        if let Completion::New(mark) = self.archipelago.complete(task, outcome)? {
            let record = EpochRecord { mark, statistics: outcome.statistics.clone(), labour };
            self.ledger.note(task.island, record, outcome);
        }
        Ok(())
    }

    /// The most generations of an island that a crash would cost now.
    pub fn at_stake(&self) -> u64 {
        let islands = 0..self.experiment.setting().islands.len() as u32;
        islands.map(|island| self.ledger.at_stake(island)).max().unwrap_or(0)
    }

    /// Writes everything that is not written yet.
    pub async fn flush(&mut self) -> Result<(), KeepError> {
        self.discard_beyond_the_end();
        Ok(self.ledger.flush(&self.archipelago).await?)
    }

    fn discard_beyond_the_end(&mut self) {
        if let Some(end) = self.archipelago.end() {
            self.ledger.discard_beyond(end.epoch);
        }
    }

    /// Puts together what is to be written of these islands, for somebody else to write.
    pub(crate) fn pages(&mut self, islands: impl IntoIterator<Item = u32>) -> Writing {
        self.discard_beyond_the_end();
        self.ledger.pages(islands, &self.archipelago)
    }

    /// Notes that it is written.
    pub(crate) fn settle(&mut self, writing: &Writing) {
        self.ledger.settle(writing);
    }

    /// What may be deleted now, if there is something.
    pub(crate) fn thinning(&mut self) -> Option<Thinning> {
        while self.ledger.is_overgrown() {
            let thinning = self.ledger.thinning(&self.archipelago);
            if !thinning.is_empty() {
                return Some(thinning);
            }
        }
        None
    }

    /// Has everything deleted that nobody needs any more.
    pub(crate) fn thin_out_everything(&mut self) {
        self.ledger.thin_out_everything();
    }

    /// Notes that it is deleted.
    pub(crate) fn forget(&mut self, thinning: &Thinning) {
        self.ledger.forget(thinning);
    }

    /// Whether nothing is left to be written or deleted.
    pub(crate) fn is_settled(&mut self) -> bool {
        self.discard_beyond_the_end();
        self.ledger.is_settled(&self.archipelago)
    }

    /// Takes a checkpoint inside an epoch, to be written.
    pub(crate) fn note_checkpoint(
        &mut self,
        task: &EpochTask,
        standing: Standing,
        bytes: &Bytes,
        elapsed: u64,
    ) {
        let took = task.packets.iter().map(|packet| (packet.from, packet.epoch)).collect();
        let stored = StoredCheckpoint { bytes: bytes.to_vec(), took, elapsed };
        let inside = Inside { epoch: task.epoch, generation: standing.generation, stored };
        self.ledger.note_checkpoint(task.island, inside);
    }

    /// Writes a checkpoint inside an epoch, and whatever was done before it.
    pub async fn checkpoint(
        &mut self,
        task: &EpochTask,
        standing: Standing,
        bytes: &Bytes,
        elapsed: u64,
    ) -> Result<(), KeepError> {
        self.note_checkpoint(task, standing, bytes, elapsed);
        self.flush().await
    }

    /// Ends the run at the last epoch that is complete everywhere, because its time is up. Answers whether there is
    /// such an epoch yet.
    pub async fn end_now(&mut self, now: u64) -> Result<bool, KeepError> {
        let Some(end) = self.archipelago.ending_now() else { return Ok(false) };
        if self.archipelago.end().is_none() {
            self.ledger.log(&RunEvent::Decided { end: end.clone(), at: now }).await?;
            self.archipelago.decide(end);
        }
        Ok(true)
    }

    /// Writes down that the run is finished, once it has ended.
    pub async fn finish(&mut self, now: u64, elapsed: u64) -> Result<Option<Digest>, KeepError> {
        let (Some(end), Some(digest)) = (self.archipelago.end().cloned(), self.archipelago.digest()) else {
            return Ok(None);
        };
        if !self.finished {
            self.flush().await?;
            self.ledger.log(&RunEvent::Finished { end, digest, at: now, elapsed }).await?;
            self.finished = true;
        }
        Ok(Some(digest))
    }
}
