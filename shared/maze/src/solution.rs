//! What a solver answers, and the rules by which a path is judged.

use crate::board::{Board, Place};
use crate::direction::Direction;
use thiserror::Error;

/// A path and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// A move for every turn.
    pub path: Vec<Direction>,
    /// The points it collects.
    pub score: u32,
    /// What no path can exceed, where the solver knows it.
    pub bound: Option<u32>,
    /// Moves or paths that were scored on the way.
    pub evaluations: u64,
}

impl Solution {
    /// Whether no path is better.
    pub fn is_proved(&self) -> bool {
        self.bound == Some(self.score)
    }

    /// The path as letters: `U`, `D`, `L`, `R`.
    pub fn letters(&self) -> String {
        self.path.iter().map(|way| way.letter()).collect()
    }
}

/// A move of a path that leads into a wall or off the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected a possible move, found `{}` in turn {} at column {} of row {}", direction.letter(), turn + 1, place.x + 1, place.y + 1)]
pub struct BlockedMove {
    /// The turn, counted from 0.
    pub turn: usize,
    /// Where it wanted to go.
    pub direction: Direction,
    /// Where it stood.
    pub place: Place,
}

impl Board {
    /// Plays a path by the rules and counts its points.
    ///
    /// # Errors
    /// At the first move that leads into a wall or off the board.
    pub fn collect(&self, path: &[Direction]) -> Result<u32, BlockedMove> {
        let mut taken = vec![false; self.cells()];
        let (mut cell, mut score) = (self.start(), 0);
        for (turn, &direction) in path.iter().enumerate() {
            let blocked = BlockedMove { turn, direction, place: self.place(cell) };
            cell = self.step(cell, direction).ok_or(blocked)?;
            if !std::mem::replace(&mut taken[usize::from(cell)], true) {
                score += u32::from(self.points(cell).unwrap_or(0));
            }
        }
        Ok(score)
    }
}
