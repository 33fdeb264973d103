//! A cell of a sweep: a whole run, of which only the best is kept.

use crate::solo::{self, SoloError};
use bincode::{Decode, Encode};
use evolution::codec::CodecError;
use evolution::digest::Digest;
use experiment::{Cell, Sweep};

/// What one cell brought.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct CellResult {
    /// The digest of its run.
    pub digest: Digest,
    /// The best fitness of all islands.
    pub best: f64,
    /// The generations of an island.
    pub generations: u64,
    /// The evaluations of all islands.
    pub evaluations: u64,
    /// The best champion's genes.
    pub genome: Vec<f64>,
}

/// A cell that cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// Its run failed.
    #[error(transparent)]
    Run(#[from] SoloError),
    /// Its champion cannot be read.
    #[error("its state {0}")]
    Champion(#[from] CodecError),
}

/// A cell from its founding to its end; nothing if it was asked to stop.
pub fn evolve(cell: &Cell, stop: impl Fn() -> bool) -> Result<Option<CellResult>, CellError> {
    let Some(outcome) = solo::evolve(&cell.experiment, stop)? else { return Ok(None) };
    let evolver = cell.experiment.evolver();
    let (digest, best, genome) = (outcome.digest, f64::NEG_INFINITY, vec![]);
    let mut result = CellResult { digest, best, generations: 0, evaluations: 0, genome };
    for (state, standing) in &outcome.islands {
        result.generations = standing.generation;
        result.evaluations += standing.evaluations;
        if result.genome.is_empty() || standing.best > result.best {
            let champion = evolver.champion(state)?;
            (result.best, result.genome) = (champion.fitness, champion.genome);
        }
    }
    Ok(Some(result))
}

/// The digest of a whole sweep, from all of its cells in order.
pub fn sweep_digest<'a>(plan: &Sweep, results: impl IntoIterator<Item = &'a CellResult>) -> Digest {
    let own = plan.digest();
    let parts: Vec<Digest> =
        std::iter::once(own).chain(results.into_iter().map(|result| result.digest)).collect();
    Digest::of_parts("atoll sweep digest", parts.iter().map(|digest| &digest.0[..]))
}
