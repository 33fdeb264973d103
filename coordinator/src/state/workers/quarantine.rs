//! Workers that delivered something wrong: they and their principals are rejected or watched.

use super::{Joined, MOST, Workers};
use crate::state::leases::back_off;
use std::time::Duration;

/// The number of deliveries of a principal that are all audited after a worker of it was quarantined: doubled each time.
pub(super) const WATCHED: u64 = 500;
/// The longest of these times.
const LONGEST_WATCHED: u64 = 1 << 20;
/// After so many quarantines of a principal, others of it wait before they may join, longer each time: who shares a token and
/// an address with honest workers would be back at once under another id.
const PATIENT: u32 = 3;

/// A principal of which workers were quarantined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    /// How many deliveries are audited the next time, and now.
    next: u64,
    left: u64,
    /// How often that was.
    quarantines: u32,
    /// Until when no other worker of it joins.
    pub(super) closed: Duration,
}

impl Workers {
    /// Rejects a worker from now on, and its principal if that answers for no other worker: otherwise it would only
    /// have to join under another id. Others of the principal may be honest: they stay, and are watched.
    pub(crate) fn quarantine(&mut self, worker: &str, principal: &str, reason: &str, now: Duration) {
        if let Some(joined) = self.joined.get_mut(worker) {
            if joined.quarantined.is_some() {
                return;
            }
            joined.quarantined = Some(reason.to_owned());
        }
        if self.watched.len() < MOST || self.watched.contains_key(principal) {
            let none = Watched { next: WATCHED, left: 0, quarantines: 0, closed: Duration::ZERO };
            let watched = self.watched.entry(principal.to_owned()).or_insert(none);
            watched.left = watched.left.saturating_add(watched.next);
            watched.next = (watched.next * 2).min(LONGEST_WATCHED);
            watched.quarantines = watched.quarantines.saturating_add(1);
            if let Some(times) = watched.quarantines.checked_sub(PATIENT) {
                watched.closed = now + 10 * back_off(times + 1);
                // Ids may have joined for nothing else before that.
                let has_worked = |joined: &Joined| joined.deliveries > 0 || joined.quarantined.is_some();
                self.joined.retain(|_, joined| joined.principal != principal || has_worked(joined));
            }
        }
        let is_other = |other: &Joined| other.principal == principal && other.quarantined.is_none();
        if !self.joined.values().any(is_other) && self.banned.len() < MOST {
            self.banned.insert(principal.to_owned(), reason.to_owned());
        }
    }

    /// Whether a delivery of a principal is audited whatever the share is, because one of its workers was found to lie.
    pub(crate) fn is_watched(&mut self, principal: &str) -> bool {
        match self.watched.get_mut(principal) {
            Some(Watched { left, .. }) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}
