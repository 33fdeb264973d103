//! What workers call, and what time does: work is handed out, renewed, delivered, given back, and lost.

use super::leases::{Expired, Party, Stalled, Token, Verdict};
use super::queue::{QueueError, RunState};
use super::reply_budget::ReplyBudget;
use super::workers::{WorkerError, shown};
use super::{
    Author, Body, ClusterState, Effect, Evolution, Examination, KeptCells, Moment, Receipt, Received, Step,
    Then,
};
use crate::rejection::Rejection;
use archipelago::CompletionError;
use archipelago::cell::{CellPlan, CellResult};
use archipelago::job::JobResult;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, Standing};
use experiment::SEMANTICS;
use proto::convert::{Piece, Work, digest_bytes};
use proto::v1;
use report::text::plain;
use run::RunError;
use run::RunEvent;
use run::event::Loss;
use run::players::PlayerFiles;
use run::record::Labour;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A worker that has been silent for this number of leases is forgotten.
const SILENT_LEASES: u32 = 20;
/// Work is not poison before workers that might do it have been silent for this number of leases.
const WAITED_FOR_LEASES: u32 = 4;
/// Time passes in steps of a tenth of a second. A step that takes longer than this means that the coordinator itself
/// stood still: no worker could renew.
const PAUSED: Duration = Duration::from_millis(500);

/// The most epochs that are written down as lost in one tick.
const MOST_LOSSES: usize = 256;
/// The most reasons for that, each of which is an event of its own. Others are written down together.
const MOST_REASONS: usize = 4;

/// Why an epoch is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// Its worker is not heard of any more.
    Silence,
    /// Its worker reports that it failed.
    Failure,
}

/// Epochs of a run that workers have lost since the last tick.
#[derive(Default)]
pub(super) struct Lost {
    /// By the cause, and what is known of it.
    losses: BTreeMap<(Cause, String), Vec<Loss>>,
    count: usize,
    principals: BTreeSet<String>,
}

/// What became of something that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    Repeated,
    Unneeded,
}

/// An epoch as it was delivered.
pub(crate) struct Delivery {
    pub(crate) inputs: Digest,
    /// The digest that the worker reported, and that of the bytes that came.
    pub(crate) reported: Digest,
    pub(crate) digest: Digest,
    /// What the bytes hold, or why they cannot be what the epoch came to.
    pub(crate) outcome: Result<EpochOutcome, String>,
    /// Whether that was compared with the task.
    pub(crate) is_examined: bool,
    /// Whether the worker belongs to the same process, and need not be audited.
    pub(crate) is_trusted: bool,
}

/// Cells as they were delivered.
pub(crate) struct DeliveredCells {
    /// The results, or the number of one that cannot be right.
    pub(crate) results: Result<Vec<(u32, CellResult)>, u32>,
    /// The plan that they were compared with, if the run was open then.
    pub(crate) examined: Option<Arc<CellPlan>>,
    /// Whether the worker belongs to the same process, and need not be audited.
    pub(crate) is_trusted: bool,
}

/// A lease that a worker wants to keep.
pub(crate) struct Renewal {
    pub(crate) work: Work,
    pub(crate) token: Token,
    /// Of an epoch or a job: its inputs; of an epoch also where its island stands.
    pub(crate) inputs: Option<Digest>,
    pub(crate) standing: Option<Standing>,
    /// Evaluations and games that its threads have done of it.
    pub(crate) progress: u64,
}

/// Pieces that no worker has, pieces that workers have, and the workers that both could keep busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) ready: usize,
    pub(crate) running: usize,
    pub(crate) workers: usize,
}

impl Demand {
    /// For workers that have this number of threads together. While there is none, one of one thread is assumed: it comes, and then
    /// the size of workers is known.
    fn new(ready: usize, running: usize, threads: u64, workers: usize) -> Self {
        let threads = threads.checked_div(workers as u64).unwrap_or(1).max(1);
        Self { ready, running, workers: (ready + running).div_ceil(threads as usize) }
    }
}

/// What a worker lacks for a piece: that is no failure, others may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    Memory,
    Program,
}

/// What a worker that renews a lease should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    GoOn,
    /// Stop at the next generation, keep a checkpoint, and give the piece back: its run is paused.
    HandBack,
    /// Stop: the piece is not needed.
    Stop,
}

impl ClusterState {
    /// Takes a worker in, for which a principal answers: its token, certificate or address.
    pub(crate) fn join(
        &mut self,
        request: &v1::JoinRequest,
        principal: &str,
        now: Moment,
    ) -> Result<v1::JoinReply, Rejection> {
        let v1::JoinRequest { worker, name, version, semantics, threads, session } = request;
        if *semantics != SEMANTICS {
            let (ours, theirs) = (self.rules.version.clone(), shown(version));
            let error = WorkerError::Semantics { expected: SEMANTICS, found: *semantics, ours, theirs };
            self.refused = Some(error.to_string());
            return Err(error.into());
        }
        if self.workers.is_full() {
            // A worker that is there renews within a lease: a flood that never does blocks others for no longer.
            self.forget_silent(self.rules.terms.lease, now);
        }
        self.workers.continue_session(worker, principal, session);
        self.workers.join(worker, principal, (name, version), *threads, now.elapsed)?;
        tracing::info!(worker = shown(name), version = shown(version), threads, "joined");
        let secret = [self.rules.audit.secret.to_le_bytes(), self.rules.nonce.0.to_le_bytes()].concat();
        let session = self.workers.session(&self.workers.key(worker, principal), &secret);
        let lease = self.rules.terms.lease;
        Ok(v1::JoinReply {
            version: self.rules.version.clone(),
            lease_milliseconds: lease.as_millis() as u64,
            renew_milliseconds: self.rules.terms.renew.min(lease / 3).as_millis() as u64,
            coordinator: Bytes::copy_from_slice(&self.rules.nonce.0.to_le_bytes()),
            session: session.as_ref().map(digest_bytes).unwrap_or_default(),
        })
    }

    /// Work for a worker: first what it was granted and does not know of, then what waits, then what is new, and if
    /// it would have nothing at all, what another worker has had for long.
    pub(crate) fn acquire(
        &mut self,
        worker: &str,
        slots: u32,
        holding: &BTreeSet<Work>,
        budget: &mut ReplyBudget,
        now: Moment,
    ) -> Result<Vec<v1::Grant>, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let may_have = |work: &&Work| self.may_take(work, self.workers.party(worker));
        let lost = self.leases.held_by(worker).filter(|work| !holding.contains(*work)).filter(may_have);
        let lost: Vec<Work> = lost.cloned().collect();
        let grants = self.hand_out((worker, slots), lost, holding.is_empty(), budget, now);
        if grants.is_empty() && self.is_done() {
            self.workers.tell_the_end(worker);
        }
        Ok(grants)
    }

    /// More work for a worker that has just delivered some.
    pub(crate) fn more(
        &mut self,
        worker: &str,
        slots: u32,
        budget: &mut ReplyBudget,
        now: Moment,
    ) -> Vec<v1::Grant> {
        self.hand_out((worker, slots), vec![], false, budget, now)
    }

    fn hand_out(
        &mut self,
        (worker, slots): (&str, u32),
        lost: Vec<Work>,
        idle: bool,
        budget: &mut ReplyBudget,
        now: Moment,
    ) -> Vec<v1::Grant> {
        let mut lost = lost.into_iter();
        let mut grants = vec![];
        let rests = self.workers.is_resting(worker, now.elapsed) || self.workers.is_draining(worker);
        let slots = if rests { 0 } else { slots };
        while grants.len() < slots as usize && (grants.is_empty() || budget.is_left()) {
            let idle = idle && grants.is_empty();
            let work =
                lost.next().or_else(|| self.next(worker, now)).or_else(|| self.hedge(worker, idle, now));
            let Some(work) = work else { break };
            let token = self.leases.grant(&work, worker, now.elapsed);
            match self.grant(&work, worker, token, budget) {
                Some(grant) => {
                    self.note_handed(&work, worker, &grant);
                    self.trace_grant(&work, worker, token, now);
                    grants.push(grant);
                }
                // Its run has ended meanwhile.
                None => self.leases.remove(&work),
            }
        }
        self.counters.granted += grants.len() as u64;
        grants
    }

    /// Remembers what a worker is given of an epoch, and whether it begins with the checkpoint of another.
    fn note_handed(&mut self, work: &Work, worker: &str, grant: &v1::Grant) {
        let is_resumed = grant.task.as_ref().is_some_and(|task| task.checkpoint.is_some());
        if let Piece::Epoch { island, epoch } = work.piece
            && let Some(evolution) = self.evolution(&work.run)
        {
            if is_resumed {
                evolution.note_handed(island, epoch, worker);
            }
            evolution.note_granted(island, epoch, worker);
        }
    }

    /// Traces an epoch that is handed out, but for an audit.
    fn trace_grant(&mut self, work: &Work, worker: &str, token: Token, now: Moment) {
        if self.spans.is_on()
            && !self.is_audit(work)
            && let Some(created) = self.runs.get(&work.run).map(|run| run.created)
        {
            let name = self.workers.name(worker);
            self.spans.granted((work, created), (worker, name), token, now);
        }
    }

    fn next(&mut self, worker: &str, now: Moment) -> Option<Work> {
        for run in self.queue.active() {
            if !self.is_active(&run) || self.leases.is_unfit(worker, &run, now.elapsed) {
                continue;
            }
            if let Some(work) = self.leases.waiting_for(worker, &run, now.elapsed, |work| {
                !self.is_measurement(work) && self.may_take(work, self.workers.party(worker))
            }) {
                return Some(work);
            }
            if let Some(work) = self.next_within_share(worker, &run, now) {
                return Some(work);
            }
            let piece = match &mut self.runs.get_mut(&run)?.body {
                Body::Evolution(evolution) => evolution.next(worker),
                Body::Cells(cells) => cells.next(),
                Body::Study(study) => study.next_job(),
                Body::Closed(_) => None,
            };
            if let Some(piece) = piece {
                return Some(Work { run, piece });
            }
        }
        self.next_measurement(worker, now)
    }

    fn hedge(&mut self, worker: &str, idle: bool, now: Moment) -> Option<Work> {
        if !idle {
            return None;
        }
        let may_take = |work: &Work| {
            self.is_active(&work.run)
                && !self.leases.is_unfit(worker, &work.run, now.elapsed)
                && self.may_take(work, self.workers.party(worker))
        };
        let work = self.leases.hedge(worker, now.elapsed, may_take)?;
        self.counters.hedged += 1;
        tracing::info!(
            run = work.run,
            island = work.island(),
            epoch = work.epoch(),
            worker = %self.workers.name(worker),
            "repeated by an idle worker"
        );
        Some(work)
    }

    fn grant(&self, work: &Work, worker: &str, token: Token, budget: &mut ReplyBudget) -> Option<v1::Grant> {
        let mut grant =
            v1::Grant { piece: Some(work.into()), plan: Bytes::new(), task: None, token, job: None };
        match (&self.runs.get(&work.run)?.body, work.piece) {
            (Body::Evolution(evolution), Piece::Epoch { island, epoch }) => {
                grant.task = Some(evolution.grant(island, epoch, worker, budget)?);
                grant.plan = digest_bytes(evolution.plan());
            }
            (Body::Cells(cells), Piece::Cells { first, count }) if cells.wants(first, count) => {
                grant.plan = digest_bytes(cells.text_digest());
            }
            (Body::Study(study), Piece::Job { number }) => grant.job = Some(study.grant(number, budget)?),
            (Body::Evolution(evolution), Piece::Job { number }) => {
                grant.job = Some(evolution.measuring()?.grant(number, budget)?);
            }
            _ => return None,
        }
        Some(grant)
    }

    /// What there is to do, and how many workers of the size of those that are there it would keep busy.
    pub(crate) fn demand(&self) -> Demand {
        let mut ready = self.leases.count_waiting();
        for run in self.queue.active_runs().filter(|run| self.is_active(run)) {
            ready += match self.runs.get(run).map(|run| &run.body) {
                Some(Body::Evolution(evolution)) => evolution.ready_count() + evolution.measurable(),
                Some(Body::Cells(cells)) => cells.count_ready(),
                Some(Body::Study(study)) => study.jobs_ready(),
                _ => 0,
            };
        }
        let running: usize = self.queue.open_runs().map(|run| self.leases.count(run)).sum();
        Demand::new(ready, running, self.workers.threads(), self.workers.count())
    }

    /// How many pieces could be handed out now, up to a few hundred: as many waiting workers are woken.
    pub(crate) fn available(&self) -> usize {
        let mut available = self.leases.count_waiting();
        for run in self.queue.active_runs().filter(|run| self.is_active(run)) {
            available += match self.runs.get(run).map(|run| &run.body) {
                Some(Body::Evolution(evolution)) => evolution.ready_count() + evolution.measurable(),
                Some(Body::Cells(cells)) => usize::from(cells.has_work()) * 256,
                Some(Body::Study(study)) => study.jobs_ready(),
                _ => 0,
            };
        }
        available
    }

    /// The text of a run's plan, and the player files that it names.
    pub(crate) fn text(
        &mut self,
        worker: &str,
        run: &str,
        now: Moment,
    ) -> Result<(String, PlayerFiles), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let unknown = || QueueError::Unknown(run.to_owned());
        match &self.runs.get(run).ok_or_else(unknown)?.body {
            Body::Evolution(evolution) => Ok((evolution.text().to_owned(), PlayerFiles::new())),
            Body::Cells(cells) => Ok((cells.text().to_owned(), cells.files().clone())),
            Body::Study(_) | Body::Closed(_) => Err(Rejection::Over(run.to_owned())),
        }
    }

    /// A body that a grant only named.
    pub(crate) fn body(
        &mut self,
        worker: &str,
        work: &Work,
        digest: &Digest,
        now: Moment,
    ) -> Result<Bytes, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let body = match (self.runs.get(&work.run).map(|run| &run.body), work.piece) {
            (Some(Body::Evolution(evolution)), Piece::Epoch { island, epoch }) => {
                evolution.body(island, epoch, digest)
            }
            (Some(Body::Cells(cells)), Piece::Cells { .. }) => cells.file(digest),
            (Some(Body::Study(study)), Piece::Job { number }) => study.input(number, digest),
            (Some(Body::Evolution(evolution)), Piece::Job { number }) => {
                evolution.measuring().and_then(|yardstick| yardstick.input(number, digest))
            }
            _ => None,
        };
        body.ok_or_else(|| Rejection::NotOut(work.clone()))
    }

    pub(crate) fn evolution(&mut self, run: &str) -> Option<&mut Evolution> {
        match &mut self.runs.get_mut(run)?.body {
            Body::Evolution(evolution) => Some(evolution),
            _ => None,
        }
    }

    /// Renews a lease; returns what the worker should do.
    pub(crate) fn renew(
        &mut self,
        worker: &str,
        renewal: &Renewal,
        now: Moment,
    ) -> Result<Instruction, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Renewal { work, token, inputs, standing, progress } = renewal;
        let instruction = match self.state_of(&work.run) {
            Some(RunState::Active) if self.workers.is_draining(worker) => Instruction::HandBack,
            Some(RunState::Active) => Instruction::GoOn,
            Some(RunState::Paused) => Instruction::HandBack,
            _ => Instruction::Stop,
        };
        // What it has just delivered may be audited by now, which is work for others.
        let may_have = self.may_take(work, self.workers.party(worker));
        if instruction == Instruction::Stop || !may_have || !self.wants(work, inputs.as_ref()) {
            self.leases.release(work, worker, *token);
            return Ok(Instruction::Stop);
        }
        if !self.leases.knows(work) {
            tracing::info!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(worker),
                lease = token,
                "lease adopted again"
            );
        }
        if let (Piece::Epoch { island, .. }, Some(standing), Some(evolution)) =
            (work.piece, standing, self.evolution(&work.run))
        {
            evolution.progress(island, *standing);
        }
        let renewed = self.leases.renew(work, worker, *token, *progress, now.elapsed);
        Ok(if renewed { instruction } else { Instruction::Stop })
    }

    /// Takes up a piece of which something came before its lease was renewed. If nothing follows, it waits for another
    /// worker.
    fn expect(&mut self, work: &Work, inputs: &Digest) {
        if self.wants(work, Some(inputs)) {
            self.leases.offer(work);
        }
    }

    /// Whether a worker that computes this, from these inputs, does something useful.
    fn wants(&mut self, work: &Work, inputs: Option<&Digest>) -> bool {
        match (self.runs.get_mut(&work.run).map(|run| &mut run.body), work.piece) {
            (Some(Body::Evolution(evolution)), Piece::Epoch { island, epoch }) => {
                inputs.is_some_and(|inputs| {
                    evolution.adopt(island, epoch, inputs) || evolution.is_audited(island, epoch, inputs)
                })
            }
            (Some(Body::Cells(cells)), Piece::Cells { first, count }) => cells.wants(first, count),
            (Some(Body::Study(study)), Piece::Job { number }) => study.wants(number, inputs),
            (Some(Body::Evolution(evolution)), Piece::Job { number }) => {
                evolution.measuring().is_some_and(|yardstick| yardstick.wants(number, inputs))
            }
            _ => false,
        }
    }

    /// How to examine what a worker delivers of an epoch, if that is awaited.
    pub(crate) fn examination(
        &mut self,
        worker: &str,
        work: &Work,
        inputs: &Digest,
        now: Moment,
    ) -> Result<Option<Examination>, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok(None) };
        if !self.is_open(&work.run) {
            return Ok(None);
        }
        self.expect(work, inputs);
        let Some(evolution) = self.evolution(&work.run) else { return Ok(None) };
        let last = evolution.open_run().experiment().setting().islands.len() as u32 - 1;
        if island > last {
            return Err(RunError::from(CompletionError::Unknown { island, last }).into());
        }
        Ok(evolution.examination((island, epoch), inputs))
    }

    /// Takes a checkpoint inside an epoch, to be written at once; or why it cannot be one.
    pub(crate) fn checkpoint(
        &mut self,
        worker: &str,
        work: &Work,
        inputs: &Digest,
        checkpoint: Result<(Standing, Digest, Bytes), String>,
        now: Moment,
    ) -> Result<(), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok(()) };
        if !self.is_open(&work.run) {
            return Ok(());
        }
        let checkpoint = checkpoint.map_err(|reason| self.corrupt(worker, &reason, now))?;
        self.expect(work, inputs);
        let (name, author) = (self.workers.name(worker), self.author(worker));
        let Some(evolution) = self.evolution(&work.run) else { return Ok(()) };
        if evolution.checkpoint((island, epoch), inputs, checkpoint, author, name) {
            self.counters.checkpoints += 1;
            self.leases.advanced(work);
        }
        self.pump(&work.run, now);
        Ok(())
    }

    /// Takes an epoch that was delivered. Returns what becomes of it, and its number among the deliveries of the worker.
    pub(crate) fn complete_epoch(
        &mut self,
        worker: &str,
        work: &Work,
        delivery: Delivery,
        milliseconds: u64,
        now: Moment,
    ) -> Result<(Fate, u64), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok((Fate::Unneeded, 0)) };
        let Delivery { inputs, reported, digest, outcome, is_examined, is_trusted } = delivery;
        if reported != digest {
            let reason = format!("{work}: expected bytes with the digest {reported}, found {digest}");
            return Err(self.corrupt(worker, &reason, now));
        }
        if !self.is_open(&work.run) || self.is_retracting(&work.run) {
            return Ok((self.count(Fate::Unneeded), 0));
        }
        let outcome = outcome.map_err(|reason| self.corrupt(worker, &reason, now))?;
        self.expect(work, &inputs);
        // It has come to be awaited since it was looked at: it is sent again.
        let is_awaited =
            |evolution: &mut Evolution| evolution.examination((island, epoch), &inputs).is_some();
        if !is_examined && !is_trusted && self.evolution(&work.run).is_some_and(is_awaited) {
            return Err(Rejection::Unexamined);
        }
        if self.answer_audit(worker, work, &inputs, digest) {
            self.workers.note_success(worker);
            self.pump(&work.run, now);
            return Ok((self.count(Fate::Repeated), 0));
        }
        let name = self.workers.name(worker);
        let Some(evolution) = self.evolution(&work.run) else { return Ok((self.count(Fate::Unneeded), 0)) };
        let before = evolution.open_run().archipelago().standing(island);
        let evaluations =
            outcome.standing.evaluations.saturating_sub(before.map_or(0, |before| before.evaluations));
        let labour = Labour { worker: name, milliseconds, elapsed: evolution.elapsed() };
        let (fate, done) = match evolution.complete((island, epoch), &inputs, &outcome, worker, labour) {
            Err(RunError::Completion(CompletionError::Differs { found, .. })) => {
                self.dispute(worker, work, found, now);
                return Ok((self.count(Fate::Repeated), 0));
            }
            Err(RunError::Completion(error)) => return Err(self.corrupt(worker, &error.to_string(), now)),
            fate => fate?,
        };
        let mut number = 0;
        if fate == Fate::Accepted {
            number = self.receive(worker, &work.run);
            self.workers.note_work(worker, &work.run, evaluations, milliseconds);
            let receipt = Receipt { worker: worker.to_owned(), number };
            if let Some(created) = self.runs.get(&work.run).map(|run| run.created) {
                self.spans.accepted((work, created), &receipt, milliseconds, now);
            }
            if let Some(evolution) = self.evolution(&work.run) {
                if let Some(yardstick) = evolution.yardstick() {
                    yardstick.note_work(Duration::from_millis(milliseconds));
                }
                evolution.expect_written(island, epoch, receipt);
                if evolution.open_run().archipelago().end().is_some() {
                    evolution.hurry();
                }
            }
            self.leases.complete(work, now.elapsed);
            if let Some(open) = done.filter(|_| !is_trusted) {
                self.note_accepted(worker, work, open, &outcome, now);
            }
        }
        self.pump(&work.run, now);
        Ok((self.count(fate), number))
    }

    /// The plan by which delivered cells are checked, if they are needed.
    pub(crate) fn cell_plan(
        &mut self,
        worker: &str,
        work: &Work,
        now: Moment,
    ) -> Result<Option<Arc<CellPlan>>, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        Ok(self.cells(&work.run).map(|cells| cells.plan()))
    }

    /// Takes results of cells, to be stored.
    pub(crate) fn complete_cells(
        &mut self,
        worker: &str,
        work: &Work,
        delivered: DeliveredCells,
        now: Moment,
    ) -> Result<(Fate, u64), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let DeliveredCells { results, examined, is_trusted } = delivered;
        let results = match results {
            Ok(results) => results,
            Err(number) => {
                let reason = format!("{work}: expected the result of cell {number}, found another");
                return Err(self.corrupt(worker, &reason, now));
            }
        };
        let author = (!is_trusted).then(|| Arc::new(self.author(worker)));
        let is_open = self.is_open(&work.run);
        let run = work.run.clone();
        let Some(cells) = self.cells(&run).filter(|_| is_open) else {
            return Ok((self.count(Fate::Unneeded), 0));
        };
        let plan = cells.plan();
        // The run was opened since the results were looked at: they are sent again, and compared with its plan then.
        if !examined.is_some_and(|examined| Arc::ptr_eq(&examined, &plan)) {
            return Err(Rejection::Unexamined);
        }
        let Received { wanted, fate, audited, disputed } =
            cells.receive(results, author.as_ref(), now.elapsed);
        let mut number = 0;
        if !wanted.is_empty() {
            number = self.receive(worker, &run);
            let receipt = Receipt { worker: worker.to_owned(), number };
            self.step(&run, Step::KeepCells { plan, receipt, results: wanted });
        }
        self.confirmed_cells(&run, &audited);
        for number in disputed {
            tracing::error!(run, number, worker = %self.workers.name(worker), "differs from what is stored");
            self.decide_cell(&run, number);
        }
        if !self.wants(work, None) {
            self.leases.complete(work, now.elapsed);
        }
        self.pump(&run, now);
        Ok((self.count(fate), number))
    }

    /// Takes what is stored of cells.
    pub(super) fn kept_cells(&mut self, run: &str, receipt: Receipt, kept: KeptCells, now: Moment) {
        let KeptCells { stored, unstored, differing, error } = kept;
        self.completed_cells(run, stored, now);
        let author = Arc::new(self.author(&receipt.worker));
        let Some(cells) = self.cells(run) else {
            return self.workers.settle(&receipt.worker, receipt.number);
        };
        let plan = cells.plan();
        for &(number, digest) in &differing {
            cells.lose(number);
            cells.dispute(number, Some(&author), digest, now.elapsed);
        }
        for (number, _) in differing {
            self.decide_cell(run, number);
        }
        if let Some(error) = error {
            self.note_trouble(run, Err(error.into()), now);
        }
        if unstored.is_empty() {
            self.workers.settle(&receipt.worker, receipt.number);
        } else if self.is_open(run) {
            // It may have taken hours to compute: it is offered to the store until that takes it.
            self.step(run, Step::KeepCells { plan, receipt, results: unstored });
        }
        self.pump(run, now);
    }

    /// Takes the result of a job. The coordinator computes it too before it is stored, unless it comes from the same process.
    pub(crate) fn complete_job(
        &mut self,
        worker: &str,
        (work, inputs): (&Work, &Digest),
        result: JobResult,
        is_trusted: bool,
        now: Moment,
    ) -> Result<(Fate, u64), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Job { number } = work.piece else { return Ok((Fate::Unneeded, 0)) };
        if !self.is_open(&work.run) || self.is_retracting(&work.run) || !self.wants(work, Some(inputs)) {
            return Ok((self.count(Fate::Unneeded), 0));
        }
        if self.yardstick(&work.run).is_some_and(|yardstick| !yardstick.fits(number, &result)) {
            return Err(self.corrupt(worker, &format!("{work}: it delivered no result of games"), now));
        }
        self.leases.complete(work, now.elapsed);
        let author = self.author(worker);
        let run = work.run.clone();
        let delivery = self.receive(worker, &run);
        let receipt = Receipt { worker: worker.to_owned(), number: delivery };
        let taken = match self.runs.get_mut(&run).map(|run| &mut run.body) {
            Some(Body::Study(study)) => study.take(number),
            // Nothing is built upon a measurement: a share of them is computed again, as of epochs.
            Some(Body::Evolution(evolution)) => {
                let taken = evolution.yardstick().and_then(|yardstick| yardstick.take(number, now.elapsed));
                taken.filter(|_| self.rules.audit.chooses(inputs))
            }
            _ => None,
        };
        match taken.filter(|_| !is_trusted) {
            None => self.keep_job(&run, number, receipt, result),
            Some((job, inputs)) => {
                let (author, delivered) = ((author, receipt), result);
                let check = Effect::CheckJob { run, number, author, job, inputs, delivered };
                self.effects.push(check);
            }
        }
        Ok((self.count(Fate::Accepted), delivery))
    }

    /// Numbers a delivery that is accepted.
    fn receive(&mut self, worker: &str, run: &str) -> u64 {
        self.workers.note_success(worker);
        self.leases.fits(worker, run);
        self.workers.receive(worker)
    }

    fn count(&mut self, fate: Fate) -> Fate {
        match fate {
            Fate::Accepted => self.counters.accepted += 1,
            Fate::Repeated => self.counters.repeated += 1,
            Fate::Unneeded => self.counters.unneeded += 1,
        }
        fate
    }

    /// Quarantines a worker that delivered what cannot be.
    pub(super) fn corrupt(&mut self, worker: &str, reason: &str, now: Moment) -> Rejection {
        let author = self.author(worker);
        self.blame(&author, reason, now)
    }

    /// Quarantines a worker that delivered something wrong. Where results are audited, what its principal delivered before
    /// and that was not audited is taken back.
    pub(super) fn blame(&mut self, author: &Author, reason: &str, now: Moment) -> Rejection {
        let Author { worker, principal } = author;
        tracing::error!(worker = %self.workers.name(worker), reason, "quarantined: its results cannot be trusted");
        self.counters.quarantined += 1;
        self.workers.quarantine(worker, principal, reason, now.elapsed);
        self.leases.release_all(worker);
        for run in self.runs.values_mut() {
            if let Body::Evolution(evolution) = &mut run.body {
                evolution.distrust(principal);
            }
        }
        if self.rules.audit.is_on() {
            self.retract_all(principal, now);
        }
        Rejection::Corrupt(format!("corruption: {reason}; this worker is quarantined"))
    }

    /// Takes work back, because its worker leaves it or cannot do it.
    pub(crate) fn release(
        &mut self,
        worker: &str,
        (work, token): (&Work, Token),
        (failure, lack): (&str, Option<Lack>),
        now: Moment,
    ) -> Result<(), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        if failure.is_empty() {
            self.spans.ended(work, worker, "returned", now);
            self.leases.release(work, worker, token);
            return Ok(());
        }
        self.spans.ended(work, worker, "failed", now);
        let reason = plain(&failure.chars().take(1000).collect::<String>());
        self.workers.note_error(worker, &reason);
        // The workers of a batch are alike: what one lacks, none will have.
        let is_final = |lack: &Lack| *lack == Lack::Program && self.rules.exit_when_done;
        if let Some(lack) = lack.filter(|lack| !is_final(lack)) {
            let what = if lack == Lack::Program { "a program is missing" } else { "not enough memory" };
            tracing::warn!(run = work.run, worker = %self.workers.name(worker), reason, what);
            let lack = (reason.as_str(), lack == Lack::Program);
            self.leases.refuse(work, self.workers.party(worker), token, lack, now.elapsed);
            return Ok(());
        }
        self.counters.failures += 1;
        tracing::warn!(
            run = work.run,
            island = work.island(),
            epoch = work.epoch(),
            worker = %self.workers.name(worker),
            lease = token,
            reason,
            "failed"
        );
        if let Some(held) = self.leases.held_for(work, worker, token, now.elapsed) {
            self.note_lost((work, worker, held), (Cause::Failure, &reason), now);
        }
        let party = self.workers.party(worker);
        if self.leases.fail(work, party, token, &reason, now.elapsed) {
            self.workers.note_failure(worker, now.elapsed);
            self.judge(work, now);
        }
        Ok(())
    }

    /// Fails a run if a piece of it fails everywhere.
    fn judge(&mut self, work: &Work, now: Moment) {
        if self.is_audit(work) {
            return;
        }
        // A worker that is cut off for a while may be the one that could do it.
        let since = now.elapsed.saturating_sub(WAITED_FOR_LEASES * self.rules.terms.lease);
        if let Verdict::Poison(reason) = self.leases.judge(work, self.workers.connected(since), now.elapsed) {
            if let Piece::Job { number } = work.piece
                && self.is_measurement(work)
            {
                return self.leave_unmeasured(&work.run.clone(), number, &reason);
            }
            self.fail(&work.run.clone(), &reason, now);
        }
    }

    /// The workers that have been heard of within a lease.
    pub(super) fn connected(&self, now: Moment) -> impl Iterator<Item = Party<'_>> {
        self.workers.connected(now.elapsed.saturating_sub(self.rules.terms.lease))
    }

    /// Forgets the workers that have been silent for so long; returns their names.
    fn forget_silent(&mut self, silence: Duration, now: Moment) -> Vec<String> {
        let forgotten = self.workers.forget_silent(now.elapsed.saturating_sub(silence));
        forgotten
            .into_iter()
            .map(|(worker, name)| {
                self.leases.forget_worker(&worker);
                name
            })
            .collect()
    }

    /// Notes that a worker cannot work here before an operator changes something. Other workers of its batch end with it.
    pub(crate) fn note_misconfigured(&mut self, reason: &str, now: Moment) {
        let reason = plain(&reason.chars().take(1000).collect::<String>());
        tracing::warn!(reason, "a worker cannot start");
        self.misconfigured = Some((format!("a worker cannot start: {reason}"), now.elapsed));
    }

    pub(crate) fn leave(&mut self, worker: &str, reason: &str, now: Moment) {
        if self.spans.is_on() {
            for work in self.leases.held_by(worker) {
                self.spans.ended(work, worker, "left", now);
            }
        }
        tracing::info!(worker = %self.workers.name(worker), reason = %reason.chars().take(200).collect::<String>(), "left");
        self.leases.forget_worker(worker);
        self.workers.leave(worker);
    }

    /// Lets time pass: leases expire, budgets end.
    pub(crate) fn tick(&mut self, now: Moment) {
        let passed = now.elapsed.saturating_sub(self.ticked);
        self.ticked = now.elapsed;
        if passed > PAUSED.max(self.rules.terms.lease / 3) {
            tracing::warn!(seconds = passed.as_secs_f64(), "coordinator was suspended; leases extended");
            self.leases.postpone(passed);
        }
        self.expire(now);
        self.write_losses(now);
        for Stalled { work, worker, for_how_long } in self.leases.find_stalled(now.elapsed) {
            self.counters.stalled += 1;
            tracing::warn!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(&worker),
                seconds = for_how_long.as_secs(),
                "no progress: the worker renews its lease, but has evaluated nothing"
            );
        }
        for worker in self.forget_silent(SILENT_LEASES * self.rules.terms.lease, now) {
            self.counters.forgotten += 1;
            tracing::warn!(worker, reason = "it has been silent for 20 leases", "forgotten");
        }
        self.look_after_audits(now);
        for run in self.queue.active() {
            let is_worked_on = self.leases.count(&run) > 0;
            if is_worked_on {
                self.pass(&run, passed, now);
            }
            if let Some(yardstick) = self.yardstick(&run) {
                yardstick.pass(passed, is_worked_on);
            }
            self.pump(&run, now);
        }
    }

    fn expire(&mut self, now: Moment) {
        let reason = "it was not renewed in time: its worker is gone, stands still or is cut off";
        let mut vanished = BTreeSet::new();
        for Expired { work, worker, token, held } in self.leases.expire(now.elapsed) {
            self.counters.expired += 1;
            self.spans.ended(&work, &worker, "expired", now);
            tracing::warn!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(&worker),
                lease = token,
                reason,
                "lease expired"
            );
            self.note_lost((&work, &worker, held), (Cause::Silence, reason), now);
            let granted = now.elapsed.saturating_sub(held);
            self.leases.vanished(&work, self.workers.party(&worker), granted);
            vanished.insert(work);
        }
        for work in vanished {
            self.judge(&work, now);
        }
    }

    /// Notes that a worker held an epoch without a result: the next tick writes it down. A principal that only fails is heard ever
    /// less often, because workers must not be able to make a journal as long as they like.
    fn note_lost(
        &mut self,
        (work, worker, held): (&Work, &str, Duration),
        (cause, reason): (Cause, &str),
        now: Moment,
    ) {
        let Piece::Epoch { island, epoch } = work.piece else { return };
        let principal = self.workers.party(worker).principal.to_owned();
        if self.workers.is_ignored(&principal, now.elapsed) {
            return;
        }
        let loss = Loss { island, epoch, worker: self.workers.name(worker), held: held.as_millis() as u64 };
        let lost = self.lost.entry(work.run.clone()).or_default();
        if lost.count < MOST_LOSSES {
            lost.count += 1;
            lost.principals.insert(principal);
            let mut kind = (cause, reason.to_owned());
            if lost.losses.len() >= MOST_REASONS && !lost.losses.contains_key(&kind) {
                kind = (Cause::Failure, "they failed for other reasons".to_owned());
            }
            lost.losses.entry(kind).or_default().push(loss);
        }
    }

    /// Writes down what workers have lost since the last tick.
    pub(super) fn write_losses(&mut self, now: Moment) {
        let lost = std::mem::take(&mut self.lost);
        let principals: BTreeSet<&String> = lost.values().flat_map(|lost| &lost.principals).collect();
        for principal in principals {
            self.workers.note_losses(principal, now.elapsed);
        }
        for (run, lost) in lost {
            self.append_losses(&run, lost, now);
        }
    }

    /// Writes down what workers have lost of a run, before it ends because of that.
    pub(super) fn write_losses_of(&mut self, run: &str, now: Moment) {
        if let Some(lost) = self.lost.remove(run) {
            self.append_losses(run, lost, now);
        }
    }

    fn append_losses(&mut self, run: &str, lost: Lost, now: Moment) {
        // Nothing is written after the last event of a run.
        if !self.is_open(run) || self.is_ending(run) {
            return;
        }
        let at = now.unix;
        for ((cause, reason), losses) in lost.losses {
            // However many epochs are lost at once, it is one event.
            let event = match <[Loss; 1]>::try_from(losses) {
                Ok([Loss { island, epoch, worker, held }]) if cause == Cause::Failure => {
                    RunEvent::Lost { island, epoch, worker, held, reason, at }
                }
                Ok([loss]) => RunEvent::Expired { losses: vec![loss], reason, at },
                Err(losses) => RunEvent::Expired { losses, reason, at },
            };
            self.append(run, event, Then::Nothing);
        }
    }

    fn pass(&mut self, run: &str, time: Duration, now: Moment) {
        if let Some(cells) = self.cells(run) {
            cells.pass(time);
        }
        if let Some(end) = self.evolution(run).and_then(|evolution| evolution.pass(time)) {
            let event = RunEvent::Decided { end: end.clone(), at: now.unix };
            self.change(run, event, Then::Decide(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_are_wanted_as_the_pieces_keep_busy() {
        for ((ready, running), (threads, workers), wanted) in [
            ((0, 0), (0, 0), 0),
            // Without a worker, each piece is one.
            ((7, 0), (0, 0), 7),
            ((7, 0), (1, 1), 7),
            ((3, 4), (4, 1), 2),
            ((0, 8), (8, 2), 2),
            ((1, 8), (8, 2), 3),
            // Workers of different sizes: 9 threads of 2 workers are 4 of each.
            ((8, 0), (9, 2), 2),
            ((9, 0), (9, 2), 3),
            ((0, 0), (64, 16), 0),
        ] {
            let demand = Demand::new(ready, running, threads, workers);
            assert_eq!(demand, Demand { ready, running, workers: wanted }, "{threads} threads of {workers}");
        }
    }
}
