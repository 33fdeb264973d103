//! The queue: which runs there are, what state each is in, and whose work comes first.
//!
//! A pure state machine beside the leases: it knows runs by name only, not what they compute.

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
    /// It cannot go on, for this reason.
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
    submitted: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    priority: i32,
    number: u64,
    state: RunState,
}

impl Queue {
    /// Adds a run after all others of its priority, or gives one that is there another state and priority.
    pub(crate) fn add(&mut self, run: &str, priority: i32, state: RunState) {
        let number = self.runs.get(run).map_or(self.submitted, |known| known.number);
        self.submitted = self.submitted.max(number + 1);
        self.runs.insert(run.to_owned(), Entry { priority, number, state });
    }

    /// The active runs: the highest priority first, then in the order of their submission.
    pub(crate) fn active(&self) -> Vec<String> {
        let mut active: Vec<(&String, &Entry)> =
            self.runs.iter().filter(|(_, entry)| entry.state == RunState::Active).collect();
        active.sort_by_key(|(_, entry)| (std::cmp::Reverse(entry.priority), entry.number));
        active.into_iter().map(|(run, _)| run.clone()).collect()
    }

    /// What a run is doing.
    pub(crate) fn state(&self, run: &str) -> Option<&RunState> {
        self.runs.get(run).map(|entry| &entry.state)
    }

    /// A run's priority.
    pub(crate) fn priority(&self, run: &str) -> i32 {
        self.runs.get(run).map_or(0, |entry| entry.priority)
    }

    /// The runs that have not ended, by name.
    pub(crate) fn open(&self) -> Vec<String> {
        self.all().filter(|(_, state)| state.is_open()).map(|(run, _)| run.to_owned()).collect()
    }

    /// Whether there is anything left to do, now or later.
    pub(crate) fn has_open_runs(&self) -> bool {
        self.runs.values().any(|entry| entry.state.is_open())
    }

    /// The state of a run that has not ended, to be changed.
    pub(crate) fn open_state(&self, run: &str) -> Result<&RunState, QueueError> {
        let state = self.state(run).ok_or_else(|| QueueError::Unknown(run.to_owned()))?;
        if state.is_open() { Ok(state) } else { Err(QueueError::Ended(run.to_owned())) }
    }

    /// Gives a run another state.
    pub(crate) fn set(&mut self, run: &str, state: RunState) {
        if let Some(entry) = self.runs.get_mut(run) {
            entry.state = state;
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
        queue.add("b", 0, RunState::Active);
        assert_eq!(
            queue.active(),
            ["urgent", "b", "a", "later"],
            "its place is that of its first submission"
        );
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
