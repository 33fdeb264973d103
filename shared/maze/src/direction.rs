//! The four ways a character can move.

/// A move by one cell. Its number is the gene that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// One row towards the top.
    Up = 0,
    /// One row towards the bottom.
    Down = 1,
    /// One column towards the left.
    Left = 2,
    /// One column towards the right.
    Right = 3,
}

impl Direction {
    /// All four, by number.
    pub const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Left, Self::Right];

    /// The order in which every search of the study tries them: where scores are equal, the first wins.
    pub const SEARCH_ORDER: [Self; 4] = [Self::Right, Self::Left, Self::Down, Self::Up];

    /// The direction a gene stands for; only its two lowest bits count.
    #[inline]
    pub fn from_gene(gene: u8) -> Self {
        Self::ALL[usize::from(gene & 3)]
    }

    /// The gene that stands for this direction.
    #[inline]
    pub fn gene(self) -> u8 {
        self as u8
    }

    /// The way back.
    #[inline]
    #[must_use]
    pub fn opposite(self) -> Self {
        Self::from_gene(self.gene() ^ 1)
    }

    /// `U`, `D`, `L` or `R`.
    pub fn letter(self) -> char {
        ['U', 'D', 'L', 'R'][usize::from(self.gene())]
    }

    /// The others, nearest first by number and the lower of two equally near: what repair r1 tries in turn.
    pub(crate) fn nearest(self) -> [Self; 4] {
        let number = self.gene();
        let mut all = Self::ALL;
        all.sort_by_key(|other| (other.gene().abs_diff(number), other.gene()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_goes_by_number_and_prefers_the_lower() {
        let genes = |direction: Direction| direction.nearest().map(Direction::gene);
        assert_eq!(genes(Direction::Up), [0, 1, 2, 3]);
        assert_eq!(genes(Direction::Down), [1, 0, 2, 3]);
        assert_eq!(genes(Direction::Left), [2, 1, 3, 0]);
        assert_eq!(genes(Direction::Right), [3, 2, 1, 0]);
    }

    #[test]
    fn opposites_undo_each_other() {
        for direction in Direction::ALL {
            assert_ne!(direction.opposite(), direction);
            assert_eq!(direction.opposite().opposite(), direction);
        }
        assert_eq!(Direction::Up.opposite(), Direction::Down);
        assert_eq!(Direction::Left.opposite(), Direction::Right);
    }
}
