//! Which islands have to be written when: what a crash may cost is a time, or a number of generations.
//!
//! Each island has a deadline of its own, so that ten thousand of them are not all written at once.

use experiment::CheckpointEvery;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The most islands whose time is up that are written together. Those who wait for something else to be written wait
/// for them too.
const AT_ONCE: usize = 64;

/// Which islands of a run have to be written.
#[derive(Clone, Debug, Hash)]
pub struct CommitSchedule {
    every: CheckpointEvery,
    /// Islands that are to be written at once.
    now: BTreeSet<u32>,
    /// Others by when their time is up, measured by how long the run has been worked on.
    later: VecDeque<(Duration, u32)>,
    is_later: BTreeSet<u32>,
    everything: bool,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Everything that is not written yet.
    Everything,
    /// What is not written yet of these islands.
    Islands(Vec<u32>),
}

impl CommitSchedule {
    /// Nothing is due yet.
    pub fn new(every: CheckpointEvery) -> Self {
        let (now, is_later) = (BTreeSet::new(), BTreeSet::new());
        Self { every, now, later: VecDeque::new(), is_later, everything: false }
    }

    /// Notes an epoch of an island, and the generations that a crash would now cost.
    pub fn note(&mut self, island: u32, at_stake: u64, worked: Duration) {
        match self.every {
            CheckpointEvery::Generations(limit) if at_stake >= limit => self.add([island]),
            CheckpointEvery::Generations(_) => {}
            CheckpointEvery::Time(every) => {
                if self.is_later.insert(island) {
                    self.later.push_back((worked + every, island));
                }
            }
        }
    }

    /// Has islands written at once.
    pub fn add(&mut self, islands: impl IntoIterator<Item = u32>) {
        self.now.extend(islands);
    }

    /// Has everything written at once.
    pub fn add_everything(&mut self) {
        self.everything = true;
    }

    /// What to write now, which is not due any more.
    pub fn take(&mut self, worked: Duration) -> Due {
        if std::mem::take(&mut self.everything) {
            return Due::Everything;
        }
        let mut islands = std::mem::take(&mut self.now);
        for _ in 0..AT_ONCE {
            let Some((_, island)) = self.later.pop_front_if(|(time, _)| *time <= worked) else { break };
            self.is_later.remove(&island);
            islands.insert(island);
        }
        Due::Islands(islands.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn islands(due: &mut CommitSchedule, worked: u64) -> Vec<u32> {
        match due.take(seconds(worked)) {
            Due::Islands(islands) => islands,
            Due::Everything => panic!("nobody asked for everything"),
        }
    }

    #[test]
    fn each_island_has_its_own_time() {
        let mut due = CommitSchedule::new(CheckpointEvery::Time(seconds(30)));
        due.note(5, 1, seconds(0));
        due.note(3, 1, seconds(10));
        due.note(5, 2, seconds(20));
        assert_eq!(islands(&mut due, 29), [0; 0]);
        assert_eq!(islands(&mut due, 30), [5]);
        due.note(5, 1, seconds(35));
        assert_eq!(islands(&mut due, 64), [3], "the other one begins anew");
        assert_eq!(islands(&mut due, 65), [5]);
    }

    #[test]
    fn what_is_due_at_once_is_written_in_parts() {
        let mut due = CommitSchedule::new(CheckpointEvery::Time(seconds(1)));
        (0..100).for_each(|island| due.note(island, 1, seconds(0)));
        due.add([99]);
        let first = islands(&mut due, 1);
        assert_eq!(first.len(), AT_ONCE + 1);
        assert!(first.contains(&99), "what somebody waits for comes first");
        assert_eq!(islands(&mut due, 1).len(), 100 - AT_ONCE);
        assert_eq!(islands(&mut due, 1), [0; 0]);
    }

    #[test]
    fn generations_at_stake_are_counted_for_each_island() {
        let mut due = CommitSchedule::new(CheckpointEvery::Generations(5));
        due.note(1, 4, seconds(0));
        assert_eq!(islands(&mut due, 100), [0; 0]);
        due.note(1, 5, seconds(0));
        assert_eq!(islands(&mut due, 0), [1]);
        due.add_everything();
        assert_eq!(due.take(seconds(0)), Due::Everything);
        assert_eq!(islands(&mut due, 0), [0; 0]);
    }
}
