//! Which weights a network has, and in which order they stand.

use crate::position::Position;
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
    /// How many weights a network of this kind and the papers' shape has: its layers, then the direct weight, then a
    /// king's value.
    pub const fn weight_count(self) -> usize {
        Layout::of(self).count + 1
    }

    /// The word that player files and the command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::Sum => "sum",
        }
    }
}

/// Of how many towers a network consists: each of them has the layers of the papers' network, 91, 40 and 10 nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum NetworkShape {
    /// One tower, as published.
    #[default]
    Paper,
    /// Two towers side by side, twice as many nodes in each layer, whose sums meet in the value.
    Wide,
    /// A tower each for the opening, the middle and the end of a game, of which one judges a position.
    Phases,
}

impl NetworkShape {
    /// All of them, in the order of their numbers in player files.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Wide, Self::Phases];

    /// The word that experiments and messages use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Wide => "wide",
            Self::Phases => "phases",
        }
    }

    /// Towers that judge a position together.
    pub const fn width(self) -> usize {
        if matches!(self, Self::Wide) { 2 } else { 1 }
    }

    /// Phases of a game that have towers of their own.
    pub const fn phases(self) -> usize {
        if matches!(self, Self::Phases) { 3 } else { 1 }
    }

    /// The phase that a position belongs to: with 17 pieces and more the opening, with 8 and less the end.
    #[inline]
    pub fn phase(self, position: &Position) -> usize {
        match (self, position.black.count() + position.white.count()) {
            (Self::Paper | Self::Wide, _) | (Self::Phases, 17..) => 0,
            (Self::Phases, 9..) => 1,
            (Self::Phases, _) => 2,
        }
    }
}

/// What a network is like: networks that differ in it have no weights in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Architecture {
    /// What the nodes of its first layer do.
    pub nodes: NodeKind,
    /// Its towers.
    pub shape: NetworkShape,
}

impl Architecture {
    /// How many weights such a network has: those of each tower, then a king's value.
    pub const fn weight_count(self) -> usize {
        self.shape.phases() * self.shape.width() * Layout::of(self.nodes).count + 1
    }
}

impl From<NodeKind> for Architecture {
    fn from(nodes: NodeKind) -> Self {
        Self { nodes, shape: NetworkShape::Paper }
    }
}

impl std::fmt::Display for Architecture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.shape {
            NetworkShape::Paper => write!(f, "{} nodes", self.nodes.name()),
            shape => write!(f, "{} nodes and the shape `{}`", self.nodes.name(), shape.name()),
        }
    }
}

/// Where each layer's weights stand in the flat order of a tower.
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
    /// How many they are. What a king is worth is not among them: it stands behind the last tower.
    pub(super) count: usize,
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
            count: output + 1,
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

/// What a node makes of the squares it sees, with the player at the top and its own pieces positive.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The side of the sub-board it sees.
    pub size: usize,
    /// The squares and their weights.
    pub squares: Vec<(Square, f32)>,
}

/// Those of each tower in turn, from the weights of all of them.
pub(super) fn views(kind: NodeKind, weights: &[f32]) -> Vec<View> {
    let layout = Layout::of(kind);
    let of_tower = |weights: &[f32]| match kind {
        NodeKind::Weighted => sub_board_views(&weights[layout.first.clone()]),
        NodeKind::Sum => weights[layout.wide.clone()].chunks_exact(SUB_BOARDS + 1).map(wide_view).collect(),
    };
    weights.chunks_exact(layout.count).flat_map(of_tower).collect()
}

/// Each sub-board's weights by square; its bias comes last.
fn sub_board_views(weights: &[f32]) -> Vec<View> {
    let mut rest = weights;
    let view = |squares: &Squares| {
        let (own, others) = rest.split_at(squares.count() as usize + 1);
        rest = others;
        View {
            size: size_of_board(*squares),
            squares: squares.into_iter().zip(own.iter().copied()).collect(),
        }
    };
    SUB_BOARD_SQUARES.iter().map(view).collect()
}

/// A square counts in every sub-board that covers it.
fn wide_view(weights: &[f32]) -> View {
    let weight = |square: Square| {
        let covering = SUB_BOARD_SQUARES.iter().zip(weights).filter(|(squares, _)| squares.contains(square));
        covering.map(|(_, weight)| weight).sum()
    };
    View { size: 8, squares: Squares::ALL.into_iter().map(|square| (square, weight(square))).collect() }
}

fn size_of_board(squares: Squares) -> usize {
    let rows = || squares.into_iter().map(Square::row);
    rows().max().unwrap_or(0) + 1 - rows().min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Side;

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

    #[test]
    fn shapes_differ_in_their_number_of_weights() {
        let count = |nodes, shape| Architecture { nodes, shape }.weight_count();
        assert_eq!(NetworkShape::ALL.map(|shape| count(NodeKind::Weighted, shape)), [5048, 10_095, 15_142]);
        assert_eq!(NetworkShape::ALL.map(|shape| count(NodeKind::Sum, shape)), [4103, 8205, 12_307]);
        assert_eq!(Architecture::from(NodeKind::Sum).weight_count(), NodeKind::Sum.weight_count());
    }

    #[test]
    fn phases_are_told_by_the_number_of_pieces() {
        let phase = |count: u32, shape: NetworkShape| {
            let men = |count: u32| Squares((1_u64 << count) as u32 - 1);
            let white = Squares(men(count / 2).0.reverse_bits());
            let black = men(count.div_ceil(2));
            shape.phase(&Position { black, white, kings: Squares::NONE, side: Side::Black })
        };
        let numbers = [24, 17, 16, 9, 8, 2];
        assert_eq!(numbers.map(|count| phase(count, NetworkShape::Phases)), [0, 0, 1, 1, 2, 2]);
        assert_eq!(numbers.map(|count| phase(count, NetworkShape::Wide)), [0; 6]);
    }

    #[test]
    fn views_show_every_weight_where_it_counts() {
        let weights: Vec<f32> = (0..NodeKind::Weighted.weight_count()).map(|at| at as f32).collect();
        let views = views(NodeKind::Weighted, &weights);
        let sizes = [3, 4, 5, 6, 7, 8].map(|size| views.iter().filter(|view| view.size == size).count());
        assert_eq!(sizes, [36, 25, 16, 9, 4, 1]);
        // The first sub-board is the corner of square 1: squares 1, 5, 6 and 9 lie in it, and a bias follows.
        let first: Vec<(u8, f32)> =
            views[0].squares.iter().map(|(square, w)| (square.number(), *w)).collect();
        assert_eq!(first, [(1, 0.0), (5, 1.0), (6, 2.0), (9, 3.0)]);
        assert_eq!(views[1].squares[0].1, 5.0);
        assert_eq!(views[90].squares.len(), 32);
        assert_eq!(views[90].squares[31].1, 943.0, "the bias of the whole board is the last of the layer");
        let sums = super::views(NodeKind::Sum, &vec![1.0; NodeKind::Sum.weight_count()]);
        assert_eq!((sums.len(), sums[0].squares.len()), (40, 32));
        let total: f32 = sums[0].squares.iter().map(|(_, weight)| weight).sum();
        assert_eq!(total as usize, SQUARE_WEIGHTS, "each square as often as sub-boards cover it");
    }
}
