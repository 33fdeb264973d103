//! Sets of taken cells, and short names for them.

use crate::board::{Board, Cell};
#[expect(
    clippy::disallowed_types,
    reason = "only asked whether it holds a name; its order is never seen"
)]
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Many sets of cells of one board in one allocation, a row of bits for each.
#[derive(Clone, Debug)]
pub(crate) struct TakenRows {
    words: usize,
    bits: Vec<u64>,
}

impl TakenRows {
    pub(crate) fn words_of(board: &Board) -> usize {
        board.cells().div_ceil(64)
    }

    /// `rows` empty sets.
    pub(crate) fn new(board: &Board, rows: usize) -> Self {
        let words = Self::words_of(board);
        Self { words, bits: vec![0; words * rows] }
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u64] {
        &self.bits[row * self.words..(row + 1) * self.words]
    }

    pub(crate) fn clear(&mut self, row: usize) {
        self.bits[row * self.words..(row + 1) * self.words].fill(0);
    }

    /// Adds empty sets, so that there are at least `rows`.
    pub(crate) fn grow(&mut self, rows: usize) {
        self.bits.resize(self.bits.len().max(rows * self.words), 0);
    }

    /// Exchanges `count` sets from `first` on with those from `second` on, which lie behind them.
    pub(crate) fn swap(&mut self, first: usize, second: usize, count: usize) {
        let (before, behind) = self.bits.split_at_mut(second * self.words);
        let size = count * self.words;
        before[first * self.words..][..size].swap_with_slice(&mut behind[..size]);
    }

    #[inline]
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.bits.copy_within(from * self.words..(from + 1) * self.words, to * self.words);
    }

    #[inline]
    pub(crate) fn set(&mut self, row: usize, from: &[u64]) {
        self.bits[row * self.words..(row + 1) * self.words].copy_from_slice(from);
    }

    #[inline]
    pub(crate) fn insert(&mut self, row: usize, cell: Cell) {
        self.bits[row * self.words + usize::from(cell / 64)] |= 1 << (cell % 64);
    }
}

/// Sets of cells as a search by states keeps them.
pub(crate) trait Sets {
    /// `rows` empty sets.
    fn new(board: &Board, rows: usize) -> Self;
    fn row(&self, row: usize) -> &[u64];
    fn set(&mut self, row: usize, from: &[u64]);
    /// Makes a set that of another and a cell.
    fn inherit(&mut self, from: usize, to: usize, cell: Cell);
}

impl Sets for TakenRows {
    fn new(board: &Board, rows: usize) -> Self {
        Self::new(board, rows)
    }

    #[inline]
    fn row(&self, row: usize) -> &[u64] {
        self.row(row)
    }

    fn set(&mut self, row: usize, from: &[u64]) {
        self.set(row, from);
    }

    #[inline]
    fn inherit(&mut self, from: usize, to: usize, cell: Cell) {
        self.copy(from, to);
        self.insert(to, cell);
    }
}

/// Words in which a search by states keeps a set: some boards have rows of a size that the compiler knows.
pub(crate) fn kept_words(board: &Board) -> usize {
    match TakenRows::words_of(board) {
        ..=2 => 2,
        9..=16 => 16,
        words => words,
    }
}

/// Sets of cells of a board that needs at most `WORDS` words: copied without a call, which takes longer than the copy.
pub(crate) struct SmallRows<const WORDS: usize>(Vec<[u64; WORDS]>);

impl<const WORDS: usize> Sets for SmallRows<WORDS> {
    fn new(_: &Board, rows: usize) -> Self {
        Self(vec![[0; WORDS]; rows])
    }

    #[inline]
    fn row(&self, row: usize) -> &[u64] {
        &self.0[row]
    }

    fn set(&mut self, row: usize, from: &[u64]) {
        self.0[row][..from.len()].copy_from_slice(from);
    }

    #[inline]
    fn inherit(&mut self, from: usize, to: usize, cell: Cell) {
        self.0[to] = self.0[from];
        insert(&mut self.0[to], cell);
    }
}

/// Adds a cell to a set.
#[inline]
pub(crate) fn insert(row: &mut [u64], cell: Cell) {
    row[usize::from(cell / 64)] |= 1 << (cell % 64);
}

/// Whether a row contains a cell.
#[inline]
pub(crate) fn is_taken(row: &[u64], cell: Cell) -> bool {
    row[usize::from(cell / 64)] >> (cell % 64) & 1 == 1
}

/// A pseudo-random word for each number, the same for ever: the state mixer of `SplitMix64`. Sets of cells
/// are named by the exclusive or of their members' words, so that a name follows from its predecessor's in
/// one step.
#[inline]
pub(crate) fn word_of(number: u64) -> u64 {
    let mut word = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Names of states met before. Two states share a name by chance once in 2^64 pairs, which is taken for
/// never; names are random words already, so they are their own hashes.
#[expect(clippy::disallowed_types, reason = "only asked whether it holds a name; its order is never seen")]
pub(crate) type Names = HashSet<u64, BuildHasherDefault<NameHasher>>;

/// Passes a name through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl Hasher for NameHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("names are u64")
    }

    fn write_u64(&mut self, name: u64) {
        self.0 = name;
    }
}
