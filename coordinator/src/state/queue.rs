//! The queue: which runs there are, what state each is in, and whose work comes first.
//!
//! A pure state machine beside the leases: it knows runs by name only, not what they compute.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a run is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// Its work is handed out.
    Active,
    /// Its work is held back.
    Paused,
    /// It has come to its end, for this reason.
    Finished(String),
    /// An operator ended it.
    Cancelled,
    /// It cannot continue, for this reason.
    Failed(String),
}

impl RunState {
    /// Whether the run may still be worked on, now or later.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

/// A change that a run's state does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// There is no such run.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// It has ended.
    #[error("run `{0}` has ended already: it cannot be paused, continued or cancelled")]
    Ended(String),
}

/// All runs of a coordinator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    runs: BTreeMap<String, Entry>,
    /// The runs that have not ended, by their place: every call looks at them, and far more may have ended.
    open: BTreeMap<Position, String>,
    submitted: u64,
}

/// Where a run stands: the highest priority first, then in the order of submission.
type Position = (Reverse<i32>, u64);

#[derive(Clone, Debug)]
struct Entry {
    priority: i32,
    number: u64,
    state: RunState,
}

impl Entry {
    fn position(&self) -> Position {
        (Reverse(self.priority), self.number)
    }
}

impl Queue {
    /// Adds a run after all others of its priority, or gives one that is there another state and priority.
    pub(crate) fn add(&mut self, run: &str, priority: i32, state: RunState) {
        let known = self.runs.get(run).map(|known| (known.number, known.position()));
        let number = known.map_or(self.submitted, |(number, _)| number);
        self.submitted = self.submitted.max(number + 1);
        if let Some((_, position)) = known {
            self.open.remove(&position);
        }
        let entry = Entry { priority, number, state };
        if entry.state.is_open() {
            self.open.insert(entry.position(), run.to_owned());
        }
        self.runs.insert(run.to_owned(), entry);
    }

    /// The active runs: the highest priority first, then in the order of their submission.
    pub(crate) fn active(&self) -> Vec<String> {
        self.active_runs().map(str::to_owned).collect()
    }

    /// The same, to be looked at.
    pub(crate) fn active_runs(&self) -> impl Iterator<Item = &str> {
        self.open_runs().filter(|run| self.state(run) == Some(&RunState::Active))
    }

    /// The runs that have not ended, in the same order.
    pub(crate) fn open_runs(&self) -> impl Iterator<Item = &str> {
        self.open.values().map(String::as_str)
    }

    /// How many runs have not ended.
    pub(crate) fn count_open(&self) -> usize {
        self.open.len()
    }

    /// What a run is doing.
    pub(crate) fn state(&self, run: &str) -> Option<&RunState> {
        self.runs.get(run).map(|entry| &entry.state)
    }

    /// Whether work of one run is handed out before that of another.
    pub(crate) fn comes_before(&self, run: &str, other: &str) -> bool {
        let position = |run| self.runs.get(run).map(Entry::position);
        position(run).zip(position(other)).is_some_and(|(own, of_other)| own < of_other)
    }

    /// A run's priority.
    pub(crate) fn priority(&self, run: &str) -> i32 {
        self.runs.get(run).map_or(0, |entry| entry.priority)
    }

    /// The runs that have not ended, by name.
    pub(crate) fn open(&self) -> Vec<String> {
        let mut open: Vec<String> = self.open_runs().map(str::to_owned).collect();
        open.sort();
        open
    }

    /// Whether there is anything left to do, now or later.
    pub(crate) fn has_open_runs(&self) -> bool {
        !self.open.is_empty()
    }

    /// The state of a run that has not ended, to be changed.
    pub(crate) fn open_state(&self, run: &str) -> Result<&RunState, QueueError> {
        let state = self.state(run).ok_or_else(|| QueueError::Unknown(run.to_owned()))?;
        if state.is_open() { Ok(state) } else { Err(QueueError::Ended(run.to_owned())) }
    }

    /// Gives a run another state.
    pub(crate) fn set(&mut self, run: &str, state: RunState) {
        if self.runs.contains_key(run) {
            self.add(run, self.priority(run), state);
        }
    }

    /// All runs with their states, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &RunState)> {
        self.runs.iter().map(|(run, entry)| (run.as_str(), &entry.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_comes_first_then_the_order_of_submission() {
        let mut queue = Queue::default();
        for (run, priority) in [("b", 0), ("a", 0), ("urgent", 5), ("later", -1)] {
            queue.add(run, priority, RunState::Active);
        }
        assert_eq!(queue.active(), ["urgent", "b", "a", "later"]);
        queue.add("b", 9, RunState::Active);
        assert_eq!(queue.active(), ["b", "urgent", "a", "later"]);
        assert!(queue.comes_before("b", "a") && !queue.comes_before("a", "urgent"));
        queue.add("b", 0, RunState::Active);
        assert_eq!(
            queue.active(),
            ["urgent", "b", "a", "later"],
            "its place is that of its first submission"
        );
    }

    #[test]
    fn runs_that_have_ended_are_not_looked_at() {
        let mut queue = Queue::default();
        for (run, priority) in [("a", 0), ("b", 3), ("c", 0)] {
            queue.add(run, priority, RunState::Active);
        }
        queue.set("a", RunState::Cancelled);
        queue.set("c", RunState::Paused);
        assert_eq!((queue.open_runs().collect::<Vec<_>>(), queue.count_open()), (vec!["b", "c"], 2));
        queue.add("a", 5, RunState::Active);
        queue.add("b", -1, RunState::Active);
        assert_eq!(queue.open_runs().collect::<Vec<_>>(), ["a", "c", "b"]);
        assert_eq!(queue.active(), ["a", "b"]);
        assert_eq!(queue.open(), ["a", "b", "c"], "by name");
        assert_eq!(queue.all().count(), 3);
    }

    #[test]
    fn only_active_runs_are_worked_on() {
        let mut queue = Queue::default();
        queue.add("a", 0, RunState::Active);
        queue.add("b", 0, RunState::Paused);
        assert_eq!(queue.active(), ["a"]);
        queue.set("a", RunState::Failed("poison".to_owned()));
        assert_eq!(queue.active(), [""; 0]);
        assert!(queue.has_open_runs(), "the paused one may go on");
        assert_eq!(queue.open_state("a"), Err(QueueError::Ended("a".to_owned())));
        assert_eq!(queue.open_state("c"), Err(QueueError::Unknown("c".to_owned())));
    }
}
