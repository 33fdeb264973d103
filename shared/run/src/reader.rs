//! A run as far as it can be read: what is damaged or gone is told, and the rest is there all the same.

use crate::epochs::read_remains;
use crate::event::RunEvent;
use crate::head::{RunError, RunHead, read_experiment};
use crate::journal::{self, Event};
use crate::layout::{Place, RunId};
use crate::record::EpochRecord;
use crate::states::StateView;
use archipelago::Remains;
use codec::CodecError;
use evolution::epoch::{ChampionView, Evolver};
use experiment::Experiment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Kind, Store};

/// What could be read of a run.
pub struct Reader {
    /// What was run.
    pub experiment: Experiment,
    /// Its journal; empty if it cannot be read.
    pub events: Vec<RunEvent>,
    /// Of each island the records of its epochs, in order, perhaps with gaps; none beyond the run's end.
    pub records: Vec<Vec<EpochRecord>>,
    /// What could not be read, in words.
    pub damage: Vec<String>,
    states: Vec<BTreeSet<u64>>,
    evolver: Arc<dyn Evolver>,
    store: Store,
    run: RunId,
}

impl Reader {
    /// Reads a run. Only one without a readable experiment is an error.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, RunError> {
        let (experiment, text) = read_experiment(store, run).await?;
        let mut damage = vec![];
        let events = read_events(store, run, &mut damage).await;
        let head = RunHead { experiment, text, events };
        head.check(run)?;
        let last = head.recorded().finished.map(|finished| finished.end.epoch);
        let RunHead { experiment, events, .. } = head;
        let count = experiment.setting().islands.len();
        let mut reader = Self {
            evolver: experiment.evolver(),
            experiment,
            events,
            records: vec![],
            damage,
            states: vec![BTreeSet::new(); count],
            store: store.clone(),
            run: run.clone(),
        };
        reader.read_islands(last).await?;
        Ok(reader)
    }

    /// Reads the records of all islands up to an epoch, and finds out what states there are.
    async fn read_islands(&mut self, last: Option<u64>) -> Result<(), RunError> {
        let count = self.states.len();
        let mut islands = vec![BTreeMap::new(); count];
        let within = |epoch: u64| last.is_none_or(|last| epoch <= last);
        for path in self.store.list(&self.run.islands()).await? {
            match Place::of(&path) {
                Some((_, Place::Record { island, .. })) if (island as usize) < count => {
                    match self.store.read_value::<Vec<EpochRecord>>(&path, Kind::EpochRecord).await {
                        Ok(batch) => {
                            let within = batch.into_iter().filter(|record| within(record.mark.epoch));
                            islands[island as usize].extend(within.map(|record| (record.mark.epoch, record)));
                        }
                        Err(error) => self.damage.push(error.to_string()),
                    }
                }
                Some((_, Place::State { island, epoch }))
                    if (island as usize) < count && within(epoch.into()) =>
                {
                    self.states[island as usize].insert(epoch.into());
                }
                _ => {}
            }
        }
        self.records = islands.into_iter().map(|records| records.into_values().collect()).collect();
        self.damage.extend(gaps(&self.records, last));
        Ok(())
    }

    /// How many islands there are.
    pub fn islands(&self) -> u32 {
        self.states.len() as u32
    }

    /// The epochs of an island whose states are stored, in order.
    pub fn epochs(&self, island: u32) -> Vec<u64> {
        self.states.get(island as usize).map_or(vec![], |epochs| epochs.iter().copied().collect())
    }

    /// The champion of an island in the newest of its states that can be read.
    pub async fn champion(&mut self, island: u32) -> Option<ChampionView> {
        let evolver = self.evolver.clone();
        self.newest(island, |_, remains| evolver.champion(&remains.state)).await
    }

    /// The newest state of an island that can be read.
    pub async fn state(&mut self, island: u32) -> Option<StateView> {
        let evolver = self.evolver.clone();
        self.newest(island, |epoch, remains| {
            let champion = evolver.champion(&remains.state)?;
            let residents = evolver.residents(island, &remains.state)?;
            Ok(StateView { epoch, champion, residents })
        })
        .await
    }

    /// The champion of an island after an epoch, if its state is stored and can be read.
    pub async fn champion_at(&mut self, island: u32, epoch: u64) -> Option<ChampionView> {
        let evolver = self.evolver.clone();
        self.at(island, epoch, |_, remains| evolver.champion(&remains.state)).await
    }

    async fn newest<T>(
        &mut self,
        island: u32,
        read: impl Fn(u64, &Remains) -> Result<T, CodecError>,
    ) -> Option<T> {
        for epoch in self.epochs(island).into_iter().rev() {
            let found = self.at(island, epoch, &read).await;
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// What can be read of a state; if nothing, that is noted once.
    async fn at<T>(
        &mut self,
        island: u32,
        epoch: u64,
        read: impl Fn(u64, &Remains) -> Result<T, CodecError>,
    ) -> Option<T> {
        let trouble = match read_remains(&self.store, &self.run, island, epoch).await {
            Ok(remains) => match read(epoch, &remains) {
                Ok(answer) => return Some(answer),
                Err(error) => format!("island {island}, epoch {epoch}: its state {error}"),
            },
            Err(error) => error.to_string(),
        };
        if !self.damage.contains(&trouble) {
            self.damage.push(trouble);
        }
        None
    }
}

/// The journal, or nothing and the reason for that.
async fn read_events(store: &Store, run: &RunId, damage: &mut Vec<String>) -> Vec<RunEvent> {
    match journal::read_all(store, run).await {
        Ok(events) => events.into_iter().map(|event: Event<RunEvent>| event.body).collect(),
        Err(error) => {
            damage.push(format!("the journal: {error}"));
            vec![]
        }
    }
}

/// The epochs that are not there although later ones are, or although the run ended with them.
fn gaps(records: &[Vec<EpochRecord>], last: Option<u64>) -> Vec<String> {
    let mut gaps = vec![];
    for (island, records) in records.iter().enumerate() {
        let epochs = records.iter().map(|record| record.mark.epoch).chain(last.map(|last| last + 1));
        let mut next = 0;
        for epoch in epochs {
            if epoch > next {
                gaps.push(match epoch - next {
                    1 => format!("island {island}: the record of epoch {next} is missing"),
                    _ => {
                        format!("island {island}: the records of epochs {next} to {} are missing", epoch - 1)
                    }
                });
            }
            next = epoch + 1;
        }
    }
    gaps
}
