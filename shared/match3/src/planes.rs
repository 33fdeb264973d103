//! A board as three bit planes: the colour of a cell is the three-bit number its planes spell, 0 where it is empty.
//!
//! Columns lie one after the other, each from the floor up, with a spare bit on top. The spare bits stay
//! empty, so a shift by one never carries a block from one column into the next.

// What lanes share must dissolve in functions compiled for wider registers than it would be on its own.
#![allow(clippy::inline_always)]

use crate::word::{Bits, Word};

/// Spare bits above each column.
pub(crate) const SPARE: u32 = 1;

/// Where the cells of a board lie in a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<W> {
    height: u32,
    /// Bits from a cell to its right neighbour.
    pub(crate) stride: u32,
    /// Every cell.
    pub(crate) cells: W,
    /// The lowest cell of each column.
    pub(crate) floor: W,
}

impl<W: Word> Field<W> {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        // A single column may fill the word, and then has no neighbour to shift to.
        let stride = (height + SPARE).min(W::BITS - 1);
        let mut field = Self { height, stride, cells: W::EMPTY, floor: W::EMPTY };
        for x in 0..width {
            field.floor |= field.bit(x, height - 1);
            for y in 0..height {
                field.cells |= field.bit(x, y);
            }
        }
        field
    }

    /// The cell in column `x`, row `y` from the top.
    pub(crate) fn bit(&self, x: u32, y: u32) -> W {
        W::ONE << (x * self.stride + self.height - 1 - y)
    }

    pub(crate) fn fits(width: u32, height: u32) -> bool {
        width * (height + SPARE) <= W::BITS
    }
}

/// The blocks of a board.
// Three named scalars rather than an array: the compiler keeps them in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planes<W> {
    pub(crate) a: W,
    pub(crate) b: W,
    pub(crate) c: W,
}

impl<W: Bits> Planes<W> {
    #[inline(always)]
    pub(crate) fn occupied(&self) -> W {
        self.a | self.b | self.c
    }

    /// The same change to every plane.
    #[inline(always)]
    pub(crate) fn map(&self, change: impl Fn(W) -> W) -> Self {
        Self { a: change(self.a), b: change(self.b), c: change(self.c) }
    }

    /// The cells whose neighbour `shift` above differs from them.
    #[inline(always)]
    pub(crate) fn differing(&self, shift: u32) -> W {
        (self.a ^ self.a >> shift) | (self.b ^ self.b >> shift) | (self.c ^ self.c >> shift)
    }

    /// The first cells of every three equal blocks that stand `shift` apart.
    #[inline(always)]
    pub(crate) fn runs(&self, shift: u32) -> W {
        let equal = self.occupied() & !self.differing(shift);
        equal & equal >> shift
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, cells: W) {
        *self = self.map(|plane| plane & !cells);
    }

    /// Lets every block that does not rest fall by one row.
    #[inline(always)]
    pub(crate) fn drop_all_but(&mut self, resting: W) {
        *self = self.map(|plane| plane & resting | (plane & !resting) >> 1);
    }
}

/// Every cell of the lines that begin at these cells, upright or level.
#[inline(always)]
pub(crate) fn whole_lines<W: Bits>(upright: W, level: W, stride: u32) -> W {
    upright | upright << 1 | upright << 2 | level | level << stride | level << stride << stride
}

/// The blocks of each column with no gap below them.
// Adding one at a column's floor carries through its unbroken run of blocks to the first gap, so the bits that
// changed are that run and the gap; shifted down by one they are the run alone (and spare bits, which hold nothing).
#[inline(always)]
pub(crate) fn resting<W: Bits>(occupied: W, floor: W) -> W {
    (occupied ^ occupied.plus(floor)) >> 1
}

impl<W: Word> Planes<W> {
    pub(crate) const EMPTY: Self = Self { a: W::EMPTY, b: W::EMPTY, c: W::EMPTY };

    pub(crate) fn put(&mut self, cell: W, colour: u8) {
        let bits = |plane: u8| if colour >> plane & 1 == 1 { cell } else { W::EMPTY };
        self.clear(cell);
        self.a |= bits(0);
        self.b |= bits(1);
        self.c |= bits(2);
    }

    pub(crate) fn colour(&self, cell: W) -> u8 {
        let bit = |plane: W| u8::from(!(plane & cell).is_empty());
        bit(self.a) | bit(self.b) << 1 | bit(self.c) << 2
    }

    /// Exchanges the cell `lower` with the one `shift` bits above it.
    #[inline]
    pub(crate) fn swap(&mut self, lower: W, shift: u32) {
        *self = self.map(|plane| {
            let differs = (plane ^ plane >> shift) & lower;
            plane ^ differs ^ differs << shift
        });
    }

    /// The cells of every line of three or more of one colour.
    #[inline]
    pub(crate) fn lines(&self, stride: u32) -> W {
        let (upright, level) = (self.runs(1), self.runs(stride));
        // Most moves make no line.
        if (upright | level).is_empty() { W::EMPTY } else { whole_lines(upright, level, stride) }
    }

    /// Lets every block fall until it rests.
    #[inline]
    pub(crate) fn fall(&mut self, field: &Field<W>) {
        loop {
            let occupied = self.occupied();
            let resting = resting(occupied, field.floor);
            if (occupied & !resting).is_empty() {
                return;
            }
            self.drop_all_but(resting);
        }
    }
}
