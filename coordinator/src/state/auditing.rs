//! What a coordinator does about audits: hands them out, decides what differs, and takes back what liars have delivered.

use super::evolution::Open;
use super::leases::Party;
use super::runs::Ending;
use super::{
    Accepted, Answer, Body, ClusterState, Effect, Evolution, Moment, OpenRequest, Opening, Place, Step, Then,
};
use ::evolution::digest::Digest;
use ::evolution::epoch::EpochOutcome;
use proto::convert::{Piece, Work};
use run::RunEvent;

/// An audit that no worker has taken for so many leases is left to the coordinator.
const PATIENCE_LEASES: u32 = 2;

fn work_at(run: &str, (island, epoch): Place) -> Work {
    Work { run: run.to_owned(), piece: Piece::Epoch { island, epoch } }
}

impl ClusterState {
    /// Whether a worker may be given a piece: one that is computed again goes to another principal.
    pub(super) fn may_take(&self, work: &Work, party: Party<'_>) -> bool {
        match (self.runs.get(&work.run).map(|run| &run.body), work.piece) {
            (Some(Body::Evolution(evolution)), Piece::Epoch { island, epoch }) => {
                evolution.may_take(island, epoch, party.principal)
            }
            _ => true,
        }
    }

    /// Whether a piece is computed again.
    pub(super) fn is_audit(&mut self, work: &Work) -> bool {
        let Piece::Epoch { island, epoch } = work.piece else { return false };
        self.evolution(&work.run).is_some_and(|evolution| evolution.audits().open((island, epoch)).is_some())
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
        let is_chosen = self.rules.audit.chooses(&open.inputs);
        let principal = self.workers.party(worker).principal.to_owned();
        let (worker, digest, standing) = (worker.to_owned(), outcome.digest, outcome.standing);
        if let Some(authors) = self.authors.get_mut(&work.run) {
            authors.note(place, &worker);
        }
        let accepted = Accepted { open, digest, standing, worker, principal };
        let Some(evolution) = self.evolution(&work.run) else { return };
        let accepted = evolution.note_accepted(accepted);
        if is_chosen {
            evolution.audits().begin(&accepted, now.elapsed);
            self.leases.offer(work);
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
        let principal = self.workers.party(worker).principal.to_owned();
        let Some(evolution) = self.evolution(&work.run) else { return false };
        match evolution.audits().answer((island, epoch), inputs, (worker, &principal), digest) {
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
        tracing::error!(run, island, epoch, worker = %self.workers.name(worker), "differs from what was accepted");
        let Some(evolution) = self.evolution(&run) else { return };
        if evolution.audits().dispute(place, worker, digest, now.elapsed) {
            self.leases.remove(work);
            self.decide(&run, place);
        }
    }

    /// Has the coordinator compute an epoch itself.
    fn decide(&mut self, run: &str, place: Place) {
        let Some(evolution) = self.evolution(run) else { return };
        let examiner = evolution.examiner();
        if let Some((inputs, examination)) = evolution.audits().decide(place, &examiner) {
            self.effects.push(Effect::Recompute { run: run.to_owned(), place, inputs, examination });
        }
    }

    /// Leaves audits to the coordinator that no other principal can take, or has taken in time.
    pub(super) fn look_after_audits(&mut self, now: Moment) {
        let terms = self.rules.terms;
        let mut left = vec![];
        for (name, run) in &self.runs {
            let Body::Evolution(evolution) = &run.body else { continue };
            for (place, author, since) in evolution.audits_waiting() {
                let waited = now.elapsed.saturating_sub(since);
                let is_leased = self.leases.is_leased(&work_at(name, place));
                let has_other = || self.connected(now).any(|party| party.principal != author);
                let is_late = waited > PATIENCE_LEASES * terms.lease;
                if !is_leased && (is_late || !has_other()) || waited > 2 * terms.stall {
                    left.push((name.clone(), place));
                }
            }
        }
        for (run, place) in left {
            self.leases.remove(&work_at(&run, place));
            self.decide(&run, place);
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
        digest: Result<Digest, String>,
        now: Moment,
    ) {
        let (island, epoch) = place;
        let Some(evolution) = self.evolution(run) else { return };
        let settled = match digest {
            Ok(digest) => evolution.audits().settle(place, inputs, &digest),
            Err(reason) => {
                tracing::error!(run, island, epoch, reason, "cannot be audited");
                evolution.audits().abandon(place, inputs);
                None
            }
        };
        let Some(settled) = settled else { return self.pump(run, now) };
        if settled.disagree {
            let reason =
                format!("island {island}, epoch {epoch}: two workers and the coordinator have three results");
            return self.fail(run, &reason, now);
        }
        for worker in settled.wrong {
            let reason = format!("run {run}, island {island}, epoch {epoch}: it delivered a wrong result");
            drop(self.corrupt(&worker, &reason, now));
        }
        match settled.author {
            None => self.note_audited(run, place),
            Some(worker) => {
                self.counters.audits_failed += 1;
                let reason =
                    format!("run {run}, island {island}, epoch {epoch}: an audit found its result wrong");
                drop(self.corrupt(&worker, &reason, now));
                // Also without audits: what is known to be wrong does not stay.
                self.retract(run, &worker, now);
            }
        }
        self.pump(run, now);
    }

    /// Takes back what a worker has delivered to any run and nobody has audited.
    pub(super) fn retract_all(&mut self, worker: &str, now: Moment) {
        for run in self.authors.keys().cloned().collect::<Vec<_>>() {
            self.retract(&run, worker, now);
        }
    }

    /// Takes back what a worker has delivered to a run and nobody has audited: that, and whatever followed from it, is
    /// computed again.
    fn retract(&mut self, name: &str, worker: &str, now: Moment) {
        // One after the other: what is written about the first liar says nothing of the second.
        if self.is_retracting(name) {
            if let Some(authors) = self.authors.get_mut(name) {
                authors.note_liar(worker);
            }
            return;
        }
        let Some(done) = self.evolution(name).map(|evolution| evolution.done()) else { return };
        let cuts = self.authors.get(name).and_then(|authors| authors.cuts_without(worker, &done));
        let Some(cuts) = cuts.filter(|_| self.is_open(name) && !self.succeeded) else { return };
        let author = self.workers.name(worker);
        if self.is_ending(name) {
            tracing::error!(
                run = name,
                worker = author,
                "it ends with results of a quarantined worker: verify it"
            );
            return;
        }
        tracing::error!(run = name, worker = author, ?cuts, "results are taken back and computed again");
        self.counters.retracted += 1;
        if let Some(run) = self.runs.get_mut(name) {
            run.set_ending(Ending::Retracting);
        }
        let reason = format!("worker {author} is quarantined, and its results were not audited");
        let event = RunEvent::Retracted { cuts, reason, at: now.unix };
        self.append(name, event.clone(), Then::Retract(Box::new(event)));
    }

    /// Opens a run again, now that it is written where its results begin anew.
    pub(super) fn reopen(&mut self, name: &str) {
        let receipts = self.evolution(name).map(Evolution::take_receipts).unwrap_or_default();
        for receipt in receipts {
            self.workers.settle(&receipt.worker, receipt.number);
        }
        let audits = self.evolution(name).map(|evolution| std::mem::take(evolution.audits()));
        if let Some((authors, audits)) = self.authors.get_mut(name).zip(audits) {
            authors.keep(audits);
        }
        let priority = self.queue.priority(name);
        let Some(run) = self.runs.get_mut(name) else { return };
        run.body = Body::Closed(run.outline());
        let id = run.id.clone();
        self.leases.remove_run(name);
        self.step(name, Step::Forget);
        self.opening.insert(name.to_owned(), Opening::default());
        self.ask_to_open(OpenRequest::Again { id, priority, extend: None }, None);
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
        let liars = self.authors.get_mut(name).map(super::Authors::take_liars);
        for worker in liars.unwrap_or_default() {
            self.retract(name, &worker, now);
        }
    }
}
