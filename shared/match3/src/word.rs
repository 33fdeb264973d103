//! The machine words a board can lie in: 64 bits for small boards, 128 for large ones.

use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, BitXorAssign, Not, Shl, Shr};

/// What can be shifted and combined bit by bit: one set of cells, or several side by side.
pub(crate) trait Bits:
    Copy
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// The sum of two numbers, whatever overflows being lost.
    fn plus(self, other: Self) -> Self;
}

/// A set of cells, one bit each.
pub(crate) trait Word: Bits + Eq + BitOrAssign + BitXorAssign {
    const BITS: u32;
    const EMPTY: Self;
    const ONE: Self;

    fn count(self) -> u32;
    fn trailing_ones(self) -> u32;
    /// The lowest bit alone.
    fn lowest(self) -> Self;

    fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

macro_rules! word {
    ($type:ty) => {
        impl Bits for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }

        impl Word for $type {
            const BITS: u32 = <$type>::BITS;
            const EMPTY: Self = 0;
            const ONE: Self = 1;

            fn count(self) -> u32 {
                self.count_ones()
            }

            fn trailing_ones(self) -> u32 {
                <$type>::trailing_ones(self)
            }

            fn lowest(self) -> Self {
                self & self.wrapping_neg()
            }
        }
    };
}

word!(u64);
word!(u128);
