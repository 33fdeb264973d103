//! The cells of one plan, of a sweep or a tournament: what is handed out, and what comes back.

use super::calls::Fate;
use archipelago::Progress;
use archipelago::cell::{CellPlan, CellResult};
use bytes::Bytes;
use evolution::digest::Digest;
use proto::convert::Piece;
use run::players::PlayerFiles;
use run::summary::Outline;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// About how long the cells of one lease should take.
const BATCH: Duration = Duration::from_secs(1);
/// The most cells of one lease.
const LARGEST_BATCH: u32 = 64;

/// A plan whose cells are handed out.
pub(crate) struct Cells {
    /// The digest of the plan's text.
    text: Digest,
    progress: Progress,
    files: PlayerFiles,
    /// Cells before this one are done or handed out.
    next: u32,
    /// Cells whose results are being stored.
    storing: BTreeSet<u32>,
    worked: Duration,
}

impl Cells {
    pub(crate) fn new(progress: Progress, files: PlayerFiles) -> Self {
        let text = Digest::of(progress.plan().text().as_bytes());
        Self { text, progress, files, next: 0, storing: BTreeSet::new(), worked: Duration::ZERO }
    }

    pub(crate) fn text(&self) -> &str {
        self.progress.plan().text()
    }

    pub(crate) fn plan(&self) -> Arc<CellPlan> {
        self.progress.shared_plan()
    }

    /// The digest of the text.
    pub(crate) fn text_digest(&self) -> &Digest {
        &self.text
    }

    pub(crate) fn len(&self) -> u32 {
        self.progress.plan().len()
    }

    /// The player files that its games need.
    pub(crate) fn files(&self) -> &PlayerFiles {
        &self.files
    }

    /// A player file by its digest.
    pub(crate) fn file(&self, digest: &Digest) -> Option<Bytes> {
        self.files.get(digest).cloned()
    }

    /// How far it is.
    pub(crate) fn outline(&self) -> Outline {
        run::jobs::outline(&self.progress, self.elapsed())
    }

    fn is_open(&self, number: u32) -> bool {
        self.progress.wants(number) && !self.storing.contains(&number)
    }

    /// Whether some cells were never handed out.
    pub(crate) fn has_work(&self) -> bool {
        self.progress.next(self.next).is_some()
    }

    /// About how many pieces were never handed out.
    pub(crate) fn count_ready(&self) -> usize {
        let left = self.len().saturating_sub(self.next);
        if self.has_work() { left.div_ceil(self.batch(self.next)) as usize } else { 0 }
    }

    /// The next cells to be computed.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        let first = (self.next..self.len()).find(|&number| self.is_open(number))?;
        let most = self.batch(first);
        let wanted = (first..self.len()).take_while(|&number| self.is_open(number));
        let count = wanted.take(most as usize).count() as u32;
        self.next = first + count;
        Some(Piece::Cells { first, count })
    }

    fn batch(&self, first: u32) -> u32 {
        let estimate = self.progress.plan().time(first).unwrap_or(BATCH);
        let cells = BATCH.as_nanos() / estimate.as_nanos().max(1);
        cells.clamp(1, u128::from(LARGEST_BATCH)) as u32
    }

    /// Whether some of these cells are still wanted.
    pub(crate) fn wants(&self, first: u32, count: u32) -> bool {
        let end = first.saturating_add(count);
        end <= self.len() && count <= LARGEST_BATCH && (first..end).any(|cell| self.is_open(cell))
    }

    /// Takes results that were delivered; returns those that are to be stored, and what becomes of the delivery.
    pub(crate) fn receive(&mut self, results: Vec<(u32, CellResult)>) -> (Vec<(u32, CellResult)>, Fate) {
        let mut fate = Fate::Unneeded;
        let mut wanted = vec![];
        for (number, result) in results {
            if self.is_open(number) {
                self.storing.insert(number);
                wanted.push((number, result));
                fate = Fate::Accepted;
            } else if fate != Fate::Accepted {
                // What differs from what is stored is found out when it is stored again.
                fate = Fate::Repeated;
                if self.progress.done().contains_key(&number) {
                    wanted.push((number, result));
                }
            }
        }
        (wanted, fate)
    }

    /// Takes the result of a cell that is stored.
    pub(crate) fn complete(&mut self, number: u32, result: CellResult) {
        self.storing.remove(&number);
        self.progress.add(number, result);
    }

    /// Whether nothing is being stored.
    pub(crate) fn is_written(&self) -> bool {
        self.storing.is_empty()
    }

    /// The digest of all cells that count, once they are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        if self.storing.is_empty() { self.progress.digest() } else { None }
    }

    /// For how long it has been worked on since it was opened.
    pub(crate) fn elapsed(&self) -> u64 {
        self.worked.as_millis() as u64
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.worked += time;
    }
}
