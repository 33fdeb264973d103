//! Small problems to state laws on.

use evolution::gene::{Alphabet, Interval, Shape};
use evolution::population::{Cost, Population};
use evolution::problem::{Axis, Judging, Problem};
use evolution::statistics;

/// Symbols whose fitness is their weighted sum modulo a prime: rugged, with ties, and cheap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rugged {
    pub(crate) length: usize,
    pub(crate) symbols: u16,
    /// What an evaluation is said to cost, which decides how work is split.
    pub(crate) nanoseconds: u64,
}

impl Rugged {
    pub(crate) const SMALL: Self = Self { length: 12, symbols: 4, nanoseconds: 1 };

    pub(crate) fn fitness(genome: &[u8]) -> f64 {
        let sum: u64 = (1..).zip(genome).map(|(weight, &gene)| weight * weight * u64::from(gene)).sum();
        (sum % 97) as f64
    }
}

impl Problem for Rugged {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.length, domain: Alphabet(self.symbols) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| Self::fitness(genome))
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: self.nanoseconds }
    }
}

/// A bowl over real numbers, described along its first two dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bowl {
    pub(crate) dimensions: usize,
    pub(crate) nanoseconds: u64,
}

impl Bowl {
    pub(crate) const EDGE: f64 = 3.0;

    pub(crate) fn fitness(genome: &[f64]) -> f64 {
        -statistics::sum(genome.iter().map(|x| (x - 1.0) * (x - 1.0)))
    }
}

impl Problem for Bowl {
    type Gene = f64;

    fn shape(&self) -> Shape<f64> {
        Shape { length: self.dimensions, domain: Interval { low: -Self::EDGE, high: Self::EDGE } }
    }

    fn judge(&self, population: &mut Population<f64>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, descriptors| {
            for (descriptor, x) in descriptors.iter_mut().zip(genome.iter()) {
                *descriptor = *x as f32;
            }
            Self::fitness(genome)
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: self.nanoseconds }
    }

    fn axes(&self) -> Vec<Axis> {
        let axis = |name| Axis { name, low: -Self::EDGE as f32, high: Self::EDGE as f32 };
        ["x0", "x1"].into_iter().take(self.dimensions).map(axis).collect()
    }
}

/// Fitness has no meaning alone: it is the number of others with a smaller sum of genes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest;

impl Contest {
    pub(crate) fn fitness(everybody: &[Vec<u8>]) -> Vec<f64> {
        let sums: Vec<u32> =
            everybody.iter().map(|genome| genome.iter().map(|&gene| u32::from(gene)).sum()).collect();
        sums.iter().map(|sum| sums.iter().filter(|other| *other < sum).count() as f64).collect()
    }
}

impl Problem for Contest {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: 6, domain: Alphabet(9) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        assert_eq!(judging.fresh, 0..population.len(), "everybody plays");
        let fitness = Self::fitness(&genomes(population));
        population.fitness_mut().copy_from_slice(&fitness);
        population.len() as u64
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 10 }
    }

    fn absolute(&self) -> bool {
        false
    }
}

/// Genomes that begin with a zero cannot be judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holes;

impl Problem for Holes {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Rugged::SMALL.shape()
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| {
            if genome[0] == 0 { f64::NAN } else { Rugged::fitness(genome) }
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 10 }
    }
}

/// The genomes of a population, in order.
pub(crate) fn genomes<G: evolution::gene::Gene>(population: &Population<G>) -> Vec<Vec<G>> {
    (0..population.len()).map(|index| population.genome(index).to_vec()).collect()
}
