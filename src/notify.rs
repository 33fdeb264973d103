//! A command of the operator that is run when a run has ended.

use coordinator::Notify;
use report::dashboard::RunRow;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Whether this system has a shell.
pub(crate) fn has_shell() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).any(|folder| folder.join("sh").is_file())
}

/// A notice that runs the command for each run that has ended; none without a command.
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

/// A command and its process group, killed on drop unless the command has ended.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // What has ended meanwhile needs no signal.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs a command with the run as JSON on its stdin. When the future is dropped, the whole process group is killed: killing the
/// shell alone would leave the rest of a pipeline behind.
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
        .process_group(0)
        .spawn()?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read its stdin.
        let _ = stdin.write_all(format!("{told}\n").as_bytes()).await;
    }
    let status = child.wait().await;
    // From here on the process id may be reused.
    group.0 = None;
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// Whether a process runs: one that has ended but is not waited for does not.
    fn runs(process: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    }

    async fn until(what: &str, mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < Duration::from_mins(1), "waited in vain for {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn read(file: &Path) -> String {
        std::fs::read_to_string(file).unwrap_or_default().trim().to_owned()
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_ends_with_its_pipeline() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        let command = format!("sh -c 'echo $$ > {}; exec sleep 600' | cat", file.display());
        let row = RunRow::default();
        tokio::select! {
            _ = run_command(&command, &row) => panic!("it takes ten minutes"),
            () = until("a process of the pipeline", || !read(&file).is_empty()) => {}
        }
        until("the end of the pipeline", || !runs(&read(&file))).await;
    }

    #[tokio::test]
    async fn what_a_command_leaves_behind_on_purpose_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("process");
        let command = format!("sleep 600 > /dev/null & echo $! > {}", file.display());
        assert!(run_command(&command, &RunRow::default()).await.unwrap().success());
        let left = read(&file);
        assert!(runs(&left));
        let pid = Pid::from_raw(left.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
}
