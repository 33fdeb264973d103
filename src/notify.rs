//! A command of the operator that is run when a run has ended.

use coordinator::Notify;
use report::dashboard::RunRow;
use serde_json::json;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// What runs a command for each run that has ended; nothing if there is none.
pub(crate) fn by_command(command: String) -> Option<Notify> {
    if command.is_empty() {
        return None;
    }
    Some(Arc::new(move |row| {
        let command = command.clone();
        Box::pin(async move {
            match run_command(&command, &row).await {
                Ok(status) if status.success() => {}
                Ok(status) => {
                    tracing::warn!(run = row.run, %status, "the command of `notify_command` failed");
                }
                Err(error) => {
                    tracing::warn!(run = row.run, %error, "the command of `notify_command` cannot be run");
                }
            }
        })
    }))
}

/// Runs a command with what there is to say about a run on its stdin. It ends when it is not waited for any more.
async fn run_command(command: &str, row: &RunRow) -> io::Result<ExitStatus> {
    let RunRow { run, kind, state, reason, digest, best, elapsed_milliseconds, .. } = row;
    let told = json!({
        "run": run, "kind": kind, "state": state, "reason": reason, "digest": digest, "best": best,
        "seconds": *elapsed_milliseconds as f64 / 1000.0,
    });
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("ATOLL_RUN", run)
        .env("ATOLL_STATE", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that reads nothing is well too.
        let _ = stdin.write_all(format!("{told}\n").as_bytes()).await;
    }
    child.wait().await
}
