//! The numbered events of a run: what was decided, in order, by one writer at a time.
//!
//! Creating number n has exactly one winner, which is all the locking there is. A coordinator opens the journal,
//! appends that its term has begun, which fences the writer before it: the other's next append finds
//! its number taken. Every event carries its writer's nonce, because a create that was retried after it had in fact
//! succeeded also finds its number taken, by itself. Every event also carries the digest of the one before, so that none
//! can be altered, doubled or taken out between others.

use crate::layout::{Place, RunId};
use crate::lock::Lock;
use bincode::{Decode, Encode};
use bytes::Bytes;
use codec::{CodecError, Digest};
use futures::{StreamExt, TryStreamExt, stream};
use store::{Kind, Nonce, Path, Store, StoreError};

/// How many events are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 16;
const NONCE_LEN: usize = 16;
const DIGEST_LEN: usize = 32;

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
        number: u64,
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
        number: u64,
    },
    /// An event does not follow the one before it.
    #[error(
        "event `{number}` of run `{run}` does not follow the one before it: one of them was altered, doubled or replaced; \
         restore the journal from a copy"
    )]
    Chain {
        /// The run.
        run: RunId,
        /// The event.
        number: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<T> {
    /// Its place in the order; the first is 0.
    pub number: u64,
    /// Who wrote it.
    pub writer: Nonce,
    /// The digest of the event before it.
    pub previous: Digest,
    /// Its own digest.
    pub digest: Digest,
    /// What it says.
    pub body: T,
}

/// The end of a journal: how many events there are, and the digest of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct JournalHead {
    /// How many events there are.
    pub events: u64,
    /// The digest of the last; of an empty journal, that of the run's name.
    pub last: Digest,
}

impl JournalHead {
    /// The end of an empty journal.
    pub fn empty(run: &RunId) -> Self {
        Self { events: 0, last: Digest::of_parts("atoll journal", [run.as_str().as_bytes()]) }
    }
}

/// The right end of a run's journal, where one writer appends.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    run: RunId,
    writer: Nonce,
    head: JournalHead,
    /// The right to write the run, where a folder gives one: for as long as something may be appended.
    lock: Option<Lock>,
}

impl Journal {
    /// Reads all events of a run, and continues after the last of them as the given writer.
    ///
    /// # Errors
    /// As for [`read_all`].
    pub async fn open<T: Decode<()>>(
        store: &Store,
        run: &RunId,
        writer: Nonce,
    ) -> Result<(Self, Vec<Event<T>>), JournalError> {
        let events = read_all(store, run).await?;
        let head = events.last().map_or_else(
            || JournalHead::empty(run),
            |last| JournalHead { events: last.number + 1, last: last.digest },
        );
        Ok((Self { store: store.clone(), run: run.clone(), writer, head, lock: None }, events))
    }

    /// The same journal, which has the run locked for as long as it lives.
    #[must_use]
    pub fn locked(mut self, lock: Option<Lock>) -> Self {
        self.lock = lock;
        self
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The end of the journal.
    pub fn head(&self) -> JournalHead {
        self.head
    }

    /// Writes the next event, and returns its number once it is durable.
    ///
    /// # Errors
    /// [`JournalError::Fenced`] if another writer got there first. After a [`JournalError::Store`] the event may or
    /// may not be there: appending the same body again finds out, and another body goes after it.
    pub async fn append<T: Encode>(&mut self, body: &T) -> Result<u64, JournalError> {
        loop {
            let number = self.head.events;
            let path = Place::Event(number).in_run(&self.run);
            let entry = seal(&path, self.writer, &self.head.last, body)?;
            let digest = Digest::of(&entry);
            match self.store.create(&path, Kind::Event, entry).await {
                Ok(_) => {
                    self.head = JournalHead { events: number + 1, last: digest };
                    return Ok(number);
                }
                Err(StoreError::Differs { .. }) => self.pass_own(number, &path).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Goes past an event that has the number which was to be ours, if we wrote it ourselves: by an append that seemed
    /// to fail.
    async fn pass_own(&mut self, number: u64, path: &Path) -> Result<(), JournalError> {
        let Entry { writer: winner, digest, .. } = read_entry(&self.store, path).await?;
        if winner != self.writer {
            return Err(JournalError::Fenced { run: self.run.clone(), number, winner });
        }
        self.head = JournalHead { events: number + 1, last: digest };
        Ok(())
    }

    /// Whether no other writer has appended since.
    ///
    /// # Errors
    /// If the store fails: then the outcome is unknown.
    pub async fn stands(&self) -> Result<bool, StoreError> {
        match self.store.size(&Place::Event(self.head.events).in_run(&self.run)).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_missing() => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// All events of a run, in order.
///
/// # Errors
/// If one is missing before the last, damaged, or not a `T`.
pub async fn read_all<T: Decode<()>>(store: &Store, run: &RunId) -> Result<Vec<Event<T>>, JournalError> {
    let count = count_events(store, run).await?;
    let events = stream::iter(0..count).map(|number| read_event(store, run, number)).buffered(READ_AHEAD);
    let events: Vec<Event<T>> = events.try_collect().await?;
    check_chain(run, JournalHead::empty(run).last, &events)?;
    Ok(events)
}

/// The events of a run after those that are known; nothing if the journal is not the one that they came from.
///
/// # Errors
/// As for [`read_all`].
pub async fn read_on<T: Decode<()>>(
    store: &Store,
    run: &RunId,
    known: JournalHead,
) -> Result<Option<Vec<Event<T>>>, JournalError> {
    let count = count_events(store, run).await?;
    if count < known.events {
        return Ok(None);
    }
    // The last of those that are known shows whether the journal is the same: a run may be created again.
    if let Some(last) = known.events.checked_sub(1)
        && read_entry(store, &Place::Event(last).in_run(run)).await?.digest != known.last
    {
        return Ok(None);
    }
    let events = known.events..count;
    let events = stream::iter(events).map(|number| read_event(store, run, number)).buffered(READ_AHEAD);
    let events: Vec<Event<T>> = events.try_collect().await?;
    check_chain(run, known.last, &events)?;
    Ok(Some(events))
}

/// The events of a run from the first on, as far as they can be read and belong together, and the numbers of the others.
///
/// # Errors
/// If the store fails.
pub async fn read_prefix<T: Decode<()>>(
    store: &Store,
    run: &RunId,
) -> Result<(Vec<Event<T>>, Vec<u64>), StoreError> {
    let paths = store.list(&run.events()).await?;
    let numbers = paths.iter().filter_map(|path| match Place::of(path) {
        Some((_, Place::Event(number))) => Some(number),
        _ => None,
    });
    let mut numbers: Vec<u64> = numbers.collect();
    let mut events: Vec<Event<T>> = vec![];
    let mut last = JournalHead::empty(run).last;
    while numbers.get(events.len()) == Some(&(events.len() as u64)) {
        match read_event(store, run, events.len() as u64).await {
            Ok(event) if event.previous == last => {
                last = event.digest;
                events.push(event);
            }
            Ok(_) => break,
            Err(error) if error.is_damage() => break,
            Err(error) => return Err(error),
        }
    }
    let rest = numbers.split_off(events.len());
    Ok((events, rest))
}

/// Whether each event follows the one before it.
fn check_chain<T>(run: &RunId, mut last: Digest, events: &[Event<T>]) -> Result<(), JournalError> {
    for Event { number, previous, digest, .. } in events {
        if *previous != last {
            return Err(JournalError::Chain { run: run.clone(), number: *number });
        }
        last = *digest;
    }
    Ok(())
}

async fn count_events(store: &Store, run: &RunId) -> Result<u64, JournalError> {
    let paths = store.list(&run.events()).await?;
    // An older version named its events otherwise: to read one says so.
    let is_older = |path: &&Path| Place::of(path).is_none() && path.as_ref().ends_with("/0000000000");
    if let Some(older) = paths.iter().find(is_older) {
        store.read(older, Kind::Event).await?;
    }
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

/// One event. Whether it follows the one before it is not looked at.
pub(crate) async fn read_event<T: Decode<()>>(
    store: &Store,
    run: &RunId,
    number: u64,
) -> Result<Event<T>, StoreError> {
    let path = Place::Event(number).in_run(run);
    let Entry { writer, previous, digest, body } = read_entry(store, &path).await?;
    let body = codec::decode(&body).map_err(|problem| StoreError::Body { path, problem })?;
    Ok(Event { number, writer, previous, digest, body })
}

/// An event's bytes: the nonce, the digest of the event before it, then the body.
fn seal<T: Encode>(path: &Path, writer: Nonce, previous: &Digest, body: &T) -> Result<Bytes, StoreError> {
    let body = codec::encode(body).map_err(|problem| StoreError::Body { path: path.clone(), problem })?;
    Ok([&writer.0.to_le_bytes()[..], &previous.0, &body].concat().into())
}

/// An event whose body is not decoded.
struct Entry {
    writer: Nonce,
    previous: Digest,
    digest: Digest,
    body: Bytes,
}

async fn read_entry(store: &Store, path: &Path) -> Result<Entry, StoreError> {
    let entry = store.read(path, Kind::Event).await?;
    let parts = entry.split_first_chunk::<NONCE_LEN>();
    let parts = parts.and_then(|(nonce, rest)| Some((nonce, rest.first_chunk::<DIGEST_LEN>()?)));
    let Some((nonce, previous)) = parts else {
        let (needed, length) = (NONCE_LEN + DIGEST_LEN, entry.len());
        let problem = CodecError::EndsEarly { additional: needed - length, length };
        return Err(StoreError::Body { path: path.clone(), problem });
    };
    Ok(Entry {
        writer: Nonce(u128::from_le_bytes(*nonce)),
        previous: Digest(*previous),
        digest: Digest::of(&entry),
        body: entry.slice(NONCE_LEN + DIGEST_LEN..),
    })
}
