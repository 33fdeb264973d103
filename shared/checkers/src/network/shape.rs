//! Which weights a network has, and in which order they stand.

use crate::squares::{Square, Squares};
use std::ops::Range;

/// Square sub-boards of 3x3 to 8x8: one node of the first layer each.
pub(super) const SUB_BOARDS: usize = 91;
/// Nodes of the second layer.
pub(super) const WIDE: usize = 40;
/// Nodes of the third layer.
pub(super) const NARROW: usize = 10;
/// Weights from the playable squares to the sub-boards that cover them.
const SQUARE_WEIGHTS: usize = 854;

/// What a node of the first layer does with its sub-board.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum NodeKind {
    /// Weighs each square it covers, adds a bias, and takes tanh.
    #[default]
    Weighted,
    /// Passes on the plain sum of the pieces it covers: no weights, no tanh.
    Sum,
}

impl NodeKind {
    /// How many weights a network of this kind has: its layers, then the direct weight, then a king's value.
    pub const fn weight_count(self) -> usize {
        Layout::of(self).king + 1
    }

    /// The word that player files and the command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::Sum => "sum",
        }
    }
}

/// Where each layer's weights stand in the flat order.
pub(super) struct Layout {
    /// For each sub-board its squares' weights by square, then its bias; empty for plain sums.
    pub(super) first: Range<usize>,
    /// For each wide node its 91 weights, then its bias.
    pub(super) wide: Range<usize>,
    /// For each narrow node its 40 weights, then its bias.
    pub(super) narrow: Range<usize>,
    /// 10 weights, then the bias.
    pub(super) output: Range<usize>,
    /// From the sum of all pieces straight to the output.
    pub(super) direct: usize,
    /// What a king is worth where a man is 1.
    pub(super) king: usize,
}

impl Layout {
    pub(super) const fn of(kind: NodeKind) -> Self {
        let first = match kind {
            NodeKind::Weighted => SQUARE_WEIGHTS + SUB_BOARDS,
            NodeKind::Sum => 0,
        };
        let wide = first + WIDE * (SUB_BOARDS + 1);
        let narrow = wide + NARROW * (WIDE + 1);
        let output = narrow + NARROW + 1;
        Self {
            first: 0..first,
            wide: first..wide,
            narrow: wide..narrow,
            output: narrow..output,
            direct: output,
            king: output + 1,
        }
    }
}

/// The playable squares of each sub-board: smaller ones first, then row by row from square 1's corner.
pub(super) static SUB_BOARD_SQUARES: [Squares; SUB_BOARDS] = sub_board_squares();

const fn sub_board_squares() -> [Squares; SUB_BOARDS] {
    let mut boards = [Squares::NONE; SUB_BOARDS];
    let (mut board, mut size) = (0, 3);
    while size <= 8 {
        let places = 9 - size;
        let mut place = 0;
        while place < places * places {
            boards[board] = covered(size, place / places, place % places);
            board += 1;
            place += 1;
        }
        size += 1;
    }
    boards
}

const fn covered(size: usize, top: usize, left: usize) -> Squares {
    let mut squares = 0;
    let mut index = 0;
    while index < 32 {
        let square = Square::from_index(index);
        let (down, right) = (square.row().wrapping_sub(top), square.column().wrapping_sub(left));
        if down < size && right < size {
            squares |= 1 << index;
        }
        index += 1;
    }
    Squares(squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_published_ones() {
        let covered: Vec<u32> = SUB_BOARD_SQUARES.iter().map(|squares| squares.count()).collect();
        assert_eq!(covered.iter().sum::<u32>() as usize, SQUARE_WEIGHTS);
        let by_size = [36, 25, 16, 9, 4, 1].map(|n| n as usize);
        let ends: Vec<usize> = by_size
            .iter()
            .scan(0, |end, n| {
                *end += n;
                Some(*end)
            })
            .collect();
        let weights: Vec<u32> =
            by_size.iter().zip(&ends).map(|(n, end)| covered[end - n..*end].iter().sum()).collect();
        assert_eq!(weights, [162, 200, 200, 162, 98, 32]);
        assert_eq!(NodeKind::Weighted.weight_count(), 5046 + 2);
        assert_eq!(NodeKind::Sum.weight_count(), 4101 + 2);
        assert_eq!(Layout::of(NodeKind::Weighted).first.len(), 945);
    }
}
