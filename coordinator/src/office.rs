//! The office: all runs, leases and workers of a coordinator, and what happens when somebody calls.
//!
//! It reads no clock and knows no network: whoever calls says when it is. It does wait for the store.

use crate::cells::{Archive, Cells, Kept, Trouble};
use crate::epochs::{Epochs, Fate};
use crate::guard::Guard;
use crate::lease::{Expired, Leases, Stalled, Terms, Token, Verdict};
use crate::members::{MemberError, Members};
use crate::plan::{Plan, PlanError, RunState};
use crate::room::Room;
use crate::runs::{Activity, Run};
use crate::tls::Tls;
use bytes::Bytes;
use evolution::codec::{self, CodecError};
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, Standing};
use experiment::SEMANTICS;
use experiment::document::Report;
use proto::convert::{Piece, WireError, Work, digest_bytes};
use proto::v1;
use run::NameError;
use run::RunError;
use run::RunEvent;
use run::event::Loss;
use run::players::{LookUpError, PlayerFiles};
use run::record::Labour;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::promises::Trial;
use store::{Claim, Nonce, Store, StoreError};

/// When something happens.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Since the coordinator began: what leases are measured by.
    pub elapsed: Duration,
    /// Milliseconds since 1970: what people read.
    pub unix: u64,
}

/// What a coordinator is told at its start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What leases are like.
    pub terms: Terms,
    /// Tells this coordinator from all others.
    pub nonce: Nonce,
    /// The version of the program.
    pub version: String,
    /// Whether workers are told to leave once all runs have ended.
    pub exit_when_done: bool,
    /// The most runs at a time.
    pub max_runs: usize,
    /// What to begin with, or to go on with.
    pub first: Option<First>,
    /// How thoroughly the store is tried out first, if at all.
    pub trial: Option<Trial>,
    /// How long to stay at least once all runs have ended, so that workers who come late hear of it.
    pub linger: Duration,
    /// Who may call.
    pub guard: Guard,
    /// What calls are encrypted with, if they are.
    pub tls: Option<Tls>,
}

/// An experiment, a sweep or a study that a coordinator begins with.
#[derive(Clone, Debug)]
pub struct First {
    /// The name of the file, for messages about it.
    pub file: String,
    /// What is in it.
    pub text: String,
}

/// Why a call was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The worker.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The state of the run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The bytes in it.
    #[error("the delivered bytes: {0}")]
    Codec(#[from] CodecError),
    /// What was delivered cannot be right.
    #[error("{0}")]
    Corrupt(String),
    /// The experiment.
    #[error(transparent)]
    Report(#[from] Report),
    /// A player of a tournament.
    #[error(transparent)]
    Player(Box<LookUpError>),
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Too much of something.
    #[error("expected at most {most} {what}, found one more")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        most: usize,
    },
    /// Nobody works on the run any more.
    #[error("run `{0}` has no work any more")]
    Over(String),
    /// Nobody needs the piece.
    #[error("{0} is not handed out")]
    NotOut(Work),
    /// Another coordinator keeps the store by now.
    #[error("another coordinator has taken this store over: ask that one")]
    Succeeded,
    /// The store, or the run that it keeps.
    #[error(transparent)]
    Keep(#[from] RunError),
}

impl From<LookUpError> for Refusal {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Run(error) => Self::Keep(error),
            error => Self::Player(Box::new(error)),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Keep(error.into())
    }
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) granted: u64,
    pub(crate) hedged: u64,
    pub(crate) expired: u64,
    pub(crate) accepted: u64,
    pub(crate) repeated: u64,
    pub(crate) unneeded: u64,
    pub(crate) failures: u64,
    pub(crate) put_aside: u64,
    pub(crate) checkpoints: u64,
    pub(crate) forgotten: u64,
    pub(crate) store_errors: u64,
    pub(crate) stalled: u64,
}

/// An epoch as it was delivered.
pub(crate) struct Delivery {
    pub(crate) inputs: Digest,
    /// The digest that the worker reported, and that of the bytes that came.
    pub(crate) reported: Digest,
    pub(crate) digest: Digest,
    pub(crate) standing: Standing,
    pub(crate) state: Bytes,
    pub(crate) departure: Bytes,
    pub(crate) statistics: Bytes,
}

/// A lease that a worker wants to keep.
pub(crate) struct Renewal {
    pub(crate) work: Work,
    pub(crate) token: Token,
    /// Of an epoch: its inputs, and where its island stands.
    pub(crate) inputs: Option<Digest>,
    pub(crate) standing: Option<Standing>,
    /// Evaluations and games that its threads have done of it.
    pub(crate) progress: u64,
}

/// What somebody who renews a lease should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    GoOn,
    /// Stop at the next generation, keep a checkpoint, and give the piece back: its run is paused.
    HandBack,
    /// Stop: nobody needs it.
    Stop,
}

/// All that a coordinator knows.
pub(crate) struct Office {
    pub(crate) store: Store,
    pub(crate) settings: Settings,
    pub(crate) plan: Plan,
    pub(crate) leases: Leases,
    pub(crate) members: Members,
    pub(crate) runs: BTreeMap<String, Run>,
    pub(crate) counters: Counters,
    /// Whether there has been anything to do: a run that was taken up unfinished, or submitted.
    pub(crate) begun: bool,
    /// A run that ended without a result since this coordinator began, and why.
    pub(crate) failed: Option<String>,
    /// That this coordinator, and none that began later, keeps the store.
    pub(crate) claim: Claim,
    /// Whether another coordinator keeps it by now: nothing that comes here would be written any more.
    pub(crate) succeeded: bool,
    ticked: Duration,
}

impl Office {
    /// Claims the store and takes up every run that has not ended.
    pub(crate) async fn open(store: Store, settings: Settings, now: Moment) -> Result<Self, Refusal> {
        let mut office = Self {
            claim: Claim::take(&store, settings.nonce).await?,
            succeeded: false,
            store,
            plan: Plan::default(),
            leases: Leases::new(settings.terms, first_token(settings.nonce)),
            members: Members::default(),
            runs: BTreeMap::new(),
            counters: Counters::default(),
            begun: false,
            failed: None,
            ticked: now.elapsed,
            settings,
        };
        office.take_up_all(now).await?;
        office.begun = office.plan.has_open_runs();
        if let Some(First { file, text }) = office.settings.first.clone() {
            let plan = experiment::parse(&file, &text, None)?;
            office.submit(plan, vec![], 0, false, now).await?;
        }
        Ok(office)
    }

    pub(crate) fn join(&mut self, request: &v1::JoinRequest, now: Moment) -> Result<v1::JoinReply, Refusal> {
        let v1::JoinRequest { worker, name, version, semantics, threads } = request;
        if *semantics != SEMANTICS {
            let (ours, theirs) = (self.settings.version.clone(), version.chars().take(40).collect());
            let error = MemberError::Semantics { expected: SEMANTICS, found: *semantics, ours, theirs };
            return Err(error.into());
        }
        if self.members.is_full() {
            // Whoever is there renews within a lease: a flood that never does keeps nobody out for longer.
            self.members.forget_silent(now.elapsed.saturating_sub(self.settings.terms.lease));
        }
        self.members.join(worker, name, *threads, now.elapsed)?;
        tracing::info!(worker = %name, version = %version, threads, "joined");
        Ok(v1::JoinReply {
            version: self.settings.version.clone(),
            lease_milliseconds: self.settings.terms.lease.as_millis() as u64,
        })
    }

    /// Whether there is nothing left to do, and workers may know.
    pub(crate) fn is_done(&self) -> bool {
        self.settings.exit_when_done && self.begun && !self.plan.has_open_runs()
    }

    /// Work for a worker: first what it was granted and does not know of, then what waits, then what is new, and if
    /// it would have nothing at all, what somebody else has had for long.
    pub(crate) fn acquire(
        &mut self,
        worker: &str,
        slots: u32,
        holding: &BTreeSet<Work>,
        now: Moment,
    ) -> Result<Vec<v1::Grant>, Refusal> {
        self.members.see(worker, now.elapsed)?;
        let lost = self.leases.held_by(worker).filter(|work| !holding.contains(work));
        let lost: Vec<Work> = lost.cloned().collect();
        let grants = self.hand_out(worker, slots, lost, holding.is_empty(), now);
        if grants.is_empty() && self.is_done() {
            self.members.tell_the_end(worker);
        }
        Ok(grants)
    }

    /// More work for a worker that has just delivered some.
    pub(crate) fn more(&mut self, worker: &str, slots: u32, now: Moment) -> Vec<v1::Grant> {
        self.hand_out(worker, slots, vec![], false, now)
    }

    fn hand_out(
        &mut self,
        worker: &str,
        slots: u32,
        lost: Vec<Work>,
        idle: bool,
        now: Moment,
    ) -> Vec<v1::Grant> {
        let mut lost = lost.into_iter();
        let mut grants = vec![];
        let mut room = Room::new();
        while grants.len() < slots as usize && (grants.is_empty() || room.is_left()) {
            let idle = idle && grants.is_empty();
            let work = lost.next().or_else(|| self.next(worker)).or_else(|| self.hedge(worker, idle, now));
            let Some(work) = work else { break };
            let token = self.leases.grant(&work, worker, now.elapsed);
            match self.grant(&work, worker, token, &mut room) {
                Some(grant) => grants.push(grant),
                // Its run has ended meanwhile.
                None => self.leases.remove(&work),
            }
        }
        self.counters.granted += grants.len() as u64;
        grants
    }

    fn next(&mut self, worker: &str) -> Option<Work> {
        for run in self.plan.active() {
            if let Some(work) = self.leases.waiting_for(worker, &run) {
                return Some(work);
            }
            let piece = match &mut self.runs.get_mut(&run)?.activity {
                Activity::Epochs(epochs) => epochs.next(worker),
                Activity::Cells(cells) => cells.next(),
                Activity::Study(_) | Activity::Closed(_) => None,
            };
            if let Some(piece) = piece {
                return Some(Work { run, piece });
            }
        }
        None
    }

    fn hedge(&mut self, worker: &str, idle: bool, now: Moment) -> Option<Work> {
        let plan = &self.plan;
        let work =
            idle.then(|| self.leases.hedge(worker, now.elapsed, |run| plan.is_active(run))).flatten()?;
        self.counters.hedged += 1;
        tracing::info!(
            run = work.run,
            island = work.island(),
            epoch = work.epoch(),
            worker = %self.members.name(worker),
            "repeated by an idle worker"
        );
        Some(work)
    }

    fn grant(&self, work: &Work, worker: &str, token: Token, room: &mut Room) -> Option<v1::Grant> {
        let (plan, task) = match (&self.runs.get(&work.run)?.activity, work.piece) {
            (Activity::Epochs(epochs), Piece::Epoch { island, epoch }) => {
                (epochs.plan(), Some(epochs.grant(island, epoch, worker, room)?))
            }
            (Activity::Cells(cells), Piece::Cells { first, count }) if cells.wants(first, count) => {
                (cells.plan(), None)
            }
            _ => return None,
        };
        Some(v1::Grant { piece: Some(work.into()), plan: digest_bytes(plan), task, token })
    }

    /// The text of a run's experiment, and the player files that it names.
    pub(crate) fn text(
        &mut self,
        worker: &str,
        run: &str,
        now: Moment,
    ) -> Result<(String, PlayerFiles), Refusal> {
        self.members.see(worker, now.elapsed)?;
        let unknown = || PlanError::Unknown(run.to_owned());
        match &self.runs.get(run).ok_or_else(unknown)?.activity {
            Activity::Epochs(epochs) => Ok((epochs.text().to_owned(), PlayerFiles::new())),
            Activity::Cells(cells) => Ok((cells.text().to_owned(), cells.players().clone())),
            Activity::Study(_) | Activity::Closed(_) => Err(Refusal::Over(run.to_owned())),
        }
    }

    /// A body that a grant only named.
    pub(crate) fn body(
        &mut self,
        worker: &str,
        work: &Work,
        digest: &Digest,
        now: Moment,
    ) -> Result<Bytes, Refusal> {
        self.members.see(worker, now.elapsed)?;
        let body = match (self.runs.get(&work.run).map(|run| &run.activity), work.piece) {
            (Some(Activity::Epochs(epochs)), Piece::Epoch { island, epoch }) => {
                epochs.body(island, epoch, digest)
            }
            (Some(Activity::Cells(cells)), Piece::Cells { .. }) => cells.player(digest),
            _ => None,
        };
        body.ok_or_else(|| Refusal::NotOut(work.clone()))
    }

    pub(crate) fn epochs(&mut self, run: &str) -> Option<&mut Epochs> {
        match &mut self.runs.get_mut(run)?.activity {
            Activity::Epochs(epochs) => Some(epochs),
            _ => None,
        }
    }

    fn cells(&mut self, run: &str) -> Option<&mut Cells> {
        match &mut self.runs.get_mut(run)?.activity {
            Activity::Cells(cells) => Some(cells),
            _ => None,
        }
    }

    /// Renews a lease; answers what the worker should do.
    pub(crate) fn renew(
        &mut self,
        worker: &str,
        renewal: &Renewal,
        now: Moment,
    ) -> Result<Instruction, Refusal> {
        self.members.see(worker, now.elapsed)?;
        let Renewal { work, token, inputs, standing, progress } = renewal;
        let instruction = match self.plan.state(&work.run) {
            Some(RunState::Active) => Instruction::GoOn,
            Some(RunState::Paused) => Instruction::HandBack,
            _ => Instruction::Stop,
        };
        if instruction == Instruction::Stop || !self.wants(work, inputs.as_ref()) {
            self.leases.release(work, worker, *token);
            return Ok(Instruction::Stop);
        }
        if !self.leases.knows(work) {
            tracing::info!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.members.name(worker),
                lease = token,
                "lease taken up again"
            );
        }
        if let (Piece::Epoch { island, .. }, Some(standing), Some(epochs)) =
            (work.piece, standing, self.epochs(&work.run))
        {
            epochs.progress(island, *standing);
        }
        let renewed = self.leases.renew(work, worker, *token, *progress, now.elapsed);
        Ok(if renewed { instruction } else { Instruction::Stop })
    }

    /// Takes up an epoch of which something came before its lease was renewed. If nothing follows, it waits for somebody
    /// else.
    fn expect(&mut self, work: &Work, inputs: &Digest) {
        if self.wants(work, Some(inputs)) {
            self.leases.offer(work);
        }
    }

    /// Whether somebody who works on this, from these inputs, does something useful.
    fn wants(&mut self, work: &Work, inputs: Option<&Digest>) -> bool {
        match work.piece {
            Piece::Epoch { island, epoch } => {
                let adopt = |epochs: &mut Epochs| inputs.is_some_and(|i| epochs.adopt(island, epoch, i));
                self.epochs(&work.run).is_some_and(adopt)
            }
            Piece::Cells { first, count } => {
                self.cells(&work.run).is_some_and(|cells| cells.wants(first, count))
            }
        }
    }

    /// Takes a checkpoint inside an epoch, to be written in the next turn.
    pub(crate) fn checkpoint(
        &mut self,
        worker: &str,
        work: &Work,
        inputs: &Digest,
        standing: Standing,
        bytes: Bytes,
        now: Moment,
    ) -> Result<(), Refusal> {
        self.members.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok(()) };
        self.expect(work, inputs);
        let Some(epochs) = self.epochs(&work.run) else { return Ok(()) };
        if epochs.checkpoint((island, epoch), inputs, standing, bytes) {
            self.counters.checkpoints += 1;
            self.leases.advanced(work);
        }
        Ok(())
    }

    /// Takes an epoch that was delivered, to be written when it is due.
    pub(crate) fn complete_epoch(
        &mut self,
        worker: &str,
        work: &Work,
        delivery: Delivery,
        milliseconds: u64,
        now: Moment,
    ) -> Result<Fate, Refusal> {
        self.members.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok(Fate::Unneeded) };
        let Delivery { inputs, reported, digest, standing, state, departure, statistics } = delivery;
        if reported != digest {
            let reason = format!("{work}: expected bytes with the digest {reported}, found {digest}");
            return Err(self.corrupt(worker, &reason));
        }
        let statistics = codec::decode(&statistics)?;
        self.expect(work, &inputs);
        let name = self.members.name(worker);
        let Some(epochs) = self.epochs(&work.run) else { return Ok(self.count(Fate::Unneeded)) };
        let labour = Labour { worker: name, milliseconds, elapsed: epochs.elapsed() };
        let outcome = EpochOutcome { state, departure, digest, standing, statistics };
        let fate = match epochs.complete((island, epoch), &inputs, &outcome, worker, labour) {
            Err(RunError::Completion(error)) => return Err(self.corrupt(worker, &error.to_string())),
            fate => fate?,
        };
        if fate == Fate::Accepted {
            if epochs.keeper().archipelago().end().is_some() {
                epochs.hurry();
            }
            self.leases.complete(work, now.elapsed);
        }
        Ok(self.count(fate))
    }

    /// Where a worker's results of cells are kept, if anybody needs them.
    pub(crate) fn archive(
        &mut self,
        worker: &str,
        work: &Work,
        now: Moment,
    ) -> Result<Option<Archive>, Refusal> {
        self.members.see(worker, now.elapsed)?;
        Ok(self.cells(&work.run).map(|cells| cells.archive()))
    }

    /// Takes results of cells that are kept, or could not be.
    pub(crate) async fn complete_cells(
        &mut self,
        worker: &str,
        work: &Work,
        kept: Kept,
        now: Moment,
    ) -> Result<Fate, Refusal> {
        // It may have been put aside meanwhile.
        self.members.see(worker, now.elapsed)?;
        let mut fate = Fate::Unneeded;
        for (number, result) in kept.results {
            let Some(cells) = self.cells(&work.run) else { return Ok(self.count(Fate::Unneeded)) };
            fate = cells.complete(number, result);
        }
        match kept.trouble {
            None => {}
            Some(Trouble::Unsound(number)) => {
                let reason = format!("{work}: expected the result of cell {number}, found another");
                return Err(self.corrupt(worker, &reason));
            }
            Some(Trouble::Store(error @ StoreError::Differs { .. })) => {
                return Err(self.corrupt(worker, &error.to_string()));
            }
            Some(Trouble::Store(error)) => return Err(error.into()),
        }
        if let (Piece::Cells { first, count }, Some(cells)) = (work.piece, self.cells(&work.run))
            && !cells.wants(first, count)
        {
            self.leases.complete(work, now.elapsed);
        }
        self.settle(&work.run.clone(), now).await;
        Ok(self.count(fate))
    }

    fn count(&mut self, fate: Fate) -> Fate {
        match fate {
            Fate::Accepted => self.counters.accepted += 1,
            Fate::Repeated => self.counters.repeated += 1,
            Fate::Unneeded => self.counters.unneeded += 1,
        }
        fate
    }

    /// Puts a worker aside that delivered what cannot be.
    fn corrupt(&mut self, worker: &str, reason: &str) -> Refusal {
        tracing::error!(worker = %self.members.name(worker), reason, "put aside: its results cannot be trusted");
        self.counters.put_aside += 1;
        self.members.put_aside(worker, reason);
        self.leases.release_all(worker);
        Refusal::Corrupt(format!("corruption: {reason}; this worker is put aside"))
    }

    /// Takes work back, because its worker leaves it or cannot do it.
    pub(crate) async fn release(
        &mut self,
        worker: &str,
        (work, token): (&Work, Token),
        failure: &str,
        now: Moment,
    ) -> Result<(), Refusal> {
        self.members.see(worker, now.elapsed)?;
        if failure.is_empty() {
            self.leases.release(work, worker, token);
            return Ok(());
        }
        self.counters.failures += 1;
        tracing::warn!(
            run = work.run,
            island = work.island(),
            epoch = work.epoch(),
            worker = %self.members.name(worker),
            lease = token,
            reason = failure,
            "failed"
        );
        let reason: String = failure.chars().take(1000).collect();
        if let Some(held) = self.leases.held_for(work, worker, token, now.elapsed) {
            let lost = self.loss(work, worker, held).map(|Loss { island, epoch, worker, held }| {
                RunEvent::Lost { island, epoch, worker, held, reason: reason.clone(), at: now.unix }
            });
            self.note_losses(&work.run, lost, now).await;
        }
        if let Verdict::Poison(reason) = self.leases.fail(work, worker, token, &reason) {
            self.fail(&work.run.clone(), &reason, now).await;
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self, worker: &str, reason: &str) {
        tracing::info!(worker = %self.members.name(worker), reason = %reason.chars().take(200).collect::<String>(), "left");
        self.leases.release_all(worker);
        self.members.leave(worker);
    }

    /// Whether there may be something to hand out.
    pub(crate) fn has_work(&self) -> bool {
        let has_work = |(run, state): (&str, &RunState)| {
            *state == RunState::Active
                && match self.runs.get(run).map(|run| &run.activity) {
                    Some(Activity::Epochs(epochs)) => epochs.has_work(),
                    Some(Activity::Cells(_)) => true,
                    _ => false,
                }
        };
        self.leases.has_waiting() || self.plan.all().any(has_work)
    }

    /// Lets time pass: leases run out, budgets end.
    pub(crate) async fn tick(&mut self, now: Moment) {
        let passed = now.elapsed.saturating_sub(self.ticked);
        self.ticked = now.elapsed;
        let reason = "it was not renewed in time: its worker is gone, stands still or is cut off";
        let mut losses: BTreeMap<String, Vec<Loss>> = BTreeMap::new();
        let mut poisoned = vec![];
        for expired in self.leases.expire(now.elapsed) {
            self.counters.expired += 1;
            let Expired { work, worker, token, held, verdict } = expired;
            tracing::warn!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.members.name(&worker),
                lease = token,
                reason,
                "lease ran out"
            );
            if let Some(loss) = self.loss(&work, &worker, held) {
                losses.entry(work.run.clone()).or_default().push(loss);
            }
            if let Verdict::Poison(reason) = verdict {
                poisoned.push((work.run, reason));
            }
        }
        for Stalled { work, worker, for_how_long } in self.leases.find_stalled(now.elapsed) {
            self.counters.stalled += 1;
            tracing::warn!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.members.name(&worker),
                seconds = for_how_long.as_secs(),
                "no progress: the worker renews its lease, but has evaluated nothing"
            );
        }
        for (run, losses) in losses {
            let event = RunEvent::Expired { losses, reason: reason.to_owned(), at: now.unix };
            self.note_losses(&run, Some(event), now).await;
        }
        for (run, reason) in poisoned {
            self.fail(&run, &reason, now).await;
        }
        let silence = 20 * self.settings.terms.lease;
        for worker in self.members.forget_silent(now.elapsed.saturating_sub(silence)) {
            self.counters.forgotten += 1;
            tracing::warn!(worker, reason = "it has been silent for 20 leases", "forgotten");
        }
        for run in self.plan.active() {
            if self.leases.count(&run) > 0 {
                self.pass(&run, passed, now).await;
            }
            self.settle(&run, now).await;
        }
    }

    /// An epoch that was held in vain.
    fn loss(&self, work: &Work, worker: &str, held: Duration) -> Option<Loss> {
        let Piece::Epoch { island, epoch } = work.piece else { return None };
        Some(Loss { island, epoch, worker: self.members.name(worker), held: held.as_millis() as u64 })
    }

    /// Writes down what was held in vain: reports tell what failures cost. However many workers are lost at once, it is
    /// one event, because everybody waits for it.
    async fn note_losses(&mut self, name: &str, event: Option<RunEvent>, now: Moment) {
        let (Some(run), Some(event)) = (self.runs.get_mut(name), event) else { return };
        let written = run.log(&event).await;
        self.note_trouble(name, written, now).await;
    }

    async fn pass(&mut self, run: &str, time: Duration, now: Moment) {
        if let Some(cells) = self.cells(run) {
            cells.pass(time);
        }
        let Some(epochs) = self.epochs(run) else { return };
        let passed = epochs.pass(time, now.unix).await;
        self.note_trouble(run, passed, now).await;
    }

    /// A store that fails may recover; a run that belongs to somebody else by now, or is damaged, does not.
    pub(crate) async fn note_trouble(&mut self, run: &str, result: Result<(), RunError>, now: Moment) {
        match result {
            Ok(()) => {}
            Err(RunError::Write(error)) if error.may_pass() => {
                self.counters.store_errors += 1;
                tracing::error!(run, %error, "cannot be written; trying again");
            }
            // Nobody who asks here should hear that the run failed: it goes on elsewhere.
            Err(_) if self.is_succeeded().await => {}
            Err(error) => self.fail(run, &error.to_string(), now).await,
        }
    }

    /// Whether a later coordinator keeps the store. While nobody can tell, this one does.
    pub(crate) async fn is_succeeded(&self) -> bool {
        !self.claim.stands().await.unwrap_or(true)
    }

    /// Ends a run that cannot go on.
    pub(crate) async fn fail(&mut self, run: &str, reason: &str, now: Moment) {
        tracing::error!(run, reason, "failed");
        self.failed = Some(format!("run {run} failed: {reason}"));
        self.leases.remove_run(run);
        self.plan.set(run, RunState::Failed(reason.to_owned()));
        let event = RunEvent::Failed { reason: reason.to_owned(), at: now.unix };
        if let Some(run) = self.runs.get_mut(run)
            && let Err(error) = run.log(&event).await
        {
            tracing::error!(%error, "the failure could not be written down");
        }
    }
}

/// Tokens of different coordinators are far from each other, because a worker may still have one from another.
fn first_token(nonce: Nonce) -> Token {
    let digest = Digest::of(&nonce.0.to_le_bytes());
    digest.0[..8].iter().fold(0, |token, &byte| token << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests;
