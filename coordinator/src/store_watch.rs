//! How the store does: what is being written, for how long, and how long writes take.

use crate::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A coordinator whose store has not completed a write for this long is not ready.
const SILENT: Duration = Duration::from_secs(10);
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
    }
}
