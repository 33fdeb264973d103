//! Times, counted by their upper bounds.

use std::time::Duration;

/// The upper bounds, in milliseconds: from a call in memory to an epoch of hours. Longer times have no bound.
const BOUNDS: [u64; 14] =
    [1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000];

/// How many times were at most as long as each bound, and longer than the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let at =
            BOUNDS.iter().position(|bound| time <= Duration::from_millis(*bound)).unwrap_or(BOUNDS.len());
        self.counts[at] += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// The upper bounds in seconds, the last one infinite, each with its own count.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = BOUNDS.into_iter().map(|bound| Duration::from_millis(bound).as_secs_f64());
        bounds.chain([f64::INFINITY]).zip(self.counts)
    }

    /// All times together, in seconds.
    pub(crate) fn sum(&self) -> f64 {
        self.sum.as_secs_f64()
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_where_it_is_at_most_the_bound() {
        let mut histogram = Histogram::default();
        let times = [0, 1000, 1001, 7_200_000_000, 7_200_000_001].map(Duration::from_micros);
        for time in times {
            histogram.add(time);
        }
        let buckets: Vec<(f64, u64)> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
        assert_eq!(buckets, [(0.001, 2), (0.005, 1), (7200.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((histogram.count(), histogram.sum()), (5, 14_400.002_002));
    }
}
