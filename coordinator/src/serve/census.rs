//! Who is connected: how many connections there may be, and which of them give way to new ones.
//!
//! A connection is a stranger until one of its calls was permitted. Where all places are taken the oldest stranger gives way,
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
pub struct Limits {
    /// Of all peers together.
    pub connections: usize,
    /// Of one address, or one /64 network of IPv6.
    pub of_one_peer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 12_000, of_one_peer: 4000 }
    }
}

/// The connections of one listener.
#[derive(Clone)]
pub(super) struct Census {
    limits: Limits,
    open: Arc<Mutex<Open>>,
    refused: Arc<LogLimit>,
}

#[derive(Default)]
struct Open {
    next: u64,
    places: BTreeMap<u64, Place>,
    of_peers: BTreeMap<IpAddr, usize>,
    /// By age, of all and of each peer.
    strangers: BTreeSet<u64>,
    strangers_of_peers: BTreeSet<(IpAddr, u64)>,
}

struct Place {
    /// The network of the address at the other end.
    peer: IpAddr,
    /// Dropped when the connection has to give way.
    _stay: oneshot::Sender<()>,
}

impl Census {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, open: Arc::default(), refused: Arc::default() }
    }

    /// A seat for a new connection, and what ends when it has to give way. Nothing if all places are taken by
    /// connections that had a permitted call.
    pub(super) fn seat(&self, address: IpAddr) -> Option<(Seat, oneshot::Receiver<()>)> {
        let peer = network(address);
        let mut open = lock(&self.open);
        if open.of_peers.get(&peer).is_some_and(|count| *count >= self.limits.of_one_peer) {
            let Some(oldest) = open.oldest_stranger_of(peer) else { return self.refuse(address) };
            open.remove(oldest);
        }
        if open.places.len() >= self.limits.connections {
            let Some(oldest) = open.strangers.first().copied() else { return self.refuse(address) };
            open.remove(oldest);
        }
        let (stay, gives_way) = oneshot::channel();
        let number = open.next;
        open.next += 1;
        open.places.insert(number, Place { peer, _stay: stay });
        *open.of_peers.entry(peer).or_default() += 1;
        open.strangers.insert(number);
        open.strangers_of_peers.insert((peer, number));
        let seat = Seat { number, address, peer, known: AtomicBool::new(false), open: self.open.clone() };
        Some((seat, gives_way))
    }

    fn refuse<T>(&self, peer: IpAddr) -> Option<T> {
        if let Some(others) = self.refused.allows() {
            tracing::warn!(%peer, others, "connection rejected: too many are open");
        }
        None
    }
}

impl Open {
    fn oldest_stranger_of(&self, peer: IpAddr) -> Option<u64> {
        self.strangers_of_peers.range((peer, 0)..=(peer, u64::MAX)).next().map(|(_, number)| *number)
    }

    fn remove(&mut self, number: u64) {
        let Some(Place { peer, .. }) = self.places.remove(&number) else { return };
        self.is_no_stranger(peer, number);
        if let Some(of_peer) = self.of_peers.get_mut(&peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                self.of_peers.remove(&peer);
            }
        }
    }

    fn is_no_stranger(&mut self, peer: IpAddr, number: u64) {
        self.strangers.remove(&number);
        self.strangers_of_peers.remove(&(peer, number));
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place among the connections, free again once it is dropped.
pub(super) struct Seat {
    number: u64,
    address: IpAddr,
    /// Its network.
    peer: IpAddr,
    known: AtomicBool,
    open: Arc<Mutex<Open>>,
}

impl Seat {
    /// The address at the other end.
    pub(super) fn address(&self) -> IpAddr {
        self.address
    }

    /// Notes that a call was permitted: from now on the connection gives way to no other.
    pub(super) fn becomes_known(&self) {
        if !self.known.swap(true, Ordering::Relaxed) {
            lock(&self.open).is_no_stranger(self.peer, self.number);
        }
    }
}

impl Drop for Seat {
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
        let census = Census::new(Limits { connections: 3, of_one_peer: 2 });
        let [one, other] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let known = |peer| census.seat(peer).inspect(|(seat, _)| seat.becomes_known());
        let first = known(one);
        let second = known(one);
        assert!(first.is_some() && second.is_some());
        assert!(known(one).is_none(), "one peer has two");
        let third = known(other);
        assert!(third.is_some());
        assert!(known(other).is_none(), "there are three in all");
        drop(first);
        assert!(known(one).is_some());
        drop((second, third));
        let of_a_machine = |n: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, n]);
        let (first, second) = (known(of_a_machine(1)), known(of_a_machine(2)));
        assert!(first.is_some() && second.is_some());
        assert!(known(of_a_machine(3)).is_none(), "one network of IPv6 is one peer");
        drop((first, second));
        let open = lock(&census.open);
        assert!(open.of_peers.is_empty() && open.places.is_empty() && open.strangers.is_empty());
    }

    #[test]
    fn strangers_give_way_to_new_connections() {
        let census = Census::new(Limits { connections: 4, of_one_peer: 2 });
        let [one, two, three] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let (worker, mut works) = census.seat(one).unwrap();
        worker.becomes_known();
        let (_stranger, mut strange) = census.seat(one).unwrap();
        let (_next, mut next) = census.seat(one).unwrap();
        assert!(gave_way(&mut strange), "of two from one address it was the stranger");
        let [(_a, mut a), (_b, _c)] = [census.seat(two).unwrap(), census.seat(two).unwrap()];
        assert!(!gave_way(&mut next) && !gave_way(&mut a));
        let (_late, mut late) = census.seat(three).unwrap();
        assert!(gave_way(&mut next), "of all it was the oldest stranger");
        assert!(!gave_way(&mut a) && !gave_way(&mut works) && !gave_way(&mut late));
        assert_eq!(lock(&census.open).places.len(), 4);
    }
}
