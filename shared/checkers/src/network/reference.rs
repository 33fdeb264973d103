//! The network as its formula reads: plain loops and a library's tanh. Slow, and what the fast one must agree with.

use super::shape::{Architecture, Layout, NARROW, NodeKind, SUB_BOARD_SQUARES, SUB_BOARDS, WIDE};
use crate::position::{Position, Side};
use crate::squares::{Square, Squares};
use libm::tanhf;

/// The value of a position to its side to move, for a network of these weights.
pub(super) fn value(architecture: Architecture, weights: &[f32], position: &Position) -> f32 {
    let Architecture { nodes, shape } = architecture;
    let (king, towers) = weights.split_last().expect("a king's worth is the last weight");
    let board = board(position, *king);
    let towers = towers.chunks_exact(Layout::of(nodes).count);
    let judges = towers.skip(shape.phase(position) * shape.width()).take(shape.width());
    tanhf(judges.map(|tower| sum(nodes, tower, &board)).sum())
}

/// What a tower of these weights (see [`Layout`]) adds to the value.
fn sum(kind: NodeKind, weights: &[f32], board: &[f32; 32]) -> f32 {
    let layout = Layout::of(kind);
    let first = match kind {
        NodeKind::Weighted => weighted_nodes(&weights[layout.first], board),
        NodeKind::Sum => sum_nodes(board),
    };
    let wide: [f32; WIDE] = layer(&weights[layout.wide], &first);
    let narrow: [f32; NARROW] = layer(&weights[layout.narrow], &wide);
    let output = &weights[layout.output];
    let pieces: f32 = board.iter().sum();
    dot(&output[..NARROW], &narrow) + output[NARROW] + weights[layout.direct] * pieces
}

/// The board as the side to move sees it from its own back row: its pieces positive, a man 1, a king `king`.
fn board(position: &Position, king: f32) -> [f32; 32] {
    let side = position.side_to_move();
    let mut board = [0.0; 32];
    for square in Squares::ALL {
        let sign = if position.pieces(side).contains(square) {
            1.0
        } else if position.pieces(!side).contains(square) {
            -1.0
        } else {
            0.0
        };
        let worth = if position.kings.contains(square) { king } else { 1.0 };
        board[seen_by(side, square)] = sign * worth;
    }
    board
}

/// The index of a square when the board is turned so that `side`'s back row comes first.
fn seen_by(side: Side, square: Square) -> usize {
    match side {
        Side::Black => square.index(),
        Side::White => 31 - square.index(),
    }
}

fn weighted_nodes(weights: &[f32], board: &[f32; 32]) -> [f32; SUB_BOARDS] {
    let mut nodes = [0.0; SUB_BOARDS];
    let mut weights = weights.iter();
    for (node, squares) in nodes.iter_mut().zip(SUB_BOARD_SQUARES) {
        let sum: f32 = squares
            .into_iter()
            .zip(&mut weights)
            .map(|(square, weight)| weight * board[square.index()])
            .sum();
        let bias = weights.next().expect("a bias follows each node's weights");
        *node = tanhf(sum + bias);
    }
    nodes
}

fn sum_nodes(board: &[f32; 32]) -> [f32; SUB_BOARDS] {
    let mut nodes = [0.0; SUB_BOARDS];
    for (node, squares) in nodes.iter_mut().zip(SUB_BOARD_SQUARES) {
        *node = squares.into_iter().map(|square| board[square.index()]).sum();
    }
    nodes
}

fn layer<const N: usize>(weights: &[f32], inputs: &[f32]) -> [f32; N] {
    let mut rows = weights.chunks_exact(inputs.len() + 1);
    std::array::from_fn(|_| {
        let row = rows.next().expect("a row for each node");
        tanhf(dot(&row[..inputs.len()], inputs) + row[inputs.len()])
    })
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
