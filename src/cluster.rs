//! `atoll run --workers N`: a coordinator in this process, and workers as processes of their own, on loopback.
//!
//! When the run has ended they are gone, and what they made is in the store as if it had been made here: the command
//! continues as it does without workers, and finds everything done.

use crate::clock;
use crate::dashboard;
use crate::drive::{self, Driven};
use crate::failure::Failure;
use crate::protection::Credentials;
use crate::remote::{Remote, SILENCE};
use crate::report::{Games, exhibit};
use crate::run::{How, opening};
use crate::served;
use crate::signals::Signals;
use crate::store_argument::run_id;
use crate::terminal::message;
use coordinator::dashboard::DashboardSettings;
use coordinator::{ConnectionLimits, CoordinatorSettings, ServeEnding, opened};
use proto::v1;
use run::Lock;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;
use store::Store;
use store::promises::Trial;
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};

/// The most runs at a time: a study is one and its experiments are others.
const MAX_RUNS: usize = 10_000;

/// How long workers may take to leave.
const LEAVING: Duration = Duration::from_secs(10);

/// Has a plan worked off by worker processes. Answers the run if it came to its end.
pub(crate) async fn work_off(
    store: &Store,
    request: v1::SubmitRequest,
    how: &How,
    workers: u16,
    signals: &mut Signals,
) -> Result<Option<Driven>, Failure> {
    let start = Instant::now();
    if let Some(server) = Lock::server(store)? {
        let folder = how.store.folder().display();
        return Err(Failure::Other(format!(
            "the store {folder} is served by the coordinator, {server}: submit the run there, or stop it first"
        )));
    }
    served::check_free(store, how).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| cannot_listen(&error))?;
    let url = format!("http://{}", listener.local_addr().map_err(|error| cannot_listen(&error))?);
    let opening = opening();
    let settings = CoordinatorSettings {
        exit_when_done: true,
        max_runs: MAX_RUNS,
        // Other runs of the store were not asked for.
        only_submitted: true,
        // A folder was looked at when it was opened, and serves this machine alone.
        trial: store.folder_on_disk().is_none().then_some(Trial::SHORT),
        dashboard: DashboardSettings {
            exhibit: Some(exhibit(Games::Played)),
            ..DashboardSettings::default()
        },
        // Its workers are its own processes: nothing is audited.
        ..CoordinatorSettings::new(opening.nonce, &opening.owner.version)
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = Box::pin(async move { drop(stopped.await) });
    let limits = ConnectionLimits::default();
    let http = match &how.dashboard {
        Some(address) => {
            let (listener, url) = dashboard::listen(address).await?;
            message!("dashboard at {url}");
            Some(listener)
        }
        None => None,
    };
    let mut coordinator = coordinator::serve_listener(
        listener,
        limits,
        http,
        opened(store.clone()),
        settings,
        clock::now,
        shutdown,
    );
    let mut remote = Remote::new(&url, &Credentials::default())?;
    let mut submitting = Box::pin(remote.submit(request));
    let run = tokio::select! {
        run = &mut submitting => run?,
        ending = &mut coordinator => {
            let ending = ending?;
            // A run that is refused leaves nothing to do: the reason is on its way.
            let refused = tokio::time::timeout(LEAVING, submitting).await.ok().and_then(Result::err);
            return Err(refused.unwrap_or_else(|| gone_early(ending)));
        }
        () = signals.asked() => return Ok(None),
    };
    drop(submitting);
    message!("run {run} in {}", how.store.folder().display());
    // Workers start after the run: before it, the coordinator would end them because there is no work.
    let before = tokio::select! {
        status = remote.look(&run) => status?,
        // It has nothing to do if the run has ended.
        ending = &mut coordinator => {
            let done = Done { start, before: v1::RunStatus::default(), after: None };
            return finished(&run, ending?, &done);
        }
    };
    if drive::has_ended(&before) {
        // The coordinator has nothing to hand out.
        let done = Done { start, before, after: None };
        tokio::select! {
            ending = &mut coordinator => return finished(&run, ending?, &done),
            // It goes on if more is submitted meanwhile.
            () = signals.asked() => {}
        }
        drop(stop);
        return finished(&run, coordinator.await?, &done);
    }
    let mut done = Done { start, before, after: None };
    let (mut children, _alive) = start_workers(&url, how, workers)?;
    let mut watched = std::pin::pin!(remote.watch(&run, SILENCE));
    loop {
        tokio::select! {
            status = &mut watched, if done.after.is_none() => done.after = Some(status?),
            ending = &mut coordinator => {
                wait_for(&mut children).await;
                return finished(&run, ending?, &done);
            }
            () = all_gone(&mut children) => {
                // They leave when the coordinator reports that all runs have ended, which it knows a moment later.
                let ending = tokio::time::timeout(LEAVING, &mut coordinator).await;
                let early = "the workers ended before the run; resume with the same command";
                let ending = ending.map_err(|_| Failure::Other(early.to_owned()))??;
                return finished(&run, ending, &done);
            }
            () = signals.asked() => break,
        }
    }
    message!("stopping at the next generation …");
    terminate(&children);
    tokio::select! {
        ending = &mut coordinator => return finished(&run, ending?, &done),
        () = wait_for(&mut children) => {}
    }
    drop(stop);
    finished(&run, coordinator.await?, &done)
}

/// What was done of a run: since when, and where it stood before and after.
struct Done {
    start: Instant,
    before: v1::RunStatus,
    after: Option<v1::RunStatus>,
}

/// The run, if everything came to its end; an error if it failed.
fn finished(run: &str, ending: ServeEnding, done: &Done) -> Result<Option<Driven>, Failure> {
    match ending {
        ServeEnding::Done => Ok(Some(Driven {
            run: run_id(run)?,
            ending: drive::Ending::Finished,
            time: done.start.elapsed(),
            elapsed: Duration::from_millis(done.after.as_ref().unwrap_or(&done.before).elapsed_milliseconds),
            before: done.before.standing.map_or(0, |standing| standing.evaluations),
        })),
        ServeEnding::Stopped => Ok(None),
        ending => Err(gone_early(ending)),
    }
}

/// Why a coordinator ended without a result.
fn gone_early(ending: ServeEnding) -> Failure {
    Failure::Other(match ending {
        ServeEnding::Failed(reason) | ServeEnding::Cancelled(reason) | ServeEnding::Refused(reason) => reason,
        ServeEnding::Succeeded => {
            "another coordinator has taken this store over, and continues its runs".to_owned()
        }
        ServeEnding::Done | ServeEnding::Stopped | ServeEnding::Abandoned(_) => {
            "the coordinator exited before the run started".to_owned()
        }
    })
}

fn cannot_listen(error: &std::io::Error) -> Failure {
    Failure::Other(format!("cannot listen on loopback: {error}"))
}

/// Starts the workers; they share this machine's threads and memory. They end when this process does, however that happens: each
/// reads the other end of a pipe.
fn start_workers(url: &str, how: &How, workers: u16) -> Result<(Vec<Child>, Vec<ChildStdin>), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Other(format!("cannot locate the atoll executable: {error}")))?;
    let all = how.threads.map_or_else(worker::available_threads, usize::from);
    let threads = (all / usize::from(workers)).max(1);
    let memory = (crate::worker::memory_for_work() / u64::from(workers)) >> 20;
    // What the shell says about other clusters is not for these.
    let endgame = std::env::var_os("ATOLL_ENDGAME").filter(|folder| !folder.is_empty());
    let ours: Vec<OsString> =
        std::env::vars_os().map(|(name, _)| name).filter(|name| is_ours(name)).collect();
    let start = |number: u16| {
        let mut command = Command::new(&program);
        for name in &ours {
            command.env_remove(name);
        }
        command
            .args(["worker", "--coordinator", url, "--of-parent", "--give-up-after", "30s"])
            .args(["--threads", &threads.to_string(), "--name", &format!("worker-{number}")])
            .args(["--memory-mib", &memory.to_string()])
            .args(how.engines.iter().flat_map(|file| [OsStr::new("--engines"), file.as_os_str()]))
            .args(endgame.iter().flat_map(|folder| [OsStr::new("--endgame"), folder]))
            .env("ATOLL_LOG", "warn")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::Other(format!("cannot start a worker: {error}")))
    };
    let mut children: Vec<Child> = (1..=workers).map(start).collect::<Result<_, Failure>>()?;
    // Waiting for a child closes what it still has.
    let alive = children.iter_mut().filter_map(|child| child.stdin.take()).collect();
    Ok((children, alive))
}

/// Whether a variable of the environment is a setting of Atoll.
fn is_ours(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("ATOLL_")
}

/// Asks the workers to stop, so that they hand back what they hold.
fn terminate(workers: &[Child]) {
    let ids = workers.iter().filter_map(|worker| Pid::from_raw(worker.id()? as i32));
    for id in ids {
        // One that is gone already needs no asking.
        let _ = kill_process(id, Signal::TERM);
    }
}

/// Waits until there is no worker any more, for whatever reason.
async fn all_gone(workers: &mut [Child]) {
    for worker in workers {
        let _ = worker.wait().await;
    }
}

/// Waits for workers that know that they should leave.
async fn wait_for(workers: &mut [Child]) {
    let _ = tokio::time::timeout(LEAVING, all_gone(workers)).await;
}
