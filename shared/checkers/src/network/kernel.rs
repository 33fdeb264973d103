//! The forward pass, written once and compiled for each kind of vector.
//!
//! Sums run over the inputs in a fixed order, in a fixed number of partial sums, with fused multiply-add: so
//! every path gives the same bits, however many leaves are evaluated together. Leaves go through each layer one
//! after the other, so that the processor has something to do while it waits for the end of a sum.
//!
//! No closure works on vectors, here or in `lanes` and `layers`: what the compiler does not inline is compiled without the
//! instructions of its caller, and every operation in it is a call.
#![allow(unsafe_code)]

use super::first_layer::{Sums, Tracker};
use super::lanes::{Lanes, Plain, Vectors};
use super::layers::{Body, NARROW_ROW, SUB_BOARD_ROW, Tower, WIDE_ROW, values};
use crate::position::{Position, Side};
use crate::score::Score;

/// The values of a layer's nodes, or their weights. Aligned, because a value is broadcast soon after its vector
/// was stored, which is slow across cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Row<const N: usize>(pub(super) [f32; N]);

/// Which instructions evaluate a network. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimdPath {
    /// Sixteen lanes.
    Avx512,
    /// Eight lanes, with FMA.
    Avx2,
    /// Whatever the compiler makes of plain code.
    Plain,
}

impl SimdPath {
    /// The paths that this machine can take, the best first.
    pub fn available() -> Vec<Self> {
        [Self::Avx512, Self::Avx2, Self::Plain].into_iter().filter(|path| path.is_available()).collect()
    }

    /// True if this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f") && Self::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Plain => true,
        }
    }

    /// The best path of this machine.
    pub fn best() -> Self {
        [Self::Avx512, Self::Avx2].into_iter().find(|path| path.is_available()).unwrap_or(Self::Plain)
    }
}

/// Leaves that go through the layers together: as many as a half vector has lanes, for their values.
pub(super) const LEAVES: usize = 8;

/// The nodes of the leaves on their way through the layers. They stay in memory on purpose: to broadcast a value
/// from there is one load, and from a register several shuffles.
#[derive(Clone)]
pub(super) struct Nodes {
    pub(super) first: [Row<SUB_BOARD_ROW>; LEAVES],
    pub(super) wide: [Row<WIDE_ROW>; LEAVES],
    pub(super) narrow: [Row<NARROW_ROW>; LEAVES],
}

impl Nodes {
    pub(super) const ZERO: Self = Self {
        first: [Row([0.0; SUB_BOARD_ROW]); LEAVES],
        wide: [Row([0.0; WIDE_ROW]); LEAVES],
        narrow: [Row([0.0; NARROW_ROW]); LEAVES],
    };
}

/// Towers that judge positions together, with what they remember of the last board.
pub(super) trait Judges {
    /// Prepares them for positions near this one, with this side to move.
    fn follow(&mut self, side: Side, position: &Position);

    /// Writes the values of at most [`LEAVES`] positions. Wide nodes fill `WIDE_VECTORS` vectors and a half one, narrow nodes
    /// `NARROW_VECTORS`; the registers have room for the sums of `PAIR` leaves.
    fn judge<P: Vectors, const WIDE_VECTORS: usize, const NARROW_VECTORS: usize, const PAIR: usize>(
        &self,
        positions: &[Position],
        nodes: &mut Nodes,
        scores: &mut [Score],
    );
}

/// One tower alone.
pub(super) struct Single<'a, B, const N: usize> {
    pub(super) tower: &'a Tower<B>,
    pub(super) tracker: &'a mut Tracker<N>,
}

/// Towers whose sums meet in the value.
pub(super) struct Several<'a, B, const N: usize> {
    pub(super) towers: &'a [Tower<B>],
    pub(super) trackers: &'a mut [Tracker<N>],
}

impl<B: Body<N>, const N: usize> Judges for Single<'_, B, N> {
    #[inline(always)]
    fn follow(&mut self, side: Side, position: &Position) {
        self.tracker.follow(self.tower.body.first(), side, position);
    }

    #[inline(always)]
    fn judge<P: Vectors, const WIDE_VECTORS: usize, const NARROW_VECTORS: usize, const PAIR: usize>(
        &self,
        positions: &[Position],
        nodes: &mut Nodes,
        scores: &mut [Score],
    ) {
        self.tower.body.wide::<P, WIDE_VECTORS, PAIR>(self.tracker, positions, nodes);
        self.tower.tail.narrow::<P, NARROW_VECTORS, PAIR>(positions.len(), nodes);
        self.tower.tail.values::<P>(positions, &nodes.narrow, scores);
    }
}

impl<B: Body<N>, const N: usize> Judges for Several<'_, B, N> {
    #[inline(always)]
    fn follow(&mut self, side: Side, position: &Position) {
        for (tower, tracker) in self.towers.iter().zip(&mut *self.trackers) {
            tracker.follow(tower.body.first(), side, position);
        }
    }

    #[inline(always)]
    fn judge<P: Vectors, const WIDE_VECTORS: usize, const NARROW_VECTORS: usize, const PAIR: usize>(
        &self,
        positions: &[Position],
        nodes: &mut Nodes,
        scores: &mut [Score],
    ) {
        let mut sums = Row([0.0; LEAVES]);
        for (tower, tracker) in self.towers.iter().zip(&*self.trackers) {
            tower.body.wide::<P, WIDE_VECTORS, PAIR>(tracker, positions, nodes);
            tower.tail.narrow::<P, NARROW_VECTORS, PAIR>(positions.len(), nodes);
            tower.tail.add::<P>(positions, &nodes.narrow, &mut sums);
        }
        values::<P>(&sums, scores);
    }
}

/// Positions to evaluate, all with the same side to move and near `parent`.
pub(super) struct Job<'a, J> {
    pub(super) judges: J,
    pub(super) nodes: &'a mut Nodes,
    pub(super) parent: &'a Position,
    pub(super) positions: &'a [Position],
    pub(super) scores: &'a mut [Score],
}

impl<J: Judges> Job<'_, J> {
    /// Does the job on `path`, which must be available.
    #[inline]
    pub(super) fn run(self, path: SimdPath) {
        match path {
            // SAFETY: evaluators are made with available paths only.
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx512 => unsafe { avx512(self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx2 => unsafe { avx2(self) },
            _ => self.on::<Plain, 4, 2, 1>(),
        }
    }

    #[inline(always)]
    fn on<P: Vectors, const WIDE_VECTORS: usize, const NARROW_VECTORS: usize, const PAIR: usize>(mut self) {
        let (side, nearby) = match self.positions {
            [] => return,
            [only] => (only.side_to_move(), only),
            [first, ..] => (first.side_to_move(), self.parent),
        };
        self.judges.follow(side, nearby);
        for (positions, scores) in self.positions.chunks(LEAVES).zip(self.scores.chunks_mut(LEAVES)) {
            self.judges.judge::<P, WIDE_VECTORS, NARROW_VECTORS, PAIR>(positions, self.nodes, scores);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx512<J: Judges>(job: Job<'_, J>) {
    job.on::<super::lanes::Avx512, 2, 1, 2>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<J: Judges>(job: Job<'_, J>) {
    job.on::<super::lanes::Avx2, 4, 2, 1>();
}

/// A layer's weights by input, a row for the nodes of each, and its biases.
#[repr(C, align(64))]
pub(super) struct Layer<const ROW: usize, const INPUTS: usize> {
    pub(super) rows: [Row<ROW>; INPUTS],
    pub(super) biases: Row<ROW>,
}

impl<const ROW: usize, const INPUTS: usize> Layer<ROW, INPUTS> {
    /// The nodes of each leaf: tanh of their sums over the inputs, which run in `PARTS` partial sums, the first
    /// starting with the bias. `PAIR` leaves at a time share the loads of the weights. The nodes fill `VECTORS`
    /// vectors and `HALVES` half ones.
    #[inline(always)]
    pub(super) fn activate<
        P: Vectors,
        const VECTORS: usize,
        const HALVES: usize,
        const PARTS: usize,
        const PAIR: usize,
        const FROM: usize,
    >(
        &self,
        inputs: &[Row<FROM>],
        nodes: &mut [Row<ROW>],
    ) {
        let (pairs, rest) = inputs.as_chunks::<PAIR>();
        let (node_pairs, node_rest) = nodes.as_chunks_mut::<PAIR>();
        for (inputs, nodes) in pairs.iter().zip(node_pairs) {
            self.activate_block::<P, VECTORS, HALVES, PARTS, PAIR, FROM>(inputs, nodes);
        }
        for (inputs, nodes) in rest.iter().zip(node_rest) {
            let (inputs, nodes) = (std::array::from_ref(inputs), std::array::from_mut(nodes));
            self.activate_block::<P, VECTORS, HALVES, PARTS, 1, FROM>(inputs, nodes);
        }
    }

    #[inline(always)]
    fn activate_block<
        P: Vectors,
        const VECTORS: usize,
        const HALVES: usize,
        const PARTS: usize,
        const BLOCK: usize,
        const FROM: usize,
    >(
        &self,
        inputs: &[Row<FROM>; BLOCK],
        nodes: &mut [Row<ROW>; BLOCK],
    ) {
        let middle = VECTORS * P::Full::WIDTH;
        let mut full = Parts::<P::Full, VECTORS, BLOCK, PARTS>::new(&self.biases.0);
        let mut half = Parts::<P::Half, HALVES, BLOCK, PARTS>::new(&self.biases.0[middle..]);
        for (block, rows) in self.rows.as_chunks::<PARTS>().0.iter().enumerate() {
            for part in 0..PARTS {
                let mut values = [0.0; BLOCK];
                for (value, input) in values.iter_mut().zip(inputs) {
                    *value = input.0[block * PARTS + part];
                }
                full.add(part, &rows[part].0, &values);
                half.add(part, &rows[part].0[middle..], &values);
            }
        }
        full.activate(nodes, 0);
        half.activate(nodes, middle);
    }
}

/// The partial sums of some vectors of nodes, for several leaves.
struct Parts<V, const VECTORS: usize, const BLOCK: usize, const PARTS: usize>([[[V; VECTORS]; BLOCK]; PARTS]);

impl<V: Lanes, const VECTORS: usize, const BLOCK: usize, const PARTS: usize> Parts<V, VECTORS, BLOCK, PARTS> {
    #[inline(always)]
    fn load(row: &[f32]) -> [V; VECTORS] {
        let mut vectors = [V::splat(0.0); VECTORS];
        for (v, vector) in vectors.iter_mut().enumerate() {
            *vector = V::load(&row[v * V::WIDTH..]);
        }
        vectors
    }

    #[inline(always)]
    fn new(biases: &[f32]) -> Self {
        let mut parts = [[[V::splat(0.0); VECTORS]; BLOCK]; PARTS];
        parts[0] = [Self::load(biases); BLOCK];
        Self(parts)
    }

    /// Adds one input of each leaf, by its row of weights.
    #[inline(always)]
    fn add(&mut self, part: usize, row: &[f32], inputs: &[f32; BLOCK]) {
        let weights = Self::load(row);
        for leaf in 0..BLOCK {
            let input = V::splat(inputs[leaf]);
            for v in 0..VECTORS {
                self.0[part][leaf][v] = weights[v].mul_add(input, self.0[part][leaf][v]);
            }
        }
    }

    /// Puts tanh of the whole sums into the nodes from `start` on.
    #[inline(always)]
    fn activate<const ROW: usize>(self, nodes: &mut [Row<ROW>; BLOCK], start: usize) {
        let sums = fold_parts(self.0);
        for leaf in 0..BLOCK {
            for v in 0..VECTORS {
                sums[leaf][v].tanh().store(&mut nodes[leaf].0[start + v * V::WIDTH..]);
            }
        }
    }
}

/// Adds partial sums in pairs: (0 + 1) + (2 + 3), or (0 + 1) + 2.
#[inline(always)]
fn fold_parts<V: Lanes, const VECTORS: usize, const PARTS: usize, const BLOCK: usize>(
    mut parts: [[[V; VECTORS]; BLOCK]; PARTS],
) -> [[V; VECTORS]; BLOCK] {
    let mut distance = 1;
    while distance < PARTS {
        for part in (0..PARTS - distance).step_by(2 * distance) {
            for leaf in 0..BLOCK {
                for v in 0..VECTORS {
                    parts[part][leaf][v] = parts[part][leaf][v].add(parts[part + distance][leaf][v]);
                }
            }
        }
        distance *= 2;
    }
    parts[0]
}

/// tanh of a first layer's sums, each worth `unit`.
#[inline(always)]
pub(super) fn activate_sums<V: Lanes, const ROW: usize>(sums: &Sums<ROW>, unit: f32, nodes: &mut Row<ROW>) {
    let unit = V::splat(unit);
    for at in (0..ROW).step_by(V::WIDTH) {
        V::load_integers(&sums.0[at..]).mul(unit).tanh().store(&mut nodes.0[at..]);
    }
}

/// [`activate_sums`] with one division for two nodes half a row apart.
#[inline(always)]
pub(super) fn activate_sums_in_pairs<V: Lanes, const ROW: usize>(
    sums: &Sums<ROW>,
    unit: f32,
    nodes: &mut Row<ROW>,
) {
    let unit = V::splat(unit);
    for at in (0..ROW / 2).step_by(V::WIDTH) {
        let near = V::load_integers(&sums.0[at..]).mul(unit);
        let far = V::load_integers(&sums.0[at + ROW / 2..]).mul(unit);
        let (near, far) = near.tanh_pair(far);
        near.store(&mut nodes.0[at..]);
        far.store(&mut nodes.0[at + ROW / 2..]);
    }
}
