//! Children from pairs of parents: the inner loop of everything that crosses and mutates.

use super::{Coming, Crossover, CrossoverKind, Mutating, Mutation, MutationUnit};
use crate::gene::{Gene, Shape};
use crate::population::Population;
use crate::problem::{Breeder, Problem};
use crate::random::{Chance, Key, Purpose, Stream, scale};
use rayon::prelude::*;
use std::hint::select_unpredictable;
use std::ops::Range;

/// How many genes of children make a piece of work for another thread.
const GRAIN: usize = 1 << 16;
/// Genes are mixed in blocks of this many, which the compiler turns into vectors.
const BLOCK: usize = 16;

/// Masks for crossover as windows into a row of ones followed by zeros: the window that begins `cut` before the
/// zeros has ones in its first `cut` places. A table of masks would grow with the square of the genome's length.
pub(crate) struct Windows {
    stride: usize,
    length: usize,
    ones_then_zeros: Vec<u8>,
}

impl Windows {
    pub(crate) fn new(length: usize, stride: usize) -> Self {
        let mut ones_then_zeros = vec![u8::MAX; length];
        ones_then_zeros.resize(length + stride, 0);
        Self { stride, length, ones_then_zeros }
    }

    #[inline]
    fn first(&self, cut: usize) -> &[u8] {
        &self.ones_then_zeros[self.length - cut..][..self.stride]
    }
}

/// How the children of one generation come about.
pub(crate) struct Breeding<'a, G: Gene> {
    shape: Shape<G>,
    windows: &'a Windows,
    kind: CrossoverKind,
    crossed: Chance,
    mutating: Mutating,
    breeder: Option<&'a dyn Breeder<G>>,
    key: Key,
}

impl<'a, G: Gene> Breeding<'a, G> {
    pub(crate) fn new<P: Problem<Gene = G>>(
        coming: &Coming<'a, P>,
        windows: &'a Windows,
        crossover: &Crossover,
        mutation: &Mutation,
    ) -> Self {
        Self {
            shape: coming.problem.shape(),
            windows,
            kind: crossover.kind,
            crossed: Chance::new(crossover.rate),
            mutating: mutation.at(coming.generation),
            breeder: coming.problem.breeder(),
            key: coming.key,
        }
    }

    /// How many pairs make a piece of work for another thread.
    fn grain(&self) -> usize {
        let children = self.breeder.map_or(GRAIN / self.windows.stride, |breeder| breeder.cost().grain());
        (children / 2).max(1)
    }

    /// Fills the rows `born` of `children` with the offspring of pairs that `pick` chooses from `parents`.
    pub(crate) fn breed(
        &self,
        parents: &Population<G>,
        children: &mut Population<G>,
        born: Range<usize>,
        pick: impl Fn(usize, &mut Stream) -> (usize, usize) + Sync,
    ) {
        let stride = children.stride();
        let pairs = self.grain();
        let brood = |(number, rows): (usize, &mut [G])| {
            let first = number * pairs;
            let mut couples = rows.chunks_exact_mut(2 * stride);
            for (at, children) in couples.by_ref().enumerate() {
                self.pair(parents, first + at, children, &pick);
            }
            let single = couples.into_remainder();
            if !single.is_empty() {
                let mut both = vec![G::default(); 2 * stride];
                self.pair(parents, born.len() / 2, &mut both, &pick);
                single.copy_from_slice(&both[..stride]);
            }
        };
        let rows = children.rows_mut(born.clone());
        if rows.len() <= 2 * pairs * stride || rayon::current_num_threads() == 1 {
            rows.chunks_mut(2 * pairs * stride).enumerate().for_each(brood);
        } else {
            rows.par_chunks_mut(2 * pairs * stride).enumerate().for_each(brood);
        }
    }

    /// The two children of pair `number`.
    #[inline]
    fn pair(
        &self,
        parents: &Population<G>,
        number: usize,
        children: &mut [G],
        pick: impl Fn(usize, &mut Stream) -> (usize, usize),
    ) {
        let mut stream = self.key.stream(number, Purpose::Variation);
        let (mother, father) = pick(number, &mut stream);
        let (one, other) = children.split_at_mut(self.windows.stride);
        let length = self.shape.length;
        if let Some(breeder) = self.breeder {
            let (mother, father) = (parents.genome(mother), parents.genome(father));
            breeder.breed(mother, father, &mut one[..length], &mut stream);
            breeder.breed(father, mother, &mut other[..length], &mut stream);
            return;
        }
        self.cross(parents.row(mother), parents.row(father), one, other, &mut stream);
        self.mutate(&mut one[..length], &mut other[..length], &mut stream);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call for each pair costs as much as what it does")]
    fn cross(&self, mother: &[G], father: &[G], one: &mut [G], other: &mut [G], stream: &mut Stream) {
        let length = self.shape.length;
        let bits = stream.bits();
        let crossed = self.crossed.holds(bits >> 32);
        match self.kind {
            CrossoverKind::OnePoint => {
                // At least one gene comes from each side; a genome of one gene is copied.
                let cut = 1 + scale(bits & 0xffff_ffff, length - 1);
                let cut = select_unpredictable(crossed, cut, length);
                mix(mother, father, self.windows.first(cut), self.windows.first(0), one, other);
            }
            CrossoverKind::TwoPoint => {
                let more = stream.bits();
                let from = scale(more >> 32, length + 1);
                let to = scale(more & 0xffff_ffff, length + 1);
                let from = select_unpredictable(crossed, from, 0);
                let to = select_unpredictable(crossed, to, 0);
                // Equal windows cancel out: nothing is taken from the other side.
                mix(father, mother, self.windows.first(from), self.windows.first(to), one, other);
            }
            CrossoverKind::Uniform => {
                if crossed {
                    toss(mother, father, one, other, length, stream);
                } else {
                    one.copy_from_slice(mother);
                    other.copy_from_slice(father);
                }
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call for each pair costs as much as what it does")]
    fn mutate(&self, one: &mut [G], other: &mut [G], stream: &mut Stream) {
        match self.mutating.per {
            MutationUnit::Individual => self.mutate_individuals(one, other, stream),
            MutationUnit::Gene => {
                self.mutate_genes(one, stream);
                self.mutate_genes(other, stream);
            }
        }
    }

    /// One gene of each child changes, or none: two coins and two places from two draws, without a branch on a coin
    /// that no processor can guess.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call for each pair costs as much as what it does")]
    fn mutate_individuals(&self, one: &mut [G], other: &mut [G], stream: &mut Stream) {
        let coins = stream.bits();
        let places = stream.bits();
        let draws = [(one, coins >> 32, places >> 32), (other, coins & 0xffff_ffff, places & 0xffff_ffff)];
        for (genome, coin, place) in draws {
            let gene = &mut genome[scale(place, self.shape.length)];
            let changed = self.changed(*gene, stream);
            *gene = select_unpredictable(self.mutating.chance.holds(coin), changed, *gene);
        }
    }

    /// Every gene changes with the given chance: the gaps between those that do are drawn, not a coin for each.
    fn mutate_genes(&self, genome: &mut [G], stream: &mut Stream) {
        let mut at = self.gap(genome.len(), stream);
        while at < genome.len() {
            genome[at] = self.changed(genome[at], stream);
            at += 1 + self.gap(genome.len(), stream);
        }
    }

    /// How many genes stay as they are before the next that changes, at most `length`.
    fn gap(&self, length: usize, stream: &mut Stream) -> usize {
        let gap = libm::log(1.0 - stream.unit()) * self.mutating.gap;
        if gap < length as f64 { gap as usize } else { length }
    }

    #[inline]
    fn changed(&self, gene: G, stream: &mut Stream) -> G {
        match self.mutating.step {
            None => G::random(self.shape.domain, stream),
            Some(deviation) => gene.stepped(self.shape.domain, deviation * stream.gaussian()),
        }
    }
}

/// Where the two windows differ, `one` is like `mother`, elsewhere like `father`; `other` is the opposite.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call for each pair costs as much as what it does")]
fn mix<G: Gene>(mother: &[G], father: &[G], from: &[u8], to: &[u8], one: &mut [G], other: &mut [G]) {
    let sources = mother.as_chunks::<BLOCK>().0.iter().zip(father.as_chunks::<BLOCK>().0);
    let windows = from.as_chunks::<BLOCK>().0.iter().zip(to.as_chunks::<BLOCK>().0);
    let targets = one.as_chunks_mut::<BLOCK>().0.iter_mut().zip(other.as_chunks_mut::<BLOCK>().0);
    for (((m, f), (from, to)), (one, other)) in sources.zip(windows).zip(targets) {
        for k in 0..BLOCK {
            let taken = from[k] ^ to[k];
            one[k] = G::masked(taken, m[k], f[k]);
            other[k] = G::masked(taken, f[k], m[k]);
        }
    }
}

/// Uniform crossover: a bit for each gene.
fn toss<G: Gene>(
    mother: &[G],
    father: &[G],
    one: &mut [G],
    other: &mut [G],
    length: usize,
    stream: &mut Stream,
) {
    for from in (0..length).step_by(64) {
        let bits = stream.bits();
        for at in from..(from + 64).min(length) {
            let taken = bits >> (at - from) & 1 == 1;
            one[at] = if taken { mother[at] } else { father[at] };
            other[at] = if taken { father[at] } else { mother[at] };
        }
    }
}

/// The fittest of `size` individuals drawn at random; the first drawn of equals.
#[inline]
pub(crate) fn tournament(fitness: &[f64], size: u32, stream: &mut Stream) -> usize {
    let bits = stream.bits();
    let mut winner = scale(bits >> 32, fitness.len());
    let mut spare = Some(bits & 0xffff_ffff);
    for _ in 1..size {
        let bits = spare.take().unwrap_or_else(|| stream.bits() >> 32);
        let rival = scale(bits, fitness.len());
        winner = select_unpredictable(fitness[rival] > fitness[winner], rival, winner);
    }
    winner
}
