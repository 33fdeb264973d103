//! What evolution needs to know of a problem.

use crate::gene::{Gene, Shape};
use crate::population::{Cost, Population};
use crate::random::{Key, Purpose, Stream};
use std::ops::Range;

/// A problem to evolve solutions for. Implementations are pure: what they need beyond the population was read
/// before, and whatever is random comes from the streams they are given.
pub trait Problem: Send + Sync {
    /// What genomes are made of.
    type Gene: Gene;

    /// The shape of the genomes.
    fn shape(&self) -> Shape<Self::Gene>;

    /// Judges individuals: writes their fitness (and descriptors, if there are axes), may repair their genes, and
    /// answers how many evaluations it took. It is given the whole population, because in self-play fitness
    /// depends on the others; a problem of absolute fitness judges `judging.fresh` alone.
    fn judge(&self, population: &mut Population<Self::Gene>, judging: &Judging) -> u64;

    /// Judges a generation, or the founders, as [`judge`](Self::judge) does, and lets them learn: genes may change after
    /// they were judged, and `memory` is what the island remembers of learning from one generation to the next. It is
    /// empty at the founding, and at most [`memory_bytes`](Self::memory_bytes) long.
    fn judge_and_learn(
        &self,
        population: &mut Population<Self::Gene>,
        judging: &Judging,
        memory: &mut Vec<u8>,
    ) -> u64 {
        let _ = memory;
        self.judge(population, judging)
    }

    /// The most bytes that an island remembers of learning.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// Whether some bytes are what an island may remember of learning: they may come from another process.
    fn is_memory(&self, memory: &[u8]) -> bool {
        memory.is_empty()
    }

    /// About how long one evaluation takes.
    fn cost(&self) -> Cost;

    /// How many evaluations it takes to judge one individual.
    fn evaluations(&self) -> u64 {
        1
    }

    /// Whether genes can only be mutated by steps: any value of their domain would be out of all proportion.
    fn needs_step(&self) -> bool {
        false
    }

    /// Writes an individual of the founding population.
    fn found(&self, founder: Founder, genome: &mut [Self::Gene], stream: &mut Stream) {
        let _ = founder;
        let domain = self.shape().domain;
        genome.fill_with(|| Self::Gene::random(domain, stream));
    }

    /// The problem's own operators, where genes mean too much to be mixed blindly: they make the children of every
    /// algorithm that crosses and mutates, in place of its crossover and mutation.
    fn breeder(&self) -> Option<&dyn Breeder<Self::Gene>> {
        None
    }

    /// Gives genes that follow rules of their own what the child of an evolution strategy's parent is to have, after
    /// all of its genes were mutated alike.
    fn inherit(&self, parent: &[Self::Gene], child: &mut [Self::Gene], stream: &mut Stream) {
        let _ = (parent, child, stream);
    }

    /// Whether fitness has a meaning beyond one judgement. Where it has none (self-play), all individuals are judged in
    /// every generation, and immigrants are judged again.
    fn absolute(&self) -> bool {
        true
    }

    /// What this machine lacks to judge anybody, such as a file that nobody may send.
    fn missing(&self) -> Option<String> {
        None
    }

    /// How many former champions of an island stand by when its individuals are judged: a hall of fame.
    fn hall(&self) -> usize {
        0
    }

    /// Who is the champion of an epoch, judged once more, and how many evaluations that took. Without an answer it is
    /// the fittest; where fitness is relative that may just have been the luckiest.
    fn confirm(&self, population: &Population<Self::Gene>, judging: &Judging) -> Option<(usize, u64)> {
        let _ = (population, judging);
        None
    }

    /// The axes along which `judge` describes individuals, for archives.
    fn axes(&self) -> Vec<Axis> {
        vec![]
    }

    /// How far two genomes are apart, for crowding and for policies that look at similarity.
    fn distance(&self, one: &[Self::Gene], other: &[Self::Gene]) -> f64 {
        Self::Gene::distance(one, other)
    }
}

/// Operators that know what genes mean. As pure as the problem they belong to.
pub trait Breeder<G: Gene>: Sync {
    /// Writes the child of two parents. They have another child in which they change places.
    fn breed(&self, mother: &[G], father: &[G], child: &mut [G], stream: &mut Stream);

    /// About how long that takes.
    fn cost(&self) -> Cost;
}

/// One of those who found an island.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Founder {
    /// Its index.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Founder {
    /// Whether it belongs to the first part of all, by a share.
    pub fn is_among_first(self, share: f64) -> bool {
        (self.index as f64) < (self.count as f64 * share).round()
    }
}

/// One judgement of a population.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The individuals that were not judged before.
    pub fresh: Range<usize>,
    /// Former champions, who stand behind the individuals and are not judged themselves.
    pub hall: Range<usize>,
    /// Whether only those count.
    pub exploits: bool,
    key: Key,
}

impl Judging {
    /// A judgement with the key of its generation.
    pub fn new(fresh: Range<usize>, key: Key) -> Self {
        Self { hall: fresh.end..fresh.end, fresh, exploits: false, key }
    }

    /// The same judgement in which only former champions count, or not.
    pub(crate) fn exploiting(self, exploits: bool) -> Self {
        Self { exploits, ..self }
    }

    /// The same judgement with former champions in these places.
    pub(crate) fn with_hall(self, hall: Range<usize>) -> Self {
        Self { hall, ..self }
    }

    /// The random stream for judging one individual, game or sample.
    pub fn stream(&self, number: usize) -> Stream {
        self.key.stream(number, Purpose::Judging)
    }
}

/// An axis along which individuals are described.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub name: &'static str,
    /// The value at which the first bin begins.
    pub low: f32,
    /// The value at which the last bin ends.
    pub high: f32,
}
