//! What a delivery is compared with before it is accepted, apart from the state and its lock.

use super::RecomputedEpoch;
use ::evolution::digest::Digest;
use ::evolution::epoch::{EpochError, EpochOutcome, EpochTask, Evolver, Standing};
use experiment::Experiment;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// An evaluation that takes longer than this many nanoseconds keeps no call waiting.
const QUICK: u64 = 100_000;

/// Examines what is delivered of one run. Its problem is posed when it is first needed, by the thread that examines.
pub(crate) struct Examiner {
    experiment: Arc<Experiment>,
    evolver: OnceLock<Arc<dyn Evolver>>,
}

impl Examiner {
    pub(crate) fn new(experiment: Arc<Experiment>) -> Self {
        Self { experiment, evolver: OnceLock::new() }
    }

    /// Whether the problem is posed already, and one evaluation takes next to no time.
    fn is_quick(&self) -> bool {
        self.evolver.get().is_some_and(|evolver| evolver.cost().nanoseconds <= QUICK)
    }

    fn evolver(&self) -> &dyn Evolver {
        &**self.evolver.get_or_init(|| self.experiment.evolver())
    }
}

/// An epoch that is handed out, and how to examine what is delivered of it.
#[derive(Clone)]
pub(crate) struct Examination {
    pub(crate) examiner: Arc<Examiner>,
    pub(crate) task: EpochTask,
}

impl Examination {
    /// Whether it takes no longer than its bytes take to be read.
    pub(crate) fn is_quick(&self) -> bool {
        self.examiner.is_quick()
    }

    /// Compares an outcome with its task.
    pub(crate) fn check(&self, outcome: &EpochOutcome) -> Result<(), EpochError> {
        self.examiner.evolver().check(&self.task, outcome)
    }

    /// Compares a checkpoint with its task; returns where the island stands in it.
    pub(crate) fn check_checkpoint(&self, bytes: &[u8]) -> Result<Standing, EpochError> {
        self.examiner.evolver().check_checkpoint(&self.task, bytes)
    }

    /// Computes the epoch, and compares checkpoints inside it, by the generations that they are said to be of.
    pub(crate) fn recompute(&self, checkpoints: &[(u64, Digest)]) -> Result<RecomputedEpoch, EpochError> {
        let EpochTask { island, epoch, .. } = self.task;
        let wrong = |error| EpochError::Codec { island, epoch, error };
        let mut left: BTreeSet<(u64, Digest)> = checkpoints.iter().copied().collect();
        let mut evolving = self.examiner.evolver().begin(&self.task)?;
        loop {
            let generation = evolving.standing().generation;
            let least = (generation, Digest([0; 32]));
            if left.range(least..).next().is_some_and(|(of, _)| *of == generation) {
                left.remove(&(generation, Digest::of(&evolving.checkpoint().map_err(wrong)?)));
            }
            if !evolving.generation() {
                break;
            }
        }
        let digest = evolving.finish().map_err(wrong)?.digest;
        Ok(RecomputedEpoch { digest, wrong: left })
    }

    /// About how many bytes of memory that takes.
    pub(crate) fn memory(&self) -> u64 {
        self.examiner.experiment.estimate(1).memory
    }
}
