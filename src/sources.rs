//! Runs as people name them: by their names, or by the files that were run.

use crate::failure::Failure;
use crate::run_name;
use crate::store_argument::{StoreArgument, run_id};
use crate::tournament;
use experiment::document::near_experiment;
use experiment::{Plan, Study};
use run::{Place, RunId};
use std::path::Path;
use store::{Store, StoreError};

/// A run that is meant.
struct Meant {
    run: RunId,
    /// Its name in a study.
    part: Option<String>,
    /// The file that names it, if one does.
    file: Option<String>,
}

/// What there is of runs that are meant.
pub(crate) struct Present {
    pub(crate) runs: Vec<RunId>,
    /// The parts of studies that have not been begun, each in a sentence.
    pub(crate) missing: Vec<String>,
    /// The tournament of the study, if one study is meant and its games were begun.
    pub(crate) games: Option<RunId>,
}

/// The runs that are meant by names and files of experiments, sweeps and studies. Studies may have been run in part: only
/// if there is nothing at all, their runs are named all the same, so that reading them reports the error.
pub(crate) async fn present(store: &Store, sources: &[String]) -> Result<Present, Failure> {
    let (mut present, mut missing) = (vec![], vec![]);
    let meant = meant(store, sources).await?;
    for Meant { run, part, file } in &meant {
        let is_there = store.size(&Place::Experiment.in_run(run)).await.is_ok();
        match (part, file) {
            (Some(part), _) if !is_there => missing.push(format!("The experiment `{part}` has not started.")),
            (None, Some(file)) if !is_there => return Err(not_run(file)),
            _ => present.push(run.clone()),
        }
    }
    let games = match sources {
        [source] => games_of(store, source).await?,
        _ => None,
    };
    if let (true, Some(file)) = (present.is_empty(), meant.iter().find_map(|meant| meant.file.as_deref())) {
        return Err(not_run(file));
    }
    if present.is_empty() {
        let runs = meant.into_iter().map(|meant| meant.run).collect();
        return Ok(Present { runs, missing: vec![], games });
    }
    Ok(Present { runs: present, missing, games })
}

/// The tournament of a study, if it was begun.
async fn games_of(store: &Store, source: &str) -> Result<Option<RunId>, Failure> {
    let (run, plan) = match plan(source)? {
        Some(Plan::Study(study)) => (run_id(&study.run_id())?, Some(study)),
        Some(_) => return Ok(None),
        None => {
            let run = run_name::find(store, source).await?;
            match run::stored::read_plan(store, &run).await {
                Ok((Plan::Study(study), _)) => (run, Some(study)),
                _ => (run, None),
            }
        }
    };
    if plan.is_none_or(|study| study.tournament.is_none()) {
        return Ok(None);
    }
    let games = run::study::part_run(&run, experiment::GAMES, 0)?;
    Ok(store.size(&Place::Experiment.in_run(&games)).await.is_ok().then_some(games))
}

async fn meant(store: &Store, sources: &[String]) -> Result<Vec<Meant>, Failure> {
    let mut runs = vec![];
    for source in sources {
        let file = Some(source.clone());
        let alone =
            |name: &str| Ok::<_, Failure>(Meant { run: run_id(name)?, part: None, file: file.clone() });
        match plan(source)? {
            None => {
                let run = run_name::find(store, source).await.map_err(|failure| or_file(failure, source))?;
                match run::stored::read_plan(store, &run).await {
                    Ok((Plan::Study(study), _)) => runs.extend(parts(&run, &study, None)?),
                    // Reading it reports the error.
                    _ => runs.push(Meant { run, part: None, file: None }),
                }
            }
            Some(Plan::Single(experiment)) => runs.push(alone(&experiment.run_id())?),
            Some(Plan::Sweep(sweep)) => runs.push(alone(&sweep.run_id())?),
            Some(Plan::Study(study)) => {
                runs.extend(parts(&run_id(&study.run_id())?, &study, file.as_deref())?);
            }
            Some(Plan::Tournament(games)) if games.is_resolved() => runs.push(alone(&games.run_id())?),
            Some(Plan::Tournament(_)) => {
                let message = format!(
                    "the tournament `{source}` takes players from runs, which are part of its run id: name the run, as \
                     in `atoll report RUN`; `atoll runs` lists them"
                );
                return Err(Failure::Usage(message));
            }
        }
    }
    Ok(runs)
}

/// A file whose runs are not in the store.
fn not_run(file: &str) -> Failure {
    Failure::Other(format!("{file} has not been run: run it with `atoll run {file}`"))
}

/// The experiments of a study.
fn parts(study: &RunId, plan: &Study, file: Option<&str>) -> Result<Vec<Meant>, Failure> {
    let meant = |(part, number): (&experiment::Part, usize)| {
        let run = run::study::part_run(study, &part.name, number)?;
        Ok(Meant { run, part: Some(part.name.clone()), file: file.map(str::to_owned) })
    };
    plan.parts.iter().zip(1..).map(meant).collect()
}

/// The same, without sweeps, which keep no states.
pub(crate) async fn levels(store: &Store, sources: &[String]) -> Result<Present, Failure> {
    for source in sources {
        if let Some(Plan::Sweep(_)) = plan(source)? {
            let message = format!("expected an experiment or a study, found the sweep `{source}`");
            return Err(Failure::Usage(message));
        }
    }
    present(store, sources).await
}

/// The store for a command that reads runs by their names or files. Where there is none, the files may be meant that are
/// still to be run.
pub(crate) async fn open(place: &StoreArgument, sources: &[String]) -> Result<Store, Failure> {
    place.open().await.map_err(|failure| match sources {
        [source] => or_file(failure, source),
        _ => failure,
    })
}

/// A failure to find a run, with the file that was probably meant.
fn or_file(failure: Failure, source: &str) -> Failure {
    let missing = match &failure {
        Failure::Store(StoreError::NoSuchFolder { .. }) if Path::new(source).is_file() => {
            return not_run(source);
        }
        Failure::Store(StoreError::NoSuchFolder { .. }) => failure.to_string(),
        Failure::Other(message) if !message.contains("did you mean") => message.clone(),
        _ => return failure,
    };
    match near_experiment(source) {
        Some(file) => Failure::Other(format!("{missing}; did you mean the file `{file}`?")),
        None => failure,
    }
}

fn plan(source: &str) -> Result<Option<Plan>, Failure> {
    let path = Path::new(source);
    if !path.is_file() {
        return Ok(None);
    }
    let (plan, _) = tournament::with_player_files(experiment::load(path, None)?)?;
    Ok(Some(plan))
}
