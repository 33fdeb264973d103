//! The Chellapilla-Fogel network: 91 sub-boards, 40 wide nodes, 10 narrow nodes, one value.
//!
//! The side to move sees the board from its own back row with its own pieces positive, so one network plays
//! both sides: for White the board is turned and the signs are swapped. A man is 1, a king what the network says.
//!
//! Two networks with the same weights judge alike to the last bit on every machine and every [`SimdPath`].

#![allow(
    clippy::inline_always,
    reason = "the forward pass must be compiled as a whole for each path's instructions"
)]
#![allow(clippy::needless_range_loop, reason = "leaves, nodes and vectors index several arrays at once")]

mod first_layer;
mod kernel;
mod lanes;
mod layers;
mod learner;
mod reference;
mod shape;

pub use kernel::SimdPath;
pub use learner::{Learner, Lesson, Moments};
pub use shape::{NodeKind, View};

use crate::evaluator::Evaluator;
use crate::position::Position;
use crate::score::Score;
use first_layer::Tracker;
use kernel::{Job, Nodes};
use layers::{Body as _, SUB_BOARD_ROW, SumBody, Tail, WIDE_ROW, WeightedBody};
use std::sync::Arc;

/// A network, ready to evaluate.
pub struct Network {
    kind: NodeKind,
    weights: Vec<f32>,
    body: Body,
    tail: Tail,
}

enum Body {
    Weighted(Box<WeightedBody>),
    Sum(Box<SumBody>),
}

/// Why weights make no network.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// There are too few or too many.
    #[error("expected {expected} weights for a network of {} nodes, found `{found}`", kind.name())]
    Count {
        /// The kind of network that was asked for.
        kind: NodeKind,
        /// How many it has.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// One is not a number, or too large to calculate with.
    #[error("expected weights between -{limit} and {limit}, found `{value}` at index {index}", limit = Network::WEIGHT_LIMIT)]
    Weight {
        /// Its place in the flat order.
        index: usize,
        /// What it is.
        value: f32,
    },
}

impl Network {
    /// No weight may be larger than this, either way.
    pub const WEIGHT_LIMIT: f32 = 1_048_576.0;

    /// The network of these weights, in this order, each node's inputs in order and then its bias:
    ///
    /// 1. of [`NodeKind::Weighted`] only, the 91 sub-boards: all 3x3, then 4x4 up to 8x8, row by row from
    ///    square 1's corner, each with the weights of its playable squares by number (945);
    /// 2. the 40 wide nodes with a weight for each sub-board (3680);
    /// 3. the 10 narrow nodes with a weight for each wide node (410);
    /// 4. the value (11);
    /// 5. the weight of the sum of all pieces, which goes straight to the value (1);
    /// 6. what a king is worth where a man is 1 (1).
    ///
    /// # Errors
    /// If their number is not [`NodeKind::weight_count`], or one is NaN or beyond [`Network::WEIGHT_LIMIT`].
    pub fn new(kind: NodeKind, weights: &[f32]) -> Result<Self, NetworkError> {
        let (expected, found) = (kind.weight_count(), weights.len());
        if found != expected {
            return Err(NetworkError::Count { kind, expected, found });
        }
        // NaN fails the comparison as well.
        let fits = |weight: &f32| weight.abs() <= Self::WEIGHT_LIMIT;
        if let Some(index) = weights.iter().position(|weight| !fits(weight)) {
            return Err(NetworkError::Weight { index, value: weights[index] });
        }
        let body = match kind {
            NodeKind::Weighted => Body::Weighted(Box::new(WeightedBody::new(weights))),
            NodeKind::Sum => Body::Sum(Box::new(SumBody::new(weights))),
        };
        Ok(Self { kind, weights: weights.to_vec(), body, tail: Tail::new(kind, weights) })
    }

    /// What its first layer does.
    pub fn kind(&self) -> NodeKind {
        self.kind
    }

    /// The weights it was made of.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// What each node that sees the board makes of its squares, for pictures. Of weighted nodes these are the 91
    /// sub-boards; plain sums have no weights, so there it is the 40 nodes behind them.
    pub fn views(&self) -> Vec<View> {
        shape::views(self.kind, &self.weights)
    }

    /// The value of a position by plain loops and a library's tanh, from the weights as given: slow, close to
    /// what [`NetworkEvaluator`] says, and what that is tested against.
    pub fn reference_value(&self, position: &Position) -> f32 {
        reference::value(self.kind, &self.weights, position)
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Evaluates positions with a network, remembering the last board so that only changes cost anything.
#[derive(Clone)]
pub struct NetworkEvaluator {
    network: Arc<Network>,
    path: SimdPath,
    trackers: Trackers,
    nodes: Box<Nodes>,
}

#[derive(Clone)]
enum Trackers {
    Weighted(Box<Tracker<SUB_BOARD_ROW>>),
    Sum(Box<Tracker<WIDE_ROW>>),
}

impl NetworkEvaluator {
    /// On the best path of this machine.
    pub fn new(network: Arc<Network>) -> Self {
        Self::with_path(network, SimdPath::best())
    }

    /// On a path of choice, if this machine has it.
    pub fn on_path(network: Arc<Network>, path: SimdPath) -> Option<Self> {
        path.is_available().then(|| Self::with_path(network, path))
    }

    /// The path must be available.
    fn with_path(network: Arc<Network>, path: SimdPath) -> Self {
        let trackers = match &network.body {
            Body::Weighted(body) => Trackers::Weighted(Box::new(Tracker::new(body.first()))),
            Body::Sum(body) => Trackers::Sum(Box::new(Tracker::new(body.first()))),
        };
        Self { network, path, trackers, nodes: Box::new(Nodes::ZERO) }
    }

    /// The network it evaluates with.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, position: &Position) -> Score {
        let mut score = [Score::EVEN];
        self.evaluate_children(position, std::slice::from_ref(position), &mut score);
        score[0]
    }

    fn evaluate_children(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        let (positions, path) = (children, self.path);
        let (tail, nodes) = (&self.network.tail, &mut *self.nodes);
        match (&self.network.body, &mut self.trackers) {
            (Body::Weighted(body), Trackers::Weighted(tracker)) => {
                Job { body: &**body, tail, tracker, nodes, parent, positions, scores }.run(path);
            }
            (Body::Sum(body), Trackers::Sum(tracker)) => {
                Job { body: &**body, tail, tracker, nodes, parent, positions, scores }.run(path);
            }
            _ => unreachable!("trackers are made for their network's body"),
        }
    }
}
