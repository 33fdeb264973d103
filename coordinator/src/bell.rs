//! A bell that rings when something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;

/// A bell. Clones are the same bell.
///
/// Whoever waits wakes in the order of waiting. A `watch` channel would wake them at random, and a simulation would not
/// repeat itself.
#[derive(Clone)]
pub(crate) struct Bell(Arc<Rings>);

struct Rings {
    count: AtomicU64,
    waiting: Notify,
}

/// Somebody who listens for a bell.
pub(crate) struct Listener {
    bell: Bell,
    heard: u64,
}

impl Bell {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Rings { count: AtomicU64::new(1), waiting: Notify::new() }))
    }

    pub(crate) fn ring(&self) {
        self.0.count.fetch_add(1, SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// How often it has rung; never 0.
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(SeqCst)
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener { bell: self.clone(), heard: self.count() }
    }
}

impl Listener {
    /// Waits until it rings, or has rung since it was last heard.
    pub(crate) async fn rung(&mut self) {
        let bell = self.bell.clone();
        let mut ring = std::pin::pin!(bell.0.waiting.notified());
        // From here on no ring is missed; the one before is in the count.
        ring.as_mut().enable();
        if bell.count() == self.heard {
            ring.await;
        }
        self.heard = bell.count();
    }

    /// Takes note of all rings so far.
    pub(crate) fn catch_up(&mut self) {
        self.heard = self.bell.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::Mutex;

    #[test]
    fn no_ring_is_missed() {
        let bell = Bell::new();
        let mut listener = bell.listen();
        assert!(listener.rung().now_or_never().is_none());
        bell.ring();
        assert!(listener.rung().now_or_never().is_some(), "it rang before somebody waited");
        assert!(listener.rung().now_or_never().is_none(), "once");
        bell.ring();
        listener.catch_up();
        assert!(listener.rung().now_or_never().is_none());
    }

    #[tokio::test]
    async fn those_who_wait_wake_in_their_order() {
        let (bell, woken) = (Bell::new(), Arc::new(Mutex::new(vec![])));
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (mut listener, woken) = (bell.listen(), woken.clone());
                tokio::spawn(async move {
                    listener.rung().await;
                    woken.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        bell.ring();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
