//! Runs as people name them: by their names, or by the files that were run.

use crate::failure::Failure;
use crate::store_argument::run_id;
use coordinator::keeper::RunHead;
use experiment::file::ExperimentFile;
use experiment::{Experiment, Part, Plan};
use std::path::Path;
use store::{RunId, Store};

/// The runs that are meant by names and files of experiments, sweeps and studies.
pub(crate) async fn runs(store: &Store, sources: &[String]) -> Result<Vec<RunId>, Failure> {
    let mut runs = vec![];
    for source in sources {
        match plan(source)? {
            None => runs.push(run_id(source)?),
            Some(Plan::Single(experiment)) => runs.push(run_id(&experiment.run_id())?),
            Some(Plan::Sweep(sweep)) => runs.push(run_id(&sweep.run_id())?),
            Some(Plan::Study(study)) => {
                for part in &study.parts {
                    runs.push(run_of_part(store, part).await?);
                }
            }
            Some(Plan::Tournament(_)) => {
                let message = format!(
                    "expected an experiment, a sweep or a study, found the tournament `{source}`: \
                     `atoll tournament page RUN` writes the page of one that was played"
                );
                return Err(Failure::Usage(message));
            }
        }
    }
    Ok(runs)
}

/// The same, without sweeps, which keep no states.
pub(crate) async fn levels(store: &Store, sources: &[String]) -> Result<Vec<RunId>, Failure> {
    for source in sources {
        if let Some(Plan::Sweep(_)) = plan(source)? {
            let message = format!("expected an experiment or a study, found the sweep `{source}`");
            return Err(Failure::Usage(message));
        }
    }
    runs(store, sources).await
}

fn plan(source: &str) -> Result<Option<Plan>, Failure> {
    let path = Path::new(source);
    if path.is_file() { Ok(Some(experiment::load(path, None)?)) } else { Ok(None) }
}

/// The run of a study's part. The name of one with guests depends on who they were, so it is looked for in the store.
async fn run_of_part(store: &Store, part: &Part) -> Result<RunId, Failure> {
    let plain = run_id(&part.experiment.run_id())?;
    if part.guests.is_none() {
        return Ok(plain);
    }
    let start = format!("{}-", part.experiment.name());
    for run in crate::runs::all(store).await?.into_iter().filter(|run| run.as_str().starts_with(&start)) {
        let head = RunHead::read(store, &run).await;
        if head.is_ok_and(|head| without_guests(&head.experiment) == without_guests(&part.experiment)) {
            return Ok(run);
        }
    }
    Ok(plain)
}

fn without_guests(experiment: &Experiment) -> ExperimentFile {
    ExperimentFile { guests: None, ..experiment.file().clone() }
}
