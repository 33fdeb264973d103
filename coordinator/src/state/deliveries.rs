//! What workers deliver: epochs, checkpoints, cells and jobs.

use super::{
    Author, Body, ClusterState, Effect, Evolution, Examination, KeptCells, Moment, Receipt, Received, Step,
};
use crate::rejection::Rejection;
use archipelago::CompletionError;
use archipelago::cell::{CellPlan, CellResult};
use archipelago::job::JobResult;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, Standing};
use proto::convert::{Piece, Work};
use run::RunError;
use run::record::Labour;
use std::sync::Arc;
use std::time::Duration;

/// What became of something that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeliveryStatus {
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

impl ClusterState {
    /// Takes up a piece of which something came before its lease was renewed. If nothing follows, it waits for another
    /// worker.
    fn expect(&mut self, work: &Work, inputs: &Digest) {
        if self.wants(work, Some(inputs)) {
            self.leases.offer(work);
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
        self.advance(&work.run, now);
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
    ) -> Result<(DeliveryStatus, u64), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Epoch { island, epoch } = work.piece else { return Ok((DeliveryStatus::Unneeded, 0)) };
        let Delivery { inputs, reported, digest, outcome, is_examined, is_trusted } = delivery;
        if reported != digest {
            let reason = format!("{work}: expected bytes with the digest {reported}, found {digest}");
            return Err(self.corrupt(worker, &reason, now));
        }
        if !self.is_open(&work.run) || self.is_retracting(&work.run) {
            return Ok((self.count(DeliveryStatus::Unneeded), 0));
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
            self.advance(&work.run, now);
            return Ok((self.count(DeliveryStatus::Repeated), 0));
        }
        let name = self.workers.name(worker);
        let Some(evolution) = self.evolution(&work.run) else {
            return Ok((self.count(DeliveryStatus::Unneeded), 0));
        };
        let before = evolution.open_run().archipelago().standing(island);
        let evaluations =
            outcome.standing.evaluations.saturating_sub(before.map_or(0, |before| before.evaluations));
        let labour = Labour { worker: name, milliseconds, elapsed: evolution.elapsed() };
        let (status, done) = match evolution.complete((island, epoch), &inputs, &outcome, worker, labour) {
            Err(RunError::Completion(CompletionError::Differs { found, .. })) => {
                self.dispute(worker, work, found, now);
                return Ok((self.count(DeliveryStatus::Repeated), 0));
            }
            Err(RunError::Completion(error)) => return Err(self.corrupt(worker, &error.to_string(), now)),
            status => status?,
        };
        let mut number = 0;
        if status == DeliveryStatus::Accepted {
            number = self.receive(worker, &work.run);
            let held = self.leases.held_by_worker(work, worker, now.elapsed);
            self.workers.note_work(worker, &work.run, evaluations, milliseconds);
            let receipt = Receipt { worker: worker.to_owned(), number };
            if let Some(created) = self.runs.get(&work.run).map(|run| run.created) {
                self.spans.accepted((work, created), &receipt, milliseconds, now);
            }
            if let Some(evolution) = self.evolution(&work.run) {
                if let Some((yardstick, held)) = evolution.yardstick().zip(held) {
                    // No worker has computed for longer than it had the epoch, whatever it says.
                    yardstick.note_work(Duration::from_millis(milliseconds).min(held));
                }
                evolution.expect_written(island, epoch, receipt);
                if evolution.open_run().archipelago().end().is_some() {
                    evolution.flush();
                }
            }
            self.note_completed(worker, work, now);
            if let Some(open) = done.filter(|_| !is_trusted) {
                self.note_accepted(worker, work, open, &outcome, now);
            }
        }
        self.advance(&work.run, now);
        Ok((self.count(status), number))
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
    ) -> Result<(DeliveryStatus, u64), Rejection> {
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
        // Once the end of a run is on its way to the journal, nothing more of it is stored.
        let is_open = self.is_open(&work.run) && !self.is_stopping(&work.run);
        let run = work.run.clone();
        let Some(cells) = self.cells(&run).filter(|_| is_open) else {
            return Ok((self.count(DeliveryStatus::Unneeded), 0));
        };
        let plan = cells.plan();
        // The run was opened since the results were looked at: they are sent again, and compared with its plan then.
        if !examined.is_some_and(|examined| Arc::ptr_eq(&examined, &plan)) {
            return Err(Rejection::Unexamined);
        }
        let Received { wanted, status, audited, disputed } =
            cells.receive(results, author.as_ref(), now.elapsed);
        let mut number = 0;
        if !wanted.is_empty() {
            number = self.receive(worker, &run);
            let receipt = Receipt { worker: worker.to_owned(), number };
            self.step(&run, Step::KeepCells { plan, receipt, results: wanted });
        }
        self.confirmed_cells(&run, &audited);
        for number in disputed {
            if self.may_log(worker, now) {
                tracing::error!(run, number, worker = %self.workers.name(worker), "differs from what is stored");
            }
            self.decide_cell(&run, number);
        }
        if !self.wants(work, None) {
            self.note_completed(worker, work, now);
        }
        self.advance(&run, now);
        Ok((self.count(status), number))
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
        self.advance(run, now);
    }

    /// Whether the result of a job is awaited from these inputs.
    pub(crate) fn awaits_job(
        &mut self,
        worker: &str,
        work: &Work,
        inputs: &Digest,
        now: Moment,
    ) -> Result<bool, Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let is_awaited =
            self.is_open(&work.run) && !self.is_retracting(&work.run) && self.wants(work, Some(inputs));
        if !is_awaited {
            self.count(DeliveryStatus::Unneeded);
        }
        Ok(is_awaited)
    }

    /// Takes the result of a job. The coordinator computes it too before it is stored, unless it comes from the same process.
    pub(crate) fn complete_job(
        &mut self,
        worker: &str,
        (work, inputs): (&Work, &Digest),
        result: JobResult,
        is_trusted: bool,
        now: Moment,
    ) -> Result<(DeliveryStatus, u64), Rejection> {
        self.workers.see(worker, now.elapsed)?;
        let Piece::Job { number } = work.piece else { return Ok((DeliveryStatus::Unneeded, 0)) };
        if !self.is_open(&work.run) || self.is_retracting(&work.run) || !self.wants(work, Some(inputs)) {
            return Ok((self.count(DeliveryStatus::Unneeded), 0));
        }
        if self.yardstick(&work.run).is_some_and(|yardstick| !yardstick.fits(number, &result)) {
            return Err(self.corrupt(worker, &format!("{work}: it delivered no result of games"), now));
        }
        self.note_completed(worker, work, now);
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
        Ok((self.count(DeliveryStatus::Accepted), delivery))
    }

    /// Forgets a piece that a worker has done. Others that had it for so long that it was repeated hold their runs up: one that
    /// does so again and again, without a result of its own, is given less.
    fn note_completed(&mut self, worker: &str, work: &Work, now: Moment) {
        for outrun in self.leases.complete(work, self.workers.identity(worker), now.elapsed) {
            self.note_outrun(&outrun, work, now);
        }
    }

    /// Notes that a worker had a piece for so long that another one did it.
    pub(super) fn note_outrun(&mut self, worker: &str, work: &Work, now: Moment) {
        let reason = format!("{work}: it had it for so long that others did it");
        if self.may_log(worker, now) {
            tracing::info!(run = work.run, worker = %self.workers.name(worker), reason, "outrun");
        }
        self.workers.note_error(worker, &reason);
        self.workers.note_failure(worker, now.elapsed);
    }

    /// Numbers a delivery that is accepted.
    fn receive(&mut self, worker: &str, run: &str) -> u64 {
        self.workers.note_success(worker);
        self.leases.fits(worker, run);
        self.workers.receive(worker)
    }

    fn count(&mut self, status: DeliveryStatus) -> DeliveryStatus {
        match status {
            DeliveryStatus::Accepted => self.counters.accepted += 1,
            DeliveryStatus::Repeated => self.counters.repeated += 1,
            DeliveryStatus::Unneeded => self.counters.unneeded += 1,
        }
        status
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
}
