//! `atoll run`, `resume` and `extend`: experiments evolved on this machine.

use crate::clock;
use crate::drive::{self, Driven, Ending, Wish};
use crate::failure::Failure;
use crate::protection::Credentials;
use crate::run_name;
use crate::signals::Signals;
use crate::store_argument::StoreArgument;
use crate::terminal::message;
use crate::{cells, cluster, remote, served, study, summary, sweep, tournament};
use experiment::document::ReadError;
use experiment::file::BudgetKeys;
use experiment::{LoadError, Plan};
use proto::v1::SubmitRequest;
use run::players::PlayerFiles;
use run::{FinishedRun, Label, LabelChange, Opening, Owner, Recorded, RunId, Status, StoredRun};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::{Nonce, Store};
use worker::Pool;

/// How a run is computed and shown.
#[derive(clap::Args, Clone)]
pub(crate) struct How {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Number of threads [default: all cores that this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// File that defines how to start the engines of a tournament
    #[arg(long, value_name = "FILE")]
    pub(crate) engines: Option<PathBuf>,
    /// Print the result as one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve the dashboard of the run while it lasts, on a loopback address [default: any free port]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub(crate) dashboard: Option<String>,
}

impl How {
    /// The threads to compute on.
    pub(crate) fn pool(&self) -> Result<Pool, Failure> {
        pool(self.threads)
    }
}

/// This number of threads, or all that the process may use.
pub(crate) fn pool(threads: Option<u16>) -> Result<Pool, Failure> {
    let threads = threads.map_or_else(worker::available_threads, usize::from);
    Ok(Pool::new(threads)?)
}

#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// The experiment, sweep, study or tournament to run
    file: PathBuf,
    #[command(flatten)]
    how: How,
    /// Override the seed of the file
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// Start a new run instead of resuming
    #[arg(long)]
    fresh: bool,
    /// Add a label to the run; may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<Label>,
    /// Evolve in N worker processes instead of in this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

/// A seed as it was typed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| i64::try_from(*seed).is_ok());
    seed.ok_or_else(|| format!("expected a whole number from 0 to {}", i64::MAX))
}

#[derive(clap::Args)]
pub(crate) struct ResumeArguments {
    /// The run to resume; optional if only one is unfinished
    run: Option<String>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub(crate) struct ExtendArguments {
    /// The run to extend
    run: String,
    #[command(flatten)]
    how: How,
    /// Extend a run of a coordinator instead of one of a local store
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    /// Total number of generations
    #[arg(long, value_name = "N")]
    generations: Option<u64>,
    /// Total number of evaluations
    #[arg(long, value_name = "N")]
    evaluations: Option<u64>,
    /// Fitness at which to stop
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    target_fitness: Option<f64>,
    /// Generations without a better champion after which to stop
    #[arg(long, value_name = "N")]
    stagnation: Option<u64>,
    /// Total time, for example `8h`
    #[arg(long, value_name = "TIME")]
    wall_time: Option<String>,
}

pub(crate) async fn run(arguments: RunArguments) -> Result<ExitCode, Failure> {
    let how = &arguments.how;
    let plan = match experiment::load(&arguments.file, arguments.seed) {
        Err(LoadError::Read(missing @ ReadError::Missing { .. })) => {
            return Err(with_run_of_that_name(missing, &arguments.file, &how.store).await);
        }
        plan => plan?,
    };
    let store = how.store.create().await?;
    let (plan, files) = tournament::look_up_plan(plan, how).await?;
    let mut signals = Signals::listen()?;
    let driven = if let Some(workers) = arguments.workers {
        cells::check_engines(&plan, &crate::engines::read(how.engines.as_deref())?)?;
        let request = request(&arguments, &plan, &files)?;
        cluster::work_off(&store, request, how, workers, &mut signals).await?
    } else {
        if !arguments.fresh {
            let run = run_name::of(&plan)?;
            served::check_idle(&store, &run).await?;
            served::check_unlisted(&store, &run, false).await?;
        }
        let files = files.into_values().collect();
        let labels = LabelChange::adding(arguments.labels);
        let wish = Wish::Submit { plan: Box::new(plan.clone()), files, fresh: arguments.fresh, labels };
        Some(drive::here(&store, wish, how, &mut signals).await?)
    };
    if let Some(driven) = driven {
        return conclude(&store, plan, &driven, how, &signals).await;
    }
    message!("stopped; all completed work is kept: resume with the same command");
    Ok(ExitCode::from(signals.exit_code()))
}

/// The failure to read a file that is missing: perhaps a run was named, which is resumed by another command.
async fn with_run_of_that_name(missing: ReadError, file: &Path, place: &StoreArgument) -> Failure {
    let id = file.to_str().and_then(|name| RunId::new(name).ok());
    if let (Some(id), Ok(store)) = (id, place.open().await)
        && run::stored::is_run(&store, &id).await.unwrap_or(false)
    {
        let flag = place.flag();
        return Failure::Config(format!(
            "{missing}; resume the run of this name with `atoll resume {id}{flag}`"
        ));
    }
    LoadError::Read(missing).into()
}

/// What a coordinator is asked for. Who plays in a tournament has been looked up.
fn request(arguments: &RunArguments, plan: &Plan, files: &PlayerFiles) -> Result<SubmitRequest, Failure> {
    let (file, fresh) = (arguments.file.display().to_string(), arguments.fresh);
    let labels = remote::strings(&arguments.labels);
    let with_files = match plan {
        Plan::Tournament(games) => Some(games.text().to_owned()),
        Plan::Study(study) if !files.is_empty() => Some(study.text.clone()),
        _ => None,
    };
    if let Some(text) = with_files {
        let players = files.values().cloned().collect();
        return Ok(SubmitRequest { file, text, seed: None, priority: None, fresh, players, labels });
    }
    let text = experiment::document::read_limited(&arguments.file).map_err(experiment::LoadError::from)?;
    Ok(SubmitRequest { file, text, seed: arguments.seed, priority: None, fresh, players: vec![], labels })
}

pub(crate) async fn resume(arguments: ResumeArguments) -> Result<ExitCode, Failure> {
    let store = arguments.how.store.open().await?;
    let run = match &arguments.run {
        Some(name) => run_name::find(&store, name).await?,
        None => only_unfinished(&store).await?,
    };
    drive_stored(&store, Wish::Resume(run.clone()), &run, &arguments.how).await
}

pub(crate) async fn extend(arguments: ExtendArguments) -> Result<ExitCode, Failure> {
    let ExtendArguments { generations, evaluations, target_fitness, stagnation, wall_time, .. } = &arguments;
    let budget = BudgetKeys {
        generations: *generations,
        evaluations: *evaluations,
        target_fitness: *target_fitness,
        stagnation: *stagnation,
        wall_time: wall_time.clone(),
    };
    if budget == BudgetKeys::default() {
        let message = "expected a new budget, found none: give at least one of `--generations`, `--evaluations`, \
                       `--target-fitness`, `--stagnation` and `--wall-time`";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(url) = remote::chosen(arguments.coordinator.as_ref(), &arguments.how.store) {
        let json = arguments.how.json;
        return remote::extend(&url, &arguments.credentials, &arguments.run, &budget, json).await;
    }
    let store = arguments.how.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    drive_stored(&store, Wish::Extend(run.clone(), budget), &run, &arguments.how).await
}

/// Drives a run that is in the store.
async fn drive_stored(store: &Store, wish: Wish, run: &RunId, how: &How) -> Result<ExitCode, Failure> {
    served::check_idle(store, run).await?;
    served::check_unlisted(store, run, matches!(wish, Wish::Extend(..))).await?;
    let (plan, _) = run::stored::read_plan(store, run).await?;
    let mut signals = Signals::listen()?;
    let driven = drive::here(store, wish, how, &mut signals).await?;
    conclude(store, plan, &driven, how, &signals).await
}

/// Prints what came out, and returns the exit code that says so.
async fn conclude(
    store: &Store,
    plan: Plan,
    driven: &Driven,
    how: &How,
    signals: &Signals,
) -> Result<ExitCode, Failure> {
    let (run, flag) = (&driven.run, how.store.flag());
    if driven.ending == Ending::Stopped {
        message!(
            "stopped; all completed work is kept: resume with `atoll resume {run}{flag}` or the same command"
        );
        return Ok(ExitCode::from(signals.exit_code()));
    }
    match plan {
        Plan::Single(experiment) => {
            let finished = FinishedRun::read(store, run).await?;
            if finished.experiment.file() != experiment.file() {
                message!("the run keeps the checkpoint and retention settings it was started with");
            }
            summary::print(&finished, driven, how)?;
            Ok(ExitCode::SUCCESS)
        }
        Plan::Sweep(plan) => sweep::present(store, &plan, driven, how).await,
        Plan::Study(plan) => study::present(store, run, &plan, how).await,
        Plan::Tournament(_) => tournament::present(store, driven, how).await,
    }
}

pub(crate) fn opening() -> Opening {
    let (nonce, now) = (Nonce(rand::random()), clock::now());
    let owner = Owner::this_process(env!("CARGO_PKG_VERSION"), now);
    Opening { nonce, now, owner, claim: None }
}

async fn only_unfinished(store: &Store) -> Result<RunId, Failure> {
    let mut unfinished: Vec<RunId> = vec![];
    for run in crate::runs::all(store).await? {
        // The parts of a study follow it by their names, and are resumed with it.
        let is_part = |study: &RunId| run.as_str().starts_with(&format!("{study}."));
        if unfinished.iter().any(is_part) {
            continue;
        }
        // What was cancelled continues only if it is asked for by its name.
        let has_ended =
            |recorded: &Recorded| recorded.finished.is_some() || recorded.status == Status::Cancelled;
        let stored = StoredRun::read(store, &run).await;
        if !stored.is_ok_and(|stored| stored.damage().is_empty() && has_ended(stored.recorded())) {
            unfinished.push(run);
        }
    }
    match unfinished.as_slice() {
        [run] => Ok(run.clone()),
        [] => Err(Failure::Usage("there is no unfinished run in this store".to_owned())),
        several => {
            let names: Vec<&str> = several.iter().map(RunId::as_str).collect();
            Err(Failure::Usage(format!("expected the name of a run; unfinished are: {}", names.join(", "))))
        }
    }
}
