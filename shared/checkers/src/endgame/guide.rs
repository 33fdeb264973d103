//! The way through a slice: how many plies are left until a win or loss continues in another slice, or the game ends.
//!
//! A database that only knows who wins could win for ever. A guide is computed when it is first needed, which takes
//! as long as building the slice did, and is kept with it.

use super::solve::Pair;
use super::{Board, Database, EndgameResult};
use crate::moves::Move;
use crate::position::Position;

/// Plies left for each position of a slice: 0 where it is drawn; 255 stands for more too.
pub(super) struct Guide(Vec<u8>);

impl Guide {
    fn compute(database: &Database, board: &Board) -> Option<Self> {
        let shelf = database.shelf(board.material()?)?;
        let mut plies = vec![0; shelf.index.len() as usize];
        Pair::new(database, shelf.index.material()).solve(|half, numbers, ply| {
            if half == 0 {
                for number in numbers {
                    plies[*number as usize] = ply;
                }
            }
        });
        Some(Self(plies))
    }
}

impl Database {
    /// Slices with more positions are not guided through: it would take seconds to compute the way.
    const LARGEST_GUIDED: u32 = 1 << 20;

    /// Plies until the verdict takes the game into another slice or to its end; nothing if it is drawn, unknown, or
    /// the slice is too large.
    fn plies_left(&self, position: &Position) -> Option<u8> {
        let board = Board::of(position);
        let shelf =
            self.shelf(board.material()?).filter(|shelf| shelf.index.len() <= Self::LARGEST_GUIDED)?;
        let number = shelf.index.number(&board);
        if shelf.slice.verdict(number) == EndgameResult::Draw {
            return None;
        }
        if shelf.guide.get().is_none() {
            // Two threads may both compute it, and find the same.
            let _ = shelf.guide.set(Guide::compute(self, &board)?);
        }
        shelf.guide.get().map(|guide| guide.0[number as usize])
    }

    /// The best moves here: those that keep the verdict and, as far as slices are guided through, win soonest or lose
    /// latest. Nothing where the position is unknown; empty where there is no move.
    pub fn best_moves(&self, position: &Position) -> Option<Vec<Move>> {
        let verdict = self.probe(position)?;
        let mut moves = position.legal_moves();
        moves.retain(|mv| self.probe(&position.play(mv)).map(EndgameResult::turned) == Some(verdict));
        let left = |mv: &Move| self.plies_after(position, mv);
        let best = match verdict {
            EndgameResult::Draw => return Some(moves),
            EndgameResult::Win => moves.iter().map(left).min(),
            EndgameResult::Loss => moves.iter().map(left).max(),
        };
        moves.retain(|mv| Some(left(mv)) == best);
        Some(moves)
    }

    /// Plies left after a move that keeps a win or loss: 0 if it leads into another slice.
    fn plies_after(&self, position: &Position, mv: &Move) -> u8 {
        let next = position.play(mv);
        let crowned =
            next.kings(position.side_to_move()).count() > position.kings(position.side_to_move()).count();
        if mv.is_capture() || crowned { 0 } else { self.plies_left(&next).unwrap_or(0) }
    }
}
