//! The workers that have joined, and what each has delivered that is not durable yet.

use super::leases::{Party, back_off};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most workers at a time.
const MOST: usize = 10_000;
/// A worker that fails so often in a row, whatever it is given, rests for a while.
const TIRED_AFTER: u32 = 3;

/// Why a worker is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// It has not joined, or was forgotten.
    #[error("worker `{0}` has not joined this coordinator: join first")]
    Unknown(String),
    /// It delivered something that cannot be.
    #[error("worker `{worker}` is quarantined: {reason}")]
    Quarantined {
        /// The worker.
        worker: String,
        /// Why.
        reason: String,
    },
    /// Its results would not agree with ours.
    #[error(
        "expected a worker with semantics version {expected} (atoll {ours}), found {found} (atoll {theirs}): their \
         results would not agree"
    )]
    Semantics {
        /// Our semantics.
        expected: u32,
        /// The worker's.
        found: u32,
        /// Our version.
        ours: String,
        /// The worker's.
        theirs: String,
    },
    /// There are too many.
    #[error("expected at most {MOST} workers, found one more")]
    TooMany,
    /// Not a name.
    #[error("expected a worker id and a name of 1 to 100 characters, found {0}")]
    Name(usize),
}

/// All workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workers {
    joined: BTreeMap<String, Joined>,
    /// Principals that may not take part any more, and why.
    banned: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct Joined {
    name: String,
    /// Who answers for it: an id is self-chosen.
    principal: String,
    threads: u32,
    seen: Duration,
    /// How often it has failed in a row, and until when it is given nothing because of that.
    failing: u32,
    resting: Duration,
    quarantined: Option<String>,
    /// Whether it knows that there is nothing left to do.
    knows_the_end: bool,
    /// How many of its deliveries were accepted, and those of them that are not durable yet.
    deliveries: u64,
    undurable: BTreeSet<u64>,
}

impl Workers {
    pub(crate) fn join(
        &mut self,
        worker: &str,
        principal: &str,
        name: &str,
        threads: u32,
        now: Duration,
    ) -> Result<(), WorkerError> {
        if let Some(bad) = [worker, name].iter().map(|text| text.len()).find(|l| !(1..=100).contains(l)) {
            return Err(WorkerError::Name(bad));
        }
        if let Some(reason) = self.banned.get(principal) {
            return Err(WorkerError::Quarantined { worker: worker.to_owned(), reason: reason.clone() });
        }
        if let Some(known) = self.joined.get_mut(worker) {
            known.seen = now;
            return known.check(worker);
        }
        if self.is_full() {
            return Err(WorkerError::TooMany);
        }
        let joined = Joined {
            name: shown(name),
            principal: principal.to_owned(),
            threads,
            seen: now,
            failing: 0,
            resting: Duration::ZERO,
            quarantined: None,
            knows_the_end: false,
            deliveries: 0,
            undurable: BTreeSet::new(),
        };
        self.joined.insert(worker.to_owned(), joined);
        Ok(())
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.joined.len() >= MOST
    }

    /// Notes that a worker is there, if it may take part.
    pub(crate) fn see(&mut self, worker: &str, now: Duration) -> Result<(), WorkerError> {
        let joined = self.joined.get_mut(worker).ok_or_else(|| WorkerError::Unknown(worker.to_owned()))?;
        joined.seen = now;
        joined.check(worker)
    }

    /// Whether a worker may take part.
    pub(crate) fn admits(&self, worker: &str) -> Result<(), WorkerError> {
        self.joined.get(worker).ok_or_else(|| WorkerError::Unknown(worker.to_owned()))?.check(worker)
    }

    /// Rejects a worker from now on, and its principal if that answers for no other worker: otherwise it would only
    /// have to join under another id.
    pub(crate) fn quarantine(&mut self, worker: &str, reason: &str) {
        let Some(joined) = self.joined.get_mut(worker) else { return };
        joined.quarantined = Some(reason.to_owned());
        let principal = joined.principal.clone();
        let is_other = |(id, other): (&String, &Joined)| {
            id != worker && other.principal == principal && other.quarantined.is_none()
        };
        if !self.joined.iter().any(is_other) && self.banned.len() < MOST {
            self.banned.insert(principal, reason.to_owned());
        }
    }

    /// A worker and its principal.
    pub(crate) fn party<'a>(&'a self, worker: &'a str) -> Party<'a> {
        let joined = self.joined.get(worker);
        Party { worker, principal: joined.map_or(worker, |joined| joined.principal.as_str()) }
    }

    /// The workers that may take part and have been heard of since then.
    pub(crate) fn connected(&self, since: Duration) -> impl Iterator<Item = Party<'_>> {
        let is_there = move |joined: &Joined| joined.seen >= since && joined.quarantined.is_none();
        let connected = self.joined.iter().filter(move |(_, joined)| is_there(joined));
        connected.map(|(worker, joined)| Party { worker, principal: &joined.principal })
    }

    /// Notes that something failed on a worker. One that fails whatever it is given rests for a while.
    pub(crate) fn note_failure(&mut self, worker: &str, now: Duration) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.failing = joined.failing.saturating_add(1);
            if let Some(times) = joined.failing.checked_sub(TIRED_AFTER) {
                joined.resting = now + back_off(times + 1);
            }
        }
    }

    /// Notes that a worker has delivered something that was accepted.
    pub(crate) fn note_success(&mut self, worker: &str) {
        if let Some(joined) = self.joined.get_mut(worker) {
            (joined.failing, joined.resting) = (0, Duration::ZERO);
        }
    }

    /// Whether a worker is given nothing for now, because it has failed too often.
    pub(crate) fn is_resting(&self, worker: &str, now: Duration) -> bool {
        self.joined.get(worker).is_some_and(|joined| joined.resting > now)
    }

    pub(crate) fn leave(&mut self, worker: &str) {
        // One that is quarantined stays known, or it would only have to leave and come back.
        self.joined.retain(|id, joined| id != worker || joined.quarantined.is_some());
    }

    /// Forgets workers that have been silent since then; returns their ids and names.
    pub(crate) fn forget_silent(&mut self, since: Duration) -> Vec<(String, String)> {
        let silent = self.joined.extract_if(.., |_, joined| joined.seen < since);
        silent.map(|(worker, joined)| (worker, joined.name)).collect()
    }

    pub(crate) fn name(&self, worker: &str) -> String {
        self.joined.get(worker).map_or_else(|| worker.to_owned(), |joined| joined.name.clone())
    }

    pub(crate) fn tell_the_end(&mut self, worker: &str) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.knows_the_end = true;
        }
    }

    /// Whether all that have been heard of since then know that there is nothing left to do.
    pub(crate) fn all_know_the_end(&self, since: Duration) -> bool {
        let knows =
            |joined: &Joined| joined.knows_the_end || joined.seen < since || joined.quarantined.is_some();
        self.joined.values().all(knows)
    }

    pub(crate) fn count(&self) -> usize {
        self.joined.values().filter(|joined| joined.quarantined.is_none()).count()
    }

    pub(crate) fn threads(&self) -> u64 {
        self.joined.values().map(|joined| u64::from(joined.threads)).sum()
    }

    /// Numbers an accepted delivery of a worker, which is not durable yet.
    pub(crate) fn receive(&mut self, worker: &str) -> u64 {
        let Some(joined) = self.joined.get_mut(worker) else { return 0 };
        joined.deliveries += 1;
        joined.undurable.insert(joined.deliveries);
        joined.deliveries
    }

    /// Notes that a delivery is durable, or not needed any more.
    pub(crate) fn settle(&mut self, worker: &str, delivery: u64) {
        if let Some(joined) = self.joined.get_mut(worker) {
            joined.undurable.remove(&delivery);
        }
    }

    /// The last delivery of a worker up to which everything is durable.
    pub(crate) fn durable(&self, worker: &str) -> u64 {
        let Some(joined) = self.joined.get(worker) else { return 0 };
        joined.undurable.first().map_or(joined.deliveries, |first| first - 1)
    }
}

/// Words of others as they stand in logs and on pages: not long, on one line, and writing no other.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Joined {
    fn check(&self, worker: &str) -> Result<(), WorkerError> {
        let quarantined =
            |reason: &String| WorkerError::Quarantined { worker: worker.to_owned(), reason: reason.clone() };
        self.quarantined.as_ref().map_or(Ok(()), |reason| Err(quarantined(reason)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_stay_on_one_line_and_short() {
        assert_eq!(shown("1.0\n2026 INFO forged\x1b[31m"), "1.0 2026 INFO forged [31m");
        assert_eq!(shown(&"é".repeat(1_500_000)), "é".repeat(100));
    }

    #[test]
    fn deliveries_are_durable_up_to_the_first_that_is_not() {
        let mut workers = Workers::default();
        workers.join("a", "a", "a", 1, Duration::ZERO).unwrap();
        let numbers: Vec<u64> = (0..4).map(|_| workers.receive("a")).collect();
        assert_eq!((numbers, workers.durable("a")), (vec![1, 2, 3, 4], 0));
        workers.settle("a", 2);
        workers.settle("a", 3);
        assert_eq!(workers.durable("a"), 0, "the first one is not");
        workers.settle("a", 1);
        assert_eq!(workers.durable("a"), 3);
        workers.settle("a", 4);
        assert_eq!(workers.durable("a"), 4);
        assert_eq!(workers.durable("b"), 0);
    }

    #[test]
    fn a_quarantined_worker_does_not_return_under_another_id_unless_its_principal_has_other_workers() {
        let mut workers = Workers::default();
        let join = |workers: &mut Workers, worker: &str, principal: &str| {
            workers.join(worker, principal, worker, 1, Duration::ZERO).is_ok()
        };
        for (worker, principal) in [("a", "one"), ("b", "two"), ("c", "two")] {
            assert!(join(&mut workers, worker, principal));
        }
        workers.quarantine("a", "it lies");
        assert!(!join(&mut workers, "a", "one"));
        assert!(!join(&mut workers, "d", "one"), "an id is self-chosen");
        assert!(join(&mut workers, "a2", "three"));
        workers.quarantine("b", "it lies");
        assert!(!join(&mut workers, "b", "two"));
        assert!(join(&mut workers, "c", "two"), "it shares an address with the other one");
        let connected: Vec<&str> = workers.connected(Duration::ZERO).map(|party| party.worker).collect();
        assert_eq!(connected, ["a2", "c"]);
    }

    #[test]
    fn a_worker_that_fails_whatever_it_is_given_rests() {
        let mut workers = Workers::default();
        workers.join("a", "a", "a", 1, Duration::ZERO).unwrap();
        let second = Duration::from_secs(1);
        workers.note_failure("a", Duration::ZERO);
        workers.note_failure("a", Duration::ZERO);
        assert!(!workers.is_resting("a", Duration::ZERO));
        workers.note_failure("a", Duration::ZERO);
        assert!(workers.is_resting("a", Duration::ZERO));
        assert!(!workers.is_resting("a", second));
        workers.note_failure("a", second);
        assert!(workers.is_resting("a", 2 * second), "twice as long");
        workers.note_success("a");
        assert!(!workers.is_resting("a", second));
    }
}
