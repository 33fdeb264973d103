//! A run driven to its end in this process: a coordinator without a server, and a worker that calls it directly.
//!
//! It is the state machine that `atoll coordinator` serves, so whatever happens to a run here and there is the same.

use crate::cells;
use crate::clock;
use crate::dashboard;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Games, exhibit};
use crate::run::How;
use crate::signals::Signals;
use crate::store_argument::run_id;
use crate::terminal::message;
use coordinator::dashboard::serve_cluster;
use coordinator::{Cluster, Rejection};
use experiment::file::BudgetKeys;
use experiment::{Plan, duration};
use proto::v1;
use proto::v1::run_status::{Kind, State};
use report::text::plain;
use run::{LabelChange, RunId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Nonce, Store};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use worker::{Config, Identity, SessionEnd, WorkerError};

/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(100);
/// How long the store may take to write what is not written yet.
const WRITING_UP: Duration = Duration::from_secs(30);

/// What is to be done.
pub(crate) enum Wish {
    /// A plan; the players of a tournament were looked up, and their files come along.
    Submit { plan: Box<Plan>, files: Vec<bytes::Bytes>, fresh: bool, labels: LabelChange },
    /// A run of the store.
    Resume(RunId),
    /// A run of the store, with another budget.
    Extend(RunId, BudgetKeys),
}

/// How a drive came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The run is finished.
    Finished,
    /// A signal stopped it; what was done is kept.
    Stopped,
}

/// The result of driving a run.
pub(crate) struct Driven {
    pub(crate) run: RunId,
    pub(crate) ending: Ending,
    /// How long it took this time.
    pub(crate) time: Duration,
    /// How long it was worked on in all, as far as that is recorded: plans of cells record the sessions that ended
    /// them.
    pub(crate) elapsed: Duration,
    /// The evaluations before this time.
    pub(crate) before: u64,
}

impl Driven {
    /// How long it was worked on in all: what is recorded, as reports show it. Of what was resumed not less than this time.
    pub(crate) fn total(&self) -> Duration {
        if self.before == 0 && !self.elapsed.is_zero() { self.elapsed } else { self.elapsed.max(self.time) }
    }

    /// How long it was worked on this time.
    pub(crate) fn session(&self) -> Duration {
        if self.before == 0 { self.total() } else { self.time }
    }

    /// The same for people; if it was resumed, with the time since then.
    pub(crate) fn shown_time(&self) -> String {
        let time = duration::show(self.session());
        if self.before > 0 { format!("{} ({time} this time)", duration::show(self.total())) } else { time }
    }

    /// The time of a plan of cells, whose earlier time is not recorded.
    pub(crate) fn shown_session(&self) -> String {
        let time = duration::show(self.session());
        if self.before > 0 { format!("{time} this time") } else { format!("in {time}") }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Diagnostics(report) => Self::Diagnostics(report),
            Rejection::Player(error) => Self::LookUp(error),
            Rejection::Name(error) => Self::Name(error),
            Rejection::Keep(error) => Self::Keep(error),
            Rejection::Unsuitable { .. } => Self::Usage(rejection.to_string()),
            Rejection::Succeeded => Self::Succeeded,
            rejection => Self::Other(rejection.to_string()),
        }
    }
}

/// Drives a run in this process, until it has ended or a signal comes.
pub(crate) async fn here(
    store: &Store,
    wish: Wish,
    how: &How,
    signals: &mut Signals,
) -> Result<Driven, Failure> {
    let start = Instant::now();
    let nonce = Nonce(rand::random());
    let version = env!("CARGO_PKG_VERSION");
    let (cluster, background) = coordinator::start_local(store.clone(), nonce, version, clock::now).await?;
    let _dashboard = serve_dashboard(&cluster, how).await?;
    let run = begin(&cluster, wish).await?;
    let before = cluster.status(run.as_str())?;
    announce(&before, how);
    let was_open = !has_ended(&before);
    let worked = if was_open { work(store, &cluster, &run, how, signals).await } else { Ok(()) };
    if let Err(failure) = worked {
        background.abort();
        return Err(failure);
    }
    let is_stopped = cluster.stop(background, WRITING_UP).await;
    if let Some(error) = cluster.take_trouble() {
        return Err(error.into());
    }
    if !is_stopped {
        return Err(Failure::Other("the store does not respond: run the same command again".to_owned()));
    }
    let after = cluster.status(run.as_str())?;
    let ending = match after.state() {
        State::Finished => Ending::Finished,
        State::Failed => return Err(Failure::Other(format!("run {run} failed: {}", plain(&after.reason)))),
        State::Cancelled => return Err(Failure::Other(format!("run {run} was cancelled"))),
        _ => Ending::Stopped,
    };
    let before = before.standing.map_or(0, |standing| standing.evaluations);
    let elapsed = Duration::from_millis(after.elapsed_milliseconds);
    Ok(Driven { run, ending, time: start.elapsed(), elapsed, before })
}

/// A task that ends with its owner.
struct Aborting(JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Serves the dashboard while the run lasts, if that is asked for.
async fn serve_dashboard(cluster: &Cluster, how: &How) -> Result<Option<Aborting>, Failure> {
    let Some(address) = &how.dashboard else { return Ok(None) };
    let (listener, url) = dashboard::listen(address).await?;
    message!("dashboard at {url}");
    let forever = Box::pin(std::future::pending());
    let served = serve_cluster(listener, cluster.clone(), Some(exhibit(Games::Played)), clock::now, forever);
    Ok(Some(Aborting(tokio::spawn(served))))
}

async fn begin(cluster: &Cluster, wish: Wish) -> Result<RunId, Failure> {
    match wish {
        Wish::Submit { plan, files, fresh, labels } => {
            let run = run_id(&cluster.submit(*plan, files, None, fresh).await?)?;
            if !labels.is_empty() {
                cluster.label(run.as_str(), &labels).await?;
            }
            Ok(run)
        }
        Wish::Resume(run) => {
            cluster.resume(&run).await?;
            Ok(run)
        }
        Wish::Extend(run, budget) => {
            cluster.list(&run).await?;
            cluster.extend(run.as_str(), budget).await?;
            Ok(run)
        }
    }
}

pub(crate) fn has_ended(status: &v1::RunStatus) -> bool {
    matches!(status.state(), State::Finished | State::Failed | State::Cancelled)
}

/// Shows what is about to happen.
fn announce(status: &v1::RunStatus, how: &How) {
    let (run, folder) = (&status.run, how.store.folder().display());
    let done = status.standing.map_or(0, |standing| standing.generation);
    let goal = status.goal.unwrap_or(0);
    match status.kind() {
        Kind::Sweep => message!("sweep {run}: {goal} cells, {done} done"),
        Kind::Tournament => message!("tournament {run}: {goal} batches of games, {done} done"),
        _ if status.state() == State::Finished => message!("run {run} in {folder} is finished already"),
        Kind::Evolution if done > 0 => message!("run {run} in {folder}: resuming at generation {done}"),
        _ => message!("run {run} in {folder}"),
    }
}

/// Has a worker in this process work until the run has ended, or a signal comes.
async fn work(
    store: &Store,
    cluster: &Cluster,
    run: &RunId,
    how: &How,
    signals: &mut Signals,
) -> Result<(), Failure> {
    let memory_bytes = crate::worker::memory_for_work();
    let engines = crate::engines::read(how.engines.as_deref())?;
    cells::check_players(store, run, &engines).await?;
    let config = Config {
        identity: Identity {
            id: "local".to_owned(),
            name: "local".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            give_up_after: None,
            seed: 0,
            look: None,
        },
        cache_bytes: (memory_bytes / 8).min(256 << 20) as usize,
        // The coordinator ends with this process: there is no other one to deliver to.
        undurable_bytes: 0,
        memory_bytes,
        engines,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move { drop(stopped.await) };
    let calls = Arc::new(cluster.clone());
    let mut working = tokio::spawn(worker::run(config, calls, how.pool()?, shutdown));
    let status = cluster.status(run.as_str())?;
    let mut progress = Progress::new(&status);
    let mut stop = Some(stop);
    let ended = loop {
        tokio::select! {
            ended = &mut working => break ended,
            () = tokio::time::sleep(SHOW) => {
                if let Some(error) = cluster.take_trouble() {
                    working.abort();
                    progress.clear();
                    return Err(error.into());
                }
                show(cluster, run, &mut progress);
            }
            () = signals.asked_or_again(stop.is_none()) => {
                let Some(stop) = stop.take() else {
                    // The second signal does not wait.
                    working.abort();
                    progress.clear();
                    return Ok(());
                };
                progress.say("stopping at the next generation …");
                drop(stop);
            }
        }
    };
    show(cluster, run, &mut progress);
    progress.clear();
    let end: Result<SessionEnd, WorkerError> =
        ended.map_err(|error| Failure::Other(format!("the worker of this process: {error}")))?;
    end.map(|_| ()).map_err(Failure::from)
}

fn show(cluster: &Cluster, run: &RunId, progress: &mut Progress) {
    if let Ok(status) = cluster.status(run.as_str()) {
        progress.show(&status);
    }
}
