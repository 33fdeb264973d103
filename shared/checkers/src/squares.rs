//! The 32 playable squares, alone and in sets.
//!
//! Squares are numbered 1 to 32 as players number them: 1 to 4 is Black's back row, 29 to 32 White's, and
//! within a row from the left as White sees it. Black moves *down*, to higher numbers.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, Not};

/// One playable square, numbered 1 to 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Square(u8);

impl Square {
    /// The square of this number, if there is one.
    pub const fn new(number: u8) -> Option<Self> {
        if 1 <= number && number <= 32 { Some(Self(number - 1)) } else { None }
    }

    /// The square of an index 0 to 31; only the low five bits count.
    pub(crate) const fn from_index(index: u32) -> Self {
        Self((index & 31) as u8)
    }

    /// 1 to 32.
    pub const fn number(self) -> u8 {
        self.0 + 1
    }

    /// 0 to 31.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Row 0 (squares 1 to 4) to 7 (squares 29 to 32).
    pub const fn row(self) -> usize {
        self.0 as usize / 4
    }

    /// Column 0 to 7; playable squares of even rows lie on odd columns.
    pub const fn column(self) -> usize {
        (self.0 as usize % 4) * 2 + 1 - self.row() % 2
    }
}

impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}

impl fmt::Debug for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

/// One of the four diagonal directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    DownLeft,
    DownRight,
    UpLeft,
    UpRight,
}

impl Direction {
    pub(crate) const ALL: [Self; 4] = [Self::DownLeft, Self::DownRight, Self::UpLeft, Self::UpRight];

    #[inline]
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::DownLeft => Self::UpRight,
            Self::DownRight => Self::UpLeft,
            Self::UpLeft => Self::DownRight,
            Self::UpRight => Self::DownLeft,
        }
    }
}

/// A set of squares, one bit each: square 1 is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Squares(pub(crate) u32);

impl Squares {
    /// No square.
    pub const NONE: Self = Self(0);
    /// All 32.
    pub const ALL: Self = Self(u32::MAX);
    /// Black's back row, where White's men are crowned.
    pub const TOP_ROW: Self = Self(0x0000_000f);
    /// White's back row, where Black's men are crowned.
    pub const BOTTOM_ROW: Self = Self(0xf000_0000);

    /// Rows 0, 2, 4 and 6, which lie half a step to the right.
    const EVEN_ROWS: u32 = 0x0f0f_0f0f;
    const ODD_ROWS: u32 = !Self::EVEN_ROWS;
    /// The last square of each even row, with no square to its right.
    const RIGHT_EDGE: u32 = 0x0808_0808;
    /// The first square of each odd row, with no square to its left.
    const LEFT_EDGE: u32 = 0x1010_1010;

    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// True if `square` is one of them.
    pub const fn contains(self, square: Square) -> bool {
        self.0 >> square.0 & 1 == 1
    }

    /// True if the two sets share a square.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The lowest square.
    #[inline]
    pub(crate) const fn first(self) -> Square {
        Square::from_index(self.0.trailing_zeros())
    }

    /// Every square moved one step; what leaves the board is gone.
    #[inline]
    pub(crate) const fn step(self, direction: Direction) -> Self {
        let (even, odd) = (self.0 & Self::EVEN_ROWS, self.0 & Self::ODD_ROWS);
        Self(match direction {
            Direction::DownLeft => even << 4 | (odd & !Self::LEFT_EDGE) << 3,
            Direction::DownRight => (even & !Self::RIGHT_EDGE) << 5 | odd << 4,
            Direction::UpLeft => even >> 4 | (odd & !Self::LEFT_EDGE) >> 5,
            Direction::UpRight => (even & !Self::RIGHT_EDGE) >> 3 | odd >> 4,
        })
    }
}

impl From<Square> for Squares {
    #[inline]
    fn from(square: Square) -> Self {
        Self(1 << square.0)
    }
}

impl FromIterator<Square> for Squares {
    fn from_iter<I: IntoIterator<Item = Square>>(squares: I) -> Self {
        squares.into_iter().fold(Self::NONE, |set, square| set | square.into())
    }
}

impl BitAnd for Squares {
    type Output = Self;
    #[inline]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Squares {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitXor for Squares {
    type Output = Self;
    #[inline]
    fn bitxor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
}

impl BitOrAssign for Squares {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Not for Squares {
    type Output = Self;
    #[inline]
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl IntoIterator for Squares {
    type Item = Square;
    type IntoIter = SquaresIter;
    #[inline]
    fn into_iter(self) -> SquaresIter {
        SquaresIter(self)
    }
}

/// The squares of a set, the lowest first.
#[derive(Clone, Debug)]
pub struct SquaresIter(Squares);

impl Iterator for SquaresIter {
    type Item = Square;
    #[inline]
    fn next(&mut self) -> Option<Square> {
        if self.0.is_empty() {
            return None;
        }
        let first = self.0.first();
        self.0.0 &= self.0.0 - 1;
        Some(first)
    }
}

impl fmt::Debug for Squares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(*self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One step by rows and columns, the obvious way.
    fn neighbour(square: Square, down: bool, right: bool) -> Option<Square> {
        let row = square.row().checked_add_signed(if down { 1 } else { -1 })?;
        let column = square.column().checked_add_signed(if right { 1 } else { -1 })?;
        Squares::ALL.into_iter().find(|s| (s.row(), s.column()) == (row, column))
    }

    #[test]
    fn steps_follow_rows_and_columns() {
        for square in Squares::ALL {
            for (direction, down, right) in [
                (Direction::DownLeft, true, false),
                (Direction::DownRight, true, true),
                (Direction::UpLeft, false, false),
                (Direction::UpRight, false, true),
            ] {
                let step = Squares::from(square).step(direction);
                assert_eq!(step.into_iter().next(), neighbour(square, down, right), "{square} {direction:?}");
                assert!(step.is_empty() || step.step(direction.opposite()) == square.into());
            }
        }
    }

    #[test]
    fn numbers_outside_1_to_32_are_no_squares() {
        assert_eq!(Square::new(0), None);
        assert_eq!(Square::new(33), None);
        assert_eq!(Square::new(32).map(Square::index), Some(31));
    }
}
