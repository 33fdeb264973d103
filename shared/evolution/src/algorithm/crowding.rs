//! Deterministic crowding (Mahfoud, 1995).

use super::breeding::Breeding;
use super::{Coming, Crossover, CrossoverKind, Mutation, MutationUnit, Rate, Spare};
use crate::population::Population;
use crate::problem::Problem;
use crate::random::Purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deterministic crowding: everybody is a parent once; each child competes with the more similar of its parents and
/// takes its place if it is at least as good. Different kinds of solutions live on side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Crowding {
    /// Individuals on an island.
    #[schemars(range(min = 2, max = 10_000_000))]
    pub population: u32,
    /// How two parents' genes are mixed.
    pub crossover: Crossover,
    /// How genes change by themselves.
    pub mutation: Mutation,
}

impl Default for Crowding {
    fn default() -> Self {
        Self {
            population: 100,
            crossover: Crossover { kind: CrossoverKind::Uniform, rate: 1.0 },
            mutation: Mutation { rate: Rate::Constant(0.01), per: MutationUnit::Gene, step: None },
        }
    }
}

impl Crowding {
    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        population: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
    ) {
        let parents = population.len();
        let order = pairing(&coming, parents);
        let born = order.len();
        let mutating = self.mutation.at(coming.generation);
        let breeding =
            Breeding::new(population.shape(), &spare.windows, &self.crossover, mutating, coming.key);

        // Children are bred beside the parents and then join them, so that both are judged in the same games.
        spare.next.resize(born);
        breeding.breed(population, &mut spare.next, 0..born, |pair, _| {
            (order[2 * pair] as usize, order[2 * pair + 1] as usize)
        });
        population.resize(parents + born);
        for child in 0..born {
            population.copy(parents + child, &spare.next, child, 0.0);
        }
        coming.judge(population, parents..parents + born);
        for (pair, couple) in order.as_chunks::<2>().0.iter().enumerate() {
            let children = [parents + 2 * pair, parents + 2 * pair + 1];
            compete(coming.problem, population, couple.map(|parent| parent as usize), children);
        }
        population.resize(parents);
    }
}

/// Everybody in random order: neighbours make a pair. Of an odd number one stays alone.
fn pairing<P: Problem>(coming: &Coming<'_, P>, count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    coming.key.stream(0, Purpose::Pairing).shuffle(&mut order);
    order.truncate(count & !1);
    order
}

/// Each child meets the parent it resembles, in the assignment that resembles most as a whole.
fn compete<P: Problem>(
    problem: &P,
    population: &mut Population<P::Gene>,
    parents: [usize; 2],
    children: [usize; 2],
) {
    let apart = |one: usize, other: usize| problem.distance(population.genome(one), population.genome(other));
    let straight = apart(parents[0], children[0]) + apart(parents[1], children[1]);
    let crossed = apart(parents[0], children[1]) + apart(parents[1], children[0]);
    let rivals = if straight <= crossed { children } else { [children[1], children[0]] };
    for (parent, child) in parents.into_iter().zip(rivals) {
        if population.fitness()[child] >= population.fitness()[parent] {
            population.copy_within(child, parent);
        }
    }
}
