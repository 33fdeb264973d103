//! About how long an experiment takes and how much it stores, before it has begun.

use crate::experiment::Experiment;
use std::time::Duration;

/// What an experiment will roughly take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Evaluations, if the budget bounds them.
    pub evaluations: Option<u64>,
    /// Time, if the budget bounds it.
    pub time: Option<Duration>,
    /// Bytes in the store when the run is finished.
    pub disk: u64,
    /// Bytes of memory for all islands.
    pub memory: u64,
}

impl Experiment {
    /// What its yardstick will roughly take, if it has one and its budget bounds it: how many champions it measures, and how
    /// long that takes on one thread.
    pub fn measuring(&self) -> Option<(u64, Duration)> {
        let keys = self.file().yardstick.as_ref()?;
        let generations = self.budget().generations?;
        let epochs = generations.div_ceil(self.interval()).max(1);
        let milestones = self.file().retention.milestones.map_or(0, |every| epochs / every);
        let is_last = |every: u64| epochs.is_multiple_of(every);
        let end = u64::from(!self.file().retention.milestones.is_some_and(is_last));
        let champions = (milestones + end).saturating_mul(self.setting().islands.len() as u64);
        Some((champions, keys.time().saturating_mul(u32::try_from(champions).unwrap_or(u32::MAX))))
    }

    /// About how many bytes of memory one epoch of an island takes: its people and their children, what came, and what
    /// it leaves behind.
    pub fn epoch_memory(&self, island: u32) -> u64 {
        let individual = self.traits().bytes as u64 + 4 * self.traits().axes.len() as u64 + 8;
        let algorithm = self.setting().islands.get(island as usize).map(|island| &island.algorithm);
        let people =
            algorithm.map_or(0, evolution::algorithm::Algorithm::capacity).saturating_mul(individual);
        let private = algorithm.map_or(0, |algorithm| algorithm.private_bytes(self.traits().length));
        people
            .saturating_add(private)
            .saturating_add(self.traits().memory)
            .saturating_mul(4)
            .saturating_add(1 << 20)
    }

    /// The estimate for this number of threads.
    pub fn estimate(&self, threads: usize) -> Estimate {
        let algorithms = || self.setting().islands.iter().map(|island| &island.algorithm);
        let founders: u64 = algorithms().map(|algorithm| u64::from(algorithm.founders())).sum();
        let births: u64 = algorithms().map(|algorithm| u64::from(algorithm.births())).sum();
        let budget = self.budget();
        // Where fitness is relative, parents are judged again beside their children.
        let judged = if self.traits().absolute { births } else { founders.saturating_add(births) };
        let by_generations = budget.generations.map(|n| {
            let individuals = founders.saturating_add(judged.saturating_mul(n));
            individuals.saturating_mul(self.traits().evaluations)
        });
        let evaluations = [by_generations, budget.evaluations].into_iter().flatten().min();

        // Breeding costs some 30 ns beside the evaluation itself, and more for long genomes.
        let blind = 30 + self.traits().length as u64 / 8;
        let breeding = self.traits().breeding.map_or(blind, |cost| cost.nanoseconds);
        let each = self.traits().cost.nanoseconds + breeding;
        let computing = evaluations.map(|n| {
            Duration::from_nanos(
                n.saturating_mul(each) / threads.min(self.setting().islands.len()).max(1) as u64,
            )
        });
        let time = [computing, budget.wall_time].into_iter().flatten().min();

        let individual = self.traits().bytes as u64 + 4 * self.traits().axes.len() as u64 + 8;
        let state: u64 = algorithms()
            .map(|algorithm| {
                let private = algorithm.private_bytes(self.traits().length) + self.traits().memory;
                algorithm.capacity() * individual + private + 200
            })
            .sum();
        let generations = budget.generations.or_else(|| evaluations.map(|n| n / births.max(1))).unwrap_or(0);
        let epochs = generations.div_ceil(self.interval()).max(1);
        let retention = &self.file().retention;
        let kept =
            epochs.min(u64::from(retention.keep)) + retention.milestones.map_or(0, |every| epochs / every);
        let rows = self.interval().min(evolution::statistics::ROWS) * 40 + 150;
        let records = epochs.saturating_mul(self.setting().islands.len() as u64).saturating_mul(rows);
        let memory = state.saturating_mul(4) + (8 << 20);
        Estimate { evaluations, time, disk: state.saturating_mul(kept).saturating_add(records), memory }
    }
}
