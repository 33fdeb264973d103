//! Behaviour: what networks say about the same positions, by which they can be compared whatever their weights.

use crate::evaluator::Evaluator as _;
use crate::game::{DrawRules, Game};
use crate::network::{Network, NetworkEvaluator};
use crate::openings::openings;
use crate::player::{MaterialPlayer, Player as _};
use crate::position::Position;
use crate::random::Stream;
use std::sync::Arc;

/// `count` different positions, such as games have from their opening to their end: at each the side to move can
/// move and need not capture, as at the leaves of a search. The same seed gives the same positions, and more of them
/// if asked for more.
///
/// They come from games of the deck's openings, in which both sides count pieces two plies ahead.
///
/// ```
/// let positions = checkers::sample_positions(7, 20);
/// assert_eq!(positions, checkers::sample_positions(7, 30)[..20]);
/// ```
pub fn sample_positions(seed: u64, count: usize) -> Vec<Position> {
    const DEPTH: u32 = 2;
    let mut stream = Stream::new(seed);
    let mut player = MaterialPlayer::new(DEPTH);
    let mut game = Game::new(DrawRules::default());
    let mut positions = Vec::new();
    while positions.len() < count {
        let fresh = one_position(&mut stream, &mut player, &mut game);
        positions.extend(fresh.filter(|position| !positions.contains(position)));
    }
    positions
}

/// The first quiet position from some ply on of a game, unless the game ends before.
fn one_position(stream: &mut Stream, player: &mut MaterialPlayer, game: &mut Game) -> Option<Position> {
    const LATEST: usize = 50;
    let deck = openings();
    game.restart(deck[stream.below(deck.len())].position);
    player.new_game(stream.next());
    let plies = stream.below(LATEST);
    while game.outcome().is_none() {
        if game.moves().len() >= plies && !game.position().must_capture() {
            return Some(*game.position());
        }
        let mv = player.choose(game)?;
        game.play(mv).ok()?;
    }
    None
}

/// What a network says each position is worth to its side to move, -1 to 1.
pub fn behaviour(network: &Arc<Network>, positions: &[Position]) -> Vec<f32> {
    let mut evaluator = NetworkEvaluator::new(network.clone());
    positions.iter().map(|position| evaluator.evaluate(position).value()).collect()
}
