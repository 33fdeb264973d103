//! The epochs that a store holds of a run: read as far as they can be, and cut to where all islands fit together.

use crate::damage::Damage;
use crate::fold::{Recorded, Term};
use crate::head::{RunError, RunHead};
use crate::journal::JournalHead;
use crate::layout::{Place, RunId, StateName};
use crate::record::{Commit, EpochRecord, StoredCheckpoint};
use archipelago::{History, Remains};
use codec::{Digest, Standing};
use evolution::epoch::{left_digest, outcome_digest};
use experiment::file::Mode;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use store::{Kind, Store, StoreError};

/// How many objects are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 64;

/// The stored epochs of all islands.
#[derive(Clone, Debug, Default)]
pub struct StoredEpochs {
    /// Of each island: the records of its epochs, in order and without a gap.
    pub records: Vec<Vec<EpochRecord>>,
    /// Of each island: records after a gap.
    pub scattered: Vec<Vec<EpochRecord>>,
    /// Of each island: the epochs whose state is stored.
    pub states: Vec<BTreeMap<u64, StateName>>,
    /// Of each island: the checkpoints inside its next epoch, by generation.
    pub checkpoints: Vec<BTreeMap<u64, StateName>>,
    /// What is missing, cannot be read, or is not explained by the journal.
    pub damage: Vec<Damage>,
    /// States and checkpoints that belong to no record.
    stray: Vec<Place>,
    asynchronous: bool,
    attempt: u64,
    /// The term that was opened last.
    newest: u64,
}

/// A record, and the term and attempt in which it was written.
struct Found {
    record: EpochRecord,
    term: u64,
    attempt: u64,
}

impl StoredEpochs {
    /// Reads the records of all islands, and finds out what states there are.
    ///
    /// # Errors
    /// If objects cannot be listed. Whatever cannot be read is told in [`StoredEpochs::damage`].
    pub async fn read(store: &Store, run: &RunId, head: &RunHead) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, None).await
    }

    /// The same of one epoch alone, in memory that does not grow with the length of the run.
    ///
    /// # Errors
    /// If objects cannot be listed.
    pub async fn read_epoch(
        store: &Store,
        run: &RunId,
        head: &RunHead,
        epoch: u64,
    ) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, Some(epoch)).await
    }

    async fn read_some(
        store: &Store,
        run: &RunId,
        head: &RunHead,
        only: Option<u64>,
    ) -> Result<Self, StoreError> {
        let recorded = head.recorded();
        let count = head.experiment.setting().islands.len();
        let mut epochs = Self {
            asynchronous: head.experiment.mode() == Mode::Asynchronous,
            attempt: recorded.attempt,
            newest: recorded.terms.last().map_or(0, |term| term.number),
            states: vec![BTreeMap::new(); count],
            checkpoints: vec![BTreeMap::new(); count],
            ..Self::default()
        };
        let commits = epochs.read_commits(store, run, only).await?;
        let journals = commits.values().flatten().map(|commit| &commit.journal);
        let cut_short = journals.filter(|known| !is_continued(known, &head.digests));
        if let Some(known) = cut_short.max_by_key(|known| known.events) {
            epochs.damage.push(Damage::Journal { expected: known.events });
        }
        let mut islands = epochs.join(&recorded, commits, count);
        let last = recorded.finished.and_then(|finished| finished.end).map(|end| end.epoch);
        if let Some(last) = last {
            for island in &mut islands {
                drop(island.split_off(&(last + 1)));
            }
        }
        if only.is_none() {
            epochs.find_missing(&islands, last);
        }
        let names = epochs.list_names(store, run).await?;
        epochs.sort_out(islands, &names);
        Ok(epochs)
    }

    /// All commits, by term and in order, with the records of all epochs or of one.
    async fn read_commits(
        &mut self,
        store: &Store,
        run: &RunId,
        only: Option<u64>,
    ) -> Result<BTreeMap<u64, Vec<Commit>>, StoreError> {
        let paths = store.list(&run.commits()).await?;
        let read = async |path: store::Path| {
            let (_, place) = Place::of(&path)?;
            let Place::Commit { term, .. } = place else { return None };
            let mut commit = store.read_value::<Commit>(&path, Kind::Commit).await;
            if let (Ok(commit), Some(epoch)) = (&mut commit, only) {
                commit.islands.retain_mut(|(_, records)| {
                    records.retain(|record| record.mark.epoch == epoch);
                    records.shrink_to_fit();
                    !records.is_empty()
                });
            }
            Some((term, commit))
        };
        let mut commits: BTreeMap<u64, Vec<Commit>> = BTreeMap::new();
        let mut reading = stream::iter(paths).map(read).buffered(READ_AHEAD);
        while let Some(found) = reading.next().await {
            match found {
                Some((term, Ok(commit))) => commits.entry(term).or_default().push(commit),
                Some((_, Err(error))) => self.damage.push(error.into()),
                None => {}
            }
        }
        Ok(commits)
    }

    /// The records that count: those of each term, after everything before it was cut to where the term begins.
    fn join(
        &mut self,
        recorded: &Recorded,
        mut commits: BTreeMap<u64, Vec<Commit>>,
        count: usize,
    ) -> Vec<BTreeMap<u64, Found>> {
        let mut islands: Vec<BTreeMap<u64, Found>> = (0..count).map(|_| BTreeMap::new()).collect();
        for Term { number, attempt, cuts, .. } in &recorded.terms {
            for (island, cut) in islands.iter_mut().zip(cuts) {
                drop(island.split_off(cut));
            }
            for commit in commits.remove(number).unwrap_or_default() {
                add(&mut islands, commit, *number, *attempt);
            }
        }
        for (term, commits) in commits {
            self.damage.push(Damage::Unexplained { term });
            for commit in commits {
                add(&mut islands, commit, term, recorded.attempt);
            }
        }
        islands
    }

    /// Notes the epochs that are not there although later ones are, or although the run ended with them.
    fn find_missing(&mut self, islands: &[BTreeMap<u64, Found>], last: Option<u64>) {
        for (island, records) in (0..).zip(islands) {
            let mut next = 0;
            for epoch in records.keys().copied().chain(last.map(|last| last + 1)) {
                if epoch > next {
                    self.damage.push(Damage::Records { island, first: next, last: epoch - 1 });
                }
                next = epoch + 1;
            }
        }
    }

    /// The names of all states and checkpoints.
    async fn list_names(&self, store: &Store, run: &RunId) -> Result<BTreeSet<Place>, StoreError> {
        let mut names = BTreeSet::new();
        for folder in [run.states(), run.checkpoints()] {
            let places = store.list(&folder).await?;
            names.extend(places.iter().filter_map(Place::of).map(|(_, place)| place));
        }
        Ok(names)
    }

    /// Finds the state of each record, and the checkpoints of each island's next epoch; what belongs to none is stray.
    fn sort_out(&mut self, islands: Vec<BTreeMap<u64, Found>>, names: &BTreeSet<Place>) {
        let mut stray = names.clone();
        for (at, records) in islands.into_iter().enumerate() {
            let (mut whole, mut scattered) = (vec![], vec![]);
            for (epoch, Found { record, term, attempt }) in records {
                let name = self.name(at as u32, epoch, attempt, term);
                if stray.remove(&Place::State(name)) {
                    self.states[at].insert(epoch, name);
                }
                if epoch == whole.len() as u64 { whole.push(record) } else { scattered.push(record) }
            }
            self.records.push(whole);
            self.scattered.push(scattered);
        }
        for place in names {
            let Place::Checkpoint { generation, of } = place else { continue };
            let next = self.records.get(of.island as usize).map(|records| records.len() as u64);
            // What an older process took, and wrote late, may have been computed again since.
            let is_known = !self.asynchronous || of.term == self.newest;
            if Some(of.epoch) == next && of.attempt == self.attempt && is_known {
                stray.remove(place);
                self.checkpoints[of.island as usize].insert(*generation, *of);
            }
        }
        self.stray.extend(stray);
    }

    fn name(&self, island: u32, epoch: u64, attempt: u64, term: u64) -> StateName {
        StateName { island, epoch, attempt, term: if self.asynchronous { term } else { 0 } }
    }

    /// Leaves so many epochs of each island.
    pub fn limit(&mut self, epochs: u64) {
        for records in &mut self.records {
            records.truncate(epochs as usize);
        }
    }

    /// Cuts the epochs to where all islands fit together, and tells how many are left of each island, and the places of
    /// states and checkpoints that lie beyond.
    ///
    /// Islands are stored side by side, so a crash may leave some further than others. Every island must still have the
    /// state of the last epoch that is complete on all (the run may yet turn out to end there) and of those after it,
    /// and whatever it took from another must still be in that one's past.
    pub fn cut(&mut self) -> (Vec<u64>, Vec<Place>) {
        let mut done: Vec<u64> = self.records.iter().map(|records| records.len() as u64).collect();
        loop {
            let complete = done.iter().copied().min().unwrap_or(0);
            let shorter: Vec<u64> =
                (0..done.len()).map(|island| self.longest(island, done[island], complete, &done)).collect();
            if shorter == done {
                break;
            }
            done = shorter;
        }
        let mut beyond = std::mem::take(&mut self.stray);
        for (island, &done) in done.iter().enumerate() {
            let records = self.records[island].len() as u64;
            self.records[island].truncate(done as usize);
            self.scattered[island].clear();
            beyond.extend(self.states[island].split_off(&done).into_values().map(Place::State));
            if records > done {
                let checkpoints = std::mem::take(&mut self.checkpoints[island]).into_iter();
                beyond.extend(checkpoints.map(|(generation, of)| Place::Checkpoint { generation, of }));
            }
        }
        (done, beyond)
    }

    /// The most epochs of an island that fit with `complete` epochs of all.
    fn longest(&self, island: usize, done: u64, complete: u64, others: &[u64]) -> u64 {
        let states = &self.states[island];
        let fits = |epochs: u64| {
            let mut needed = complete.saturating_sub(1).min(epochs - 1)..epochs;
            let records = &self.records[island][..epochs as usize];
            let mut took = records.iter().flat_map(|record| &record.mark.took);
            needed.all(|epoch| states.contains_key(&epoch))
                && took.all(|&(from, epoch)| others.get(from as usize).is_none_or(|&done| epoch < done))
        };
        (1..=done).rev().find(|&epochs| fits(epochs)).unwrap_or(0)
    }

    /// The histories that an archipelago continues, with the states that it needs, each compared with its record.
    ///
    /// # Errors
    /// If a state cannot be read, or is not the one that its record names.
    pub async fn histories(&self, store: &Store, run: &RunId) -> Result<Vec<History>, RunError> {
        let complete = self.records.iter().map(Vec::len).min().unwrap_or(0) as u64;
        let first = complete.saturating_sub(1);
        let places = self.records.iter().enumerate();
        let places =
            places.flat_map(|(at, records)| (first..records.len() as u64).map(move |epoch| (at, epoch)));
        let read = |(at, epoch)| self.remains(store, run, at as u32, epoch);
        let mut remains = stream::iter(places.collect::<Vec<_>>()).map(read).buffered(READ_AHEAD);
        let mut histories = vec![];
        for records in &self.records {
            let mut recent = vec![];
            for _ in first..records.len() as u64 {
                recent.extend(remains.try_next().await?);
            }
            let marks = records.iter().map(|record| record.mark.clone()).collect();
            histories.push(History { marks, recent });
        }
        Ok(histories)
    }

    /// The record of an epoch, if there is one.
    pub fn record(&self, island: u32, epoch: u64) -> Option<&EpochRecord> {
        let island = island as usize;
        let whole = self.records.get(island)?.get(epoch as usize);
        whole.or_else(|| self.scattered[island].iter().find(|record| record.mark.epoch == epoch))
    }

    /// What an epoch left behind, compared with its record.
    ///
    /// # Errors
    /// If it is not stored, cannot be read, or is not what its record names.
    pub async fn remains(
        &self,
        store: &Store,
        run: &RunId,
        island: u32,
        epoch: u64,
    ) -> Result<Remains, RunError> {
        let name = self.states.get(island as usize).and_then(|states| states.get(&epoch)).copied();
        let name = name.unwrap_or_else(|| self.name(island, epoch, self.attempt, 0));
        let remains: Remains = store.read_value(&Place::State(name).in_run(run), Kind::IslandState).await?;
        match self.record(island, epoch) {
            Some(record) if outcome_of(&remains, record) == Some(record.mark.digest) => Ok(remains),
            _ => Err(RunError::Altered { run: run.clone(), island, epoch }),
        }
    }

    /// The newest checkpoint of an island inside its next epoch.
    pub async fn checkpoint(
        &self,
        store: &Store,
        run: &RunId,
        island: u32,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let newest = self.checkpoints[island as usize].last_key_value();
        let Some((&generation, &of)) = newest else { return Ok(None) };
        let place = Place::Checkpoint { generation, of };
        store.read_value(&place.in_run(run), Kind::Checkpoint).await.map(Some)
    }

    /// Where the islands stood in the last of their epochs.
    pub fn standings(&self) -> impl Iterator<Item = Standing> + Clone {
        self.records.iter().filter_map(|records| records.last()).map(|record| record.mark.standing)
    }

    /// For how long the run had been worked on, as far as the records tell.
    pub fn elapsed(&self) -> u64 {
        self.records.iter().flatten().map(|record| record.labour.elapsed).max().unwrap_or(0)
    }
}

fn add(islands: &mut [BTreeMap<u64, Found>], commit: Commit, term: u64, attempt: u64) {
    for (island, records) in commit.islands {
        let Some(island) = islands.get_mut(island as usize) else { continue };
        for record in records {
            island.entry(record.mark.epoch).or_insert(Found { record, term, attempt });
        }
    }
}

/// The digest of the outcome that an epoch had if it left this behind and its record is true; nothing if the standing
/// of the record is not that of the state.
fn outcome_of(remains: &Remains, record: &EpochRecord) -> Option<Digest> {
    if Standing::of_state(&remains.state).ok()? != record.mark.standing || remains.epoch != record.mark.epoch
    {
        return None;
    }
    let statistics = codec::encode(&record.statistics).ok()?;
    Some(outcome_digest(&left_digest(&remains.state, &remains.departure), &statistics))
}

/// The slowest island's generation, all evaluations, and the best fitness.
pub fn total(standings: impl Iterator<Item = Standing> + Clone) -> Standing {
    Standing {
        generation: standings.clone().map(|standing| standing.generation).min().unwrap_or(0),
        evaluations: standings.clone().map(|standing| standing.evaluations).sum(),
        best: standings.map(|standing| standing.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

/// Whether a journal holds at least what was known of it when something was written.
pub(crate) fn is_continued(known: &JournalHead, digests: &[Digest]) -> bool {
    known.events == 0 || digests.get(known.events as usize - 1) == Some(&known.last)
}
