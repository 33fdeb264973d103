//! A run has one writer: the second is rejected, with the name of the first.

use crate::process::{EXPERIMENT, Folder, Process, atoll, text, wait_until};
use crate::s3::Server;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
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
    // A finished run may be shown, but what is changed here the coordinator would not show.
    assert!(folder.atoll(&["run", &other]).status.success());
    refused(&folder.atoll(&["extend", "latest", "--generations", "60"]), first);
    assert!(coordinator.command(&["cancel", &run]).status.success());
    refused(&folder.atoll(&["resume", &run]), first);
    refused(&folder.atoll(&["run", &folder.file("long.toml", &long())]), first);
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

#[test]
fn resuming_a_run_in_a_bucket_beside_a_live_coordinator_is_refused() {
    let (server, folder) = (Server::start(), Folder::new());
    let store = ["--store", "s3://clusters/one-writer"];
    let coordinator = folder.coordinator_with(&store, server.variables());
    let run = coordinator.submit(&long());
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 1.0);
    let file = folder.file("long.toml", &long());
    let other = folder.file("other.toml", &EXPERIMENT.replace("3000", "30"));
    let command = |arguments: &[&str]| {
        let mut atoll = atoll();
        atoll.args(arguments).args(store).envs(server.variables()).current_dir(folder.path());
        atoll.output().unwrap()
    };
    let address = &coordinator.address;
    for arguments in [
        &["resume", &run][..],
        &["extend", &run, "--generations", "200000000"],
        &["repair", &run, "--yes"],
        &["run", &file],
        &["run", &other, "--workers", "1"],
    ] {
        let refused = command(arguments);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(said.contains(&format!("the coordinator at {address}")), "{arguments:?}: {said}");
    }
    // What the coordinator knows nothing of may be run beside it.
    assert!(command(&["run", &other]).status.success());
    let accepted = coordinator.metric("atoll_results_accepted_total");
    coordinator.wait_for("atoll_results_accepted_total", accepted + 1.0);
    // A coordinator that is gone holds nothing up.
    coordinator.process.kill();
    let mut resume = atoll();
    resume.args(["resume", &run]).args(store).envs(server.variables()).stderr(Stdio::piped());
    let mut resumed = Process(resume.spawn().unwrap());
    let mut said = String::new();
    BufReader::new(resumed.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("resuming at generation"), "{said}");
}
