//! What is written down of a run: its events, and the records of its epochs.

use archipelago::{End, Mark};
use bincode::{Decode, Encode};
use evolution::digest::Digest;
use evolution::statistics::EpochStatistics;

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
    /// A coordinator took it up.
    Opened {
        /// The version of the program.
        version: String,
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
        /// Where and why.
        end: End,
        /// The digest of the run.
        digest: Digest,
        /// When.
        at: u64,
        /// For how long it has been worked on, in milliseconds.
        elapsed: u64,
    },
}

/// All that is kept for good of an epoch.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct EpochRecord {
    /// What results depend on.
    pub mark: Mark,
    /// What reports look at.
    pub statistics: EpochStatistics,
    /// Who did it, and how long it took: no result depends on it.
    pub labour: Labour,
}

/// The work behind an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Labour {
    /// The worker.
    pub worker: String,
    /// How long the epoch took, in milliseconds.
    pub milliseconds: u64,
    /// For how long the run had been worked on when the epoch was done, in milliseconds.
    pub elapsed: u64,
}

/// An epoch that is not finished.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct StoredCheckpoint {
    /// The evolver's own.
    pub bytes: Vec<u8>,
    /// The emigrants that the epoch began with: from which island and epoch.
    pub took: Vec<(u32, u64)>,
    /// For how long the run had been worked on, in milliseconds.
    pub elapsed: u64,
}
