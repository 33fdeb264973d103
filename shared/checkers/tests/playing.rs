//! The playing search: by time, nodes or depth, on one thread or several.

use checkers::{
    Consult, Database, DrawRules, Endgames, Evaluator, Game, Knowledge, Limits, Line, MAX_DEPTH, Material,
    Network, NetworkEvaluator, NodeKind, PlaySettings, PlayerSpec, PlayingSearch, Position, RandomOpinion,
    Reuse, Search, Style, Watch, openings,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::support::{Random, random_network, random_position};

fn playing(threads: u32) -> PlayingSearch {
    PlayingSearch::new(PlaySettings { threads, ..PlaySettings::default() }, Style::default())
}

fn run<E: Evaluator + Clone + Send>(
    search: &mut PlayingSearch,
    evaluator: &mut E,
    position: &Position,
    limits: &Limits,
) -> Option<checkers::Found> {
    let stop = AtomicBool::new(false);
    search.run(evaluator, position, limits, &mut Watch { stop: &stop, report: &mut |_, _, _| {} })
}

fn is_legal(root: &Position, line: &Line) -> bool {
    let mut position = *root;
    line.moves.iter().all(|mv| {
        let legal = position.legal_moves().contains(mv);
        position = position.play(mv);
        legal
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn on_one_thread_it_finds_the_same_again(seed: u64, nodes in 50u64..20_000, lines in 1usize..4) {
        let mut random = Random::new(seed);
        let position = random_position(&mut random, 90);
        let limits = Limits { nodes: Some(nodes), lines, ..Limits::depth(MAX_DEPTH) };
        let network = Arc::new(random_network(NodeKind::Sum, &mut random));
        let once = || {
            let mut search = playing(1);
            let found = run(&mut search, &mut NetworkEvaluator::new(network.clone()), &position, &limits);
            (found, search.lines().to_vec())
        };
        let (found, best) = once();
        prop_assert_eq!(&(found, best.clone()), &once());
        prop_assert_eq!(found.is_none(), position.legal_moves().is_empty());
        if let Some(found) = found {
            // The first ply is searched whatever the limits.
            prop_assert!(found.nodes <= nodes.max(2000), "{} of {}", found.nodes, nodes);
            prop_assert_eq!(best.len(), lines.min(position.legal_moves().len()));
            prop_assert!(best.iter().all(|line| is_legal(&position, line)));
            prop_assert_eq!(best[0].moves[0], found.best);
            let firsts: Vec<_> = best.iter().map(|line| line.moves[0]).collect();
            let distinct = firsts.iter().enumerate().all(|(at, mv)| !firsts[..at].contains(mv));
            prop_assert!(distinct, "a move has two lines: {:?}", best);
        }
    }

    /// What is proved is true: an exact search of as many plies finds the same end or a quicker one.
    #[test]
    fn what_it_proves_an_exact_search_proves_too(seed: u64) {
        let mut random = Random::new(seed);
        let position = random_position(&mut random, 120);
        let mut evaluator = RandomOpinion { seed };
        let Some(found) = run(&mut playing(1), &mut evaluator, &position, &Limits::depth(7)) else { return Ok(()) };
        let exact = |plies: u32| {
            let mut search = Search::new(14, Reuse::EqualDepth);
            search.run(&mut evaluator.clone(), &position, &Limits::depth(plies)).unwrap().score
        };
        if let Some(plies) = found.score.win_in().filter(|plies| *plies <= 11) {
            prop_assert!(exact(plies).win_in().is_some_and(|sooner| sooner <= plies), "{:?} {:?}", position, found);
        }
    }
}

#[test]
fn several_threads_find_legal_moves_and_stop_in_time() {
    let mut search = playing(2);
    let limits = Limits { time: Some(Duration::from_millis(60)), ..Limits::depth(MAX_DEPTH) };
    for opening in openings().iter().step_by(40) {
        let start = Instant::now();
        let found = run(&mut search, &mut Material { seed: 1 }, &opening.position, &limits).unwrap();
        assert!(opening.position.legal_moves().contains(&found.best));
        assert!(found.depth >= 3, "{found:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "it was told to stop after 60 ms");
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let (stop, mut depths) = (AtomicBool::new(false), vec![]);
    let mut report = |depth: u32, _: u64, lines: &[Line]| {
        assert_eq!(lines.len(), 1);
        depths.push(depth);
        if depth == 4 {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let mut watch = Watch { stop: &stop, report: &mut report };
    let found =
        playing(1).run(&mut Material { seed: 1 }, &Position::START, &Limits::depth(MAX_DEPTH), &mut watch);
    assert!(found.is_some());
    assert!(depths.len() < 20 && depths[..4] == [1, 2, 3, 4], "{depths:?}");
}

#[test]
fn a_man_is_worth_what_the_evaluator_says() {
    let man = playing(1).man(&mut Material { seed: 1 });
    assert!((man - 1.0 / 32.0).abs() < 0.005, "{man}");
    let weights: Vec<f32> =
        (0..NodeKind::Sum.weight_count()).map(|at| if at == 4101 { 0.25 } else { 0.0 }).collect();
    let network = Network::new(NodeKind::Sum, &weights).unwrap();
    let man = playing(1).man(&mut NetworkEvaluator::new(Arc::new(network)));
    assert!((man - 0.25).abs() < 0.05, "{man}: tanh of a quarter for each piece");
}

#[test]
fn it_wins_what_the_database_knows_and_does_not_go_round_in_circles() {
    let endgames = Some(Endgames { database: Database::shared(3).unwrap(), consult: Consult::Always });
    let style = Style { history: true, ..Style::default() };
    let knowledge = Knowledge { endgames, style, ..Knowledge::default() };
    let player = PlayerSpec::Knowing { player: Box::new(PlayerSpec::Material { depth: 4 }), knowledge };
    let limits = Limits { nodes: Some(20_000), ..Limits::depth(MAX_DEPTH) };
    let spec = PlayerSpec::Playing { player: Box::new(player), limits, settings: PlaySettings::default() };
    let (mut winner, mut loser) = (spec.build(), PlayerSpec::Material { depth: 6 }.build());
    winner.new_game(1);
    loser.new_game(2);
    let mut game = Game::from_position("B:WK1:BK18,K22".parse().unwrap(), DrawRules::default());
    let outcome = game.play_out(&mut *winner, &mut *loser);
    assert_eq!(outcome, checkers::Outcome::Win(checkers::Side::Black), "{:?}", game.moves());
}

/// A draw is worth what contempt says: men below zero to the side that searches.
#[test]
fn contempt_decides_whether_a_repetition_is_played() {
    let mut game = Game::from_position("B:WK32:BK1".parse().unwrap(), DrawRules::default());
    for text in ["1-6", "32-28", "6-1"] {
        let mv = game.position().parse_move(text).unwrap();
        game.play(mv).unwrap();
    }
    // White may step back into the position that the game began with, or away from it.
    let back = game.position().parse_move("28-32").unwrap();
    let limits = Limits { lines: 2, ..Limits::depth(5) };
    for contempt in [1.0_f32, -1.0] {
        let settings = PlaySettings { contempt, ..PlaySettings::default() };
        let mut search = PlayingSearch::new(settings, Style { history: true, ..Style::default() });
        search.follow(&game);
        let mut evaluator = Material { seed: 1 };
        let man = search.man(&mut evaluator);
        let found = run(&mut search, &mut evaluator, game.position(), &limits).unwrap();
        assert_eq!(search.lines().len(), 2);
        let line = search.lines().iter().find(|line| line.moves[0] == back).unwrap();
        let due = -contempt * man;
        assert!(
            (line.score.value() - due).abs() < 1e-3,
            "{contempt}: {} instead of {due}",
            line.score.value()
        );
        assert_eq!(found.best == back, contempt < 0.0, "{contempt}: {found:?}");
    }
}

/// Nodes to a depth from the start, against the search that players used before, with its table of 2^14 entries.
/// `ATOLL_SEARCH_DEPTH=16` looks further, as `./tests/long checkers-search` does.
#[test]
fn a_depth_takes_the_playing_search_at_most_half_the_nodes() {
    let depth = std::env::var("ATOLL_SEARCH_DEPTH").map_or(11, |depth| depth.parse().unwrap());
    let limits = Limits::depth(depth);
    let mut start = Instant::now();
    let mut seconds = || std::mem::replace(&mut start, Instant::now()).elapsed().as_secs_f64();
    let mut exact = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
    let before = exact.run(&mut Material { seed: 1 }, &Position::START, &limits).unwrap();
    println!("search: | exact, two plies at a time, 2^14 entries | {} | {:.2} |", before.nodes, seconds());
    let now = run(&mut playing(1), &mut Material { seed: 1 }, &Position::START, &limits).unwrap();
    println!("search: | playing, a table by the depth | {} | {:.2} |", now.nodes, seconds());
    assert_eq!((before.depth, now.depth), (depth, depth));
    assert!(2 * now.nodes <= before.nodes, "{} of {}", now.nodes, before.nodes);
}
