//! The algorithms as their books have them, with a vector for each individual and no haste, drawing from the same
//! streams: every generation must come out the same.

use crate::settings::{alone, archives, crowdings, gas};
use crate::worlds::{Bowl, Rugged, genomes};
use evolution::algorithm::{
    Algorithm, Crossover, CrossoverKind, Crowding, Ga, MapElites, Mutation, MutationUnit,
};
use evolution::gene::{Gene, Shape};
use evolution::island::Island;
use evolution::problem::Problem;
use evolution::random::{Chance, Key, Purpose, Stream};
use proptest::prelude::*;

/// A number below `bound` from 32 bits.
fn scaled(bits: u64, bound: usize) -> usize {
    ((u128::from(bits) * bound as u128) >> 32) as usize
}

fn high(bits: u64) -> u64 {
    bits >> 32
}

fn low(bits: u64) -> u64 {
    bits & 0xffff_ffff
}

/// How two parents have two children.
struct Breeding<'a, G: Gene> {
    shape: Shape<G>,
    crossover: &'a Crossover,
    mutation: &'a Mutation,
    generation: u64,
}

impl<G: Gene> Breeding<'_, G> {
    fn children(&self, mother: &[G], father: &[G], stream: &mut Stream) -> [Vec<G>; 2] {
        let mut children = self.crossed(mother, father, stream);
        let rate = self.mutation.rate.at(self.generation);
        if self.mutation.per == MutationUnit::Gene {
            for child in &mut children {
                self.mutate_genes(child, rate, stream);
            }
            return children;
        }
        let (coins, places) = (stream.bits(), stream.bits());
        for (child, half) in children.iter_mut().zip([high, low]) {
            let at = scaled(half(places), child.len());
            let changed = self.changed(child[at], stream);
            if Chance::new(rate).holds(half(coins)) {
                child[at] = changed;
            }
        }
        children
    }

    fn crossed(&self, mother: &[G], father: &[G], stream: &mut Stream) -> [Vec<G>; 2] {
        let length = mother.len();
        let bits = stream.bits();
        let crossed = Chance::new(self.crossover.rate).holds(high(bits));
        let from_father: Vec<bool> = match self.crossover.kind {
            CrossoverKind::OnePoint => {
                let cut = 1 + scaled(low(bits), length - 1);
                (0..length).map(|at| at >= cut).collect()
            }
            CrossoverKind::TwoPoint => {
                let more = stream.bits();
                let (one, other) = (scaled(high(more), length + 1), scaled(low(more), length + 1));
                (0..length).map(|at| (one.min(other)..one.max(other)).contains(&at)).collect()
            }
            CrossoverKind::Uniform if crossed => {
                let words: Vec<u64> = (0..length.div_ceil(64)).map(|_| stream.bits()).collect();
                (0..length).map(|at| words[at / 64] >> (at % 64) & 1 == 0).collect()
            }
            CrossoverKind::Uniform => vec![],
        };
        if !crossed {
            return [mother.to_vec(), father.to_vec()];
        }
        let child = |swap: bool| {
            (0..length).map(|at| if from_father[at] == swap { mother[at] } else { father[at] }).collect()
        };
        [child(false), child(true)]
    }

    /// Whether the next gene changes follows from the distance of the next change.
    fn mutate_genes(&self, genome: &mut [G], rate: f64, stream: &mut Stream) {
        let mut gap = steps_to_change(rate, genome.len(), stream);
        for gene in genome.iter_mut() {
            if gap == 0 {
                *gene = self.changed(*gene, stream);
                gap = steps_to_change(rate, usize::MAX, stream);
            } else {
                gap -= 1;
            }
        }
    }

    fn changed(&self, gene: G, stream: &mut Stream) -> G {
        match self.mutation.step {
            None => G::random(self.shape.domain, stream),
            Some(deviation) => gene.stepped(self.shape.domain, deviation * stream.gaussian()),
        }
    }
}

/// Geometrically distributed: ln(u) / ln(1 - rate).
fn steps_to_change(rate: f64, most: usize, stream: &mut Stream) -> usize {
    let unit = stream.unit();
    if rate >= 1.0 {
        0
    } else if rate <= 0.0 {
        most
    } else {
        (libm::log(1.0 - unit) * (1.0 / libm::log1p(-rate))) as usize
    }
}

fn tournament(fitness: &[f64], size: u32, stream: &mut Stream) -> usize {
    let first = stream.bits();
    let mut drawn = vec![high(first), low(first)];
    drawn.extend((2..size).map(|_| high(stream.bits())));
    drawn.truncate(size as usize);
    let drawn: Vec<usize> = drawn.into_iter().map(|bits| scaled(bits, fitness.len())).collect();
    let best = drawn.iter().map(|&index| fitness[index]).fold(f64::NEG_INFINITY, f64::max);
    drawn.into_iter().find(|&index| fitness[index] == best).unwrap()
}

fn ga_generation(ga: &Ga, parents: &[Vec<u8>], seed: u64, generation: u64) -> Vec<Vec<u8>> {
    let key = Key::new(seed, 0, generation);
    let fitness: Vec<f64> = parents.iter().map(|genome| Rugged::fitness(genome)).collect();
    let mut order: Vec<usize> = (0..parents.len()).collect();
    order.sort_by(|&a, &b| fitness[b].total_cmp(&fitness[a]));
    let mut next: Vec<Vec<u8>> =
        order[..ga.elite_count() as usize].iter().map(|&index| parents[index].clone()).collect();
    let breeding = Breeding {
        shape: Rugged::SMALL.shape(),
        crossover: &ga.crossover,
        mutation: &ga.mutation,
        generation,
    };
    for pair in 0.. {
        if next.len() >= parents.len() {
            break;
        }
        let mut stream = key.stream(pair, Purpose::Variation);
        let mother = tournament(&fitness, ga.tournament, &mut stream);
        let father = tournament(&fitness, ga.tournament, &mut stream);
        next.extend(breeding.children(&parents[mother], &parents[father], &mut stream));
    }
    next.truncate(parents.len());
    next
}

fn crowding_generation(crowding: &Crowding, parents: &[Vec<u8>], seed: u64, generation: u64) -> Vec<Vec<u8>> {
    let key = Key::new(seed, 0, generation);
    let Crowding { crossover, mutation, mates, distinct, strict, .. } = crowding;
    let breeding = Breeding { shape: Rugged::SMALL.shape(), crossover, mutation, generation };
    let mut order: Vec<usize> = (0..parents.len()).collect();
    key.stream(0, Purpose::Pairing).shuffle(&mut order);
    let apart = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    let mut next = parents.to_vec();
    let mut known = parents.to_vec();
    for pair in 0..parents.len() / 2 {
        let places = 2 * pair + 1..order.len().min(2 * pair + 1 + *mates as usize);
        let mother = &parents[order[2 * pair]];
        let mate = places.min_by_key(|&place| apart(mother, &parents[order[place]])).unwrap();
        order.swap(2 * pair + 1, mate);
        let couple = [order[2 * pair], order[2 * pair + 1]];
        let mut stream = key.stream(pair, Purpose::Variation);
        let (mother, father) = (&parents[couple[0]], &parents[couple[1]]);
        let [one, other] = breeding.children(mother, father, &mut stream);
        let straight = apart(mother, &one) + apart(father, &other);
        let crossed = apart(mother, &other) + apart(father, &one);
        let rivals = if straight <= crossed { [one, other] } else { [other, one] };
        for (&parent, child) in couple.iter().zip(rivals) {
            let is_new = !distinct || !known.contains(&child);
            let [born, before] = [Rugged::fitness(&child), Rugged::fitness(&parents[parent])];
            if is_new && (born > before || born == before && !strict) {
                known.push(child.clone());
                next[parent] = child;
            }
        }
    }
    next
}

/// The archive as a list of cells, each empty or with its elite, and the order in which cells were first filled.
struct Grid<'a> {
    archive: &'a MapElites,
    cells: Vec<Option<Vec<f64>>>,
    filled: Vec<usize>,
}

impl<'a> Grid<'a> {
    fn new(archive: &'a MapElites) -> Self {
        Self { archive, cells: vec![None; archive.cells() as usize], filled: vec![] }
    }

    fn enter(&mut self, genome: Vec<f64>) {
        let bin = |x: f64, bins: u32| {
            let share = (x as f32 + Bowl::EDGE as f32) / (2.0 * Bowl::EDGE as f32);
            ((share * bins as f32) as usize).min(bins as usize - 1)
        };
        let bins = &self.archive.bins;
        let cell = bin(genome[0], bins[0]) * bins[1] as usize + bin(genome[1], bins[1]);
        match &mut self.cells[cell] {
            Some(elite) if Bowl::fitness(&genome) > Bowl::fitness(elite) => *elite = genome,
            Some(_) => {}
            empty => {
                *empty = Some(genome);
                self.filled.push(cell);
            }
        }
    }

    fn elites(&self) -> Vec<Vec<f64>> {
        self.filled.iter().map(|&cell| self.cells[cell].clone().unwrap()).collect()
    }

    fn generation(&mut self, seed: u64, generation: u64) {
        let MapElites { crossover, mutation, batch, .. } = self.archive;
        let breeding = Breeding { shape: BOWL.shape(), crossover, mutation, generation };
        let elites = self.elites();
        let mut born = vec![];
        for pair in 0..batch.div_ceil(2) as usize {
            let mut stream = Key::new(seed, 0, generation).stream(pair, Purpose::Variation);
            let (mother, father) = (stream.below(elites.len()), stream.below(elites.len()));
            born.extend(breeding.children(&elites[mother], &elites[father], &mut stream));
        }
        born.truncate(*batch as usize);
        for child in born {
            self.enter(child);
        }
    }
}

const BOWL: Bowl = Bowl { dimensions: 3, nanoseconds: 10 };

/// The founding population: genes drawn one after the other from each individual's own stream.
fn founders<P: Problem>(problem: &P, count: u32, seed: u64) -> Vec<Vec<P::Gene>> {
    let Shape { length, domain } = problem.shape();
    (0..count as usize)
        .map(|index| {
            let mut stream = Key::new(seed, 0, 0).stream(index, Purpose::Founding);
            (0..length).map(|_| P::Gene::random(domain, &mut stream)).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn the_genetic_algorithm_is_the_textbooks(ga in gas(), seed: u64) {
        let setting = alone(seed, &Algorithm::Ga(ga.clone()));
        let mut island = Island::found(&Rugged::SMALL, &setting, 0);
        let mut expected = founders(&Rugged::SMALL, ga.population, seed);
        for generation in 1..6 {
            prop_assert_eq!(&genomes(island.population()), &expected);
            island.generation();
            expected = ga_generation(&ga, &expected, seed, generation);
        }
    }

    #[test]
    fn crowding_keeps_the_better_of_each_similar_pair(crowding in crowdings(), seed: u64) {
        let setting = alone(seed, &Algorithm::Crowding(crowding.clone()));
        let mut island = Island::found(&Rugged::SMALL, &setting, 0);
        let mut expected = founders(&Rugged::SMALL, crowding.population, seed);
        for generation in 1..6 {
            prop_assert_eq!(&genomes(island.population()), &expected);
            let before = island.population().fitness().to_vec();
            island.generation();
            expected = crowding_generation(&crowding, &expected, seed, generation);
            let after = island.population().fitness();
            prop_assert!(after.iter().zip(&before).all(|(after, before)| after >= before));
        }
    }

    #[test]
    fn archives_are_a_grid_of_elites(archive in archives(), seed: u64) {
        let setting = alone(seed, &Algorithm::MapElites(archive.clone()));
        let mut island = Island::found(&BOWL, &setting, 0);
        let mut grid = Grid::new(&archive);
        for genome in founders(&BOWL, archive.founders, seed) {
            grid.enter(genome);
        }
        for generation in 1..6 {
            prop_assert_eq!(&genomes(island.population()), &grid.elites());
            island.generation();
            grid.generation(seed, generation);
        }
    }
}
