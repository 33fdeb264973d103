//! What a worker keeps at hand: the last state of each island that it has evolved.

use bytes::Bytes;
use evolution::digest::Digest;
use std::collections::BTreeMap;

/// An island of a run.
type Place = (String, u32);

/// The last states of islands. Those that were put there first make room for others.
#[derive(Debug)]
pub(crate) struct Cache {
    states: BTreeMap<Place, State>,
    /// The islands in the order in which their states came.
    order: BTreeMap<u64, Place>,
    came: u64,
    used: usize,
    limit: usize,
}

#[derive(Debug)]
struct State {
    outcome: Digest,
    bytes: Bytes,
    came: u64,
}

impl Cache {
    /// A cache of at most this number of bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { states: BTreeMap::new(), order: BTreeMap::new(), came: 0, used: 0, limit }
    }

    /// The state of an island, if it is the one that this outcome left behind.
    pub(crate) fn get(&self, run: &str, island: u32, outcome: &Digest) -> Option<Bytes> {
        let state = self.states.get(&(run.to_owned(), island))?;
        (state.outcome == *outcome).then(|| state.bytes.clone())
    }

    /// Keeps a state instead of what the island had before, which no epoch will begin with again.
    pub(crate) fn put(&mut self, run: &str, island: u32, outcome: Digest, bytes: &Bytes) {
        let place = (run.to_owned(), island);
        self.remove(&place);
        if bytes.len() > self.limit {
            return;
        }
        self.came += 1;
        self.used += bytes.len();
        self.order.insert(self.came, place.clone());
        self.states.insert(place, State { outcome, bytes: bytes.clone(), came: self.came });
        while self.used > self.limit {
            let (_, oldest) = self.order.first_key_value().expect("what is used is in order");
            self.remove(&oldest.clone());
        }
    }

    fn remove(&mut self, place: &Place) {
        if let Some(state) = self.states.remove(place) {
            self.order.remove(&state.came);
            self.used -= state.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps four bytes for an island, and answers by what digest.
    fn put(cache: &mut Cache, island: u32, fill: u8) -> Digest {
        let bytes = Bytes::from(vec![fill; 4]);
        let outcome = Digest::of(&bytes);
        cache.put("run", island, outcome, &bytes);
        outcome
    }

    fn has(cache: &Cache, island: u32, outcome: &Digest) -> bool {
        cache.get("run", island, outcome).is_some()
    }

    #[test]
    fn an_island_has_one_state() {
        let mut cache = Cache::new(10);
        let other = put(&mut cache, 1, 0);
        let outcomes: Vec<Digest> = (1..9).map(|fill| put(&mut cache, 0, fill)).collect();
        let kept: Vec<bool> = outcomes.iter().map(|outcome| has(&cache, 0, outcome)).collect();
        assert_eq!(kept, [false, false, false, false, false, false, false, true]);
        assert!(has(&cache, 1, &other), "nothing had to make room");
        assert!(!has(&cache, 0, &other), "it is another island's");
        assert!(cache.get("another run", 1, &other).is_none());
    }

    #[test]
    fn the_oldest_make_room() {
        let mut cache = Cache::new(10);
        let outcomes: Vec<Digest> = (0..4).map(|island| put(&mut cache, u32::from(island), island)).collect();
        put(&mut cache, 2, 2);
        let kept: Vec<bool> = (0..4).map(|island| has(&cache, island, &outcomes[island as usize])).collect();
        assert_eq!(kept, [false, false, true, true]);
        let newer = put(&mut cache, 4, 4);
        assert!(!has(&cache, 3, &outcomes[3]), "that of island 2 was renewed after it");
        assert!(has(&cache, 2, &outcomes[2]));
        let large = Bytes::from(vec![9; 11]);
        cache.put("run", 5, Digest::of(&large), &large);
        assert!(!has(&cache, 5, &Digest::of(&large)), "it would push everything out");
        assert!(has(&cache, 4, &newer));
    }
}
