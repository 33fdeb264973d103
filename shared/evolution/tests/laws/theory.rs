//! What theory and experience promise, on functions whose answers are known.

use evolution::algorithm::{
    Algorithm, Crossover, Es, Ga, Mutation, MutationUnit, Rate, Recombination, Survival,
};
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Packet, World};
use evolution::gene::{Alphabet, Interval, Shape};
use evolution::island::{IslandSetting, Setting};
use evolution::migration::{Policy, Replacement};
use evolution::population::{Cost, Population};
use evolution::problem::{Judging, Problem};
use evolution::topology::Topology;
use rayon::prelude::*;

/// Rastrigin's function in ten dimensions; fitness is its negative.
struct Rastrigin;

impl Problem for Rastrigin {
    type Gene = f64;

    fn shape(&self) -> Shape<f64> {
        Shape { length: 10, domain: Interval { low: -5.12, high: 5.12 } }
    }

    fn judge(&self, population: &mut Population<f64>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| {
            let term = |x: &f64| x * x + 10.0 * (1.0 - libm::cos(std::f64::consts::TAU * x));
            -genome.iter().map(term).sum::<f64>()
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 200 }
    }
}

/// LOLZ of Lässig and Sudholt (2010): blocks that count one after the other. In the first block that is not all ones,
/// leading ones count, and so do leading zeros, but only up to `zeros`: a search that begins with zeros is trapped there.
struct Lolz {
    blocks: usize,
    length: usize,
    zeros: usize,
}

impl Lolz {
    fn fitness(&self, genome: &[u8]) -> usize {
        let leading = |block: &[u8], bit: u8| block.iter().take_while(|&&gene| gene == bit).count();
        let solved = genome.chunks(self.length).take_while(|block| leading(block, 1) == self.length).count();
        let next = genome.chunks(self.length).nth(solved);
        let part = next.map_or(0, |block| leading(block, 1).max(leading(block, 0).min(self.zeros)));
        solved * self.length + part
    }
}

impl Problem for Lolz {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.blocks * self.length, domain: Alphabet(2) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        let judge = |_, genome: &mut [u8], _: &mut [f32]| self.fitness(genome) as f64;
        population.judge_each(judging.fresh.clone(), self.cost(), judge)
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 50 }
    }
}

/// A bowl of many dimensions that is seen through noise: of the two who are compared, luck decides more than merit.
struct Noisy {
    deviation: f64,
}

impl Noisy {
    const DIMENSIONS: usize = 200;

    fn depth(genome: &[f64]) -> f64 {
        genome.iter().map(|x| x * x).sum::<f64>().sqrt()
    }
}

impl Problem for Noisy {
    type Gene = f64;

    fn shape(&self) -> Shape<f64> {
        Shape { length: Self::DIMENSIONS, domain: Interval { low: -5.0, high: 5.0 } }
    }

    fn judge(&self, population: &mut Population<f64>, judging: &Judging) -> u64 {
        for index in judging.fresh.clone() {
            let noise = self.deviation * judging.stream(index).gaussian();
            population.fitness_mut()[index] = noise - Self::depth(population.genome(index));
        }
        judging.fresh.len() as u64
    }

    /// All are judged again, so that no individual lives on a lucky judgement.
    fn absolute(&self) -> bool {
        false
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 500 }
    }
}

/// How islands are evolved, and for how long.
struct Plan {
    islands: u32,
    algorithm: Algorithm,
    policy: Policy,
    topology: Topology,
    interval: u64,
    epochs: u64,
}

/// The best fitness, and the evaluations it took.
fn evolve<P: Problem>(problem: P, plan: &Plan, seed: u64) -> (f64, u64) {
    let own =
        IslandSetting { algorithm: plan.algorithm.clone(), policy: plan.policy.clone(), exploits: false };
    let edges = plan.topology.edges(plan.islands, seed).unwrap();
    let world = World::new(
        problem,
        Setting { seed, islands: vec![own; plan.islands as usize], edges, opponents: vec![] },
    );
    let mut islands: Vec<EpochOutcome> = vec![];
    for epoch in 0..plan.epochs {
        let task = |island: u32| {
            let packet = |from: u32| {
                let departure = islands[from as usize].departure.clone();
                Packet { from, epoch: epoch - 1, departure }
            };
            let senders = if epoch == 0 { vec![] } else { world.setting().senders(island) };
            let packets = senders.into_iter().map(packet).collect();
            let state = islands.get(island as usize).map(|outcome| outcome.state.clone());
            EpochTask { island, epoch, until: (epoch + 1) * plan.interval, state, packets }
        };
        islands = (0..plan.islands).map(|island| epoch::run(&world, &task(island)).unwrap()).collect();
    }
    let best = islands.iter().map(|outcome| outcome.standing.best).fold(f64::NEG_INFINITY, f64::max);
    (best, islands.iter().map(|outcome| outcome.standing.evaluations).sum())
}

/// Within a millionth of the optimum in 400,000 evaluations, on at least nine of ten seeds.
#[test]
fn the_evolution_strategy_finds_rastrigins_optimum() {
    let es = Es {
        parents: 60,
        offspring: 300,
        // Small beside the dents: each founder goes down its own, and recombination joins the deepest of them.
        sigma: 0.05,
        tau: Some(0.4),
        recombination: Recombination::Discrete,
        ..Es::default()
    };
    let plan = Plan {
        islands: 4,
        algorithm: Algorithm::Es(es),
        policy: Policy::default(),
        topology: Topology::Ring,
        interval: 20,
        epochs: 15,
    };
    let results: Vec<(f64, u64)> =
        (0..10u64).into_par_iter().map(|seed| evolve(Rastrigin, &plan, seed)).collect();
    let found = results.iter().filter(|(best, _)| *best >= -1e-6).count();
    assert!(found >= 9, "{found} of 10: {results:?}");
    assert!(results.iter().all(|(_, evaluations)| *evaluations <= 400_000), "{results:?}");
}

/// One population follows its first good individual into the trap of some block; of many islands one goes the other way
/// and leads the others out. Both have the same number of individuals and of evaluations.
#[test]
fn islands_beat_one_population_where_it_is_deceived() {
    let runs = |islands: u32, population: u32, topology: Topology| -> (usize, u64) {
        let ga = Ga {
            population,
            tournament: 2,
            crossover: Crossover { rate: 0.0, ..Crossover::default() },
            mutation: Mutation { rate: Rate::Constant(1.0 / 64.0), per: MutationUnit::Gene, step: None },
            elite: 0.2,
        };
        let policy = Policy { count: 1, replacement: Replacement::WorstIfBetter, ..Policy::default() };
        let plan = Plan { islands, algorithm: Algorithm::Ga(ga), policy, topology, interval: 50, epochs: 60 };
        let results: Vec<(f64, u64)> = (0..12u64)
            .into_par_iter()
            .map(|seed| evolve(Lolz { blocks: 4, length: 16, zeros: 4 }, &plan, seed))
            .collect();
        let solved = results.iter().filter(|(best, _)| *best == 64.0).count();
        (solved, results.iter().map(|(_, evaluations)| evaluations).sum())
    };
    let islands = runs(16, 10, Topology::Ring);
    let one = runs(1, 160, Topology::Isolated);
    println!("solved of 12, and evaluations: {islands:?} by islands, {one:?} by one population");
    assert_eq!(islands.1, one.1, "both have the same number of evaluations");
    assert!(islands.0 >= 9 && one.0 <= 3, "{islands:?} by islands, {one:?} by one population");
}

#[test]
fn lolz_is_what_the_paper_says() {
    let lolz = Lolz { blocks: 2, length: 4, zeros: 2 };
    let cases: [([u8; 8], usize); 7] = [
        ([1, 1, 1, 1, 1, 1, 1, 1], 8),
        ([1, 1, 0, 1, 1, 1, 1, 1], 2),
        ([0, 1, 1, 1, 1, 1, 1, 1], 1),
        ([0, 0, 0, 0, 1, 1, 1, 1], 2),
        ([1, 1, 1, 1, 0, 0, 0, 1], 6),
        ([1, 1, 1, 1, 1, 1, 1, 0], 7),
        ([1, 1, 1, 1, 0, 1, 1, 1], 5),
    ];
    for (genome, fitness) in cases {
        assert_eq!(lolz.fitness(&genome), fitness, "{genome:?}");
    }
}

/// The mean of many chosen ones knows what none of them knows: where noise hides who is better, children of the mean of
/// all parents keep coming nearer, and children of single parents stop far away. Both spend the same evaluations.
#[test]
fn the_mean_of_all_parents_sees_through_noise() {
    let left = |recombination, survival, offspring: u32, generations: u64| -> f64 {
        let es = Es {
            parents: 15,
            offspring,
            sigma: 0.3,
            tau: Some(0.0),
            recombination,
            survival,
            ..Es::default()
        };
        let own = IslandSetting { algorithm: Algorithm::Es(es), policy: Policy::default(), exploits: false };
        let setting = Setting { seed: 4, islands: vec![own], edges: vec![], opponents: vec![] };
        let problem = Noisy { deviation: 1.0 };
        let mut island = evolution::island::Island::found(&problem, &setting, 0);
        for _ in 0..generations {
            island.generation();
        }
        let everybody = (0..15).map(|index| Noisy::depth(island.population().genome(index)));
        everybody.sum::<f64>() / 15.0
    };
    // 60 judgements a generation here, 30 there.
    let together = left(Recombination::Intermediate, Survival::Comma, 60, 600);
    let single = left(Recombination::None, Survival::Plus, 15, 1200);
    assert!(together < 0.5 * single, "{together} away together, {single} on their own");
}
