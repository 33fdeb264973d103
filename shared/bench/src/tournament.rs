//! Tournaments: games between networks, against the rate at which evolution plays them.

use crate::{Bench, Figure, median, process_cpu_seconds};
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

pub(crate) fn benches() -> Vec<Bench> {
    vec![("checkers.tournament", games)]
}

/// Tournaments, and batches of each: 10,010 games in all.
const TOURNAMENTS: u64 = 5;
const BATCHES: u32 = 77;
/// First generations that are played beside each tournament.
const GENERATIONS: u64 = 6;

/// Games of tournaments between new networks at 4 plies in a second of CPU time, against those of first generations,
/// which end their games by the same rules. They take turns, so that what slows the machine down slows down both.
fn games() -> Figure {
    let (mut tournament, mut evolution) = (vec![], vec![]);
    let mut played = 0;
    for seed in 0..TOURNAMENTS {
        let seeds = seed * GENERATIONS..(seed + 1) * GENERATIONS;
        evolution.push(rate(|| seeds.map(self_play).sum()));
        tournament.push(rate(|| {
            let games = batches(seed);
            played += games;
            games
        }));
    }
    let mut figure = Figure::new("games/s", median(tournament), median(evolution));
    figure.details.insert("games", played as f64);
    figure
}

fn rate(games: impl FnOnce() -> u64) -> f64 {
    let start = process_cpu_seconds();
    let games = games();
    games as f64 / (process_cpu_seconds() - start)
}

fn self_play(seed: u64) -> u64 {
    let own =
        IslandSetting { algorithm: Algorithm::Es(Es::default()), policy: Policy::default(), exploits: false };
    let setting = Setting { seed, islands: vec![own], edges: vec![], opponents: vec![] };
    let evolver = ProblemSpec::Checkers(Checkers { history: false, ..Checkers::default() })
        .evolver(setting)
        .expect("the defaults fit together");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads can be started");
    let task = EpochTask { island: 0, epoch: 0, until: 1, state: None, packets: vec![] };
    pool.install(|| run(&*evolver, &task)).expect("a founding needs nothing").standing.evaluations
}

/// Batches between each two of five networks like those that found an island.
fn batches(seed: u64) -> u64 {
    let contestants: Vec<Contestant> = (0..5).map(|number| network(5 * seed + number).into()).collect();
    let names = 0..contestants.len();
    let player = |number: usize| PlayerKeys {
        name: number.to_string(),
        player: Some("random".to_owned()),
        ..PlayerKeys::default()
    };
    let draw = DrawKeys { repetitions: 2, quiet_plies: 0, max_plies: 200 };
    let keys = TournamentKeys { draw, history: false, ..TournamentKeys::new(names.map(player).collect()) };
    let plan = Tournament::new("bench", seed, keys).expect("five players are a tournament");
    let plan = CellPlan::Tournament(Box::new(plan));
    let cells = (0..BATCHES).filter_map(|number| plan.compute(number, &contestants, || false).ok().flatten());
    cells.count() as u64 * 2 * Schedule::BATCH as u64
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
