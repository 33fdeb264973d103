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
pub(super) struct Hint(pub(super) u16);

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
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// As seen from the position itself.
    pub(super) score: Score,
    pub(super) hint: Hint,
    pub(super) depth: u8,
    pub(super) bound: Bound,
}

/// A place of the exact table.
#[derive(Clone, Copy)]
struct Slot {
    position: Position,
    score: Score,
    hint: Hint,
    generation: u16,
    depth: u8,
    bound: Bound,
}

/// A transposition table. What a search may do follows from it: the exact one keeps to what a plain minimax finds, the
/// shared one belongs to searches that only have to play well.
pub(super) trait Memory {
    /// Whether the search may reduce and cut what looks bad, and reuse deeper scores.
    const SELECTIVE: bool;

    /// What is known about a position.
    fn look_up(&self, position: &Position) -> Option<Entry>;

    /// Remembers what was found, as seen from the position itself.
    fn store(&mut self, position: &Position, found: Entry);

    /// Forgets everything.
    fn clear(&mut self);

    /// Scores depend on a set of positions from now on, which this is the hash of: what was found with another one
    /// does not count.
    fn depend_on(&mut self, past: u64);

    /// Whether an entry of this depth may stand for a search.
    fn counts(&self, entry: Entry, depth: u32) -> bool;
}

/// One entry for each slot, the newest always kept. Whole positions are compared, so no two are confused.
pub(super) struct Table {
    slots: Vec<Slot>,
    reuse: Reuse,
    /// Entries of other generations don't count: clearing costs nothing.
    generation: u16,
}

impl Table {
    /// A table of 2^`bits` entries.
    pub(super) fn new(bits: u32, reuse: Reuse) -> Self {
        let vacant = Slot {
            position: Position::START,
            score: Score::EVEN,
            hint: Hint::NONE,
            generation: 0,
            depth: 0,
            bound: Bound::Exact,
        };
        Self { slots: vec![vacant; 1 << bits], reuse, generation: 1 }
    }

    #[inline]
    fn place(&self, position: &Position) -> usize {
        position.hash64() as usize & (self.slots.len() - 1)
    }
}

impl Memory for Table {
    const SELECTIVE: bool = false;

    #[inline]
    fn look_up(&self, position: &Position) -> Option<Entry> {
        let slot = &self.slots[self.place(position)];
        let Slot { score, hint, depth, bound, .. } = *slot;
        (slot.generation == self.generation && slot.position == *position).then_some(Entry {
            score,
            hint,
            depth,
            bound,
        })
    }

    #[inline]
    fn store(&mut self, position: &Position, found: Entry) {
        let place = self.place(position);
        let Entry { score, hint, depth, bound } = found;
        self.slots[place] =
            Slot { position: *position, score, hint, generation: self.generation, depth, bound };
    }

    fn clear(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.iter_mut().for_each(|slot| slot.generation = 0);
            self.generation = 1;
        }
    }

    fn depend_on(&mut self, _past: u64) {
        self.clear();
    }

    #[inline]
    fn counts(&self, entry: Entry, depth: u32) -> bool {
        match self.reuse {
            Reuse::Never => false,
            Reuse::EqualDepth => u32::from(entry.depth) == depth,
            Reuse::AtLeastDepth => u32::from(entry.depth) >= depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_forgets_even_after_all_generations() {
        let mut table = Table::new(4, Reuse::EqualDepth);
        for _ in 0..=u16::MAX {
            let found = Entry { score: Score::EVEN, hint: Hint::NONE, depth: 3, bound: Bound::Exact };
            table.store(&Position::START, found);
            assert!(table.look_up(&Position::START).is_some());
            table.clear();
            assert!(table.look_up(&Position::START).is_none());
        }
    }
}
