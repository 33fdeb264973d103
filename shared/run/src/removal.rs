//! Removing runs: a record is written to the store first, and only objects that it explains are deleted.
//!
//! A record names each run and the digests of its events. The events are deleted last, so that a run whose removal was
//! interrupted is still known by them: [`pending`] finds its record, and [`Removal::carry_out`] continues. Where an event
//! is found that the record does not name, the run was worked on since, and is left alone.

use crate::event::Owner;
use crate::head::RunError;
use crate::layout::{Place, RunId};
use crate::lock::Lock;
use crate::study;
use bincode::{Decode, Encode};
use codec::Digest;
use std::collections::BTreeMap;
use store::number::{digits, parse as number};
use store::{Created, Kind, Path, Store, StoreError};

const REMOVALS: &str = "removals";
const RECORD: &str = "record";
const DONE: &str = "done";

/// A run that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RemovedRun {
    /// Its id.
    pub run: String,
    /// The digests of the bodies of its events, by their numbers; none for an event that cannot be read.
    pub events: Vec<(u64, Option<Digest>)>,
    /// Number of its objects.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
}

/// What is written before anything is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Removal {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The runs, a study before its parts.
    pub runs: Vec<RemovedRun>,
}

/// The result of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The runs that were removed.
    pub runs: Vec<String>,
    /// Number of deleted objects.
    pub objects: u64,
    /// Runs that have changed since the record was written: none of their objects was deleted.
    pub changed: Vec<String>,
}

/// The study that a run is a part of, if it is in the store.
///
/// # Errors
/// If the store fails.
pub async fn study_of(store: &Store, run: &RunId) -> Result<Option<RunId>, RunError> {
    for (dot, _) in run.as_str().match_indices('.') {
        let Ok(study) = RunId::new(&run.as_str()[..dot]) else { continue };
        match study::stored_parts(store, &study).await {
            Ok(parts) if parts.contains(run) => return Ok(Some(study)),
            Ok(_) => {}
            // A study without a readable plan has no parts that are known.
            Err(error) if has_no_plan(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// A run and its parts that exist.
///
/// # Errors
/// If the store fails.
pub async fn with_parts(store: &Store, run: &RunId) -> Result<Vec<RunId>, RunError> {
    let parts = match study::stored_parts(store, run).await {
        Ok(parts) => parts,
        // A run that cannot be read as a study is removed alone.
        Err(error) if has_no_plan(&error) => vec![],
        Err(error) => return Err(error),
    };
    let mut runs = vec![run.clone()];
    for part in parts {
        if !store.list(&part.folder()).await?.is_empty() {
            runs.push(part);
        }
    }
    Ok(runs)
}

/// Whether the run has no readable plan, as opposed to a store that fails.
fn has_no_plan(error: &RunError) -> bool {
    matches!(error, RunError::Unknown { .. } | RunError::Damaged { .. } | RunError::Experiment { .. })
}

impl Removal {
    /// What would be removed.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn plan(store: &Store, runs: &[RunId], at: u64) -> Result<Self, StoreError> {
        let mut removed = vec![];
        for run in runs {
            let objects = objects(store, run).await?;
            let mut bytes = 0;
            for path in &objects {
                bytes += store.size(path).await.unwrap_or(0);
            }
            let (run, events) = (run.to_string(), events(store, run).await?);
            removed.push(RemovedRun { run, events, objects: objects.len() as u64, bytes });
        }
        Ok(Self { at, runs: removed })
    }

    /// The bytes of all runs.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum()
    }

    /// Writes the record; returns its number.
    ///
    /// # Errors
    /// If the store fails: then nothing may be deleted.
    pub async fn record(&self, store: &Store) -> Result<u64, StoreError> {
        let mut next = numbers(store).await?.last_key_value().map_or(0, |(last, _)| last + 1);
        loop {
            match store.create_value(&path(next, RECORD), Kind::Removal, self).await {
                Ok(Created::New | Created::Same) => return Ok(next),
                Err(StoreError::Differs { .. }) => next += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes what a record explains, and records that it is done.
    ///
    /// # Errors
    /// [`RunError::Busy`] if a process works on one of the runs or a coordinator serves the store; or if the store fails. The record
    /// stays pending.
    pub async fn carry_out(&self, store: &Store, number: u64, owner: &Owner) -> Result<Removed, RunError> {
        let mut locked = vec![];
        for removed in &self.runs {
            let run = RunId::new(&removed.run)?;
            locked.push((Lock::take(store, &run, owner)?, run, removed));
        }
        // One that starts from now on finds the locks.
        if let (Some(server), Some((_, run, _))) = (Lock::server(store)?, locked.first()) {
            let owner = format!("the coordinator, {server}");
            return Err(RunError::Busy { run: run.clone(), owner });
        }
        let mut done = Removed::default();
        for (_lock, run, removed) in &locked {
            let recorded: BTreeMap<u64, Option<Digest>> = removed.events.iter().copied().collect();
            let found = events(store, run).await?;
            if found.iter().any(|(number, digest)| recorded.get(number) != Some(digest)) {
                done.changed.push(removed.run.clone());
                continue;
            }
            for path in objects(store, run).await? {
                store.delete(&path).await?;
                done.objects += 1;
            }
            store.remove_empty_folders(&run.folder()).await?;
            done.runs.push(removed.run.clone());
        }
        let outcome = (done.objects, done.changed.clone());
        match store.create_value(&path(number, DONE), Kind::Removal, &outcome).await {
            // Another process has completed it meanwhile.
            Ok(_) | Err(StoreError::Differs { .. }) => Ok(done),
            Err(error) => Err(error.into()),
        }
    }
}

/// The removals that were recorded and not completed, by their numbers.
///
/// # Errors
/// If the store fails, or a record cannot be read: what it explains is not known, and nothing is deleted.
pub async fn pending(store: &Store) -> Result<Vec<(u64, Removal)>, StoreError> {
    let mut pending = vec![];
    for (number, is_done) in numbers(store).await? {
        if !is_done {
            pending.push((number, store.read_value(&path(number, RECORD), Kind::Removal).await?));
        }
    }
    Ok(pending)
}

fn path(number: u64, name: &str) -> Path {
    Path::from(REMOVALS).join(digits(number)).join(name)
}

/// The numbers of all removals, and whether each is done.
async fn numbers(store: &Store) -> Result<BTreeMap<u64, bool>, StoreError> {
    let mut numbers = BTreeMap::new();
    for path in store.list(&Path::from(REMOVALS)).await? {
        let Some((folder, name)) = path.as_ref().rsplit_once('/') else { continue };
        let Some(number) = folder.rsplit_once('/').and_then(|(_, digits)| number(digits)) else { continue };
        // No record could follow the last number there is: nobody has made that one.
        if [RECORD, DONE].contains(&name) && number < u64::MAX {
            *numbers.entry(number).or_default() |= name == DONE;
        }
    }
    Ok(numbers)
}

/// The events of a run as they are now.
async fn events(store: &Store, run: &RunId) -> Result<Vec<(u64, Option<Digest>)>, StoreError> {
    let mut events = vec![];
    for path in store.list(&run.events()).await? {
        let Some((_, Place::Event(number))) = Place::of(&path) else { continue };
        match store.read(&path, Kind::Event).await {
            Ok(body) => events.push((number, Some(Digest::of(&body)))),
            Err(error) if error.is_missing() => {}
            Err(error) if error.is_damage() => events.push((number, None)),
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}

/// The objects of a run in the order in which they are deleted: the events last, from the last to the first. Files that
/// are none of a run's objects are not among them.
async fn objects(store: &Store, run: &RunId) -> Result<Vec<Path>, StoreError> {
    let dropped = format!("{}/", run.dropped());
    let is_event = |path: &Path| matches!(Place::of(path), Some((_, Place::Event(_))));
    let all = store.list(&run.folder()).await?;
    let own = all.into_iter().filter(|path| Place::of(path).is_some() || path.as_ref().starts_with(&dropped));
    let (events, mut objects): (Vec<Path>, Vec<Path>) = own.partition(is_event);
    objects.extend(events.into_iter().rev());
    Ok(objects)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    async fn store_with_run() -> (Store, RunId) {
        let (store, run) = (Store::memory(), RunId::new("maze").unwrap());
        store.create_text(&Place::Experiment.in_run(&run), "name = \"maze\"").await.unwrap();
        for number in 0..3 {
            let body = format!("event {number}");
            store.create(&Place::Event(number).in_run(&run), Kind::Event, body).await.unwrap();
        }
        let commit = Place::Commit { term: 1, number: 0 }.in_run(&run);
        store.create(&commit, Kind::Commit, "records").await.unwrap();
        store.create_text(&run.folder().join("notes.txt"), "mine").await.unwrap();
        (store, run)
    }

    async fn left(store: &Store, run: &RunId) -> usize {
        store.list(&run.folder()).await.unwrap().len()
    }

    #[tokio::test]
    async fn a_removal_that_was_interrupted_anywhere_is_completed() {
        for deleted in 0..=5 {
            let (store, run) = store_with_run().await;
            let removal = Removal::plan(&store, std::slice::from_ref(&run), 7).await.unwrap();
            assert_eq!(removal.runs[0].objects, 5);
            let number = removal.record(&store).await.unwrap();
            for path in objects(&store, &run).await.unwrap().iter().take(deleted) {
                store.delete(path).await.unwrap();
            }
            assert_eq!(pending(&store).await.unwrap(), [(number, removal.clone())]);
            let done = removal.carry_out(&store, number, &Owner::default()).await.unwrap();
            assert_eq!((done.runs, done.objects), (vec!["maze".to_owned()], 5 - deleted as u64));
            assert_eq!(left(&store, &run).await, 1, "a file that is no object stays");
            assert_eq!(pending(&store).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn a_record_of_the_last_number_there_is_counts_for_nothing() {
        let (store, run) = store_with_run().await;
        let removal = Removal::plan(&store, std::slice::from_ref(&run), 7).await.unwrap();
        store.create_value(&path(u64::MAX, RECORD), Kind::Removal, &removal).await.unwrap();
        assert_eq!(pending(&store).await.unwrap(), []);
        assert_eq!(removal.record(&store).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_coordinator_that_started_meanwhile_keeps_its_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (store, run) = (Store::local(folder.path()).await.unwrap(), RunId::new("maze").unwrap());
        store.create_text(&Place::Experiment.in_run(&run), "name = \"maze\"").await.unwrap();
        let removal = Removal::plan(&store, std::slice::from_ref(&run), 7).await.unwrap();
        let number = removal.record(&store).await.unwrap();
        let serving = Lock::serve(&store, &Owner::default()).unwrap();
        let refused = removal.carry_out(&store, number, &Owner::default()).await;
        assert!(matches!(refused, Err(RunError::Busy { .. })), "{refused:?}");
        assert_eq!(left(&store, &run).await, 1);
        drop(serving);
        let done = removal.carry_out(&store, number, &Owner::default()).await.unwrap();
        assert_eq!(done.runs, ["maze"]);
    }

    #[tokio::test]
    async fn a_run_that_was_started_again_is_left_alone() {
        for (deleted, written) in [(2, 3), (3, 2), (5, 0)] {
            let (store, run) = store_with_run().await;
            let removal = Removal::plan(&store, std::slice::from_ref(&run), 7).await.unwrap();
            let number = removal.record(&store).await.unwrap();
            for path in objects(&store, &run).await.unwrap().iter().take(deleted) {
                store.delete(path).await.unwrap();
            }
            let event = Place::Event(written).in_run(&run);
            store.create(&event, Kind::Event, "opened by another process").await.unwrap();
            let before = left(&store, &run).await;
            let done = removal.carry_out(&store, number, &Owner::default()).await.unwrap();
            assert_eq!((done.changed, done.objects), (vec!["maze".to_owned()], 0));
            assert_eq!(left(&store, &run).await, before);
            assert_eq!(pending(&store).await.unwrap(), [], "it is not tried again");
        }
    }
}
