//! How long to wait before trying again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double from try to try, each shortened by chance, so that many workers do not come back at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    wait: Duration,
    random: u64,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Self {
        Self { wait: FIRST, random: seed }
    }

    pub(crate) fn next(&mut self) -> Duration {
        // A linear congruential generator is plenty for spreading retries.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = 0.5 + (self.random >> 33) as f64 / (1u64 << 32) as f64;
        let wait = self.wait.mul_f64(share.min(1.0));
        self.wait = (self.wait * 2).min(LONGEST);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        let waits = |seed| {
            let mut backoff = Backoff::new(seed);
            (0..12).map(|_| backoff.next()).collect::<Vec<_>>()
        };
        let one = waits(1);
        assert!(one[0] <= FIRST && one.iter().all(|wait| *wait <= LONGEST));
        assert!(one[11] >= LONGEST / 2);
        assert_ne!(one, waits(2));
    }
}
