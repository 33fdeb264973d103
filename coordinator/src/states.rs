//! The states of a run's islands, one by one.

use crate::history::{Past, read_remains};
use crate::keeper::{KeepError, RunHead};
use evolution::epoch::{ChampionView, Evolver, ResidentView};
use experiment::Experiment;
use std::sync::Arc;
use store::{RunId, Store};

/// A run whose states can be looked at.
pub struct States {
    /// What was run.
    pub experiment: Experiment,
    evolver: Arc<dyn Evolver>,
    past: Past,
    run: RunId,
    store: Store,
}

/// The state of an island after an epoch.
pub struct StateView {
    /// The epoch.
    pub epoch: u64,
    /// Its champion.
    pub champion: ChampionView,
    /// Its individuals.
    pub residents: Vec<ResidentView>,
}

impl States {
    /// Finds out which states of a run are stored.
    pub async fn open(store: &Store, run: &RunId) -> Result<Self, KeepError> {
        let experiment = RunHead::read(store, run).await?.experiment;
        let past = Past::read(store, run, experiment.setting().islands.len() as u32).await?;
        let evolver = experiment.evolver();
        Ok(Self { experiment, evolver, past, run: run.clone(), store: store.clone() })
    }

    /// How many islands there are.
    pub fn islands(&self) -> u32 {
        self.past.states.len() as u32
    }

    /// The epochs whose states are stored, in order.
    pub fn epochs(&self, island: u32) -> Vec<u64> {
        self.past.states.get(island as usize).map_or(vec![], |epochs| epochs.iter().copied().collect())
    }

    /// The state of an island after an epoch, which must be stored.
    pub async fn read(&self, island: u32, epoch: u64) -> Result<StateView, KeepError> {
        let remains = read_remains(&self.store, &self.run, island, epoch).await?;
        let state = &remains.state;
        let unreadable = |error| KeepError::State { island: island as usize, error };
        let champion = self.evolver.champion(state).map_err(unreadable)?;
        let residents = self.evolver.residents(island, state).map_err(unreadable)?;
        Ok(StateView { epoch, champion, residents })
    }
}
