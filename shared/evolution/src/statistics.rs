//! What is written down about a generation, an arrival of migrants, an epoch.

use crate::gene::Gene;
use crate::population::Population;
use bincode::{Decode, Encode};
use std::borrow::Cow;

/// A sum in eight interleaved partial sums, folded in a fixed order: fast, and the same whatever the vector width.
pub fn sum(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut lanes = [0.0; 8];
    for (at, number) in numbers.into_iter().enumerate() {
        lanes[at % 8] += number;
    }
    fold(lanes)
}

/// [`sum`] of what is made of each number, to the same bits: as vectors, because the numbers stand side by side.
fn sum_of(numbers: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let mut rows = numbers.chunks_exact(8);
    for row in &mut rows {
        lanes.iter_mut().zip(row).for_each(|(lane, number)| *lane += of(*number));
    }
    lanes.iter_mut().zip(rows.remainder()).for_each(|(lane, number)| *lane += of(*number));
    fold(lanes)
}

fn fold([a, b, c, d, e, f, g, h]: [f64; 8]) -> f64 {
    ((a + b) + (c + d)) + ((e + f) + (g + h))
}

/// A population's fitness after one generation.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct GenerationRow {
    /// The generation, counted from the start of the run; 0 is the founding population.
    pub generation: u64,
    /// Evaluations of this island since the start of the run.
    pub evaluations: u64,
    /// The best fitness in the population.
    pub best: f64,
    /// The mean fitness.
    pub mean: f64,
    /// The standard deviation of fitness.
    pub deviation: f64,
}

impl GenerationRow {
    /// Describes a population. Individuals of infinite fitness (those that could not be judged) count in nothing
    /// but `best`.
    pub fn new<G: Gene>(population: &Population<G>, generation: u64, evaluations: u64) -> Self {
        let fitness = population.fitness();
        let best = fitness.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let finite: Cow<'_, [f64]> = if fitness.iter().fold(true, |all, f| all & f.is_finite()) {
            fitness.into()
        } else {
            fitness.iter().copied().filter(|f| f.is_finite()).collect()
        };
        let count = finite.len().max(1) as f64;
        let mean = sum_of(&finite, |f| f) / count;
        let deviation = (sum_of(&finite, |f| (f - mean) * (f - mean)) / count).sqrt();
        Self { generation, evaluations, best, mean, deviation }
    }
}

/// What became of the migrants that one island sent for one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Arrival {
    /// The island they came from.
    pub from: u32,
    /// The epoch at whose end they left.
    pub epoch: u64,
    /// How many arrived.
    pub offered: u32,
    /// How many found a place in the population.
    pub accepted: u32,
    /// How many were better than the best of the island as it was before.
    pub better_than_best: u32,
}

/// What is written down about one epoch of one island.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct EpochStatistics {
    /// Rows of some generations, always of the last one; at most [`ROWS`].
    pub rows: Vec<GenerationRow>,
    /// The migrants that arrived at the start of the epoch.
    pub arrivals: Vec<Arrival>,
    /// How different the individuals were at the end: see [`diversity`].
    pub diversity: f64,
    /// Evaluations whose fitness was not a number.
    pub unjudgeable: u64,
}

/// The most rows an epoch keeps: a long one keeps every second, third, … generation.
pub const ROWS: u64 = 32;

/// The individuals that [`diversity`] looks at, evenly spread over the population.
const SAMPLE: usize = 64;

/// The mean distance between two neighbours of a ring of up to 64 individuals, for each gene: 0 when all are alike.
pub fn diversity<G: Gene>(population: &Population<G>) -> f64 {
    let count = population.len().min(SAMPLE);
    if count < 2 {
        return 0.0;
    }
    let member = |at: usize| population.genome(at % count * population.len() / count);
    let distances = (0..count).map(|at| G::distance(member(at), member(at + 1)));
    sum(distances) / (count * population.shape().length) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_right(numbers in proptest::collection::vec(-1000i32..1000, 0..100)) {
            let expected: i32 = numbers.iter().sum();
            prop_assert_eq!(sum(numbers.into_iter().map(f64::from)), f64::from(expected));
        }
    }
}
