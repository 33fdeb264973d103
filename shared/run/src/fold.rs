//! The fold of a journal into a state: the one place that says what the events of a run add up to.

use crate::event::{Owner, RunEvent};
use archipelago::End;
use codec::Digest;
use std::collections::BTreeSet;
use std::fmt;

/// What the journal of a run adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Recorded {
    /// How the run stands.
    pub status: Status,
    /// Its work comes before that of runs with a lower priority.
    pub priority: i32,
    /// How it was created; nothing if the journal is empty or does not begin with it.
    pub created: Option<RunCreation>,
    /// What was decided about its end, in order.
    pub decisions: Vec<Decision>,
    /// How it finished, if it has.
    pub finished: Option<Finished>,
    /// Its terms and retractions, in order.
    pub terms: Vec<Term>,
    /// How often results were retracted.
    pub attempt: u64,
    /// The results of jobs that were retracted, in order.
    pub retracted_jobs: Vec<RetractedJobs>,
}

/// Results of jobs that do not count any more.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetractedJobs {
    /// The numbers of the jobs.
    pub jobs: BTreeSet<u32>,
    /// The term in which they were retracted.
    pub term: u64,
    /// How many batches of that term were written by then.
    pub batches: u64,
}

/// A point of the journal from which results are computed again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// The number of the event.
    pub number: u64,
    /// The process that opened the run; nothing if results were retracted.
    pub owner: Option<Owner>,
    /// How often results had been retracted by then, this time included.
    pub attempt: u64,
    /// Of each island, how many epochs count of those before.
    pub cuts: Vec<u64>,
    /// How many batches of job results count of the term before.
    pub batches: u64,
}

/// How a run stands according to its journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// It may be worked on.
    #[default]
    Open,
    /// Its work is held back.
    Paused,
    /// It is finished.
    Finished,
    /// It was cancelled.
    Cancelled,
    /// It cannot continue, for this reason.
    Failed(String),
}

/// How a run was created.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunCreation {
    /// The digest of its experiment.
    pub experiment: Digest,
    /// The digest of the stored text.
    pub text: Digest,
    /// The version of what experiments mean.
    pub semantics: u32,
    /// The version of the program.
    pub version: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// Something that was decided about the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Its budget was changed when this number of epochs was complete.
    Extended {
        /// The `[budget]` table in JSON.
        budget: String,
        /// The epochs that were complete on all islands by then.
        complete: u64,
    },
    /// It ends here.
    Ended(End),
}

/// How a run finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finished {
    /// Where and why.
    pub end: Option<End>,
    /// The digest of the run.
    pub digest: Digest,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// For how long it was worked on, in milliseconds.
    pub elapsed: u64,
}

impl Status {
    /// Whether there may be work to do, now or after it is resumed.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open | Self::Paused)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Open => "unfinished",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        })
    }
}

impl Recorded {
    /// What these events add up to, which are all from the first on.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Self {
        let mut recorded = Self::default();
        (0..).zip(events).for_each(|(number, event)| recorded.apply(number, event));
        recorded
    }

    /// How often the run was opened again.
    pub fn restarts(&self) -> u64 {
        let openings = self.terms.iter().filter(|term| term.owner.is_some()).count() as u64;
        openings.saturating_sub(1)
    }

    /// The process that opened the run last.
    pub fn owner(&self) -> Option<&Owner> {
        self.terms.iter().rev().find_map(|term| term.owner.as_ref())
    }

    /// Adds the event of a number.
    pub fn apply(&mut self, number: u64, event: &RunEvent) {
        match event {
            RunEvent::Created { experiment, text, semantics, version, at } => {
                let (experiment, text, semantics, at) = (*experiment, *text, *semantics, *at);
                let created = RunCreation { experiment, text, semantics, version: version.clone(), at };
                self.created.get_or_insert(created);
            }
            RunEvent::Opened { owner, cuts, batches, .. } => {
                let (owner, cuts, attempt) = (Some(owner.clone()), cuts.clone(), self.attempt);
                self.terms.push(Term { number, owner, attempt, cuts, batches: *batches });
            }
            RunEvent::Retracted { cuts, .. } => {
                self.attempt += 1;
                let (cuts, attempt) = (cuts.clone(), self.attempt);
                self.terms.push(Term { number, owner: None, attempt, cuts, batches: u64::MAX });
                // What an operator holds back stays held back, whatever was found out about its results.
                if self.status != Status::Paused {
                    self.become_status(Status::Open);
                }
            }
            RunEvent::Prioritised { priority, .. } => self.priority = *priority,
            RunEvent::Paused { .. } => self.become_status(Status::Paused),
            RunEvent::Continued { .. } => self.become_status(Status::Open),
            RunEvent::Cancelled { .. } => self.become_status(Status::Cancelled),
            RunEvent::Failed { reason, .. } => self.become_status(Status::Failed(reason.clone())),
            RunEvent::Extended { budget, complete, .. } => {
                let (budget, complete) = (budget.clone(), *complete);
                self.decisions.push(Decision::Extended { budget, complete });
                self.become_status(Status::Open);
            }
            RunEvent::Decided { end, .. } => self.decisions.push(Decision::Ended(end.clone())),
            RunEvent::Finished { end, digest, at, elapsed } => {
                let (end, digest, at, elapsed) = (end.clone(), *digest, *at, *elapsed);
                self.finished = Some(Finished { end, digest, at, elapsed });
                self.status = Status::Finished;
            }
            RunEvent::RetractedJobs { jobs, batches, .. } => {
                let opened = self.terms.iter().rev().find(|term| term.owner.is_some());
                let (jobs, term) = (jobs.iter().copied().collect(), opened.map_or(0, |term| term.number));
                self.retracted_jobs.push(RetractedJobs { jobs, term, batches: *batches });
            }
            RunEvent::Lost { .. } | RunEvent::Expired { .. } => {}
        }
    }

    /// Whether the result of a job in this batch of a term was retracted.
    pub fn is_retracted(&self, job: u32, (term, batch): (u64, u64)) -> bool {
        let covers = |one: &RetractedJobs| (term, batch) < (one.term, one.batches) && one.jobs.contains(&job);
        self.retracted_jobs.iter().any(covers)
    }

    fn become_status(&mut self, status: Status) {
        self.status = status;
        self.finished = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archipelago::Reason;

    fn finished() -> RunEvent {
        let end = End { epoch: 3, reason: Reason::Generations };
        RunEvent::Finished { end: Some(end), digest: Digest::of(b"run"), at: 9, elapsed: 5 }
    }

    fn status(events: &[RunEvent]) -> Status {
        Recorded::of(events).status
    }

    #[test]
    fn the_last_event_that_changes_the_status_decides() {
        let paused = RunEvent::Paused { at: 1 };
        let cancelled = RunEvent::Cancelled { at: 2 };
        let continued = RunEvent::Continued { at: 3 };
        let opened = RunEvent::Opened { owner: Owner::default(), cuts: vec![], batches: 0, at: 4 };
        assert_eq!(status(&[]), Status::Open);
        assert_eq!(status(&[paused.clone(), opened.clone()]), Status::Paused);
        assert_eq!(status(&[paused.clone(), cancelled.clone(), opened.clone()]), Status::Cancelled);
        assert_eq!(status(&[cancelled.clone(), continued]), Status::Open);
        let retracted = RunEvent::Retracted { cuts: vec![], reason: String::new(), at: 5 };
        assert_eq!(status(&[paused, retracted.clone()]), Status::Paused, "only an operator continues it");
        assert_eq!(status(&[cancelled, retracted.clone()]), Status::Open);
        assert_eq!(status(&[finished(), retracted]), Status::Open);
        assert_eq!(status(&[finished(), opened]), Status::Finished);
    }

    #[test]
    fn a_priority_changes_nothing_of_a_finished_run() {
        let recorded = Recorded::of(&[finished(), RunEvent::Prioritised { priority: 7, at: 10 }]);
        assert_eq!((recorded.priority, recorded.status), (7, Status::Finished));
        assert_eq!(recorded.finished.map(|finished| finished.elapsed), Some(5));
    }

    #[test]
    fn extending_opens_a_finished_run() {
        let extended = RunEvent::Extended { budget: "{}".to_owned(), complete: 4, at: 10 };
        let recorded = Recorded::of(&[finished(), extended]);
        assert_eq!((recorded.status, recorded.finished), (Status::Open, None));
        assert_eq!(recorded.decisions, [Decision::Extended { budget: "{}".to_owned(), complete: 4 }]);
    }
}
