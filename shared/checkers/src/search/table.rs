//! The transposition table: what is already known about positions.

use crate::moves::Move;
use crate::position::Position;
use crate::score::Score;

/// When a score in the table may stand for a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Reuse {
    /// Never: the table only suggests moves to try first.
    Never,
    /// When it was searched to the same remaining depth: the score is then that of a plain minimax.
    #[default]
    EqualDepth,
    /// When it was searched at least as deep: stronger for the same work, but what a search finds depends on
    /// what was searched before.
    AtLeastDepth,
}

/// What a score in the table says about the true one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bound {
    AtLeast,
    AtMost,
    Exact,
}

/// The squares of a move, as a hint what to try first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hint(u16);

impl Hint {
    /// No move starts and ends like this.
    pub(super) const NONE: Self = Self(u16::MAX);

    #[inline]
    pub(super) fn of(mv: &Move) -> Self {
        Self((mv.from().index() << 5 | mv.to().index()) as u16)
    }

    /// A number below 1024.
    #[inline]
    pub(super) fn index(self) -> usize {
        usize::from(self.0 & 1023)
    }
}

/// What is known about one position.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    position: Position,
    /// As seen from the position itself.
    pub(super) score: Score,
    pub(super) hint: Hint,
    generation: u16,
    pub(super) depth: u8,
    pub(super) bound: Bound,
}

/// One entry for each slot, the newest always kept. Whole positions are compared, so no two are confused.
pub(super) struct Table {
    entries: Vec<Entry>,
    /// Entries of other generations don't count: clearing costs nothing.
    generation: u16,
}

impl Table {
    /// A table of 2^`bits` entries.
    pub(super) fn new(bits: u32) -> Self {
        let vacant = Entry {
            position: Position::START,
            score: Score::EVEN,
            hint: Hint::NONE,
            generation: 0,
            depth: 0,
            bound: Bound::Exact,
        };
        Self { entries: vec![vacant; 1 << bits], generation: 1 }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.entries.iter_mut().for_each(|entry| entry.generation = 0);
            self.generation = 1;
        }
    }

    #[inline]
    fn slot(&self, position: &Position) -> usize {
        position.hash64() as usize & (self.entries.len() - 1)
    }

    #[inline]
    pub(super) fn look_up(&self, position: &Position) -> Option<&Entry> {
        let entry = &self.entries[self.slot(position)];
        (entry.generation == self.generation && entry.position == *position).then_some(entry)
    }

    #[inline]
    pub(super) fn store(&mut self, position: &Position, depth: u32, score: Score, bound: Bound, hint: Hint) {
        let slot = self.slot(position);
        let (generation, depth) = (self.generation, depth as u8);
        self.entries[slot] = Entry { position: *position, score, hint, generation, depth, bound };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_forgets_even_after_all_generations() {
        let mut table = Table::new(4);
        for _ in 0..=u16::MAX {
            table.store(&Position::START, 3, Score::EVEN, Bound::Exact, Hint::NONE);
            assert!(table.look_up(&Position::START).is_some());
            table.clear();
            assert!(table.look_up(&Position::START).is_none());
        }
    }
}
