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
    fn key(self) -> u32;
}

impl<T: Keyed> Heap<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    #[inline]
    pub(crate) fn top(&self) -> Option<T> {
        self.items.first().copied()
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
        self.rise(self.items.len() - 1, item);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let Some(&top) = self.items.first() else { return Some(last) };
        let hole = self.sink_hole();
        self.rise(hole, last);
        Some(top)
    }

    #[inline]
    fn rise(&mut self, mut hole: usize, item: T) {
        while hole > 0 {
            let parent = (hole - 1) / 2;
            let above = self.items[parent];
            if above.key() >= item.key() {
                break;
            }
            self.items[hole] = above;
            hole = parent;
        }
        self.items[hole] = item;
    }

    #[inline]
    fn sink_hole(&mut self) -> usize {
        let (mut hole, mut right) = (0, 2);
        while right < self.items.len() {
            let higher = right - usize::from(self.items[right].key() < self.items[right - 1].key());
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
        fn key(self) -> u32 {
            self.0
        }
    }

    #[test]
    fn equals_come_out_in_the_order_of_the_cpp_standard_library() {
        let mut heap = Heap::new();
        [5, 5, 5, 5, 5, 5].into_iter().enumerate().for_each(|(index, key)| heap.push((key, index)));
        let order: Vec<usize> = std::iter::from_fn(|| heap.pop()).map(|(_, index)| index).collect();
        assert_eq!(order, [0, 2, 5, 4, 1, 3]);
    }

    proptest! {
        #[test]
        fn keys_come_out_sorted_and_none_is_lost(keys in prop::collection::vec(0u32..20, 0..60)) {
            let mut heap = Heap::new();
            keys.iter().enumerate().for_each(|(index, &key)| heap.push((key, index)));
            let out: Vec<(u32, usize)> = std::iter::from_fn(|| heap.pop()).collect();
            prop_assert!(out.is_sorted_by(|a, b| a.0 >= b.0));
            let mut indices: Vec<usize> = out.iter().map(|&(_, index)| index).collect();
            indices.sort_unstable();
            prop_assert_eq!(indices, (0..keys.len()).collect::<Vec<_>>());
            prop_assert!(out.iter().all(|&(key, index)| keys[index] == key));
        }
    }
}
