//! Deterministic crowding (Mahfoud, 1995).

use super::breeding::Breeding;
use super::{Coming, Crossover, CrossoverKind, Mutation, MutationUnit, Rate, Spare};
use crate::gene::Gene;
use crate::population::Population;
use crate::problem::Problem;
use crate::random::{Purpose, mix};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Deterministic crowding: every individual is a parent once; each child competes with the more similar of its parents and
/// takes its place if it is at least as good, or better where that is asked for. Different kinds of solutions live on side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Crowding {
    /// Individuals on an island.
    #[schemars(range(min = 2, max = 10_000_000))]
    pub population: u32,
    /// How two parents' genes are mixed.
    pub crossover: Crossover,
    /// Mutation.
    pub mutation: Mutation,
    /// Number of random individuals of which the most similar one becomes the mate. 1: any individual, and the population
    /// stays one species; with more, it splits into species.
    #[schemars(range(min = 1, max = 10_000_000), extend("default" = 1))]
    #[serde(skip_serializing_if = "is_one")]
    pub mates: u32,
    /// Whether a child that equals another individual is rejected, so that no solution takes more than one place.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub distinct: bool,
    /// Whether a child must be better than its parent to take its place (Mahfoud's rule); else it is enough to be as good.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

impl Default for Crowding {
    fn default() -> Self {
        Self {
            population: 100,
            crossover: Crossover { kind: CrossoverKind::Uniform, rate: 1.0 },
            mutation: Mutation { rate: Rate::Constant(0.01), per: MutationUnit::Gene, step: None },
            mates: 1,
            distinct: false,
            strict: false,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

impl Crowding {
    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        population: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
    ) {
        let parents = population.len();
        let order = self.pairing(&coming, population);
        let born = order.len();
        let breeding = Breeding::new(&coming, &spare.windows, &self.crossover, &self.mutation);

        // Children are bred beside the parents and then join them, so that both are judged in the same games.
        spare.next.resize(born);
        breeding.breed(population, &mut spare.next, 0..born, |pair, _| {
            (order[2 * pair] as usize, order[2 * pair + 1] as usize)
        });
        population.append(&spare.next);
        coming.judge(population, parents..parents + born);
        let mut known = self.distinct.then(|| Known::first(population, parents));
        for (pair, couple) in order.as_chunks::<2>().0.iter().enumerate() {
            let children = [parents + 2 * pair, parents + 2 * pair + 1];
            let couple = couple.map(|parent| parent as usize);
            self.compete(coming.problem, population, couple, children, &mut known);
        }
        population.resize(parents);
    }

    /// Each child meets the parent it resembles, in the assignment that resembles most as a whole.
    fn compete<P: Problem>(
        &self,
        problem: &P,
        population: &mut Population<P::Gene>,
        parents: [usize; 2],
        children: [usize; 2],
        known: &mut Option<Known>,
    ) {
        let apart =
            |one: usize, other: usize| problem.distance(population.genome(one), population.genome(other));
        let straight = apart(parents[0], children[0]) + apart(parents[1], children[1]);
        let crossed = apart(parents[0], children[1]) + apart(parents[1], children[0]);
        let rivals = if straight <= crossed { children } else { [children[1], children[0]] };
        for (parent, child) in parents.into_iter().zip(rivals) {
            let is_new = |known: &mut Known| known.add(population.genome(child));
            let [born, before] = [child, parent].map(|one| population.fitness()[one]);
            let wins = if self.strict { born > before } else { born >= before };
            if wins && known.as_mut().is_none_or(is_new) {
                population.copy_within(child, parent);
            }
        }
    }

    /// All individuals in random order, but for the mates: neighbours make a pair. Of an odd number one stays alone.
    fn pairing<P: Problem>(&self, coming: &Coming<'_, P>, population: &Population<P::Gene>) -> Vec<u32> {
        let mut order: Vec<u32> = (0..population.len() as u32).collect();
        coming.key.stream(0, Purpose::Pairing).shuffle(&mut order);
        if self.mates > 1 {
            let genome = |one: u32| population.genome(one as usize);
            let apart = |one, other| coming.problem.distance(genome(one), genome(other));
            for couple in (0..order.len().saturating_sub(1)).step_by(2) {
                let last = order.len().min(couple + 1 + self.mates as usize);
                let nearest = nearest(&order[couple + 1..last], |other| apart(order[couple], other));
                order.swap(couple + 1, couple + 1 + nearest);
            }
        }
        order.truncate(population.len() & !1);
        order
    }
}

/// The place of the nearest, of several as near the first.
fn nearest(candidates: &[u32], apart: impl Fn(u32) -> f64) -> usize {
    let distances = candidates.iter().map(|one| apart(*one)).enumerate();
    distances.min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(place, _)| place)
}

/// The genomes that have a place, by names of 64 bits.
struct Known(BTreeSet<u64>);

impl Known {
    fn first<G: Gene>(population: &Population<G>, count: usize) -> Self {
        Self((0..count).map(|index| name(population.genome(index))).collect())
    }

    /// Whether a genome was not known before.
    fn add<G: Gene>(&mut self, genome: &[G]) -> bool {
        self.0.insert(name(genome))
    }
}

fn name<G: Gene>(genome: &[G]) -> u64 {
    genome.iter().fold(0, |name, gene| mix(name ^ gene.number().to_bits()).wrapping_add(1))
}
