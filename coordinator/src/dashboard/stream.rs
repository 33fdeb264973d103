//! Server-sent events: pages learn that something has changed, and read themselves again.
//!
//! Streams have a budget of their own, of all callers and of each, so that they shut out neither probes nor each other. A
//! stream ends before its connection does; browsers open the next one by themselves. Nothing waits for a stream.

use super::{Dashboard, HttpError};
use crate::serve::change_signal::Listener;
use crate::serve::principal::network;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many streams there may be, of all callers and of one.
const MOST: usize = 128;
pub(crate) const MOST_OF_ONE: usize = 100;
/// How long a stream lasts: less than a connection for HTTP.
const LONGEST: Duration = Duration::from_secs(50);
/// The shortest time between two events.
const BETWEEN: Duration = Duration::from_secs(1);
/// How long to wait for a change before pages are read again anyway: time alone makes a worker silent and a lease expire.
/// Without workers less can happen unseen.
const BEAT: Duration = Duration::from_millis(500);
const SLOW_BEAT: Duration = Duration::from_secs(9);
/// How often a store is looked at.
const LOOK: Duration = Duration::from_secs(4);

/// Pages of one address are notified one after the other, so that all of them together request no burst of pages.
const APART: Duration = Duration::from_millis(8);

/// The event that makes a page reload.
const CHANGED: &str = "event: changed\ndata: {}\n\n";

/// The streams that are open. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    /// How many each address has.
    of: BTreeMap<IpAddr, usize>,
    /// How many were ever opened.
    ever: u32,
}

/// A place among the streams, until it is dropped.
struct Place {
    streams: Streams,
    peer: IpAddr,
    /// For how long it hears of a change after the first stream of its address.
    behind: Duration,
}

impl Streams {
    fn take(&self, peer: IpAddr) -> Option<Place> {
        let peer = network(peer);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, own) = (open.of.values().sum::<usize>(), open.of.get(&peer).copied().unwrap_or(0));
        if all >= MOST || own >= MOST_OF_ONE {
            return None;
        }
        open.of.insert(peer, own + 1);
        open.ever = open.ever.wrapping_add(1);
        let behind = APART * (open.ever % (own as u32 + 1));
        Some(Place { streams: self.clone(), peer, behind })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.of.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                open.of.remove(&self.peer);
            }
        }
    }
}

/// What a stream waits for.
struct Watch {
    dashboard: Dashboard,
    changes: Option<Listener>,
    ends: Instant,
    next: Instant,
    place: Place,
}

impl Watch {
    /// Waits until something has changed, or for a beat; nothing once the stream ends.
    async fn next(&mut self) -> Option<&'static str> {
        tokio::time::sleep_until(self.next).await;
        let (is_closing, has_workers) = match self.dashboard.cluster() {
            Ok(Some(cluster)) => (cluster.is_closing(), cluster.look(|state| state.workers.count() > 0)),
            Ok(None) => (false, false),
            Err(_) => (true, false),
        };
        if is_closing || Instant::now() >= self.ends {
            return None;
        }
        match &mut self.changes {
            Some(changes) => {
                let beat = if has_workers { BEAT } else { SLOW_BEAT };
                let _ = tokio::time::timeout(beat, changes.changed()).await;
            }
            None => tokio::time::sleep(LOOK).await,
        }
        tokio::time::sleep(self.place.behind).await;
        self.next = Instant::now() + BETWEEN;
        Some(CHANGED)
    }
}

/// A stream for a caller, if there is a place for it.
pub(super) fn open(dashboard: &Dashboard, streams: &Streams, peer: IpAddr) -> Result<Response, HttpError> {
    let changes = dashboard.cluster()?.map(crate::cluster::Cluster::changes);
    let full = || {
        HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: this one is not refreshed")
    };
    let place = streams.take(peer).ok_or_else(full)?;
    let now = Instant::now();
    let watch = Watch { dashboard: dashboard.clone(), changes, ends: now + LONGEST, next: now, place };
    let first = futures::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"retry: 2000\n\n"))]);
    let events = unfold(watch, |mut watch| async move {
        let told = watch.next().await?;
        Some((Ok(Bytes::from_static(told.as_bytes())), watch))
    });
    let body = Body::from_stream(futures::StreamExt::chain(first, events));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_a_budget_of_all_callers_and_of_each() {
        let streams = Streams::default();
        let [one, other, third] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut open: Vec<Place> = (0..MOST_OF_ONE).map(|_| streams.take(one).unwrap()).collect();
        assert!(streams.take(one).is_none());
        open.extend((MOST_OF_ONE..MOST).map(|_| streams.take(other).unwrap()));
        assert!(streams.take(other).is_none() && streams.take(third).is_none());
        open.pop();
        assert!(streams.take(third).is_some());
        open.clear();
        assert!(streams.0.lock().unwrap().of.is_empty(), "nothing is left behind");
    }

    #[test]
    fn pages_of_one_address_are_told_one_after_the_other() {
        let (streams, peer) = (Streams::default(), IpAddr::from([10, 0, 0, 1]));
        assert_eq!(streams.take(peer).unwrap().behind, Duration::ZERO, "one page waits for none");
        let mut open: Vec<Place> = (0..MOST_OF_ONE).map(|_| streams.take(peer).unwrap()).collect();
        // All of them are opened again, as streams are all the time.
        for _ in 0..MOST_OF_ONE {
            open.remove(0);
            open.push(streams.take(peer).unwrap());
        }
        let mut behind: Vec<Duration> = open.iter().map(|place| place.behind).collect();
        behind.sort();
        behind.dedup();
        assert_eq!(behind.len(), MOST_OF_ONE);
        assert!(behind[MOST_OF_ONE - 1] < Duration::from_secs(1));
    }
}
