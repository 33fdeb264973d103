//! Individuals in flat storage.
//!
//! Genomes lie in one vector, each padded to whole cache lines, so that breeding is a loop over vectors without a
//! branch or an allocation.

use crate::activity::Activity;
use crate::gene::{Gene, Shape};
use bincode::{Decode, Encode};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ops::Range;

/// Rows are padded to whole cache lines of bytes, and to whole blocks of genes, which become vectors.
const LINE: usize = 64;
const BLOCK: usize = 16;

/// A population, in the order of its individuals' indices. Fitness is to be maximised and never NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Population<G: Gene> {
    shape: Shape<G>,
    axes: usize,
    stride: usize,
    genes: Vec<G>,
    fitness: Vec<f64>,
    descriptors: Vec<f32>,
    steps: Option<Vec<f32>>,
}

impl<G: Gene> Population<G> {
    /// An empty population of genomes of this shape, each described along this number of axes.
    pub fn new(shape: Shape<G>, axes: usize) -> Self {
        let stride = shape.length.next_multiple_of(BLOCK.max(LINE / size_of::<G>()));
        Self { shape, axes, stride, genes: vec![], fitness: vec![], descriptors: vec![], steps: None }
    }

    /// An empty population in which each individual carries a step size for each of its genes.
    pub fn with_steps(shape: Shape<G>, axes: usize) -> Self {
        Self { steps: Some(vec![]), ..Self::new(shape, axes) }
    }

    /// An empty population of the same kind.
    pub fn empty_like(other: &Self) -> Self {
        Self { steps: other.steps.as_ref().map(|_| vec![]), ..Self::new(other.shape, other.axes) }
    }

    /// The shape of the genomes.
    pub fn shape(&self) -> Shape<G> {
        self.shape
    }

    /// How many individuals there are.
    pub fn len(&self) -> usize {
        self.fitness.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.fitness.is_empty()
    }

    /// How many genes lie between the starts of two rows.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The genes of an individual.
    pub fn genome(&self, index: usize) -> &[G] {
        &self.row(index)[..self.shape.length]
    }

    /// The genes of an individual, to be changed.
    pub fn genome_mut(&mut self, index: usize) -> &mut [G] {
        &mut self.genes[index * self.stride..][..self.shape.length]
    }

    /// The genes of an individual and the padding behind them.
    #[inline]
    pub(crate) fn row(&self, index: usize) -> &[G] {
        &self.genes[index * self.stride..][..self.stride]
    }

    /// The rows of a range of individuals, one after the other.
    pub(crate) fn rows_mut(&mut self, range: Range<usize>) -> &mut [G] {
        &mut self.genes[range.start * self.stride..range.end * self.stride]
    }

    /// The fitness of all individuals.
    pub fn fitness(&self) -> &[f64] {
        &self.fitness
    }

    /// The fitness of all individuals, to be written by a problem that judges.
    pub fn fitness_mut(&mut self) -> &mut [f64] {
        &mut self.fitness
    }

    /// Where an individual lies along the axes of the problem.
    pub fn descriptors(&self, index: usize) -> &[f32] {
        &self.descriptors[index * self.axes..][..self.axes]
    }

    /// Whether individuals carry step sizes.
    pub(crate) fn has_steps(&self) -> bool {
        self.steps.is_some()
    }

    /// The step sizes of an individual, if it carries any.
    pub fn steps(&self, index: usize) -> Option<&[f32]> {
        self.steps.as_ref().map(|steps| &steps[index * self.shape.length..][..self.shape.length])
    }

    /// The genome and the steps of an individual, to be changed together.
    pub(crate) fn genome_and_steps_mut(&mut self, index: usize) -> (&mut [G], Option<&mut [f32]>) {
        let length = self.shape.length;
        let genome = &mut self.genes[index * self.stride..][..length];
        (genome, self.steps.as_mut().map(|steps| &mut steps[index * length..][..length]))
    }

    /// Changes the number of individuals. New ones have default genes and are not judged yet.
    pub fn resize(&mut self, len: usize) {
        self.genes.resize(len * self.stride, G::default());
        self.fitness.resize(len, f64::NEG_INFINITY);
        self.descriptors.resize(len * self.axes, 0.0);
        if let Some(steps) = &mut self.steps {
            steps.resize(len * self.shape.length, 0.0);
        }
    }

    /// Adds a copy of another population's individual at the end.
    pub fn push_copy(&mut self, from: &Self, index: usize, default_step: f32) {
        let at = self.len();
        self.resize(at + 1);
        self.copy(at, from, index, default_step);
    }

    /// Adds copies of all of another population's individuals at the end. Where those carry no step sizes and ours do,
    /// they become 0.
    pub fn append(&mut self, others: &Self) {
        debug_assert_eq!((self.shape, self.axes), (others.shape, others.axes));
        self.genes.extend_from_slice(&others.genes);
        self.fitness.extend_from_slice(&others.fitness);
        self.descriptors.extend_from_slice(&others.descriptors);
        match (&mut self.steps, &others.steps) {
            (Some(steps), Some(theirs)) => steps.extend_from_slice(theirs),
            (Some(steps), None) => steps.resize(self.fitness.len() * self.shape.length, 0.0),
            (None, _) => {}
        }
    }

    /// Takes the individuals from `count` on away, and gives them back.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        let mut others = Self::empty_like(self);
        for index in count..self.len() {
            others.push_copy(self, index, 0.0);
        }
        self.resize(count.min(self.len()));
        others
    }

    /// Puts a copy of another population's individual into the place of one. Where that one carries no step sizes
    /// and ours do, they become `default_step`.
    pub fn copy(&mut self, at: usize, from: &Self, index: usize, default_step: f32) {
        debug_assert_eq!((self.shape, self.axes), (from.shape, from.axes));
        self.genes[at * self.stride..][..self.stride].copy_from_slice(from.row(index));
        self.fitness[at] = from.fitness[index];
        self.descriptors[at * self.axes..][..self.axes].copy_from_slice(from.descriptors(index));
        if let (_, Some(steps)) = self.genome_and_steps_mut(at) {
            match from.steps(index) {
                Some(theirs) => steps.copy_from_slice(theirs),
                None => steps.fill(default_step),
            }
        }
    }

    /// Puts a copy of one of the individuals into the place of another.
    pub(crate) fn copy_within(&mut self, from: usize, to: usize) {
        let row = |index: usize| index * self.stride..(index + 1) * self.stride;
        self.genes.copy_within(row(from), row(to).start);
        self.fitness[to] = self.fitness[from];
        let axes = self.axes;
        self.descriptors.copy_within(from * axes..(from + 1) * axes, to * axes);
        if let Some(steps) = &mut self.steps {
            let length = self.shape.length;
            steps.copy_within(from * length..(from + 1) * length, to * length);
        }
    }

    /// The index of the best individual, the lowest of equals.
    pub fn best(&self) -> Option<usize> {
        let best = self.best_fitness();
        self.fitness.iter().position(|&fitness| fitness >= best)
    }

    /// The best fitness there is, found in independent lanes because each comparison waits for the one before.
    pub fn best_fitness(&self) -> f64 {
        let (blocks, rest) = self.fitness.as_chunks::<16>();
        let mut lanes = [f64::NEG_INFINITY; 16];
        for block in blocks {
            for (lane, &fitness) in lanes.iter_mut().zip(block) {
                *lane = if fitness > *lane { fitness } else { *lane };
            }
        }
        lanes.iter().chain(rest).copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Which of two individuals ranks first: the fitter, then the one of lower index.
    pub(crate) fn rank(&self, one: u32, other: u32) -> Ordering {
        let fitness = |index: u32| self.fitness[index as usize];
        fitness(other).total_cmp(&fitness(one)).then(one.cmp(&other))
    }

    /// The indices of the `count` best individuals, best first.
    pub fn leaders(&self, count: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let count = count.min(order.len());
        if count > 0 && count < order.len() {
            order.select_nth_unstable_by(count - 1, |&a, &b| self.rank(a, b));
        }
        order.truncate(count);
        order.sort_unstable_by(|&a, &b| self.rank(a, b));
        order
    }

    /// Judges the individuals of a range one by one, on all threads when they are worth it. The genes may be
    /// rewritten (repaired); the answer is the fitness.
    pub fn judge_each(
        &mut self,
        fresh: Range<usize>,
        cost: Cost,
        judge: impl Fn(usize, &mut [G], &mut [f32]) -> f64 + Sync,
    ) -> u64 {
        let (length, stride, axes) = (self.shape.length, self.stride, self.axes);
        self.judge_chunks(fresh, cost, |chunk| {
            let Chunk { first, rows, fitness, descriptors } = chunk;
            for (at, fitness) in fitness.iter_mut().enumerate() {
                let genome = &mut rows[at * stride..][..length];
                *fitness = judge(first + at, genome, &mut descriptors[at * axes..][..axes]);
            }
        })
    }

    /// Judges the individuals of a range in chunks of neighbours, on all threads when they are worth it.
    pub fn judge_chunks(
        &mut self,
        fresh: Range<usize>,
        cost: Cost,
        judge: impl Fn(Chunk<'_, G>) + Sync,
    ) -> u64 {
        let count = fresh.len();
        let whole = Chunk {
            first: fresh.start,
            rows: &mut self.genes[fresh.start * self.stride..fresh.end * self.stride],
            fitness: &mut self.fitness[fresh.clone()],
            descriptors: &mut self.descriptors[fresh.start * self.axes..fresh.end * self.axes],
        };
        let activity = Activity::current();
        let judge = |chunk: Chunk<'_, G>| {
            if activity.as_ref().is_some_and(Activity::is_abandoned) {
                return;
            }
            let count = chunk.fitness.len() as u64;
            judge(chunk);
            if let Some(activity) = &activity {
                activity.add(count);
            }
        };
        // Asking rayon for its threads starts them: a population that is one piece anyway does without.
        if count <= cost.grain() {
            judge(whole);
        } else if rayon::current_num_threads() == 1 {
            whole.split(cost.visible(), self.stride, self.axes).into_iter().for_each(judge);
        } else {
            whole.split(cost.grain(), self.stride, self.axes).into_par_iter().for_each(judge);
        }
        count as u64
    }

    /// Everything that is remembered of the population, without padding.
    pub fn pack(&self) -> PackedPopulation<G> {
        let mut genes = Vec::with_capacity(self.len() * self.shape.length);
        (0..self.len()).for_each(|index| genes.extend_from_slice(self.genome(index)));
        PackedPopulation {
            count: self.len() as u32,
            genes,
            fitness: self.fitness.clone(),
            descriptors: self.descriptors.clone(),
            steps: self.steps.clone(),
        }
    }

    /// The population again, if the packed one fits the shape.
    pub fn unpack(packed: PackedPopulation<G>, shape: Shape<G>, axes: usize) -> Result<Self, MisfitError> {
        let count = packed.count as usize;
        expect("genes", count * shape.length, packed.genes.len())?;
        expect("fitness values", count, packed.fitness.len())?;
        expect("descriptors", count * axes, packed.descriptors.len())?;
        if let Some(steps) = &packed.steps {
            expect("step sizes", count * shape.length, steps.len())?;
            // What is no step size would make genes of children that are no numbers.
            let sizes = steps.iter().filter(|step| step.is_finite() && **step >= 0.0).count();
            expect("finite step sizes", steps.len(), sizes)?;
        }
        if packed.fitness.iter().any(|fitness| fitness.is_nan()) {
            return Err(MisfitError::NotANumber);
        }
        // Without a branch for each gene; which of them it was is looked for only if there is one.
        let all_belong = packed.genes.iter().fold(true, |all, gene| all & gene.belongs(shape.domain));
        let stranger = packed.genes.iter().find(|gene| !all_belong && !gene.belongs(shape.domain));
        if let Some(gene) = stranger {
            return Err(MisfitError::Gene {
                gene: format!("{gene:?}"),
                domain: format!("{:?}", shape.domain),
            });
        }
        let mut population = Self { steps: packed.steps, ..Self::new(shape, axes) };
        population.genes.resize(count * population.stride, G::default());
        for (index, genome) in packed.genes.chunks_exact(shape.length).enumerate() {
            population.genes[index * population.stride..][..shape.length].copy_from_slice(genome);
        }
        population.fitness = packed.fitness;
        population.descriptors = packed.descriptors;
        Ok(population)
    }
}

/// Neighbouring individuals, given to a problem to judge.
pub struct Chunk<'a, G> {
    /// The index of the first of them.
    pub first: usize,
    /// Their genes; rows begin [`Chunk::stride`] apart.
    pub rows: &'a mut [G],
    /// To be filled with their fitness.
    pub fitness: &'a mut [f64],
    /// To be filled with their descriptors, one row after the other without padding.
    pub descriptors: &'a mut [f32],
}

impl<G: Gene> PackedPopulation<G> {
    /// Its individuals' fitness and genes.
    pub fn individuals(&self) -> impl Iterator<Item = (f64, &[G])> {
        let length = (self.genes.len() / self.fitness.len().max(1)).max(1);
        self.fitness.iter().copied().zip(self.genes.chunks_exact(length))
    }

    /// Where an individual lies on the axes of its problem; nothing if it has none.
    pub fn descriptors(&self, index: usize) -> &[f32] {
        let axes = self.descriptors.len() / self.fitness.len().max(1);
        self.descriptors.get(index * axes..(index + 1) * axes).unwrap_or(&[])
    }
}

impl<G> Chunk<'_, G> {
    /// How many genes lie between the starts of two rows.
    pub fn stride(&self) -> usize {
        self.rows.len() / self.fitness.len().max(1)
    }

    fn split<'a>(self, grain: usize, stride: usize, axes: usize) -> Vec<Chunk<'a, G>>
    where
        Self: 'a,
    {
        let Self { mut first, mut rows, mut fitness, mut descriptors } = self;
        let mut chunks = Vec::with_capacity(fitness.len().div_ceil(grain));
        while !fitness.is_empty() {
            let count = grain.min(fitness.len());
            let (head, tail) = fitness.split_at_mut(count);
            let (head_rows, tail_rows) = rows.split_at_mut(count * stride);
            let (head_descriptors, tail_descriptors) = descriptors.split_at_mut(count * axes);
            chunks.push(Chunk { first, rows: head_rows, fitness: head, descriptors: head_descriptors });
            (first, rows, fitness, descriptors) = (first + count, tail_rows, tail, tail_descriptors);
        }
        chunks
    }
}

/// About how long one evaluation takes: decides how finely work is split over threads, and feeds estimates.
/// It never affects a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Nanoseconds on one core.
    pub nanoseconds: u64,
}

impl Cost {
    /// How many evaluations make a piece worth moving to another thread: some 50 microseconds.
    pub(crate) fn grain(self) -> usize {
        (50_000 / self.nanoseconds.max(1)).max(1) as usize
    }

    /// How many evaluations one thread does between two signs of life: some 50 milliseconds.
    fn visible(self) -> usize {
        (50_000_000 / self.nanoseconds.max(1)).max(1) as usize
    }
}

/// What is stored and sent of a population.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct PackedPopulation<G: Gene> {
    count: u32,
    genes: Vec<G>,
    fitness: Vec<f64>,
    descriptors: Vec<f32>,
    steps: Option<Vec<f32>>,
}

/// A stored population that does not fit the experiment it is said to belong to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MisfitError {
    /// A wrong number of something.
    #[error("expected {expected} {what}, found {found}: the state belongs to another experiment")]
    Count {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A gene outside its domain.
    #[error("expected genes of {domain}, found `{gene}`: the state belongs to another experiment")]
    Gene {
        /// The value.
        gene: String,
        /// What was expected.
        domain: String,
    },
    /// A fitness that is not a number.
    #[error("expected fitness values, found one that is not a number")]
    NotANumber,
}

fn expect(what: &'static str, expected: usize, found: usize) -> Result<(), MisfitError> {
    if expected == found { Ok(()) } else { Err(MisfitError::Count { what, expected, found }) }
}
