//! The first layer in fixed point.
//!
//! Its sums change by one column for each piece that comes or goes. They are integers, so the sums of a
//! position are the same whichever way it was reached.

use crate::position::{Position, Side};
use crate::squares::Squares;

/// The sums of the layer's nodes, or what one piece adds to them; padded with zeros to full vectors.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Sums<const N: usize>(pub(super) [i32; N]);

impl<const N: usize> Sums<N> {
    // Wrapping, because overflow checks would keep the loops from becoming vectors: `FirstLayer::new` chooses
    // a unit with which no board overflows.
    #[inline(always)]
    fn add(&mut self, column: &Self) {
        self.0.iter_mut().zip(&column.0).for_each(|(sum, value)| *sum = sum.wrapping_add(*value));
    }

    #[inline(always)]
    fn subtract(&mut self, column: &Self) {
        self.0.iter_mut().zip(&column.0).for_each(|(sum, value)| *sum = sum.wrapping_sub(*value));
    }
}

/// What each piece on each square adds to the sums, seen by the side to move from its own back row.
pub(super) struct FirstLayer<const N: usize> {
    biases: Sums<N>,
    /// Men on the 32 squares, then kings.
    columns: [Sums<N>; 64],
    /// What 1 in a sum stands for: a power of two.
    unit: f32,
}

impl<const N: usize> FirstLayer<N> {
    /// The finest unit ever used, as its inverse.
    const FINEST: f64 = (1 << 20) as f64;

    /// Rounds biases and the 32 men's columns, and these times `king` for kings, to the finest unit that can't overflow.
    pub(super) fn new(biases: &[f64; N], men: &[[f64; N]], king: f64) -> Self {
        let scale = finest_scale(biases, men, king);
        let rounded = |column: &[f64; N], factor: f64| {
            Sums(column.map(|weight| (weight * factor * scale).round_ties_even() as i32))
        };
        Self {
            biases: rounded(biases, 1.0),
            columns: std::array::from_fn(|i| rounded(&men[i % 32], if i < 32 { 1.0 } else { king })),
            unit: (1.0 / scale) as f32,
        }
    }

    #[inline(always)]
    pub(super) fn unit(&self) -> f32 {
        self.unit
    }

    /// Turns the sums of one board, as `side` sees it, into those of another.
    #[inline(always)]
    fn change(&self, sums: &mut Sums<N>, side: Side, before: &Position, after: &Position) {
        let turn = match side {
            Side::Black => 0,
            Side::White => 31,
        };
        let own = [men_and_kings(before, side), men_and_kings(after, side)];
        let other = [men_and_kings(before, !side), men_and_kings(after, !side)];
        let (own_gone, own_new) = (own[0] & !own[1], own[1] & !own[0]);
        let (other_gone, other_new) = (other[0] & !other[1], other[1] & !other[0]);
        for piece in bits(own_new | other_gone) {
            sums.add(&self.columns[piece ^ turn]);
        }
        for piece in bits(own_gone | other_new) {
            sums.subtract(&self.columns[piece ^ turn]);
        }
        // Where one side's piece gave way to the same of the other, the column counts twice.
        for piece in bits(own_new & other_gone) {
            sums.add(&self.columns[piece ^ turn]);
        }
        for piece in bits(own_gone & other_new) {
            sums.subtract(&self.columns[piece ^ turn]);
        }
    }
}

/// A side's men on the low 32 bits, its kings on the high ones.
#[inline(always)]
fn men_and_kings(position: &Position, side: Side) -> u64 {
    u64::from(position.men(side).0) | u64::from(position.kings(side).0) << 32
}

/// The places of the bits that are set, each below 64.
#[inline(always)]
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = set.trailing_zeros() as usize;
        let found = set != 0;
        set &= set.wrapping_sub(1);
        found.then_some(lowest & 63)
    })
}

/// The inverse of the finest power of two in which the fullest imaginable board stays within an i32.
fn finest_scale<const N: usize>(biases: &[f64; N], men: &[[f64; N]], king: f64) -> f64 {
    const ROOM: f64 = (i32::MAX - 64) as f64;
    let heaviest = king.abs().max(1.0);
    let fullest =
        |node: usize| biases[node].abs() + men.iter().map(|c| c[node].abs()).sum::<f64>() * heaviest;
    let largest = (0..N).map(fullest).fold(0.0, f64::max);
    let mut scale = FirstLayer::<N>::FINEST;
    while largest * scale > ROOM {
        scale /= 2.0;
    }
    scale
}

/// The sums of the last board seen, one for each side that sees it.
#[derive(Clone)]
pub(super) struct Tracker<const N: usize> {
    boards: [Position; 2],
    sums: [Sums<N>; 2],
}

impl<const N: usize> Tracker<N> {
    pub(super) fn new(layer: &FirstLayer<N>) -> Self {
        let empty =
            Position { black: Squares::NONE, white: Squares::NONE, kings: Squares::NONE, side: Side::Black };
        Self { boards: [empty; 2], sums: [layer.biases; 2] }
    }

    /// Makes `position`, as `side` sees it, the board whose sums are known.
    #[inline(always)]
    pub(super) fn follow(&mut self, layer: &FirstLayer<N>, side: Side, position: &Position) {
        // A copy, so that the compiler knows that it overlaps nothing and keeps it in registers.
        let mut sums = self.sums[side as usize];
        layer.change(&mut sums, side, &self.boards[side as usize], position);
        self.sums[side as usize] = sums;
        self.boards[side as usize] = *position;
    }

    /// The sums of a position near the one that was followed last, which stays as it is.
    #[inline(always)]
    pub(super) fn look_at(&self, layer: &FirstLayer<N>, position: &Position) -> Sums<N> {
        let side = position.side_to_move();
        let (mut sums, board) = (self.sums[side as usize], &self.boards[side as usize]);
        if board != position {
            layer.change(&mut sums, side, board, position);
        }
        sums
    }
}
