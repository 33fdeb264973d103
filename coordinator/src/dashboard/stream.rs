//! Server-sent events: pages learn that something has changed, and read themselves again.
//!
//! Streams have a budget of their own, of all callers and of each, so that they shut out neither probes nor each other. A
//! stream ends before its connection does; browsers open the next one by themselves. Nothing waits for a stream.

use super::{Dashboard, Problem};
use crate::serve::change_signal::Listener;
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

/// What tells a page to read itself again.
const CHANGED: &str = "event: changed\ndata: {}\n\n";

/// The streams that are open. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// A place among the streams, until it is dropped.
struct Place {
    streams: Streams,
    peer: IpAddr,
}

impl Streams {
    fn take(&self, peer: IpAddr) -> Option<Place> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.entry(peer).or_default();
        if all >= MOST || *own >= MOST_OF_ONE {
            if *own == 0 {
                open.remove(&peer);
            }
            return None;
        }
        *own += 1;
        Some(Place { streams: self.clone(), peer })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.peer);
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
    _place: Place,
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
        self.next = Instant::now() + BETWEEN;
        Some(CHANGED)
    }
}

/// A stream for a caller, if there is a place for it.
pub(super) fn open(dashboard: &Dashboard, streams: &Streams, peer: IpAddr) -> Result<Response, Problem> {
    let changes = dashboard.cluster()?.map(crate::cluster::Cluster::changes);
    let full = || {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: this one is not refreshed")
    };
    let place = streams.take(peer).ok_or_else(full)?;
    let now = Instant::now();
    let watch =
        Watch { dashboard: dashboard.clone(), changes, ends: now + LONGEST, next: now, _place: place };
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
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is left behind");
    }
}
