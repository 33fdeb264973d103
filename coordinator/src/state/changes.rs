//! What is decided of a run, and what becomes of that: it is written down, acted on, or undone if it could not be written.

use super::queue::RunState;
use super::runs::{Ending, Run};
use super::{Authors, ClusterState, Moment, Then, Ticket, Unfinished};
use crate::rejection::Rejection;
use proto::convert::Work;
use run::{JournalHead, Pruned, Pruning, RunError, RunEvent, WriteBatch, WriteError};
use store::StoreError;

/// Whether a change that was rejected may be accepted later.
fn may_pass(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Keep(RunError::Write(error)) if error.may_pass())
}

/// What an operator is answered whose change has to wait for the store.
fn unwritten(run: &str, changed: &str, error: &dyn std::fmt::Display) -> Rejection {
    let reason = format!("it is {changed} as soon as the store can write that down; now it cannot: {error}");
    Rejection::Unsuitable { run: run.to_owned(), reason }
}

impl ClusterState {
    /// Appends what an operator or time has decided, after whatever was decided before: until it is written, the run does
    /// not end.
    pub(super) fn change(&mut self, name: &str, event: RunEvent, then: Then) {
        let Some(run) = self.runs.get_mut(name) else { return };
        run.changes.push_back((event, then));
        if run.changes.len() == 1 {
            self.write_change(name);
        }
    }

    /// Has the first of a run's changes written.
    fn write_change(&mut self, name: &str) {
        let first = self.runs.get(name).and_then(|run| run.changes.front()).cloned();
        if let Some((event, then)) = first {
            self.append(name, event, then);
        }
    }

    /// Continues with the next of a run's changes. A run that ends, or is opened again from its journal, is no longer changed.
    fn next_change(&mut self, name: &str) {
        let is_over = |run: &Run| run.ending.as_ref().is_some_and(Ending::is_decided);
        if self.runs.get(name).is_some_and(is_over) {
            self.drop_changes(name, "it is just ending: try again");
        } else {
            self.write_change(name);
        }
    }

    /// Forgets the changes of a run that are not written.
    pub(super) fn drop_changes(&mut self, name: &str, reason: &str) {
        let changes = self.runs.get_mut(name).map(|run| std::mem::take(&mut run.changes));
        for (_, mut then) in changes.unwrap_or_default() {
            let rejection = Rejection::Unsuitable { run: name.to_owned(), reason: reason.to_owned() };
            self.answer(then.take_ticket(), Err(rejection));
        }
    }

    /// Whether an event that could not be written may be in the journal all the same, or be there soon: then it is appended
    /// again until that is known.
    fn may_be_written(&self, name: &str, error: &Rejection) -> bool {
        let is_over = |run: &Run| run.ending.as_ref().is_some_and(Ending::is_decided);
        may_pass(error) && !self.succeeded && !self.runs.get(name).is_some_and(is_over)
    }

    /// Keeps a change that may or may not be written, and appends it again. Were it withdrawn, the run might continue against
    /// its own journal. Operators are answered at once.
    fn change_again(&mut self, name: &str, error: Rejection, now: Moment) {
        let changes = self.runs.get_mut(name).into_iter().flat_map(|run| &mut run.changes);
        let tickets: Vec<Ticket> = changes.filter_map(|(_, then)| then.take_ticket()).collect();
        for ticket in tickets {
            self.answer(Some(ticket), Err(unwritten(name, "changed", &error)));
        }
        if let Rejection::Keep(error) = error {
            self.note_trouble(name, Err(error), now);
        }
        // A coordinator that does not wait for its store ends now.
        if self.rules.patient {
            self.write_change(name);
        }
    }

    /// Takes what became of an event.
    pub(super) fn appended(
        &mut self,
        name: &str,
        then: Then,
        result: Result<JournalHead, Rejection>,
        now: Moment,
    ) {
        let is_change = then.is_change();
        let result = match result {
            Err(error) if is_change && self.may_be_written(name, &error) => {
                self.change_again(name, error, now);
                return self.advance(name, now);
            }
            result => result,
        };
        let change = self.runs.get_mut(name).filter(|_| is_change).and_then(|run| run.changes.pop_front());
        // It may have been answered meanwhile.
        let then = change.map_or(then, |(_, then)| then);
        match result {
            Ok(journal) => {
                if let Some(evolution) = self.evolution(name) {
                    evolution.note_event(journal);
                }
                self.act(name, then, now);
            }
            Err(error) => self.undo(name, then, error, now),
        }
        if is_change {
            self.next_change(name);
        }
        self.advance(name, now);
    }

    /// Acts on an event that is written.
    fn act(&mut self, name: &str, then: Then, now: Moment) {
        match then {
            Then::Pause { paused, ticket } => {
                if self.is_open(name) {
                    tracing::info!(run = name, "{}", if paused { "paused" } else { "resumed" });
                    self.queue.set(name, if paused { RunState::Paused } else { RunState::Active });
                }
                self.answer(ticket, Ok(name.to_owned()));
            }
            Then::Prioritise { priority, ticket } => {
                if let Some(state) = self.queue.state(name).cloned() {
                    self.queue.add(name, priority, state);
                }
                self.answer(ticket, Ok(name.to_owned()));
                for part in self.parts_of(name) {
                    self.prioritise_as(&part, name, now);
                }
            }
            Then::Extend { budget, complete, ticket } => {
                let extended = self.evolution(name).map(|evolution| evolution.extended(&budget, complete));
                // As its journal says from now on: a run that is extended continues.
                if self.is_open(name) {
                    self.queue.set(name, RunState::Active);
                }
                for piece in extended.unwrap_or_default() {
                    self.leases.remove(&Work { run: name.to_owned(), piece });
                }
                self.answer(ticket, Ok(name.to_owned()));
            }
            Then::Decide(end) => {
                if let Some(evolution) = self.evolution(name) {
                    evolution.decide(Some(end));
                }
            }
            Then::Cancel { ticket, .. } => {
                tracing::info!(run = name, "cancelled");
                self.note_unfinished(name, Unfinished::Cancelled(format!("run {name} was cancelled")));
                self.close(name, RunState::Cancelled, None);
                self.answer(ticket, Ok(name.to_owned()));
                self.advance_study_of(name, now);
            }
            // It may have failed meanwhile: then it stays as it is.
            Then::Retract(_) if self.is_retracting(name) => self.reopen(name),
            Then::Nothing | Then::Retract(_) => {}
            Then::Fail { reason } => {
                self.close(name, RunState::Failed(reason), None);
                self.advance_study_of(name, now);
            }
            Then::Finish { digest, reason } => {
                tracing::info!(run = name, %digest, reason, "finished");
                self.close(name, RunState::Finished(reason), Some(digest));
                self.advance_study_of(name, now);
            }
        }
    }

    /// An event could not be written, and never will be: what depends on it does not happen.
    fn undo(&mut self, name: &str, then: Then, error: Rejection, now: Moment) {
        let is_extension = matches!(then, Then::Extend { .. });
        match then {
            Then::Decide(_) => {
                if let Some(evolution) = self.evolution(name) {
                    evolution.decide(None);
                }
            }
            // It fails all the same, at least until this coordinator ends.
            Then::Fail { reason } => {
                self.counters.store_errors += 1;
                tracing::error!(run = name, %error, "that it failed cannot be written");
                return self.act(name, Then::Fail { reason }, now);
            }
            // Nothing else happens to it before that.
            Then::Retract(event) if may_pass(&error) && !self.succeeded && self.is_retracting(name) => {
                self.counters.store_errors += 1;
                tracing::error!(run = name, %error, "cannot be written; trying again");
                return self.append(name, (*event).clone(), Then::Retract(event));
            }
            Then::Nothing | Then::Retract(_) => {}
            Then::Finish { .. } => {
                if let Some(run) = self.runs.get_mut(name) {
                    run.ending = None;
                }
                if may_pass(&error) {
                    self.retract_noted(name, now);
                }
            }
            // It may be written all the same: nothing else happens to it before that is known.
            Then::Cancel { at, ticket } if self.rules.patient && may_pass(&error) && !self.succeeded => {
                self.counters.store_errors += 1;
                tracing::error!(run = name, %error, "cannot be written; trying again");
                self.answer(ticket, Err(unwritten(name, "cancelled", &error)));
                return self.append(name, RunEvent::Cancelled { at }, Then::Cancel { at, ticket: None });
            }
            Then::Cancel { ticket, .. } => {
                if let Some(run) = self.runs.get_mut(name) {
                    run.ending = None;
                }
                if may_pass(&error) {
                    self.retract_noted(name, now);
                }
                self.counters.store_errors += 1;
                return self.answer(ticket, Err(error));
            }
            Then::Pause { ticket, .. } | Then::Prioritise { ticket, .. } | Then::Extend { ticket, .. } => {
                if let Some(evolution) = self.evolution(name).filter(|_| is_extension) {
                    evolution.withdraw_extension();
                }
                self.counters.store_errors += 1;
                return self.answer(ticket, Err(error));
            }
        }
        if let Rejection::Keep(error) = error {
            self.note_trouble(name, Err(error), now);
        }
    }

    /// Takes what became of a batch.
    pub(super) fn committed(
        &mut self,
        name: &str,
        batch: &WriteBatch,
        result: Result<(), WriteError>,
        now: Moment,
    ) {
        let durable = self.evolution(name).map(|evolution| evolution.settle(batch, &result));
        for receipt in durable.unwrap_or_default() {
            self.workers.settle(&receipt.worker, receipt.number);
            self.spans.durable(&receipt, now);
        }
        match &result {
            Ok(()) => {
                self.authors.get_mut(name).map(Authors::note_written);
            }
            Err(WriteError::Differs { island, epoch }) => {
                if self.begin_anew(name, (*island, *epoch), now) {
                    return;
                }
            }
            Err(_) => {}
        }
        self.note_trouble(name, result.map_err(RunError::from), now);
        self.advance(name, now);
    }

    /// Takes what became of a deletion. What could not be deleted is tried again with what is written next.
    pub(super) fn pruned(
        &mut self,
        name: &str,
        pruning: &Pruning,
        result: Result<Pruned, StoreError>,
        now: Moment,
    ) {
        if let Some(evolution) = self.evolution(name) {
            evolution.pruned(pruning, matches!(result, Ok(Pruned::Yes)));
        }
        self.note_trouble(name, result.map(|_| ()).map_err(RunError::from), now);
        self.advance(name, now);
    }

    /// A store that fails may recover; a run that is damaged, or belongs to another coordinator by now, does not.
    pub(super) fn note_trouble(&mut self, run: &str, result: Result<(), RunError>, now: Moment) {
        match result {
            Ok(()) => {}
            Err(RunError::Write(error)) if error.may_pass() => {
                self.counters.store_errors += 1;
                if !self.rules.patient {
                    self.trouble.get_or_insert(RunError::Write(error));
                    return;
                }
                tracing::error!(run, %error, "cannot be written; trying again");
                self.answer_cancel(run, &error);
            }
            Err(error) => self.fail(run, &error.to_string(), now),
        }
    }

    /// Informs the caller of a cancellation that it has to wait until the store can write.
    fn answer_cancel(&mut self, name: &str, error: &WriteError) {
        let ending = self.runs.get_mut(name).and_then(|run| run.ending.as_mut());
        let ticket = match ending {
            Some(Ending::Cancelling(ticket)) => ticket.take(),
            Some(Ending::Finishing | Ending::Stopping | Ending::Retracting) | None => None,
        };
        self.answer(ticket, Err(unwritten(name, "cancelled", error)));
    }

    /// Whether something that was decided of a run is being written.
    pub(super) fn is_changing(&self, name: &str) -> bool {
        self.runs.get(name).is_some_and(|run| !run.changes.is_empty())
    }
}
