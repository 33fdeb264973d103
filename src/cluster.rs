//! `atoll run --workers N`: a coordinator in this process, and workers as processes of their own, on loopback.
//!
//! When the run has ended they are gone, and what they made is in the store as if it had been made here: the command
//! goes on as it does without workers, and finds everything done.

use crate::clock;
use crate::failure::Failure;
use crate::remote::Remote;
use crate::run::{How, opening};
use crate::signals::Signals;
use coordinator::lease::Terms;
use coordinator::{Ending, Settings};
use proto::v1;
use proto::v1::run_status::State;
use std::process::Stdio;
use store::Store;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// The most runs at a time: a study is one and its experiments are others.
const MAX_RUNS: usize = 10_000;

/// Has a plan worked off by worker processes. Answers whether it came to its end.
pub(crate) async fn work_off(
    store: &Store,
    request: v1::SubmitRequest,
    how: &How,
    workers: u16,
    signals: &mut Signals,
) -> Result<bool, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(cannot_listen)?;
    let url = format!("http://{}", listener.local_addr().map_err(cannot_listen)?);
    let opening = opening();
    let settings = Settings {
        terms: Terms::default(),
        nonce: opening.nonce,
        version: opening.version,
        exit_when_done: true,
        max_runs: MAX_RUNS,
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move { drop(stopped.await) };
    let incoming = coordinator::connections(listener);
    let coordinator = coordinator::run(incoming, None, store.clone(), settings, clock::now, shutdown);
    let mut coordinator = std::pin::pin!(coordinator);
    let mut remote = Remote::new(&url)?;
    let watched = async {
        let run = remote.submit(request).await?;
        // Workers come after the run: without one, they would be told that there is nothing to do.
        let workers = start(&url, how, workers)?;
        let status = remote.watch(&run).await?;
        match status.state() {
            State::Failed => Err(Failure::Other(format!("run {run} failed: {}", status.reason))),
            _ => Ok(workers),
        }
    };
    let mut watched = std::pin::pin!(watched);
    let mut children = vec![];
    loop {
        tokio::select! {
            ending = &mut coordinator => {
                wait_for(children).await;
                return Ok(ending? == Ending::Done);
            }
            result = &mut watched, if children.is_empty() => children = result?,
            () = signals.asked() => {
                eprintln!("stopping …");
                drop(stop);
                let ending = coordinator.await?;
                return Ok(ending == Ending::Done);
            }
        }
    }
}

fn cannot_listen(error: std::io::Error) -> Failure {
    Failure::Other(format!("cannot listen on loopback: {error}"))
}

/// Starts the workers; they share this machine's threads.
fn start(url: &str, how: &How, workers: u16) -> Result<Vec<Child>, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::Other(format!("where am I? {error}")))?;
    let all = how.threads.map_or_else(worker::available_threads, usize::from);
    let threads = (all / usize::from(workers)).max(1);
    let start = |number: u16| {
        Command::new(&program)
            .args(["worker", "--coordinator", url, "--give-up-after", "30s"])
            .args(["--threads", &threads.to_string(), "--name", &format!("worker-{number}")])
            .env("ATOLL_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::Other(format!("cannot start a worker: {error}")))
    };
    (1..=workers).map(start).collect()
}

/// Waits for workers that know that they may leave.
async fn wait_for(workers: Vec<Child>) {
    for mut worker in workers {
        let _ = tokio::time::timeout(std::time::Duration::from_secs(10), worker.wait()).await;
    }
}
