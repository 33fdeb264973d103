//! How many of evolution's games are drawn. `./tests/long checkers-draws` looks further than these tests do.

use super::super::schedule::Schedule;
use super::super::{Checkers, Colours, Consult, Endgame, Openings};
use super::SelfPlay;
use crate::ProblemSpec;
use checkers::Outcome;
use evolution::algorithm::{Algorithm, Es};
use evolution::epoch::{EpochTask, run};
use evolution::island::{IslandSetting, Setting};
use evolution::migration::Policy;
use evolution::population::Population;
use evolution::problem::{Judging, Problem as _};
use evolution::random::Key;
use serde::Deserialize;

/// What an example evolves, and how.
#[derive(Deserialize)]
struct Example {
    problem: ProblemSpec,
    algorithm: Algorithm,
}

impl Example {
    fn read(name: &str) -> (Checkers, Algorithm) {
        let path = format!("{}/../../examples/checkers-{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let Self { problem, algorithm } = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let ProblemSpec::Checkers(keys) = problem else { panic!("{name} evolves players") };
        (keys, algorithm)
    }
}

/// The populations of an island after these numbers of generations.
pub(super) fn evolved(
    keys: &Checkers,
    algorithm: &Algorithm,
    seed: u64,
    moments: &[u64],
) -> Vec<Vec<Vec<f32>>> {
    let own = IslandSetting { algorithm: algorithm.clone(), policy: Policy::default(), exploits: false };
    let setting = Setting { seed, islands: vec![own], edges: vec![], opponents: vec![] };
    let evolver = ProblemSpec::Checkers(keys.clone()).evolver(setting).unwrap();
    let genome = |genome: Vec<f64>| genome.into_iter().map(|weight| weight as f32).collect();
    let mut state = None;
    let mut later = |(epoch, &until): (usize, &u64)| {
        let task = EpochTask { island: 0, epoch: epoch as u64, until, state: state.take(), packets: vec![] };
        let reached = run(&*evolver, &task).unwrap().state;
        let residents = evolver.residents(0, &reached).unwrap();
        state = Some(reached);
        residents.into_iter().map(|resident| genome(resident.genome)).collect()
    };
    moments.iter().enumerate().map(&mut later).collect()
}

/// A population of these individuals.
pub(super) fn population(problem: &SelfPlay, genomes: &[Vec<f32>]) -> Population<f32> {
    let mut population = Population::new(problem.shape(), 0);
    population.resize(genomes.len());
    for (index, genome) in genomes.iter().enumerate() {
        population.genome_mut(index).copy_from_slice(genome);
    }
    population
}

/// The share of drawn games among those that an evolved population would play in its next generation.
fn share_of_draws(keys: &Checkers, algorithm: &Algorithm, generations: u64) -> f64 {
    let genomes = evolved(keys, algorithm, 5, &[generations]).remove(0);
    // The same games, but more of them.
    let problem = Checkers { games: 60, ..keys.clone() }.problem().unwrap();
    let judging = Judging::new(0..genomes.len(), Key::new(5, 0, generations + 1));
    let pairings = Schedule::draw(&problem.keys, &judging, None);
    let (outcomes, _) = problem.play(&problem.networks(&population(&problem, &genomes)), &pairings, None);
    let drawn = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Draw(_))).count();
    drawn as f64 / outcomes.len() as f64
}

/// Prints a row of the long evidence.
fn measured(name: &str, keys: &Checkers, algorithm: &Algorithm, generations: u64) -> f64 {
    let share = share_of_draws(keys, algorithm, generations);
    println!("draws: | {name} | {} | {generations} | {:.1} % |", keys.depth, 100.0 * share);
    share
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

/// Games are decided with the keys that were made for it. `ATOLL_DRAWS_DEPTH=4` and `ATOLL_DRAWS_GENERATIONS=40` look
/// further.
#[test]
fn history_database_and_adjudication_decide_games_of_evolution() {
    let depth = number("ATOLL_DRAWS_DEPTH", 2) as u32;
    let generations = number("ATOLL_DRAWS_GENERATIONS", 10);
    let algorithm = Algorithm::Es(Es { parents: 4, offspring: 8, ..Es::default() });
    let old = Checkers {
        depth,
        games: 5,
        colours: Colours::Swapped,
        openings: Openings::Deck,
        history: false,
        ..Checkers::default()
    };
    let endgame = Endgame { pieces: 4, consult: Consult::Always, ..Endgame::default() };
    let history = Checkers { history: true, ..old.clone() };
    let database = Checkers { endgame, adjudicate: 4, ..history.clone() };
    let [old, history, database] =
        [("neither", old), ("history", history), ("history, database and adjudication", database)]
            .map(|(name, keys)| measured(name, &keys, &algorithm, generations));
    // Populations evolve apart, so the two new ones differ by chance; both are far from the old one.
    assert!(history.max(database) < 0.6 * old, "{old:.3}, {history:.3}, {database:.3}");
}

/// The examples that learn, as they are but for a few generations at 2 plies. `ATOLL_DRAWS_LEARNING=80` lets the one of 4 plies
/// evolve so long at its own depth, `ATOLL_DRAWS_OVERNIGHT=20` an island of the other.
#[test]
fn games_of_the_examples_that_learn_are_decided() {
    for (name, variable) in [("learning", "ATOLL_DRAWS_LEARNING"), ("overnight", "ATOLL_DRAWS_OVERNIGHT")] {
        let (mut keys, algorithm) = Example::read(name);
        let generations = number(variable, 0);
        if generations == 0 {
            keys.depth = 2;
            keys.learning.positions = 4096;
        }
        let name = format!("`examples/checkers-{name}.toml`");
        let share = measured(&name, &keys, &algorithm, generations.max(4));
        // At their own depth it is evidence, whatever it is; with the keys of before two of three games were drawn.
        assert!(generations > 0 || share <= 0.5, "{share}");
    }
}
