//! What a coordinator does about audits: hands them out, decides what differs, and takes back what liars have delivered.

use super::audit::{Decision, Dispute};
use super::evolution::Open;
use super::leases::WorkerIdentity;
use super::queue::RunState;
use super::runs::Ending;
use super::{
    Accepted, Answer, AuditOutcome, Author, Body, ClusterState, Effect, Evolution, Moment, OpenRequest,
    Opening, Place, RecomputedEpoch, Step, Then, UNKNOWN,
};
use ::evolution::digest::Digest;
use ::evolution::epoch::EpochOutcome;
use proto::convert::{Piece, Work};
use run::RunEvent;
use std::time::Duration;

/// An audit that no worker has taken for this number of leases, or times that pieces of its run usually take, is left to the
/// coordinator.
const PATIENCE_LEASES: u32 = 2;

/// The same of an audit that a worker has taken, which may be slower than others.
const SLOWEST_AUDIT: u32 = 4;

fn work_at(run: &str, (island, epoch): Place) -> Work {
    Work { run: run.to_owned(), piece: Piece::Epoch { island, epoch } }
}

/// Why the results of a principal are taken back, as the journal says.
pub(super) fn why_retracted(principal: &str) -> String {
    if principal == UNKNOWN {
        return "a result followed from a wrong checkpoint of an earlier coordinator".to_owned();
    }
    format!("a worker of {principal} is quarantined, and its results were not audited")
}

impl ClusterState {
    /// A worker, and who answers for it.
    pub(super) fn author(&self, worker: &str) -> Author {
        let WorkerIdentity { worker, principal, .. } = self.workers.identity(worker);
        Author { worker: worker.to_owned(), principal: principal.to_owned() }
    }

    /// Whether a worker may be given a piece: one that is computed again goes to another principal.
    pub(super) fn may_take(&self, work: &Work, identity: WorkerIdentity<'_>) -> bool {
        match (self.runs.get(&work.run).map(|run| &run.body), work.piece) {
            (Some(Body::Evolution(evolution)), Piece::Epoch { island, epoch }) => {
                evolution.may_take(island, epoch, identity.principal)
            }
            (Some(Body::Cells(cells)), Piece::Cells { first, count: 1 }) => {
                cells.may_take(first, identity.principal)
            }
            _ => true,
        }
    }

    /// Whether a piece is computed again.
    pub(super) fn is_audit(&self, work: &Work) -> bool {
        match (self.runs.get(&work.run).map(|run| &run.body), work.piece) {
            (Some(Body::Evolution(evolution)), Piece::Epoch { island, epoch }) => {
                evolution.is_being_audited(island, epoch)
            }
            (Some(Body::Cells(cells)), Piece::Cells { first, count: 1 }) => cells.is_being_audited(first),
            _ => false,
        }
    }

    /// Remembers who delivered an epoch, and has it computed again if it is chosen.
    pub(super) fn note_accepted(
        &mut self,
        worker: &str,
        work: &Work,
        open: Open,
        outcome: &EpochOutcome,
        now: Moment,
    ) {
        let place = (open.task.island, open.task.epoch);
        let is_on = self.rules.audit.is_on();
        let author = self.author(worker);
        let is_watched = is_on && self.workers.is_watched(&author.principal);
        let mut is_chosen = is_watched || self.rules.audit.chooses(&open.inputs);
        let (digest, standing) = (outcome.digest, outcome.standing);
        let Some(evolution) = self.evolution(&work.run) else { return };
        is_chosen |= is_on && evolution.audits().is_doubtful(&open.grants);
        let assistants = evolution.audits().assistants(&open.grants, worker);
        if let Some(authors) = self.authors.get_mut(&work.run) {
            authors.note(place, &author.principal, &assistants);
            is_chosen |= authors.take_suspect(place);
        }
        let accepted = Accepted { open, digest, standing, author };
        let Some(evolution) = self.evolution(&work.run) else { return };
        let (accepted, forgotten) = evolution.note_accepted(accepted);
        if is_chosen {
            evolution.audits().begin(&accepted, now.elapsed);
            self.leases.offer(work);
        }
        for forgotten in forgotten.into_iter().filter(|_| is_on) {
            let place = (forgotten.open.task.island, forgotten.open.task.epoch);
            let is_audited = self.authors.get(&work.run).is_some_and(|authors| authors.is_audited(place));
            if let Some(evolution) = self.evolution(&work.run).filter(|_| !is_audited) {
                evolution.audits().begin(&forgotten, now.elapsed);
                self.leases.offer(&work_at(&work.run, place));
            }
        }
    }

    /// Takes a delivery as the answer to an audit; returns whether it was one.
    pub(super) fn answer_audit(
        &mut self,
        worker: &str,
        work: &Work,
        inputs: &Digest,
        digest: Digest,
    ) -> bool {
        let Piece::Epoch { island, epoch } = work.piece else { return false };
        let author = self.author(worker);
        let Some(evolution) = self.evolution(&work.run) else { return false };
        match evolution.audits().answer((island, epoch), inputs, &author, digest) {
            Answer::None => return false,
            Answer::Same => self.note_audited(&work.run, (island, epoch)),
            Answer::Differs => self.decide(&work.run, (island, epoch)),
        }
        self.leases.remove(work);
        true
    }

    fn note_audited(&mut self, run: &str, place: Place) {
        self.counters.audited += 1;
        if let Some(authors) = self.authors.get_mut(run) {
            authors.note_audited(place);
        }
    }

    /// Two workers have delivered different results of one epoch: the coordinator computes it itself.
    pub(super) fn dispute(&mut self, worker: &str, work: &Work, digest: Digest, now: Moment) {
        let Piece::Epoch { island, epoch } = work.piece else { return };
        let (run, place) = (work.run.clone(), (island, epoch));
        let author = self.author(worker);
        let Some(evolution) = self.evolution(&run) else { return };
        let dispute = evolution.audits().dispute(place, author, digest, now.elapsed);
        if dispute != Dispute::LeftAside && self.may_log(worker, now) {
            let worker = self.workers.name(worker);
            tracing::error!(run, island, epoch, worker = %worker, "differs from what was accepted");
        }
        match dispute {
            Dispute::Begun => {
                self.leases.remove(work);
                self.decide(&run, place);
            }
            Dispute::LeftAside => {}
            Dispute::Forgotten => {
                self.note_unaudited(&run, &work.piece, "its inputs are not remembered any more");
            }
        }
    }

    /// Notes that a result could not be audited, which the status of its run shows.
    pub(super) fn note_unaudited(&mut self, run: &str, piece: &Piece, reason: &str) {
        tracing::error!(run, %piece, reason, "cannot be audited");
        self.counters.unaudited += 1;
        if let Some(run) = self.runs.get_mut(run) {
            run.unaudited += 1;
        }
    }

    /// Has the coordinator compute an epoch itself.
    fn decide(&mut self, run: &str, place: Place) {
        let Some(evolution) = self.evolution(run) else { return };
        let examiner = evolution.examiner();
        if let Some(Decision { inputs, examination, checkpoints }) =
            evolution.audits().decide(place, &examiner)
        {
            let run = run.to_owned();
            self.effects.push(Effect::Recompute { run, place, inputs, examination, checkpoints });
        }
    }

    /// Leaves audits to the coordinator that no other principal can take, or has taken in time.
    pub(super) fn look_after_audits(&mut self, now: Moment) {
        let terms = self.rules.terms;
        let mut left: Vec<Work> = vec![];
        for (name, run) in &self.runs {
            let waiting: Vec<(Piece, &str, Duration)> = match &run.body {
                Body::Evolution(evolution) => evolution.audits_waiting().collect(),
                Body::Cells(cells) => cells.audits_waiting().collect(),
                Body::Study(_) | Body::Closed(_) => continue,
            };
            let usual = self.leases.usual(name);
            let patience = PATIENCE_LEASES * terms.lease.max(usual);
            let longest = patience.max(SLOWEST_AUDIT * usual);
            // However often an audit changes hands.
            let longest_of_all = (2 * terms.stall).max(3 * longest);
            for (piece, author, since) in waiting {
                let work = Work { run: name.clone(), piece };
                let waited = now.elapsed.saturating_sub(since);
                let has_other = || self.connected(now).any(|identity| identity.principal != author);
                let is_late = match self.leases.leased_for(&work, now.elapsed) {
                    None => waited > patience || !has_other(),
                    // A worker that renews and delivers nothing must not hold the end of the run up.
                    Some(held) => held > longest || waited > longest_of_all,
                };
                if is_late {
                    left.push(work);
                }
            }
        }
        for work in left {
            for worker in self.leases.holders(&work).map(str::to_owned).collect::<Vec<_>>() {
                self.note_outrun(&worker, &work, now);
            }
            self.leases.remove(&work);
            match work.piece {
                Piece::Epoch { island, epoch } => self.decide(&work.run, (island, epoch)),
                Piece::Cells { first, .. } => self.decide_cell(&work.run, first),
                Piece::Job { .. } => {}
            }
        }
    }

    /// Has everything computed again that the end of a run consists of.
    pub(super) fn begin_final_audits(&mut self, name: &str, now: Moment) {
        if !self.rules.audit.is_on() {
            return;
        }
        let Some(Body::Evolution(evolution)) = self.runs.get_mut(name).map(|run| &mut run.body) else {
            return;
        };
        let Some(end) = evolution.open_run().archipelago().end().map(|end| end.epoch) else { return };
        let authors = self.authors.get(name);
        let is_audited = |place| authors.is_some_and(|authors| authors.is_audited(place));
        for place in evolution.audits().begin_final(end, is_audited, now.elapsed) {
            self.leases.offer(&work_at(name, place));
        }
    }

    /// Takes what the coordinator has computed itself.
    pub(super) fn recomputed(
        &mut self,
        run: &str,
        (place, inputs): (Place, &Digest),
        computed: Result<RecomputedEpoch, String>,
        now: Moment,
    ) {
        let (island, epoch) = place;
        let piece = Piece::Epoch { island, epoch };
        let Some(evolution) = self.evolution(run) else { return };
        let outcome = match computed {
            Ok(computed) => evolution.audits().conclude(place, inputs, &computed),
            Err(reason) => {
                evolution.audits().abandon(place, inputs);
                self.note_unaudited(run, &piece, &reason);
                None
            }
        };
        match outcome {
            None => {}
            Some(AuditOutcome::Again) => self.decide(run, place),
            Some(AuditOutcome::Undecided) => {
                self.note_unaudited(run, &piece, "the coordinator has two different results itself");
            }
            Some(AuditOutcome::Right { wrong }) => {
                self.note_audited(run, place);
                self.blame_all(&wrong, &format!("run {run}, {piece}: it delivered a wrong result"), now);
            }
            Some(AuditOutcome::Wrong { cause, blamed }) => {
                self.counters.audits_failed += 1;
                // Also without audits: what is known to be wrong does not stay.
                let cause = cause.map_or_else(|| UNKNOWN.to_owned(), |cause| cause.principal);
                if let Some(authors) = self.authors.get_mut(run) {
                    authors.attribute(place, &cause);
                }
                self.retract(run, &cause, now);
                let reason = format!("run {run}, {piece}: an audit found its result wrong");
                self.blame_all(&blamed, &reason, now);
            }
        }
        self.advance(run, now);
    }

    pub(super) fn blame_all(&mut self, authors: &[Author], reason: &str, now: Moment) {
        for author in authors {
            drop(self.blame(author, reason, now));
        }
    }

    /// Takes back what a principal has delivered to any run and was not audited.
    pub(super) fn retract_all(&mut self, principal: &str, now: Moment) {
        for run in self.runs.keys().cloned().collect::<Vec<_>>() {
            self.retract(&run, principal, now);
            self.retract_cells_of(&run, principal, now);
        }
        self.note_finished_runs_of(principal);
    }

    /// Takes back what a principal has delivered to a run and was not audited: that, and all that followed from it, is
    /// computed again.
    fn retract(&mut self, name: &str, principal: &str, now: Moment) {
        // One after the other: what is written about the first liar says nothing of the second.
        if self.is_retracting(name) {
            if let Some(authors) = self.authors.get_mut(name) {
                authors.note_liar(principal);
            }
            return;
        }
        let Some(done) = self.evolution(name).map(|evolution| evolution.done()) else { return };
        let cuts = self.authors.get(name).and_then(|authors| authors.cuts_without(principal, &done));
        let Some(cuts) = cuts.filter(|_| self.is_open(name) && !self.succeeded) else { return };
        if self.is_ending(name) {
            tracing::error!(run = name, principal, "it ends with results of a quarantined worker: verify it");
            // If its end cannot be written, there is still time to take them back.
            if let Some(authors) = self.authors.get_mut(name) {
                authors.note_liar(principal);
            }
            return;
        }
        tracing::error!(run = name, principal, ?cuts, "results are taken back and computed again");
        self.counters.retracted += 1;
        if let Some(run) = self.runs.get_mut(name) {
            run.set_ending(Ending::Retracting);
        }
        let event = RunEvent::Retracted { cuts, reason: why_retracted(principal), at: now.unix };
        self.append(name, event.clone(), Then::Retract(Box::new(event)));
    }

    /// Something else is stored of an epoch than is to be written, and no record promises it: the coordinator before has ended
    /// in between, or was late. One of both is wrong. Whatever is not durable is computed again, under other names, and this
    /// epoch is audited. Returns whether that is so: it is not if it happens ever again, or if the run ends.
    pub(super) fn begin_anew(&mut self, name: &str, place: Place, now: Moment) -> bool {
        if self.is_retracting(name) {
            return true;
        }
        if !self.is_open(name) || self.is_ending(name) || self.succeeded {
            return false;
        }
        let Some(cuts) = self.evolution(name).map(|evolution| evolution.written()) else { return false };
        if !self.authors.get_mut(name).is_some_and(|authors| authors.suspect(place)) {
            return false;
        }
        let (island, epoch) = place;
        let reason =
            format!("something else is stored of island {island}, epoch {epoch} than was computed now");
        tracing::error!(run = name, ?cuts, reason, "what is not durable is computed again");
        self.counters.retracted += 1;
        if let Some(run) = self.runs.get_mut(name) {
            run.set_ending(Ending::Retracting);
        }
        let event = RunEvent::Retracted { cuts, reason, at: now.unix };
        self.append(name, event.clone(), Then::Retract(Box::new(event)));
        true
    }

    /// Remembers whose results a finished run has that were not audited.
    pub(super) fn note_unaudited_authors(&mut self, name: &str, state: &RunState) {
        if !self.rules.audit.is_on() || !matches!(state, RunState::Finished(_)) {
            return;
        }
        let principals = match self.runs.get(name).map(|run| &run.body) {
            Some(Body::Evolution(_)) => {
                self.authors.get(name).map(super::Authors::unaudited).unwrap_or_default()
            }
            Some(Body::Cells(cells)) => cells.unaudited_principals(),
            _ => return,
        };
        if !principals.is_empty() {
            self.unaudited_authors.insert(name.to_owned(), principals);
        }
    }

    /// Tells of finished runs that hold results of a liar which nobody has audited.
    fn note_finished_runs_of(&mut self, principal: &str) {
        let mut found = vec![];
        for (run, principals) in &mut self.unaudited_authors {
            if principals.remove(principal) {
                found.push(run.clone());
            }
        }
        for run in found {
            tracing::error!(
                run,
                principal,
                "it has finished with results of a quarantined worker: verify it"
            );
            self.counters.unaudited += 1;
            if let Some(run) = self.runs.get_mut(&run) {
                run.unaudited += 1;
            }
        }
    }

    /// Opens a run again, now that it is written from where its results are computed again.
    pub(super) fn reopen(&mut self, name: &str) {
        let receipts = self.evolution(name).map(Evolution::take_receipts).unwrap_or_default();
        for receipt in receipts {
            self.workers.settle(&receipt.worker, receipt.number);
        }
        let audits = self.evolution(name).map(Evolution::take_audits);
        if let Some((authors, audits)) = self.authors.get_mut(name).zip(audits) {
            authors.keep(audits);
        }
        let Some(run) = self.runs.get_mut(name) else { return };
        run.body = Body::Closed(run.outline());
        let id = run.id.clone();
        self.leases.remove_run(name);
        self.step(name, Step::Forget);
        self.opening.insert(name.to_owned(), Opening::default());
        self.ask_to_open(OpenRequest::List { id }, None);
    }

    /// Continues with the audits of a run that was opened again, and with taking back what liars delivered to it that were
    /// found meanwhile.
    pub(super) fn reopened(&mut self, name: &str, now: Moment) {
        let again = self.evolution(name).map(|evolution| evolution.audits().begin_again());
        for (place, is_for_coordinator) in again.unwrap_or_default() {
            if is_for_coordinator {
                self.decide(name, place);
            } else {
                self.leases.offer(&work_at(name, place));
            }
        }
        self.retract_noted(name, now);
    }

    /// Takes back what could not be taken back when its liars were found, because the run was about to end or was opened
    /// again.
    pub(super) fn retract_noted(&mut self, name: &str, now: Moment) {
        let liars = self.authors.get_mut(name).map(super::Authors::take_liars);
        for principal in liars.unwrap_or_default() {
            self.retract(name, &principal, now);
        }
        let wrong = self.cells(name).map(super::Cells::take_wrong);
        for (reason, cells) in wrong.unwrap_or_default() {
            self.retract_cells(name, &cells, reason, now);
        }
    }
}
