//! The layers of a network, laid out for vectors.

use super::first_layer::{FirstLayer, Tracker};
use super::kernel::{LEAVES, Layer, Nodes, Row, activate_sums, activate_sums_in_pairs};
use super::lanes::{Eight, Lanes, Vectors};
use super::shape::{Layout, NARROW, NodeKind, SUB_BOARD_SQUARES, SUB_BOARDS, WIDE};
use crate::position::{Position, Side};
use crate::score::Score;

/// The 91 sub-boards, padded to full vectors.
pub(super) const SUB_BOARD_ROW: usize = 96;
/// The 40 wide nodes, padded to full vectors.
pub(super) const WIDE_ROW: usize = 48;
/// The 10 narrow nodes, padded to a full vector.
pub(super) const NARROW_ROW: usize = 16;
/// Partial sums of the wide layer: as many as fit into the registers of AVX2.
const WIDE_PARTS: usize = 3;
/// Inputs of the wide layer: the sub-boards, padded to full parts.
const WIDE_INPUTS: usize = SUB_BOARDS.next_multiple_of(WIDE_PARTS);
/// Partial sums of the narrow layer.
const NARROW_PARTS: usize = 4;

/// From positions to their wide nodes.
pub(super) trait Body<const N: usize> {
    fn first(&self) -> &FirstLayer<N>;

    /// Calculates the wide nodes of positions near the one that `tracker` follows.
    fn wide<P: Vectors, const VECTORS: usize, const PAIR: usize>(
        &self,
        tracker: &Tracker<N>,
        positions: &[Position],
        nodes: &mut Nodes,
    );
}

/// Weighted sub-boards: tanh, then the wide layer.
pub(super) struct WeightedBody {
    first: FirstLayer<SUB_BOARD_ROW>,
    wide: Layer<WIDE_ROW, WIDE_INPUTS>,
}

impl WeightedBody {
    /// Of the weights of a tower, and what a king is worth.
    pub(super) fn new(weights: &[f32], king: f32) -> Self {
        let layout = Layout::of(NodeKind::Weighted);
        let mut biases = [0.0; SUB_BOARD_ROW];
        let mut men = vec![[0.0; SUB_BOARD_ROW]; 32];
        let mut next = weights[layout.first].iter().map(|w| f64::from(*w));
        for (node, squares) in SUB_BOARD_SQUARES.into_iter().enumerate() {
            for (square, weight) in squares.into_iter().zip(&mut next) {
                men[square.index()][node] = weight;
            }
            biases[node] = next.next().expect("a bias follows each node's weights");
        }
        let first = FirstLayer::new(&biases, &men, f64::from(king));
        Self { first, wide: transposed(&weights[layout.wide], SUB_BOARDS) }
    }
}

impl Body<SUB_BOARD_ROW> for WeightedBody {
    #[inline(always)]
    fn first(&self) -> &FirstLayer<SUB_BOARD_ROW> {
        &self.first
    }

    #[inline(always)]
    fn wide<P: Vectors, const VECTORS: usize, const PAIR: usize>(
        &self,
        tracker: &Tracker<SUB_BOARD_ROW>,
        positions: &[Position],
        nodes: &mut Nodes,
    ) {
        for (position, first) in positions.iter().zip(&mut nodes.first) {
            let sums = tracker.look_at(&self.first, position);
            activate_sums_in_pairs::<P::Full, SUB_BOARD_ROW>(&sums, self.first.unit(), first);
        }
        let leaves = positions.len();
        self.wide.activate::<P, VECTORS, 1, WIDE_PARTS, PAIR, SUB_BOARD_ROW>(
            &nodes.first[..leaves],
            &mut nodes.wide[..leaves],
        );
    }
}

/// Plain sums: folded into the wide layer, whose nodes are then sums over the squares themselves.
pub(super) struct SumBody {
    first: FirstLayer<WIDE_ROW>,
}

impl SumBody {
    /// Of the weights of a tower, and what a king is worth.
    pub(super) fn new(weights: &[f32], king: f32) -> Self {
        let layout = Layout::of(NodeKind::Sum);
        let mut biases = [0.0; WIDE_ROW];
        let mut men = vec![[0.0; WIDE_ROW]; 32];
        for (node, row) in weights[layout.wide].chunks_exact(SUB_BOARDS + 1).enumerate() {
            for (squares, weight) in SUB_BOARD_SQUARES.into_iter().zip(row) {
                for square in squares {
                    men[square.index()][node] += f64::from(*weight);
                }
            }
            biases[node] = f64::from(row[SUB_BOARDS]);
        }
        Self { first: FirstLayer::new(&biases, &men, f64::from(king)) }
    }
}

impl Body<WIDE_ROW> for SumBody {
    #[inline(always)]
    fn first(&self) -> &FirstLayer<WIDE_ROW> {
        &self.first
    }

    #[inline(always)]
    fn wide<P: Vectors, const VECTORS: usize, const PAIR: usize>(
        &self,
        tracker: &Tracker<WIDE_ROW>,
        positions: &[Position],
        nodes: &mut Nodes,
    ) {
        for (position, wide) in positions.iter().zip(&mut nodes.wide) {
            let sums = tracker.look_at(&self.first, position);
            activate_sums::<P::Full, WIDE_ROW>(&sums, self.first.unit(), wide);
        }
    }
}

/// A tower: all layers from positions to what they add to the value.
pub(super) struct Tower<B> {
    pub(super) body: B,
    pub(super) tail: Tail,
}

/// From the wide nodes to the value.
pub(super) struct Tail {
    narrow: Layer<NARROW_ROW, WIDE>,
    output: Row<NARROW_ROW>,
    output_bias: f32,
    direct: f32,
    king: f32,
}

impl Tail {
    /// Of the weights of a tower, and what a king is worth.
    pub(super) fn new(kind: NodeKind, weights: &[f32], king: f32) -> Self {
        let layout = Layout::of(kind);
        let last = &weights[layout.output];
        let mut output = Row([0.0; NARROW_ROW]);
        output.0[..NARROW].copy_from_slice(&last[..NARROW]);
        Self {
            narrow: transposed(&weights[layout.narrow], WIDE),
            output,
            output_bias: last[NARROW],
            direct: weights[layout.direct],
            king,
        }
    }

    /// Calculates the narrow nodes of the first `leaves` leaves.
    #[inline(always)]
    pub(super) fn narrow<P: Vectors, const VECTORS: usize, const PAIR: usize>(
        &self,
        leaves: usize,
        nodes: &mut Nodes,
    ) {
        self.narrow.activate::<P, VECTORS, 0, NARROW_PARTS, PAIR, WIDE_ROW>(
            &nodes.wide[..leaves],
            &mut nodes.narrow[..leaves],
        );
    }

    /// Writes the values of leaves from their narrow nodes, which are those of the only tower.
    #[inline(always)]
    pub(super) fn values<P: Vectors>(
        &self,
        positions: &[Position],
        narrow: &[Row<NARROW_ROW>; LEAVES],
        scores: &mut [Score],
    ) {
        if let ([position], [narrow, ..], [score]) = (positions, narrow, &mut *scores) {
            // A vector of one would have to wait until the memory it is loaded from is written.
            let value = Lanes::tanh(self.sum::<P>(position, narrow));
            *score = Score((value * Score::ONE) as i32);
            return;
        }
        let mut sums = Row([0.0; LEAVES]);
        for ((sum, position), narrow) in sums.0.iter_mut().zip(positions).zip(narrow) {
            *sum = self.sum::<P>(position, narrow);
        }
        values::<P>(&sums, scores);
    }

    /// Adds what the narrow nodes of some leaves say to the sums of their values.
    #[inline(always)]
    pub(super) fn add<P: Vectors>(
        &self,
        positions: &[Position],
        narrow: &[Row<NARROW_ROW>; LEAVES],
        sums: &mut Row<LEAVES>,
    ) {
        for ((sum, position), narrow) in sums.0.iter_mut().zip(positions).zip(narrow) {
            *sum += self.sum::<P>(position, narrow);
        }
    }

    /// What the output node sums up.
    #[inline(always)]
    fn sum<P: Vectors>(&self, position: &Position, narrow: &Row<NARROW_ROW>) -> f32 {
        self.direct.mul_add(self.pieces(position), self.output_bias + self.weigh::<P>(narrow))
    }

    /// The narrow nodes' weighted sum, added up in pairs.
    #[inline(always)]
    fn weigh<P: Vectors>(&self, narrow: &Row<NARROW_ROW>) -> f32 {
        let (low, high) = (P::Half::load(&narrow.0), P::Half::load(&narrow.0[8..]));
        let (for_low, for_high) = (P::Half::load(&self.output.0), P::Half::load(&self.output.0[8..]));
        low.mul(for_low).add(high.mul(for_high)).sum()
    }

    /// The sum of all pieces as the side to move counts them.
    #[inline(always)]
    fn pieces(&self, position: &Position) -> f32 {
        let side = position.side_to_move();
        let count = |side: Side| (position.men(side).count() as i32, position.kings(side).count() as i32);
        let (own, other) = (count(side), count(!side));
        ((own.1 - other.1) as f32).mul_add(self.king, (own.0 - other.0) as f32)
    }
}

/// Writes the values of some leaves.
#[inline(always)]
pub(super) fn values<P: Vectors>(sums: &Row<LEAVES>, scores: &mut [Score]) {
    let values = P::Half::load(&sums.0).tanh().mul(P::Half::splat(Score::ONE)).truncate();
    for (score, value) in scores.iter_mut().zip(values) {
        *score = Score(value);
    }
}

/// A layer's weights by input instead of by node, padded with zeros, and its biases.
fn transposed<const ROW: usize, const INPUTS: usize>(weights: &[f32], inputs: usize) -> Layer<ROW, INPUTS> {
    let mut layer = Layer { rows: [Row([0.0; ROW]); INPUTS], biases: Row([0.0; ROW]) };
    for (node, weights) in weights.chunks_exact(inputs + 1).enumerate() {
        for (row, weight) in layer.rows.iter_mut().zip(&weights[..inputs]) {
            row.0[node] = *weight;
        }
        layer.biases.0[node] = weights[inputs];
    }
    layer
}
