//! Whether a store keeps its promises, by trying it out: many writers race to create one object.
//!
//! If a store lets two of them win, two coordinators could write the same event, and a run would be lost. The trial covers
//! what services differ in. That acknowledged writes are durable cannot be tested from outside.

use crate::claim::Nonce;
use crate::error::StoreError;
use crate::object::Kind;
use crate::store::{Created, Store};
use object_store::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tokio::task::JoinSet;

/// The folder of trial objects, deleted after the trial.
const TRIALS: &str = "trials";
/// The size of the objects that writers race to create: large enough to take some time to write.
const BODY: usize = 64 << 10;

/// The size of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Number of writers that race.
    pub writers: u32,
    /// Number of races.
    pub rounds: u32,
}

impl Trial {
    /// The trial at the start of a coordinator.
    pub const SHORT: Self = Self { writers: 8, rounds: 2 };
    /// The trial of `atoll doctor`.
    pub const THOROUGH: Self = Self { writers: 16, rounds: 20 };
}

/// The result of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// The longest that one creation took.
    pub slowest: Duration,
    /// How far the store's clock is ahead of ours, in seconds.
    pub clock_ahead: f64,
}

/// A promise that a store did not keep.
#[derive(Debug, thiserror::Error)]
pub enum BrokenPromise {
    /// More than one creator won, or none.
    #[error(
        "of {writers} writers that created one object at once, expected exactly one to win, found {winners}: two \
         coordinators could overwrite each other; use a store with conditional writes (`If-None-Match`), such as \
         Amazon S3, or a local folder"
    )]
    Winners {
        /// Number of writers.
        writers: u32,
        /// Number of writers that the store reported as the winner.
        winners: usize,
    },
    /// The stored object was not written by the winner.
    #[error("expected the object of the one writer that won, found another's: what is created does not stay")]
    Replaced,
    /// A created object is not listed.
    #[error(
        "expected {expected} objects in the listing right after they were created, found {found}: listings lag"
    )]
    Unlisted {
        /// Number of objects.
        expected: u32,
        /// Number of listed objects.
        found: usize,
    },
    /// A deleted object still exists.
    #[error("expected an object to be gone right after it was deleted, found it: reads lag behind writes")]
    Undeleted,
    /// A call failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Tries a store out in a folder of its own, which is empty afterwards. The nonce keeps trials apart.
///
/// # Errors
/// The first promise that was not kept.
pub async fn try_out(store: &Store, nonce: Nonce, trial: Trial) -> Result<Tried, BrokenPromise> {
    let folder = Path::from(TRIALS).join(nonce.to_string());
    let tried = races(store, &folder, trial).await;
    for path in store.list(&folder).await? {
        store.delete(&path).await?;
    }
    let tried = tried?;
    let first = folder.join("0");
    if store.read_optional(&first, Kind::Artifact).await?.is_some() {
        return Err(BrokenPromise::Undeleted);
    }
    Ok(tried)
}

async fn races(store: &Store, folder: &Path, trial: Trial) -> Result<Tried, BrokenPromise> {
    let mut slowest = Duration::ZERO;
    let mut clock_ahead = 0.0;
    for round in 0..trial.rounds {
        let path = folder.clone().join(round.to_string());
        slowest = slowest.max(race(store, &path, trial.writers).await?);
        let ours = SystemTime::now();
        clock_ahead = seconds_between(ours, store.written_at(&path).await?);
    }
    let found = store.list(folder).await?.len();
    if found != trial.rounds as usize {
        return Err(BrokenPromise::Unlisted { expected: trial.rounds, found });
    }
    Ok(Tried { slowest, clock_ahead })
}

async fn race(store: &Store, path: &Path, writers: u32) -> Result<Duration, BrokenPromise> {
    let mut racing = JoinSet::new();
    for writer in 0..writers {
        let (store, path) = (store.clone(), path.clone());
        racing.spawn(async move {
            let start = Instant::now();
            let created = store.create(&path, Kind::Artifact, body(writer)).await;
            (writer, created, start.elapsed())
        });
    }
    let (mut winners, mut slowest) = (vec![], Duration::ZERO);
    for (writer, created, time) in racing.join_all().await {
        slowest = slowest.max(time);
        match created {
            Ok(Created::New | Created::Same) => winners.push(writer),
            Err(StoreError::Differs { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let &[winner] = &winners[..] else {
        return Err(BrokenPromise::Winners { writers, winners: winners.len() });
    };
    if store.read(path, Kind::Artifact).await? != body(winner) {
        return Err(BrokenPromise::Replaced);
    }
    Ok(slowest)
}

/// The body that only this writer writes.
fn body(writer: u32) -> Vec<u8> {
    writer.to_le_bytes().repeat(BODY / 4)
}

fn seconds_between(ours: SystemTime, theirs: SystemTime) -> f64 {
    match theirs.duration_since(ours) {
        Ok(ahead) => ahead.as_secs_f64(),
        Err(behind) => -behind.duration().as_secs_f64(),
    }
}
