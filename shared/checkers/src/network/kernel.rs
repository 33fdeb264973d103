//! The forward pass, written once and compiled for each kind of vector.
//!
//! Sums run over the inputs in a fixed order, in a fixed number of partial sums, with fused multiply-add: so
//! every path gives the same bits, however many leaves are evaluated together.
#![allow(unsafe_code)]

use super::first_layer::{Sums, Tracker};
use super::lanes::{Lanes, Plain};
use super::layers::{Body, Tail};
use crate::position::Position;
use crate::score::Score;

/// The values of a layer's nodes, or their weights. Aligned, because a value is broadcast soon after its vector
/// was stored, which is slow across cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Row<const N: usize>(pub(super) [f32; N]);

/// Which instructions evaluate a network. All give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Path {
    /// Sixteen lanes.
    Avx512,
    /// Eight lanes, with FMA.
    Avx2,
    /// Whatever the compiler makes of plain code.
    Plain,
}

impl Path {
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

/// Positions to evaluate, all with the same side to move and near `parent`.
pub(super) struct Job<'a, B, const N: usize> {
    pub(super) body: &'a B,
    pub(super) tail: &'a Tail,
    pub(super) tracker: &'a mut Tracker<N>,
    pub(super) parent: &'a Position,
    pub(super) positions: &'a [Position],
    pub(super) scores: &'a mut [Score],
}

impl<B: Body<N>, const N: usize> Job<'_, B, N> {
    /// Does the job on `path`, which must be available.
    #[inline]
    pub(super) fn run(self, path: Path) {
        match path {
            // SAFETY: evaluators are made with available paths only.
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => unsafe { avx512(self) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => unsafe { avx2(self) },
            _ => self.on::<Plain, 5, 2, false>(),
        }
    }

    /// Four leaves at a time while there are as many: it hides the latency of the narrow layers.
    #[inline(always)]
    fn on<V: Lanes, const WIDE_VECTORS: usize, const NARROW_VECTORS: usize, const TOGETHER: bool>(mut self) {
        let Some(first) = self.positions.first() else { return };
        self.tracker.follow(self.body.first(), first.side_to_move(), self.parent);
        let mut done = 0;
        while done < self.positions.len() {
            done += match self.positions.len() - done {
                1 => self.leaves::<V, WIDE_VECTORS, NARROW_VECTORS, TOGETHER, 1>(done),
                2 | 3 => self.leaves::<V, WIDE_VECTORS, NARROW_VECTORS, TOGETHER, 2>(done),
                _ => self.leaves::<V, WIDE_VECTORS, NARROW_VECTORS, TOGETHER, 4>(done),
            };
        }
    }

    /// Evaluates the `LEAVES` positions from `start` on.
    #[inline(always)]
    fn leaves<V: Lanes, const W: usize, const R: usize, const TOGETHER: bool, const LEAVES: usize>(
        &mut self,
        start: usize,
    ) -> usize {
        let positions = &self.positions[start..start + LEAVES];
        let first = self.body.first();
        let mut sums = [Sums::ZERO; LEAVES];
        for (sums, position) in sums.iter_mut().zip(positions) {
            *sums = self.tracker.look_at(first, position);
        }
        let wide = self.body.wide::<V, W, LEAVES, TOGETHER>(&sums);
        let pieces = std::array::from_fn(|leaf| self.tail.pieces(&positions[leaf]));
        let values = self.tail.value::<V, W, R, LEAVES, TOGETHER>(&wide, &pieces);
        for (score, value) in self.scores[start..].iter_mut().zip(values) {
            *score = Score::from_value(value);
        }
        LEAVES
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx512<B: Body<N>, const N: usize>(job: Job<'_, B, N>) {
    job.on::<super::lanes::Avx512, 3, 1, true>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<B: Body<N>, const N: usize>(job: Job<'_, B, N>) {
    job.on::<super::lanes::Avx2, 5, 2, false>();
}

/// The inputs of a layer's nodes before tanh, for several leaves: `VECTORS` vectors of nodes, summed over the
/// inputs in `PARTS` partial sums of which the first starts with the biases.
///
/// `TOGETHER` keeps all leaves in registers at once and loads each weight once; otherwise leaf by leaf.
#[inline(always)]
pub(super) fn dense<
    V: Lanes,
    const ROW: usize,
    const INPUTS: usize,
    const VECTORS: usize,
    const PARTS: usize,
    const LEAVES: usize,
    const TOGETHER: bool,
>(
    rows: &[[f32; ROW]],
    biases: &[f32; ROW],
    inputs: &[Row<INPUTS>; LEAVES],
) -> [[V; VECTORS]; LEAVES] {
    let mut nodes = [[V::splat(0.0); VECTORS]; LEAVES];
    let mut done = 0;
    while TOGETHER && done + 2 <= LEAVES {
        let block = inputs[done..done + 2].try_into().expect("a slice of two");
        [nodes[done], nodes[done + 1]] =
            dense_block::<V, ROW, INPUTS, VECTORS, PARTS, 2>(rows, biases, block);
        done += 2;
    }
    while done < LEAVES {
        let block = inputs[done..=done].try_into().expect("a slice of one");
        [nodes[done]] = dense_block::<V, ROW, INPUTS, VECTORS, PARTS, 1>(rows, biases, block);
        done += 1;
    }
    nodes
}

#[inline(always)]
fn dense_block<
    V: Lanes,
    const ROW: usize,
    const INPUTS: usize,
    const VECTORS: usize,
    const PARTS: usize,
    const LEAVES: usize,
>(
    rows: &[[f32; ROW]],
    biases: &[f32; ROW],
    inputs: &[Row<INPUTS>; LEAVES],
) -> [[V; VECTORS]; LEAVES] {
    let zero = V::splat(0.0);
    let biases: [V; VECTORS] = std::array::from_fn(|v| V::load(&biases[v * V::WIDTH..]));
    let mut parts = [[[zero; VECTORS]; LEAVES]; PARTS];
    parts[0] = [biases; LEAVES];
    for (block, rows) in rows.chunks_exact(PARTS).enumerate() {
        for part in 0..PARTS {
            let weights: [V; VECTORS] = std::array::from_fn(|v| V::load(&rows[part][v * V::WIDTH..]));
            for leaf in 0..LEAVES {
                let input = V::splat(inputs[leaf].0[block * PARTS + part]);
                for v in 0..VECTORS {
                    parts[part][leaf][v] = weights[v].mul_add(input, parts[part][leaf][v]);
                }
            }
        }
    }
    fold_parts(parts)
}

/// Adds partial sums in pairs: (0 + 1) + (2 + 3), or (0 + 1) + 2.
#[inline(always)]
fn fold_parts<V: Lanes, const VECTORS: usize, const PARTS: usize, const LEAVES: usize>(
    mut parts: [[[V; VECTORS]; LEAVES]; PARTS],
) -> [[V; VECTORS]; LEAVES] {
    let mut distance = 1;
    while distance < PARTS {
        for part in (0..PARTS - distance).step_by(2 * distance) {
            for leaf in 0..LEAVES {
                for v in 0..VECTORS {
                    parts[part][leaf][v] = parts[part][leaf][v].add(parts[part + distance][leaf][v]);
                }
            }
        }
        distance *= 2;
    }
    parts[0]
}

/// tanh of every node, as one row for each leaf.
#[inline(always)]
pub(super) fn activate<V: Lanes, const VECTORS: usize, const LEAVES: usize, const ROW: usize>(
    nodes: &[[V; VECTORS]; LEAVES],
) -> [Row<ROW>; LEAVES] {
    let mut rows = [Row([0.0; ROW]); LEAVES];
    for (row, nodes) in rows.iter_mut().zip(nodes) {
        for (v, node) in nodes.iter().enumerate() {
            node.tanh().store(&mut row.0[v * V::WIDTH..]);
        }
    }
    keep_in_memory(&rows);
    rows
}

/// Keeps the rows in memory, where to broadcast one value is to load it; from registers, where the compiler
/// would leave them, each takes shuffles.
#[inline(always)]
pub(super) fn keep_in_memory<T>(rows: &T) {
    std::hint::black_box(rows);
}
