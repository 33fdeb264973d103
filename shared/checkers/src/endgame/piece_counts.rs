//! What stands on the board, wherever it stands.

use super::Database;
use std::fmt;

/// How many men and kings each side has: the name of a slice, in which Black is to move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(missing_docs, reason = "the names say it")]
pub struct PieceCounts {
    pub black_men: u8,
    pub black_kings: u8,
    pub white_men: u8,
    pub white_kings: u8,
}

impl PieceCounts {
    /// Places on a shelf with room for every material.
    pub(super) const PLACES: usize = 1 << 12;

    /// Men and kings of both sides.
    pub const fn pieces(self) -> u32 {
        (self.black_men + self.black_kings + self.white_men + self.white_kings) as u32
    }

    /// The same with the colours swapped: where a quiet move of Black leads to.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        Self {
            black_men: self.white_men,
            black_kings: self.white_kings,
            white_men: self.black_men,
            white_kings: self.black_kings,
        }
    }

    /// The four digits black men, black kings, white men, white kings.
    pub fn name(self) -> String {
        format!("{}{}{}{}", self.black_men, self.black_kings, self.white_men, self.white_kings)
    }

    /// A number of its own below [`PieceCounts::PLACES`]; no database has 8 pieces of a kind.
    #[inline]
    pub(super) const fn place(self) -> usize {
        (self.black_men as usize & 7) << 9
            | (self.black_kings as usize & 7) << 6
            | (self.white_men as usize & 7) << 3
            | (self.white_kings as usize & 7)
    }

    /// Every material of 2 to `pieces` pieces with at least one a side, in an order in which captures and crownings
    /// lead to earlier ones: by pieces, then by men.
    pub fn up_to(pieces: u32) -> impl Iterator<Item = Self> {
        (2..=pieces.min(Database::MOST_PIECES) as u8)
            .flat_map(|pieces| (0..=pieces).flat_map(move |men| with(pieces, men)))
    }

    /// [`PieceCounts::up_to`], each with its mirror image only once: two slices that are solved together.
    pub(super) fn pairs_up_to(pieces: u32) -> impl Iterator<Item = Self> {
        Self::up_to(pieces).filter(|material| *material <= material.mirrored())
    }

    /// What a crowned man of Black makes of it, seen from White's side.
    pub(super) const fn crowned(self) -> Self {
        Self { black_men: self.black_men - 1, black_kings: self.black_kings + 1, ..self }.mirrored()
    }
}

/// Every material of a number of pieces, with a number of men among them.
fn with(pieces: u8, men: u8) -> impl Iterator<Item = PieceCounts> {
    let kings = pieces - men;
    (0..=men).flat_map(move |black_men| {
        (0..=kings).filter_map(move |black_kings| {
            let material = PieceCounts {
                black_men,
                black_kings,
                white_men: men - black_men,
                white_kings: kings - black_kings,
            };
            let black = black_men + black_kings;
            (0 < black && black < pieces).then_some(material)
        })
    })
}

/// The name, and what it means.
impl fmt::Display for PieceCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} men and {} kings against {} men and {} kings)",
            self.name(),
            self.black_men,
            self.black_kings,
            self.white_men,
            self.white_kings
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_and_crownings_lead_to_earlier_slices() {
        let order: Vec<PieceCounts> = PieceCounts::up_to(6).collect();
        assert_eq!(order.len(), 4 + 12 + 25 + 44 + 70);
        let place = |material: &PieceCounts| order.iter().position(|other| other == material);
        for material in &order {
            assert!(place(&material.mirrored()).is_some());
            if material.black_men > 0 {
                assert!(place(&material.crowned()) < place(material));
                let fewer = PieceCounts { black_men: material.black_men - 1, ..*material };
                assert!(place(&fewer) < place(material));
            }
        }
    }

    #[test]
    fn each_has_a_place_of_its_own() {
        let mut places: Vec<usize> = PieceCounts::up_to(6).map(PieceCounts::place).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 155);
    }
}
