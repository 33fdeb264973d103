//! The engine itself, with a fitness that costs next to nothing.

use crate::{Bench, Figure, rate};
use evolution::algorithm::{Algorithm, Ga};
use evolution::island::{Island, IslandSetting, Setting};
use evolution::migration::Policy;
use problems::OneMax;

pub(crate) fn benches() -> Vec<Bench> {
    vec![("evolution.onemax50", onemax50)]
}

/// 4-symbol genomes of length 50, population 1000, tournament 2, one-point crossover 0.7, mutation 0.1.
fn onemax50() -> Figure {
    let problem = OneMax { length: 50, symbols: 4, ..OneMax::default() };
    let own =
        IslandSetting { algorithm: Algorithm::Ga(Ga::default()), policy: Policy::default(), exploits: false };
    let setting = Setting { seed: 1, islands: vec![own], edges: vec![], opponents: vec![] };
    let engine = rate(|| {
        let mut island = Island::found(&problem, &setting, 0);
        for _ in 0..200 {
            island.generation();
        }
        island.evaluations()
    });
    Figure::new("evaluations/s", engine, rate(reference::run))
}

/// A textbook genetic algorithm: a vector for each individual, branches where the book has them.
mod reference {
    use evolution::random::{Key, Purpose, Stream};

    const POPULATION: usize = 1000;
    const LENGTH: usize = 50;

    pub(super) fn run() -> u64 {
        let mut stream = Key::new(1, 0, 0).stream(0, Purpose::Variation);
        let mut individuals: Vec<(Vec<u8>, u32)> =
            (0..POPULATION).map(|_| judged((0..LENGTH).map(|_| stream.below(4) as u8).collect())).collect();
        for _ in 0..20 {
            let mut children = Vec::with_capacity(POPULATION);
            while children.len() < POPULATION {
                let (mut one, mut other) =
                    (select(&individuals, &mut stream), select(&individuals, &mut stream));
                if stream.unit() < 0.7 {
                    let cut = 1 + stream.below(LENGTH - 1);
                    one[cut..].swap_with_slice(&mut other[cut..]);
                }
                for mut child in [one, other] {
                    if stream.unit() < 0.1 {
                        let place = stream.below(LENGTH);
                        child[place] = stream.below(4) as u8;
                    }
                    children.push(judged(child));
                }
            }
            individuals = children;
        }
        21 * POPULATION as u64
    }

    fn judged(genome: Vec<u8>) -> (Vec<u8>, u32) {
        let fitness = genome.iter().map(|&gene| u32::from(gene == 1)).sum();
        (genome, fitness)
    }

    fn select(individuals: &[(Vec<u8>, u32)], stream: &mut Stream) -> Vec<u8> {
        let one = &individuals[stream.below(POPULATION)];
        let other = &individuals[stream.below(POPULATION)];
        if other.1 > one.1 { other.0.clone() } else { one.0.clone() }
    }
}
