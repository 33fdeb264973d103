//! The Chellapilla-Fogel network: 91 sub-boards, 40 wide nodes, 10 narrow nodes, one value.
//!
//! The side to move sees the board from its own back row with its own pieces positive, so one network plays
//! both sides: for White the board is turned and the signs are swapped. A man is 1, a king what the network says.
//! Networks of other shapes ([`NetworkShape`]) consist of several such towers.
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
pub use shape::{Architecture, NetworkShape, NodeKind, View};

use crate::evaluator::Evaluator;
use crate::position::Position;
use crate::score::Score;
use first_layer::Tracker;
use kernel::{Job, Nodes, Several, Single};
use layers::{Body, SUB_BOARD_ROW, SumBody, Tail, Tower, WIDE_ROW, WeightedBody};
use shape::Layout;
use std::sync::Arc;

/// A network, ready to evaluate.
pub struct Network {
    architecture: Architecture,
    weights: Vec<f32>,
    towers: Towers,
}

/// The only tower, or those of the first phase, then those of the next. The papers' shape has kinds of its own, so that its
/// evaluation neither counts towers nor looks for the right one.
enum Towers {
    Weighted(Box<Tower<WeightedBody>>),
    Sum(Box<Tower<SumBody>>),
    SeveralWeighted(Box<[Tower<WeightedBody>]>),
    SeveralSum(Box<[Tower<SumBody>]>),
}

/// Why weights make no network.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// There are too few or too many.
    #[error("expected {expected} weights for a network of {architecture}, found `{found}`")]
    Count {
        /// The network that was asked for.
        architecture: Architecture,
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
    /// In shapes of several towers the first five are repeated for each of them; phases stand in the order of a game.
    ///
    /// # Errors
    /// If their number is not [`Architecture::weight_count`], or one is NaN or beyond [`Network::WEIGHT_LIMIT`].
    pub fn new(architecture: impl Into<Architecture>, weights: &[f32]) -> Result<Self, NetworkError> {
        let architecture = architecture.into();
        let (expected, found) = (architecture.weight_count(), weights.len());
        if found != expected {
            return Err(NetworkError::Count { architecture, expected, found });
        }
        // NaN fails the comparison as well.
        let fits = |weight: &f32| weight.abs() <= Self::WEIGHT_LIMIT;
        if let Some(index) = weights.iter().position(|weight| !fits(weight)) {
            return Err(NetworkError::Weight { index, value: weights[index] });
        }
        Ok(Self { architecture, weights: weights.to_vec(), towers: Towers::new(architecture, weights) })
    }

    /// What its first layer does.
    pub fn kind(&self) -> NodeKind {
        self.architecture.nodes
    }

    /// What it is like.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// The weights it was made of.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// What each node that sees the board makes of its squares, for pictures, tower by tower. Of weighted nodes these are
    /// the 91 sub-boards; plain sums have no weights, so there it is the 40 nodes behind them.
    pub fn views(&self) -> Vec<View> {
        shape::views(self.kind(), &self.weights)
    }

    /// The value of a position by plain loops and a library's tanh, from the weights as given: slow, close to
    /// what [`NetworkEvaluator`] says, and what that is tested against.
    pub fn reference_value(&self, position: &Position) -> f32 {
        reference::value(self.architecture, &self.weights, position)
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").field("architecture", &self.architecture).finish_non_exhaustive()
    }
}

impl Towers {
    fn new(Architecture { nodes, shape }: Architecture, weights: &[f32]) -> Self {
        let (king, towers) = weights.split_last().expect("a king's worth is the last weight");
        let each = towers.chunks_exact(Layout::of(nodes).count);
        let tail = |weights| Tail::new(nodes, weights, *king);
        let weighted = |own| Tower { body: WeightedBody::new(own, *king), tail: tail(own) };
        let sum = |own| Tower { body: SumBody::new(own, *king), tail: tail(own) };
        match (nodes, shape) {
            (NodeKind::Weighted, NetworkShape::Paper) => Self::Weighted(Box::new(weighted(towers))),
            (NodeKind::Sum, NetworkShape::Paper) => Self::Sum(Box::new(sum(towers))),
            (NodeKind::Weighted, _) => Self::SeveralWeighted(each.map(weighted).collect()),
            (NodeKind::Sum, _) => Self::SeveralSum(each.map(sum).collect()),
        }
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

/// One for each tower.
#[derive(Clone)]
enum Trackers {
    Weighted(Box<Tracker<SUB_BOARD_ROW>>),
    Sum(Box<Tracker<WIDE_ROW>>),
    SeveralWeighted(Box<[Tracker<SUB_BOARD_ROW>]>),
    SeveralSum(Box<[Tracker<WIDE_ROW>]>),
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
        fn tracked<B: Body<N>, const N: usize>(tower: &Tower<B>) -> Tracker<N> {
            Tracker::new(tower.body.first())
        }
        let trackers = match &network.towers {
            Towers::Weighted(tower) => Trackers::Weighted(Box::new(tracked(tower))),
            Towers::Sum(tower) => Trackers::Sum(Box::new(tracked(tower))),
            Towers::SeveralWeighted(towers) => {
                Trackers::SeveralWeighted(towers.iter().map(tracked).collect())
            }
            Towers::SeveralSum(towers) => Trackers::SeveralSum(towers.iter().map(tracked).collect()),
        };
        Self { network, path, trackers, nodes: Box::new(Nodes::ZERO) }
    }

    /// The network it evaluates with.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// The scores of positions by several towers: a capture may lead to the next phase, which has other ones.
    #[inline(never)]
    fn evaluate_by_phase(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        let shape = self.network.architecture.shape;
        let mut rest = scores;
        for positions in children.chunk_by(|one, next| shape.phase(one) == shape.phase(next)) {
            let (scores, others) = rest.split_at_mut(positions.len());
            rest = others;
            let first = shape.phase(&positions[0]) * shape.width();
            let (own, nodes) = (first..first + shape.width(), &mut *self.nodes);
            match (&self.network.towers, &mut self.trackers) {
                (Towers::SeveralWeighted(towers), Trackers::SeveralWeighted(trackers)) => {
                    let judges = Several { towers: &towers[own.clone()], trackers: &mut trackers[own] };
                    Job { judges, nodes, parent, positions, scores }.run(self.path);
                }
                (Towers::SeveralSum(towers), Trackers::SeveralSum(trackers)) => {
                    let judges = Several { towers: &towers[own.clone()], trackers: &mut trackers[own] };
                    Job { judges, nodes, parent, positions, scores }.run(self.path);
                }
                _ => unreachable!("trackers are made for their network's towers"),
            }
        }
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, position: &Position) -> Score {
        let mut score = [Score::EVEN];
        self.evaluate_children(position, std::slice::from_ref(position), &mut score);
        score[0]
    }

    fn evaluate_children(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        let (positions, path, nodes) = (children, self.path, &mut *self.nodes);
        match (&self.network.towers, &mut self.trackers) {
            (Towers::Weighted(tower), Trackers::Weighted(tracker)) => {
                Job { judges: Single { tower, tracker }, nodes, parent, positions, scores }.run(path);
            }
            (Towers::Sum(tower), Trackers::Sum(tracker)) => {
                Job { judges: Single { tower, tracker }, nodes, parent, positions, scores }.run(path);
            }
            _ => self.evaluate_by_phase(parent, children, scores),
        }
    }
}
