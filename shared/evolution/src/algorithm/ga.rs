//! The generational genetic algorithm.

use super::breeding::{Breeding, tournament};
use super::{Coming, Crossover, Mutation, Spare};
use crate::population::Population;
use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A generational genetic algorithm: an elite is carried over unchanged, the others are children of parents chosen
/// by tournament.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ga {
    /// Individuals on an island.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub population: u32,
    /// Number of individuals that compete to be a parent.
    #[schemars(range(min = 1, max = 1000))]
    pub tournament: u32,
    /// How two parents' genes are mixed.
    pub crossover: Crossover,
    /// Mutation.
    pub mutation: Mutation,
    /// The share of the population that is carried over unchanged.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub elite: f64,
}

impl Default for Ga {
    fn default() -> Self {
        Self {
            population: 1000,
            tournament: 2,
            crossover: Crossover::default(),
            mutation: Mutation::default(),
            elite: 0.0,
        }
    }
}

impl Ga {
    /// How many individuals are carried over unchanged: never all, or nothing would ever change.
    pub fn elite_count(&self) -> u32 {
        ((f64::from(self.population) * self.elite).round() as u32).min(self.population - 1)
    }

    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        population: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
    ) {
        let Spare { next, windows } = spare;
        let elite = self.elite_count() as usize;
        let breeding = Breeding::new(&coming, windows, &self.crossover, &self.mutation);

        next.resize(population.len());
        carry_over(population, next, elite);
        breeding.breed(population, next, elite..population.len(), |_, stream| {
            let fitness = population.fitness();
            (tournament(fitness, self.tournament, stream), tournament(fitness, self.tournament, stream))
        });
        coming.judge(next, elite..population.len());
        std::mem::swap(population, next);
    }
}

fn carry_over<G: crate::gene::Gene>(from: &Population<G>, to: &mut Population<G>, elite: usize) {
    if elite > 0 {
        for (at, leader) in from.leaders(elite).into_iter().enumerate() {
            to.copy(at, from, leader as usize, 0.0);
        }
    }
}
