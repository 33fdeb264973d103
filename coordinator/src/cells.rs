//! The cells of one plan, of a sweep or a tournament: what is handed out, and what comes back.

use crate::epochs::Fate;
use archipelago::Progress;
use archipelago::cell::{CellPlan, CellResult};
use bytes::Bytes;
use evolution::codec;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use futures::{StreamExt, stream};
use proto::convert::Piece;
use run::RunId;
use run::jobs;
use run::players::PlayerFiles;
use std::sync::Arc;
use std::time::Duration;
use store::{Store, StoreError};

/// About how long the cells of one lease should take.
const BATCH: Duration = Duration::from_secs(1);
/// The most cells of one lease.
const LARGEST_BATCH: u32 = 64;
/// How many results are written at a time.
const AT_A_TIME: usize = 16;

/// A plan whose cells are handed out.
pub(crate) struct Cells {
    store: Store,
    run: RunId,
    /// The digest of the plan's text.
    plan: Digest,
    progress: Progress,
    players: PlayerFiles,
    /// Cells before this one are done or handed out.
    next: u32,
    worked: Duration,
}

impl Cells {
    /// Reads the cells that are done.
    pub(crate) async fn open(
        store: &Store,
        run: &RunId,
        plan: CellPlan,
        players: PlayerFiles,
    ) -> Result<Self, StoreError> {
        let text = Digest::of(plan.text().as_bytes());
        let progress = jobs::read(store, run, plan).await?;
        let (store, run) = (store.clone(), run.clone());
        Ok(Self { store, run, plan: text, progress, players, next: 0, worked: Duration::ZERO })
    }

    pub(crate) fn text(&self) -> &str {
        self.progress.plan().text()
    }

    /// The plan itself.
    pub(crate) fn shared_plan(&self) -> Arc<CellPlan> {
        self.progress.shared_plan()
    }

    /// The digest of the text.
    pub(crate) fn plan(&self) -> &Digest {
        &self.plan
    }

    pub(crate) fn len(&self) -> u32 {
        self.progress.plan().len()
    }

    pub(crate) fn is_tournament(&self) -> bool {
        matches!(self.progress.plan(), CellPlan::Tournament(_))
    }

    /// The player files that its games need.
    pub(crate) fn players(&self) -> &PlayerFiles {
        &self.players
    }

    /// A player file by its digest.
    pub(crate) fn player(&self, digest: &Digest) -> Option<Bytes> {
        self.players.get(digest).cloned()
    }

    /// Cells that are done; of a sweep also what they came to, of a tournament the games.
    pub(crate) fn standing(&self) -> Standing {
        let done = self.progress.done().values();
        let mut standing =
            Standing { generation: done.len() as u64, evaluations: 0, best: f64::NEG_INFINITY };
        for result in done {
            match result {
                CellResult::Evolved(evolved) => {
                    standing.evaluations += evolved.evaluations;
                    standing.best = standing.best.max(evolved.best);
                }
                CellResult::Played(pairs) => standing.evaluations += 2 * pairs.len() as u64,
            }
        }
        standing
    }

    /// The next cells to be computed.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        let first = self.progress.next(self.next)?;
        let most = self.batch(first);
        let wanted = (first..self.len()).take_while(|&number| self.progress.wants(number));
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
        end <= self.len() && count <= LARGEST_BATCH && (first..end).any(|cell| self.progress.wants(cell))
    }

    /// Where results are kept.
    pub(crate) fn archive(&self) -> Archive {
        let (store, run) = (self.store.clone(), self.run.clone());
        Archive { store, run, plan: self.progress.shared_plan() }
    }

    /// Takes the result of a cell that is kept.
    pub(crate) fn complete(&mut self, number: u32, result: CellResult) -> Fate {
        if self.progress.add(number, result) { Fate::Accepted } else { Fate::Repeated }
    }

    /// The digest of all cells that count, once they are done.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.progress.digest()
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.worked += time;
    }

    pub(crate) fn elapsed(&self) -> u64 {
        self.worked.as_millis() as u64
    }
}

/// Where the results of cells are kept. It needs no office: to look at them and to write them takes a while.
pub(crate) struct Archive {
    store: Store,
    run: RunId,
    plan: Arc<CellPlan>,
}

/// What is kept after somebody has delivered results, and what was wrong with them.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) results: Vec<(u32, CellResult)>,
    pub(crate) trouble: Option<Trouble>,
}

/// Why results are not kept.
pub(crate) enum Trouble {
    /// This cell cannot have brought that.
    Unsound(u32),
    Store(StoreError),
}

impl Archive {
    /// Keeps results, from anybody. Whatever is stored of them in the end counts, for nobody can replace it.
    pub(crate) async fn keep(&self, results: Vec<(u32, CellResult)>) -> Kept {
        let mut kept = Kept::default();
        let unsound = |(number, result): &&(u32, CellResult)| !self.plan.is_sound(*number, result);
        if let Some((number, _)) = results.iter().find(unsound) {
            kept.trouble = Some(Trouble::Unsound(*number));
            return kept;
        }
        let mut keeping = stream::iter(results).map(|one| self.keep_one(one)).buffered(AT_A_TIME);
        while let Some((stored, trouble)) = keeping.next().await {
            kept.results.extend(stored);
            kept.trouble = kept.trouble.or(trouble.map(Trouble::Store));
        }
        kept
    }

    /// Keeps one result. Answers what is stored of its cell, and what went wrong.
    async fn keep_one(
        &self,
        (number, result): (u32, CellResult),
    ) -> (Option<(u32, CellResult)>, Option<StoreError>) {
        match jobs::keep(&self.store, &self.run, &self.plan, number, result).await {
            Ok(result) => (Some((number, result)), None),
            Err(error @ StoreError::Differs { .. }) => {
                (jobs::stored(&self.store, &self.run, &self.plan, number).await.ok().flatten(), Some(error))
            }
            Err(error) => (None, Some(error)),
        }
    }
}

/// Results of cells by their numbers, as they travel.
pub(crate) fn decode_results(bytes: &[u8]) -> Result<Vec<(u32, CellResult)>, codec::CodecError> {
    codec::decode(bytes)
}
