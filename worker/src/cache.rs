//! What a worker keeps at hand: the last states of islands, by their digests.

use bytes::Bytes;
use evolution::digest::Digest;
use std::collections::{BTreeMap, VecDeque};

/// Bodies by digest, the oldest of which make room for new ones.
#[derive(Debug)]
pub(crate) struct Cache {
    bodies: BTreeMap<Digest, Bytes>,
    order: VecDeque<Digest>,
    used: usize,
    limit: usize,
}

impl Cache {
    /// A cache of at most so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bodies: BTreeMap::new(), order: VecDeque::new(), used: 0, limit }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<Bytes> {
        self.bodies.get(digest).cloned()
    }

    pub(crate) fn put(&mut self, digest: Digest, body: Bytes) {
        let length = body.len();
        if length > self.limit || self.bodies.insert(digest, body).is_some() {
            return;
        }
        self.used += length;
        self.order.push_back(digest);
        while self.used > self.limit {
            let oldest = self.order.pop_front().expect("what is used is in order");
            self.used -= self.bodies.remove(&oldest).map_or(0, |body| body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let mut cache = Cache::new(10);
        let bodies: Vec<Bytes> = (0..4u8).map(|fill| Bytes::from(vec![fill; 4])).collect();
        let digests: Vec<Digest> = bodies.iter().map(|body| Digest::of(body)).collect();
        for (digest, body) in digests.iter().zip(&bodies) {
            cache.put(*digest, body.clone());
            cache.put(*digest, body.clone());
        }
        let kept: Vec<bool> = digests.iter().map(|digest| cache.get(digest).is_some()).collect();
        assert_eq!(kept, [false, false, true, true]);
        let large = Bytes::from(vec![9; 11]);
        cache.put(Digest::of(&large), large.clone());
        assert!(cache.get(&Digest::of(&large)).is_none(), "it would push everything out");
        assert!(cache.get(&digests[3]).is_some());
    }
}
