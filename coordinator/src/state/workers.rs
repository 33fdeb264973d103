//! The workers that have joined, and what each has delivered that is not durable yet.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most workers at a time.
const MOST: usize = 10_000;

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
pub(crate) struct Workers(BTreeMap<String, Joined>);

#[derive(Clone, Debug)]
struct Joined {
    name: String,
    threads: u32,
    seen: Duration,
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
        name: &str,
        threads: u32,
        now: Duration,
    ) -> Result<(), WorkerError> {
        if let Some(bad) = [worker, name].iter().map(|text| text.len()).find(|l| !(1..=100).contains(l)) {
            return Err(WorkerError::Name(bad));
        }
        if let Some(known) = self.0.get_mut(worker) {
            known.seen = now;
            return known.check(worker);
        }
        if self.is_full() {
            return Err(WorkerError::TooMany);
        }
        // A name stands in logs and on pages: it has one line, and writes no other.
        let name = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let joined = Joined {
            name,
            threads,
            seen: now,
            quarantined: None,
            knows_the_end: false,
            deliveries: 0,
            undurable: BTreeSet::new(),
        };
        self.0.insert(worker.to_owned(), joined);
        Ok(())
    }

    /// Whether there is no room for another.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Notes that a worker is there, if it may take part.
    pub(crate) fn see(&mut self, worker: &str, now: Duration) -> Result<(), WorkerError> {
        let joined = self.0.get_mut(worker).ok_or_else(|| WorkerError::Unknown(worker.to_owned()))?;
        joined.seen = now;
        joined.check(worker)
    }

    /// Rejects a worker from now on.
    pub(crate) fn quarantine(&mut self, worker: &str, reason: &str) {
        if let Some(joined) = self.0.get_mut(worker) {
            joined.quarantined = Some(reason.to_owned());
        }
    }

    pub(crate) fn leave(&mut self, worker: &str) {
        // One that is quarantined stays known, or it would only have to leave and come back.
        self.0.retain(|id, joined| id != worker || joined.quarantined.is_some());
    }

    /// Forgets workers that have been silent since then; returns their names.
    pub(crate) fn forget_silent(&mut self, since: Duration) -> Vec<String> {
        self.0.extract_if(.., |_, joined| joined.seen < since).map(|(_, joined)| joined.name).collect()
    }

    pub(crate) fn name(&self, worker: &str) -> String {
        self.0.get(worker).map_or_else(|| worker.to_owned(), |joined| joined.name.clone())
    }

    pub(crate) fn tell_the_end(&mut self, worker: &str) {
        if let Some(joined) = self.0.get_mut(worker) {
            joined.knows_the_end = true;
        }
    }

    /// Whether all that have been heard of since then know that there is nothing left to do.
    pub(crate) fn all_know_the_end(&self, since: Duration) -> bool {
        let knows =
            |joined: &Joined| joined.knows_the_end || joined.seen < since || joined.quarantined.is_some();
        self.0.values().all(knows)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().filter(|joined| joined.quarantined.is_none()).count()
    }

    pub(crate) fn threads(&self) -> u64 {
        self.0.values().map(|joined| u64::from(joined.threads)).sum()
    }

    /// Numbers an accepted delivery of a worker, which is not durable yet.
    pub(crate) fn receive(&mut self, worker: &str) -> u64 {
        let Some(joined) = self.0.get_mut(worker) else { return 0 };
        joined.deliveries += 1;
        joined.undurable.insert(joined.deliveries);
        joined.deliveries
    }

    /// Notes that a delivery is durable, or not needed any more.
    pub(crate) fn settle(&mut self, worker: &str, delivery: u64) {
        if let Some(joined) = self.0.get_mut(worker) {
            joined.undurable.remove(&delivery);
        }
    }

    /// The last delivery of a worker up to which everything is durable.
    pub(crate) fn durable(&self, worker: &str) -> u64 {
        let Some(joined) = self.0.get(worker) else { return 0 };
        joined.undurable.first().map_or(joined.deliveries, |first| first - 1)
    }
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
    fn deliveries_are_durable_up_to_the_first_that_is_not() {
        let mut workers = Workers::default();
        workers.join("a", "a", 1, Duration::ZERO).unwrap();
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
}
