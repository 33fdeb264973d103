//! The verdicts of one slice, five in a byte.

use super::EndgameResult;
use super::mapping::Bytes;

/// Verdicts in a byte: three to the fifth is 243.
pub(super) const A_BYTE: u32 = 5;
const POWERS: [u8; A_BYTE as usize] = [1, 3, 9, 27, 81];

/// `DIGITS[byte][place]`.
const DIGITS: [[EndgameResult; A_BYTE as usize]; 243] = {
    let mut digits = [[EndgameResult::Draw; A_BYTE as usize]; 243];
    let mut byte = 0;
    while byte < 243 {
        let mut place = 0;
        while place < A_BYTE as usize {
            digits[byte][place] = match byte as u8 / POWERS[place] % 3 {
                0 => EndgameResult::Draw,
                1 => EndgameResult::Win,
                _ => EndgameResult::Loss,
            };
            place += 1;
        }
        byte += 1;
    }
    digits
};

const fn digit(verdict: EndgameResult) -> u8 {
    match verdict {
        EndgameResult::Draw => 0,
        EndgameResult::Win => 1,
        EndgameResult::Loss => 2,
    }
}

/// How many positions of a slice there are of each verdict, for the side to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub wins: u64,
    pub losses: u64,
    pub draws: u64,
}

impl Counts {
    /// All of them.
    pub const fn positions(self) -> u64 {
        self.wins + self.losses + self.draws
    }

    /// Those of two slices together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            wins: self.wins + other.wins,
            losses: self.losses + other.losses,
            draws: self.draws + other.draws,
        }
    }

    const fn count(mut self, verdict: EndgameResult) -> Self {
        match verdict {
            EndgameResult::Win => self.wins += 1,
            EndgameResult::Draw => self.draws += 1,
            EndgameResult::Loss => self.losses += 1,
        }
        self
    }
}

/// The verdicts of a slice, by the number of the position.
pub(super) struct Slice {
    bytes: Bytes,
    counts: Counts,
}

impl Slice {
    /// Packs verdicts.
    pub(super) fn pack(verdicts: impl Iterator<Item = EndgameResult>) -> Self {
        let mut bytes = Vec::new();
        let mut counts = Counts::default();
        for (number, verdict) in verdicts.enumerate() {
            let place = number % A_BYTE as usize;
            if place == 0 {
                bytes.push(0);
            }
            let byte: &mut u8 = bytes.last_mut().expect("one was pushed for the first place");
            *byte += digit(verdict) * POWERS[place];
            counts = counts.count(verdict);
        }
        Self { bytes: Bytes::Owned(bytes), counts }
    }

    /// Takes bytes that [`Slice::pack`] made, and what it counted.
    pub(super) fn from_bytes(bytes: Bytes, counts: Counts) -> Self {
        Self { bytes, counts }
    }

    #[inline]
    pub(super) fn verdict(&self, number: u32) -> EndgameResult {
        let byte = self.bytes.as_slice()[(number / A_BYTE) as usize];
        // A file is checked against its hash before it is used, so that no byte is above 242.
        DIGITS[usize::from(byte)][(number % A_BYTE) as usize]
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_found_again(digits in prop::collection::vec(0u8..3, 0..100)) {
            let verdicts: Vec<EndgameResult> =
                digits.iter().map(|d| [EndgameResult::Win, EndgameResult::Draw, EndgameResult::Loss][usize::from(*d)]).collect();
            let slice = Slice::pack(verdicts.iter().copied());
            for (number, verdict) in verdicts.iter().enumerate() {
                prop_assert_eq!(slice.verdict(number as u32), *verdict);
            }
            prop_assert_eq!(slice.counts().positions(), verdicts.len() as u64);
            prop_assert_eq!(slice.bytes().len(), verdicts.len().div_ceil(5));
        }
    }
}
