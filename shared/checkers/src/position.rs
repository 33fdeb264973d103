//! A position: what stands where, and whose turn it is.

use crate::moves::Move;
use crate::squares::{Square, Squares};
use std::fmt;
use std::ops::Not;

/// One of the two players. Black (dark) moves first, towards higher squares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Side {
    /// The dark pieces, on squares 1 to 12 at the start.
    Black,
    /// The light pieces, on squares 21 to 32 at the start.
    White,
}

impl Side {
    /// The letter that FEN uses.
    pub const fn letter(self) -> char {
        match self {
            Self::Black => 'B',
            Self::White => 'W',
        }
    }

    /// Where this side's men are crowned.
    pub const fn crown_row(self) -> Squares {
        match self {
            Self::Black => Squares::BOTTOM_ROW,
            Self::White => Squares::TOP_ROW,
        }
    }
}

impl Not for Side {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        match self {
            Self::Black => Self::White,
            Self::White => Self::Black,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Black => "black",
            Self::White => "white",
        })
    }
}

/// What can stand on a square.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// Moves and captures forwards only.
    Man(Side),
    /// Moves and captures in all four directions, one square at a time.
    King(Side),
}

/// A position, as small as a value: three sets of squares and the side to move.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    pub(crate) black: Squares,
    pub(crate) white: Squares,
    pub(crate) kings: Squares,
    pub(crate) side: Side,
}

/// Why pieces on a board are no position of the game.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidPosition {
    /// Two pieces share a square.
    #[error("expected one piece on a square, found both sides on `{0}`")]
    Overlap(Square),
    /// A king mark stands where no piece is.
    #[error("expected a piece below each king mark, found none on `{0}`")]
    EmptyKing(Square),
    /// A side has more than the twelve pieces it starts with.
    #[error("expected at most 12 {0} pieces, found `{1}`")]
    TooMany(Side, u32),
    /// A man stands where it would have been crowned.
    #[error("expected a king on the far row, found a {0} man on `{1}`")]
    Uncrowned(Side, Square),
}

impl Position {
    /// Pieces a side starts with, and the most it can have.
    pub const PIECES_A_SIDE: u32 = 12;

    /// Twelve men a side, Black to move.
    pub const START: Self = Self {
        black: Squares(0x0000_0fff),
        white: Squares(0xfff0_0000),
        kings: Squares::NONE,
        side: Side::Black,
    };

    /// The position of these pieces; `kings` marks those of either side that are kings.
    ///
    /// # Errors
    /// If they can't stand like this in any game.
    pub fn new(black: Squares, white: Squares, kings: Squares, side: Side) -> Result<Self, InvalidPosition> {
        let position = Self { black, white, kings, side };
        position.validate()?;
        Ok(position)
    }

    /// Checks the invariants that every position keeps.
    ///
    /// # Errors
    /// The first one that is broken.
    pub fn validate(&self) -> Result<(), InvalidPosition> {
        self.one_piece_a_square()?;
        self.kings_are_pieces()?;
        for side in [Side::Black, Side::White] {
            self.at_most_twelve(side)?;
            self.far_row_is_crowned(side)?;
        }
        Ok(())
    }

    fn one_piece_a_square(&self) -> Result<(), InvalidPosition> {
        let shared = self.black & self.white;
        shared.into_iter().next().map_or(Ok(()), |square| Err(InvalidPosition::Overlap(square)))
    }

    fn kings_are_pieces(&self) -> Result<(), InvalidPosition> {
        let stray = self.kings & self.empty();
        stray.into_iter().next().map_or(Ok(()), |square| Err(InvalidPosition::EmptyKing(square)))
    }

    fn at_most_twelve(&self, side: Side) -> Result<(), InvalidPosition> {
        match self.pieces(side).count() {
            count if count > Self::PIECES_A_SIDE => Err(InvalidPosition::TooMany(side, count)),
            _ => Ok(()),
        }
    }

    fn far_row_is_crowned(&self, side: Side) -> Result<(), InvalidPosition> {
        let uncrowned = self.men(side) & side.crown_row();
        uncrowned.into_iter().next().map_or(Ok(()), |square| Err(InvalidPosition::Uncrowned(side, square)))
    }

    /// Whose turn it is.
    pub const fn side_to_move(&self) -> Side {
        self.side
    }

    /// All pieces of a side.
    #[inline]
    pub const fn pieces(&self, side: Side) -> Squares {
        match side {
            Side::Black => self.black,
            Side::White => self.white,
        }
    }

    /// The men of a side.
    #[inline]
    pub fn men(&self, side: Side) -> Squares {
        self.pieces(side) & !self.kings
    }

    /// The kings of a side.
    #[inline]
    pub fn kings(&self, side: Side) -> Squares {
        self.pieces(side) & self.kings
    }

    /// The squares on which nothing stands.
    #[inline]
    pub fn empty(&self) -> Squares {
        !(self.black | self.white)
    }

    /// What stands on a square.
    pub fn piece(&self, square: Square) -> Option<Piece> {
        let side = if self.black.contains(square) {
            Side::Black
        } else if self.white.contains(square) {
            Side::White
        } else {
            return None;
        };
        Some(if self.kings.contains(square) { Piece::King(side) } else { Piece::Man(side) })
    }

    /// The position after a move, which must be legal here (see [`Position::legal_moves`]): an illegal one
    /// gives a position without meaning.
    #[must_use]
    #[inline]
    pub fn play(&self, mv: &Move) -> Self {
        let (from, to) = (Squares::from(mv.from()), Squares::from(mv.to()));
        let own = (self.pieces(self.side) & !from) | to;
        let other = self.pieces(!self.side) & !mv.captured();
        let moved_king = if self.kings.meets(from) { to } else { to & self.side.crown_row() };
        let kings = (self.kings & !from & !mv.captured()) | moved_king;
        let (black, white) = match self.side {
            Side::Black => (own, other),
            Side::White => (other, own),
        };
        Self { black, white, kings, side: !self.side }
    }

    /// Every bit of the position, to sort and compare by: its pieces, then its kings and the side to move.
    pub fn bits(&self) -> (u64, u64) {
        let pieces = u64::from(self.black.0) | u64::from(self.white.0) << 32;
        (pieces, u64::from(self.kings.0) << 1 | self.side as u64)
    }

    /// The position of these [`bits`](Self::bits); nothing if they are those of none.
    pub fn from_bits(pieces: u64, rest: u64) -> Option<Self> {
        let side = if rest & 1 == 0 { Side::Black } else { Side::White };
        let kings = u32::try_from(rest >> 1).ok()?;
        Self::new(Squares(pieces as u32), Squares((pieces >> 32) as u32), Squares(kings), side).ok()
    }

    /// The position after this number of random moves, fewer if there are none left.
    #[must_use]
    pub fn after_random_moves(&self, plies: u32, seed: u64) -> Self {
        let mut stream = crate::random::Stream::new(seed);
        let mut position = *self;
        for _ in 0..plies {
            let moves = position.legal_moves();
            if moves.is_empty() {
                break;
            }
            position = position.play(&moves[stream.below(moves.len())]);
        }
        position
    }

    /// 64 well-mixed bits of the position, the same on every machine.
    #[inline]
    pub fn hash64(&self) -> u64 {
        let pieces = u64::from(self.black.0) | u64::from(self.white.0) << 32;
        let rest = u64::from(self.kings.0) << 1 | (self.side as u64);
        crate::random::mix(pieces ^ rest.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl Default for Position {
    fn default() -> Self {
        Self::START
    }
}

/// The position as FEN.
impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_invariants_are_named() {
        let start = Position::START;
        let both = Position { white: start.white | Squares(1), ..start };
        assert!(matches!(both.validate(), Err(InvalidPosition::Overlap(_))));
        let stray = Position { kings: Squares(1 << 15), ..start };
        assert!(matches!(stray.validate(), Err(InvalidPosition::EmptyKing(_))));
        let many = Position { black: start.black | Squares(1 << 15), ..start };
        assert_eq!(many.validate(), Err(InvalidPosition::TooMany(Side::Black, 13)));
        let far = Position { white: Squares(1), black: Squares::NONE, ..start };
        assert!(matches!(far.validate(), Err(InvalidPosition::Uncrowned(Side::White, _))));
        assert_eq!(start.validate(), Ok(()));
    }

    #[test]
    fn bits_come_back_as_positions() {
        for seed in 0..200 {
            let position = Position::START.after_random_moves(seed as u32, seed);
            let (pieces, rest) = position.bits();
            assert_eq!(Position::from_bits(pieces, rest), Some(position));
            assert_eq!(position, Position::START.after_random_moves(seed as u32, seed));
        }
        assert_eq!(Position::from_bits(u64::MAX, 0), None);
        assert_eq!(Position::from_bits(1, 1 << 40), None);
    }

    #[test]
    fn pieces_are_where_the_start_puts_them() {
        let at = |number| Position::START.piece(Square::new(number).unwrap());
        assert_eq!(at(1), Some(Piece::Man(Side::Black)));
        assert_eq!(at(13), None);
        assert_eq!(at(32), Some(Piece::Man(Side::White)));
    }
}
