//! The states of a run's islands, one by one.

use crate::epochs::StoredEpochs;
use crate::head::{RunError, RunHead};
use crate::layout::RunId;
use archipelago::Remains;
use evolution::epoch::{ChampionView, Evolver, ResidentView};
use experiment::Experiment;
use std::sync::Arc;
use store::Store;

/// A run whose states can be looked at.
pub struct States {
    /// What was run.
    pub experiment: Experiment,
    evolver: Arc<dyn Evolver>,
    epochs: StoredEpochs,
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
    pub async fn open(store: &Store, run: &RunId) -> Result<Self, RunError> {
        let head = RunHead::read(store, run).await?;
        let epochs = StoredEpochs::read(store, run, &head).await?;
        let experiment = head.experiment;
        let evolver = experiment.evolver();
        Ok(Self { experiment, evolver, epochs, run: run.clone(), store: store.clone() })
    }

    /// How many islands there are.
    pub fn islands(&self) -> u32 {
        self.epochs.states.len() as u32
    }

    /// The epochs whose states are stored, in order.
    pub fn epochs(&self, island: u32) -> Vec<u64> {
        self.epochs.states.get(island as usize).map_or(vec![], |epochs| epochs.keys().copied().collect())
    }

    /// What an island's epoch left behind, which must be stored.
    pub async fn remains(&self, island: u32, epoch: u64) -> Result<Remains, RunError> {
        self.epochs.remains(&self.store, &self.run, island, epoch).await
    }

    /// The state of an island after an epoch, which must be stored.
    pub async fn read(&self, island: u32, epoch: u64) -> Result<StateView, RunError> {
        let remains = self.remains(island, epoch).await?;
        let state = &remains.state;
        let unreadable = |error| RunError::State { island: island as usize, error };
        let champion = self.evolver.champion(state).map_err(unreadable)?;
        let residents = self.evolver.residents(island, state).map_err(unreadable)?;
        Ok(StateView { epoch, champion, residents })
    }
}
