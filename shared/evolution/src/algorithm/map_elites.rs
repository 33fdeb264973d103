//! MAP-Elites (Mouret and Clune, 2015).

use super::breeding::Breeding;
use super::{Coming, Crossover, Mutation, Spare};
use crate::gene::Gene;
use crate::population::Population;
use crate::problem::{Axis, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MAP-Elites: a grid over the problem's axes holds the best individual found for each cell. Islands share their
/// archives by migration: an immigrant enters where it is the first or better than who is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MapElites {
    /// Number of bins along each axis of the problem.
    #[schemars(length(min = 1, max = 8), inner(range(min = 1, max = 100_000)))]
    pub bins: Vec<u32>,
    /// Random individuals to begin with.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub founders: u32,
    /// Children in a generation.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub batch: u32,
    /// How two parents' genes are mixed.
    pub crossover: Crossover,
    /// Mutation.
    pub mutation: Mutation,
}

impl Default for MapElites {
    fn default() -> Self {
        Self {
            bins: vec![20, 20],
            founders: 200,
            batch: 100,
            crossover: Crossover::default(),
            mutation: Mutation::default(),
        }
    }
}

impl MapElites {
    /// How many cells the grid has.
    pub fn cells(&self) -> u64 {
        self.bins.iter().fold(1, |cells, &bins| cells.saturating_mul(u64::from(bins)))
    }

    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        archive: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
    ) {
        let Spare { next, windows } = spare;
        let breeding = Breeding::new(&coming, windows, &self.crossover, &self.mutation);

        let born = self.batch as usize;
        next.resize(born);
        breeding.breed(archive, next, 0..born, |_, stream| {
            (stream.below(archive.len()), stream.below(archive.len()))
        });
        coming.judge(next, 0..born);
        self.enter(&coming.problem.axes(), archive, next);
    }

    /// Lets newcomers into the archive, in the order of their indices. Answers which of them it took.
    pub(crate) fn enter<G: Gene>(
        &self,
        axes: &[Axis],
        archive: &mut Population<G>,
        newcomers: &Population<G>,
    ) -> Vec<bool> {
        let mut tenants: Vec<(u64, usize)> =
            (0..archive.len()).map(|index| (self.cell(axes, archive.descriptors(index)), index)).collect();
        tenants.sort_unstable();
        (0..newcomers.len())
            .map(|newcomer| {
                let cell = self.cell(axes, newcomers.descriptors(newcomer));
                match tenants.binary_search_by_key(&cell, |&(cell, _)| cell) {
                    Ok(at) => {
                        let tenant = tenants[at].1;
                        let better = newcomers.fitness()[newcomer] > archive.fitness()[tenant];
                        if better {
                            archive.copy(tenant, newcomers, newcomer, 0.0);
                        }
                        better
                    }
                    Err(at) => {
                        tenants.insert(at, (cell, archive.len()));
                        archive.push_copy(newcomers, newcomer, 0.0);
                        true
                    }
                }
            })
            .collect()
    }

    /// Whether no two individuals have the same cell.
    pub(crate) fn is_settled<G: Gene>(&self, axes: &[Axis], archive: &Population<G>) -> bool {
        let mut cells: Vec<u64> =
            (0..archive.len()).map(|index| self.cell(axes, archive.descriptors(index))).collect();
        cells.sort_unstable();
        cells.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The archive that a founding population leaves behind.
    pub(crate) fn settle<G: Gene>(&self, axes: &[Axis], founders: &Population<G>) -> Population<G> {
        let mut archive = Population::empty_like(founders);
        self.enter(axes, &mut archive, founders);
        archive
    }

    /// The cell of an individual. What lies outside an axis belongs to its first or last bin.
    pub fn cell(&self, axes: &[Axis], descriptors: &[f32]) -> u64 {
        self.bins.iter().zip(axes).zip(descriptors).fold(0, |cell, ((&bins, axis), &value)| {
            let place = (value - axis.low) / (axis.high - axis.low) * bins as f32;
            let bin = (place.max(0.0) as u64).min(u64::from(bins) - 1);
            cell * u64::from(bins) + bin
        })
    }
}
