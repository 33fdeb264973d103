//! A finished run without its past: what it came to, and the states that it ended with.

use crate::epochs::{self, StoredEpochs};
use crate::fold::Finished;
use crate::head::{RunError, RunHead};
use crate::layout::RunId;
use archipelago::End;
use bytes::Bytes;
use codec::{Digest, Standing};
use evolution::epoch::ChampionView;
use experiment::Experiment;
use store::Store;

/// What a run came to.
pub struct FinishedRun {
    /// What was run.
    pub experiment: Experiment,
    /// Where and why it ended.
    pub end: End,
    /// Its digest.
    pub digest: Digest,
    /// Of each island: the state that it ended with, and where it stood.
    pub islands: Vec<(Bytes, Standing)>,
}

impl FinishedRun {
    /// Reads a run that is finished, in memory that does not grow with its length.
    ///
    /// # Errors
    /// If it is not finished, or one of its last states is missing or not the one that its record names.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, RunError> {
        let head = RunHead::read(store, run).await?;
        let Some(Finished { end: Some(end), digest, .. }) = head.recorded().finished else {
            return Err(RunError::Unfinished { run: run.clone() });
        };
        let epochs = StoredEpochs::read_epoch(store, run, &head, end.epoch).await?;
        let mut islands = vec![];
        for island in 0..head.experiment.setting().islands.len() as u32 {
            let state: Bytes = epochs.remains(store, run, island, end.epoch).await?.state.into();
            let unreadable = |error| RunError::State { island: island as usize, error };
            let standing = Standing::of_state(&state).map_err(unreadable)?;
            islands.push((state, standing));
        }
        Ok(Self { experiment: head.experiment, end, digest, islands })
    }

    /// The slowest island's generation, all evaluations, and the best fitness.
    pub fn standing(&self) -> Standing {
        epochs::total(self.islands.iter().map(|(_, standing)| *standing), self.islands.len())
    }

    /// The best champion and its island: of equals the one that was found first.
    ///
    /// # Errors
    /// If a state holds none.
    pub fn best(&self) -> Result<(usize, ChampionView), RunError> {
        let evolver = self.experiment.evolver();
        let champions = self.islands.iter().enumerate().map(|(island, (state, _))| {
            evolver.champion(state).map_err(|error| RunError::State { island, error })
        });
        let mut champions = champions.collect::<Result<Vec<ChampionView>, _>>()?;
        let best = best_champion(&champions).expect("there is at least one island");
        Ok((best, champions.swap_remove(best)))
    }
}

/// Which champion is the best: of equals the one that was found first, because others may have it from there; of those the
/// one of the lowest island.
pub fn best_champion(champions: &[ChampionView]) -> Option<usize> {
    let order = |a: &ChampionView, b: &ChampionView| {
        b.fitness.total_cmp(&a.fitness).then(a.generation.cmp(&b.generation))
    };
    champions.iter().enumerate().min_by(|(_, a), (_, b)| order(a, b)).map(|(island, _)| island)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_champions_the_earliest_is_the_best() {
        let champion = |fitness, generation| ChampionView { fitness, generation, genome: vec![] };
        let all = [champion(359.0, 1400), champion(12.0, 3), champion(359.0, 1206), champion(359.0, 1206)];
        assert_eq!(best_champion(&all), Some(2));
        assert_eq!(best_champion(&[]), None);
    }
}
