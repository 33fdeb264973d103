//! What is stored of epochs: their records, and checkpoints inside them.

use crate::journal::JournalHead;
use archipelago::Mark;
use bincode::{Decode, Encode};
use codec::Digest;
use evolution::statistics::EpochStatistics;

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

impl std::hash::Hash for EpochRecord {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        // Statistics follow from what the mark names by its digest.
        (&self.mark, &self.labour).hash(hasher);
    }
}

impl EpochRecord {
    /// Leaves the last generation alone of its statistics: there may be millions of others.
    pub(crate) fn outline(&mut self) {
        let rows = std::mem::take(&mut self.statistics.rows);
        self.statistics.rows = rows.last().into_iter().copied().collect();
    }
}

/// The work behind an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Labour {
    /// The worker.
    pub worker: String,
    /// How long the epoch took, in milliseconds.
    pub milliseconds: u64,
    /// For how long the run had been worked on when the epoch was done, in milliseconds.
    pub elapsed: u64,
}

/// Records of epochs of many islands, written together.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Commit {
    /// The end of the journal when it was put together: no later one may be shorter.
    pub journal: JournalHead,
    /// Islands, and records of their epochs in order.
    pub islands: Vec<(u32, Vec<EpochRecord>)>,
}

/// An epoch that is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct StoredCheckpoint {
    /// The evolver's own.
    pub bytes: Vec<u8>,
    /// The emigrants that the epoch began with: from which island and epoch.
    pub took: Vec<(u32, u64)>,
    /// For how long the run had been worked on, in milliseconds.
    pub elapsed: u64,
    /// The worker that computed it.
    pub worker: String,
    /// The digest of all that the epoch depends on: a checkpoint of another island or epoch is not taken for this one's.
    pub inputs: Digest,
}
