//! A binary heap whose order among equals is part of its contract.
//!
//! The searches of the study keep their states in one, and which of two equal scores comes out first decides
//! their results; the standard library promises nothing about it.

/// The highest key comes out first. A new item rises only above strictly lower ones; the hole of the item
/// taken out sinks to the bottom along the higher children (the right one of equals), and the last item rises
/// from there.
#[derive(Clone, Debug)]
pub(crate) struct Heap<T> {
    items: Vec<T>,
}

/// What a heap orders by.
pub(crate) trait Keyed: Copy {
    /// Whether its key is strictly higher.
    fn outranks(self, other: Self) -> bool;
}

impl<T: Keyed> Heap<T> {
    /// An empty one with room for this number of items.
    pub(crate) fn with_room(items: usize) -> Self {
        Self { items: Vec::with_capacity(items) }
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<T> {
        self.items.first().copied()
    }

    /// What would be on top after a [`pop`](Self::pop).
    #[inline]
    pub(crate) fn second(&self) -> Option<T> {
        match *self.items.as_slice() {
            [] | [_] => None,
            [_, only] => Some(only),
            // Where there are more, the last of all does not rise to the top; of these two the right one is the last.
            [_, left, right] => Some(if right.outranks(left) { right } else { left }),
            [_, left, right, ..] => Some(if left.outranks(right) { left } else { right }),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        let hole = self.items.len();
        self.items.push(item);
        Self::rise(&mut self.items, hole, item);
    }

    /// Pushes the first `count` of these, one after the other.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "in registers they are; by a call they would go through memory")]
    pub(crate) fn push_all(&mut self, [first, second, third, fourth]: [T; 4], count: usize) {
        let start = self.items.len();
        self.items.resize(start + 4, first);
        let items = self.items.as_mut_slice();
        if count > 0 {
            Self::rise(items, start, first);
        }
        if count > 1 {
            Self::rise(items, start + 1, second);
        }
        if count > 2 {
            Self::rise(items, start + 2, third);
        }
        if count > 3 {
            Self::rise(items, start + 3, fourth);
        }
        self.items.truncate(start + count);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(&top) = self.items.first() else { return Some(last) };
        let hole = self.sink_hole();
        Self::rise(&mut self.items, hole, last);
        Some(top)
    }

    #[inline]
    fn rise(items: &mut [T], mut hole: usize, item: T) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let above = items[parent];
            if !item.outranks(above) {
                break;
            }
            items[hole] = above;
            hole = parent;
        }
        items[hole] = item;
    }

    #[inline]
    fn sink_hole(&mut self) -> usize {
        let (mut hole, mut right) = (0, 2);
        while right < self.items.len() {
            let higher = right - usize::from(self.items[right - 1].outranks(self.items[right]));
            self.items[hole] = self.items[higher];
            hole = higher;
            right = 2 * hole + 2;
        }
        if right == self.items.len() {
            self.items[hole] = self.items[right - 1];
            hole = right - 1;
        }
        hole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Keyed for (u32, usize) {
        fn outranks(self, other: Self) -> bool {
            self.0 > other.0
        }
    }

    fn heap(keys: &[u32]) -> Heap<(u32, usize)> {
        let mut heap = Heap::with_room(0);
        let items: Vec<(u32, usize)> = keys.iter().copied().zip(0..).collect();
        for four in items.chunks(4) {
            let padded = std::array::from_fn(|at| four.get(at).copied().unwrap_or((99, 99)));
            heap.push_all(padded, four.len());
        }
        heap
    }

    #[test]
    fn equals_come_out_in_the_order_of_the_cpp_standard_library() {
        let mut heap = heap(&[5, 5, 5, 5, 5, 5]);
        let order: Vec<usize> = std::iter::from_fn(|| heap.pop()).map(|(_, index)| index).collect();
        assert_eq!(order, [0, 2, 5, 4, 1, 3]);
    }

    proptest! {
        #[test]
        fn keys_come_out_sorted_and_none_is_lost(keys in prop::collection::vec(0u32..20, 0..60)) {
            let mut heap = heap(&keys);
            let out: Vec<(u32, usize)> = std::iter::from_fn(|| heap.pop()).collect();
            prop_assert!(out.is_sorted_by(|a, b| a.0 >= b.0));
            let mut indices: Vec<usize> = out.iter().map(|&(_, index)| index).collect();
            indices.sort_unstable();
            prop_assert_eq!(indices, (0..keys.len()).collect::<Vec<_>>());
            prop_assert!(out.iter().all(|&(key, index)| keys[index] == key));
        }

        #[test]
        fn the_second_is_on_top_after_the_first(keys in prop::collection::vec(0u32..4, 0..12)) {
            let mut heap = heap(&keys);
            for _ in 0..=keys.len() {
                let second = heap.second();
                heap.pop();
                prop_assert_eq!(heap.top(), second);
            }
        }
    }
}
