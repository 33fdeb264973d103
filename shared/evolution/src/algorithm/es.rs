//! The (mu + lambda) evolution strategy with self-adaptive mutation.

use super::{Coming, Spare};
use crate::gene::Gene;
use crate::population::Population;
use crate::problem::Problem;
use crate::random::{Purpose, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A (mu + lambda) evolution strategy: each child is a mutated parent, every gene with a step size of its own that
/// is inherited and mutated too; the best of parents and children stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Es {
    /// Individuals on an island (mu).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub parents: u32,
    /// Children in a generation (lambda).
    #[schemars(range(min = 1, max = 10_000_000))]
    pub offspring: u32,
    /// The step size to start with.
    #[schemars(range(min = 0.0, max = 1e30))]
    pub sigma: f64,
    /// The smallest step size.
    #[schemars(range(min = 0.0, max = 1e30))]
    pub sigma_min: f64,
    /// How strongly each step size changes; 1 / sqrt(2 sqrt(n)) for n genes unless given.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub tau: Option<f64>,
    /// How strongly all step sizes of an individual change together.
    #[schemars(range(min = 0.0, max = 10.0))]
    pub tau_common: f64,
    /// Whether a child has one parent or two.
    pub recombination: Recombination,
}

impl Default for Es {
    fn default() -> Self {
        Self {
            parents: 15,
            offspring: 15,
            sigma: 0.05,
            sigma_min: 1e-12,
            tau: None,
            tau_common: 0.0,
            recombination: Recombination::None,
        }
    }
}

/// The smallest and the largest step size that a single-precision number holds with all of its digits, the square of
/// the largest included.
const STEPS: (f64, f64) = (f32::MIN_POSITIVE as f64, 1e30);

/// How a child of the evolution strategy comes by its genes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recombination {
    /// From one parent.
    None,
    /// Each gene from one of two parents; step sizes are the geometric mean of both.
    Discrete,
}

impl Es {
    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        population: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
    ) {
        let parents = population.len();
        self.bear(&coming, population, &mut spare.next);
        population.resize(parents + spare.next.len());
        for child in 0..spare.next.len() {
            population.copy(parents + child, &spare.next, child, 0.0);
        }
        coming.judge(population, parents..population.len());
        survive(population, parents);
    }

    /// Fills `children` with mutated copies; parent after parent has a child, so that each has its share.
    fn bear<P: Problem>(
        &self,
        coming: &Coming<'_, P>,
        parents: &Population<P::Gene>,
        children: &mut Population<P::Gene>,
    ) {
        children.resize(self.offspring as usize);
        for child in 0..children.len() {
            let mut stream = coming.key.stream(child, Purpose::Variation);
            let mother = child % parents.len();
            children.copy(child, parents, mother, self.sigma as f32);
            let (genome, steps) = children.genome_and_steps_mut(child);
            let steps = steps.expect("a population of the evolution strategy carries step sizes");
            if self.recombination == Recombination::Discrete {
                let father = stream.below(parents.len());
                recombine(genome, steps, parents, father, &mut stream);
            }
            self.mutate(genome, steps, parents.shape().domain, &mut stream);
            coming.problem.inherit(parents.genome(mother), genome, &mut stream);
        }
    }

    fn mutate<G: Gene>(&self, genome: &mut [G], steps: &mut [f32], domain: G::Domain, stream: &mut Stream) {
        let default_tau = || 1.0 / (2.0 * (genome.len() as f64).sqrt()).sqrt();
        let tau = self.tau.unwrap_or_else(default_tau);
        let common = if self.tau_common > 0.0 { self.tau_common * stream.gaussian() } else { 0.0 };
        for (gene, step) in genome.iter_mut().zip(steps) {
            let grown = f64::from(*step) * libm::exp(common + tau * stream.gaussian());
            let grown = grown.clamp(self.sigma_min.clamp(STEPS.0, STEPS.1), STEPS.1);
            *step = grown as f32;
            *gene = gene.stepped(domain, grown * stream.gaussian());
        }
    }
}

fn recombine<G: Gene>(
    genome: &mut [G],
    steps: &mut [f32],
    parents: &Population<G>,
    father: usize,
    stream: &mut Stream,
) {
    let theirs = parents.steps(father).expect("a population of the evolution strategy carries step sizes");
    for (at, (gene, step)) in genome.iter_mut().zip(steps).enumerate() {
        if stream.bits() >> 63 == 1 {
            *gene = parents.genome(father)[at];
        }
        *step = (f64::from(*step) * f64::from(theirs[at])).sqrt() as f32;
    }
}

/// Keeps the best, in the order of their rank; parents before children of equal fitness.
fn survive<G: Gene>(population: &mut Population<G>, count: usize) {
    let mut best = Population::empty_like(population);
    for leader in population.leaders(count) {
        best.push_copy(population, leader as usize, 0.0);
    }
    *population = best;
}
