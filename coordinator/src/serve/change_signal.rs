//! A signal that something has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;

/// A signal. Clones are the same signal.
///
/// Listeners wake in the order of waiting. A `watch` channel would wake them at random, and a simulation would not
/// repeat itself.
#[derive(Clone)]
pub(crate) struct ChangeSignal(Arc<Changes>);

struct Changes {
    count: AtomicU64,
    waiting: Notify,
}

/// A listener for a signal.
pub(crate) struct Listener {
    signal: ChangeSignal,
    seen: u64,
}

impl ChangeSignal {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Changes { count: AtomicU64::new(1), waiting: Notify::new() }))
    }

    pub(crate) fn notify(&self) {
        self.0.count.fetch_add(1, SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// How often it was notified of a change; never 0.
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(SeqCst)
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener { signal: self.clone(), seen: self.count() }
    }
}

impl Listener {
    /// Waits for a change since the last one that it has seen.
    pub(crate) async fn changed(&mut self) {
        let signal = self.signal.clone();
        let mut change = std::pin::pin!(signal.0.waiting.notified());
        // From here on no change is missed; the one before is in the count.
        change.as_mut().enable();
        if signal.count() == self.seen {
            change.await;
        }
        self.seen = signal.count();
    }

    /// Takes note of all changes so far.
    pub(crate) fn catch_up(&mut self) {
        self.seen = self.signal.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::Mutex;

    #[test]
    fn no_change_is_missed() {
        let signal = ChangeSignal::new();
        let mut listener = signal.listen();
        assert!(listener.changed().now_or_never().is_none());
        signal.notify();
        assert!(listener.changed().now_or_never().is_some(), "it changed before the wait");
        assert!(listener.changed().now_or_never().is_none(), "once");
        signal.notify();
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
        signal.notify();
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }
}
