//! The workers that have joined.

use std::collections::BTreeMap;
use std::time::Duration;

/// The most workers at a time.
const MOST: usize = 10_000;

/// Why a worker is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// It has not joined, or was forgotten.
    #[error("worker `{0}` has not joined this coordinator: join first")]
    Unknown(String),
    /// It delivered something that cannot be.
    #[error("worker `{worker}` was put aside: {reason}")]
    Aside {
        /// The worker.
        worker: String,
        /// Why.
        reason: String,
    },
    /// It means something else by an experiment.
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
    /// A name that is none.
    #[error("expected a worker id and a name of 1 to 100 characters, found {0}")]
    Name(usize),
}

/// All workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Members(BTreeMap<String, Member>);

#[derive(Clone, Debug)]
struct Member {
    name: String,
    threads: u32,
    seen: Duration,
    aside: Option<String>,
    /// Whether it knows that there is nothing left to do.
    knows_the_end: bool,
}

impl Members {
    pub(crate) fn join(
        &mut self,
        worker: &str,
        name: &str,
        threads: u32,
        now: Duration,
    ) -> Result<(), MemberError> {
        if let Some(bad) = [worker, name].iter().map(|text| text.len()).find(|l| !(1..=100).contains(l)) {
            return Err(MemberError::Name(bad));
        }
        if let Some(known) = self.0.get_mut(worker) {
            known.seen = now;
            return known.check(worker);
        }
        if self.is_full() {
            return Err(MemberError::TooMany);
        }
        // A name stands in logs and on pages: it has one line, and writes no other.
        let name = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let member = Member { name, threads, seen: now, aside: None, knows_the_end: false };
        self.0.insert(worker.to_owned(), member);
        Ok(())
    }

    /// Whether there is room for nobody else.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Notes that a worker is there, if it may take part.
    pub(crate) fn see(&mut self, worker: &str, now: Duration) -> Result<(), MemberError> {
        let member = self.0.get_mut(worker).ok_or_else(|| MemberError::Unknown(worker.to_owned()))?;
        member.seen = now;
        member.check(worker)
    }

    /// Refuses a worker from now on.
    pub(crate) fn put_aside(&mut self, worker: &str, reason: &str) {
        if let Some(member) = self.0.get_mut(worker) {
            member.aside = Some(reason.to_owned());
        }
    }

    pub(crate) fn leave(&mut self, worker: &str) {
        // A quarantined worker stays known: otherwise it could leave and join again.
        self.0.retain(|id, member| id != worker || member.aside.is_some());
    }

    /// Forgets workers that have been silent since then; answers their names.
    pub(crate) fn forget_silent(&mut self, since: Duration) -> Vec<String> {
        self.0.extract_if(.., |_, member| member.seen < since).map(|(_, member)| member.name).collect()
    }

    pub(crate) fn name(&self, worker: &str) -> String {
        self.0.get(worker).map_or_else(|| worker.to_owned(), |member| member.name.clone())
    }

    pub(crate) fn tell_the_end(&mut self, worker: &str) {
        if let Some(member) = self.0.get_mut(worker) {
            member.knows_the_end = true;
        }
    }

    /// Whether all that have been heard of since then know that there is nothing left to do.
    pub(crate) fn all_know_the_end(&self, since: Duration) -> bool {
        self.0.values().all(|member| member.knows_the_end || member.seen < since || member.aside.is_some())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().filter(|member| member.aside.is_none()).count()
    }

    pub(crate) fn threads(&self) -> u64 {
        self.0.values().map(|member| u64::from(member.threads)).sum()
    }
}

impl Member {
    fn check(&self, worker: &str) -> Result<(), MemberError> {
        let aside =
            |reason: &String| MemberError::Aside { worker: worker.to_owned(), reason: reason.clone() };
        self.aside.as_ref().map_or(Ok(()), |reason| Err(aside(reason)))
    }
}
