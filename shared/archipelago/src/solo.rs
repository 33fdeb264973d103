//! A whole run on the spot: in memory, epoch after epoch.

use crate::archipelago::{Archipelago, CompletionError};
use crate::end::End;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochError, Standing};
use experiment::Experiment;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct SoloOutcome {
    /// Where and why it ended.
    pub end: End,
    /// Its digest.
    pub digest: Digest,
    /// Each island's state and standing at the end.
    pub islands: Vec<(Bytes, Standing)>,
}

/// A run that cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SoloError {
    /// An epoch cannot be run.
    #[error(transparent)]
    Epoch(#[from] EpochError),
    /// An epoch came out as it cannot.
    #[error(transparent)]
    Completion(#[from] CompletionError),
}

/// Runs an experiment to its end, or until `stop` says so: then there is no outcome.
pub fn evolve(experiment: &Experiment, stop: impl Fn() -> bool) -> Result<Option<SoloOutcome>, SoloError> {
    let evolver = experiment.evolver();
    let mut archipelago = Archipelago::new(experiment, None);
    while let Some(island) = archipelago.next_ready() {
        let task = archipelago.begin(island);
        let mut epoch = evolver.begin(&task)?;
        loop {
            if stop() {
                return Ok(None);
            }
            if !epoch.generation() {
                break;
            }
        }
        let finished = epoch.finish();
        let outcome = finished.map_err(|error| EpochError::Codec { island, epoch: task.epoch, error })?;
        archipelago.complete(&task, &outcome)?;
    }
    let end = archipelago.end().cloned();
    let outcome = end.zip(archipelago.digest()).zip(archipelago.final_states());
    Ok(outcome.map(|((end, digest), islands)| SoloOutcome { end, digest, islands }))
}
