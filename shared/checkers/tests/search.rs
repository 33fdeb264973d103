//! The search against a plain minimax.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

use checkers::{
    Evaluator, Found, Limits, Material, NetworkEvaluator, NodeKind, Position, RandomOpinion, Reuse, Score,
    Search,
};
use proptest::prelude::*;
use std::sync::Arc;

mod support;
use support::{Random, random_network, random_position};

/// A score as (opinion or proved end, in its order): minimax of its own, that knows nothing of the search's.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Worth {
    Opinion(Score),
    Win(u32),
    Loss(u32),
}

impl Worth {
    fn of(score: Score) -> Self {
        match (score.win_in(), score.lost_in()) {
            (Some(plies), _) => Self::Win(plies),
            (_, Some(plies)) => Self::Loss(plies),
            _ => Self::Opinion(score),
        }
    }

    /// As the other side sees it, one ply earlier.
    fn passed_up(self) -> Self {
        match self {
            Self::Opinion(score) => Self::Opinion(-score),
            Self::Win(plies) => Self::Loss(plies + 1),
            Self::Loss(plies) => Self::Win(plies + 1),
        }
    }

    fn beats(self, other: Self) -> bool {
        match (self, other) {
            (Self::Win(a), Self::Win(b)) => a < b,
            (Self::Loss(a), Self::Loss(b)) => a > b,
            (Self::Opinion(a), Self::Opinion(b)) => a > b,
            (Self::Win(_), _) | (_, Self::Loss(_)) => true,
            _ => false,
        }
    }
}

fn minimax(evaluator: &mut impl Evaluator, position: &Position, depth: u32) -> Worth {
    let moves = position.legal_moves();
    if moves.is_empty() {
        return Worth::Loss(0);
    }
    if depth == 0 && !moves[0].is_capture() {
        return Worth::Opinion(evaluator.evaluate(position));
    }
    best_of(evaluator, position, depth).into_iter().map(|(_, worth)| worth).next().unwrap()
}

/// All moves with their worth, best first, the earlier first among equals.
fn best_of(evaluator: &mut impl Evaluator, position: &Position, depth: u32) -> Vec<(checkers::Move, Worth)> {
    let mut all: Vec<(checkers::Move, Worth)> = Vec::new();
    for mv in position.legal_moves() {
        let worth = minimax(evaluator, &position.play(&mv), depth.saturating_sub(1)).passed_up();
        let place = all.iter().position(|(_, other)| worth.beats(*other)).unwrap_or(all.len());
        all.insert(place, (mv, worth));
    }
    all
}

/// Checks one search, alone and in a row, with and without its table.
fn check<E: Evaluator>(
    mut evaluator: E,
    position: &Position,
    depth: u32,
    searches: &mut [Search],
) -> Result<(), TestCaseError> {
    let expected = best_of(&mut evaluator, position, depth);
    for search in searches {
        let found = search.run(&mut evaluator, position, &Limits::depth(depth));
        let found = found.map(|Found { best, score, .. }| (best, Worth::of(score)));
        prop_assert_eq!(found, expected.first().copied(), "{:?} at depth {}", position, depth);
        for line in search.lines() {
            prop_assert!(line_is_legal(position, &line.moves));
        }
    }
    Ok(())
}

fn line_is_legal(root: &Position, moves: &[checkers::Move]) -> bool {
    let mut position = *root;
    moves.iter().all(|mv| {
        let legal = position.legal_moves().contains(mv);
        position = position.play(mv);
        legal
    })
}

fn searches() -> [Search; 3] {
    [Search::new(12, Reuse::EqualDepth), Search::new(4, Reuse::EqualDepth), Search::new(10, Reuse::Never)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Games of several positions with one searcher each, so that tables hold what earlier moves left there.
    #[test]
    fn finds_what_minimax_finds(seed: u64, depth in 1u32..=5, kind in 0usize..4) {
        let mut random = Random::new(seed);
        let mut searches = searches();
        let mut position = random_position(&mut random, 90);
        let network = (kind < 2).then(|| {
            let kind = [NodeKind::Weighted, NodeKind::Sum][kind];
            Arc::new(random_network(kind, &mut random))
        });
        for _ in 0..=(10 / depth) {
            match &network {
                Some(network) => check(NetworkEvaluator::new(network.clone()), &position, depth, &mut searches)?,
                None if kind == 2 => check(Material { seed }, &position, depth, &mut searches)?,
                None => check(RandomOpinion { seed }, &position, depth, &mut searches)?,
            }
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position = position.play(&moves[random.below(moves.len())]);
        }
    }

    #[test]
    fn finds_the_best_lines_in_order(seed: u64, depth in 1u32..=4, lines in 1usize..6) {
        let mut random = Random::new(seed);
        let position = random_position(&mut random, 90);
        let mut evaluator = RandomOpinion { seed };
        let mut expected = best_of(&mut evaluator, &position, depth);
        expected.truncate(lines);
        let mut search = Search::new(12, Reuse::EqualDepth);
        search.run(&mut evaluator, &position, &Limits { lines, ..Limits::depth(depth) });
        let found: Vec<_> = search.lines().iter().map(|line| (line.moves[0], Worth::of(line.score))).collect();
        prop_assert_eq!(found, expected);
    }
}
