//! The search against a plain minimax.

use checkers::{
    DrawRules, Evaluator, Found, Game, Limits, Material, NetworkEvaluator, NodeKind, Position, RandomOpinion,
    Reuse, Score, Search, Style, Ties,
};
use proptest::prelude::*;
use std::sync::Arc;

use crate::support::{Random, random_network, random_position};

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

/// What a search takes into account beside the position.
#[derive(Clone, Copy)]
struct Manner<'a> {
    /// Positions that are draws.
    past: &'a [Position],
    quiescence: bool,
}

const PLAIN: Manner<'_> = Manner { past: &[], quiescence: true };

fn minimax(evaluator: &mut impl Evaluator, position: &Position, depth: u32, manner: Manner<'_>) -> Worth {
    if manner.past.contains(position) {
        return Worth::Opinion(Score::EVEN);
    }
    let moves = position.legal_moves();
    if moves.is_empty() {
        return Worth::Loss(0);
    }
    if depth == 0 && !(manner.quiescence && moves[0].is_capture()) {
        return Worth::Opinion(evaluator.evaluate(position));
    }
    best_in(evaluator, position, depth, manner).into_iter().map(|(_, worth)| worth).next().unwrap()
}

/// All moves with their worth, best first, the earlier first among equals.
fn best_of(evaluator: &mut impl Evaluator, position: &Position, depth: u32) -> Vec<(checkers::Move, Worth)> {
    best_in(evaluator, position, depth, PLAIN)
}

fn best_in(
    evaluator: &mut impl Evaluator,
    position: &Position,
    depth: u32,
    manner: Manner<'_>,
) -> Vec<(checkers::Move, Worth)> {
    let mut all: Vec<(checkers::Move, Worth)> = Vec::new();
    for mv in position.legal_moves() {
        let worth = minimax(evaluator, &position.play(&mv), depth.saturating_sub(1), manner).passed_up();
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

    /// Without the extension: positions of the whole board too, with networks of both kinds.
    #[test]
    fn a_fixed_depth_is_what_minimax_without_the_extension_finds(seed: u64, depth in 1u32..=4, sums: bool) {
        let mut random = Random::new(seed);
        let position = random_position(&mut random, 60);
        let kind = if sums { NodeKind::Sum } else { NodeKind::Weighted };
        let mut evaluator = NetworkEvaluator::new(Arc::new(random_network(kind, &mut random)));
        let manner = Manner { past: &[], quiescence: false };
        let expected = best_in(&mut evaluator, &position, depth, manner).first().copied();
        let style = Style { quiescence: false, ..Style::default() };
        for reuse in [Reuse::EqualDepth, Reuse::Never] {
            let mut search = Search::with_style(10, reuse, style);
            let found = search.run(&mut evaluator, &position, &Limits::depth(depth));
            prop_assert_eq!(found.map(|found| (found.best, Worth::of(found.score))), expected, "{:?}", position);
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

    /// Endings with kings, in which games go round in circles: what stood on the board is a draw in the search.
    #[test]
    fn knows_the_game_like_a_minimax_with_the_same_positions(seed: u64, depth in 1u32..=5, quiescence: bool) {
        let mut random = Random::new(seed);
        let start = endings(&mut random);
        let style = Style { history: true, quiescence, ..Style::default() };
        let rules = DrawRules { repetitions: None, quiet_plies: None, ..DrawRules::default() };
        let mut game = Game::from_position(start, rules);
        let mut searches = [12, 4].map(|bits| Search::with_style(bits, Reuse::EqualDepth, style));
        let mut evaluator = RandomOpinion { seed };
        for _ in 0..12 {
            if game.outcome().is_some() {
                break;
            }
            let manner = Manner { past: game.recent(), quiescence };
            let expected = best_in(&mut evaluator, game.position(), depth, manner).first().copied();
            for search in &mut searches {
                search.follow(&game, seed);
                let found = search.run(&mut evaluator, game.position(), &Limits::depth(depth));
                let found = found.map(|found| (found.best, Worth::of(found.score)));
                prop_assert_eq!(found, expected, "{:?} after {:?}", game.position(), game.recent());
            }
            // Back and forth as often as possible, so that positions do come back.
            let moves = game.position().legal_moves();
            let back = moves.iter().find(|mv| game.recent().contains(&game.position().play(mv)));
            let mv = *back.unwrap_or(&moves[random.below(moves.len())]);
            game.play(mv).unwrap();
        }
    }

    /// Seed and ply decide between equally good moves: each of them is played, and none that is worse.
    #[test]
    fn random_ties_are_all_played_and_nothing_else(seed: u64, depth in 1u32..=3) {
        let mut random = Random::new(seed);
        let position = random_position(&mut random, 60);
        let mut evaluator = Coarse;
        let expected = best_of(&mut evaluator, &position, depth);
        let best: Vec<_> = expected.iter().take_while(|(_, worth)| *worth == expected[0].1).map(|(mv, _)| *mv).collect();
        let style = Style { ties: Ties::Random, ..Style::default() };
        let mut search = Search::with_style(12, Reuse::EqualDepth, style);
        let game = Game::from_position(position, DrawRules::default());
        let mut played = Vec::new();
        for game_seed in 0..24 * best.len() as u64 {
            search.follow(&game, game_seed);
            let Some(found) = search.run(&mut evaluator, &position, &Limits::depth(depth)) else { break };
            prop_assert!(best.contains(&found.best));
            search.follow(&game, game_seed);
            let again = search.run(&mut evaluator, &position, &Limits::depth(depth)).unwrap();
            prop_assert_eq!(found.best, again.best);
            if !played.contains(&found.best) {
                played.push(found.best);
            }
        }
        prop_assert_eq!(played.len(), best.len());
    }
}

/// Few opinions, so that many moves are equally good.
struct Coarse;

impl Evaluator for Coarse {
    fn evaluate(&mut self, position: &Position) -> Score {
        Score::from_value((position.hash64() % 3) as f32 / 4.0 - 0.25)
    }
}

/// Two to four kings of each side, and perhaps a man.
fn endings(random: &mut Random) -> Position {
    loop {
        let mut position = random_position(random, 200);
        for _ in 0..200 {
            let kings =
                [checkers::Side::Black, checkers::Side::White].map(|side| position.kings(side).count());
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            if kings.iter().all(|count| *count > 0) && !position.must_capture() {
                return position;
            }
            position = position.play(&moves[random.below(moves.len())]);
        }
    }
}
