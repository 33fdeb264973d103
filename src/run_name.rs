//! Runs as people name them, in commands.

use crate::failure::Failure;
use crate::store_argument::run_id;
use experiment::Plan;
use run::RunId;
use run::naming;
use run::players::Reference;
use store::Store;

/// The run of a plan, unless another one is begun beside it.
pub(crate) fn of(plan: &Plan) -> Result<RunId, Failure> {
    run_id(&match plan {
        Plan::Single(experiment) => experiment.run_id(),
        Plan::Sweep(sweep) => sweep.run_id(),
        Plan::Study(study) => study.run_id(),
        Plan::Tournament(games) => games.run_id(),
    })
}

/// The run of a store that a text stands for.
pub(crate) async fn find(store: &Store, text: &str) -> Result<RunId, Failure> {
    Ok(naming::find(store, text).await?)
}

/// A champion's run, named in the same ways.
pub(crate) async fn complete(store: &Store, reference: Reference) -> Result<Reference, Failure> {
    Ok(naming::complete(store, reference).await?)
}
