//! Every solver's answer, replayed by an independent judge; and the exact solver against trying everything.

use crate::checker::walk;
use crate::random_boards::boards;
use maze::{Board, Chokudai, Direction, Exact, Horizon, MAX_TURNS, SearchError, Solution, Turns};
use maze::{greedy, greedy_with_random_ties, random};
use proptest::prelude::*;
use std::collections::HashMap;

fn turns(count: usize) -> Turns {
    Turns::new(count).unwrap()
}

fn is_honest(board: &Board, turns: Turns, solution: &Solution) -> Result<(), TestCaseError> {
    prop_assert_eq!(solution.path.len(), turns.count());
    let genes: Vec<u8> = solution.path.iter().map(|way| way.gene()).collect();
    let replayed = walk(board, &genes, |_, _| None).map(|(_, score)| score);
    prop_assert_eq!(replayed, Some(solution.score));
    prop_assert_eq!(board.collect(&solution.path), Ok(solution.score));
    prop_assert!(solution.bound.is_none_or(|bound| bound >= solution.score));
    Ok(())
}

/// A source that is random enough for tests.
fn source(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    }
}

fn searches() -> impl Strategy<Value = Chokudai> {
    (1usize..6, 1usize..5, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(width, beams, replan, distinct, full)| {
            let horizon = if full { Horizon::Full } else { Horizon::Remaining };
            Chokudai { width, beams, replan, horizon, distinct }
        },
    )
}

/// The optimum by trying every move from every distinct state, where a state is a cell and the set of cells
/// taken.
fn best_of_all(board: &Board, turns: usize) -> u32 {
    let mut layer = HashMap::from([((board.start(), 0u128), 0)]);
    for _ in 0..turns {
        let mut next = HashMap::new();
        for ((cell, taken), score) in layer {
            for (_, to) in board.moves(cell) {
                let gain = if taken >> to & 1 == 1 { 0 } else { u32::from(board.points(to).unwrap()) };
                next.insert((to, taken | 1 << to), score + gain);
            }
        }
        layer = next;
    }
    layer.into_values().max().unwrap()
}

fn small_boards() -> impl Strategy<Value = Board> {
    boards().prop_filter("taken cells fit a word", |board| board.cells() <= 121)
}

proptest! {
    #[test]
    fn the_simple_solvers_are_honest(board in boards(), count in 1usize..60, seed in any::<u64>()) {
        is_honest(&board, turns(count), &random(&board, turns(count), source(seed)))?;
        is_honest(&board, turns(count), &greedy(&board, turns(count)))?;
        is_honest(&board, turns(count), &greedy_with_random_ties(&board, turns(count), source(seed)))?;
    }

    #[test]
    fn every_kind_of_beam_is_honest(board in boards(), count in 1usize..30, search in searches()) {
        is_honest(&board, turns(count), &search.solve(&board, turns(count)).unwrap())?;
    }

    #[test]
    fn a_distinct_beam_wide_enough_for_every_state_finds_the_optimum(board in small_boards(), count in 1usize..8) {
        let search =
            Chokudai { width: 2000, beams: 1, replan: false, horizon: Horizon::Remaining, distinct: true };
        prop_assert_eq!(search.solve(&board, turns(count)).unwrap().score, best_of_all(&board, count));
    }

    #[test]
    fn the_exact_solver_finds_what_trying_everything_finds(board in small_boards(), count in 1usize..10) {
        let found = Exact::default().solve(&board, turns(count)).unwrap();
        is_honest(&board, turns(count), &found)?;
        prop_assert!(found.is_proved());
        prop_assert_eq!(found.score, best_of_all(&board, count));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// On boards this small every path of this number of turns comes back to cells that it has left long ago.
    #[test]
    fn the_exact_solver_is_right_on_crowded_boards(
        side in 2usize..5, seed in any::<u32>(), walls in 0u8..30, count in 10usize..20
    ) {
        let board = Board::generate_walled(side, side, seed, walls).unwrap();
        let found = Exact::default().solve(&board, turns(count)).unwrap();
        is_honest(&board, turns(count), &found)?;
        prop_assert!(found.is_proved());
        prop_assert_eq!(found.score, best_of_all(&board, count));
    }

    #[test]
    fn bounds_hold_however_early_the_exact_solver_must_stop(
        side in 6usize..12, seed in any::<u32>(), count in 20usize..40, max_states in 0u64..50_000
    ) {
        let board = Board::generate(side, side, seed).unwrap();
        let cut = Exact { max_states, ..Exact::default() }.solve(&board, turns(count)).unwrap();
        let whole = Exact::default().solve(&board, turns(count)).unwrap();
        is_honest(&board, turns(count), &cut)?;
        prop_assert!(whole.is_proved());
        prop_assert!(cut.score <= whole.score && whole.score <= cut.bound.unwrap());
    }
}

#[test]
fn greedy_takes_the_first_of_equals_in_search_order() {
    let cells = [0, 5, 0, 5, 0, 5, 0, 5, 0].map(Some);
    let board = Board::new(3, 3, maze::Place { x: 1, y: 1 }, &cells).unwrap();
    assert_eq!(greedy(&board, turns(1)).path, [Direction::Right]);
}

#[test]
fn ties_broken_at_random_reach_every_best_move_and_no_other() {
    let cells = [0, 5, 0, 4, 0, 5, 0, 5, 0].map(Some);
    let board = Board::new(3, 3, maze::Place { x: 1, y: 1 }, &cells).unwrap();
    let mut random = source(1);
    let mut firsts: Vec<Direction> =
        (0..100).map(|_| greedy_with_random_ties(&board, turns(1), &mut random).path[0]).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts, [Direction::Up, Direction::Down, Direction::Right]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_reason() {
    let board = Board::generate(128, 128, 0).unwrap();
    let none = Chokudai { width: 0, ..Chokudai::default() }.solve(&board, turns(5));
    assert_eq!(none, Err(SearchError::Nothing { width: 0, beams: 2 }));
    for (width, beams) in [(usize::MAX, usize::MAX), (100_000, 100)] {
        let huge = Chokudai { width, beams, ..Chokudai::default() }.solve(&board, turns(MAX_TURNS));
        assert!(matches!(huge, Err(SearchError::Memory { .. })), "{huge:?}");
    }
    let long = Exact::default().solve(&board, turns(MAX_TURNS)).unwrap_err();
    assert_eq!(long.to_string(), "expected at most 1000 turns for a bound, found `10000`");
    let large = Exact { max_memory: 1 << 20, ..Exact::default() }.solve(&board, turns(1000)).unwrap_err();
    assert!(large.to_string().starts_with("expected bounds that fit in 1048576 bytes"), "{large}");
}

#[test]
fn turns_of_none_and_of_too_many_are_refused() {
    assert_eq!(Turns::new(0).unwrap_err().to_string(), "expected 1 to 10000 turns, found `0`");
    assert_eq!(Turns::new(10_001).unwrap_err().to_string(), "expected 1 to 10000 turns, found `10001`");
}
