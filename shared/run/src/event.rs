//! The events of a run's journal.

use archipelago::End;
use bincode::{Decode, Encode};
use codec::Digest;

/// An entry of a run's journal. Times are milliseconds since 1970, and never part of a digest.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum RunEvent {
    /// The run was asked for.
    Created {
        /// The digest of its experiment.
        experiment: Digest,
        /// The digest of the text that is stored of it, down to the keys that no result depends on.
        text: Digest,
        /// The version of what experiments mean.
        semantics: u32,
        /// The version of the program.
        version: String,
        /// When.
        at: u64,
    },
    /// A process opened it for writing: a term begins, whose number is that of this event.
    Opened {
        /// Which process.
        owner: Owner,
        /// Where the term begins: of each island, how many epochs count of those that earlier terms have stored. What
        /// lies beyond is computed again.
        cuts: Vec<u64>,
        /// How many batches of job results count of the term before.
        batches: u64,
        /// When.
        at: u64,
    },
    /// Results were found to be wrong, and are computed again in the next term, under names of a new attempt.
    Retracted {
        /// Of each island, how many epochs still count.
        cuts: Vec<u64>,
        /// Why.
        reason: String,
        /// When.
        at: u64,
    },
    /// Its budget was changed.
    Extended {
        /// The new budget, as the `[budget]` table of an experiment in JSON.
        budget: String,
        /// The epochs that were complete on all islands by then, which the new budget does not undo.
        complete: u64,
        /// When.
        at: u64,
    },
    /// It was decided where it ends.
    Decided {
        /// Where and why.
        end: End,
        /// When.
        at: u64,
    },
    /// It is finished.
    Finished {
        /// Where and why; nothing of a run that consists of jobs, which ends when all are done.
        end: Option<End>,
        /// The digest of the run.
        digest: Digest,
        /// When.
        at: u64,
        /// For how long it has been worked on, in milliseconds.
        elapsed: u64,
    },
    /// Its work comes before that of runs with a lower priority.
    Prioritised {
        /// The priority.
        priority: i32,
        /// When.
        at: u64,
    },
    /// Its work is held back.
    Paused {
        /// When.
        at: u64,
    },
    /// It was resumed after a pause, a cancellation or a failure.
    Continued {
        /// When.
        at: u64,
    },
    /// It was cancelled.
    Cancelled {
        /// When.
        at: u64,
    },
    /// It failed.
    Failed {
        /// Why.
        reason: String,
        /// When.
        at: u64,
    },
    /// A worker held an epoch and could not deliver it: another one computes it again.
    Lost {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// The worker.
        worker: String,
        /// For how long it held the epoch, in milliseconds.
        held: u64,
        /// Why it was lost.
        reason: String,
        /// When.
        at: u64,
    },
    /// Workers lost several epochs at once, or were not heard of any more while they held some: others compute them again.
    Expired {
        /// Which, and who.
        losses: Vec<Loss>,
        /// Why they were lost.
        reason: String,
        /// When.
        at: u64,
    },
    /// Results of jobs were found to be wrong, or are by a worker that was. They are computed again in the same term.
    RetractedJobs {
        /// The numbers of the jobs.
        jobs: Vec<u32>,
        /// How many batches of this term were written by then: what they hold of these jobs does not count, nor does what
        /// earlier terms hold of them.
        batches: u64,
        /// Why.
        reason: String,
        /// When.
        at: u64,
    },
}

impl RunEvent {
    /// Whether a run has ended with this event, unless it continues later.
    pub fn ends(&self) -> bool {
        matches!(self, Self::Finished { .. } | Self::Cancelled { .. } | Self::Failed { .. })
    }
}

/// The process that has a run open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Owner {
    /// The version of the program.
    pub version: String,
    /// The host that it runs on.
    pub host: String,
    /// Its process id there.
    pub process: u32,
    /// When it began, in milliseconds since 1970.
    pub since: u64,
}

impl Owner {
    /// This process, which began at this time.
    pub fn this_process(version: &str, since: u64) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { version: version.to_owned(), host, process: std::process::id(), since }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "process {} on host `{}`", self.process, self.host)
    }
}

/// An epoch that was leased without a result.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Loss {
    /// The island.
    pub island: u32,
    /// The epoch.
    pub epoch: u64,
    /// The worker.
    pub worker: String,
    /// For how long it held the epoch, in milliseconds.
    pub held: u64,
}
