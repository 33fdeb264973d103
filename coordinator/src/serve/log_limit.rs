//! Lines of the log that others can cause: a few each second, and how many there would have been.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The maximum number of lines a second.
const LINES: u64 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// How many lines of one kind were logged.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    since: Option<Instant>,
    lines: u64,
    left_out: u64,
}

impl LogLimit {
    /// Whether a line may be logged now, and how many were left out before it.
    pub(super) fn allows(&self) -> Option<u64> {
        self.allows_at(Instant::now())
    }

    fn allows_at(&self, now: Instant) -> Option<u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.since.is_none_or(|since| now.saturating_duration_since(since) >= PERIOD) {
            counts.since = Some(now);
            counts.lines = 0;
        }
        if counts.lines >= LINES {
            counts.left_out += 1;
            return None;
        }
        counts.lines += 1;
        Some(std::mem::take(&mut counts.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_lines_a_second_and_the_number_of_others() {
        let (limit, start) = (LogLimit::default(), Instant::now());
        assert_eq!((0..100).filter(|_| limit.allows_at(start).is_some()).count(), 10);
        assert_eq!(limit.allows_at(start + PERIOD), Some(90));
        assert_eq!(limit.allows_at(start + PERIOD), Some(0));
    }
}
