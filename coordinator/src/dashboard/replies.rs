//! Replies as they were made a moment ago: many callers who ask for the same one cost little more than one.

use super::HttpError;
use axum::body::Bytes;
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a reply is given again as it is.
const AGE: Duration = Duration::from_millis(500);
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
}

struct Reply {
    made: Instant,
    /// How many decisions of operators there had been: a later one makes it old.
    decisions: u64,
    body: Bytes,
}

impl Default for ReplyCache {
    fn default() -> Self {
        let writing = Semaphore::new(WRITTEN_AT_ONCE);
        Self { known: Mutex::default(), writing, turns: Mutex::default() }
    }
}

impl ReplyCache {
    /// What was replied a moment ago, if no operator has changed anything since.
    pub(super) fn known(&self, key: &str, decisions: u64) -> Option<Bytes> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |reply: &&Reply| reply.made.elapsed() < AGE && reply.decisions == decisions;
        known.get(key).filter(is_fresh).map(|reply| reply.body.clone())
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
        let body = Bytes::from(tokio::task::spawn_blocking(write).await.map_err(failed)??);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, reply| reply.made.elapsed() < AGE);
        let bytes: usize = known.values().map(|reply| reply.body.len()).sum();
        if known.len() < MOST && bytes + body.len() <= MOST_BYTES {
            known.insert(key, Reply { made: Instant::now(), decisions, body: body.clone() });
        }
        Ok(body)
    }
}
