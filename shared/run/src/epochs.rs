//! The epochs that a store holds of a run: read as far as they can be, and cut to where all islands fit together.

use crate::damage::Damage;
use crate::fold::{Recorded, Term};
use crate::head::{RunError, RunHead};
use crate::journal::JournalHead;
use crate::layout::{Place, RunId, StateName};
use crate::record::{Commit, EpochRecord, StoredCheckpoint};
use archipelago::{IslandHistory, Remains};
use codec::{Digest, Standing};
use evolution::epoch::{left_digest, outcome_digest};
use experiment::file::Mode;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use store::{Kind, Path, Store, StoreError};

/// How many objects are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 64;
/// How often a reader catches up with a run that deletes states while it reads, before it gives up on them.
pub(crate) const CATCH_UPS: usize = 5;

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
    /// The commits that were read.
    pub commits: Vec<Place>,
    /// How many commits were left out because all of them are too large.
    pub left_out: usize,
    /// Commits that were passed over, and why.
    pub passed_over: Vec<(Place, String)>,
    /// Of each island: the epochs whose state a commit promises, from the last epoch on that is recorded of all islands.
    promised: Vec<BTreeSet<u64>>,
    /// States and checkpoints that belong to no record.
    stray: Vec<Place>,
    asynchronous: bool,
    attempt: u64,
    /// The term that was opened last.
    newest: u64,
}

/// What is read of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All epochs.
    Everything,
    /// All epochs, most of them with their last generation alone.
    Outline,
    /// The same of some of the commits, which have about this number of bytes.
    Part(u64),
    /// All epochs, without what cannot be read or is not explained.
    Explained,
    /// One epoch.
    Epoch(u64),
}

/// A record, and the term and attempt in which it was written.
struct Found {
    record: EpochRecord,
    term: u64,
    attempt: u64,
    /// Whether its commit promises its state, because it was the island's last.
    promised: bool,
}

impl StoredEpochs {
    /// Reads the records of all islands, and finds out what states there are.
    ///
    /// # Errors
    /// If objects cannot be listed. [`StoredEpochs::damage`] lists those that cannot be read.
    pub async fn read(store: &Store, run: &RunId, head: &RunHead) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, Extent::Everything).await
    }

    /// The same, with the last generation alone of each epoch but for the last of an island in each commit: its state is stored,
    /// and is compared with all of its statistics. That takes a small part of the memory.
    ///
    /// # Errors
    /// If objects cannot be listed.
    pub async fn read_outline(store: &Store, run: &RunId, head: &RunHead) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, Extent::Outline).await
    }

    /// The outline of the newest commits and of some of those before, evenly spread, in memory that does not grow with the
    /// length of the run. Whether the run is whole is not found out.
    ///
    /// # Errors
    /// If objects cannot be listed.
    pub async fn read_part(
        store: &Store,
        run: &RunId,
        head: &RunHead,
        bytes: u64,
    ) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, Extent::Part(bytes)).await
    }

    /// The same without commits that cannot be read, or that this part of the journal does not explain: they are listed in
    /// [`StoredEpochs::passed_over`].
    ///
    /// # Errors
    /// If objects cannot be listed.
    pub async fn read_explained(store: &Store, run: &RunId, head: &RunHead) -> Result<Self, StoreError> {
        Self::read_some(store, run, head, Extent::Explained).await
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
        Self::read_some(store, run, head, Extent::Epoch(epoch)).await
    }

    async fn read_some(
        store: &Store,
        run: &RunId,
        head: &RunHead,
        extent: Extent,
    ) -> Result<Self, StoreError> {
        let recorded = head.recorded();
        let is_whole = !matches!(extent, Extent::Epoch(_) | Extent::Part(_));
        let count = head.experiment.setting().islands.len();
        let mut epochs = Self {
            asynchronous: head.experiment.mode() == Mode::Asynchronous,
            attempt: recorded.attempt,
            newest: recorded.terms.last().map_or(0, |term| term.number),
            states: vec![BTreeMap::new(); count],
            promised: vec![BTreeSet::new(); count],
            checkpoints: vec![BTreeMap::new(); count],
            ..Self::default()
        };
        let mut commits = epochs.read_commits(store, run, extent).await?;
        if extent == Extent::Explained {
            epochs.pass_over(run, &mut commits, &recorded, &head.digests);
        }
        let places = commits.iter().flat_map(|(&term, commits)| {
            commits.iter().map(move |&(number, _)| Place::Commit { term, number })
        });
        epochs.commits = places.collect();
        let commits: BTreeMap<u64, Vec<Commit>> = commits
            .into_iter()
            .map(|(term, commits)| (term, commits.into_iter().map(|(_, commit)| commit).collect()))
            .collect();
        let journals = commits.values().flatten().map(|commit| &commit.journal);
        let cut_short = journals.filter(|known| !is_continued(known, &head.digests));
        if let Some(known) = cut_short.max_by_key(|known| known.events) {
            epochs.damage.push(Damage::Journal { expected: known.events });
        }
        let mut islands = epochs.join(&recorded, commits, count);
        let last = recorded.finished.as_ref().and_then(|finished| finished.end.as_ref()).map(|end| end.epoch);
        if let Some(last) = last {
            for island in &mut islands {
                drop(island.split_off(&last.saturating_add(1)));
            }
        }
        if is_whole {
            epochs.find_missing(&islands, last);
        }
        let names = epochs.list_names(store, run).await?;
        epochs.sort_out(islands, &names, &recorded);
        if is_whole && recorded.terms.last().is_none_or(|term| term.owner.is_some()) {
            epochs.find_missing_states(store, run, extent, &recorded).await?;
        }
        if is_whole {
            epochs.check_chains(&head.experiment.digest());
        }
        Ok(epochs)
    }

    /// All commits, by term and in order, with the records of all epochs or of one.
    async fn read_commits(
        &mut self,
        store: &Store,
        run: &RunId,
        extent: Extent,
    ) -> Result<BTreeMap<u64, Vec<(u64, Commit)>>, StoreError> {
        let mut paths = store.list(&run.commits()).await?;
        if let Extent::Part(bytes) = extent {
            let all = store.size_below(&run.commits()).await?;
            let most = (paths.len() as u64).saturating_mul(bytes) / all.max(1);
            let chosen = spread(paths.len(), most as usize);
            self.left_out = paths.len() - chosen.len();
            paths = chosen.into_iter().map(|at| paths[at].clone()).collect();
        }
        self.read_listed(store, paths, extent).await
    }

    async fn read_listed(
        &mut self,
        store: &Store,
        paths: Vec<Path>,
        extent: Extent,
    ) -> Result<BTreeMap<u64, Vec<(u64, Commit)>>, StoreError> {
        let read = async |path: Path| {
            let (_, place) = Place::of(&path)?;
            let Place::Commit { term, number } = place else { return None };
            let mut commit = store.read_value::<Commit>(&path, Kind::Commit).await;
            if let (Ok(commit), Extent::Epoch(epoch)) = (&mut commit, extent) {
                commit.islands.retain_mut(|(_, records)| {
                    records.retain(|record| record.mark.epoch == epoch);
                    records.shrink_to_fit();
                    !records.is_empty()
                });
            }
            if let (Ok(commit), Extent::Outline | Extent::Part(_)) = (&mut commit, extent) {
                let before_last = |(_, records): &mut (u32, Vec<EpochRecord>)| {
                    if let Some((_, before)) = records.split_last_mut() {
                        before.iter_mut().for_each(EpochRecord::outline);
                    }
                };
                commit.islands.iter_mut().for_each(before_last);
            }
            Some(((term, number), commit))
        };
        let mut commits: BTreeMap<u64, Vec<(u64, Commit)>> = BTreeMap::new();
        let mut reading = stream::iter(paths).map(read).buffered(READ_AHEAD);
        while let Some(found) = reading.next().await {
            match found {
                Some(((term, number), Ok(commit))) => commits.entry(term).or_default().push((number, commit)),
                Some(((term, number), Err(error))) if error.is_damage() && extent == Extent::Explained => {
                    self.passed_over.push((Place::Commit { term, number }, error.to_string()));
                }
                Some((_, Err(error))) if error.is_damage() => self.damage.push(error.into()),
                // The store has failed, which says nothing of the object.
                Some((_, Err(error))) => return Err(error),
                None => {}
            }
        }
        Ok(commits)
    }

    /// Passes over the commits that the journal does not explain.
    fn pass_over(
        &mut self,
        run: &RunId,
        commits: &mut BTreeMap<u64, Vec<(u64, Commit)>>,
        recorded: &Recorded,
        digests: &[Digest],
    ) {
        let is_term =
            |number| recorded.terms.iter().any(|term| term.number == number && term.owner.is_some());
        for (&term, commits) in commits.iter_mut() {
            let unexplained = commits.extract_if(.., |(_, commit)| {
                !is_term(term) || commit.journal.events <= term || !is_continued(&commit.journal, digests)
            });
            self.passed_over.extend(unexplained.map(|(number, _)| {
                let reason = format!("the journal of {run} does not explain it");
                (Place::Commit { term, number }, reason)
            }));
        }
        commits.retain(|_, commits| !commits.is_empty());
    }

    /// The records that count: those of each term, after everything before it was cut to where the term begins.
    fn join(
        &mut self,
        recorded: &Recorded,
        mut commits: BTreeMap<u64, Vec<Commit>>,
        count: usize,
    ) -> Vec<BTreeMap<u64, Found>> {
        let mut islands: Vec<BTreeMap<u64, Found>> = (0..count).map(|_| BTreeMap::new()).collect();
        for Term { number, attempt, cuts, owner, .. } in &recorded.terms {
            for (island, cut) in islands.iter_mut().zip(cuts) {
                drop(island.split_off(cut));
            }
            // The opener of the run had the states from the last epoch on that was complete on all islands.
            let complete = cuts.iter().copied().min().unwrap_or(0);
            if owner.is_some() {
                for island in &mut islands {
                    let kept = island.range_mut(complete.saturating_sub(1)..);
                    kept.for_each(|(_, found)| found.promised = true);
                }
            }
            // Only an opening begins a term: what carries the number of a retraction is not explained by it.
            let own = if owner.is_some() { commits.remove(number) } else { None };
            for commit in own.unwrap_or_default() {
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
            for epoch in records.keys().copied().chain(last.map(|last| last.saturating_add(1))) {
                if epoch > next {
                    self.damage.push(Damage::Records { island, first: next, last: epoch - 1 });
                }
                next = epoch.saturating_add(1);
            }
        }
    }

    /// Notes the states that are not there although a commit promises them and nothing may have deleted them.
    ///
    /// A commit is written after the states of the last epochs that it records. Retention keeps every state from the last
    /// epoch that is recorded of all islands on, so no crash and no pruning takes away one of these. Of a run that is worked
    /// on, later commits may have allowed that since the commits were listed: then those decide.
    async fn find_missing_states(
        &mut self,
        store: &Store,
        run: &RunId,
        extent: Extent,
        recorded: &Recorded,
    ) -> Result<(), StoreError> {
        for _ in 0..CATCH_UPS {
            let missing = self.missing_states();
            if missing.is_empty() {
                return Ok(());
            }
            if recorded.finished.is_some() || !self.catch_up_as(store, run, extent).await? {
                self.damage.extend(missing);
                return Ok(());
            }
        }
        // The run is faster than this reader, and so it is well.
        Ok(())
    }

    fn missing_states(&self) -> Vec<Damage> {
        let first = self.complete().saturating_sub(1);
        let promised = (0..).zip(self.promised.iter().zip(&self.states));
        let missing = promised.flat_map(|(island, (promised, states))| {
            let missing = promised.range(first..).filter(move |epoch| !states.contains_key(*epoch));
            missing.map(move |&epoch| Damage::State { island, epoch })
        });
        missing.collect()
    }

    /// How many epochs are recorded of all islands.
    fn complete(&self) -> u64 {
        self.records.iter().map(Vec::len).min().unwrap_or(0) as u64
    }

    /// Reads what was committed since, and which states there are now. Returns whether anything was committed.
    ///
    /// # Errors
    /// If objects cannot be listed or read.
    pub(crate) async fn catch_up(&mut self, store: &Store, run: &RunId) -> Result<bool, StoreError> {
        self.catch_up_as(store, run, Extent::Everything).await
    }

    async fn catch_up_as(&mut self, store: &Store, run: &RunId, extent: Extent) -> Result<bool, StoreError> {
        let newest = self.commits.iter().max();
        let is_new = |path: &Path| Place::of(path).is_some_and(|(_, place)| Some(&place) > newest);
        let paths: Vec<Path> = store.list(&run.commits()).await?.into_iter().filter(is_new).collect();
        // A commit that cannot be read is damage that was noted, or that the next reader notes.
        let damage = self.damage.len();
        let mut commits = self.read_listed(store, paths, extent).await?;
        self.damage.truncate(damage);
        let has_more = !commits.is_empty();
        // What another process has committed since is explained by events that this reader does not know.
        let own = commits.remove(&self.newest).unwrap_or_default();
        self.commits.extend(own.iter().map(|&(number, _)| Place::Commit { term: self.newest, number }));
        let names = self.list_names(store, run).await?;
        for states in &mut self.states {
            states.retain(|_, name| names.contains(&Place::State(*name)));
        }
        for (island, records) in own.into_iter().flat_map(|(_, commit)| commit.islands) {
            self.add_later(island, records, &names);
        }
        for (records, checkpoints) in self.records.iter().zip(&mut self.checkpoints) {
            checkpoints.retain(|_, of| of.epoch == records.len() as u64);
        }
        Ok(has_more)
    }

    /// Adds what a later commit of the last term records of an island.
    fn add_later(&mut self, island: u32, records: Vec<EpochRecord>, names: &BTreeSet<Place>) {
        let at = island as usize;
        let Some(own) = self.records.get_mut(at) else { return };
        let last = records.last().map(|record| record.mark.epoch);
        let mut added = vec![];
        for record in records {
            let epoch = record.mark.epoch;
            if epoch >= own.len() as u64 {
                added.push(epoch);
                if epoch == own.len() as u64 { own.push(record) } else { self.scattered[at].push(record) }
            }
        }
        for epoch in added {
            let name = self.name(island, epoch, self.attempt, self.newest);
            if names.contains(&Place::State(name)) {
                self.states[at].insert(epoch, name);
            }
        }
        self.promised[at].extend(last);
    }

    /// Notes the islands whose records do not belong together, or to this experiment.
    fn check_chains(&mut self, experiment: &Digest) {
        for (island, records) in (0..).zip(&self.records) {
            let mut before = *experiment;
            for mark in records.iter().map(|record| &record.mark) {
                if mark.chain != mark.chained_to(&before) {
                    self.damage.push(Damage::Chain { island, epoch: mark.epoch });
                    break;
                }
                before = mark.chain;
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

    /// Finds the state of each record, and the checkpoints of each island's next epoch. What belongs to none, but to a
    /// term of the journal, is stray; what the journal cannot explain is left alone.
    fn sort_out(&mut self, islands: Vec<BTreeMap<u64, Found>>, names: &BTreeSet<Place>, recorded: &Recorded) {
        let mut stray = names.clone();
        let whole = |records: &BTreeMap<u64, Found>| {
            (0..).zip(records.keys()).take_while(|(expected, epoch)| expected == *epoch).count() as u64
        };
        let complete = islands.iter().map(whole).min().unwrap_or(0);
        for (at, records) in islands.into_iter().enumerate() {
            let (mut whole, mut scattered) = (vec![], vec![]);
            for (epoch, Found { record, term, attempt, promised }) in records {
                if promised && epoch >= complete.saturating_sub(1) {
                    self.promised[at].insert(epoch);
                }
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
        let terms: BTreeSet<u64> = if self.asynchronous {
            recorded.terms.iter().map(|term| term.number).collect()
        } else {
            BTreeSet::from([0])
        };
        self.stray.extend(stray.into_iter().filter(|place| {
            place.state().is_some_and(|of| {
                (of.island as usize) < self.states.len()
                    && of.attempt <= self.attempt
                    && terms.contains(&of.term)
            })
        }));
    }

    fn name(&self, island: u32, epoch: u64, attempt: u64, term: u64) -> StateName {
        StateName { island, epoch, attempt, term: if self.asynchronous { term } else { 0 } }
    }

    /// Leaves the epochs of each island before the first whose record does not belong to those before it, or ends at another
    /// generation than the schedule says.
    pub(crate) fn limit_to_sound(&mut self, experiment: &Digest, end_of: impl Fn(u64) -> Option<u64>) {
        for records in &mut self.records {
            let mut before = *experiment;
            let mut is_sound = |record: &EpochRecord| {
                let mark = &record.mark;
                let ends_there = end_of(mark.epoch).is_none_or(|end| mark.standing.generation == end);
                let is_chained = mark.chain == mark.chained_to(&before);
                before = mark.chain;
                ends_there && is_chained
            };
            let sound = records.iter().take_while(|record| is_sound(record)).count();
            records.truncate(sound);
        }
    }

    /// Keeps this number of epochs of each island.
    pub fn limit(&mut self, epochs: u64) {
        for records in &mut self.records {
            records.truncate(epochs as usize);
        }
    }

    /// Cuts the epochs to where all islands fit together. Returns how many are left of each island, and the places of
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
    pub async fn histories(&self, store: &Store, run: &RunId) -> Result<Vec<IslandHistory>, RunError> {
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
            histories.push(IslandHistory { marks, recent });
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
        if self.is_of_record(island, epoch, &remains) {
            Ok(remains)
        } else {
            Err(RunError::Altered { run: run.clone(), island, epoch })
        }
    }

    /// Whether this is what the record of an epoch names.
    pub fn is_of_record(&self, island: u32, epoch: u64, remains: &Remains) -> bool {
        self.record(island, epoch)
            .is_some_and(|record| outcome_of(remains, record) == Some(record.mark.digest))
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

    /// Where the run stands.
    pub fn standing(&self) -> Standing {
        total(self.standings(), self.records.len())
    }

    /// For how long the run had been worked on, as far as the records tell.
    pub fn elapsed(&self) -> u64 {
        self.records.iter().flatten().map(|record| record.labour.elapsed).max().unwrap_or(0)
    }
}

/// The places of at most so many of all commits, but of two at least: half of them the newest, the others evenly spread
/// over those before, the first among them.
fn spread(all: usize, most: usize) -> Vec<usize> {
    let most = most.max(2);
    if most >= all {
        return (0..all).collect();
    }
    let newest = most / 2;
    let (before, others) = (all - newest, most - newest);
    (0..others).map(|at| at * before / others).chain(before..all).collect()
}

fn add(islands: &mut [BTreeMap<u64, Found>], commit: Commit, term: u64, attempt: u64) {
    for (island, records) in commit.islands {
        let Some(island) = islands.get_mut(island as usize) else { continue };
        let last = records.iter().map(|record| record.mark.epoch).max();
        for record in records {
            let epoch = record.mark.epoch;
            let promised = Some(epoch) == last;
            island.entry(epoch).or_insert(Found { record, term, attempt, promised });
        }
    }
}

/// The digest of the outcome that an epoch had if it left this behind and its record is true; nothing if the standing
/// of the record is not that of the state.
pub(crate) fn outcome_of(remains: &Remains, record: &EpochRecord) -> Option<Digest> {
    if Standing::of_state(&remains.state).ok()? != record.mark.standing || remains.epoch != record.mark.epoch
    {
        return None;
    }
    let statistics = codec::encode(&record.statistics).ok()?;
    Some(outcome_digest(&left_digest(&remains.state, &remains.departure), &statistics))
}

/// Where a run of some islands stands: the slowest island's generation, all evaluations, and the best fitness. An island
/// without a standing is at generation 0: nothing is recorded of it yet.
pub fn total(standings: impl Iterator<Item = Standing> + Clone, islands: usize) -> Standing {
    let slowest = standings.clone().map(|standing| standing.generation).min();
    Standing {
        generation: slowest.filter(|_| standings.clone().count() >= islands).unwrap_or(0),
        evaluations: standings.clone().map(|standing| standing.evaluations).fold(0, u64::saturating_add),
        best: standings.map(|standing| standing.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

/// Whether a journal holds at least what was known of it when something was written, which was after its first event.
pub(crate) fn is_continued(known: &JournalHead, digests: &[Digest]) -> bool {
    let last = known.events.checked_sub(1).and_then(|last| digests.get(usize::try_from(last).ok()?));
    last == Some(&known.last)
}
