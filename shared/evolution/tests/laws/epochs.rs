//! An epoch is a pure function: of no clock, no thread and no interruption.

use crate::settings::{alike, for_reals, for_symbols, policies};
use crate::worlds::{Bowl, Contest, Rugged};
use evolution::algorithm::{Algorithm, Ga};
use evolution::codec;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Packet, World};
use evolution::island::{IslandState, Setting};
use evolution::migration::Policy;
use evolution::population::PackedPopulation;
use evolution::problem::Problem;
use evolution::topology::Topology;
use proptest::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::LazyLock;

/// Pools of 1, 2 and 4 threads.
static POOLS: LazyLock<Vec<ThreadPool>> = LazyLock::new(|| {
    [1, 2, 4].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap()).into()
});

fn world<P: Problem>(
    problem: P,
    algorithm: &Algorithm,
    policy: &Policy,
    topology: &Topology,
    seed: u64,
) -> World<P> {
    World::new(problem, alike(seed, 3, topology, algorithm, policy))
}

/// Two epochs of three islands, the second with the migrants of the first.
fn two_epochs(world: &dyn Evolver) -> Vec<EpochOutcome> {
    let founding = |island| EpochTask { island, epoch: 0, until: 3, state: None, packets: vec![] };
    let first: Vec<EpochOutcome> =
        (0..3).map(|island| epoch::run(world, &founding(island)).unwrap()).collect();
    let second = second_tasks(world, &first);
    let second: Vec<EpochOutcome> = second.iter().map(|task| epoch::run(world, task).unwrap()).collect();
    [first, second].concat()
}

fn second_tasks(world: &dyn Evolver, first: &[EpochOutcome]) -> Vec<EpochTask> {
    (0..3)
        .map(|island| {
            let packet =
                |from: u32| Packet { from, epoch: 0, departure: first[from as usize].departure.clone() };
            let packets = world.setting().senders(island).into_iter().map(packet).collect();
            let state = Some(first[island as usize].state.clone());
            EpochTask { island, epoch: 1, until: 8, state, packets }
        })
        .collect()
}

/// An outcome as a worker would deliver it that claims other opponents.
fn with_opponents(outcome: &EpochOutcome, opponents: PackedPopulation<u8>) -> EpochOutcome {
    let state = IslandState { opponents, ..decode(&outcome.state) };
    let state = codec::encode(&state).unwrap();
    let statistics = codec::encode(&outcome.statistics).unwrap();
    EpochOutcome::of_bytes(state.to_vec().into(), outcome.departure.clone(), &statistics).1.unwrap()
}

fn decode(state: &[u8]) -> IslandState<u8> {
    codec::decode(state).unwrap()
}

#[test]
fn delivered_opponents_are_those_that_arrived_or_those_before() {
    let algorithm = Algorithm::Ga(Ga { population: 6, ..Ga::default() });
    let ring = alike(4, 3, &Topology::Ring, &algorithm, &Policy::default());
    let setting = Setting { opponents: ring.edges.clone(), ..ring.clone() };
    let (world, quiet) = (World::new(Rugged::SMALL, setting), World::new(Rugged::SMALL, ring));
    let outcomes = two_epochs(&world);
    let mut tasks = second_tasks(&world, &outcomes[..3]);
    // In a third epoch no immigrant arrives: the opponents of the state before stay.
    let last = EpochTask {
        epoch: 2,
        until: 10,
        state: Some(outcomes[3].state.clone()),
        packets: vec![],
        ..tasks[0].clone()
    };
    let stayed = epoch::run(&world, &last).unwrap();
    tasks.push(last);
    let none = decode(&outcomes[0].state).opponents;
    for (task, outcome) in tasks.iter().zip(outcomes[3..].iter().chain([&stayed])) {
        world.check(task, outcome).unwrap();
        assert_ne!(decode(&outcome.state).opponents, none, "opponents have arrived");
        let others = decode(&outcomes[3 + (task.island as usize + 1) % 3].state).opponents;
        for forged in [none.clone(), others] {
            let refused = world.check(task, &with_opponents(outcome, forged)).unwrap_err();
            assert!(refused.to_string().contains("the opponents that it was given"), "{refused}");
        }
    }
    // Where islands send each other none, there are none.
    let alone = two_epochs(&quiet);
    let task = &second_tasks(&quiet, &alone[..3])[0];
    quiet.check(task, &alone[3]).unwrap();
    assert!(quiet.check(task, &with_opponents(&alone[3], decode(&stayed.state).opponents)).is_err());
}

fn same_with_any_threads(world: &dyn Evolver) -> Result<(), TestCaseError> {
    let outcomes: Vec<Vec<EpochOutcome>> =
        POOLS.iter().map(|pool| pool.install(|| two_epochs(world))).collect();
    prop_assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    Ok(())
}

/// An epoch left after any generation and taken up again, against one that ran through.
fn same_when_resumed(world: &dyn Evolver, after: u64) -> Result<(), TestCaseError> {
    let through = two_epochs(world);
    for (task, expected) in second_tasks(world, &through).iter().zip(&through[3..]) {
        let mut left = world.begin(task).unwrap();
        for _ in 0..after {
            left.generation();
        }
        let checkpoint = left.checkpoint().unwrap();
        drop(left);
        let mut taken_up = world.resume(task, &checkpoint).unwrap();
        while taken_up.generation() {}
        prop_assert_eq!(&taken_up.finish().unwrap(), expected);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn threads_do_not_matter_for_symbols(
        algorithm in for_symbols(), policy in policies(), seed: u64, nanoseconds in prop_oneof![Just(1u64), Just(1 << 40)],
    ) {
        let problem = Rugged { nanoseconds, ..Rugged::SMALL };
        same_with_any_threads(&world(problem, &algorithm, &policy, &Topology::Ring, seed))?;
    }

    #[test]
    fn threads_do_not_matter_for_reals(
        algorithm in for_reals(), policy in policies(), seed: u64, nanoseconds in prop_oneof![Just(1u64), Just(1 << 40)],
    ) {
        let problem = Bowl { dimensions: 4, nanoseconds };
        same_with_any_threads(&world(problem, &algorithm, &policy, &Topology::FullyConnected, seed))?;
    }

    #[test]
    fn an_epoch_can_be_left_and_taken_up(
        algorithm in for_reals(), policy in policies(), seed: u64, after in 0u64..=5,
    ) {
        let problem = Bowl { dimensions: 4, nanoseconds: 10 };
        same_when_resumed(&world(problem, &algorithm, &policy, &Topology::TwoWayRing, seed), after)?;
    }

    #[test]
    fn a_relative_epoch_can_be_left_and_taken_up(
        algorithm in for_symbols(), policy in policies(), seed: u64, after in 0u64..=5,
    ) {
        same_when_resumed(&world(Contest, &algorithm, &policy, &Topology::Ring, seed), after)?;
    }

    #[test]
    fn hostile_bytes_are_errors(
        algorithm in for_reals(), seed: u64, bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let problem = Bowl { dimensions: 4, nanoseconds: 10 };
        let world = world(problem, &algorithm, &Policy::default(), &Topology::Ring, seed);
        let first = two_epochs(&world);
        let mut task = second_tasks(&world, &first).remove(0);
        // A flipped bit may by chance make another valid checkpoint or state; it must never make a panic.
        let mut left = world.begin(&task).unwrap();
        left.generation();
        let mut checkpoint = left.checkpoint().unwrap().to_vec();
        drop(left);
        let place = at.index(checkpoint.len());
        checkpoint[place] ^= 1 << bit;
        if let Ok(mut taken_up) = world.resume(&task, &checkpoint) {
            while taken_up.generation() {}
            drop(taken_up.finish());
        }
        let mut flipped = task.state.clone().unwrap().to_vec();
        let place = at.index(flipped.len());
        flipped[place] ^= 1 << bit;
        task.state = Some(flipped.into());
        let _ = world.begin(&task).map(drop);
        task.state = Some(bytes.clone().into());
        prop_assert!(world.begin(&task).is_err());
        prop_assert!(world.resume(&task, &bytes).is_err());
        prop_assert!(world.champion(&bytes).is_err());
    }
}

/// The generation at which an epoch began is a part of its checkpoint, and may be anything.
#[test]
fn a_checkpoint_of_another_stretch_is_refused() {
    let problem = Bowl { dimensions: 4, nanoseconds: 10 };
    let algorithm = Algorithm::Ga(Ga { population: 6, ..Ga::default() });
    let world = world(problem, &algorithm, &Policy::default(), &Topology::Ring, 1);
    let first = two_epochs(&world);
    let task = second_tasks(&world, &first).remove(0);
    let mut left = world.begin(&task).unwrap();
    left.generation();
    let checkpoint = left.checkpoint().unwrap();
    drop(left);
    let early = EpochTask { until: 1, ..task.clone() };
    assert!(world.resume(&early, &checkpoint).is_err(), "it is beyond the end");
    // What follows the state is the generation at which the epoch began, in one byte, then statistics without rows.
    let state = task.state.as_ref().unwrap().len();
    let begins = (state.saturating_sub(8)..checkpoint.len())
        .filter(|&at| checkpoint[at] == first[0].standing.generation as u8);
    let mut refused = 0;
    for at in begins {
        let mut later = checkpoint.to_vec();
        later[at] = 250;
        match world.resume(&task, &later) {
            Ok(mut taken_up) => while taken_up.generation() {},
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0);
}

/// Populations large enough that breeding is split over threads as well as judging.
#[test]
fn large_populations_are_the_same_with_any_threads() {
    let algorithm = Algorithm::Ga(Ga { population: 20_001, elite: 0.01, ..Ga::default() });
    for nanoseconds in [1, 20_000] {
        let problem = Rugged { length: 50, symbols: 4, nanoseconds };
        let world = world(problem, &algorithm, &Policy::default(), &Topology::Ring, 11);
        same_with_any_threads(&world).unwrap();
    }
}
