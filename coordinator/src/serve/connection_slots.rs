//! How many connections there may be, and which of them give way to new ones.
//!
//! A connection is unpermitted until one of its calls was permitted. Where all slots are taken the oldest unpermitted one gives way,
//! so that connections without permission shut no other caller out, however many there are.

use super::log_limit::LogLimit;
use super::principal::network;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How many connections there may be at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Of all peers together.
    pub connections: usize,
    /// Of one address, or one /64 network of IPv6.
    pub of_one_peer: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 12_000, of_one_peer: 4000 }
    }
}

/// The connections of one listener.
#[derive(Clone)]
pub(super) struct ConnectionSlots {
    limits: ConnectionLimits,
    open: Arc<Mutex<OpenConnections>>,
    refused: Arc<LogLimit>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    connections: BTreeMap<u64, OpenConnection>,
    of_peers: BTreeMap<IpAddr, usize>,
    /// By age, of all and of each peer.
    unpermitted: BTreeSet<u64>,
    unpermitted_of_peers: BTreeSet<(IpAddr, u64)>,
}

struct OpenConnection {
    /// The network of the address at the other end.
    peer: IpAddr,
    /// Dropped when the connection has to give way.
    _stay: oneshot::Sender<()>,
}

impl ConnectionSlots {
    pub(super) fn new(limits: ConnectionLimits) -> Self {
        Self { limits, open: Arc::default(), refused: Arc::default() }
    }

    /// A slot for a new connection, and what ends when it has to give way. Nothing if all slots are taken by
    /// connections that had a permitted call.
    pub(super) fn take(&self, address: IpAddr) -> Option<(ConnectionSlot, oneshot::Receiver<()>)> {
        let peer = network(address);
        let mut open = lock(&self.open);
        if open.of_peers.get(&peer).is_some_and(|count| *count >= self.limits.of_one_peer) {
            let Some(oldest) = open.oldest_unpermitted_of(peer) else { return self.refuse(address) };
            open.remove(oldest);
        }
        if open.connections.len() >= self.limits.connections {
            let Some(oldest) = open.unpermitted.first().copied() else { return self.refuse(address) };
            open.remove(oldest);
        }
        let (stay, gives_way) = oneshot::channel();
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, OpenConnection { peer, _stay: stay });
        *open.of_peers.entry(peer).or_default() += 1;
        open.unpermitted.insert(number);
        open.unpermitted_of_peers.insert((peer, number));
        let slot = ConnectionSlot {
            number,
            address,
            peer,
            permitted: AtomicBool::new(false),
            open: self.open.clone(),
        };
        Some((slot, gives_way))
    }

    fn refuse<T>(&self, peer: IpAddr) -> Option<T> {
        if let Some(others) = self.refused.allows() {
            tracing::warn!(%peer, others, "connection rejected: too many are open");
        }
        None
    }
}

impl OpenConnections {
    fn oldest_unpermitted_of(&self, peer: IpAddr) -> Option<u64> {
        self.unpermitted_of_peers.range((peer, 0)..=(peer, u64::MAX)).next().map(|(_, number)| *number)
    }

    fn remove(&mut self, number: u64) {
        let Some(OpenConnection { peer, .. }) = self.connections.remove(&number) else { return };
        self.forget_unpermitted(peer, number);
        if let Some(of_peer) = self.of_peers.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                self.of_peers.remove(&peer);
            }
        }
    }

    fn forget_unpermitted(&mut self, peer: IpAddr, number: u64) {
        self.unpermitted.remove(&number);
        self.unpermitted_of_peers.remove(&(peer, number));
    }
}

fn lock(open: &Mutex<OpenConnections>) -> MutexGuard<'_, OpenConnections> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A slot among the connections, free again once it is dropped.
pub(super) struct ConnectionSlot {
    number: u64,
    address: IpAddr,
    /// Its network.
    peer: IpAddr,
    permitted: AtomicBool,
    open: Arc<Mutex<OpenConnections>>,
}

impl ConnectionSlot {
    /// The address at the other end.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Notes that a call was permitted: from now on the connection gives way to no other.
    pub(super) fn mark_permitted(&self) {
        if !self.permitted.swap(true, Ordering::Relaxed) {
            lock(&self.open).forget_unpermitted(self.peer, self.number);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.open).remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gave_way(stays: &mut oneshot::Receiver<()>) -> bool {
        matches!(stays.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn seats_are_limited_and_given_back() {
        let slots = ConnectionSlots::new(ConnectionLimits { connections: 3, of_one_peer: 2 });
        let [one, other] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let permitted = |peer| slots.take(peer).inspect(|(slot, _)| slot.mark_permitted());
        let first = permitted(one);
        let second = permitted(one);
        assert!(first.is_some() && second.is_some());
        assert!(permitted(one).is_none(), "one peer has two");
        let third = permitted(other);
        assert!(third.is_some());
        assert!(permitted(other).is_none(), "there are three in all");
        drop(first);
        assert!(permitted(one).is_some());
        drop((second, third));
        let of_a_machine = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, n]);
        let (first, second) = (permitted(of_a_machine(1)), permitted(of_a_machine(2)));
        assert!(first.is_some() && second.is_some());
        assert!(permitted(of_a_machine(3)).is_none(), "one network of IPv6 is one peer");
        drop((first, second));
        let open = lock(&slots.open);
        assert!(open.of_peers.is_empty() && open.connections.is_empty() && open.unpermitted.is_empty());
    }

    #[test]
    fn unpermitted_connections_give_way_to_new_connections() {
        let slots = ConnectionSlots::new(ConnectionLimits { connections: 4, of_one_peer: 2 });
        let [one, two, three] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let (worker, mut works) = slots.take(one).unwrap();
        worker.mark_permitted();
        let (_unpermitted, mut unpermitted) = slots.take(one).unwrap();
        let (_next, mut next) = slots.take(one).unwrap();
        assert!(gave_way(&mut unpermitted), "of two from one address it was the unpermitted one");
        let [(_a, mut a), (_b, _c)] = [slots.take(two).unwrap(), slots.take(two).unwrap()];
        assert!(!gave_way(&mut next) && !gave_way(&mut a));
        let (_late, mut late) = slots.take(three).unwrap();
        assert!(gave_way(&mut next), "of all it was the oldest unpermitted one");
        assert!(!gave_way(&mut a) && !gave_way(&mut works) && !gave_way(&mut late));
        assert_eq!(lock(&slots.open).connections.len(), 4);
    }
}
