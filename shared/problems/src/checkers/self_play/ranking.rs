//! Whether a setting finds out who is stronger: rankings of the same players by single generations, against one by long matches.
//! `./tests/long checkers-ranking` asks for 30 players.

use super::super::schedule::Schedule;
use super::super::{Checkers, Colours, Confirmation, Consult, Endgame, Openings, Points};
use super::draws::{evolved, population};
use evolution::algorithm::{Algorithm, Es, Recombination, Survival};
use evolution::problem::{Judging, Problem as _};
use evolution::random::Key;

/// CPU seconds of this thread so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

/// Rankings by single judgements: the fitness of all in each, and the CPU seconds of all of them.
fn rankings(keys: &Checkers, genomes: &[Vec<f32>], draws: u64) -> (Vec<Vec<f64>>, f64) {
    let problem = keys.problem().unwrap();
    let mut population = population(&problem, genomes);
    let begun = cpu_seconds();
    let rank = |draw| {
        problem.judge(&mut population, &Judging::new(0..genomes.len(), Key::new(draw, 0, 1)));
        population.fitness().to_vec()
    };
    ((0..draws).map(rank).collect(), cpu_seconds() - begun)
}

/// A ranking by long matches: all meet each other from this many openings, with both colours.
fn long_matches(keys: &Checkers, genomes: &[Vec<f32>], openings: u32) -> Vec<f64> {
    let champion = Confirmation { pairs: openings, ..keys.champion };
    let problem = Checkers { champion, ..keys.clone() }.problem().unwrap();
    let all: Vec<u32> = (0..genomes.len() as u32).collect();
    let judging = Judging::new(0..genomes.len(), Key::new(u64::MAX, 0, 1));
    let pairings = Schedule::round_robin(&problem.keys, &all, &judging);
    let (outcomes, _) = problem.play(&problem.networks(&population(&problem, genomes)), &pairings, None);
    problem.scores(genomes.len(), &pairings, outcomes)
}

/// Games as they were: 4 plies, 5 pairs a player.
fn before() -> Checkers {
    Checkers {
        depth: 4,
        games: 5,
        colours: Colours::Swapped,
        openings: Openings::Deck,
        points: Points { win: 1.0, draw: 0.0, loss: -1.0 },
        history: false,
        ..Checkers::default()
    }
}

/// More and cheaper games that are decided: 2 plies, 8 pairs a player.
fn now() -> Checkers {
    let endgame = Endgame { pieces: 4, consult: Consult::Always, ..Endgame::default() };
    let mut now = Checkers { depth: 2, games: 8, history: true, endgame, adjudicate: 4, ..before() };
    now.draw.quiet = 20;
    now
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

/// The players: some of each population of an evolution without learning, 2 plies ahead, from its founders on.
fn players(seed: u64, moments: &[u64], each: usize) -> Vec<Vec<f32>> {
    let keys = Checkers { depth: 2, games: 3, ..before() };
    let algorithm = Algorithm::Es(Es {
        parents: 6,
        offspring: 24,
        tau: Some(0.0),
        recombination: Recombination::Intermediate,
        survival: Survival::Comma,
        ..Es::default()
    });
    let populations = evolved(&keys, &algorithm, seed, moments);
    populations.into_iter().flat_map(|population| population.into_iter().take(each)).collect()
}

/// With `ATOLL_RANKING_PART` a part of `./tests/long checkers-ranking`, which says what it is; here a few players whose order
/// nobody can miss are ranked right.
#[test]
fn rankings_by_generations_and_by_long_matches_agree() {
    let Ok(part) = std::env::var("ATOLL_RANKING_PART") else { return agree_on_players_far_apart() };
    let genomes = players(number("ATOLL_RANKING_SEED", 61), &[0, 2, 4, 8, 12, 16, 24, 32, 48, 64], 3);
    let keys = match &*part {
        "now" | "decided-reference" => now(),
        "half" => Checkers { games: 2, ..before() },
        _ => before(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        if part.ends_with("reference") {
            let keys = Checkers { depth: 4, ..keys };
            keys.prepare();
            let begun = cpu_seconds();
            let ranking = long_matches(&keys, &genomes, number("ATOLL_RANKING_OPENINGS", 24) as u32);
            println!("ranking: {{ \"scores\": {ranking:?}, \"seconds\": {:.2} }}", cpu_seconds() - begun);
        } else {
            keys.prepare();
            let (fitness, seconds) = rankings(&keys, &genomes, number("ATOLL_RANKING_DRAWS", 30));
            println!("ranking: {{ \"fitness\": {fitness:?}, \"seconds\": {seconds:.3} }}");
        }
    });
}

fn agree_on_players_far_apart() {
    let keys = Checkers { depth: 1, ..now() };
    let direct = keys.architecture().weight_count() - 2;
    // One gives its pieces away, one does not care, one keeps them.
    let player = |weight: f32| {
        let mut genome = vec![0.0; direct + 2];
        (genome[direct], genome[direct + 1]) = (weight, 1.5);
        genome
    };
    let genomes = [-0.1, 0.0, 0.1].map(player);
    let is_ranked = |scores: &Vec<f64>| scores.is_sorted_by(|one, other| one < other);
    let known = long_matches(&keys, &genomes, 10);
    assert!(is_ranked(&known), "{known:?}");
    let (found, _) = rankings(&Checkers { games: 10, ..keys }, &genomes, 3);
    assert!(found.iter().all(is_ranked), "{found:?}");
}
