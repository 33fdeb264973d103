//! The epochs that a store holds of a run: read back, and cut to where all islands fit together.

use crate::layout::{Place, RunId};
use crate::record::{EpochRecord, StoredCheckpoint};
use archipelago::{History, Remains};
use codec::Standing;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use store::{Kind, Store, StoreError};

/// How many objects are read at once: enough to hide the latency of a remote store.
const READ_AHEAD: usize = 32;

/// The stored epochs of all islands.
#[derive(Clone, Debug, Default)]
pub struct StoredEpochs {
    /// Of each island: the records of its epochs, in order and without a gap.
    pub records: Vec<Vec<EpochRecord>>,
    /// Of each island: the epochs whose state is stored.
    pub states: Vec<BTreeSet<u64>>,
    /// Of each island: the checkpoints inside epochs, by epoch and generation.
    pub checkpoints: Vec<BTreeSet<(u64, u64)>>,
    /// The objects of each island that hold records, by the epoch in their name, with the first epoch they hold.
    batches: Vec<BTreeMap<u64, u64>>,
}

impl StoredEpochs {
    /// Reads the records of all islands, and what states there are.
    pub async fn read(store: &Store, run: &RunId, islands: u32) -> Result<Self, StoreError> {
        let count = islands as usize;
        let mut epochs = Self {
            records: vec![vec![]; count],
            states: vec![BTreeSet::new(); count],
            checkpoints: vec![BTreeSet::new(); count],
            batches: vec![BTreeMap::new(); count],
        };
        let mut batches = vec![];
        // Sorted by path, records come in the order of their epochs.
        for path in store.list(&run.islands()).await? {
            match Place::of(&path) {
                Some((_, Place::Record { island, epoch })) if island < islands => {
                    batches.push((island as usize, u64::from(epoch), path));
                }
                Some((_, Place::State { island, epoch })) if island < islands => {
                    epochs.states[island as usize].insert(u64::from(epoch));
                }
                Some((_, Place::Checkpoint { island, epoch, generation })) if island < islands => {
                    epochs.checkpoints[island as usize].insert((u64::from(epoch), u64::from(generation)));
                }
                _ => {}
            }
        }
        let read = async |(island, epoch, path): (usize, u64, store::Path)| {
            let batch: Vec<EpochRecord> = store.read_value(&path, Kind::EpochRecord).await?;
            Ok::<_, StoreError>((island, epoch, batch))
        };
        let mut batches = stream::iter(batches).map(read).buffered(READ_AHEAD);
        while let Some((island, epoch, batch)) = batches.try_next().await? {
            epochs.add(island, epoch, batch);
        }
        Ok(epochs)
    }

    fn add(&mut self, island: usize, named: u64, batch: Vec<EpochRecord>) {
        let first = batch.first().map_or(named, |record| record.mark.epoch);
        self.batches[island].insert(named, first);
        for record in batch {
            if record.mark.epoch == self.records[island].len() as u64 {
                self.records[island].push(record);
            }
        }
    }

    /// Leaves so many epochs of each island.
    pub fn limit(&mut self, epochs: u64) {
        for records in &mut self.records {
            records.truncate(epochs as usize);
        }
    }

    /// Cuts them to where all islands fit together, and tells the places of what lies beyond.
    ///
    /// Islands are stored one after the other, so a crash may leave some further than others. Every island must still
    /// have the state of the last epoch that is complete on all (the run may yet turn out to end there) and of those
    /// after it, and whatever it took from another must still be in that one's past.
    pub fn cut(&mut self) -> Vec<Place> {
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
        let beyond = self.beyond(&done);
        for (island, &done) in done.iter().enumerate() {
            self.records[island].truncate(done as usize);
            self.states[island].retain(|&epoch| epoch < done);
            self.checkpoints[island].retain(|&(epoch, _)| epoch == done);
            self.batches[island].retain(|&named, _| named < done);
        }
        beyond
    }

    /// The most epochs of an island that fit with `complete` epochs of all.
    fn longest(&self, island: usize, done: u64, complete: u64, others: &[u64]) -> u64 {
        let states = &self.states[island];
        let fits = |epochs: u64| {
            let needed = complete.saturating_sub(1).min(epochs - 1)..epochs;
            let records = &self.records[island][..epochs as usize];
            // A batch of records that goes further would be read again.
            let whole = self.batches[island].iter().all(|(&named, &first)| named < epochs || first >= epochs);
            let took = || records.iter().flat_map(|record| &record.mark.took);
            whole
                && needed.clone().all(|epoch| states.contains(&epoch))
                && took().all(|&(from, epoch)| others.get(from as usize).is_none_or(|&done| epoch < done))
        };
        (1..=done).rev().find(|&epochs| fits(epochs)).unwrap_or(0)
    }

    fn beyond(&self, done: &[u64]) -> Vec<Place> {
        let mut places = vec![];
        for (at, &done) in done.iter().enumerate() {
            let island = at as u32;
            let batches = self.batches[at].keys().filter(|&&named| named >= done);
            places.extend(batches.map(|&epoch| Place::Record { island, epoch: epoch as u32 }));
            let states = self.states[at].iter().filter(|&&epoch| epoch >= done);
            places.extend(states.map(|&epoch| Place::State { island, epoch: epoch as u32 }));
            let checkpoints = self.checkpoints[at].iter().filter(|(epoch, _)| *epoch != done);
            places.extend(checkpoints.map(|&(epoch, generation)| Place::Checkpoint {
                island,
                epoch: epoch as u32,
                generation: generation as u32,
            }));
        }
        places
    }

    /// The histories that an archipelago takes up, with the states that it needs.
    pub async fn histories(&self, store: &Store, run: &RunId) -> Result<Vec<History>, StoreError> {
        let complete = self.records.iter().map(Vec::len).min().unwrap_or(0) as u64;
        let mut histories = vec![];
        let first = complete.saturating_sub(1);
        let places = self.records.iter().enumerate();
        let places =
            places.flat_map(|(at, records)| (first..records.len() as u64).map(move |epoch| (at, epoch)));
        let read = |(at, epoch)| read_remains(store, run, at as u32, epoch);
        let mut remains = stream::iter(places.collect::<Vec<_>>()).map(read).buffered(READ_AHEAD);
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

    /// The newest checkpoint of an island inside its next epoch.
    pub async fn checkpoint(
        &self,
        store: &Store,
        run: &RunId,
        island: u32,
    ) -> Result<Option<StoredCheckpoint>, StoreError> {
        let done = self.records[island as usize].len() as u64;
        let newest = self.checkpoints[island as usize].iter().rfind(|(epoch, _)| *epoch == done);
        let Some(&(epoch, generation)) = newest else { return Ok(None) };
        let place = Place::Checkpoint { island, epoch: epoch as u32, generation: generation as u32 };
        store.read_value(&place.in_run(run), Kind::Checkpoint).await.map(Some)
    }

    /// For how long the run had been worked on, as far as the records tell.
    pub fn elapsed(&self) -> u64 {
        self.records.iter().flatten().map(|record| record.labour.elapsed).max().unwrap_or(0)
    }
}

/// Where the islands of a run stood after an epoch, or as far as they had come, from no more objects than that takes.
pub async fn standings(store: &Store, run: &RunId, last: Option<u64>) -> Result<Vec<Standing>, StoreError> {
    let last = last.unwrap_or(u64::MAX);
    let mut newest: BTreeMap<u32, (u64, store::Path)> = BTreeMap::new();
    // Sorted by path, records come in the order of their epochs.
    for path in store.list(&run.islands()).await? {
        if let Some((_, Place::Record { island, epoch })) = Place::of(&path)
            && newest.get(&island).is_none_or(|(named, _)| *named < last)
        {
            newest.insert(island, (u64::from(epoch), path));
        }
    }
    let mut standings = vec![];
    for (_, path) in newest.values() {
        let batch: Vec<EpochRecord> = store.read_value(path, Kind::EpochRecord).await?;
        let counted = batch.iter().rev().find(|record| record.mark.epoch <= last);
        standings.extend(counted.map(|record| record.mark.standing));
    }
    Ok(standings)
}

/// The slowest island's generation, all evaluations, and the best fitness.
pub fn total(standings: impl Iterator<Item = Standing> + Clone) -> Standing {
    Standing {
        generation: standings.clone().map(|standing| standing.generation).min().unwrap_or(0),
        evaluations: standings.clone().map(|standing| standing.evaluations).sum(),
        best: standings.map(|standing| standing.best).fold(f64::NEG_INFINITY, f64::max),
    }
}

/// What an epoch left behind.
pub async fn read_remains(
    store: &Store,
    run: &RunId,
    island: u32,
    epoch: u64,
) -> Result<Remains, StoreError> {
    let place = Place::State { island, epoch: epoch as u32 };
    store.read_value(&place.in_run(run), Kind::IslandState).await
}
