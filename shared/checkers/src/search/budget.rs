//! What a search may use up.

use super::Limits;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

#[derive(Clone, Copy)]
pub(super) struct Budget {
    nodes: u64,
    deadline: Option<Instant>,
    /// From here on the next depth would hardly be done in time.
    soon: Option<Instant>,
    /// Whether the search may be stopped from outside.
    watched: bool,
}

impl Budget {
    pub(super) const UNLIMITED: Self = Self { nodes: u64::MAX, deadline: None, soon: None, watched: false };
    const NODES_BETWEEN_LOOKS_AT_THE_CLOCK: u64 = 1024;

    #[allow(clippy::disallowed_methods, reason = "the caller asked for a time limit")]
    pub(super) fn new(limits: &Limits, watched: bool) -> Self {
        Self {
            nodes: limits.nodes.unwrap_or(u64::MAX),
            deadline: limits.time.and_then(|time| Instant::now().checked_add(time)),
            soon: limits.time.and_then(|time| Instant::now().checked_add(time.mul_f64(0.6))),
            watched,
        }
    }

    /// Whether another depth would hardly be finished: a depth takes about as long as all before it.
    #[allow(clippy::disallowed_methods, reason = "the caller asked for a time limit")]
    pub(super) fn is_nearly_spent(&self, nodes: u64) -> bool {
        nodes >= self.nodes || self.soon.is_some_and(|soon| Instant::now() >= soon)
    }

    #[inline]
    #[allow(clippy::disallowed_methods, reason = "the caller asked for a time limit")]
    pub(super) fn is_spent(&self, nodes: u64, stop: Option<&AtomicBool>) -> bool {
        let look = || nodes.is_multiple_of(Self::NODES_BETWEEN_LOOKS_AT_THE_CLOCK);
        nodes >= self.nodes
            || self.deadline.is_some_and(|deadline| look() && Instant::now() >= deadline)
            || self.watched && look() && stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}
