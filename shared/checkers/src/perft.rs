//! Perft: how many ways of playing there are, the test that every move generator knows.

use crate::position::Position;

/// The number of move sequences of `depth` moves. Two captures of the same pieces along different ways are
/// two moves; the last move of a sequence is counted, not played.
pub fn perft(position: &Position, depth: u32) -> u64 {
    match depth {
        0 => 1,
        1 => position.count_moves(),
        _ => {
            let mut leaves = 0;
            position.for_each_move(|mv| leaves += perft(&position.play(&mv), depth - 1));
            leaves
        }
    }
}

/// [`perft`] where moves of one position that lead to the same position count once.
pub fn perft_merged(position: &Position, depth: u32) -> u64 {
    match depth {
        0 => 1,
        // Two different steps never lead to the same position.
        1 if !position.must_capture() => position.count_moves(),
        _ => successors(position).iter().map(|next| perft_merged(next, depth - 1)).sum(),
    }
}

/// The different positions that one move can lead to.
fn successors(position: &Position) -> Vec<Position> {
    let mut positions = Vec::with_capacity(16);
    position.for_each_move(|mv| {
        let next = position.play(&mv);
        if !positions.contains(&next) {
            positions.push(next);
        }
    });
    positions
}
