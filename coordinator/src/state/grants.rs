//! What there is to do, and what of it a worker is given.

use super::leases::Token;
use super::queue::QueueError;
use super::reply_budget::ReplyBudget;
use super::{Body, ClusterState, Moment};
use crate::rejection::Rejection;
use bytes::Bytes;
use evolution::digest::Digest;
use proto::convert::{Piece, Work, digest_bytes};
use proto::v1;
use run::players::PlayerFiles;
use std::collections::BTreeSet;

/// Pieces that no worker has, pieces that workers have, and the workers that both could keep busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) ready: usize,
    pub(crate) running: usize,
    pub(crate) workers: usize,
}

impl Demand {
    /// For workers that usually have this number of threads. While there is none, one of one thread is assumed: it comes, and then
    /// the size of workers is known.
    fn new(ready: usize, running: usize, threads: u32) -> Self {
        Self { ready, running, workers: (ready + running).div_ceil(threads.max(1) as usize) }
    }
}

impl ClusterState {
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
        let may_have = |work: &&Work| self.may_take(work, self.workers.identity(worker));
        let lost = self.leases.held_by(worker).filter(|work| !holding.contains(*work)).filter(may_have);
        let lost: Vec<Work> = lost.cloned().collect();
        // What it has delivered it still holds until that is durable, but it computes it no more.
        let is_idle = self.leases.held_by(worker).next().is_none();
        let grants = self.hand_out((worker, slots), lost, is_idle, budget, now);
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
            self.counted.entry(work.run.clone()).or_insert(now.elapsed);
            let token = self.leases.grant(&work, worker, now.elapsed);
            match self.grant(&work, worker, token, budget) {
                Some(grant) => {
                    self.note_grant(&work, worker, &grant);
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
    fn note_grant(&mut self, work: &Work, worker: &str, grant: &v1::Grant) {
        let is_resumed = grant.task.as_ref().is_some_and(|task| task.checkpoint.is_some());
        if let Piece::Epoch { island, epoch } = work.piece
            && let Some(evolution) = self.evolution(&work.run)
        {
            if is_resumed {
                evolution.note_checkpoint_grant(island, epoch, worker);
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
                !self.is_measurement(work) && self.may_take(work, self.workers.identity(worker))
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
        self.leases.put_off_repeats(now.elapsed);
        let may_take = |work: &Work| {
            self.is_active(&work.run)
                && !self.leases.is_unfit(worker, &work.run, now.elapsed)
                && self.may_take(work, self.workers.identity(worker))
                && !self.has_repeated(work, self.workers.identity(worker).principal)
        };
        let work = self.leases.hedge(worker, now.elapsed, may_take)?;
        self.counters.hedged += 1;
        if self.may_log(worker, now) {
            tracing::info!(
                run = work.run,
                island = work.island(),
                epoch = work.epoch(),
                worker = %self.workers.name(worker),
                "repeated by an idle worker"
            );
        }
        Some(work)
    }

    /// Whether two workers of a principal have a piece: with more of them, each of which would be waited for, a single caller
    /// could hold the piece for as long as it likes.
    fn has_repeated(&self, work: &Work, principal: &str) -> bool {
        let of_principal = |worker: &&str| self.workers.identity(worker).principal == principal;
        self.leases.holders(work).filter(of_principal).count() >= 2
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
        Demand::new(ready, running, self.workers.usual_threads())
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
        body.ok_or_else(|| Rejection::NotLeased(work.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_are_wanted_as_the_pieces_keep_busy() {
        for ((ready, running), threads, wanted) in [
            ((0, 0), 0, 0),
            // Without a worker, each piece is one.
            ((7, 0), 0, 7),
            ((7, 0), 1, 7),
            ((3, 4), 4, 2),
            ((0, 8), 4, 2),
            ((1, 8), 4, 3),
            ((0, 0), 4, 0),
        ] {
            let demand = Demand::new(ready, running, threads);
            assert_eq!(demand, Demand { ready, running, workers: wanted }, "{threads} threads");
        }
    }
}
