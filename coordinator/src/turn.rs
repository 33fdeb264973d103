//! A turn of writing: what is due of all runs is put together in the office, written while the office is open to
//! others, and noted there. Whoever waits for something to be written shares the next turn with all others who do.

use crate::office::{Moment, Office};
use crate::runs::Activity;
use futures::{StreamExt, stream};
use proto::convert::{Piece, Work};
use run::WriteBatch;
use run::WriteError;
use run::{Pruned, Pruning};
use store::{Claim, Store, StoreError};

/// How many runs are written at a time.
const RUNS_AT_A_TIME: usize = 8;

/// What is to be written now.
pub(crate) struct Turn {
    store: Store,
    claim: Claim,
    runs: Vec<(String, WriteBatch)>,
}

/// What became of it.
pub(crate) enum Written {
    /// Batches of runs, and whether the store took them.
    Tried(Vec<(String, WriteBatch, Result<(), WriteError>)>),
    /// Nothing was written: what a later coordinator reads must not change under its hands.
    Succeeded,
}

impl Turn {
    /// Writes what is due, unless another coordinator has begun.
    pub(crate) async fn write(self) -> Written {
        // While nobody can tell, this one keeps the store.
        if !self.claim.stands().await.unwrap_or(true) {
            return Written::Succeeded;
        }
        let store = &self.store;
        let write = |(run, writing): (String, WriteBatch)| async move {
            let written = writing.write(store).await;
            (run, writing, written)
        };
        Written::Tried(stream::iter(self.runs).map(write).buffered(RUNS_AT_A_TIME).collect().await)
    }
}

impl Office {
    /// What is to be written now, if there is something.
    pub(crate) fn turn(&mut self) -> Option<Turn> {
        let mut runs = vec![];
        for (name, run) in &mut self.runs {
            if let Activity::Epochs(epochs) = &mut run.activity {
                runs.extend(epochs.write_batch().map(|writing| (name.clone(), writing)));
            }
        }
        (!runs.is_empty()).then(|| Turn { store: self.store.clone(), claim: self.claim.clone(), runs })
    }

    /// Notes what was written, and finishes the runs that only waited for it. Answers whether it was all written.
    pub(crate) async fn settle_turn(&mut self, written: Written, now: Moment) -> bool {
        let Written::Tried(runs) = written else {
            self.succeeded = true;
            return false;
        };
        let mut all = true;
        for (run, writing, written) in runs {
            if let Some(epochs) = self.epochs(&run) {
                epochs.settle(&writing, &written);
            }
            all &= written.is_ok();
            self.note_trouble(&run, written.map_err(Into::into), now).await;
            self.settle(&run, now).await;
        }
        all
    }

    /// What may be deleted now of one of the runs, if there is something.
    pub(crate) fn pruning(&mut self) -> Option<(String, Pruning)> {
        self.runs.iter_mut().find_map(|(name, run)| match &mut run.activity {
            Activity::Epochs(epochs) => Some((name.clone(), epochs.keeper_mut().pruning()?)),
            _ => None,
        })
    }

    /// Notes what was deleted. What could not be is tried again with what is written next.
    pub(crate) async fn settle_pruning(
        &mut self,
        (run, pruning): (String, Pruning),
        pruned: Result<Pruned, StoreError>,
        now: Moment,
    ) {
        if let (Ok(Pruned::Yes), Some(epochs)) = (&pruned, self.epochs(&run)) {
            epochs.keeper_mut().settle_pruning(&pruning);
        }
        self.note_trouble(&run, pruned.map(|_| ()).map_err(Into::into), now).await;
        self.settle(&run, now).await;
    }

    /// Has everything written in the next turn.
    pub(crate) fn hurry_all(&mut self) {
        for run in self.runs.values_mut() {
            if let Activity::Epochs(epochs) = &mut run.activity {
                epochs.hurry();
            }
        }
    }

    /// Whether something that was delivered has to be written before anything is built on it.
    pub(crate) fn is_urgent(&mut self, work: &Work) -> bool {
        let Piece::Epoch { island, epoch } = work.piece else { return false };
        self.epochs(&work.run).is_some_and(|epochs| epochs.is_urgent(island, epoch))
    }
}
