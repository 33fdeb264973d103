//! Tournaments: games between networks, against the rate at which evolution plays them.

use super::{Bench, Figure, median, process_cpu_seconds};
use archipelago::cell::CellPlan;
use checkers::{Network, NodeKind, PlayerSpec};
use evolution::algorithm::{Algorithm, Es};
use evolution::epoch::{EpochTask, run};
use evolution::island::{IslandSetting, Setting};
use evolution::migration::Policy;
use experiment::Tournament;
use experiment::tournament::{DrawKeys, PlayerKeys, TournamentKeys};
use problems::{Checkers, ProblemSpec};
use std::sync::Arc;
use tournament::{Contestant, Schedule};

pub(super) fn benches() -> Vec<Bench> {
    vec![("checkers.tournament", games)]
}

/// Games of a tournament between new networks at 4 plies in a second of CPU time, against those of a first generation,
/// which ends its games by the same rules.
fn games() -> Figure {
    let (mut tournament, mut evolution) = (vec![], vec![]);
    for seed in 0..5 {
        evolution.push(self_play(seed));
        tournament.push(batches(seed));
    }
    Figure::new("games/s", median(tournament), median(evolution))
}

fn rate(games: impl FnOnce() -> u64) -> f64 {
    let start = process_cpu_seconds();
    let games = games();
    games as f64 / (process_cpu_seconds() - start)
}

fn self_play(seed: u64) -> f64 {
    let own = IslandSetting { algorithm: Algorithm::Es(Es::default()), policy: Policy::default() };
    let setting = Setting { seed, islands: vec![own], edges: vec![] };
    let evolver =
        ProblemSpec::Checkers(Checkers::default()).evolver(setting).expect("the defaults fit together");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads can be started");
    let task = EpochTask { island: 0, epoch: 0, until: 1, state: None, packets: vec![] };
    rate(|| pool.install(|| run(&*evolver, &task)).expect("a founding needs nothing").standing.evaluations)
}

/// Eight batches between each two of four networks like those that found an island.
fn batches(seed: u64) -> f64 {
    let contestants: Vec<Contestant> = (0..4).map(|number| network(4 * seed + number).into()).collect();
    let names = 0..contestants.len();
    let player = |number: usize| PlayerKeys {
        name: number.to_string(),
        player: Some("random".to_owned()),
        ..PlayerKeys::default()
    };
    let draw = DrawKeys { repetitions: 2, quiet_plies: 0, max_plies: 200 };
    let keys = TournamentKeys { draw, ..TournamentKeys::new(names.map(player).collect()) };
    let plan = Tournament::new("bench", seed, keys).expect("four players are a tournament");
    let plan = CellPlan::Tournament(Box::new(plan));
    rate(|| {
        let cells = (0..8).filter_map(|number| plan.compute(number, &contestants, || false).ok().flatten());
        cells.count() as u64 * 2 * Schedule::BATCH as u64
    })
}

fn network(seed: u64) -> PlayerSpec {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut weight = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 * 0.4 - 0.2
    };
    let weights: Vec<f32> = (0..NodeKind::Weighted.weight_count()).map(|_| weight()).collect();
    let network = Network::new(NodeKind::Weighted, &weights).expect("weights of a network");
    PlayerSpec::Network { network: Arc::new(network), depth: 4 }
}
