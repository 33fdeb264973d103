//! The table of the playing search: larger, lock-free, and shared by its threads.

use super::table::{Bound, Entry, Hint, Memory};
use crate::position::Position;
use crate::score::Score;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Entries that share a cache line; the least useful one gives way.
const BUCKET: usize = 4;

/// An entry: its content, and its position's hash mixed with the content. What two threads wrote at once fits no hash, and
/// is not found.
#[derive(Default)]
struct Slot {
    check: AtomicU64,
    content: AtomicU64,
}

#[repr(align(64))]
#[derive(Default)]
struct Bucket([Slot; BUCKET]);

/// A table that threads share. Two positions with the same 64-bit hash are confused, which a game survives.
#[derive(Clone)]
pub(super) struct SharedTable {
    buckets: Arc<Vec<Bucket>>,
    /// Searches since the table was made, to tell old entries.
    age: Arc<AtomicU8>,
    /// Mixed into every hash: of the positions of the game that scores depend on, 0 for none.
    past: u64,
}

/// An entry as 64 bits: score 32, hint 16, depth 7, bound 2, age 6.
fn pack(entry: Entry, age: u8) -> u64 {
    let bound = match entry.bound {
        Bound::AtLeast => 1,
        Bound::AtMost => 2,
        Bound::Exact => 3_u64,
    };
    u64::from(entry.score.0 as u32)
        | u64::from(entry.hint.0) << 32
        | u64::from(entry.depth & 127) << 48
        | bound << 55
        | u64::from(age & 63) << 57
}

fn unpack(content: u64) -> Option<Entry> {
    let bound = match content >> 55 & 3 {
        1 => Bound::AtLeast,
        2 => Bound::AtMost,
        3 => Bound::Exact,
        _ => return None,
    };
    let score = Score(content as u32 as i32);
    Some(Entry { score, hint: Hint((content >> 32) as u16), depth: (content >> 48 & 127) as u8, bound })
}

impl SharedTable {
    /// A table of about 2^`bits` entries of 16 bytes.
    pub(super) fn new(bits: u32) -> Self {
        let buckets = (0..1_usize << bits.saturating_sub(2)).map(|_| Bucket::default()).collect();
        Self { buckets: Arc::new(buckets), age: Arc::default(), past: 0 }
    }

    /// A search begins: what earlier ones found gives way first.
    pub(super) fn grow_older(&self) {
        self.age.fetch_add(1, Relaxed);
    }

    #[inline]
    fn hash(&self, position: &Position) -> u64 {
        position.hash64() ^ self.past
    }

    fn bucket(&self, hash: u64) -> &Bucket {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }
}

impl Memory for SharedTable {
    const SELECTIVE: bool = true;

    #[inline]
    fn look_up(&self, position: &Position) -> Option<Entry> {
        let hash = self.hash(position);
        self.bucket(hash).0.iter().find_map(|slot| {
            let content = slot.content.load(Relaxed);
            (slot.check.load(Relaxed) == hash ^ content).then(|| unpack(content)).flatten()
        })
    }

    #[inline]
    fn store(&mut self, position: &Position, found: Entry) {
        let (hash, age) = (self.hash(position), self.age.load(Relaxed) & 63);
        // Its own place if it has one, else that of the shallowest, oldest entry.
        let worth = |slot: &Slot| {
            let content = slot.content.load(Relaxed);
            if content == 0 {
                return -1000;
            }
            if slot.check.load(Relaxed) == hash ^ content {
                return -2000;
            }
            let old = age.wrapping_sub((content >> 57) as u8 & 63) & 63;
            (content >> 48 & 127) as i32 - 8 * i32::from(old)
        };
        let slots = &self.bucket(hash).0;
        let Some(slot) = slots.iter().min_by_key(|slot| worth(slot)) else { return };
        let content = pack(found, age);
        slot.check.store(hash ^ content, Relaxed);
        slot.content.store(content, Relaxed);
    }

    fn clear(&mut self) {
        for slot in self.buckets.iter().flat_map(|bucket| &bucket.0) {
            slot.content.store(0, Relaxed);
            slot.check.store(0, Relaxed);
        }
    }

    fn depend_on(&mut self, past: u64) {
        self.past = past;
    }

    #[inline]
    fn counts(&self, entry: Entry, depth: u32) -> bool {
        u32::from(entry.depth) >= depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were() {
        let mut table = SharedTable::new(6);
        for (number, score) in [-(1 << 30), -5, 0, 77, (1 << 30) - 3].into_iter().enumerate() {
            let bound = [Bound::AtLeast, Bound::AtMost, Bound::Exact][number % 3];
            let found = Entry {
                score: Score(score),
                hint: Hint(number as u16 * 200),
                depth: number as u8 * 20,
                bound,
            };
            table.store(&Position::START, found);
            let again = table.look_up(&Position::START).expect("it has just been stored");
            assert_eq!(
                (again.score, again.hint, again.depth, again.bound),
                (found.score, found.hint, found.depth, bound)
            );
        }
        table.clear();
        assert!(table.look_up(&Position::START).is_none());
    }

    #[test]
    fn what_was_found_with_other_positions_of_the_game_does_not_count() {
        let mut table = SharedTable::new(6);
        let found = Entry { score: Score(7), hint: Hint::NONE, depth: 3, bound: Bound::Exact };
        table.store(&Position::START, found);
        table.depend_on(0x1234_5678_9abc_def0);
        assert!(table.look_up(&Position::START).is_none());
        table.depend_on(0);
        assert!(table.look_up(&Position::START).is_some());
    }

    #[test]
    fn old_and_shallow_entries_give_way() {
        let mut table = SharedTable::new(2);
        let entry = |depth| Entry { score: Score::EVEN, hint: Hint::NONE, depth, bound: Bound::Exact };
        let mut position = Position::START;
        let mut stored = vec![];
        for depth in [9, 3, 8, 7, 5] {
            table.store(&position, entry(depth));
            stored.push((position, depth));
            position = position.play(&position.legal_moves()[0]);
        }
        let kept: Vec<u8> =
            stored.iter().filter(|(p, _)| table.look_up(p).is_some()).map(|(_, d)| *d).collect();
        assert_eq!(kept, [9, 8, 7, 5]);
        table.grow_older();
        table.grow_older();
        table.store(&position, entry(1));
        assert!(table.look_up(&position).is_some(), "an old deep entry is worth less than a new one");
    }
}
