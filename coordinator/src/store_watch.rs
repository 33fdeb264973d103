//! How the store does: what is being written, for how long, and how long writes take.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A coordinator whose store has not completed a write for this long is not ready.
const SILENT: Duration = Duration::from_secs(10);
/// The upper bounds of the histogram, in seconds.
const BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0];

/// Watches writes. Clones are the same.
#[derive(Clone)]
pub(crate) struct StoreWatch(Arc<Mutex<Watched>>);

struct Watched {
    pending: BTreeMap<u64, Instant>,
    next: u64,
    completed: Instant,
    histogram: Histogram,
}

/// A write that is under way, until it is dropped.
pub(crate) struct Writing {
    watch: StoreWatch,
    number: u64,
}

/// What was measured so far.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) pending: usize,
    pub(crate) oldest: Duration,
    pub(crate) since_durable: Duration,
    pub(crate) histogram: Histogram,
}

/// Times, counted by their upper bounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: f64,
}

impl StoreWatch {
    pub(crate) fn new() -> Self {
        let (pending, histogram) = (BTreeMap::new(), Histogram::default());
        Self(Arc::new(Mutex::new(Watched { pending, next: 0, completed: Instant::now(), histogram })))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write begins.
    pub(crate) fn begin(&self) -> Writing {
        let mut watched = self.lock();
        let number = watched.next;
        watched.next += 1;
        watched.pending.insert(number, Instant::now());
        Writing { watch: self.clone(), number }
    }

    /// Whether a write has waited for too long.
    pub(crate) fn is_silent(&self) -> bool {
        self.measure().oldest >= SILENT
    }

    pub(crate) fn measure(&self) -> Measured {
        let watched = self.lock();
        Measured {
            pending: watched.pending.len(),
            oldest: watched.pending.values().next().map_or(Duration::ZERO, Instant::elapsed),
            since_durable: watched.completed.elapsed(),
            histogram: watched.histogram.clone(),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut watched = self.watch.lock();
        if let Some(start) = watched.pending.remove(&self.number) {
            watched.histogram.add(start.elapsed());
            watched.completed = Instant::now();
        }
    }
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }

    /// Upper bounds, and how many were at most that.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        bounds.zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_waits_makes_the_store_silent_until_it_is_done() {
        let watch = StoreWatch::new();
        let first = watch.begin();
        tokio::time::advance(Duration::from_secs(9)).await;
        drop(watch.begin());
        assert!(!watch.is_silent());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(watch.is_silent(), "others are done, but this one is not");
        let measured = watch.measure();
        assert_eq!((measured.pending, measured.oldest.as_secs()), (1, 11));
        assert_eq!(measured.since_durable.as_secs(), 2);
        drop(first);
        assert!(!watch.is_silent());
        let histogram = watch.measure().histogram;
        assert_eq!((histogram.count(), histogram.sum()), (2, 11.0));
        let buckets: Vec<u64> = histogram.buckets().map(|(_, count)| count).collect();
        assert_eq!(buckets, [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    }
}
