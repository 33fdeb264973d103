//! The cells of one sweep: what is handed out, and what comes back.

use crate::epochs::Fate;
use archipelago::cell::{CellResult, sweep_digest};
use evolution::codec;
use evolution::digest::Digest;
use experiment::Sweep;
use proto::convert::Piece;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{Kind, Place, RunId, Store, StoreError};

/// About how long the cells of one lease should take.
const BATCH: Duration = Duration::from_secs(1);
/// The most cells of one lease.
const LARGEST_BATCH: u32 = 64;

/// A sweep whose cells are handed out.
pub(crate) struct Cells {
    store: Store,
    run: RunId,
    sweep: Sweep,
    plan: Digest,
    done: BTreeMap<u32, CellResult>,
    /// Cells before this one are done or handed out.
    next: u32,
    worked: Duration,
}

impl Cells {
    /// Reads the cells that are done.
    pub(crate) async fn open(store: &Store, run: &RunId, sweep: Sweep) -> Result<Self, StoreError> {
        let mut done = BTreeMap::new();
        for path in store.list(&run.cells()).await? {
            if let Some((_, Place::Cell(number))) = Place::of(&path) {
                done.insert(number, store.read_value(&path, Kind::Cell).await?);
            }
        }
        let (store, run, plan) = (store.clone(), run.clone(), Digest::of(sweep.text.as_bytes()));
        Ok(Self { store, run, sweep, plan, done, next: 0, worked: Duration::ZERO })
    }

    pub(crate) fn text(&self) -> &str {
        &self.sweep.text
    }

    /// The digest of the text.
    pub(crate) fn plan(&self) -> &Digest {
        &self.plan
    }

    pub(crate) fn len(&self) -> u32 {
        self.sweep.len()
    }

    pub(crate) fn done(&self) -> &BTreeMap<u32, CellResult> {
        &self.done
    }

    /// The next cells to be computed.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        let is_done = |number: &u32| self.done.contains_key(number);
        let first = (self.next..self.len()).find(|number| !is_done(number))?;
        let most = self.batch(first);
        let count = (first..self.len()).take_while(|number| !is_done(number)).take(most as usize).count();
        self.next = first + count as u32;
        Some(Piece::Cells { first, count: count as u32 })
    }

    fn batch(&self, first: u32) -> u32 {
        let estimate = self.sweep.cell(first).experiment.estimate(1).time.unwrap_or(BATCH);
        let cells = BATCH.as_nanos() / estimate.as_nanos().max(1);
        cells.clamp(1, u128::from(LARGEST_BATCH)) as u32
    }

    /// Whether these are cells of the sweep that nobody has delivered yet.
    pub(crate) fn wants(&self, first: u32, count: u32) -> bool {
        let end = first.saturating_add(count);
        end <= self.len() && count <= LARGEST_BATCH && (first..end).any(|cell| !self.done.contains_key(&cell))
    }

    /// Keeps the result of a cell, from anybody.
    pub(crate) async fn complete(&mut self, number: u32, result: CellResult) -> Result<Fate, StoreError> {
        if number >= self.len() {
            return Ok(Fate::Unneeded);
        }
        let place = Place::Cell(number).in_run(&self.run);
        self.store.create_value(&place, Kind::Cell, &result).await?;
        Ok(if self.done.insert(number, result).is_none() { Fate::Accepted } else { Fate::Repeated })
    }

    /// The digest of all cells, once they are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let complete = self.done.len() as u32 == self.len();
        complete.then(|| sweep_digest(&self.sweep, self.done.values()))
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.worked += time;
    }

    pub(crate) fn elapsed(&self) -> u64 {
        self.worked.as_millis() as u64
    }
}

/// Results of cells by their numbers, as they travel.
pub(crate) fn decode_results(bytes: &[u8]) -> Result<Vec<(u32, CellResult)>, codec::CodecError> {
    codec::decode(bytes)
}
