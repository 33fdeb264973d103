//! The numbered events of a run: what was decided, in order, by one writer at a time.
//!
//! Creating number n has exactly one winner, which is all the locking there is. A coordinator opens the journal,
//! appends that its term has begun, and has thereby fenced whoever wrote before: the other's next append finds
//! its number taken. Every event carries its writer's nonce, because a create that was retried after it had in fact
//! succeeded also finds its number taken, by itself.

use crate::layout::{Place, RunId};
use bincode::{Decode, Encode};
use bytes::Bytes;
use codec::CodecError;
use futures::{StreamExt, TryStreamExt, stream};
use store::{Kind, Nonce, Path, Store, StoreError};

/// How many events are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 16;
const NONCE_LEN: usize = 16;

/// Why the journal could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another writer has taken over; this one must stop.
    #[error(
        "event `{number}` of run `{run}` was written by another coordinator (`{winner}`): this one must stop"
    )]
    Fenced {
        /// The run.
        run: RunId,
        /// The number that was lost.
        number: u32,
        /// Who won it.
        winner: Nonce,
    },
    /// Events are missing before the last one.
    #[error(
        "event `{number}` of run `{run}` is missing, though later ones are there: restore it from a copy"
    )]
    Gap {
        /// The run.
        run: RunId,
        /// The first number that is missing.
        number: u32,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<T> {
    /// Its place in the order; the first is 0.
    pub number: u32,
    /// Who wrote it.
    pub writer: Nonce,
    /// What it says.
    pub body: T,
}

/// The right end of a run's journal, where one writer appends.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    run: RunId,
    writer: Nonce,
    next: u32,
}

impl Journal {
    /// Reads all events of a run, and goes on after the last of them as the given writer.
    ///
    /// # Errors
    /// As for [`read_all`].
    pub async fn open<T: Decode<()>>(
        store: &Store,
        run: &RunId,
        writer: Nonce,
    ) -> Result<(Self, Vec<Event<T>>), JournalError> {
        let events = read_all(store, run).await?;
        let journal = Self { store: store.clone(), run: run.clone(), writer, next: events.len() as u32 };
        Ok((journal, events))
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The number that the next event will have.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Writes the next event, and returns its number once it is durable.
    ///
    /// # Errors
    /// [`JournalError::Fenced`] if another writer got there first. After a [`JournalError::Store`] the event may or
    /// may not be there: appending the same body again finds out, and another body goes after it.
    pub async fn append<T: Encode>(&mut self, body: &T) -> Result<u32, JournalError> {
        loop {
            let number = self.next;
            let path = Place::Event(number).in_run(&self.run);
            let entry = sign(&path, self.writer, body)?;
            match self.store.create(&path, Kind::Event, entry).await {
                Ok(_) => {
                    self.next += 1;
                    return Ok(number);
                }
                Err(StoreError::Differs { .. }) => self.pass_own(number, &path).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Goes past an event that has the number which was to be ours, if we wrote it ourselves: by an append that seemed
    /// to fail.
    async fn pass_own(&mut self, number: u32, path: &Path) -> Result<(), JournalError> {
        let (winner, _) = read_signed(&self.store, path).await?;
        if winner != self.writer {
            return Err(JournalError::Fenced { run: self.run.clone(), number, winner });
        }
        self.next += 1;
        Ok(())
    }
}

/// All events of a run, in order.
///
/// # Errors
/// If one is missing before the last, damaged, or not a `T`.
pub async fn read_all<T: Decode<()>>(store: &Store, run: &RunId) -> Result<Vec<Event<T>>, JournalError> {
    let count = count_events(store, run).await?;
    let events = stream::iter(0..count).map(|number| read_event(store, run, number)).buffered(READ_AHEAD);
    Ok(events.try_collect().await?)
}

async fn count_events(store: &Store, run: &RunId) -> Result<u32, JournalError> {
    let paths = store.list(&run.events()).await?;
    let numbers = paths.iter().filter_map(|path| match Place::of(path) {
        Some((_, Place::Event(number))) => Some(number),
        _ => None,
    });
    let mut count = 0;
    for number in numbers {
        if number != count {
            return Err(JournalError::Gap { run: run.clone(), number: count });
        }
        count += 1;
    }
    Ok(count)
}

async fn read_event<T: Decode<()>>(store: &Store, run: &RunId, number: u32) -> Result<Event<T>, StoreError> {
    let path = Place::Event(number).in_run(run);
    let (writer, body) = read_signed(store, &path).await?;
    let body = codec::decode(&body).map_err(|problem| StoreError::Body { path, problem })?;
    Ok(Event { number, writer, body })
}

/// An event's bytes: the nonce, then the body.
fn sign<T: Encode>(path: &Path, writer: Nonce, body: &T) -> Result<Bytes, StoreError> {
    let body = codec::encode(body).map_err(|problem| StoreError::Body { path: path.clone(), problem })?;
    Ok([&writer.0.to_le_bytes(), &*body].concat().into())
}

async fn read_signed(store: &Store, path: &Path) -> Result<(Nonce, Bytes), StoreError> {
    let entry = store.read(path, Kind::Event).await?;
    let Some(nonce) = entry.first_chunk::<NONCE_LEN>() else {
        let problem = CodecError::EndsEarly { additional: NONCE_LEN - entry.len(), length: entry.len() };
        return Err(StoreError::Body { path: path.clone(), problem });
    };
    Ok((Nonce(u128::from_le_bytes(*nonce)), entry.slice(NONCE_LEN..)))
}
