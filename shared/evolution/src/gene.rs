//! What a genome is made of: symbols of an alphabet, or real numbers of an interval.

use crate::random::Stream;
use bincode::{Decode, Encode};
use std::fmt::Debug;

/// One place of a genome.
pub trait Gene: Copy + Default + PartialEq + Debug + Send + Sync + Encode + Decode<()> + 'static {
    /// The values a gene may take.
    type Domain: Copy + Debug + PartialEq + Send + Sync + 'static;

    /// Any value of the domain, each as likely as the others.
    fn random(domain: Self::Domain, stream: &mut Stream) -> Self;

    /// The nearest value of the domain after a step of the given size.
    fn stepped(self, domain: Self::Domain, step: f64) -> Self;

    /// Whether the value belongs to the domain; never true of NaN.
    fn belongs(self, domain: Self::Domain) -> bool;

    /// The value as a number, for statistics, distances and exports.
    fn number(self) -> f64;

    /// The first gene under a mask of ones, the second under a mask of zeros: bits rather than a branch, so that
    /// loops over it become vectors.
    fn masked(mask: u8, under_ones: Self, under_zeros: Self) -> Self;

    /// How far two genomes are apart: the number of differing symbols, or the Euclidean distance.
    fn distance(one: &[Self], other: &[Self]) -> f64;
}

/// How many different symbols there are: genes run from 0 to one less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alphabet(pub u16);

/// An interval that a real gene stays in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Gene for u8 {
    type Domain = Alphabet;

    #[inline]
    fn random(Alphabet(size): Alphabet, stream: &mut Stream) -> Self {
        stream.below(usize::from(size)) as u8
    }

    fn stepped(self, Alphabet(size): Alphabet, step: f64) -> Self {
        (f64::from(self) + step).round().clamp(0.0, f64::from(size - 1)) as u8
    }

    fn belongs(self, Alphabet(size): Alphabet) -> bool {
        u16::from(self) < size
    }

    fn number(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn masked(mask: u8, under_ones: Self, under_zeros: Self) -> Self {
        under_ones & mask | under_zeros & !mask
    }

    #[inline]
    fn distance(one: &[Self], other: &[Self]) -> f64 {
        differing(one, other) as f64
    }
}

/// Eight genes in a word.
const WORD: usize = 8;
/// The most genes whose differences the bytes of a word can count.
const BLOCK: usize = 254 * WORD;

/// Every second byte of a word.
const EVERY_OTHER: u64 = 0x00ff_00ff_00ff_00ff;

/// At how many places two genomes differ: crowding compares every child with its parents.
#[inline]
fn differing(one: &[u8], other: &[u8]) -> u64 {
    let length = one.len().min(other.len());
    let (mut one, mut other) = (&one[..length], &other[..length]);
    let mut total = 0;
    while one.len() > BLOCK {
        total += differing_in_block(&one[..BLOCK], &other[..BLOCK]);
        (one, other) = (&one[BLOCK..], &other[BLOCK..]);
    }
    total + differing_in_block(one, other)
}

/// Each byte of a word counts for its own places, so that eight genes are compared at a time.
#[inline]
fn differing_in_block(one: &[u8], other: &[u8]) -> u64 {
    let mut counts = 0;
    let (ones, rest) = one.as_chunks::<WORD>();
    let (others, other_rest) = other.as_chunks::<WORD>();
    for (&one, &other) in ones.iter().zip(others) {
        counts += nonzero_bytes(u64::from_le_bytes(one) ^ u64::from_le_bytes(other));
    }
    if !rest.is_empty() {
        if let (Some(&one), Some(&other)) = (one.last_chunk::<WORD>(), other.last_chunk::<WORD>()) {
            // The word that ends with the rest begins with what was compared already.
            let last = u64::from_le_bytes(one) ^ u64::from_le_bytes(other);
            counts += nonzero_bytes(last >> (8 * (WORD - rest.len())));
        } else {
            return rest.iter().zip(other_rest).map(|(a, b)| u64::from(a != b)).sum();
        }
    }
    // Neighbours first, so that no sum runs over into the next.
    let pairs = (counts & EVERY_OTHER) + (counts >> 8 & EVERY_OTHER);
    pairs.wrapping_mul(0x0001_0001_0001_0001) >> 48
}

/// A one in each byte that is not zero.
#[inline]
fn nonzero_bytes(word: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    (((word & LOW_BITS) + LOW_BITS) | word) >> 7 & 0x0101_0101_0101_0101
}

macro_rules! real_gene {
    ($real:ty, $bits:ty, $signed:ty) => {
        impl Gene for $real {
            type Domain = Interval;

            fn random(Interval { low, high }: Interval, stream: &mut Stream) -> Self {
                (low + (high - low) * stream.unit()) as $real
            }

            fn stepped(self, Interval { low, high }: Interval, step: f64) -> Self {
                let place = self.number() + step;
                // A step that is no number leads nowhere, so that genes stay numbers.
                let place = if place.is_nan() { self.number() } else { place };
                place.clamp(low, high) as $real
            }

            fn belongs(self, Interval { low, high }: Interval) -> bool {
                // The rounding to the gene's own precision may step over the edge of the interval.
                self >= low as $real && self <= high as $real
            }

            fn number(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn masked(mask: u8, under_ones: Self, under_zeros: Self) -> Self {
                // The mask's sign fills all bits.
                let mask = <$signed>::from(mask.cast_signed()) as $bits;
                Self::from_bits(under_ones.to_bits() & mask | under_zeros.to_bits() & !mask)
            }

            fn distance(one: &[Self], other: &[Self]) -> f64 {
                let squares = one.iter().zip(other).map(|(a, b)| (a.number() - b.number()).powi(2));
                crate::statistics::sum(squares).sqrt()
            }
        }
    };
}

real_gene!(f32, u32, i32);
real_gene!(f64, u64, i64);

/// The length of a problem's genomes and the domain of their genes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape<G: Gene> {
    /// How many genes a genome has.
    pub length: usize,
    /// The values each of them may take.
    pub domain: G::Domain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};

    #[test]
    fn every_symbol_comes_up_and_none_beyond() {
        let mut stream = Key::new(1, 0, 0).stream(0, Purpose::Founding);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[usize::from(u8::random(Alphabet(5), &mut stream))] += 1;
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }

    #[test]
    fn differing_symbols_are_counted_at_every_length() {
        let mut stream = Key::new(2, 0, 0).stream(0, Purpose::Founding);
        for length in (0..100).chain([BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 17, 9000]) {
            for alphabet in [2, 4, 256] {
                let mut genome = || -> Vec<u8> {
                    (0..length).map(|_| u8::random(Alphabet(alphabet), &mut stream)).collect()
                };
                let (one, other) = (genome(), genome());
                let one_by_one = (0..length).filter(|&at| one[at] != other[at]).count();
                assert_eq!(u8::distance(&one, &other), one_by_one as f64, "length {length}");
                let inverted: Vec<u8> = one.iter().map(|&gene| !gene).collect();
                assert_eq!(u8::distance(&one, &inverted), length as f64, "length {length}");
            }
        }
    }

    #[test]
    fn steps_stay_in_the_domain() {
        let interval = Interval { low: -1.0, high: 1.0 };
        assert_eq!(0.5f64.stepped(interval, 0.25), 0.75);
        assert_eq!(0.5f64.stepped(interval, 9.0), 1.0);
        assert_eq!(3u8.stepped(Alphabet(4), 7.2), 3);
        assert_eq!(3u8.stepped(Alphabet(4), -1.6), 1);
        assert!(!f64::NAN.belongs(interval));
        assert!(!4u8.belongs(Alphabet(4)));
    }

    #[test]
    fn distances() {
        assert_eq!(u8::distance(&[1, 2, 3], &[1, 0, 0]), 2.0);
        assert_eq!(f64::distance(&[0.0, 3.0], &[4.0, 0.0]), 5.0);
    }
}
