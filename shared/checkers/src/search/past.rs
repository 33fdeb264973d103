//! The positions of the game so far, which a search scores as draws.

use crate::position::{Position, Side};
use crate::random::mix;

/// A fixed set of positions for one root. It says nothing of repetitions inside the tree, so that a plain minimax with
/// the same set finds the same score.
#[derive(Default)]
pub(super) struct Past {
    positions: Vec<Position>,
    /// A bit for each position, by its hash: most look-ups end here.
    mask: u64,
}

impl Past {
    /// Takes over the positions since the last irreversible move; true if that changes the set.
    pub(super) fn set(&mut self, positions: &[Position]) -> bool {
        let positions = if can_recur(positions) { positions } else { &[] };
        if self.positions == positions {
            return false;
        }
        self.positions.clear();
        self.positions.extend_from_slice(positions);
        self.mask = positions.iter().fold(0, |mask, position| mask | bit(position));
        true
    }

    /// A hash of the set, whatever the order of its positions; 0 if it is empty.
    pub(super) fn hash(&self) -> u64 {
        self.positions.iter().fold(0, |hash, position| hash ^ mix(position.hash64()))
    }

    #[inline]
    pub(super) fn contains(&self, position: &Position) -> bool {
        self.mask != 0 && self.mask & bit(position) != 0 && self.positions.contains(position)
    }
}

/// Without a king on each side every way back needs a man to step back.
fn can_recur(positions: &[Position]) -> bool {
    let has_kings = |position: &Position| {
        [Side::Black, Side::White].into_iter().all(|side| position.kings(side).count() > 0)
    };
    positions.last().is_some_and(has_kings)
}

#[inline]
fn bit(position: &Position) -> u64 {
    1 << (position.hash64() >> 58)
}
