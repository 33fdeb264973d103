//! Checkers evolution: games that a generation plays, on one core and on all of them.

use crate::{Bench, Figure, median};
use evolution::algorithm::{Algorithm, Es};
use evolution::epoch::{EpochTask, run};
use evolution::island::{IslandSetting, Setting};
use evolution::migration::Policy;
use problems::{Checkers, ProblemSpec};
use std::time::Instant;

pub(crate) fn benches() -> Vec<Bench> {
    vec![("checkers.selfplay", self_play)]
}

/// Games a second at 4 plies on all cores, against one core. This is wall time: what cores wait for each other counts.
fn self_play() -> Figure {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut all, mut one) = (vec![], vec![]);
    for seed in 0..3 {
        one.push(games_a_second(1, seed));
        all.push(games_a_second(cores, seed));
    }
    let (all, one) = (median(all), median(one));
    let mut figure = Figure::new("games/s", all, one);
    figure.details.extend([("on one thread", one), ("on all threads", all), ("threads", cores as f64)]);
    figure
}

/// The setting of Chellapilla and Fogel for one generation.
fn games_a_second(threads: usize, seed: u64) -> f64 {
    let own =
        IslandSetting { algorithm: Algorithm::Es(Es::default()), policy: Policy::default(), exploits: false };
    let setting = Setting { seed, islands: vec![own], edges: vec![], opponents: vec![] };
    let evolver = ProblemSpec::Checkers(Checkers { history: false, ..Checkers::default() })
        .evolver(setting)
        .expect("the defaults fit together");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    let task = EpochTask { island: 0, epoch: 0, until: 2, state: None, packets: vec![] };
    let start = Instant::now();
    let outcome = pool.install(|| run(&*evolver, &task)).expect("a founding needs nothing");
    outcome.standing.evaluations as f64 / start.elapsed().as_secs_f64()
}
