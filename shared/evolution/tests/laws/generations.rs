//! What holds after every generation.

use crate::settings::{alone, archives, for_reals, for_symbols, gas, strategies};
use crate::worlds::{Bowl, Holes, Rugged, genomes};
use evolution::algorithm::{Algorithm, Es, Ga, Recombination, Survival, Weighting};
use evolution::gene::Gene;
use evolution::island::Island;
use evolution::problem::Problem;
use proptest::prelude::*;
use std::collections::BTreeSet;

const BOWL: Bowl = Bowl { dimensions: 3, nanoseconds: 10 };

/// Size, domain and champion, after each of a few generations.
fn check_generations<P: Problem>(
    problem: &P,
    algorithm: &Algorithm,
    seed: u64,
    fitness: impl Fn(&[P::Gene]) -> f64,
) -> Result<(), TestCaseError> {
    let setting = alone(seed, algorithm);
    let mut island = Island::found(problem, &setting, 0);
    let domain = problem.shape().domain;
    let mut evaluations = u64::from(algorithm.founders());
    for generation in 0..6 {
        let population = island.population();
        if matches!(algorithm, Algorithm::MapElites(_)) {
            prop_assert!(population.len() as u64 <= algorithm.capacity());
        } else {
            prop_assert_eq!(population.len() as u64, algorithm.capacity());
        }
        for (index, genome) in genomes(population).iter().enumerate() {
            prop_assert!(genome.iter().all(|gene| gene.belongs(domain)), "{:?}", genome);
            prop_assert_eq!(population.fitness()[index], fitness(genome), "every fitness is its genome's");
        }
        prop_assert_eq!(island.age(), generation);
        prop_assert_eq!(island.evaluations(), evaluations);
        let champion = island.champion().clone();
        prop_assert_eq!(champion.fitness, fitness(&champion.genome));
        prop_assert!(champion.fitness >= population.best_fitness());
        island.generation();
        prop_assert!(island.champion().fitness >= champion.fitness, "a champion only becomes better");
        evaluations += u64::from(algorithm.births());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn symbols_keep_size_domain_and_champion(algorithm in for_symbols(), seed: u64) {
        check_generations(&Rugged::SMALL, &algorithm, seed, Rugged::fitness)?;
    }

    #[test]
    fn reals_keep_size_domain_and_champion(algorithm in for_reals(), seed: u64) {
        check_generations(&BOWL, &algorithm, seed, Bowl::fitness)?;
    }

    #[test]
    fn every_generation_brings_somebody(ga in gas(), elite in 0.0..=0.9) {
        let algorithm = Algorithm::Ga(Ga { elite, ..ga });
        prop_assert!(algorithm.births() > 0, "a budget of evaluations would never be spent");
    }

    #[test]
    fn the_elite_is_carried_over(ga in gas(), seed: u64) {
        let algorithm = Algorithm::Ga(ga.clone());
        let setting = alone(seed, &algorithm);
        let mut island = Island::found(&Rugged::SMALL, &setting, 0);
        let elite = ga.elite_count() as usize;
        for _ in 0..4 {
            let mut ranked: Vec<(f64, Vec<u8>)> =
                island.population().fitness().iter().copied().zip(genomes(island.population())).collect();
            // A stable sort: of equals the lower index comes first.
            ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
            let expected: Vec<Vec<u8>> = ranked.into_iter().take(elite).map(|(_, genome)| genome).collect();
            island.generation();
            let carried: Vec<Vec<u8>> = genomes(island.population()).into_iter().take(elite).collect();
            prop_assert_eq!(carried, expected);
        }
    }

    #[test]
    fn archives_hold_one_in_each_cell(archive in archives(), seed: u64) {
        let setting = alone(seed, &Algorithm::MapElites(archive.clone()));
        let mut island = Island::found(&BOWL, &setting, 0);
        for _ in 0..8 {
            island.generation();
            let population = island.population();
            let width = 2.0 * Bowl::EDGE as f32;
            let cells: BTreeSet<Vec<u64>> = (0..population.len())
                .map(|index| {
                    population.descriptors(index).iter().zip(&archive.bins).map(|(x, &bins)| {
                        let bin = ((x + Bowl::EDGE as f32) / width * bins as f32) as u64;
                        bin.min(u64::from(bins) - 1)
                    }).collect()
                })
                .collect();
            prop_assert_eq!(cells.len(), population.len());
        }
    }

    #[test]
    fn step_sizes_stay_positive(es in strategies(), seed: u64, sigma_min in prop_oneof![Just(0.0), 1e-60..1e-3]) {
        let es = Es { sigma_min, ..es };
        let setting = alone(seed, &Algorithm::Es(es.clone()));
        let mut island = Island::found(&BOWL, &setting, 0);
        for _ in 0..40 {
            island.generation();
            for index in 0..island.population().len() {
                let steps = island.population().steps(index).expect("an evolution strategy has steps");
                // The founders keep the steps that they were given, even if there are none.
                let founder = steps.iter().all(|&step| step == es.sigma as f32);
                prop_assert!(
                    founder || steps.iter().all(|&step| step > 0.0 && step.is_finite()), "{:?}", steps
                );
            }
        }
    }

    #[test]
    fn survivors_are_the_best_of_parents_and_children(es in strategies(), seed: u64) {
        let setting = alone(seed, &Algorithm::Es(Es { survival: Survival::Plus, ..es }));
        let mut island = Island::found(&BOWL, &setting, 0);
        let mut before: Vec<f64> = island.population().fitness().to_vec();
        before.sort_by(|a, b| b.total_cmp(a));
        for _ in 0..6 {
            island.generation();
            let after = island.population().fitness().to_vec();
            prop_assert!(after.is_sorted_by(|one, other| one >= other));
            prop_assert!(after.iter().zip(&before).all(|(after, before)| after >= before));
            before = after;
        }
    }

    #[test]
    fn what_cannot_be_judged_is_the_worst_and_counted(algorithm in for_symbols(), seed: u64) {
        let setting = alone(seed, &algorithm);
        let mut island = Island::found(&Holes, &setting, 0);
        let mut last = 0;
        for _ in 0..4 {
            let population = island.population();
            let mut holes = 0;
            for (genome, &fitness) in genomes(population).iter().zip(population.fitness()) {
                let expected = if genome[0] == 0 { f64::NEG_INFINITY } else { Rugged::fitness(genome) };
                prop_assert_eq!(fitness, expected);
                holes += u64::from(genome[0] == 0);
            }
            if island.age() == 0 {
                prop_assert_eq!(island.unjudgeable(), holes);
            }
            prop_assert!(island.unjudgeable() >= last && island.unjudgeable() <= island.evaluations());
            last = island.unjudgeable();
            island.generation();
        }
    }
}

#[test]
fn unjudgeable_children_are_counted_one_by_one() {
    // Without crossover, mutation and elite the children are copies, so the holes among them are those evaluated.
    let mut ga = Ga { population: 200, tournament: 1, ..Ga::default() };
    ga.crossover.rate = 0.0;
    ga.mutation.rate = evolution::algorithm::Rate::Constant(0.0);
    let setting = alone(5, &Algorithm::Ga(ga));
    let mut island = Island::found(&Holes, &setting, 0);
    for _ in 0..5 {
        let before = island.unjudgeable();
        island.generation();
        let holes = genomes(island.population()).iter().filter(|genome| genome[0] == 0).count() as u64;
        assert!(holes > 0, "the case is there at all");
        assert_eq!(island.unjudgeable() - before, holes);
    }
}

#[test]
fn recombined_steps_do_not_vanish() {
    // The product of two small steps lies far below the smallest number of 32 bits; their geometric mean does not.
    let (sigma, sigma_min) = (1e-30, 0.0);
    let es = Es { sigma, sigma_min, tau: Some(0.0), recombination: Recombination::Discrete, ..Es::default() };
    let setting = alone(1, &Algorithm::Es(es));
    let mut island = Island::found(&BOWL, &setting, 0);
    for _ in 0..20 {
        island.generation();
    }
    for index in 0..island.population().len() {
        let steps = island.population().steps(index).expect("an evolution strategy has steps");
        assert!(steps.iter().all(|&step| (0.99e-30..1.01e-30).contains(&step)), "{steps:?}");
    }
}

/// As many children as parents, so that all of them can be seen; they step from the mean.
fn around_the_mean(sigma: f64) -> Algorithm {
    let recombination = Recombination::Intermediate;
    Algorithm::Es(Es {
        parents: 7,
        offspring: 7,
        sigma,
        tau: Some(0.3),
        recombination,
        survival: Survival::Comma,
        ..Es::default()
    })
}

#[test]
fn the_first_child_is_the_mean_of_all_parents() {
    let setting = alone(3, &around_the_mean(0.5));
    let mut island = Island::found(&BOWL, &setting, 0);
    let best = island.champion().genome.clone();
    island.generation();
    assert!(genomes(island.population()).contains(&best), "the first children step from the best founder");
    for _ in 0..10 {
        let parents = genomes(island.population());
        let sum = |at: usize| parents.iter().map(|genome| genome[at]).sum::<f64>();
        let mean: Vec<f64> = (0..BOWL.dimensions).map(|at| sum(at) / 7.0).collect();
        island.generation();
        let near =
            |genome: &Vec<f64>| genome.iter().zip(&mean).all(|(gene, mean)| (gene - mean).abs() < 1e-12);
        assert_eq!(genomes(island.population()).iter().filter(|genome| near(genome)).count(), 1);
    }
}

#[test]
fn ranked_parents_and_mirrored_children_balance() {
    let Algorithm::Es(plain) = around_the_mean(0.01) else { unreachable!("it is a strategy") };
    let es = Es { weighting: Weighting::Rank, mirrored: true, tau: Some(0.0), ..plain };
    let setting = alone(3, &Algorithm::Es(es));
    let mut island = Island::found(&BOWL, &setting, 0);
    island.generation();
    for _ in 0..10 {
        // Survivors stand by rank; the best counts most.
        let parents = genomes(island.population());
        let weights: Vec<f64> = (1..=7).map(|rank| (7.5f64).ln() - f64::from(rank).ln()).collect();
        let all: f64 = weights.iter().sum();
        let sum =
            |at: usize| parents.iter().zip(&weights).map(|(genome, weight)| weight * genome[at]).sum::<f64>();
        let mean: Vec<f64> = (0..BOWL.dimensions).map(|at| sum(at) / all).collect();
        island.generation();
        let children = genomes(island.population());
        let off =
            |genome: &[f64]| genome.iter().zip(&mean).map(|(gene, mean)| gene - mean).collect::<Vec<_>>();
        let is_zero = |off: &[f64]| off.iter().all(|step| step.abs() < 1e-9);
        assert_eq!(children.iter().filter(|genome| is_zero(&off(genome))).count(), 1, "the mean itself");
        for one in &children {
            let partners = children.iter().filter(|other| {
                let both: Vec<f64> = off(one).iter().zip(off(other)).map(|(a, b)| a + b).collect();
                is_zero(&both)
            });
            assert_eq!(partners.count(), 1, "each has one that steps the other way");
        }
    }
}

#[test]
fn where_only_children_survive_the_best_parent_goes() {
    let founders = |survival| {
        let es = Es { parents: 5, offspring: 5, sigma: 1.0, survival, ..Es::default() };
        let setting = alone(9, &Algorithm::Es(es));
        let mut island = Island::found(&BOWL, &setting, 0);
        let before = genomes(island.population());
        island.generation();
        genomes(island.population()).iter().filter(|genome| before.contains(genome)).count()
    };
    assert_eq!(founders(Survival::Comma), 0);
    assert!(founders(Survival::Plus) > 0);
}
