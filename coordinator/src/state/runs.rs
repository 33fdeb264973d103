//! Runs as a coordinator has them: opened, submitted, paused, extended, cancelled, finished, and listed.

use super::queue::{QueueError, RunState};
use super::study::StudyRun;
use super::view::Fleet;
use super::{
    Authors, Cells, ClusterState, Effect, Evolution, Moment, OpenRequest, Opened, OpenedBody, Opening, Part,
    Step, Submission, Then, Ticket, Unfinished,
};
use crate::rejection::Rejection;
use archipelago::End;
use evolution::digest::Digest;
use experiment::Plan;
use experiment::file::BudgetKeys;
use proto::convert::digest_bytes;
use proto::v1;
use proto::v1::run_status::{Kind, State};
use report::dashboard::{StoreHealth, why};
use run::Labels;
use run::RunEvent;
use run::RunId;
use run::summary::{Outline, RunKind};
use std::cell::OnceCell;
use std::collections::VecDeque;

/// One run.
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) body: Body,
    pub(super) created: u64,
    pub(super) digest: Option<Digest>,
    /// The study that it is a part of.
    study: Option<String>,
    /// What operators and time have decided, in order; the first is being written. Until all of it is, the run does not end.
    pub(super) changes: VecDeque<(RunEvent, Then)>,
    /// How many of its results could not be audited.
    pub(super) unaudited: u64,
    pub(super) ending: Option<Ending>,
    labels: Labels,
}

/// What a run consists of.
pub(crate) enum Body {
    Evolution(Box<Evolution>),
    Cells(Box<Cells>),
    Study(Box<StudyRun>),
    /// It has ended, and only this is remembered of it.
    Closed(Outline),
}

/// How a run is about to end, or to be opened again.
pub(super) enum Ending {
    /// What counts of its results is being written, and then it is opened again.
    Retracting,
    /// Its last event is being written: it has finished.
    Finishing,
    /// Its last event is being written: it was cancelled, or has failed.
    Stopping,
    /// It is cancelled once everything that was delivered is written.
    Cancelling(Option<Ticket>),
}

impl Ending {
    /// Whether nothing that is decided of the run from now on comes before its end.
    pub(super) fn is_decided(&self) -> bool {
        matches!(self, Self::Finishing | Self::Stopping | Self::Retracting)
    }
}

impl Run {
    pub(super) fn set_ending(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    pub(super) fn is_written(&self) -> bool {
        match &self.body {
            Body::Evolution(evolution) => evolution.is_written(),
            Body::Cells(cells) => cells.is_written(),
            Body::Study(study) => study.is_written(),
            Body::Closed(_) => true,
        }
    }

    pub(super) fn outline(&self) -> Outline {
        match &self.body {
            Body::Closed(outline) => *outline,
            Body::Evolution(evolution) => evolution.outline(),
            Body::Cells(cells) => cells.outline(),
            Body::Study(study) => study.outline(),
        }
    }
}

fn kind_of(kind: RunKind) -> Kind {
    match kind {
        RunKind::Evolution => Kind::Evolution,
        RunKind::Sweep => Kind::Sweep,
        RunKind::Tournament => Kind::Tournament,
        RunKind::Study => Kind::Study,
    }
}

/// The name of the run of a plan. The players of a tournament must have been looked up.
pub(crate) fn run_name(plan: &Plan) -> String {
    match plan {
        Plan::Single(experiment) => experiment.run_id(),
        Plan::Sweep(sweep) => sweep.run_id(),
        Plan::Study(study) => study.run_id(),
        Plan::Tournament(games) => games.run_id(),
    }
}

impl ClusterState {
    /// What a run is doing: a part of a study does nothing while that is held back.
    pub(crate) fn state_of(&self, run: &str) -> Option<&RunState> {
        let own = self.queue.state(run)?;
        let is_held_back = *own == RunState::Active && self.paused_study_of(run).is_some();
        Some(if is_held_back { &RunState::Paused } else { own })
    }

    /// The study of a part, if that is paused: then its parts are held back.
    pub(super) fn paused_study_of(&self, run: &str) -> Option<&str> {
        let study = self.runs.get(run)?.study.as_deref()?;
        (self.queue.state(study) == Some(&RunState::Paused)).then_some(study)
    }

    pub(crate) fn is_active(&self, run: &str) -> bool {
        let is_ending = self.runs.get(run).is_some_and(|run| run.ending.is_some());
        self.state_of(run) == Some(&RunState::Active) && !is_ending
    }

    /// Whether the run may still be worked on, now or later.
    pub(crate) fn is_open(&self, run: &str) -> bool {
        self.queue.state(run).is_some_and(RunState::is_open)
    }

    /// Takes a run that an operator asks for: a new one, or one that is there and continues if it had stopped.
    pub(crate) fn submit(&mut self, submission: Submission, ticket: Ticket, now: Moment) {
        self.begun = true;
        if submission.has_to_be_looked_up() {
            self.openings += 1;
            return self.effects.push(Effect::LookUp { submission, ticket });
        }
        let name = run_name(&submission.plan);
        let Submission { priority, fresh, .. } = submission;
        if !fresh {
            if let Some(opening) = self.opening.get_mut(&name) {
                return opening.tickets.push(ticket);
            }
            if let Some(state) = self.queue.state(&name).cloned() {
                return self.submit_again(&name, &state, priority, ticket, now);
            }
        }
        self.open(OpenRequest::Submit(submission), ticket);
    }

    /// Takes a tournament whose players were looked up, or could not be.
    pub(super) fn looked_up(
        &mut self,
        submission: Result<Submission, Rejection>,
        ticket: Ticket,
        now: Moment,
    ) {
        self.openings = self.openings.saturating_sub(1);
        match submission {
            Ok(submission) => self.submit(submission, ticket, now),
            Err(rejection) => self.answer(Some(ticket), Err(rejection)),
        }
    }

    /// Has a run opened, unless that is under way for another reason.
    fn open(&mut self, request: OpenRequest, ticket: Ticket) {
        let open = self.queue.count_open() + self.openings;
        let most = self.rules.max_runs;
        if open >= most && !matches!(request, OpenRequest::List { .. }) {
            return self.answer(Some(ticket), Err(Rejection::TooMany { what: "unfinished runs", most }));
        }
        if let Some(name) = request.name() {
            if self.opening.contains_key(&name) {
                let reason = "it is just being opened: try again".to_owned();
                return self.answer(Some(ticket), Err(Rejection::Unsuitable { run: name, reason }));
            }
            self.opening.insert(name, Opening::default());
        }
        self.ask_to_open(request, Some(ticket));
    }

    /// Takes a run again, with another priority or with the one that it has.
    fn submit_again(
        &mut self,
        name: &str,
        state: &RunState,
        priority: Option<i32>,
        ticket: Ticket,
        now: Moment,
    ) {
        let other = priority.filter(|&priority| priority != self.queue.priority(name));
        match (state, other) {
            (RunState::Cancelled | RunState::Failed(_), _) => self.open_again(name, priority, None, ticket),
            // It is to continue, and is about to end without a result.
            _ if self.is_being_stopped(name) => {
                self.reject_ending(name, Some(ticket));
            }
            (RunState::Active | RunState::Paused, Some(priority)) if !self.is_ending(name) => {
                self.prioritise(name, priority, Some(ticket), now);
            }
            _ => self.answer(Some(ticket), Ok(name.to_owned())),
        }
    }

    /// Gives a part the priority of its study.
    pub(super) fn prioritise_as(&mut self, part: &str, study: &str, now: Moment) {
        let priority = self.queue.priority(study);
        if self.is_open(part) && !self.is_ending(part) && priority != self.queue.priority(part) {
            self.prioritise(part, priority, None, now);
        }
    }

    /// Gives a run that has not ended another priority.
    fn prioritise(&mut self, name: &str, priority: i32, ticket: Option<Ticket>, now: Moment) {
        let event = RunEvent::Prioritised { priority, at: now.unix };
        self.change(name, event, Then::Prioritise { priority, ticket });
    }

    /// Opens a run that has ended.
    fn open_again(
        &mut self,
        name: &str,
        priority: Option<i32>,
        extend: Option<Box<BudgetKeys>>,
        ticket: Ticket,
    ) {
        let Some(id) = self.runs.get(name).map(|run| run.id.clone()) else {
            return self.answer(Some(ticket), Err(QueueError::Unknown(name.to_owned()).into()));
        };
        self.open(OpenRequest::Again { id, priority, extend }, ticket);
    }

    /// Opens a run of the store, or continues it.
    pub(crate) fn resume(&mut self, id: &RunId, ticket: Ticket, now: Moment) {
        let name = id.as_str();
        self.begun = true;
        match self.queue.state(name).cloned() {
            Some(state) => self.submit_again(name, &state, None, ticket, now),
            // It keeps the priority that it has.
            None => self.open(OpenRequest::Again { id: id.clone(), priority: None, extend: None }, ticket),
        }
    }

    /// Reads a run of the store as it is, to be changed.
    pub(crate) fn list(&mut self, id: &RunId, ticket: Ticket) {
        self.open(OpenRequest::List { id: id.clone() }, ticket);
    }

    /// Rejects a change of a run whose last event is being written; returns whether it did.
    fn reject_ending(&mut self, name: &str, ticket: Option<Ticket>) -> bool {
        let is_ending = self.is_ending(name);
        if is_ending {
            let reason = "it is just ending: try again".to_owned();
            self.answer(ticket, Err(Rejection::Unsuitable { run: name.to_owned(), reason }));
        }
        is_ending
    }

    /// Takes a run that was opened, or could not be.
    pub(super) fn opened(
        &mut self,
        opened: Result<Opened, (Option<String>, Rejection)>,
        part: Option<(String, Part)>,
        ticket: Option<Ticket>,
        now: Moment,
    ) {
        self.openings = self.openings.saturating_sub(1);
        let known = match &opened {
            Ok(opened) => Some(opened.id.to_string()),
            Err((name, _)) => name.clone(),
        };
        let Opening { tickets, part: other } =
            known.and_then(|name| self.opening.remove(&name)).unwrap_or_default();
        let part = part.or(other);
        let is_asked_for = ticket.is_some();
        // What was known here, and not what the store says: a part may continue alone, before its study is read or after it
        // has ended.
        let study = match (&part, &opened) {
            (Some((study, _)), _) => Some(study.clone()),
            (None, Ok(opened)) => self.study_of(opened.id.as_str()).filter(|_| !is_asked_for),
            (None, Err(_)) => None,
        };
        let name = match opened {
            Ok(opened) => self.insert(opened, part.as_ref().map(|(study, _)| study.clone())),
            Err((name, rejection)) => {
                self.succeeded |= matches!(rejection, Rejection::Succeeded);
                match name {
                    Some(name) if self.is_retracting(&name) => self.fail_to_reopen(&name, &rejection, now),
                    Some(name) if !is_asked_for && part.is_none() => self.list_unread(&name, &rejection),
                    _ => {}
                }
                if let Some((study, part)) = part {
                    let part = self.part_name(&study, part);
                    self.fail(&study, &format!("{part}: {rejection}"), now);
                }
                for waiting in tickets {
                    let reason = Rejection::Repeated(rejection.to_string());
                    self.answer(Some(waiting), Err(reason));
                }
                return self.answer(ticket, Err(rejection));
            }
        };
        for waiting in tickets.into_iter().chain(ticket) {
            self.answer(Some(waiting), Ok(name.clone()));
        }
        if let Some((study, part)) = &part {
            self.begin_part(study, *part, &name, now);
        }
        // The study may have ended, or be about to, since it asked for this part, or since results of it were retracted. An
        // operator may continue a part alone.
        if study.is_some_and(|study| !self.is_open(&study) || self.is_ending(&study)) && self.is_open(&name) {
            self.begin_cancel(&name, None, now);
        }
        // It may have got another priority while this part was opened again by itself.
        if let Some(study) = self.study_of(&name).filter(|study| part.is_none() && self.is_open(study)) {
            self.prioritise_as(&name, &study, now);
        }
        self.reopened(&name, now);
        self.advance(&name, now);
        self.advance_study_of(&name, now);
    }

    /// Lists a run that cannot be read as failed. While the store fails, it is read again: what is there decides.
    pub(crate) fn insert_unread(&mut self, id: &RunId, why: &Rejection) {
        if why.is_outage() {
            self.opening.insert(id.to_string(), Opening::default());
            self.ask_to_open(OpenRequest::List { id: id.clone() }, None);
        } else {
            self.insert(Opened::unread(id.clone(), why), None);
        }
    }

    /// The same for a run that could not be read later either.
    fn list_unread(&mut self, name: &str, why: &Rejection) {
        if let Ok(id) = RunId::new(name)
            && self.queue.state(name).is_none()
            && !self.succeeded
        {
            self.insert(Opened::unread(id, why), None);
        }
    }

    /// Ends a run whose results were retracted, and that cannot be opened again.
    fn fail_to_reopen(&mut self, name: &str, rejection: &Rejection, now: Moment) {
        let reason = format!("it cannot be opened again: {rejection}");
        tracing::error!(run = name, reason, "failed");
        // Once another coordinator has the store, the run continues there.
        if !self.succeeded {
            self.note_unfinished(name, Unfinished::Failed(format!("run {name} failed: {reason}")));
        }
        self.close(name, RunState::Failed(reason), None);
        self.advance_study_of(name, now);
    }

    /// Adds a run that was opened; returns its name.
    pub(crate) fn insert(&mut self, opened: Opened, study: Option<String>) -> String {
        let Opened { id, body, state, priority, created, labels, study: stored_study } = opened;
        let name = id.to_string();
        let mut digest = None;
        let body = match body {
            OpenedBody::Evolution(open_run) => {
                let is_inherited = open_run.is_inherited();
                let mut evolution = Evolution::new(*open_run);
                let authors = self.authors.entry(name.clone()).or_insert_with(|| Authors::of(is_inherited));
                authors.begin(&evolution.done());
                *evolution.audits() = authors.take_audits();
                Body::Evolution(Box::new(evolution))
            }
            OpenedBody::Cells { progress, files } => Body::Cells(Box::new(Cells::new(*progress, files))),
            OpenedBody::Study { study, jobs, files } => {
                Body::Study(Box::new(StudyRun::new(*study, jobs, files)))
            }
            OpenedBody::Closed(outline, known) => {
                digest = known;
                Body::Closed(outline)
            }
        };
        tracing::info!(run = name, priority, state = ?state, "opened");
        let is_open = state.is_open();
        self.unaudited_authors.remove(&name);
        self.begun |= is_open;
        self.queue.add(&name, priority, state);
        self.unfinished.retain(|(run, _)| *run != name);
        let study = study.or(stored_study).or_else(|| self.study_of(&name));
        let unaudited = self.runs.get(&name).map_or(0, |run| run.unaudited);
        // Labels may have changed while the run was read.
        let known = self.runs.get_mut(&name).map(|run| std::mem::take(&mut run.labels));
        let labels = known.filter(|known| known.next > labels.next).unwrap_or(labels);
        let changes = VecDeque::new();
        let mut run = Run { id, body, created, digest, study, changes, unaudited, ending: None, labels };
        if !is_open {
            run.body = Body::Closed(run.outline());
        }
        self.runs.insert(name.clone(), run);
        name
    }

    /// The id of a run that there is.
    pub(crate) fn id_of(&self, name: &str) -> Result<RunId, Rejection> {
        let run = self.runs.get(name).ok_or_else(|| QueueError::Unknown(name.to_owned()))?;
        Ok(run.id.clone())
    }

    /// Shows other labels of a run, unless newer ones are known.
    pub(crate) fn set_labels(&mut self, name: &str, labels: Labels) {
        if let Some(run) = self.runs.get_mut(name).filter(|run| run.labels.next < labels.next) {
            run.labels = labels;
        }
    }

    /// Names the study that a run belongs to.
    pub(super) fn adopt_part(&mut self, name: &str, study: &str) {
        if let Some(run) = self.runs.get_mut(name) {
            run.study = Some(study.to_owned());
        }
    }

    /// Holds a run's work back, or continues with it.
    pub(crate) fn pause(&mut self, run: &str, paused: bool, ticket: Ticket, now: Moment) {
        let wanted = if paused { RunState::Paused } else { RunState::Active };
        if !paused
            && self.is_open(run)
            && let Some(study) = self.paused_study_of(run)
        {
            let reason = format!("its study is paused: `atoll pause {study} --off` continues it");
            return self.answer(Some(ticket), Err(Rejection::Unsuitable { run: run.to_owned(), reason }));
        }
        match self.queue.open_state(run).cloned() {
            Err(error) => self.answer(Some(ticket), Err(error.into())),
            // What is decided already and not written yet comes first.
            Ok(state) if state == wanted && !self.is_changing(run) => {
                self.answer(Some(ticket), Ok(run.to_owned()));
            }
            Ok(_) if self.reject_ending(run, Some(ticket)) => {}
            Ok(_) => {
                let at = now.unix;
                let event = if paused { RunEvent::Paused { at } } else { RunEvent::Continued { at } };
                self.change(run, event, Then::Pause { paused, ticket: Some(ticket) });
                self.flush(run);
                self.advance(run, now);
            }
        }
    }

    /// Ends a run without a result, and its parts with it.
    pub(crate) fn cancel(&mut self, name: &str, ticket: Ticket, now: Moment) {
        if let Err(error) = self.queue.open_state(name) {
            return self.answer(Some(ticket), Err(error.into()));
        }
        for part in self.parts_of(name) {
            if self.is_open(&part) {
                self.begin_cancel(&part, None, now);
            }
        }
        self.begin_cancel(name, Some(ticket), now);
    }

    fn begin_cancel(&mut self, name: &str, ticket: Option<Ticket>, now: Moment) {
        if self.reject_ending(name, ticket) {
            return;
        }
        let Some(run) = self.runs.get_mut(name) else { return };
        run.ending = Some(Ending::Cancelling(ticket));
        self.flush(name);
        self.advance(name, now);
    }

    /// Gives a run another budget.
    pub(crate) fn extend(&mut self, name: &str, budget: BudgetKeys, ticket: Ticket, now: Moment) {
        let Some(state) = self.queue.state(name).cloned() else {
            return self.answer(Some(ticket), Err(QueueError::Unknown(name.to_owned()).into()));
        };
        if let Some(study) = self.study_of(name) {
            return self.answer(Some(ticket), Err(Rejection::part_of(name, &study)));
        }
        if !state.is_open() {
            return self.open_again(name, None, Some(Box::new(budget)), ticket);
        }
        if self.reject_ending(name, Some(ticket)) {
            return;
        }
        let Some(evolution) = self.evolution(name) else {
            let reason = "expected a single experiment: only its budget can be changed".to_owned();
            return self.answer(Some(ticket), Err(Rejection::Unsuitable { run: name.to_owned(), reason }));
        };
        match evolution.extension(&budget, now.unix) {
            Err(error) => self.answer(Some(ticket), Err(error.into())),
            Ok((event, complete)) => {
                let (budget, ticket) = (Box::new(budget), Some(ticket));
                self.change(name, event, Then::Extend { budget, complete, ticket });
            }
        }
    }

    pub(super) fn flush(&mut self, run: &str) {
        if let Some(evolution) = self.evolution(run) {
            evolution.flush();
        }
    }

    /// Has the next things done for a run: written, deleted, ended.
    pub(crate) fn advance(&mut self, name: &str, now: Moment) {
        if !self.is_open(name) {
            return;
        }
        if self.is_retracting(name) {
            return;
        }
        if self.evolution(name).is_some_and(|evolution| evolution.open_run().archipelago().end().is_some()) {
            self.begin_final_audits(name, now);
        }
        self.begin_final_cell_audits(name, now);
        self.count_time(name, now);
        let parts_are_over = self.parts_of(name).iter().all(|part| !self.is_open(part));
        let Some(run) = self.runs.get_mut(name) else { return };
        let is_cancelling = matches!(run.ending, Some(Ending::Cancelling(_)));
        let mut steps = vec![];
        let mut finished = None;
        let is_written = match &mut run.body {
            Body::Evolution(evolution) => {
                let end = evolution.open_run().archipelago().end().cloned();
                // There may be ten thousand islands: they are looked at only when that decides something.
                let is_awaited = is_cancelling && !evolution.is_written();
                if is_awaited || end.is_some() && !evolution.is_settled() {
                    evolution.flush();
                }
                steps.extend(evolution.next_batch().map(Step::Commit));
                steps.extend(evolution.next_pruning().map(Step::Prune));
                let is_over = |end: &End, evolution: &mut Evolution| {
                    let is_whole = evolution.is_all_audited() && evolution.is_settled();
                    is_whole && (is_cancelling || evolution.is_measured_at(end.epoch))
                };
                if let Some(end) = end.filter(|end| is_over(end, evolution)) {
                    let digest = evolution.open_run().archipelago().digest();
                    let elapsed = evolution.elapsed();
                    finished = digest.map(|digest| {
                        let reason = end.reason.to_string();
                        let event = RunEvent::Finished { end: Some(end), digest, at: now.unix, elapsed };
                        (event, digest, reason)
                    });
                }
                is_cancelling && evolution.is_written()
            }
            Body::Cells(cells) => {
                let (kind, elapsed) = (cells.kind(), cells.elapsed());
                finished = cells.digest().filter(|_| cells.is_all_audited()).map(|digest| {
                    let event = RunEvent::Finished { end: None, digest, at: now.unix, elapsed };
                    (event, digest, kind.completion().to_owned())
                });
                // What was accepted is stored, and belongs to what is shown of the run from now on.
                is_cancelling && cells.is_written()
            }
            Body::Study(study) => {
                finished = study.digest().map(|digest| {
                    let event = RunEvent::Finished { end: None, digest, at: now.unix, elapsed: 0 };
                    (event, digest, RunKind::Study.completion().to_owned())
                });
                parts_are_over
            }
            Body::Closed(_) => return,
        };
        let cancelled = match &mut run.ending {
            // What was decided before comes before it in the journal.
            Some(Ending::Cancelling(ticket)) => (is_written && run.changes.is_empty()).then(|| {
                let at = now.unix;
                (RunEvent::Cancelled { at }, Then::Cancel { at, ticket: ticket.take() })
            }),
            Some(Ending::Finishing | Ending::Stopping | Ending::Retracting) | None => None,
        };
        let is_ready = run.ending.is_none() && run.changes.is_empty();
        let finished = finished.filter(|_| is_ready);
        if cancelled.is_some() {
            run.ending = Some(Ending::Stopping);
        } else if finished.is_some() {
            run.ending = Some(Ending::Finishing);
        }
        for step in steps {
            self.step(name, step);
        }
        if let Some((event, then)) = cancelled {
            self.append(name, event, then);
        }
        if let Some((event, digest, reason)) = finished {
            self.append(name, event, Then::Finish { digest, reason });
        }
        self.read_milestones(name);
    }

    /// Ends a run that cannot continue, and its parts with it.
    pub(crate) fn fail(&mut self, name: &str, reason: &str, now: Moment) {
        let is_over = |run: &Run| matches!(run.ending, Some(Ending::Finishing | Ending::Stopping));
        // Once another coordinator has the store, the run continues there.
        if self.succeeded || !self.is_open(name) || self.runs.get(name).is_some_and(is_over) {
            return;
        }
        tracing::error!(run = name, reason, "failed");
        self.write_losses_of(name, now);
        self.note_unfinished(name, Unfinished::Failed(format!("run {name} failed: {reason}")));
        for part in self.parts_of(name) {
            if self.is_open(&part) {
                self.begin_cancel(&part, None, now);
            }
        }
        let ending = self.runs.get_mut(name).and_then(|run| run.ending.replace(Ending::Stopping));
        if let Some(Ending::Cancelling(ticket)) = ending {
            let reason = "it has just failed".to_owned();
            self.answer(ticket, Err(Rejection::Unsuitable { run: name.to_owned(), reason }));
        }
        let reason = reason.to_owned();
        let event = RunEvent::Failed { reason: reason.clone(), at: now.unix };
        self.append(name, event, Then::Fail { reason });
    }

    /// Forgets what a run consists of, and who has work of it.
    pub(super) fn close(&mut self, name: &str, state: RunState, digest: Option<Digest>) {
        let receipts = self.evolution(name).map(Evolution::take_receipts).unwrap_or_default();
        self.spans.forget_run(name, &receipts);
        for receipt in receipts {
            self.workers.settle(&receipt.worker, receipt.number);
        }
        self.note_unaudited_authors(name, &state);
        self.authors.remove(name);
        self.drop_changes(name, "it has just ended");
        let mut waiting = None;
        if let Some(run) = self.runs.get_mut(name) {
            run.body = Body::Closed(run.outline());
            run.digest = digest;
            if let Some(Ending::Cancelling(ticket)) = run.ending.take() {
                waiting = ticket;
            }
        }
        let reason = "it has just ended".to_owned();
        self.answer(waiting, Err(Rejection::Unsuitable { run: name.to_owned(), reason }));
        self.leases.remove_run(name);
        self.workers.forget_run(name);
        self.counted.remove(name);
        self.queue.set(name, state);
        self.step(name, Step::Forget);
    }

    /// All runs.
    pub(crate) fn statuses(&self, now: Moment) -> Vec<v1::RunStatus> {
        // Workers are looked at once for all runs that wait for them.
        let fleet = OnceCell::new();
        self.runs.keys().filter_map(|run| self.status_beside(run, now, &fleet).ok()).collect()
    }

    /// How far a run is, if that is known.
    pub(crate) fn standing(&self, name: &str) -> Option<v1::Standing> {
        self.runs.get(name)?.outline().standing.as_ref().map(v1::Standing::from)
    }

    /// The state of a run.
    pub(crate) fn status(&self, name: &str, now: Moment) -> Result<v1::RunStatus, Rejection> {
        self.status_beside(name, now, &OnceCell::new())
    }

    fn status_beside<'a>(
        &'a self,
        name: &str,
        now: Moment,
        fleet: &OnceCell<Fleet<'a>>,
    ) -> Result<v1::RunStatus, Rejection> {
        let unknown = || QueueError::Unknown(name.to_owned());
        let run = self.runs.get(name).ok_or_else(unknown)?;
        let Outline { kind, standing, goal, islands, elapsed } = run.outline();
        let kind = kind_of(kind);
        let leases = self.leases.count(name) as u32;
        let trouble = match &run.body {
            Body::Evolution(evolution) => evolution.trouble(),
            _ => None,
        };
        let (state, reason) = match self.state_of(name).ok_or_else(unknown)? {
            RunState::Active if trouble.is_some() => {
                (State::Running, format!("the store cannot write: {}", trouble.unwrap_or_default()))
            }
            RunState::Active if leases > 0 || kind == Kind::Study => {
                let stalled = self.leases.stalled(name).map(|(work, worker)| {
                    format!("{} makes no progress on worker {}", work.piece, self.workers.name(worker))
                });
                (State::Running, stalled.or_else(|| self.failing(name)).unwrap_or_default())
            }
            RunState::Active if self.workers.count() == 0 => {
                (State::Waiting, "no worker has joined".to_owned())
            }
            RunState::Active => {
                // That the store is slow is no property of a run, and is shown where the store is looked at.
                let fleet = fleet.get_or_init(|| self.fleet(now));
                let situation = self.situation_beside(name, now, StoreHealth::default(), fleet);
                (State::Waiting, situation.map(|situation| why(&situation).clause()).unwrap_or_default())
            }
            RunState::Paused => (State::Paused, String::new()),
            RunState::Finished(reason) => (State::Finished, reason.clone()),
            RunState::Cancelled => (State::Cancelled, String::new()),
            RunState::Failed(reason) => (State::Failed, reason.clone()),
        };
        let reason = match run.unaudited {
            0 => reason,
            count => {
                let results = if count == 1 { "1 result" } else { &format!("{count} results") };
                let unaudited = format!("run unaudited: {results} could not be audited");
                if reason.is_empty() { unaudited } else { format!("{reason}; {unaudited}") }
            }
        };
        let budget = match &run.body {
            Body::Evolution(evolution) => Some(*evolution.open_run().archipelago().budget()),
            _ => None,
        };
        let wall_time = budget.and_then(|budget| budget.wall_time);
        Ok(v1::RunStatus {
            run: name.to_owned(),
            kind: kind.into(),
            state: state.into(),
            priority: self.queue.priority(name),
            reason,
            standing: standing.as_ref().map(v1::Standing::from),
            goal,
            islands,
            leases,
            digest: run.digest.as_ref().map(digest_bytes),
            elapsed_milliseconds: elapsed,
            created: run.created,
            goal_evaluations: budget.and_then(|budget| budget.evaluations),
            goal_milliseconds: wall_time.map(|time| time.as_millis() as u64),
            labels: run.labels.to_strings(),
        })
    }

    /// What fails of a run, and is tried again.
    fn failing(&self, name: &str) -> Option<String> {
        let (work, workers, reason, _) = self.leases.failing(name)?;
        let on = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
        Some(format!("{} failed on {on} and is tried again: {reason}", work.piece))
    }

    /// Whether results of a run are being taken back.
    pub(super) fn is_retracting(&self, name: &str) -> bool {
        self.runs.get(name).is_some_and(|run| matches!(run.ending, Some(Ending::Retracting)))
    }

    /// Whether a run is about to end.
    pub(super) fn is_ending(&self, name: &str) -> bool {
        self.runs.get(name).is_some_and(|run| run.ending.is_some())
    }

    /// Whether a run is about to end without a result.
    fn is_being_stopped(&self, name: &str) -> bool {
        let is_stopped = |run: &Run| matches!(run.ending, Some(Ending::Cancelling(_) | Ending::Stopping));
        self.runs.get(name).is_some_and(is_stopped)
    }

    /// Whether its last event is being written: that it was cancelled, or has failed.
    pub(super) fn is_stopping(&self, name: &str) -> bool {
        self.runs.get(name).is_some_and(|run| matches!(run.ending, Some(Ending::Stopping)))
    }

    pub(super) fn digest_of(&self, name: &str) -> Option<Digest> {
        self.runs.get(name).and_then(|run| run.digest)
    }

    pub(super) fn study_of(&self, name: &str) -> Option<String> {
        self.runs.get(name).and_then(|run| run.study.clone())
    }
}
