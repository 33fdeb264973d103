//! Learning by gradient: back-propagation through the network, and Adam.
//!
//! Positions go through the layers in blocks. Every sum runs over positions or inputs in a fixed order, lane by lane and
//! with fused multiply-add, so that all paths give the same bits; what a vector holds is always the nodes of a layer,
//! never positions. A king's worth is learnt only where that is asked for.
#![allow(unsafe_code)]

use super::kernel::{Row, SimdPath};
use super::lanes::Lanes;
use super::layers::{NARROW_ROW, SUB_BOARD_ROW, WIDE_ROW};
use super::shape::{Architecture, Layout, NARROW, NodeKind, SUB_BOARD_SQUARES, SUB_BOARDS, WIDE};
use super::{Network, NetworkError};
use crate::position::{Position, Side};
use std::borrow::Cow;

/// A position and what it should be worth to its side to move, -1 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lesson {
    /// The position: nothing is pending in it.
    pub position: Position,
    /// Its worth.
    pub target: f32,
}

/// Positions that go through the layers together.
const BLOCK: usize = 32;
/// Sums that run side by side, so that the processor need not wait for the end of one: positions of a block on the way
/// through a layer, inputs for gradients.
const TOGETHER: usize = 8;
/// Adam's usual decay of the mean and of the mean square of gradients.
const DECAY: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;
/// No weight becomes larger than this by learning: networks of evolution have the same limit.
const LARGEST: f32 = 64.0;

/// The weights of a tower in the order in which it calculates, padded with zeros; also their gradient.
#[derive(Clone)]
struct Weights {
    /// For each square what a man on it adds to each sub-board; the last row holds the biases.
    first: [Row<SUB_BOARD_ROW>; 33],
    /// For each sub-board what it adds to each wide node; the last row holds the biases.
    wide: [Row<WIDE_ROW>; SUB_BOARDS + 1],
    narrow: [Row<NARROW_ROW>; WIDE + 1],
    output: Row<NARROW_ROW>,
    /// The output's bias and the direct weight.
    rest: [f32; 2],
    /// Of a gradient only: that of a king's worth, and what the sub-boards say of it, to be added up.
    king: f32,
    king_parts: Row<SUB_BOARD_ROW>,
}

impl Weights {
    #[allow(clippy::large_stack_arrays, reason = "it is boxed at once, and threads have room for it")]
    fn zero() -> Box<Self> {
        Box::new(Self {
            first: [Row([0.0; SUB_BOARD_ROW]); 33],
            wide: [Row([0.0; WIDE_ROW]); SUB_BOARDS + 1],
            narrow: [Row([0.0; NARROW_ROW]); WIDE + 1],
            output: Row([0.0; NARROW_ROW]),
            rest: [0.0; 2],
            king: 0.0,
            king_parts: Row([0.0; SUB_BOARD_ROW]),
        })
    }

    /// Calls `f` with each place of a tower's flat order and the weight that stands there.
    fn each(&mut self, kind: NodeKind, mut f: impl FnMut(usize, &mut f32)) {
        let layout = Layout::of(kind);
        let mut at = layout.first.start;
        if kind == NodeKind::Weighted {
            for (node, squares) in SUB_BOARD_SQUARES.into_iter().enumerate() {
                for square in squares {
                    f(at, &mut self.first[square.index()].0[node]);
                    at += 1;
                }
                f(at, &mut self.first[32].0[node]);
                at += 1;
            }
        }
        for node in 0..WIDE {
            for input in 0..=SUB_BOARDS {
                f(layout.wide.start + node * (SUB_BOARDS + 1) + input, &mut self.wide[input].0[node]);
            }
        }
        for node in 0..NARROW {
            for input in 0..=WIDE {
                f(layout.narrow.start + node * (WIDE + 1) + input, &mut self.narrow[input].0[node]);
            }
        }
        for node in 0..NARROW {
            f(layout.output.start + node, &mut self.output.0[node]);
        }
        f(layout.output.start + NARROW, &mut self.rest[0]);
        f(layout.direct, &mut self.rest[1]);
    }
}

/// The nodes of a block of positions, and what the error says of them.
struct Nodes {
    first: [Row<SUB_BOARD_ROW>; BLOCK],
    wide: [Row<WIDE_ROW>; BLOCK],
    narrow: [Row<NARROW_ROW>; BLOCK],
    first_error: [Row<SUB_BOARD_ROW>; BLOCK],
    wide_error: [Row<WIDE_ROW>; BLOCK],
    narrow_error: [Row<NARROW_ROW>; BLOCK],
}

/// A tower that learns.
struct Tower {
    weights: Box<Weights>,
    gradient: Box<Weights>,
    /// Weights of the wide and the narrow layer by node instead of by input, for the way back.
    wide_back: Box<[Row<SUB_BOARD_ROW>; WIDE]>,
    narrow_back: Box<[Row<WIDE_ROW>; NARROW]>,
    nodes: Box<Nodes>,
}

impl Tower {
    /// One that starts with these weights.
    fn new(kind: NodeKind, flat: &[f32]) -> Self {
        let mut weights = Weights::zero();
        weights.each(kind, |at, weight| *weight = flat[at]);
        let row = || Row([0.0; SUB_BOARD_ROW]);
        let nodes = Nodes {
            first: [row(); BLOCK],
            wide: [Row([0.0; WIDE_ROW]); BLOCK],
            narrow: [Row([0.0; NARROW_ROW]); BLOCK],
            first_error: [row(); BLOCK],
            wide_error: [Row([0.0; WIDE_ROW]); BLOCK],
            narrow_error: [Row([0.0; NARROW_ROW]); BLOCK],
        };
        Self {
            weights,
            gradient: Weights::zero(),
            wide_back: Box::new([row(); WIDE]),
            narrow_back: Box::new([Row([0.0; WIDE_ROW]); NARROW]),
            nodes: Box::new(nodes),
        }
    }

    /// Makes it ready to add up another gradient.
    fn start(&mut self) {
        self.gradient = Weights::zero();
        for (node, row) in self.wide_back.iter_mut().enumerate() {
            for input in 0..SUB_BOARDS {
                row.0[input] = self.weights.wide[input].0[node];
            }
        }
        for (node, row) in self.narrow_back.iter_mut().enumerate() {
            for input in 0..WIDE {
                row.0[input] = self.weights.narrow[input].0[node];
            }
        }
    }

    /// Calculates all nodes for a block of positions, and adds what they say to the sums of the values.
    #[inline(always)]
    fn forwards<V: Lanes>(&mut self, boards: &[Board], kind: NodeKind, sums: &mut [f32; BLOCK]) {
        let Self { weights, nodes, .. } = self;
        for (at, board) in boards.iter().enumerate() {
            first_nodes::<V>(kind, weights, board, &mut nodes.first[at]);
        }
        // Groups are filled up with what earlier blocks left there, which is never read.
        let groups = boards.len().next_multiple_of(TOGETHER);
        let (wide, narrow) = (&mut nodes.wide[..groups], &mut nodes.narrow[..groups]);
        dense::<V, WIDE_ROW, SUB_BOARD_ROW>(
            &weights.wide[..SUB_BOARDS],
            Some(&weights.wide[SUB_BOARDS]),
            &nodes.first[..groups],
            wide,
        );
        for row in &mut *wide {
            tanh::<V, WIDE_ROW>(row);
        }
        dense::<V, NARROW_ROW, WIDE_ROW>(&weights.narrow[..WIDE], Some(&weights.narrow[WIDE]), wide, narrow);
        for row in &mut *narrow {
            tanh::<V, NARROW_ROW>(row);
        }
        for (at, board) in boards.iter().enumerate() {
            // Padding has no weights, but tanh(0) is 0 anyway; ten nodes are summed in order.
            let mut sum = weights.rest[1].mul_add(board.sum, weights.rest[0]);
            for node in 0..NARROW {
                sum = weights.output.0[node].mul_add(nodes.narrow[at].0[node], sum);
            }
            sums[at] += sum;
        }
    }

    /// Adds up the gradient of a block of positions whose values have these errors; that of a king's worth if it is given.
    #[inline(always)]
    fn backwards<V: Lanes>(
        &mut self,
        boards: &[Board],
        errors: &[f32; BLOCK],
        kind: NodeKind,
        king: Option<f32>,
    ) {
        let Self { weights, gradient, wide_back, narrow_back, nodes } = self;
        let count = boards.len();
        let groups = count.next_multiple_of(TOGETHER);
        for (board, &error) in boards.iter().zip(errors) {
            gradient.rest[0] += error;
            gradient.rest[1] = error.mul_add(board.sum, gradient.rest[1]);
            if king.is_some() {
                gradient.king = (error * weights.rest[1]).mul_add(board.kings, gradient.king);
            }
        }
        for at in 0..count {
            let error = errors[at];
            axpy::<V, NARROW_ROW>(error, &nodes.narrow[at], &mut gradient.output);
            nodes.narrow_error[at].0.fill(0.0);
            axpy::<V, NARROW_ROW>(error, &weights.output, &mut nodes.narrow_error[at]);
            through_tanh::<V, NARROW_ROW>(&nodes.narrow[at], &mut nodes.narrow_error[at]);
        }
        dense::<V, WIDE_ROW, NARROW_ROW>(
            &**narrow_back,
            None,
            &nodes.narrow_error[..groups],
            &mut nodes.wide_error[..groups],
        );
        for at in 0..count {
            through_tanh::<V, WIDE_ROW>(&nodes.wide[at], &mut nodes.wide_error[at]);
        }
        outer::<V, NARROW_ROW, WIDE_ROW, { WIDE + 1 }>(
            &nodes.narrow_error[..count],
            &nodes.wide[..count],
            &mut gradient.narrow,
        );
        outer::<V, WIDE_ROW, SUB_BOARD_ROW, { SUB_BOARDS + 1 }>(
            &nodes.wide_error[..count],
            &nodes.first[..count],
            &mut gradient.wide,
        );
        if kind == NodeKind::Weighted || king.is_some() {
            dense::<V, SUB_BOARD_ROW, WIDE_ROW>(
                &**wide_back,
                None,
                &nodes.wide_error[..groups],
                &mut nodes.first_error[..groups],
            );
        }
        if kind == NodeKind::Weighted {
            for (at, board) in boards.iter().enumerate() {
                through_tanh::<V, SUB_BOARD_ROW>(&nodes.first[at], &mut nodes.first_error[at]);
                for &(square, worth) in board.pieces() {
                    axpy::<V, SUB_BOARD_ROW>(worth, &nodes.first_error[at], &mut gradient.first[square]);
                }
                axpy::<V, SUB_BOARD_ROW>(1.0, &nodes.first_error[at], &mut gradient.first[32]);
            }
        }
        if let Some(king) = king {
            for (at, board) in boards.iter().enumerate() {
                let slopes = king_slopes::<V>(kind, weights, board, king);
                times::<V, SUB_BOARD_ROW>(&nodes.first_error[at], &slopes, &mut gradient.king_parts);
            }
        }
    }
}

/// What Adam remembers from step to step: the mean and the mean square of the gradient, by the order of
/// [`Network::new`], and what is left of their start at zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: Vec<f32>,
    /// The mean square.
    pub square: Vec<f32>,
    /// What is left of the start of both.
    pub decayed: [f64; 2],
}

impl Moments {
    /// Those of a network of this number of weights that has not learnt anything.
    pub fn new(weights: usize) -> Self {
        Self { mean: vec![0.0; weights], square: vec![0.0; weights], decayed: [1.0; 2] }
    }
}

/// A network that learns.
pub struct Learner {
    architecture: Architecture,
    path: SimdPath,
    /// Whether a king's worth is learnt too, and its bounds.
    kings: Option<(f32, f32)>,
    king: f32,
    towers: Vec<Tower>,
    /// Those of a block, which all towers see.
    boards: Vec<Board>,
    moments: Moments,
}

impl Learner {
    /// A learner that starts as `network`, on the best path of this machine.
    pub fn new(network: &Network) -> Self {
        Self::with_path(network, SimdPath::best())
    }

    /// The same on a path of choice, if this machine has it.
    pub fn on_path(network: &Network, path: SimdPath) -> Option<Self> {
        path.is_available().then(|| Self::with_path(network, path))
    }

    /// Has it learn a king's worth as well, within bounds.
    #[must_use]
    pub fn with_kings(self, low: f32, high: f32) -> Self {
        Self { kings: Some((low, high)), ..self }
    }

    /// Has it continue with what an earlier learner of the same architecture remembered.
    ///
    /// # Panics
    /// If they are not as many as there are weights.
    #[must_use]
    pub fn with_moments(self, moments: Moments) -> Self {
        let count = self.architecture.weight_count();
        assert!(moments.mean.len() == count && moments.square.len() == count, "moments of another network");
        Self { moments, ..self }
    }

    /// What Adam remembers, for the next learner.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    fn with_path(network: &Network, path: SimdPath) -> Self {
        let architecture = network.architecture();
        let kind = architecture.nodes;
        let (king, weights) = network.weights().split_last().expect("a king's worth is the last weight");
        Self {
            architecture,
            path,
            kings: None,
            king: *king,
            towers: weights.chunks_exact(Layout::of(kind).count).map(|own| Tower::new(kind, own)).collect(),
            boards: vec![],
            moments: Moments::new(architecture.weight_count()),
        }
    }

    /// The network that it has become.
    ///
    /// # Errors
    /// If a weight is no number any more.
    pub fn network(&mut self) -> Result<Network, NetworkError> {
        Network::new(self.architecture, &self.flat())
    }

    /// Its weights in the order of [`Network::new`].
    pub fn flat(&mut self) -> Vec<f32> {
        let mut flat = vec![self.king; self.architecture.weight_count()];
        self.each(|tower| &mut tower.weights, |at, weight| flat[at] = *weight);
        flat
    }

    /// Calls `f` with each place of the flat order and what stands there of all towers, a king's worth aside.
    fn each(&mut self, of: fn(&mut Tower) -> &mut Weights, mut f: impl FnMut(usize, &mut f32)) {
        let kind = self.architecture.nodes;
        let count = Layout::of(kind).count;
        for (tower, start) in self.towers.iter_mut().zip((0..).step_by(count)) {
            of(tower).each(kind, |at, weight| f(start + at, weight));
        }
    }

    /// The mean square error over some lessons, and its gradient in the order of [`Network::new`].
    pub fn gradient(&mut self, lessons: &[Lesson]) -> (f32, Vec<f32>) {
        let loss = self.accumulate(lessons);
        (loss, self.slopes(lessons.len()))
    }

    /// The gradient that was added up over this number of lessons, as its mean.
    fn slopes(&mut self, lessons: usize) -> Vec<f32> {
        let share = 1.0 / lessons.max(1) as f32;
        let mut slopes = vec![0.0; self.architecture.weight_count()];
        self.each(|tower| &mut tower.gradient, |at, slope| slopes[at] = *slope * share);
        if let Some(king) = slopes.last_mut() {
            *king = self.towers.iter().fold(-0.0, |sum, tower| sum + tower.gradient.king) * share;
        }
        slopes
    }

    /// One step of Adam along the gradient of some lessons; returns their mean square error before.
    pub fn step(&mut self, lessons: &[Lesson], rate: f32) -> f32 {
        let loss = self.accumulate(lessons);
        let slopes = self.slopes(lessons.len());
        let mut moments = std::mem::replace(&mut self.moments, Moments::new(0));
        let Moments { mean, square, decayed } = &mut moments;
        *decayed = [0, 1].map(|which| decayed[which] * f64::from(DECAY[which]));
        let corrections = decayed.map(|decayed| (1.0 / (1.0 - decayed)) as f32);
        let mut improve = |at: usize, weight: &mut f32| {
            let slope = slopes[at];
            mean[at] = DECAY[0].mul_add(mean[at], (1.0 - DECAY[0]) * slope);
            square[at] = DECAY[1].mul_add(square[at], (1.0 - DECAY[1]) * (slope * slope));
            let size = (square[at] * corrections[1]).sqrt() + EPSILON;
            let moved = (-rate).mul_add(mean[at] * corrections[0] / size, *weight);
            *weight = moved.clamp(-LARGEST, LARGEST);
        };
        self.each(|tower| &mut tower.weights, &mut improve);
        if let Some((low, high)) = self.kings {
            improve(slopes.len() - 1, &mut self.king);
            self.king = self.king.clamp(low, high);
        }
        self.moments = moments;
        loss
    }

    /// Adds up the gradient of all lessons; returns their mean square error.
    fn accumulate(&mut self, lessons: &[Lesson]) -> f32 {
        self.towers.iter_mut().for_each(Tower::start);
        let shape = self.architecture.shape;
        let mut loss = 0.0_f64;
        for phase in 0..shape.phases() {
            let mut own = Cow::Borrowed(lessons);
            if shape.phases() > 1 {
                own.to_mut().retain(|lesson| shape.phase(&lesson.position) == phase);
            }
            for block in own.chunks(BLOCK) {
                loss += f64::from(self.block(phase, block));
            }
        }
        for tower in &mut self.towers {
            for part in tower.gradient.king_parts.0 {
                tower.gradient.king += part;
            }
        }
        (loss / lessons.len().max(1) as f64) as f32
    }

    fn block(&mut self, phase: usize, lessons: &[Lesson]) -> f32 {
        match self.path {
            // SAFETY: learners are made with available paths only.
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx512 => unsafe { avx512(self, phase, lessons) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx2 => unsafe { avx2(self, phase, lessons) },
            _ => self.pass::<super::lanes::Plain>(phase, lessons),
        }
    }

    /// Forwards and back again with one block of positions of a phase; returns the sum of square errors.
    #[inline(always)]
    fn pass<V: Lanes>(&mut self, phase: usize, lessons: &[Lesson]) -> f32 {
        let Self { architecture: Architecture { nodes: kind, shape }, king, kings, towers, boards, .. } =
            self;
        boards.clear();
        for lesson in lessons {
            boards.push(Board::of(&lesson.position, *king));
        }
        let towers = &mut towers[phase * shape.width()..][..shape.width()];
        let mut sums = [-0.0; BLOCK];
        for tower in &mut *towers {
            tower.forwards::<V>(boards, *kind, &mut sums);
        }
        let mut errors = [0.0; BLOCK];
        let mut loss = 0.0;
        for (at, lesson) in lessons.iter().enumerate() {
            let value = Lanes::tanh(sums[at]);
            let error: f32 = value - lesson.target;
            loss = error.mul_add(error, loss);
            errors[at] = 2.0 * error * (1.0 - value * value);
        }
        let learnt = kings.map(|_| *king);
        for tower in towers {
            tower.backwards::<V>(boards, &errors, *kind, learnt);
        }
        loss
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx512(learner: &mut Learner, phase: usize, lessons: &[Lesson]) -> f32 {
    learner.pass::<super::lanes::Avx512>(phase, lessons)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx2(learner: &mut Learner, phase: usize, lessons: &[Lesson]) -> f32 {
    learner.pass::<super::lanes::Avx2>(phase, lessons)
}

/// The pieces as the side to move sees them from its own back row.
struct Board {
    pieces: [(usize, f32); 32],
    is_king: [bool; 32],
    count: usize,
    sum: f32,
    /// The kings alone, each counted as 1.
    kings: f32,
}

impl Board {
    #[inline(always)]
    fn of(position: &Position, king: f32) -> Self {
        let side = position.side_to_move();
        let turn = if side == Side::Black { 0 } else { 31 };
        let mut board = Self { pieces: [(0, 0.0); 32], is_king: [false; 32], count: 0, sum: 0.0, kings: 0.0 };
        for (owner, sign) in [(side, 1.0), (!side, -1.0)] {
            for square in position.pieces(owner) {
                let crowned = position.kings.contains(square);
                let worth = if crowned { sign * king } else { sign };
                board.kings += if crowned { sign } else { 0.0 };
                board.is_king[board.count] = crowned;
                board.pieces[board.count] = (square.index() ^ turn, worth);
                board.count += 1;
                board.sum += worth;
            }
        }
        board
    }

    #[inline(always)]
    fn pieces(&self) -> &[(usize, f32)] {
        &self.pieces[..self.count.min(32)]
    }
}

/// The first layer: tanh of weighted sums, or plain sums.
#[inline(always)]
fn first_nodes<V: Lanes>(kind: NodeKind, weights: &Weights, board: &Board, nodes: &mut Row<SUB_BOARD_ROW>) {
    match kind {
        NodeKind::Weighted => {
            let mut sums = weights.first[32];
            for &(square, worth) in board.pieces() {
                axpy::<V, SUB_BOARD_ROW>(worth, &weights.first[square], &mut sums);
            }
            for at in (0..SUB_BOARD_ROW).step_by(V::WIDTH) {
                V::load(&sums.0[at..]).tanh().store(&mut nodes.0[at..]);
            }
        }
        NodeKind::Sum => {
            nodes.0.fill(0.0);
            for &(square, worth) in board.pieces() {
                add_to_covering(square, worth, nodes);
            }
        }
    }
}

/// What the sub-boards' sums gain for each unit that kings are worth more.
#[inline(always)]
fn king_slopes<V: Lanes>(kind: NodeKind, weights: &Weights, board: &Board, king: f32) -> Row<SUB_BOARD_ROW> {
    let mut slopes = Row([0.0; SUB_BOARD_ROW]);
    for (&(square, worth), is_king) in board.pieces().iter().zip(board.is_king) {
        if !is_king {
            continue;
        }
        let sign = if (worth > 0.0) == (king > 0.0) { 1.0 } else { -1.0 };
        match kind {
            NodeKind::Weighted => axpy::<V, SUB_BOARD_ROW>(sign, &weights.first[square], &mut slopes),
            NodeKind::Sum => add_to_covering(square, sign, &mut slopes),
        }
    }
    slopes
}

/// Adds a piece to every sub-board that covers its square.
#[inline(always)]
fn add_to_covering(square: usize, worth: f32, nodes: &mut Row<SUB_BOARD_ROW>) {
    for (node, squares) in nodes.0.iter_mut().zip(&SUB_BOARD_SQUARES) {
        if squares.0 >> square & 1 == 1 {
            *node += worth;
        }
    }
}

/// The sums of a layer over its inputs, for a whole number of groups of positions; a bias comes first.
#[inline(always)]
fn dense<V: Lanes, const ROW: usize, const FROM: usize>(
    rows: &[Row<ROW>],
    bias: Option<&Row<ROW>>,
    inputs: &[Row<FROM>],
    sums: &mut [Row<ROW>],
) {
    for (inputs, sums) in inputs.as_chunks::<TOGETHER>().0.iter().zip(sums.as_chunks_mut::<TOGETHER>().0) {
        for at in (0..ROW).step_by(V::WIDTH) {
            let start = bias.map_or(V::splat(0.0), |bias| V::load(&bias.0[at..]));
            let mut running = [start; TOGETHER];
            for (input, row) in rows.iter().enumerate() {
                let weight = V::load(&row.0[at..]);
                for one in 0..TOGETHER {
                    running[one] = weight.mul_add(V::splat(inputs[one].0[input]), running[one]);
                }
            }
            for one in 0..TOGETHER {
                running[one].store(&mut sums[one].0[at..]);
            }
        }
    }
}

/// tanh of every node.
#[inline(always)]
fn tanh<V: Lanes, const ROW: usize>(nodes: &mut Row<ROW>) {
    for at in (0..ROW).step_by(V::WIDTH) {
        V::load(&nodes.0[at..]).tanh().store(&mut nodes.0[at..]);
    }
}

/// `to += factor * from`.
#[inline(always)]
fn axpy<V: Lanes, const ROW: usize>(factor: f32, from: &Row<ROW>, to: &mut Row<ROW>) {
    let factor = V::splat(factor);
    for at in (0..ROW).step_by(V::WIDTH) {
        V::load(&from.0[at..]).mul_add(factor, V::load(&to.0[at..])).store(&mut to.0[at..]);
    }
}

/// `to += one * other`, place by place.
#[inline(always)]
fn times<V: Lanes, const ROW: usize>(one: &Row<ROW>, other: &Row<ROW>, to: &mut Row<ROW>) {
    for at in (0..ROW).step_by(V::WIDTH) {
        let product = V::load(&one.0[at..]).mul_add(V::load(&other.0[at..]), V::load(&to.0[at..]));
        product.store(&mut to.0[at..]);
    }
}

/// Makes the error behind tanh that before it: times one minus the square of the node.
#[inline(always)]
fn through_tanh<V: Lanes, const ROW: usize>(nodes: &Row<ROW>, error: &mut Row<ROW>) {
    for at in (0..ROW).step_by(V::WIDTH) {
        let node = V::load(&nodes.0[at..]);
        let slope = node.mul(V::splat(-1.0)).mul_add(node, V::splat(1.0));
        V::load(&error.0[at..]).mul(slope).store(&mut error.0[at..]);
    }
}

/// Adds every input times every node's error, summed over the block; the last row takes the errors themselves, for biases.
#[inline(always)]
fn outer<V: Lanes, const ROW: usize, const FROM: usize, const INPUTS: usize>(
    errors: &[Row<ROW>],
    inputs: &[Row<FROM>],
    gradient: &mut [Row<ROW>; INPUTS],
) {
    let (rows, bias) = gradient.split_at_mut(INPUTS - 1);
    for at in (0..ROW).step_by(V::WIDTH) {
        for (chunk, rows) in rows.chunks_mut(TOGETHER).enumerate() {
            let first = chunk * TOGETHER;
            let mut running = [V::splat(0.0); TOGETHER];
            for (sum, row) in running.iter_mut().zip(&*rows) {
                *sum = V::load(&row.0[at..]);
            }
            for (error, nodes) in errors.iter().zip(inputs) {
                let error = V::load(&error.0[at..]);
                for one in 0..TOGETHER {
                    // Beyond the inputs there is padding, or the sum is not looked at.
                    running[one] = error.mul_add(V::splat(nodes.0[first + one]), running[one]);
                }
            }
            for (sum, row) in running.iter().zip(rows) {
                sum.store(&mut row.0[at..]);
            }
        }
        for row in &mut *bias {
            let mut sum = V::load(&row.0[at..]);
            for error in errors {
                sum = sum.add(V::load(&error.0[at..]));
            }
            sum.store(&mut row.0[at..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::NetworkShape;
    use super::*;
    use crate::behaviour::sample_positions;
    use crate::random::Stream;

    /// Both kinds of nodes in the papers' shape, and the other shapes.
    fn architectures() -> impl Iterator<Item = Architecture> {
        let kinds = [NodeKind::Weighted, NodeKind::Sum];
        kinds.into_iter().flat_map(|nodes| NetworkShape::ALL.map(|shape| Architecture { nodes, shape }))
    }

    fn network(architecture: impl Into<Architecture>, seed: u64) -> Network {
        let (architecture, mut stream) = (architecture.into(), Stream::new(seed));
        let mut weight = || ((stream.next() >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.2;
        let mut weights: Vec<f32> = (0..architecture.weight_count()).map(|_| weight()).collect();
        *weights.last_mut().expect("there are weights") = 1.7;
        Network::new(architecture, &weights).expect("as many as it wants")
    }

    fn lessons(count: usize) -> Vec<Lesson> {
        let mut stream = Stream::new(9);
        let positions = sample_positions(3, count).into_iter();
        positions.map(|position| Lesson { position, target: stream.below(3) as f32 - 1.0 }).collect()
    }

    /// The mean square error by plain loops in double precision, from the weights as given.
    fn loss(Architecture { nodes, shape }: Architecture, weights: &[f64], lessons: &[Lesson]) -> f64 {
        let (king, towers) = weights.split_last().expect("a king's worth");
        let towers: Vec<&[f64]> = towers.chunks_exact(Layout::of(nodes).count).collect();
        let one = |lesson: &Lesson| {
            let side = lesson.position.side_to_move();
            let mut board = [0.0; 32];
            for (owner, sign) in [(side, 1.0), (!side, -1.0)] {
                for square in lesson.position.pieces(owner) {
                    let seen = if side == Side::Black { square.index() } else { 31 - square.index() };
                    board[seen] = sign * if lesson.position.kings.contains(square) { *king } else { 1.0 };
                }
            }
            let judges = &towers[shape.phase(&lesson.position) * shape.width()..][..shape.width()];
            let value = libm::tanh(judges.iter().map(|tower| sum(nodes, tower, &board)).sum::<f64>());
            (value - f64::from(lesson.target)) * (value - f64::from(lesson.target))
        };
        lessons.iter().map(one).sum::<f64>() / lessons.len() as f64
    }

    /// What a tower adds to the value.
    fn sum(kind: NodeKind, weights: &[f64], board: &[f64; 32]) -> f64 {
        let layout = Layout::of(kind);
        let tanh = |sums: Vec<f64>| sums.into_iter().map(libm::tanh).collect::<Vec<f64>>();
        let dense = |rows: &[f64], inputs: &[f64]| -> Vec<f64> {
            let row =
                |row: &[f64]| row.iter().zip(inputs).map(|(w, i)| w * i).sum::<f64>() + row[inputs.len()];
            rows.chunks_exact(inputs.len() + 1).map(row).collect()
        };
        let mut at = 0;
        let first: Vec<f64> = SUB_BOARD_SQUARES
            .into_iter()
            .map(|squares| {
                let seen = squares.into_iter().map(|square| board[square.index()]);
                if kind == NodeKind::Sum {
                    return seen.sum();
                }
                let own = &weights[layout.first.clone()][at..];
                at += squares.count() as usize + 1;
                libm::tanh(seen.zip(own).map(|(x, w)| x * w).sum::<f64>() + own[squares.count() as usize])
            })
            .collect();
        let wide = tanh(dense(&weights[layout.wide.clone()], &first));
        let narrow = tanh(dense(&weights[layout.narrow.clone()], &wide));
        let output = dense(&weights[layout.output.clone()], &narrow)[0];
        output + weights[layout.direct] * board.iter().sum::<f64>()
    }

    #[test]
    fn gradients_are_what_differences_say() {
        for kind in architectures() {
            let (network, lessons) = (network(kind, 5), lessons(45));
            let (error, gradient) = Learner::new(&network).with_kings(1.0, 3.0).gradient(&lessons);
            let weights: Vec<f64> = network.weights().iter().map(|w| f64::from(*w)).collect();
            let expected = loss(kind, &weights, &lessons);
            assert!((f64::from(error) - expected).abs() < 1e-4, "{error} {expected}");
            let largest = gradient.iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
            let mut stream = Stream::new(1);
            let last = kind.weight_count() - 1;
            let mut tried: Vec<usize> = (0..150).map(|_| stream.below(last)).collect();
            tried.extend(last - 13..=last);
            for at in tried {
                const STEP: f64 = 1e-5;
                let moved = |by: f64| {
                    let mut moved = weights.clone();
                    moved[at] += by;
                    loss(kind, &moved, &lessons)
                };
                let slope = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let off = (slope - f64::from(gradient[at])).abs();
                assert!(
                    off < 2e-4 * f64::from(largest).max(0.01) + 2e-3 * slope.abs(),
                    "{kind:?} {at}: {slope} {}",
                    gradient[at]
                );
            }
            assert_ne!(gradient[last], 0.0, "there are kings in these positions");
            let (_, without) = Learner::new(&network).gradient(&lessons);
            assert_eq!((without[last], &without[..last]), (0.0, &gradient[..last]));
        }
    }

    #[test]
    fn all_paths_learn_the_same_bits() {
        for kind in architectures() {
            let (network, lessons) = (network(kind, 7), lessons(70));
            let learnt: Vec<Vec<u32>> = SimdPath::available()
                .into_iter()
                .map(|path| {
                    let learner = Learner::on_path(&network, path).expect("it is available");
                    let mut learner = learner.with_kings(1.0, 3.0);
                    for _ in 0..3 {
                        learner.step(&lessons, 0.01);
                    }
                    learner.flat().iter().map(|weight| weight.to_bits()).collect()
                })
                .collect();
            assert!(learnt.windows(2).all(|two| two[0] == two[1]), "{kind:?}: {:?}", SimdPath::available());
        }
    }

    #[test]
    fn phases_learn_from_their_own_positions() {
        let start = network(Architecture { nodes: NodeKind::Sum, shape: NetworkShape::Phases }, 13);
        let mut learner = Learner::new(&start);
        let opening = Lesson { position: Position::START, target: 1.0 };
        for _ in 0..20 {
            learner.step(&[opening], 0.01);
        }
        let count = Layout::of(NodeKind::Sum).count;
        let changed: Vec<bool> = learner
            .flat()
            .chunks_exact(count)
            .zip(start.weights().chunks_exact(count))
            .map(|(after, before)| after != before)
            .collect();
        assert_eq!(changed, [true, false, false]);
    }

    #[test]
    fn who_continues_with_the_moments_of_another_learns_as_if_there_was_one() {
        let (network, lessons) = (network(NodeKind::Weighted, 3), lessons(40));
        let mut through = Learner::new(&network).with_kings(1.0, 3.0);
        (0..4).for_each(|_| _ = through.step(&lessons, 0.01));
        let mut first = Learner::new(&network).with_kings(1.0, 3.0);
        (0..2).for_each(|_| _ = first.step(&lessons, 0.01));
        let moments = first.moments().clone();
        let halfway = first.network().expect("weights stay numbers");
        let mut second = Learner::new(&halfway).with_kings(1.0, 3.0).with_moments(moments);
        (0..2).for_each(|_| _ = second.step(&lessons, 0.01));
        assert_eq!((second.flat(), second.moments()), (through.flat(), through.moments()));
        assert_ne!(second.flat().last(), network.weights().last(), "a king's worth is learnt");
    }

    #[test]
    fn lessons_are_learnt() {
        let (network, lessons) = (network(NodeKind::Weighted, 11), lessons(200));
        let mut learner = Learner::new(&network);
        let before = learner.gradient(&lessons).0;
        for _ in 0..150 {
            learner.step(&lessons, 0.005);
        }
        let after = learner.gradient(&lessons).0;
        assert!(after < 0.5 * before, "{before} to {after}");
        let learnt = learner.network().expect("weights stay numbers");
        assert_eq!(learnt.weights().last(), network.weights().last());
    }
}
