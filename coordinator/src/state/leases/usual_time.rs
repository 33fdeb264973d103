//! How long the pieces of a run usually take.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most principals whose times are remembered.
const MOST_TIMES: usize = 64;

/// How long pieces of a run took on the workers of each principal. One principal must not make all others wait: a worker that
/// returns its pieces late on purpose, or not at all, says nothing of how long they take.
#[derive(Clone, Debug, Default)]
pub(super) struct UsualTime {
    of: BTreeMap<String, Duration>,
    /// What it takes on the middle one of them, or on the faster one of two.
    median: Duration,
}

impl UsualTime {
    /// Learns from a piece that a worker of a principal has done.
    pub(super) fn learn(&mut self, principal: &str, held: Duration) {
        if self.of.len() >= MOST_TIMES && !self.of.contains_key(principal) {
            self.of.pop_first();
        }
        let usual = self.of.entry(principal.to_owned()).or_insert(held);
        *usual = (*usual * 7 + held) / 8;
        let mut times: Vec<Duration> = self.of.values().copied().collect();
        times.sort_unstable();
        self.median = times[(times.len() - 1) / 2];
    }

    pub(super) fn median(&self) -> Duration {
        self.median
    }
}
