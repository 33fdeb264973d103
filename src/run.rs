//! `atoll run`, `resume` and `extend`: experiments evolved on this machine.

use crate::clock;
use crate::failure::Failure;
use crate::local::{Drive, Ending};
use crate::progress::Progress;
use crate::signals::Signals;
use crate::store_argument::{StoreArgument, run_id};
use crate::{cells, cluster, study, summary, sweep, tournament};
use archipelago::cell::CellPlan;
use coordinator::keeper::Keeper;
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan};
use proto::v1::SubmitRequest;
use run::RunId;
use run::players::PlayerFiles;
use run::{Opening, RunHead};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::{Nonce, Store};
use worker::Pool;

/// How a run is computed and shown.
#[derive(clap::Args, Clone)]
pub(crate) struct How {
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Threads to use; all cores that this process may use unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// A file that says how the engines of a tournament are started
    #[arg(long, value_name = "FILE")]
    pub(crate) engines: Option<PathBuf>,
    /// End with one JSON object on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

impl How {
    /// The threads to compute on.
    pub(crate) fn pool(&self) -> Result<Pool, Failure> {
        let threads = self.threads.map_or_else(worker::available_threads, usize::from);
        Ok(Pool::new(threads)?)
    }
}

#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// The experiment, sweep, study or tournament to run
    file: PathBuf,
    #[command(flatten)]
    how: How,
    /// A seed in place of the file's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Start anew beside what is there, rather than go on with it
    #[arg(long)]
    fresh: bool,
    /// Evolve in so many worker processes, rather than in this one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

#[derive(clap::Args)]
pub(crate) struct ResumeArguments {
    /// The run to go on with; may be left out where only one is unfinished
    run: Option<String>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub(crate) struct ExtendArguments {
    /// The run to give a longer budget
    run: String,
    #[command(flatten)]
    how: How,
    /// Generations in all
    #[arg(long, value_name = "N")]
    generations: Option<u64>,
    /// Evaluations in all
    #[arg(long, value_name = "N")]
    evaluations: Option<u64>,
    /// The fitness to reach
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    target_fitness: Option<f64>,
    /// Generations without a better champion
    #[arg(long, value_name = "N")]
    stagnation: Option<u64>,
    /// Time in all, such as `8h`
    #[arg(long, value_name = "TIME")]
    wall_time: Option<String>,
}

pub(crate) async fn run(arguments: RunArguments) -> Result<ExitCode, Failure> {
    let plan = experiment::load(&arguments.file, arguments.seed)?;
    let store = arguments.how.store.create().await?;
    let (plan, files) = tournament::look_up_plan(plan, &arguments.how).await?;
    let mut which = if arguments.fresh { Which::Fresh } else { Which::GoOn };
    let mut before = None;
    if let Some(workers) = arguments.workers {
        let start = Instant::now();
        let mut signals = Signals::listen()?;
        let request = request(&arguments, &plan, &files)?;
        let Some(run) = cluster::work_off(&store, request, &arguments.how, workers, &mut signals).await?
        else {
            eprintln!("stopped; what was done is kept: go on with the same command");
            return Ok(ExitCode::from(signals.exit_code()));
        };
        // Everything is in the store by now, where what follows finds it.
        (which, before) = (Which::Worked(run), Some(start.elapsed()));
    }
    match plan {
        Plan::Single(experiment) => single(&store, &experiment, &which, &arguments.how, before).await,
        Plan::Sweep(plan) => sweep::run(&store, &plan, &which, &arguments.how).await,
        Plan::Study(plan) => study::run(&store, &plan, &which, &arguments.how).await,
        Plan::Tournament(plan) => tournament::run(&store, &plan, &files, &which, &arguments.how).await,
    }
}

/// What a coordinator is asked for. Who plays in a tournament has been looked up.
fn request(arguments: &RunArguments, plan: &Plan, files: &PlayerFiles) -> Result<SubmitRequest, Failure> {
    let (file, fresh) = (arguments.file.display().to_string(), arguments.fresh);
    if let Plan::Tournament(games) = plan {
        let (text, players) = (games.text().to_owned(), files.values().cloned().collect());
        return Ok(SubmitRequest { file, text, seed: None, priority: 0, fresh, players });
    }
    let text = experiment::document::read_limited(&arguments.file).map_err(experiment::LoadError::from)?;
    Ok(SubmitRequest { file, text, seed: arguments.seed, priority: 0, fresh, players: vec![] })
}

/// One experiment. Workers may have done it `before`, in that time.
async fn single(
    store: &Store,
    experiment: &Experiment,
    which: &Which,
    how: &How,
    before: Option<Duration>,
) -> Result<ExitCode, Failure> {
    let run = choose_id(store, &experiment.run_id(), which).await?;
    let mut keeper = Keeper::create(store, &run, experiment, None, opening()).await?;
    if keeper.experiment().file() != experiment.file() {
        eprintln!("the run keeps the checkpoints and retention it was begun with");
    }
    let mut signals = Signals::listen()?;
    if before.is_none() {
        announce(&keeper, how);
    }
    let mut drive = drive(&mut keeper, how, &mut signals).await?;
    if let Some(time) = before {
        drive.time = time;
        drive.evaluations = keeper.archipelago().evaluations();
    }
    conclude(&keeper, &drive, how, &signals)
}

pub(crate) async fn resume(arguments: ResumeArguments) -> Result<ExitCode, Failure> {
    let store = arguments.how.store.open().await?;
    let run = match &arguments.run {
        Some(name) => run_id(name)?,
        None => only_unfinished(&store).await?,
    };
    match cells::stored(&store, &run).await? {
        Some(CellPlan::Sweep(plan)) => return sweep::resume(&store, &run, &plan, &arguments.how).await,
        Some(CellPlan::Tournament(plan)) => {
            return tournament::resume(&store, &run, &plan, &arguments.how).await;
        }
        None => {}
    }
    let mut keeper = Keeper::open(&store, &run, opening()).await?;
    let mut signals = Signals::listen()?;
    announce(&keeper, &arguments.how);
    let drive = drive(&mut keeper, &arguments.how, &mut signals).await?;
    conclude(&keeper, &drive, &arguments.how, &signals)
}

pub(crate) async fn extend(arguments: ExtendArguments) -> Result<ExitCode, Failure> {
    let store = arguments.how.store.open().await?;
    let ExtendArguments { generations, evaluations, target_fitness, stagnation, wall_time, .. } = arguments;
    let budget = BudgetKeys { generations, evaluations, target_fitness, stagnation, wall_time };
    if budget == BudgetKeys::default() {
        let message = "expected a longer budget, such as `--generations 2000`, found none";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut keeper = Keeper::open(&store, &run_id(&arguments.run)?, opening()).await?;
    keeper.extend(budget, clock::now()).await?;
    let mut signals = Signals::listen()?;
    announce(&keeper, &arguments.how);
    let drive = drive(&mut keeper, &arguments.how, &mut signals).await?;
    conclude(&keeper, &drive, &arguments.how, &signals)
}

/// What driving a run came to.
pub(crate) struct Driven {
    pub(crate) ending: Ending,
    /// How long it took this time.
    pub(crate) time: Duration,
    /// The evaluations of this time.
    pub(crate) evaluations: u64,
}

/// Drives a run to its end, or until a signal comes.
pub(crate) async fn drive(keeper: &mut Keeper, how: &How, signals: &mut Signals) -> Result<Driven, Failure> {
    let start = Instant::now();
    let islands = keeper.experiment().setting().islands.len();
    let generations = keeper.archipelago().generations();
    if keeper.is_finished() {
        return Ok(Driven { ending: Ending::Finished, time: Duration::ZERO, evaluations: 0 });
    }
    let pool = how.pool()?;
    let before = keeper.archipelago().evaluations();
    let mut progress = Progress::new(islands, generations);
    let drive = Drive::new(keeper, &pool);
    let gauges = drive.gauges();
    let ending = drive.run(&mut progress, signals).await;
    progress.clear();
    let evaluations = gauges.total().evaluations.saturating_sub(before);
    Ok(Driven { ending: ending?, time: start.elapsed(), evaluations })
}

/// Says what is about to happen.
pub(crate) fn announce(keeper: &Keeper, how: &How) {
    let run = keeper.run();
    let done = keeper.archipelago().complete_epochs();
    let folder = how.store.folder.display();
    if keeper.is_finished() {
        eprintln!("run {run} in {folder} is finished already");
    } else if done > 0 {
        let generation = keeper.archipelago().schedule().end_of(done - 1).unwrap_or(0);
        eprintln!("run {run} in {folder}: going on from generation {generation}");
    } else {
        eprintln!("run {run} in {folder}");
    }
}

/// Prints what came out, and tells it by the exit code.
fn conclude(keeper: &Keeper, driven: &Driven, how: &How, signals: &Signals) -> Result<ExitCode, Failure> {
    match driven.ending {
        Ending::Finished => {
            summary::print(keeper, driven, how)?;
            Ok(ExitCode::SUCCESS)
        }
        Ending::Stopped => {
            let (run, flag) = (keeper.run(), how.store.flag());
            eprintln!(
                "stopped; what was done is kept: go on with `atoll resume {run}{flag}` or the same command"
            );
            Ok(ExitCode::from(signals.exit_code()))
        }
    }
}

pub(crate) fn opening() -> Opening {
    let nonce = Nonce(rand::random());
    Opening { nonce, now: clock::now(), version: env!("CARGO_PKG_VERSION").to_owned(), claim: None }
}

/// Which run a plan becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that goes by its name, which may have been begun.
    GoOn,
    /// A new one beside those.
    Fresh,
    /// This one, which workers have worked off.
    Worked(String),
}

impl Which {
    /// Which runs the parts of a study become.
    pub(crate) fn of_parts(&self) -> Self {
        if *self == Self::Fresh { Self::Fresh } else { Self::GoOn }
    }
}

/// The run of a plan that goes by this name.
pub(crate) async fn choose_id(store: &Store, name: &str, which: &Which) -> Result<RunId, Failure> {
    let mut run = match which {
        Which::Worked(run) => run_id(run)?,
        Which::GoOn | Which::Fresh => run_id(name)?,
    };
    let mut number = 1;
    while *which == Which::Fresh && !store.list(&run.folder()).await?.is_empty() {
        number += 1;
        run = run_id(&format!("{name}.{number}"))?;
    }
    Ok(run)
}

async fn only_unfinished(store: &Store) -> Result<RunId, Failure> {
    let mut unfinished = vec![];
    for run in crate::runs::all(store).await? {
        let finished = match cells::stored(store, &run).await? {
            Some(plan) => cells::is_finished(store, &run, plan).await?,
            None => RunHead::read(store, &run).await.is_ok_and(|head| head.recorded().finished.is_some()),
        };
        if !finished {
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
