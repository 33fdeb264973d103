//! Lines of the log that workers can cause: some of each principal in a time, and then one line with the number of the others.

use std::collections::BTreeMap;
use std::time::Duration;

/// The maximum number of lines that the workers of one principal cause in a period.
const LINES: u32 = 100;
const PERIOD: Duration = Duration::from_secs(10);

/// How many lines were logged because of each principal.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerLogLimit {
    principals: BTreeMap<String, Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    since: Duration,
    lines: u32,
    left_out: u64,
}

impl WorkerLogLimit {
    /// Whether one more line may be logged because of a principal.
    pub(crate) fn allows(&mut self, principal: &str, now: Duration) -> bool {
        if !self.principals.contains_key(principal) {
            self.principals.insert(principal.to_owned(), Counts { since: now, lines: 0, left_out: 0 });
        }
        let counts = self.principals.get_mut(principal).expect("it was just inserted");
        let is_allowed = counts.lines < LINES;
        if is_allowed {
            counts.lines += 1;
        } else {
            counts.left_out += 1;
        }
        is_allowed
    }

    /// Forgets the principals whose period is over. Returns whose lines were left out, and how many.
    pub(crate) fn end_periods(&mut self, now: Duration) -> Vec<(String, u64)> {
        let is_over = |counts: &Counts| now.saturating_sub(counts.since) >= PERIOD;
        let over = self.principals.extract_if(.., |_, counts| is_over(counts));
        over.filter(|(_, counts)| counts.left_out > 0)
            .map(|(principal, counts)| (principal, counts.left_out))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_principal_are_limited_and_those_left_out_are_counted_once() {
        let (mut limit, start) = (WorkerLogLimit::default(), Duration::from_secs(7));
        let allowed = (0..4096).filter(|_| limit.allows("liar", start)).count();
        assert_eq!(allowed, LINES as usize);
        assert!(limit.allows("other", start), "of each principal");
        assert_eq!(limit.end_periods(start + PERIOD / 2), []);
        assert!(!limit.allows("liar", start + PERIOD / 2));
        assert_eq!(limit.end_periods(start + PERIOD), [("liar".to_owned(), 4096 + 1 - u64::from(LINES))]);
        assert_eq!(limit.end_periods(start + PERIOD), [], "told once");
        assert!(limit.principals.is_empty(), "nothing is remembered of who is quiet");
        assert!(limit.allows("liar", start + PERIOD));
    }
}
