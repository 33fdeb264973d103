//! Eight 64-bit numbers that do everything side by side.
//!
//! Each operation is written for one lane and repeated for all; inside a function compiled for wide registers the
//! compiler makes it one instruction. A truth is a lane of all ones, as the processor has it.

// Everything must dissolve in its caller, or it would be compiled without the caller's wide registers.
#![allow(clippy::inline_always)]

use crate::random;
use crate::word::Bits;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

/// Numbers side by side.
pub(crate) const LANES: usize = 8;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [u64; LANES]);

impl Lanes {
    #[inline(always)]
    pub(crate) fn from_fn(lane: impl FnMut(usize) -> u64) -> Self {
        Self(std::array::from_fn(lane))
    }

    #[inline(always)]
    pub(crate) fn all(value: u64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self::from_fn(|lane| combine(self.0[lane], other.0[lane]))
    }

    #[inline(always)]
    fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Self::from_fn(|lane| change(self.0[lane]))
    }

    #[inline(always)]
    pub(crate) fn minus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_sub)
    }

    /// Shifts each lane up by its own distance.
    #[inline(always)]
    pub(crate) fn up(self, distance: Self) -> Self {
        self.with(distance, |value, distance| value << (distance & 63))
    }

    /// Shifts each lane down by its own distance.
    #[inline(always)]
    pub(crate) fn down(self, distance: Self) -> Self {
        self.with(distance, |value, distance| value >> (distance & 63))
    }

    #[inline(always)]
    pub(crate) fn count(self) -> Self {
        self.map(|value| u64::from(value.count_ones()))
    }

    #[inline(always)]
    pub(crate) fn mix(self) -> Self {
        self.map(random::mix)
    }

    /// The upper half of each lane as a fraction of 2^32, times `factor`, rounded down.
    #[inline(always)]
    pub(crate) fn upper_half_times(self, factor: Self) -> Self {
        self.with(factor, |bits, factor| ((bits >> 32) * (factor & 0xFFFF_FFFF)) >> 32)
    }

    #[inline(always)]
    pub(crate) fn is_zero(self) -> Self {
        self.map(|value| truth(value == 0))
    }

    #[inline(always)]
    pub(crate) fn at_least(self, other: Self) -> Self {
        self.with(other, |value, other| truth(value >= other))
    }

    /// `yes` where this is true, `no` where it is not.
    #[inline(always)]
    pub(crate) fn choose(self, yes: Self, no: Self) -> Self {
        yes & self | no & !self
    }
}

#[inline(always)]
fn truth(holds: bool) -> u64 {
    u64::from(holds).wrapping_neg()
}

impl Bits for Lanes {
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }
}

macro_rules! lane_by_lane {
    ($trait:ident, $method:ident, $operand:ty, $other:ident, $lane:ident => $value:expr) => {
        impl $trait<$operand> for Lanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, $other: $operand) -> Self {
                Self::from_fn(|$lane| self.0[$lane].$method($value))
            }
        }
    };
}

lane_by_lane!(BitAnd, bitand, Lanes, other, lane => other.0[lane]);
lane_by_lane!(BitOr, bitor, Lanes, other, lane => other.0[lane]);
lane_by_lane!(BitXor, bitxor, Lanes, other, lane => other.0[lane]);
lane_by_lane!(Shl, shl, u32, distance, lane => distance & 63);
lane_by_lane!(Shr, shr, u32, distance, lane => distance & 63);

impl Not for Lanes {
    type Output = Self;

    #[inline(always)]
    fn not(self) -> Self {
        self.map(|value| !value)
    }
}
