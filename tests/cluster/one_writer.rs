//! A run has one writer: whoever comes second is refused, and told who was first.

use crate::process::{EXPERIMENT, Folder, Process, atoll, text, wait_until};
use rustix::process::Signal;
use std::process::{Output, Stdio};

/// Far longer than a test takes.
fn long() -> String {
    EXPERIMENT.replace("3000", "100000000")
}

/// Starts a command that ends with the test.
fn start(folder: &Folder, arguments: &[&str]) -> Process {
    let mut command = atoll();
    command.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    Process(command.spawn().unwrap())
}

/// The run that something was written of.
fn written_run(folder: &Folder) -> String {
    let mut run = None;
    wait_until("something is written of the run", || {
        let runs = std::fs::read_dir(folder.path().join("atoll-store/runs"));
        let mut runs = runs.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        run = runs.find(|run| run.join("commits").is_dir());
        run.is_some()
    });
    run.unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

fn refused(output: &Output, first: u32) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("process {first} ")), "expected process {first} to be named in {said}");
}

#[test]
fn a_second_start_of_a_run_is_refused_and_names_the_first() {
    let folder = Folder::new();
    let file = folder.file("long.toml", &long());
    let first = start(&folder, &["run", &file]);
    let run = written_run(&folder);
    refused(&folder.atoll(&["run", &file]), first.0.id());
    refused(&folder.atoll(&["resume", &run]), first.0.id());
    refused(&folder.atoll(&["run", &file, "--workers", "1"]), first.0.id());
}

#[test]
fn a_run_with_workers_is_not_taken_over_by_a_second_start() {
    let folder = Folder::new();
    let file = folder.file("long.toml", &long());
    let mut first = start(&folder, &["run", &file, "--workers", "1"]);
    let run = written_run(&folder);
    refused(&folder.atoll(&["run", &file, "--workers", "1"]), first.0.id());
    refused(&folder.atoll(&["run", &file]), first.0.id());
    refused(&folder.atoll(&["resume", &run]), first.0.id());
    assert!(first.0.try_wait().unwrap().is_none(), "the first one goes on");
    // Its workers leave with it.
    first.signal(Signal::TERM);
    first.ended();
}

#[test]
fn resuming_beside_a_live_coordinator_is_refused() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&long());
    written_run(&folder);
    let first = coordinator.process.0.id();
    refused(&folder.atoll(&["resume", &run]), first);
    refused(&folder.atoll(&["extend", &run, "--generations", "200000000"]), first);
    // What the coordinator knows nothing of may be run beside it.
    let other = folder.file("other.toml", &EXPERIMENT.replace("3000", "30"));
    assert!(folder.atoll(&["run", &other]).status.success());
}

#[test]
fn a_coordinator_leaves_a_run_alone_that_another_process_works_on() {
    let folder = Folder::new();
    let file = folder.file("long.toml", &long());
    let mut first = start(&folder, &["run", &file]);
    written_run(&folder);
    let coordinator = folder.coordinator(&[]);
    refused(&coordinator.command(&["submit", &file]), first.0.id());
    assert!(first.0.try_wait().unwrap().is_none(), "the first one goes on");
}
