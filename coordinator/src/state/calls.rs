//! What workers call beside taking and delivering work, and what time does: workers join and leave, leases are renewed,
//! given back and lost.

use super::leases::{Expired, RetryDecision, Stalled, Token, WorkerIdentity};
use super::queue::RunState;
use super::workers::{WorkerRejection, shown};
use super::{Body, ClusterState, Evolution, Moment, Then};
use crate::rejection::Rejection;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use experiment::SEMANTICS;
use proto::convert::{Piece, Work, digest_bytes};
use proto::v1;
use report::text::plain;
use run::RunEvent;
use run::event::Loss;
use std::collections::{BTreeMap, BTreeSet};
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

/// What a worker lacks for a piece: that is no failure, others may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnfitReason {
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
            let error = WorkerRejection::Semantics { expected: SEMANTICS, found: *semantics, ours, theirs };
            self.refused = Some((error.to_string(), now.elapsed));
            return Err(error.into());
        }
        if self.workers.is_full() {
            // A worker that is there renews within a lease: a flood that never does blocks others for no longer.
            self.forget_silent(self.rules.terms.lease, now);
            if let Some(worker) = self.workers.make_room(principal) {
                self.leases.forget_worker(&worker);
            }
        }
        self.workers.continue_session(worker, principal, session);
        self.workers.join(worker, principal, (name, version), *threads, now.elapsed)?;
        if self.log_limit.allows(principal, now.elapsed) {
            tracing::info!(worker = shown(name), version = shown(version), threads, "joined");
        }
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
        let may_have = self.may_take(work, self.workers.identity(worker));
        if instruction == Instruction::Stop || !may_have || !self.wants(work, inputs.as_ref()) {
            self.leases.release(work, worker, *token);
            return Ok(Instruction::Stop);
        }
        if !self.leases.knows(work) && self.may_log(worker, now) {
            tracing::info!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(worker),
                lease = token,
                "lease adopted again"
            );
        }
        if let (Piece::Epoch { island, epoch }, Some(standing), Some(evolution)) =
            (work.piece, standing, self.evolution(&work.run))
        {
            evolution.progress(island, epoch, *standing);
        }
        let identity = self.workers.identity(worker);
        let renewed = self.leases.renew(work, identity, *token, *progress, now.elapsed);
        Ok(if renewed { instruction } else { Instruction::Stop })
    }

    /// Whether a worker that computes this, from these inputs, does something useful.
    pub(super) fn wants(&mut self, work: &Work, inputs: Option<&Digest>) -> bool {
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

    /// Takes work back, because its worker leaves it or cannot do it.
    pub(crate) fn release(
        &mut self,
        worker: &str,
        (work, token): (&Work, Token),
        (failure, unfit): (&str, Option<UnfitReason>),
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
        let is_final = |unfit: &UnfitReason| *unfit == UnfitReason::Program && self.rules.exit_when_done;
        if let Some(unfit) = unfit.filter(|unfit| !is_final(unfit)) {
            let what =
                if unfit == UnfitReason::Program { "a program is missing" } else { "not enough memory" };
            if self.may_log(worker, now) {
                tracing::warn!(run = work.run, worker = %self.workers.name(worker), reason, what);
            }
            let unfit = (reason.as_str(), unfit == UnfitReason::Program);
            self.leases.refuse(work, self.workers.identity(worker), token, unfit, now.elapsed);
            return Ok(());
        }
        self.counters.failures += 1;
        if self.may_log(worker, now) {
            tracing::warn!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(worker),
                lease = token,
                reason,
                "failed"
            );
        }
        if let Some(held) = self.leases.held_for(work, worker, token, now.elapsed) {
            self.note_lost((work, worker, held), (Cause::Failure, &reason), now);
        }
        let identity = self.workers.identity(worker);
        if self.leases.fail(work, identity, token, &reason, now.elapsed) {
            self.workers.note_failure(worker, now.elapsed);
            self.fail_if_poisoned(work, now);
        }
        Ok(())
    }

    /// Fails a run if a piece of it fails everywhere.
    fn fail_if_poisoned(&mut self, work: &Work, now: Moment) {
        if self.is_audit(work) {
            return;
        }
        // A worker that is cut off for a while may be the one that could do it.
        let since = now.elapsed.saturating_sub(WAITED_FOR_LEASES * self.rules.terms.lease);
        if let RetryDecision::Poison(reason) =
            self.leases.retry_decision(work, self.workers.connected(since), now.elapsed)
        {
            if let Piece::Job { number } = work.piece
                && self.is_measurement(work)
            {
                return self.leave_unmeasured(&work.run.clone(), number, &reason);
            }
            self.fail(&work.run.clone(), &reason, now);
        }
    }

    /// The workers that have been heard of within a lease.
    pub(super) fn connected(&self, now: Moment) -> impl Iterator<Item = WorkerIdentity<'_>> {
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
    pub(crate) fn note_misconfigured(&mut self, worker: &str, reason: &str, now: Moment) {
        let reason = plain(&reason.chars().take(1000).collect::<String>());
        if self.may_log(worker, now) {
            tracing::warn!(reason, "a worker cannot start");
        }
        self.misconfigured = Some((format!("a worker cannot start: {reason}"), now.elapsed));
    }

    pub(crate) fn leave(&mut self, worker: &str, reason: &str, now: Moment) {
        if self.spans.is_on() {
            for work in self.leases.held_by(worker) {
                self.spans.ended(work, worker, "left", now);
            }
        }
        if self.may_log(worker, now) {
            let reason: String = reason.chars().take(200).collect();
            tracing::info!(worker = %self.workers.name(worker), reason, "left");
        }
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
            if !self.may_log(&worker, now) {
                continue;
            }
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
            if self.log_limit.allows("workers that have been silent", now.elapsed) {
                tracing::warn!(worker, reason = "it has been silent for 20 leases", "forgotten");
            }
        }
        for (principal, left_out) in self.log_limit.end_periods(now.elapsed) {
            tracing::warn!(principal, left_out, "more lines about its workers were left out");
        }
        self.look_after_audits(now);
        for run in self.counted.keys().cloned().collect::<Vec<String>>() {
            self.count_time(&run, now);
            self.end_in_time(&run, now);
        }
        let leases = &self.leases;
        self.counted.retain(|run, _| leases.count(run) > 0);
        for run in self.queue.active() {
            let is_worked_on = self.leases.count(&run) > 0;
            if is_worked_on {
                // Leases that workers brought along from the coordinator before were never granted here.
                self.counted.entry(run.clone()).or_insert(now.elapsed);
            }
            if let Some(yardstick) = self.yardstick(&run) {
                yardstick.pass(passed, is_worked_on);
            }
            self.advance(&run, now);
        }
    }

    fn expire(&mut self, now: Moment) {
        let reason = "it was not renewed in time: its worker is gone, stands still or is cut off";
        let mut vanished = BTreeSet::new();
        for Expired { work, worker, token, held } in self.leases.expire(now.elapsed) {
            self.counters.expired += 1;
            self.spans.ended(&work, &worker, "expired", now);
            if self.may_log(&worker, now) {
                tracing::warn!(
                    run = work.run,
                    island = work.island(),
                    epoch = work.epoch(),
                    worker = %self.workers.name(&worker),
                    lease = token,
                    reason,
                    "lease expired"
                );
            }
            self.note_lost((&work, &worker, held), (Cause::Silence, reason), now);
            let granted = now.elapsed.saturating_sub(held);
            self.leases.vanished(&work, self.workers.identity(&worker), granted);
            vanished.insert(work);
        }
        for work in vanished {
            self.fail_if_poisoned(&work, now);
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
        let principal = self.workers.identity(worker).principal.to_owned();
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

    /// Adds the time for which a run was worked on since that was counted last: from the first lease on, also where a worker has
    /// delivered one piece and asks for the next.
    pub(super) fn count_time(&mut self, run: &str, now: Moment) {
        let Some(since) = self.counted.get_mut(run) else { return };
        let time = now.elapsed.saturating_sub(std::mem::replace(since, now.elapsed));
        if let Some(cells) = self.cells(run) {
            cells.pass(time);
        }
        if let Some(evolution) = self.evolution(run) {
            evolution.pass(time);
        }
    }

    /// Decides where a run ends whose time is up.
    fn end_in_time(&mut self, run: &str, now: Moment) {
        if self.queue.state(run) != Some(&RunState::Active) {
            return;
        }
        if let Some(end) = self.evolution(run).and_then(Evolution::end_in_time) {
            let event = RunEvent::Decided { end: end.clone(), at: now.unix };
            self.change(run, event, Then::Decide(end));
        }
    }
}
