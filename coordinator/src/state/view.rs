//! What others see of the state: rows, leases, workers, islands, and why a run makes no progress. Nothing changes.

use super::leases::LeaseStatus;
use super::queue::RunState;
use super::{Body, ClusterState, Moment};
use codec::Standing;
use proto::convert::{self, Piece};
use proto::v1;
use proto::v1::run_status::{Kind, State};
use report::dashboard::{
    Ahead, Failing, IslandState, IslandView, LeaseView, MissingResource, Phase, RunRow, Situation,
    StoreHealth, StrengthView, Waiting, WorkerCounts, WorkerState, WorkerView,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

impl ClusterState {
    /// All runs as lists show them.
    pub(crate) fn rows(&self, now: Moment) -> Vec<RunRow> {
        self.statuses(now).into_iter().map(|status| self.row_of(status)).collect()
    }

    /// One run as lists show it.
    pub(crate) fn row(&self, run: &str, now: Moment) -> Option<RunRow> {
        self.status(run, now).ok().map(|status| self.row_of(status))
    }

    /// A run with what its status does not say.
    fn row_of(&self, status: v1::RunStatus) -> RunRow {
        let row = row(status);
        let strength = self.strength(&row.run);
        let Some(Body::Cells(cells)) = self.runs.get(&row.run).map(|run| &run.body) else {
            return RunRow { strength, ..row };
        };
        let Standing { generation: done_before, evaluations: evaluations_before, .. } = cells.before();
        let mut row = RunRow { strength, done_before, evaluations_before, ..row };
        row.estimate();
        row
    }

    /// What was measured last of a run that is open.
    fn strength(&self, run: &str) -> Option<StrengthView> {
        let Body::Evolution(evolution) = &self.runs.get(run)?.body else { return None };
        evolution.measuring()?.strengths().view()
    }

    /// All workers.
    pub(crate) fn worker_views(&self, now: Moment) -> Vec<WorkerView> {
        let since = now.elapsed.saturating_sub(self.rules.terms.lease);
        let mut views = self.workers.views(since, now.elapsed);
        for view in &mut views {
            let (mut oldest, mut idle) = (None, None);
            for LeaseStatus { granted, progressed, .. } in self.leases.held_leases(&view.worker) {
                view.leases += 1;
                oldest = oldest.max(Some(now.elapsed.saturating_sub(granted)));
                idle = idle.max(Some(now.elapsed.saturating_sub(progressed)));
            }
            view.lease_age_milliseconds = oldest.map(milliseconds);
            view.progress_age_milliseconds = idle.map(milliseconds);
            if view.state == WorkerState::Idle && view.leases > 0 {
                view.state = WorkerState::Busy;
            }
        }
        views
    }

    /// The leases of a run that are out.
    pub(crate) fn lease_views(&self, run: &str, now: Moment) -> Vec<LeaseView> {
        self.leases.leases_of(run).map(|lease| self.lease_view(&lease, now)).collect()
    }

    fn lease_view(&self, lease: &LeaseStatus<'_>, now: Moment) -> LeaseView {
        let (island, epoch) = match lease.work.piece {
            Piece::Epoch { island, epoch } => (Some(island), Some(epoch)),
            Piece::Cells { .. } | Piece::Job { .. } => (None, None),
        };
        LeaseView {
            run: lease.work.run.clone(),
            piece: lease.work.piece.to_string(),
            island,
            epoch,
            worker: lease.worker.to_owned(),
            name: self.workers.name(lease.worker),
            age_milliseconds: milliseconds(now.elapsed.saturating_sub(lease.granted)),
            expires_milliseconds: milliseconds(lease.expires.saturating_sub(now.elapsed)),
            progress_age_milliseconds: milliseconds(now.elapsed.saturating_sub(lease.progressed)),
            stalled: lease.stalled,
        }
    }

    /// The islands of a run that is open.
    pub(crate) fn island_views(&self, run: &str) -> Vec<IslandView> {
        let Some(Body::Evolution(evolution)) = self.runs.get(run).map(|run| &run.body) else { return vec![] };
        let holders = self.holders(run);
        let archipelago = evolution.open_run().archipelago();
        let is_active = self.is_active(run);
        (0..evolution.count() as u32)
            .map(|island| {
                let Standing { generation, best, .. } = evolution.standing_of(island);
                let worker = holders.get(&island).map(|worker| self.workers.name(worker));
                let state = match worker {
                    Some(_) => IslandState::Computing,
                    None if !is_active => IslandState::Idle,
                    None if archipelago.is_ready(island) || evolution.is_handed_out(island) => {
                        IslandState::Ready
                    }
                    None => IslandState::Waiting,
                };
                let best = Some(best).filter(|best| best.is_finite());
                IslandView { island, epochs: archipelago.done(island), generation, best, state, worker }
            })
            .collect()
    }

    /// Which worker has each island's next epoch.
    fn holders<'a>(&'a self, run: &'a str) -> BTreeMap<u32, &'a str> {
        let epochs = self.leases.leases_of(run).filter_map(|lease| match lease.work.piece {
            Piece::Epoch { island, .. } => Some((island, lease.worker)),
            Piece::Cells { .. } | Piece::Job { .. } => None,
        });
        epochs.collect()
    }

    /// What there is to know about the progress of a run. A study makes progress as its parts do.
    pub(crate) fn situation(&self, run: &str, now: Moment, store: StoreHealth) -> Option<Situation> {
        // Looking at thousands of workers for each page of a run that has ended costs much.
        let fleet =
            if matches!(self.state_of(run)?, RunState::Active) { self.fleet(now) } else { Fleet::default() };
        self.situation_beside(run, now, store, &fleet)
    }

    /// The workers as they are now.
    pub(super) fn fleet(&self, now: Moment) -> Fleet<'_> {
        let since = now.elapsed.saturating_sub(self.rules.terms.lease);
        let counts =
            self.workers.counts(since, now.elapsed, |worker| self.leases.held_by(worker).next().is_some());
        let connected = self.workers.connected(since).map(|identity| identity.worker);
        // One that is drained, or rests, is given nothing whatever it has.
        let is_given_work = |worker: &&str| {
            !self.workers.is_draining(worker) && !self.workers.is_resting(worker, now.elapsed)
        };
        let mut given_work: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
        for worker in connected.filter(is_given_work) {
            let held = self.leases.held_by(worker).map(|work| work.run.as_str()).collect();
            given_work.entry(held).or_default().push(worker);
        }
        Fleet { counts, given_work }
    }

    /// The same beside workers that were looked at.
    pub(super) fn situation_beside(
        &self,
        run: &str,
        now: Moment,
        store: StoreHealth,
        fleet: &Fleet<'_>,
    ) -> Option<Situation> {
        let phase = match self.state_of(run)? {
            RunState::Active => Phase::Active,
            RunState::Paused if self.rules.only_submitted => Phase::PausedHere,
            RunState::Paused => Phase::Paused,
            RunState::Finished(reason) => Phase::Finished(reason.clone()),
            RunState::Cancelled => Phase::Cancelled,
            RunState::Failed(reason) => Phase::Failed(reason.clone()),
        };
        if phase != Phase::Active {
            // Nothing else matters then.
            let is_paused = matches!(phase, Phase::Paused | Phase::PausedHere);
            let paused = self.paused_study_of(run).filter(|_| is_paused).map(str::to_owned);
            return Some(Situation { phase, paused, ..Situation::default() });
        }
        if let Some(part) = self.telling_part(run) {
            let situation = self.situation_beside(&part, now, store, fleet)?;
            let is_paused = matches!(situation.phase, Phase::Paused | Phase::PausedHere);
            let paused = is_paused.then_some(part);
            return Some(Situation { paused, ..situation });
        }
        let leases: Vec<LeaseStatus<'_>> = self.leases.leases_of(run).collect();
        let holders: BTreeSet<&str> = leases.iter().map(|lease| lease.worker).collect();
        let missing = self.leases.why_unfit(run, fleet.given_work.values().flatten().copied());
        let missing = missing.map(|(reason, lacks_program)| {
            if lacks_program {
                MissingResource::Program(reason.to_owned())
            } else {
                MissingResource::Memory(reason.to_owned())
            }
        });
        let stalled = leases.iter().find(|lease| lease.stalled).map(|lease| {
            let age = milliseconds(now.elapsed.saturating_sub(lease.progressed));
            (lease.work.piece.to_string(), self.workers.name(lease.worker), age)
        });
        let ready = self.ready_of(run);
        Some(Situation {
            phase,
            paused: None,
            workers: fleet.counts.clone(),
            leases: leases.len(),
            holders: holders.len(),
            ready,
            stalled,
            silent: self.silent(&leases, now),
            missing,
            failing: self.leases.failing(run).map(|(work, workers, reason, again)| Failing {
                piece: work.piece.to_string(),
                workers,
                reason: reason.to_owned(),
                retry_milliseconds: milliseconds(again.saturating_sub(now.elapsed)),
            }),
            // Without leases no island computes what others could wait for.
            waiting: if leases.is_empty() { None } else { self.waiting(run) },
            ahead: if ready > 0 { self.ahead(run, fleet) } else { None },
            store,
            is_ending: self.is_ending(run) || self.has_reached_its_end(run, ready),
        })
    }

    /// If every piece of a run is held by a worker that missed its last renewals: the one whose lease expires first.
    fn silent(&self, leases: &[LeaseStatus<'_>], now: Moment) -> Option<(String, String, u64)> {
        // A worker that is there renews three times in a lease: after half a lease it has missed one.
        let heard = now.elapsed + self.rules.terms.lease / 2;
        if leases.iter().any(|lease| lease.expires > heard) {
            return None;
        }
        let first = leases.iter().min_by_key(|lease| lease.expires)?;
        let rest = milliseconds(first.expires.saturating_sub(now.elapsed));
        Some((first.work.piece.to_string(), self.workers.name(first.worker), rest))
    }

    /// Pieces that a worker could take now.
    fn ready_of(&self, run: &str) -> usize {
        let waiting = self.leases.count_waiting_of(run);
        waiting
            + match self.runs.get(run).map(|run| &run.body) {
                Some(Body::Evolution(evolution)) => {
                    evolution.open_run().archipelago().ready_count() + evolution.measurable()
                }
                Some(Body::Cells(cells)) => cells.count_ready(),
                Some(Body::Study(study)) => study.jobs_ready(),
                Some(Body::Closed(_)) | None => 0,
            }
    }

    fn has_reached_its_end(&self, run: &str, ready: usize) -> bool {
        match self.runs.get(run).map(|run| &run.body) {
            Some(Body::Evolution(evolution)) => evolution.open_run().archipelago().end().is_some(),
            // All results are there, and are being written or audited.
            Some(Body::Cells(_)) => ready == 0 && self.leases.count(run) == 0,
            _ => false,
        }
    }

    /// The island that others wait for: the slowest of those that a waiting one depends on.
    fn waiting(&self, run: &str) -> Option<Waiting> {
        let Some(Body::Evolution(evolution)) = self.runs.get(run).map(|run| &run.body) else { return None };
        let archipelago = evolution.open_run().archipelago();
        let islands = 0..evolution.count() as u32;
        let is_waiting = |island: &u32| !evolution.is_handed_out(*island) && !archipelago.is_ready(*island);
        let waiting: Vec<u32> = islands.clone().filter(is_waiting).collect();
        let first = *waiting.first()?;
        let done = |island: &u32| archipelago.done(*island);
        let behind = |island: &u32| archipelago.done(*island) < archipelago.done(first);
        let sender =
            archipelago.senders(first).iter().copied().filter(|island| behind(island)).min_by_key(done);
        // Where no neighbour is behind, the slowest island of all limits the lead of the others.
        let island = sender.or_else(|| islands.min_by_key(done))?;
        let worker = self.holders(run).get(&island).map(|worker| self.workers.name(worker));
        Some(Waiting { islands: waiting.len(), island, epoch: archipelago.done(island), worker })
    }

    /// The run that keeps all workers busy that could take another one, of those that are given work.
    fn ahead(&self, run: &str, fleet: &Fleet<'_>) -> Option<Ahead> {
        let mut ahead: Option<Ahead> = None;
        let could_take =
            |workers: &[&str]| workers.iter().any(|worker| !self.leases.lacks_something(worker, run));
        for (held, _) in fleet.given_work.iter().filter(|(_, workers)| could_take(workers)) {
            // One that is idle or computes this run is not kept from it.
            let other = held.iter().copied().find(|held| *held != run)?;
            let comes_first = self.queue.comes_before(other, run);
            // A single worker that takes this run next is worth waiting for.
            if !comes_first || ahead.is_none() {
                ahead = Some(Ahead { run: other.to_owned(), comes_first });
            }
        }
        ahead
    }

    /// The part of a study that explains it: the first of those that workers compute, or else of those that are not finished,
    /// what is paused last.
    fn telling_part(&self, run: &str) -> Option<String> {
        if self.leases.count(run) > 0 || self.ready_of(run) > 0 {
            return None;
        }
        let open = self.parts_of(run).into_iter().filter(|part| self.is_open(part));
        open.min_by_key(|part| (self.leases.count(part) == 0, !self.is_active(part)))
    }
}

/// The workers of a cluster at one moment.
#[derive(Default)]
pub(super) struct Fleet<'a> {
    counts: WorkerCounts,
    /// Those that are given work, by the runs of which they hold some.
    given_work: BTreeMap<BTreeSet<&'a str>, Vec<&'a str>>,
}

/// A run as lists show it.
pub(crate) fn row(status: v1::RunStatus) -> RunRow {
    let (kind, unit) = match status.kind() {
        Kind::Evolution => ("evolution", "generations"),
        Kind::Sweep => ("sweep", "cells"),
        Kind::Tournament => ("tournament", "batches"),
        Kind::Study => ("study", "parts"),
        Kind::Unspecified => ("", ""),
    };
    let state = match status.state() {
        State::Waiting => "waiting",
        State::Running => "running",
        State::Paused => "paused",
        State::Finished => "finished",
        State::Cancelled => "cancelled",
        State::Failed => "failed",
        State::Unspecified => "unknown",
    };
    let standing = status.standing.unwrap_or_default();
    let digest = status.digest.as_ref().and_then(|digest| convert::digest("digest", digest).ok());
    let mut row = RunRow {
        kind: kind.to_owned(),
        unit: unit.to_owned(),
        state: state.to_owned(),
        best: Some(standing.best).filter(|best| best.is_finite() && status.standing.is_some()),
        done: standing.generation,
        evaluations: standing.evaluations,
        digest: digest.map(|digest| digest.to_string()),
        run: status.run,
        reason: status.reason,
        priority: status.priority,
        goal: status.goal,
        goal_evaluations: status.goal_evaluations,
        goal_milliseconds: status.goal_milliseconds,
        islands: status.islands,
        leases: status.leases,
        elapsed_milliseconds: status.elapsed_milliseconds,
        created: status.created,
        labels: status.labels,
        ..RunRow::default()
    };
    row.estimate();
    row
}
