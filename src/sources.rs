//! Runs as people name them: by their names, or by the files that were run.

use crate::failure::Failure;
use crate::store_argument::run_id;
use experiment::{Plan, Study};
use std::path::Path;
use store::RunId;

/// The runs that are meant by names and files of experiments, sweeps and studies.
pub(crate) fn runs(sources: &[String]) -> Result<Vec<RunId>, Failure> {
    let mut runs = vec![];
    for source in sources {
        match plan(source)? {
            None => runs.push(run_id(source)?),
            Some(Plan::Single(experiment)) => runs.push(run_id(&experiment.run_id())?),
            Some(Plan::Sweep(sweep)) => runs.push(run_id(&sweep.run_id())?),
            Some(Plan::Study(study)) => runs.extend(parts(&study)?),
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
pub(crate) fn levels(sources: &[String]) -> Result<Vec<RunId>, Failure> {
    for source in sources {
        if let Some(Plan::Sweep(_)) = plan(source)? {
            let message = format!("expected an experiment or a study, found the sweep `{source}`");
            return Err(Failure::Usage(message));
        }
    }
    runs(sources)
}

fn plan(source: &str) -> Result<Option<Plan>, Failure> {
    let path = Path::new(source);
    if path.is_file() { Ok(Some(experiment::load(path, None)?)) } else { Ok(None) }
}

fn parts(study: &Study) -> Result<Vec<RunId>, Failure> {
    study.parts.iter().map(|part| run_id(&part.experiment.run_id())).collect()
}
