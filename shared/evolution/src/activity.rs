//! A counter of evaluations and games, by which others see that something long is still being computed.
//!
//! The caller that starts a computation installs a counter on its thread; code that spreads work over threads takes it along.
//! No result depends on it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

thread_local! {
    static CURRENT: RefCell<Option<Activity>> = const { RefCell::new(None) };
}

/// A counter that grows while something is computed. Clones are the same counter.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<Counter>);

#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    is_abandoned: AtomicBool,
}

impl Activity {
    /// How much has been counted.
    pub fn count(&self) -> u64 {
        self.0.count.load(Relaxed)
    }

    /// Counts some evaluations or games.
    pub fn add(&self, count: u64) {
        self.0.count.fetch_add(count, Relaxed);
    }

    /// Leaves out the evaluations that have not begun. What the computation returns means nothing from then on: only a
    /// computation whose result is discarded may be abandoned.
    pub fn abandon(&self) {
        self.0.is_abandoned.store(true, Relaxed);
    }

    /// Whether the computation was abandoned.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned.load(Relaxed)
    }

    /// Computes something that is counted here.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = CURRENT.with(|current| current.replace(Some(self.clone())));
        let _restore = Restore(before);
        work()
    }

    /// The counter of what this thread computes now. Take it along to other threads.
    pub fn current() -> Option<Self> {
        CURRENT.with(|current| current.borrow().clone())
    }
}

/// A thread that waits for others may begin another computation, and may leave it by a panic.
struct Restore(Option<Activity>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with(|current| current.replace(self.0.take()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_computation_is_counted() {
        let (outer, inner) = (Activity::default(), Activity::default());
        let bump = || Activity::current().iter().for_each(|activity| activity.add(1));
        bump();
        outer.watch(|| {
            bump();
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                inner.watch(|| {
                    bump();
                    panic!("on purpose")
                })
            }));
            assert!(panicked.is_err());
            bump();
        });
        assert_eq!((outer.count(), inner.count()), (2, 1));
        assert!(Activity::current().is_none());
    }
}
