//! Covariance matrix adaptation for thousands of genes: children are drawn around a mean that moves, and the shape of the
//! distribution follows the steps that were worth taking.
//!
//! Two models of that shape, both linear in the number of genes: a variance for each gene (sep-CMA-ES; Ros and Hansen,
//! 2008), and a few directions that remember the path of the mean at different paces (LM-MA-ES; Loshchilov, Glasmachers and
//! Beyer, 2017). The step size follows the length of the path (cumulative step-size adaptation).

use super::{Coming, Spare, es};
use crate::gene::Gene;
use crate::population::Population;
use crate::problem::Problem;
use crate::random::Purpose;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A strategy that adapts the distribution of its children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cma {
    /// Individuals on an island (mu): the best children of a generation, from which the next mean is made.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub parents: u32,
    /// Children in a generation (lambda); at least as many as parents, usually twice as many.
    #[schemars(range(min = 2, max = 10_000_000))]
    pub offspring: u32,
    /// The step size to start with.
    #[schemars(range(min = 0.0, max = 1e30))]
    pub sigma: f64,
}

impl Default for Cma {
    fn default() -> Self {
        Self { parents: 12, offspring: 24, sigma: 0.05 }
    }
}

/// How the shape of the distribution is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// A variance for each gene.
    Separable,
    /// Directions of limited memory.
    LimitedMemory,
}

/// Step sizes outside of these bounds are of no use to genes of single precision.
const STEPS: (f64, f64) = (1e-30, 1e30);

impl Model {
    /// How many vectors as long as the genome describe the distribution beside mean and path.
    fn vectors(self, length: usize) -> usize {
        match self {
            // The path of the covariance, and the variances.
            Self::Separable => 2,
            Self::LimitedMemory => 4 + (3.0 * libm::log(length as f64)) as usize,
        }
    }

    /// The bytes of an [`Adaptation`].
    pub(crate) fn bytes(self, length: usize, parents: u32) -> u64 {
        8 * (2 + (2 + self.vectors(length) as u64) * length as u64 + u64::from(parents))
    }
}

/// What a strategy remembers between two generations.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adaptation {
    model: Model,
    /// Generations so far.
    age: u64,
    sigma: f64,
    mean: Vec<f64>,
    /// The path of the mean, in units of the distribution.
    path: Vec<f64>,
    /// The vectors of the model, one after the other.
    vectors: Vec<f64>,
    /// Fingerprints of the individuals that the last generation left behind. Any others are immigrants.
    residents: Vec<u64>,
}

impl Adaptation {
    /// That of an island which has just been founded.
    pub(crate) fn new(model: Model, cma: &Cma, length: usize) -> Self {
        let mut vectors = vec![0.0; model.vectors(length) * length];
        if model == Model::Separable {
            vectors[length..].fill(1.0);
        }
        Self {
            model,
            age: 0,
            sigma: cma.sigma.clamp(STEPS.0, STEPS.1),
            mean: vec![0.0; length],
            path: vec![0.0; length],
            vectors,
            residents: vec![0; cma.parents as usize],
        }
    }

    /// Reads it back from exactly the bytes that [`write`](Self::write) wrote; they may come from another process.
    pub(crate) fn read(model: Model, cma: &Cma, length: usize, bytes: &[u8]) -> Option<Self> {
        let mut adaptation = Self::new(model, cma, length);
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || bytes.len() as u64 != model.bytes(length, cma.parents) {
            return None;
        }
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        adaptation.age = words.next()?;
        adaptation.sigma = f64::from_bits(words.next()?);
        let Self { mean, path, vectors, .. } = &mut adaptation;
        for number in mean.iter_mut().chain(path).chain(vectors) {
            *number = f64::from_bits(words.next()?);
        }
        for resident in &mut adaptation.residents {
            *resident = words.next()?;
        }
        adaptation.is_sound().then_some(adaptation)
    }

    /// Whether all numbers are such that they can be calculated with.
    fn is_sound(&self) -> bool {
        let Self { model, mean, path, vectors, .. } = self;
        let is_variance = |value: &f64| (STEPS.0..=STEPS.1).contains(value);
        (STEPS.0..=STEPS.1).contains(&self.sigma)
            && mean.iter().chain(path).chain(vectors).all(|number| number.is_finite())
            && (*model != Model::Separable || vectors[mean.len()..].iter().all(is_variance))
    }

    /// Appends all of it to a state.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.age.to_le_bytes());
        for number in [self.sigma].iter().chain(&self.mean).chain(&self.path).chain(&self.vectors) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.residents.iter().flat_map(|resident| resident.to_le_bytes()));
    }

    /// How much each direction counts in the transformation, and how fast it is learnt.
    fn paces(&self, direction: usize, births: u32) -> (f64, f64) {
        let (length, power) = (self.mean.len() as f64, direction as i32);
        let counts = 1.0 / (libm::pow(1.5, f64::from(power)) * length);
        let learns = f64::from(births) / (libm::pow(4.0, f64::from(power)) * length);
        (counts.min(0.5), learns.min(1.0))
    }

    /// How many directions have learnt anything.
    fn directions(&self) -> usize {
        let length = self.mean.len();
        self.model.vectors(length).min(usize::try_from(self.age).unwrap_or(usize::MAX))
    }

    /// Turns a vector of the standard normal distribution into one of the model's.
    fn shape(&self, vector: &mut [f64], births: u32) {
        let length = vector.len();
        match self.model {
            Model::Separable => {
                for (value, variance) in vector.iter_mut().zip(&self.vectors[length..]) {
                    *value *= variance.sqrt();
                }
            }
            Model::LimitedMemory => {
                for (number, direction) in self.vectors.chunks(length).take(self.directions()).enumerate() {
                    let (counts, _) = self.paces(number, births);
                    let along = counts * dot(direction, vector);
                    for (value, part) in vector.iter_mut().zip(direction) {
                        *value = (1.0 - counts) * *value + along * part;
                    }
                }
            }
        }
    }

    /// The inverse of [`shape`](Self::shape).
    fn unshape(&self, vector: &mut [f64], births: u32) {
        let length = vector.len();
        match self.model {
            Model::Separable => {
                for (value, variance) in vector.iter_mut().zip(&self.vectors[length..]) {
                    *value /= variance.sqrt();
                }
            }
            Model::LimitedMemory => {
                let last = self.directions();
                for (number, direction) in self.vectors.chunks(length).take(last).enumerate().rev() {
                    // ((1 - c) I + c m m')^-1, by Sherman and Morrison.
                    let (counts, _) = self.paces(number, births);
                    let along =
                        counts * dot(direction, vector) / (1.0 - counts + counts * dot(direction, direction));
                    for (value, part) in vector.iter_mut().zip(direction) {
                        *value = (*value - along * part) / (1.0 - counts);
                    }
                }
            }
        }
    }

    /// Moves the mean to where the best stand, the best first, and learns from their steps. Steps longer than those that are
    /// drawn (of immigrants, and of individuals that learnt) are shortened (Hansen, 2011).
    fn learn<G: Gene>(&mut self, population: &Population<G>, best: &[u32], births: u32) {
        let length = self.mean.len();
        let n = length as f64;
        let weights = es::Weighting::Rank.shares(best.len());
        let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let longest = n.sqrt() + 2.0 * n / (n + 2.0);
        let (mut step, mut normal, mut squares) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
        for (individual, weight) in best.iter().zip(&weights) {
            let genes = population.genome(*individual as usize).iter();
            let taken: Vec<f64> =
                genes.zip(&self.mean).map(|(gene, mean)| (gene.number() - mean) / self.sigma).collect();
            let mut drawn = taken.clone();
            self.unshape(&mut drawn, births);
            let shortened = (longest / dot(&drawn, &drawn).sqrt()).min(1.0);
            for at in 0..length {
                let taken = shortened * taken[at];
                step[at] += weight * taken;
                normal[at] += weight * shortened * drawn[at];
                squares[at] += weight * taken * taken;
            }
        }
        for (mean, step) in self.mean.iter_mut().zip(&step) {
            *mean += self.sigma * step;
        }
        self.age = self.age.saturating_add(1);
        match self.model {
            Model::Separable => self.learn_variances(&step, &normal, &squares, effective),
            Model::LimitedMemory => self.learn_directions(&normal, effective, births),
        }
        self.sigma = self.sigma.clamp(STEPS.0, STEPS.1);
    }

    fn learn_variances(&mut self, step: &[f64], normal: &[f64], squares: &[f64], effective: f64) {
        let n = step.len() as f64;
        let pace = (effective + 2.0) / (n + effective + 5.0);
        let damping = 1.0 + 2.0 * (((effective - 1.0) / (n + 1.0)).max(0.0).sqrt() - 1.0).max(0.0) + pace;
        let expected = n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n));
        walk(&mut self.path, normal, pace, effective);
        let walked = dot(&self.path, &self.path).sqrt();
        let settled = (1.0 - libm::pow(1.0 - pace, 2.0 * self.age as f64)).sqrt();
        let is_short = walked / settled < (1.4 + 2.0 / (n + 1.0)) * expected;

        let slowly = (4.0 + effective / n) / (n + 4.0 + 2.0 * effective / n);
        // With n in place of n² / 2 numbers to learn, it may learn faster.
        let faster = (n + 2.0) / 3.0;
        let by_path = (faster * 2.0 / ((n + 1.3) * (n + 1.3) + effective)).min(1.0);
        let by_rank =
            faster * 2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0) * (n + 2.0) + effective);
        let by_rank = by_rank.clamp(0.0, 1.0 - by_path);
        let (path, variances) = self.vectors.split_at_mut(step.len());
        if is_short {
            walk(path, step, slowly, effective);
        } else {
            for value in path.iter_mut() {
                *value *= 1.0 - slowly;
            }
        }
        // What is lost while the path stands still.
        let kept = if is_short { 0.0 } else { slowly * (2.0 - slowly) };
        for ((variance, path), square) in variances.iter_mut().zip(path).zip(squares) {
            let learnt = by_path * (*path * *path + kept * *variance) + by_rank * square;
            *variance = ((1.0 - by_path - by_rank) * *variance + learnt).clamp(STEPS.0, STEPS.1);
        }
        self.sigma *= libm::exp((pace / damping * (walked / expected - 1.0)).min(1.0));
    }

    fn learn_directions(&mut self, normal: &[f64], effective: f64, births: u32) {
        let n = normal.len() as f64;
        let pace = (2.0 * f64::from(births) / n).min(1.0);
        walk(&mut self.path, normal, pace, effective);
        for number in 0..self.model.vectors(normal.len()) {
            let (_, learns) = self.paces(number, births);
            let direction = &mut self.vectors[number * normal.len()..][..normal.len()];
            walk(direction, normal, learns, effective);
        }
        let walked = dot(&self.path, &self.path);
        self.sigma *= libm::exp((pace / 2.0 * (walked / n - 1.0)).min(1.0));
    }
}

/// Fades a path and adds a step, so that random steps keep its length.
fn walk(path: &mut [f64], step: &[f64], pace: f64, effective: f64) {
    let added = (pace * (2.0 - pace) * effective).sqrt();
    for (value, step) in path.iter_mut().zip(step) {
        *value = (1.0 - pace) * *value + added * step;
    }
}

/// The sum of products, added up in order.
fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// A fingerprint of a genome.
fn fingerprint<G: Gene>(genome: &[G]) -> u64 {
    let mix = |hash: u64, gene: &G| {
        (hash ^ gene.number().to_bits()).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    };
    genome.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Cma {
    pub(crate) fn generation<P: Problem>(
        &self,
        mut coming: Coming<'_, P>,
        population: &mut Population<P::Gene>,
        spare: &mut Spare<P>,
        adaptation: &mut Adaptation,
    ) {
        let candidates = &mut spare.next;
        candidates.resize(0);
        if adaptation.age == 0 {
            // Founders have nothing in common: the mean of the first generation is the best of them.
            let best = population.genome(population.leaders(1)[0] as usize);
            for (mean, gene) in adaptation.mean.iter_mut().zip(best) {
                *mean = gene.number();
            }
        } else {
            for resident in 0..population.len() {
                if !adaptation.residents.contains(&fingerprint(population.genome(resident))) {
                    candidates.push_copy(population, resident, 0.0);
                }
            }
        }
        let arrived = candidates.len();
        self.bear(&coming, adaptation, candidates);
        std::mem::swap(population, candidates);
        coming.judge(population, arrived..population.len());
        let best = population.leaders(self.parents as usize);
        adaptation.learn(population, &best, self.offspring);
        if !adaptation.is_sound() {
            // Numbers have become too large to be calculated with: it begins again where the best are.
            *adaptation = Adaptation::new(adaptation.model, self, adaptation.mean.len());
        }
        es::survive(population, self.parents as usize);
        for (place, resident) in adaptation.residents.iter_mut().enumerate() {
            *resident = fingerprint(population.genome(place));
        }
    }

    /// Draws children around the mean, behind the candidates that are there.
    fn bear<P: Problem>(
        &self,
        coming: &Coming<'_, P>,
        adaptation: &Adaptation,
        candidates: &mut Population<P::Gene>,
    ) {
        let first = candidates.len();
        candidates.resize(first + self.offspring as usize);
        let domain = candidates.shape().domain;
        let at = |place: f64| P::Gene::default().stepped(domain, place);
        let centre: Vec<P::Gene> = adaptation.mean.iter().map(|mean| at(*mean)).collect();
        let mut step = vec![0.0; adaptation.mean.len()];
        for child in 0..self.offspring as usize {
            let mut stream = coming.key.stream(child, Purpose::Variation);
            step.fill_with(|| stream.gaussian());
            adaptation.shape(&mut step, self.offspring);
            let genome = candidates.genome_mut(first + child);
            for ((gene, mean), step) in genome.iter_mut().zip(&adaptation.mean).zip(&step) {
                *gene = at(mean + adaptation.sigma * step);
            }
            coming.problem.inherit(&centre, genome, &mut stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    fn learnt(model: Model, length: usize) -> Adaptation {
        let cma = Cma { parents: 4, offspring: 8, sigma: 0.3 };
        let mut adaptation = Adaptation::new(model, &cma, length);
        let mut stream = Key::new(1, 2, 3).stream(0, Purpose::Judging);
        adaptation.age = 9;
        for number in adaptation.vectors.iter_mut().chain(&mut adaptation.mean).chain(&mut adaptation.path) {
            *number = stream.gaussian().abs() + 0.1;
        }
        adaptation
    }

    #[test]
    fn what_is_shaped_can_be_unshaped() {
        for model in [Model::Separable, Model::LimitedMemory] {
            let adaptation = learnt(model, 40);
            let mut stream = Key::new(4, 5, 6).stream(0, Purpose::Judging);
            let normal: Vec<f64> = (0..40).map(|_| stream.gaussian()).collect();
            let mut vector = normal.clone();
            adaptation.shape(&mut vector, 8);
            assert_ne!(vector, normal);
            adaptation.unshape(&mut vector, 8);
            let furthest =
                vector.iter().zip(&normal).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
            assert!(furthest < 1e-12, "{model:?}: {furthest}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let cma = Cma { parents: 4, offspring: 8, sigma: 0.3 };
        for model in [Model::Separable, Model::LimitedMemory] {
            let adaptation = learnt(model, 7);
            let mut bytes = vec![];
            adaptation.write(&mut bytes);
            assert_eq!(bytes.len() as u64, model.bytes(7, 4));
            let read = |bytes: &[u8]| Adaptation::read(model, &cma, 7, bytes);
            assert_eq!(read(&bytes).as_ref(), Some(&adaptation));
            assert_eq!(read(&bytes[1..]), None);
            let mut wrong = bytes.clone();
            wrong[16..24].copy_from_slice(&f64::NAN.to_le_bytes());
            assert_eq!(read(&wrong), None, "a mean that is no number");
            wrong.clone_from(&bytes);
            wrong[8..16].copy_from_slice(&(-1.0f64).to_le_bytes());
            assert_eq!(read(&wrong), None, "a negative step size");
        }
    }
}
