//! Laws of emigrants and immigrants.

use crate::settings::{alike, policies};
use crate::worlds::{Bowl, Contest, Rugged, genomes};
use evolution::algorithm::{Algorithm, Es, Ga, MapElites};
use evolution::gene::Gene;
use evolution::island::{Island, Setting};
use evolution::migration::{Departure, Emigrants, Immigrants, Policy, Replacement, Transfer};
use evolution::migration::{choose_emigrants, deal};
use evolution::population::Population;
use evolution::problem::Problem;
use evolution::random::{Key, Purpose};
use evolution::topology::Topology;
use proptest::prelude::*;

fn ga(population: u32) -> Algorithm {
    Algorithm::Ga(Ga { population, ..Ga::default() })
}

/// The emigrants of a departure that go to an island.
fn share<P: Problem>(problem: &P, departure: &Departure<P::Gene>, from: u32, to: u32) -> Immigrants<P::Gene> {
    let everybody =
        Population::unpack(departure.emigrants.clone(), problem.shape(), problem.axes().len()).unwrap();
    let mut individuals = Population::empty_like(&everybody);
    for &index in departure.share_of(to) {
        individuals.push_copy(&everybody, index as usize, 0.0);
    }
    Immigrants { from, epoch: 0, individuals }
}

/// All emigrants arrive: one migration over all islands.
fn migrate<P: Problem>(problem: &P, setting: &Setting, islands: &mut [Island<'_, P>]) {
    let departures: Vec<Departure<P::Gene>> = islands.iter_mut().map(|island| island.depart(0)).collect();
    for (to, island) in (0..).zip(islands) {
        let senders = setting.senders(to);
        let arriving = senders.iter().map(|&from| share(problem, &departures[from as usize], from, to));
        island.receive(arriving.collect());
    }
}

fn multiset<P: Problem<Gene = u8>>(islands: &[Island<'_, P>]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = islands.iter().flat_map(|island| genomes(island.population())).collect();
    all.sort();
    all
}

/// Topologies in which each island has as many senders as receivers, with their degree.
fn regular() -> impl Strategy<Value = (Topology, u32, u32)> {
    prop_oneof![
        (2u32..9).prop_map(|count| (Topology::Ring, count, 1)),
        (3u32..9).prop_map(|count| (Topology::TwoWayRing, count, 2)),
        Just((Topology::Torus { rows: 3 }, 9, 4)),
        Just((Topology::Hypercube, 8, 3)),
        (2u32..6).prop_map(|count| (Topology::FullyConnected, count, count - 1)),
        (4u32..9, 1u32..4).prop_map(|(count, degree)| (Topology::RandomRegular { degree }, count, degree)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn moved_migrants_are_conserved((topology, count, degree) in regular(), policy in policies(), seed: u64) {
        // Shares are equal when the emigrants can be dealt out evenly.
        let policy = Policy { count: policy.count * degree, transfer: Transfer::Move, ..policy };
        let setting = alike(seed, count, &topology, &ga(24), &policy);
        let mut islands: Vec<_> =
            (0..count).map(|number| Island::found(&Rugged::SMALL, &setting, number)).collect();
        for _ in 0..3 {
            let before = multiset(&islands);
            migrate(&Rugged::SMALL, &setting, &mut islands);
            prop_assert_eq!(&before, &multiset(&islands));
            islands.iter_mut().for_each(Island::generation);
        }
    }

    #[test]
    fn copies_take_nothing_away((topology, count, _) in regular(), policy in policies(), seed: u64) {
        let policy = Policy { transfer: Transfer::Copy, ..policy };
        let setting = alike(seed, count, &topology, &ga(24), &policy);
        let mut islands: Vec<_> =
            (0..count).map(|number| Island::found(&Rugged::SMALL, &setting, number)).collect();
        for island in &mut islands {
            let before = island.population().clone();
            island.depart(0);
            prop_assert_eq!(&before, island.population());
        }
        migrate(&Rugged::SMALL, &setting, &mut islands);
        prop_assert!(islands.iter().all(|island| island.population().len() == 24));
    }

    #[test]
    fn everybody_is_dealt_out(count in 0usize..30, neighbours in 1u32..8) {
        let neighbours: Vec<u32> = (10..10 + neighbours).collect();
        let moved = deal(count, &neighbours, Transfer::Move);
        let mut dealt: Vec<u32> = moved.iter().flat_map(|(_, share)| share.clone()).collect();
        dealt.sort_unstable();
        prop_assert_eq!(dealt, (0..count as u32).collect::<Vec<_>>());
        let sizes = || moved.iter().map(|(_, share)| share.len());
        prop_assert!(sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0) <= 1);
        for (to, share) in deal(count, &neighbours, Transfer::Copy) {
            prop_assert!(neighbours.contains(&to));
            prop_assert_eq!(share, (0..count as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn emigrants_are_chosen_as_named(policy in policies(), size in 1u32..30, seed: u64) {
        let setting = alike(seed, 1, &Topology::Isolated, &ga(size.max(2)), &policy);
        let island = Island::found(&Rugged::SMALL, &setting, 0);
        let population = island.population();
        let stream = || Key::new(seed, 7, 7).stream(0, Purpose::Emigration);
        let chosen = choose_emigrants(&Rugged::SMALL, population, &policy, &mut stream());
        let count = (policy.count as usize).min(population.len());
        let mut distinct = chosen.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), count, "nobody leaves twice");
        match policy.emigrants {
            Emigrants::Best => prop_assert_eq!(chosen, ranked(population)[..count].to_vec()),
            Emigrants::MostDiverse => prop_assert_eq!(chosen, farthest_first(population, count)),
            Emigrants::Tournament => {
                let mut stream = stream();
                let mut left: Vec<u32> = (0..population.len() as u32).collect();
                for winner in chosen {
                    let pair = [left[stream.below(left.len())], left[stream.below(left.len())]];
                    let better = pair.into_iter().min_by_key(|&one| place(population, one)).unwrap();
                    prop_assert_eq!(winner, better);
                    let at = left.iter().position(|&one| one == winner).unwrap();
                    left.swap_remove(at);
                }
            }
            Emigrants::Random => {}
        }
    }

    #[test]
    fn immigrants_replace_whom_the_policy_names(policy in policies(), size in 2u32..20, seed: u64, groups in 0u32..5) {
        let policy = Policy { transfer: Transfer::Copy, ..policy };
        let setting = alike(seed, 6, &Topology::Isolated, &ga(size), &policy);
        let mut island = Island::found(&Rugged::SMALL, &setting, 0);
        let immigrants: Vec<Immigrants<u8>> = (1..=groups)
            .map(|from| Immigrants {
                from,
                epoch: 0,
                individuals: Island::found(&Rugged::SMALL, &setting, from).population().clone(),
            })
            .collect();
        let residents = people(island.population());
        let newcomers: Vec<_> = immigrants.iter().flat_map(|group| people(&group.individuals)).collect();
        let arrivals = island.receive(immigrants);
        let after = people(island.population());
        prop_assert_eq!(after.len(), residents.len());
        let accepted: usize = arrivals.iter().map(|arrival| arrival.accepted as usize).sum();
        if policy.replacement == Replacement::Random {
            let changed = after.iter().zip(&residents).filter(|(after, before)| after != before).count();
            prop_assert_eq!(accepted, newcomers.len().min(residents.len()), "nobody is refused while there is room");
            prop_assert!(changed <= accepted);
            prop_assert!(newcomers[..accepted].iter().all(|newcomer| after.contains(newcomer)));
        } else {
            let (expected, taken) = settled(residents, &newcomers, policy.replacement);
            prop_assert_eq!(after, expected);
            prop_assert_eq!(accepted, taken);
        }
    }

    #[test]
    fn relative_fitness_is_judged_anew_on_arrival(size in 2u32..12, newcomers in 1u32..12, seed: u64) {
        let policy = Policy { replacement: Replacement::WorstIfBetter, ..Policy::default() };
        let setting = alike(seed, 1, &Topology::Isolated, &ga(size), &policy);
        let mut island = Island::found(&Contest, &setting, 0);
        let other = alike(seed ^ 1, 1, &Topology::Isolated, &ga(newcomers.max(2)), &policy);
        let mut individuals = Island::found(&Contest, &other, 0).population().clone();
        // What they were worth at home says nothing here, however much it was.
        individuals.fitness_mut().fill(1e9);
        let together = [genomes(island.population()), genomes(&individuals)].concat();
        let judged = Contest::fitness(&together);
        let residents: Vec<_> = together.iter().cloned().zip(judged.iter().copied()).take(size as usize).collect();
        let arriving: Vec<_> = together.iter().cloned().zip(judged.iter().copied()).skip(size as usize).collect();
        let before = island.evaluations();
        island.receive(vec![Immigrants { from: 0, epoch: 0, individuals }]);
        let (expected, _) = settled(residents, &arriving, Replacement::WorstIfBetter);
        prop_assert_eq!(people(island.population()), expected);
        prop_assert_eq!(island.evaluations() - before, together.len() as u64);
        prop_assert_eq!(island.champion().fitness, island.population().best_fitness());
    }

    #[test]
    fn archives_share_by_migration(seed: u64, bins in 1u32..6) {
        let archive = MapElites { bins: vec![bins, bins], founders: 30, ..MapElites::default() };
        let bowl = Bowl { dimensions: 2, nanoseconds: 10 };
        let policy = Policy { count: 9, ..Policy::default() };
        let setting = alike(seed, 2, &Topology::Ring, &Algorithm::MapElites(archive), &policy);
        let mut islands: Vec<_> = (0..2).map(|number| Island::found(&bowl, &setting, number)).collect();
        let elites: Vec<f64> = islands.iter().map(|island| island.population().best_fitness()).collect();
        let sizes: Vec<usize> = islands.iter().map(|island| island.population().len()).collect();
        migrate(&bowl, &setting, &mut islands);
        let best = elites[0].max(elites[1]);
        for (island, size) in islands.iter().zip(sizes) {
            prop_assert_eq!(island.population().best_fitness(), best, "the best elite is everywhere");
            prop_assert!(island.population().len() >= size, "an archive never shrinks");
            prop_assert!(island.population().len() <= (bins * bins) as usize);
        }
    }
}

/// Where an individual stands among all: the fitter first, then the lower index.
fn place<G: Gene>(population: &Population<G>, one: u32) -> usize {
    ranked(population).iter().position(|&other| other == one).unwrap()
}

fn ranked<G: Gene>(population: &Population<G>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..population.len() as u32).collect();
    order.sort_by(|&a, &b| population.fitness()[b as usize].total_cmp(&population.fitness()[a as usize]));
    order
}

/// The fittest, then always the one whose nearest chosen one is farthest, the lowest of equals.
fn farthest_first(population: &Population<u8>, count: usize) -> Vec<u32> {
    let mut chosen: Vec<u32> = ranked(population).into_iter().take(count.min(1)).collect();
    while chosen.len() < count {
        let distance = |one: u32, other: &u32| {
            u8::distance(population.genome(one as usize), population.genome(*other as usize)) as u64
        };
        let nearest = |one: u32| chosen.iter().map(|other| distance(one, other)).min().unwrap();
        let left = (0..population.len() as u32).filter(|one| !chosen.contains(one));
        // `max_by_key` keeps the last of equals, so the order is turned round.
        let next = left.rev().max_by_key(|&one| nearest(one)).unwrap();
        chosen.push(next);
    }
    chosen
}

type Person = (Vec<u8>, f64);

fn people(population: &Population<u8>) -> Vec<Person> {
    genomes(population).into_iter().zip(population.fitness().iter().copied()).collect()
}

/// Residents after newcomers have come one by one, each into a place that no newcomer has taken; and how many found one.
fn settled(mut people: Vec<Person>, newcomers: &[Person], replacement: Replacement) -> (Vec<Person>, usize) {
    let mut taken = vec![];
    for (genome, fitness) in newcomers {
        let free = (0..people.len()).filter(|at| !taken.contains(at));
        let found = match replacement {
            Replacement::Worst | Replacement::WorstIfBetter => {
                free.rev().min_by(|&a, &b| people[a].1.total_cmp(&people[b].1))
            }
            Replacement::MostSimilar => free.min_by_key(|&at| u8::distance(&people[at].0, genome) as u64),
            Replacement::Random => unreachable!("chance has no reference"),
        };
        let Some(at) = found else { continue };
        let enters = match replacement {
            Replacement::WorstIfBetter => *fitness > people[at].1,
            Replacement::MostSimilar => *fitness >= people[at].1,
            _ => true,
        };
        if enters {
            people[at] = (genome.clone(), *fitness);
            taken.push(at);
        }
    }
    (people, taken.len())
}

#[test]
fn random_emigrants_are_anybody() {
    let policy = Policy { count: 3, emigrants: Emigrants::Random, ..Policy::default() };
    let setting = alike(1, 1, &Topology::Isolated, &ga(10), &policy);
    let island = Island::found(&Rugged::SMALL, &setting, 0);
    let mut counts = [0u32; 10];
    for seed in 0..10_000 {
        let mut stream = Key::new(seed, 0, 0).stream(0, Purpose::Emigration);
        for index in choose_emigrants(&Rugged::SMALL, island.population(), &policy, &mut stream) {
            counts[index as usize] += 1;
        }
    }
    // Each is chosen 3,000 times with a deviation of 46.
    assert!(counts.iter().all(|&count| count.abs_diff(3000) < 230), "{counts:?}");
}

#[test]
fn random_replacement_spares_nobody() {
    let policy = Policy { replacement: Replacement::Random, ..Policy::default() };
    let mut replaced = [0u32; 10];
    for seed in 0..2000 {
        let setting = alike(seed, 2, &Topology::Isolated, &ga(10), &policy);
        let mut island = Island::found(&Rugged::SMALL, &setting, 0);
        let before = people(island.population());
        let mut individuals = Island::found(&Rugged::SMALL, &setting, 1).population().clone();
        individuals.resize(1);
        island.receive(vec![Immigrants { from: 1, epoch: 0, individuals }]);
        for (at, person) in people(island.population()).iter().enumerate() {
            replaced[at] += u32::from(*person != before[at]);
        }
    }
    assert_eq!(replaced.iter().sum::<u32>(), 2000);
    // Each place is taken 200 times with a deviation of 13.
    assert!(replaced.iter().all(|&count| count.abs_diff(200) < 70), "{replaced:?}");
}

#[test]
fn immigrants_without_steps_get_those_of_the_island() {
    let bowl = Bowl { dimensions: 3, nanoseconds: 10 };
    let es = Es { parents: 4, sigma: 0.25, ..Es::default() };
    let policy = Policy { replacement: Replacement::Worst, ..Policy::default() };
    let setting = alike(1, 2, &Topology::Isolated, &Algorithm::Es(es), &policy);
    let mut island = Island::found(&bowl, &setting, 0);
    let other = alike(2, 1, &Topology::Isolated, &ga(3), &policy);
    let individuals = Island::found(&bowl, &other, 0).population().clone();
    assert!(individuals.steps(0).is_none());
    island.receive(vec![Immigrants { from: 1, epoch: 0, individuals }]);
    for index in 0..4 {
        assert_eq!(island.population().steps(index), Some(&[0.25f32; 3][..]));
    }
    island.generation();
}
