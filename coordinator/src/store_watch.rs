//! How the store does: what it is asked, for how long, and how long writes take.

use crate::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A coordinator whose store has not done what it was asked for this long is not ready.
const SILENT: Duration = Duration::from_secs(10);
/// Failed writes are retried sooner than this. An older failure with nothing under way was not retried and is history.
const RETRIED: Duration = Duration::from_secs(30);

/// Watches what the store is asked to do. Clones are the same.
#[derive(Clone)]
pub(crate) struct StoreWatch(Arc<Mutex<Watched>>);

struct Watched {
    pending: BTreeMap<u64, (Instant, Kind)>,
    next: u64,
    /// When the last write succeeded.
    durable: Instant,
    writes: Failing,
    reads: Failing,
    histogram: Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write,
    Read,
}

/// Calls of one kind that failed since the last one that succeeded.
#[derive(Clone, Copy, Default)]
struct Failing {
    /// When the first of them began.
    since: Option<Instant>,
    last: Option<Instant>,
    /// How long the last of them took.
    took: Duration,
}

/// A call that is under way. It counts as failed if it is dropped before it is done.
pub(crate) struct Asked {
    watch: StoreWatch,
    number: u64,
    is_done: bool,
}

/// What was measured so far.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Writes under way.
    pub(crate) pending: usize,
    /// How long the oldest of them has taken.
    pub(crate) oldest: Duration,
    /// Time since the last write that succeeded.
    pub(crate) since_durable: Duration,
    /// How long the store has not done what it was asked; zero if it does.
    pub(crate) silent: Duration,
    pub(crate) histogram: Histogram,
}

impl StoreWatch {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Watched {
            pending: BTreeMap::new(),
            next: 0,
            durable: Instant::now(),
            writes: Failing::default(),
            reads: Failing::default(),
            histogram: Histogram::default(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write begins.
    pub(crate) fn begin(&self) -> Asked {
        self.ask(Kind::Write)
    }

    /// A read begins: one that is repeated for as long as the coordinator serves.
    pub(crate) fn begin_read(&self) -> Asked {
        self.ask(Kind::Read)
    }

    fn ask(&self, kind: Kind) -> Asked {
        let mut watched = self.lock();
        let number = watched.next;
        watched.next += 1;
        watched.pending.insert(number, (Instant::now(), kind));
        Asked { watch: self.clone(), number, is_done: false }
    }

    /// Whether the store has not done what it was asked for too long.
    pub(crate) fn is_silent(&self) -> bool {
        self.measure().silent >= SILENT
    }

    /// Whether the store responds, but with errors: it may be full.
    pub(crate) fn is_rejecting(&self) -> bool {
        let watched = self.lock();
        let is_waiting = watched.pending.values().any(|(start, _)| start.elapsed() >= SILENT);
        let rejects = |failing: &Failing| failing.since.is_some() && failing.took < SILENT;
        !is_waiting && [watched.writes, watched.reads].iter().any(rejects)
    }

    pub(crate) fn measure(&self) -> Measured {
        let watched = self.lock();
        let writes = || watched.pending.values().filter(|(_, kind)| *kind == Kind::Write);
        let oldest = |start: Option<&(Instant, Kind)>| start.map_or(Duration::ZERO, |(at, _)| at.elapsed());
        Measured {
            pending: writes().count(),
            oldest: oldest(writes().next()),
            since_durable: watched.durable.elapsed(),
            silent: oldest(watched.pending.values().next()).max(watched.failing()),
            histogram: watched.histogram.clone(),
        }
    }
}

impl Watched {
    /// How long calls have failed without one that succeeded.
    fn failing(&self) -> Duration {
        let of_kind = |failing: Failing, kind: Kind| {
            let is_retried = failing.last.is_some_and(|last| last.elapsed() < RETRIED)
                || self.pending.values().any(|(_, pending)| *pending == kind);
            failing.since.filter(|_| is_retried).map_or(Duration::ZERO, |since| since.elapsed())
        };
        of_kind(self.writes, Kind::Write).max(of_kind(self.reads, Kind::Read))
    }

    fn end(&mut self, number: u64, has_succeeded: bool) {
        let Some((start, kind)) = self.pending.remove(&number) else { return };
        let failing = match kind {
            Kind::Write => &mut self.writes,
            Kind::Read => &mut self.reads,
        };
        if has_succeeded {
            *failing = Failing::default();
        } else {
            failing.since = Some(failing.since.map_or(start, |since| since.min(start)));
            failing.last = Some(Instant::now());
            failing.took = start.elapsed();
        }
        if kind == Kind::Write {
            self.histogram.add(start.elapsed());
            if has_succeeded {
                self.durable = Instant::now();
            }
        }
    }
}

impl Asked {
    /// The store has done it, or has not.
    pub(crate) fn done(mut self, has_succeeded: bool) {
        self.is_done = true;
        self.watch.lock().end(self.number, has_succeeded);
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_done {
            self.watch.lock().end(self.number, false);
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
        watch.begin().done(true);
        assert!(!watch.is_silent());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(watch.is_silent() && !watch.is_rejecting(), "others are done, but this one is not");
        let measured = watch.measure();
        assert_eq!((measured.pending, measured.oldest.as_secs()), (1, 11));
        assert_eq!(measured.since_durable.as_secs(), 2);
        first.done(true);
        assert!(!watch.is_silent());
        let histogram = watch.measure().histogram;
        assert_eq!((histogram.count(), histogram.sum()), (2, 11.0));
    }
    #[tokio::test(start_paused = true)]
    async fn a_store_that_only_fails_is_silent_until_it_succeeds() {
        let watch = StoreWatch::new();
        // As a commit does: it asks for the claim, writes, and tries again after a pause.
        for second in 0..90 {
            let asked = match second % 29 {
                0..14 => Some(watch.begin_read()),
                14..28 => Some(watch.begin()),
                _ => None,
            };
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(watch.is_silent(), second >= 9, "after {second} s");
            drop(asked);
            assert!(watch.is_rejecting(), "it responds, but with errors");
        }
        assert_eq!(watch.measure().since_durable.as_secs(), 90, "a write that fails makes nothing durable");
        watch.begin_read().done(true);
        assert!(watch.is_silent(), "writes still fail");
        watch.begin().done(true);
        assert!(!watch.is_silent() && !watch.is_rejecting());
        assert_eq!(watch.measure().silent, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_is_not_retried_is_forgotten() {
        let watch = StoreWatch::new();
        watch.begin().done(false);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(watch.is_silent());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(!watch.is_silent());
    }
}
