//! Replies as they were made a moment ago: many callers who ask for the same one cost little more than one.

use super::HttpError;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a reply is given again as it is: a multiple of what writing it took, so that a page costs no more than a fiftieth of
/// a core however many look at it, within limits.
const AGE: Duration = Duration::from_millis(500);
const OLDEST: Duration = Duration::from_secs(3);
const PATIENCE: u32 = 50;
/// How many replies are remembered, and how many bytes of them.
const MOST: usize = 64;
const MOST_BYTES: usize = 32 << 20;
/// How many replies are written at a time, apart from all calls: that must not keep workers waiting.
const WRITTEN_AT_ONCE: usize = 2;
/// For how many replies to one address data is read at a time: what takes long keeps no other address waiting.
const READ_OF_ONE: usize = 4;

/// What was replied, and what is being replied.
pub(super) struct ReplyCache {
    known: Mutex<BTreeMap<String, Reply>>,
    writing: Semaphore,
    turns: Mutex<BTreeMap<Option<IpAddr>, Arc<Semaphore>>>,
    making: Mutex<BTreeMap<ReplyTo, Arc<AsyncMutex<()>>>>,
}

/// An address and what it has asked for.
type ReplyTo = (Option<IpAddr>, String);

struct Reply {
    made: Instant,
    /// How long it is given again.
    lasts: Duration,
    /// How many decisions of operators there had been: a later one makes it old.
    decisions: u64,
    body: Bytes,
}

impl Reply {
    fn is_fresh(&self) -> bool {
        self.made.elapsed() < self.lasts
    }
}

impl Default for ReplyCache {
    fn default() -> Self {
        let writing = Semaphore::new(WRITTEN_AT_ONCE);
        Self { known: Mutex::default(), writing, turns: Mutex::default(), making: Mutex::default() }
    }
}

impl ReplyCache {
    /// What was replied a moment ago, if no operator has changed anything since.
    pub(super) fn known(&self, key: &str, decisions: u64) -> Option<Bytes> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |reply: &&Reply| reply.is_fresh() && reply.decisions == decisions;
        known.get(key).filter(is_fresh).map(|reply| reply.body.clone())
    }

    /// Waits until no other caller of an address makes the same reply. Who waits takes no turn, and finds the reply made.
    pub(super) async fn alone(&self, peer: Option<IpAddr>, key: &str) -> OwnedMutexGuard<()> {
        let same = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            making.retain(|_, same| Arc::strong_count(same) > 1);
            making.entry((peer, key.to_owned())).or_default().clone()
        };
        same.lock_owned().await
    }

    /// Waits for a turn of an address in reading what replies show.
    pub(super) async fn turn(&self, peer: Option<IpAddr>) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // What no request holds any more is as good as new.
            turns.retain(|_, turns| Arc::strong_count(turns) > 1);
            turns.entry(peer).or_insert_with(|| Arc::new(Semaphore::new(READ_OF_ONE))).clone()
        };
        turns.acquire_owned().await.ok()
    }

    /// Writes a reply and remembers it, unless another caller has just done so. What waits for the store comes before this.
    pub(super) async fn write(
        &self,
        (key, decisions): (String, u64),
        write: impl FnOnce() -> Result<Vec<u8>, HttpError> + Send + 'static,
    ) -> Result<Bytes, HttpError> {
        let _permit = self.writing.acquire().await;
        if let Some(known) = self.known(&key, decisions) {
            return Ok(known);
        }
        let failed = |error: tokio::task::JoinError| {
            HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        };
        let timed = move || {
            let start = Instant::now();
            write().map(|body| (body, lasts(start.elapsed())))
        };
        let (body, lasts) = tokio::task::spawn_blocking(timed).await.map_err(failed)??;
        let body = Bytes::from(body);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, reply| reply.is_fresh());
        let bytes: usize = known.values().map(|reply| reply.body.len()).sum();
        if known.len() < MOST && bytes + body.len() <= MOST_BYTES {
            known.insert(key, Reply { made: Instant::now(), lasts, decisions, body: body.clone() });
        }
        Ok(body)
    }
}

/// How long a reply is given again that took this long to write.
fn lasts(cost: Duration) -> Duration {
    (PATIENCE * cost).clamp(AGE, OLDEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    #[test]
    fn a_reply_that_is_expensive_to_write_is_given_again_for_longer() {
        assert_eq!(lasts(Duration::ZERO), AGE);
        assert_eq!(lasts(Duration::from_millis(30)), Duration::from_millis(1500));
        assert_eq!(lasts(Duration::from_secs(10)), OLDEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reply_is_given_again_for_a_while() {
        let replies = ReplyCache::default();
        replies.write(("page".to_owned(), 0), || Ok(vec![])).await.unwrap();
        assert!(replies.known("page", 0).is_some());
        assert!(replies.known("page", 1).is_none(), "an operator has changed something");
        tokio::time::sleep(AGE).await;
        assert!(replies.known("page", 0).is_none());
    }

    #[tokio::test]
    async fn those_who_ask_for_the_same_wait_without_a_turn() {
        let (replies, made) = (Arc::new(ReplyCache::default()), Arc::new(AtomicU32::new(0)));
        let one = replies.alone(None, "page").await;
        let waiting: Vec<_> = (0..10 * READ_OF_ONE)
            .map(|_| {
                let (replies, made) = (replies.clone(), made.clone());
                tokio::spawn(async move {
                    let _alone = replies.alone(None, "page").await;
                    let _turn = replies.turn(None).await;
                    made.fetch_add(1, SeqCst);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        // Another reply to the same address, and the same to another one.
        let _other = (replies.alone(None, "other").await, replies.turn(None).await);
        let _else = replies.alone(Some(IpAddr::from([10, 0, 0, 1])), "page").await;
        assert_eq!(made.load(SeqCst), 0);
        drop(one);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(made.load(SeqCst), 10 * READ_OF_ONE as u32);
    }
}
