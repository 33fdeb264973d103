//! Problems that make children themselves: with every algorithm, nothing else changes the genes.

use crate::settings::{archives, crowdings, gas};
use crate::worlds::{Rugged, genomes};
use evolution::algorithm::Algorithm;
use evolution::gene::Shape;
use evolution::island::{Island, IslandSetting, Setting};
use evolution::migration::Policy;
use evolution::population::{Cost, Population};
use evolution::problem::{Axis, Breeder, Judging, Problem};
use evolution::random::Stream;
use proptest::prelude::*;

/// Children are their mother, but for the first gene: it counts generations, and the second is the father's.
#[derive(Clone, Copy, Debug)]
struct Lineage {
    nanoseconds: u64,
}

impl Breeder<u8> for Lineage {
    fn breed(&self, mother: &[u8], father: &[u8], child: &mut [u8], stream: &mut Stream) {
        child.copy_from_slice(mother);
        child[0] = mother[0].max(father[0]) + 1;
        child[1] = father[1];
        child[2] = stream.below(4) as u8;
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: self.nanoseconds }
    }
}

impl Problem for Lineage {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Rugged { symbols: 200, ..Rugged::SMALL }.shape()
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), Problem::cost(self), |_, genome, descriptors| {
            descriptors.copy_from_slice(&[f32::from(genome[1]), f32::from(genome[2])]);
            f64::from(genome[0])
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 1 }
    }

    fn found(&self, founder: evolution::problem::Founder, genome: &mut [u8], _: &mut Stream) {
        genome.fill(founder.index as u8);
        genome[0] = 0;
    }

    fn axes(&self) -> Vec<Axis> {
        ["second", "third"].map(|name| Axis { name, low: 0.0, high: 200.0 }).to_vec()
    }

    fn breeder(&self) -> Option<&dyn Breeder<u8>> {
        Some(self)
    }
}

fn after(algorithm: Algorithm, nanoseconds: u64, generations: usize) -> Vec<Vec<u8>> {
    let own = IslandSetting { algorithm, policy: Policy::default(), exploits: false };
    let setting = Setting { seed: 5, islands: vec![own], edges: vec![], opponents: vec![] };
    let problem = Lineage { nanoseconds };
    let mut island = Island::found(&problem, &setting, 0);
    (0..generations).for_each(|_| island.generation());
    genomes(island.population())
}

fn breeding() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        gas().prop_map(Algorithm::Ga),
        crowdings().prop_map(Algorithm::Crowding),
        archives().prop_map(Algorithm::MapElites)
    ]
}

proptest! {
    #[test]
    fn every_child_is_the_problems_own(algorithm in breeding(), generations in 1usize..9) {
        for genome in after(algorithm, 1, generations) {
            prop_assert!(usize::from(genome[0]) <= generations);
            // Whatever lies behind the first three genes is some founder's, untouched by crossover and mutation.
            prop_assert!(genome[4..].iter().all(|&gene| gene == genome[3]), "{:?}", genome);
        }
    }

    #[test]
    fn how_the_work_is_split_changes_nothing(algorithm in breeding(), nanoseconds in 1u64..100_000) {
        prop_assert_eq!(after(algorithm.clone(), nanoseconds, 3), after(algorithm, 1, 3));
    }
}
