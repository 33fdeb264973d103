//! Memory for large bodies that are on their way: of each address and of all. Smaller ones count as what is in flight.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of large bodies from all addresses.
pub(crate) const OF_ALL: u64 = 384 << 20;
/// Bytes of large bodies from one address.
pub(crate) const OF_ONE_PEER: u64 = OF_ALL / 4;

/// All large bodies that have not arrived, or are still looked at.
#[derive(Debug)]
pub(crate) struct LargeBodies {
    of_one_peer: u64,
    of_all: u64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    of_peers: BTreeMap<Option<IpAddr>, u64>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self { of_one_peer: OF_ONE_PEER, of_all: OF_ALL, counts: Mutex::default() }
    }
}

/// One body, and the memory that it has taken until it is dropped.
#[derive(Debug)]
pub(crate) struct LargeBody {
    bodies: Arc<LargeBodies>,
    peer: Option<IpAddr>,
    taken: u64,
}

impl LargeBody {
    pub(crate) fn new(bodies: &Arc<LargeBodies>, peer: Option<IpAddr>) -> Self {
        Self { bodies: bodies.clone(), peer, taken: 0 }
    }

    /// Takes memory for more bytes, if there is some left. A body that is larger than all may be has to be the only one.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let LargeBodies { of_one_peer, of_all, counts } = &*self.bodies;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = counts.of_peers.get(&self.peer).copied().unwrap_or(0);
        let is_alone = counts.all == self.taken;
        if !is_alone && (counts.all + bytes > *of_all || of_peer + bytes > *of_one_peer) {
            return false;
        }
        counts.all += bytes;
        counts.of_peers.insert(self.peer, of_peer + bytes);
        self.taken += bytes;
        true
    }

    /// Whether it has taken more than others may.
    pub(crate) fn is_oversized(&self) -> bool {
        self.taken > self.bodies.of_one_peer
    }
}

impl Drop for LargeBody {
    fn drop(&mut self) {
        let mut counts = self.bodies.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= self.taken;
        if let Some(of_peer) = counts.of_peers.get_mut(&self.peer) {
            *of_peer -= self.taken;
            if *of_peer == 0 {
                counts.of_peers.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_room_for_others_and_only_one_body_may_be_larger_than_all() {
        let bodies = Arc::new(LargeBodies { of_one_peer: 25, of_all: 100, counts: Mutex::default() });
        let body = |n: u8| LargeBody::new(&bodies, Some(IpAddr::from([10, 0, 0, n])));
        let (mut first, mut second, mut other) = (body(1), body(1), body(2));
        assert!(first.take(20) && second.take(5));
        assert!(!second.take(1) && !first.take(1), "of one address 25");
        assert!(other.take(25) && !other.take(1));
        drop((first, second, other));
        let mut alone = body(1);
        assert!(alone.take(90) && alone.take(400) && alone.is_oversized(), "it is the only one");
        assert!(!body(2).take(1), "there is no room beside it");
        drop(alone);
        let (mut large, mut other) = (body(1), body(2));
        assert!(other.take(1));
        assert!(large.take(25) && !large.take(1), "another one is on its way");
        drop(other);
        assert!(large.take(200));
        drop(large);
        let counts = bodies.counts.lock().unwrap();
        assert!(counts.all == 0 && counts.of_peers.is_empty(), "{counts:?}");
    }
}
