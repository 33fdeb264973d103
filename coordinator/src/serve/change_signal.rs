//! A signal that something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;

/// A signal. Clones are the same signal.
///
/// Listeners wake in the order of waiting. A `watch` channel would wake them at random, and a simulation would not
/// repeat itself.
#[derive(Clone)]
pub(crate) struct ChangeSignal(Arc<Rings>);

struct Rings {
    count: AtomicU64,
    waiting: Notify,
}

/// A listener for a signal.
pub(crate) struct Listener {
    signal: ChangeSignal,
    heard: u64,
}

impl ChangeSignal {
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
        Listener { signal: self.clone(), heard: self.count() }
    }
}

impl Listener {
    /// Waits until it rings, or has rung since it was last heard.
    pub(crate) async fn changed(&mut self) {
        let signal = self.signal.clone();
        let mut ring = std::pin::pin!(signal.0.waiting.notified());
        // From here on no ring is missed; the one before is in the count.
        ring.as_mut().enable();
        if signal.count() == self.heard {
            ring.await;
        }
        self.heard = signal.count();
    }

    /// Takes note of all rings so far.
    pub(crate) fn catch_up(&mut self) {
        self.heard = self.signal.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::Mutex;

    #[test]
    fn no_ring_is_missed() {
        let signal = ChangeSignal::new();
        let mut listener = signal.listen();
        assert!(listener.changed().now_or_never().is_none());
        signal.ring();
        assert!(listener.changed().now_or_never().is_some(), "it rang before somebody waited");
        assert!(listener.changed().now_or_never().is_none(), "once");
        signal.ring();
        listener.catch_up();
        assert!(listener.changed().now_or_never().is_none());
    }

    #[tokio::test]
    async fn those_who_wait_wake_in_their_order() {
        let (signal, woken) = (ChangeSignal::new(), Arc::new(Mutex::new(vec![])));
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (mut listener, woken) = (signal.listen(), woken.clone());
                tokio::spawn(async move {
                    listener.changed().await;
                    woken.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        signal.ring();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
