//! The layers of a network, laid out for vectors.

use super::first_layer::{FirstLayer, Sums};
use super::kernel::{Row, activate, dense, keep_in_memory};
use super::lanes::Lanes;
use super::shape::{Layout, NARROW, NodeKind, SUB_BOARD_SQUARES, SUB_BOARDS, WIDE};
use crate::position::{Position, Side};

/// The 91 sub-boards, padded to full vectors.
pub(super) const SUB_BOARD_ROW: usize = 96;
/// The 40 wide nodes, padded to full vectors.
pub(super) const WIDE_ROW: usize = 48;
/// The 10 narrow nodes, padded to a full vector.
pub(super) const NARROW_ROW: usize = 16;
/// Inputs of the wide layer: the sub-boards in two partial sums.
const WIDE_INPUTS: usize = SUB_BOARDS + 2;

/// From a position's first-layer sums to the wide nodes before tanh.
pub(super) trait Body<const N: usize> {
    fn first(&self) -> &FirstLayer<N>;
    fn wide<V: Lanes, const VECTORS: usize, const LEAVES: usize, const TOGETHER: bool>(
        &self,
        sums: &[Sums<N>; LEAVES],
    ) -> [[V; VECTORS]; LEAVES];
}

/// Weighted sub-boards: tanh, then the wide layer.
#[repr(C, align(64))]
pub(super) struct WeightedBody {
    rows: [[f32; WIDE_ROW]; WIDE_INPUTS],
    biases: [f32; WIDE_ROW],
    first: FirstLayer<SUB_BOARD_ROW>,
}

impl WeightedBody {
    pub(super) fn new(weights: &[f32]) -> Self {
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
        let (rows, wide_biases) = transposed(&weights[layout.wide], SUB_BOARDS);
        let first = FirstLayer::new(&biases, &men, f64::from(weights[layout.king]));
        Self { rows, biases: wide_biases, first }
    }
}

impl Body<SUB_BOARD_ROW> for WeightedBody {
    #[inline(always)]
    fn first(&self) -> &FirstLayer<SUB_BOARD_ROW> {
        &self.first
    }

    #[inline(always)]
    fn wide<V: Lanes, const VECTORS: usize, const LEAVES: usize, const TOGETHER: bool>(
        &self,
        sums: &[Sums<SUB_BOARD_ROW>; LEAVES],
    ) -> [[V; VECTORS]; LEAVES] {
        let unit = V::splat(self.first.unit());
        let mut nodes = [Row([0.0; SUB_BOARD_ROW]); LEAVES];
        for (nodes, sums) in nodes.iter_mut().zip(sums) {
            for v in 0..SUB_BOARD_ROW / V::WIDTH {
                let at = v * V::WIDTH;
                V::load_integers(&sums.0[at..]).mul(unit).tanh().store(&mut nodes.0[at..]);
            }
        }
        keep_in_memory(&nodes);
        dense::<V, WIDE_ROW, SUB_BOARD_ROW, VECTORS, 3, LEAVES, TOGETHER>(&self.rows, &self.biases, &nodes)
    }
}

/// Plain sums: folded into the wide layer, whose nodes are then sums over the squares themselves.
#[repr(C, align(64))]
pub(super) struct SumBody {
    first: FirstLayer<WIDE_ROW>,
}

impl SumBody {
    pub(super) fn new(weights: &[f32]) -> Self {
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
        Self { first: FirstLayer::new(&biases, &men, f64::from(weights[layout.king])) }
    }
}

impl Body<WIDE_ROW> for SumBody {
    #[inline(always)]
    fn first(&self) -> &FirstLayer<WIDE_ROW> {
        &self.first
    }

    #[inline(always)]
    fn wide<V: Lanes, const VECTORS: usize, const LEAVES: usize, const TOGETHER: bool>(
        &self,
        sums: &[Sums<WIDE_ROW>; LEAVES],
    ) -> [[V; VECTORS]; LEAVES] {
        let unit = V::splat(self.first.unit());
        let node = |leaf: usize, v: usize| V::load_integers(&sums[leaf].0[v * V::WIDTH..]).mul(unit);
        std::array::from_fn(|leaf| std::array::from_fn(|v| node(leaf, v)))
    }
}

/// From the wide nodes to the value.
#[repr(C, align(64))]
pub(super) struct Tail {
    rows: [[f32; NARROW_ROW]; WIDE],
    biases: [f32; NARROW_ROW],
    output: [f32; NARROW_ROW],
    output_bias: f32,
    direct: f32,
    king: f32,
}

impl Tail {
    pub(super) fn new(kind: NodeKind, weights: &[f32]) -> Self {
        let layout = Layout::of(kind);
        let (rows, biases) = transposed(&weights[layout.narrow], WIDE);
        let last = &weights[layout.output];
        let mut output = [0.0; NARROW_ROW];
        output[..NARROW].copy_from_slice(&last[..NARROW]);
        let (direct, king) = (weights[layout.direct], weights[layout.king]);
        Self { rows, biases, output, output_bias: last[NARROW], direct, king }
    }

    /// The sum of all pieces as the side to move counts them.
    #[inline(always)]
    pub(super) fn pieces(&self, position: &Position) -> f32 {
        let lead = |count: &dyn Fn(Side) -> u32| {
            let side = position.side_to_move();
            count(side) as i32 - count(!side) as i32
        };
        let men = lead(&|side| position.men(side).count()) as f32;
        let kings = lead(&|side| position.kings(side).count()) as f32;
        kings.mul_add(self.king, men)
    }

    /// The value of each leaf, from its wide nodes before tanh and its sum of pieces.
    #[inline(always)]
    pub(super) fn value<
        V: Lanes,
        const WIDE_VECTORS: usize,
        const NARROW_VECTORS: usize,
        const LEAVES: usize,
        const TOGETHER: bool,
    >(
        &self,
        wide: &[[V; WIDE_VECTORS]; LEAVES],
        pieces: &[f32; LEAVES],
    ) -> [f32; LEAVES] {
        let wide = activate::<V, WIDE_VECTORS, LEAVES, WIDE_ROW>(wide);
        let narrow = dense::<V, NARROW_ROW, WIDE_ROW, NARROW_VECTORS, 4, LEAVES, TOGETHER>(
            &self.rows,
            &self.biases,
            &wide,
        );
        let narrow = activate::<V, NARROW_VECTORS, LEAVES, NARROW_ROW>(&narrow);
        let mut outputs = [0.0; NARROW_ROW];
        for leaf in 0..LEAVES {
            outputs[leaf] = self.direct.mul_add(pieces[leaf], self.output_bias + self.weigh(&narrow[leaf].0));
        }
        V::load(&outputs).tanh().store(&mut outputs);
        std::array::from_fn(|leaf| outputs[leaf])
    }

    /// The narrow nodes' weighted sum, added up in pairs.
    #[inline(always)]
    fn weigh(&self, narrow: &[f32; NARROW_ROW]) -> f32 {
        let terms: [f32; 16] = std::array::from_fn(|i| narrow[i] * self.output[i]);
        let terms: [f32; 8] = std::array::from_fn(|i| terms[i] + terms[i + 8]);
        let terms: [f32; 4] = std::array::from_fn(|i| terms[i] + terms[i + 4]);
        (terms[0] + terms[2]) + (terms[1] + terms[3])
    }
}

/// A layer's weights by input instead of by node, padded with zeros, and its biases.
fn transposed<const ROW: usize, const INPUTS: usize>(
    weights: &[f32],
    inputs: usize,
) -> ([[f32; ROW]; INPUTS], [f32; ROW]) {
    let mut rows = [[0.0; ROW]; INPUTS];
    let mut biases = [0.0; ROW];
    for (node, weights) in weights.chunks_exact(inputs + 1).enumerate() {
        for (row, weight) in rows.iter_mut().zip(&weights[..inputs]) {
            row[node] = *weight;
        }
        biases[node] = weights[inputs];
    }
    (rows, biases)
}
