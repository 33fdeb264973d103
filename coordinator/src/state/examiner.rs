//! What a delivery is compared with before it is accepted, apart from the state and its lock.

use ::evolution::epoch::{self, EpochError, EpochOutcome, EpochTask, Evolver, Standing};
use experiment::Experiment;
use std::sync::{Arc, OnceLock};

/// Examines what is delivered of one run. Its problem is posed when it is first needed, by the thread that examines.
pub(crate) struct Examiner {
    experiment: Arc<Experiment>,
    evolver: OnceLock<Arc<dyn Evolver>>,
}

impl Examiner {
    pub(crate) fn new(experiment: Arc<Experiment>) -> Self {
        Self { experiment, evolver: OnceLock::new() }
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
    /// Compares an outcome with its task.
    pub(crate) fn check(&self, outcome: &EpochOutcome) -> Result<(), EpochError> {
        self.examiner.evolver().check(&self.task, outcome)
    }

    /// Compares a checkpoint with its task; returns where the island stands in it.
    pub(crate) fn check_checkpoint(&self, bytes: &[u8]) -> Result<Standing, EpochError> {
        self.examiner.evolver().check_checkpoint(&self.task, bytes)
    }

    /// Computes the epoch.
    pub(crate) fn recompute(&self) -> Result<EpochOutcome, EpochError> {
        epoch::run(self.examiner.evolver(), &self.task)
    }
}
