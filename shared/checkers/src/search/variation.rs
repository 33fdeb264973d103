//! The lines of best play found below each ply.

use super::MAX_PLY;
use crate::moves::Move;

/// One line for each ply; it starts with the move of that ply.
pub(super) struct Variations(Vec<Vec<Move>>);

impl Variations {
    pub(super) fn new() -> Self {
        Self((0..=MAX_PLY).map(|ply| Vec::with_capacity(MAX_PLY - ply)).collect())
    }

    #[inline]
    pub(super) fn clear(&mut self, ply: usize) {
        self.0[ply].clear();
    }

    /// Makes the line of `ply` this move and then what was found below.
    pub(super) fn extend(&mut self, ply: usize, mv: Move) {
        let (upper, lower) = self.0.split_at_mut(ply + 1);
        upper[ply].clear();
        upper[ply].push(mv);
        if let Some(below) = lower.first() {
            upper[ply].extend_from_slice(below);
        }
    }

    pub(super) fn line(&self, ply: usize) -> &[Move] {
        &self.0[ply]
    }
}
