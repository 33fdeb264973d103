//! A run as far as it can be read: damaged and missing objects are listed, and the rest is still available.

use crate::damage::Damage;
use crate::epochs::{CATCH_UPS, StoredEpochs};
use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::{RunError, RunHead, read_experiment};
use crate::journal::{self, JournalError};
use crate::layout::RunId;
use crate::record::EpochRecord;
use crate::states::StateView;
use crate::summary;
use crate::yardstick::Strengths;
use archipelago::Remains;
use codec::CodecError;
use evolution::epoch::{ChampionView, Evolver};
use experiment::Experiment;
use futures::{FutureExt, StreamExt, stream};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;

/// How many states are read at once: enough to hide the latency of a remote store, few enough to hold them in memory.
const READ_AHEAD: usize = 16;

/// What could be read of a run.
pub struct Reader {
    /// What was run.
    pub experiment: Experiment,
    /// The digest of the text that is stored of it.
    pub text: codec::Digest,
    /// Its journal; empty if it cannot be read.
    pub events: Vec<RunEvent>,
    /// What the journal adds up to.
    pub recorded: Recorded,
    /// What is missing, cannot be read, or does not fit. A run is whole if there is none.
    pub damage: Vec<Damage>,
    /// What was measured of its champions, if they are measured.
    pub strengths: Option<Strengths>,
    /// What of that cannot be read: the run is whole without it.
    pub unmeasured: Vec<Damage>,
    pub(crate) epochs: StoredEpochs,
    /// Whether most epochs have their last generation alone.
    pub(crate) is_outline: bool,
    evolver: Arc<dyn Evolver>,
    store: Store,
    run: RunId,
}

/// How much of a run is read.
#[derive(Clone, Copy)]
enum Detail {
    Everything,
    /// The last generation alone of most epochs.
    Outline,
    /// The same of commits with about this number of bytes.
    Part(u64),
}

impl Reader {
    /// Reads a run. Only one without a readable experiment is an error.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, RunError> {
        Self::read_as(store, run, Detail::Everything).await
    }

    /// The same, with the last generation alone of most epochs: of a long run that takes a small part of the memory.
    pub async fn read_outline(store: &Store, run: &RunId) -> Result<Self, RunError> {
        Self::read_as(store, run, Detail::Outline).await
    }

    /// The same of some of the commits, which have about this number of bytes: the newest, and some of those before. The
    /// memory does not grow with the length of the run; whether the run is whole is not found out.
    pub async fn read_part(store: &Store, run: &RunId, bytes: u64) -> Result<Self, RunError> {
        Self::read_as(store, run, Detail::Part(bytes)).await
    }

    async fn read_as(store: &Store, run: &RunId, detail: Detail) -> Result<Self, RunError> {
        let (experiment, text) = read_experiment(store, run).await?;
        let mut damage = vec![];
        let events = match journal::read_all(store, run).await {
            Ok(events) => events,
            Err(JournalError::Store(error)) if !error.is_damage() => return Err(error.into()),
            Err(error) => {
                damage.push(error.into());
                vec![]
            }
        };
        let head = RunHead::new(experiment, text, events);
        head.check(run)?;
        if damage.is_empty() && head.recorded().created.is_none() {
            damage.push(Damage::Journal { expected: 1 });
        }
        if damage.is_empty() {
            damage.extend(summary::journal_damage(store, run, &head.digests).await?);
        }
        let mut epochs = match detail {
            Detail::Everything => StoredEpochs::read(store, run, &head).await?,
            Detail::Outline => StoredEpochs::read_outline(store, run, &head).await?,
            Detail::Part(bytes) => StoredEpochs::read_part(store, run, &head, bytes).await?,
        };
        damage.append(&mut epochs.damage);
        let recorded = head.recorded();
        if let Some(end) = recorded.finished.as_ref().and_then(|finished| finished.end.as_ref()) {
            let ends = (0..).zip(&epochs.states);
            let missing = ends.filter(|(_, states)| !states.contains_key(&end.epoch));
            for (island, _) in missing {
                let state = Damage::State { island, epoch: end.epoch };
                if !damage.contains(&state) {
                    damage.push(state);
                }
            }
        }
        let record = |island, epoch| epochs.record(island, epoch);
        let (strengths, unmeasured) = Strengths::read(store, run, &head.experiment, record).await?;
        let RunHead { experiment, text, events, .. } = head;
        Ok(Self {
            strengths,
            unmeasured,
            evolver: experiment.evolver(),
            experiment,
            text,
            events,
            recorded,
            damage,
            epochs,
            is_outline: !matches!(detail, Detail::Everything),
            store: store.clone(),
            run: run.clone(),
        })
    }

    /// Whether only its plan is stored: the process that created it ended before the first event.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.damage == [Damage::Journal { expected: 1 }] && self.epochs.states.iter().all(BTreeMap::is_empty)
    }

    /// How the run stands, in a word, as lists show it; damaged also if only its records show that.
    pub fn state(&self) -> String {
        if self.damage.is_empty() {
            crate::listing::state(&self.store, &self.run, &self.recorded.status).0
        } else {
            "damaged".to_owned()
        }
    }

    /// How many islands there are.
    pub fn islands(&self) -> u32 {
        self.epochs.states.len() as u32
    }

    /// The epochs of an island whose states are stored, in order.
    pub fn epochs(&self, island: u32) -> Vec<u64> {
        self.epochs.states.get(island as usize).map_or(vec![], |epochs| epochs.keys().copied().collect())
    }

    /// The stored epochs.
    pub fn stored(&self) -> &StoredEpochs {
        &self.epochs
    }

    /// The record of an epoch, if there is one.
    pub fn record(&self, island: u32, epoch: u64) -> Option<&EpochRecord> {
        self.epochs.record(island, epoch)
    }

    /// The champions of all islands, each in the newest of its island's states that can be read.
    pub async fn champions(&mut self) -> Vec<Option<ChampionView>> {
        self.champions_of((0..self.islands()).collect()).await
    }

    /// The same of a number of islands alone: those with the best fitness, of equals those that had it first. States are
    /// large beside records, and there may be thousands of islands.
    pub async fn leading_champions(&mut self, most: usize) -> Vec<Option<ChampionView>> {
        let islands = self.islands();
        self.champions_of(if islands as usize <= most { (0..islands).collect() } else { self.leading(most) })
            .await
    }

    async fn champions_of(&mut self, islands: Vec<u32>) -> Vec<Option<ChampionView>> {
        let evolver = self.evolver.clone();
        let found = self.newest_of(islands, |_, remains| evolver.champion(&remains.state)).await;
        let mut champions = vec![None; self.islands() as usize];
        for (island, champion) in found {
            champions[island as usize] = champion;
        }
        champions
    }

    /// The islands with the best fitness, as their records tell.
    fn leading(&self, most: usize) -> Vec<u32> {
        let standing = |(island, records): (u32, &Vec<EpochRecord>)| {
            let best = records.last()?.mark.standing.best;
            let first = records.iter().position(|record| record.mark.standing.best >= best)?;
            Some((best, first, island))
        };
        let mut islands: Vec<_> = (0..).zip(&self.epochs.records).filter_map(standing).collect();
        islands.sort_by(|one, other| other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
        islands.into_iter().take(most).map(|(.., island)| island).collect()
    }

    /// The champion of an island in the newest of its states that can be read.
    pub async fn champion(&mut self, island: u32) -> Option<ChampionView> {
        let evolver = self.evolver.clone();
        let found = self.newest_of(vec![island], |_, remains| evolver.champion(&remains.state)).await;
        found.into_values().next()?
    }

    /// The newest state of an island that can be read.
    pub async fn newest_state(&mut self, island: u32) -> Option<StateView> {
        let evolver = self.evolver.clone();
        let read = |epoch, remains: &Remains| {
            let champion = evolver.champion(&remains.state)?;
            let residents = evolver.residents(island, &remains.state)?;
            Ok(StateView { epoch, champion, residents })
        };
        self.newest_of(vec![island], read).await.into_values().next()?
    }

    /// What can be read of the newest states of islands. A run that is worked on may have deleted them since they were
    /// listed: then what it has committed since is read as well.
    async fn newest_of<T>(
        &mut self,
        mut islands: Vec<u32>,
        read: impl Fn(u64, &Remains) -> Result<T, CodecError>,
    ) -> BTreeMap<u32, Option<T>> {
        let mut all = BTreeMap::new();
        for _ in 0..CATCH_UPS {
            let (reader, read) = (&*self, &read);
            let found = stream::iter(islands)
                .map(|island| reader.newest(island, read).map(move |found| (island, found)));
            let found: Vec<_> = found.buffered(READ_AHEAD).collect().await;
            let (whole, lacking): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|(_, (found, damage))| found.is_some() && damage.is_empty());
            all.extend(whole.into_iter().map(|(island, (found, _))| (island, found)));
            islands = lacking.iter().map(|(island, _)| *island).collect();
            let is_over = islands.is_empty() || self.recorded.finished.is_some();
            if is_over || !self.epochs.catch_up(&self.store, &self.run).await.unwrap_or(false) {
                for (island, found) in lacking {
                    let found = self.noted(found);
                    all.insert(island, found);
                }
                break;
            }
            all.extend(lacking.into_iter().map(|(island, (found, _))| (island, found)));
        }
        all
    }

    /// The champion of an island after an epoch, if its state is stored and can be read.
    pub async fn champion_at(&mut self, island: u32, epoch: u64) -> Option<ChampionView> {
        let found = self.at(island, epoch, |_, remains| self.evolver.champion(&remains.state)).await;
        self.noted(match found {
            Ok(champion) => (Some(champion), vec![]),
            Err(damage) => (None, vec![damage]),
        })
    }

    /// What can be read of the newest state of an island, and what is wrong with newer ones.
    async fn newest<T>(
        &self,
        island: u32,
        read: &impl Fn(u64, &Remains) -> Result<T, CodecError>,
    ) -> (Option<T>, Vec<Damage>) {
        let mut damage = vec![];
        for epoch in self.epochs(island).into_iter().rev() {
            match self.at(island, epoch, read).await {
                Ok(found) => return (Some(found), damage),
                Err(trouble) => damage.push(trouble),
            }
        }
        (None, damage)
    }

    /// What can be read of a state.
    async fn at<T>(
        &self,
        island: u32,
        epoch: u64,
        read: impl Fn(u64, &Remains) -> Result<T, CodecError>,
    ) -> Result<T, Damage> {
        let trouble = match self.epochs.remains(&self.store, &self.run, island, epoch).await {
            Ok(remains) => match read(epoch, &remains) {
                Ok(answer) => return Ok(answer),
                Err(error) => format!("island {island}, epoch {epoch}: its state {error}"),
            },
            Err(error) => error.to_string(),
        };
        Err(Damage::Unreadable(trouble))
    }

    /// What was found; what could not be read is noted once.
    fn noted<T>(&mut self, (found, damage): (Option<T>, Vec<Damage>)) -> Option<T> {
        for trouble in damage {
            if !self.damage.contains(&trouble) {
                self.damage.push(trouble);
            }
        }
        found
    }
}
