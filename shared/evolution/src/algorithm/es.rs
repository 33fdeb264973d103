//! The evolution strategy with self-adaptive mutation: (mu + lambda) or (mu, lambda), with or without recombination.

use super::{Coming, Spare};
use crate::gene::Gene;
use crate::population::Population;
use crate::problem::Problem;
use crate::random::{Purpose, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An evolution strategy: each child is a mutated parent, every gene with a step size of its own that is inherited and
/// mutated too; the best of parents and children, or of the children alone, stay.
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
    /// Whether a child has one parent, two, or all.
    pub recombination: Recombination,
    /// Which individuals survive.
    #[schemars(extend("default" = "plus"))]
    #[serde(skip_serializing_if = "is_default")]
    pub survival: Survival,
    /// Create children in pairs with opposite steps; shows sooner which direction is better.
    #[schemars(extend("default" = false))]
    #[serde(skip_serializing_if = "is_default")]
    pub mirrored: bool,
    /// How much each parent counts in the mean of all, with `recombination = "intermediate"`.
    #[schemars(extend("default" = "equal"))]
    #[serde(skip_serializing_if = "is_default")]
    pub weighting: Weighting,
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
            survival: Survival::Plus,
            mirrored: false,
            weighting: Weighting::Equal,
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
    /// Each gene is the mean of all parents, and step sizes their geometric mean: this averages out chance, where fitness
    /// is noisy and there are many genes. The first child is the mean itself. Founders have nothing in common, so the first
    /// generation has one parent, the best founder.
    Intermediate,
}

/// Which individuals survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Survival {
    /// The best of parents and children.
    #[default]
    Plus,
    /// The best of the children; there are at least as many as parents.
    Comma,
}

/// How much each parent counts in the mean of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// As much as any other.
    #[default]
    Equal,
    /// By rank: ln(parents + 1/2) - ln(rank), as in CMA-ES.
    Rank,
}

impl Weighting {
    /// The shares of this number of parents, the best first.
    pub(super) fn shares(self, parents: usize) -> Vec<f64> {
        let weight = |place: usize| match self {
            Self::Equal => 1.0,
            Self::Rank => libm::log(parents as f64 + 0.5) - libm::log((place + 1) as f64),
        };
        let weights: Vec<f64> = (0..parents).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }
}

/// What was always so is not written: experiments keep their digests.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
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
        if self.survival == Survival::Comma {
            population.resize(0);
        }
        let first = population.len();
        population.append(&spare.next);
        coming.judge(population, first..population.len());
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
        let intermediate = self.recombination == Recombination::Intermediate;
        let centre = intermediate.then(|| centre(parents, coming.generation, self.weighting));
        let parents = centre.as_ref().unwrap_or(parents);
        for child in 0..children.len() {
            // The mean itself has no partner.
            let single = usize::from(intermediate);
            let twin = self.mirrored && child > single && (child - single) % 2 == 1;
            let mut stream = coming.key.stream(if twin { child - 1 } else { child }, Purpose::Variation);
            let mother = if twin { child - 1 } else { child } % parents.len();
            children.copy(child, parents, mother, self.sigma as f32);
            if intermediate && child == 0 {
                continue;
            }
            let (genome, steps) = children.genome_and_steps_mut(child);
            let steps = steps.expect("a population of the evolution strategy carries step sizes");
            if self.recombination == Recombination::Discrete {
                let father = stream.below(parents.len());
                recombine(genome, steps, parents, father, &mut stream);
            }
            self.mutate(genome, steps, parents.shape().domain, twin, &mut stream);
            coming.problem.inherit(parents.genome(mother), genome, &mut stream);
        }
    }

    /// Steps from where a child stands; the twin of another steps the other way.
    fn mutate<G: Gene>(
        &self,
        genome: &mut [G],
        steps: &mut [f32],
        domain: G::Domain,
        twin: bool,
        stream: &mut Stream,
    ) {
        let way = if twin { -1.0 } else { 1.0 };
        let default_tau = || 1.0 / (2.0 * (genome.len() as f64).sqrt()).sqrt();
        let tau = self.tau.unwrap_or_else(default_tau);
        let common = if self.tau_common > 0.0 { self.tau_common * stream.gaussian() } else { 0.0 };
        for (gene, step) in genome.iter_mut().zip(steps) {
            let grown = f64::from(*step) * libm::exp(common + tau * stream.gaussian());
            let grown = grown.clamp(self.sigma_min.clamp(STEPS.0, STEPS.1), STEPS.1);
            *step = grown as f32;
            *gene = gene.stepped(domain, way * (grown * stream.gaussian()));
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

/// Where all parents' children step from, as a population of one.
fn centre<G: Gene>(parents: &Population<G>, generation: u64, weighting: Weighting) -> Population<G> {
    let mut centre = Population::empty_like(parents);
    if generation == 1 {
        centre.push_copy(parents, parents.leaders(1)[0] as usize, 0.0);
        return centre;
    }
    centre.resize(1);
    let domain = parents.shape().domain;
    let (genome, steps) = centre.genome_and_steps_mut(0);
    let means = means(parents, weighting, |parent, at| parents.genome(parent)[at].number());
    for (gene, mean) in genome.iter_mut().zip(means) {
        *gene = G::default().stepped(domain, mean);
    }
    if let Some(steps) = steps {
        let logarithm =
            |parent, at: usize| parents.steps(parent).map_or(0.0, |theirs| libm::log(f64::from(theirs[at])));
        for (step, mean) in steps.iter_mut().zip(self::means(parents, weighting, logarithm)) {
            *step = libm::exp(mean) as f32;
        }
    }
    centre
}

/// The means of something of each gene over all parents, added up in their order.
fn means<G: Gene>(
    parents: &Population<G>,
    weighting: Weighting,
    value: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut sums = vec![0.0; parents.shape().length];
    for (parent, share) in weighting.shares(parents.len()).into_iter().enumerate() {
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum += match weighting {
                Weighting::Equal => value(parent, at),
                Weighting::Rank => share * value(parent, at),
            };
        }
    }
    match weighting {
        Weighting::Equal => sums.into_iter().map(|sum| sum / parents.len() as f64).collect(),
        Weighting::Rank => sums,
    }
}

/// Keeps the best, in the order of their rank; parents before children of equal fitness.
pub(super) fn survive<G: Gene>(population: &mut Population<G>, count: usize) {
    let mut best = Population::empty_like(population);
    for leader in population.leaders(count) {
        best.push_copy(population, leader as usize, 0.0);
    }
    *population = best;
}
