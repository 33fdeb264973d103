//! What Kubernetes and systemd are told by exit codes.

use crate::process::{DIGEST, EXPERIMENT, Folder, Process, atoll, json, text, wait_until, worker};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// As a batch job does: the coordinator brings its experiment, and ends with it.
fn job(file: &str) -> Vec<&str> {
    vec!["--run", file, "--exit-when-done", "--lease", "2s"]
}

#[test]
fn a_finished_run_is_0_for_everybody_also_for_who_comes_late() {
    let folder = Folder::new();
    let file = folder.file("quick.toml", &EXPERIMENT.replace("3000", "300"));
    let mut coordinator = folder.coordinator(&[&job(&file)[..], &["--linger", "4s"]].concat());
    let mut early = coordinator.worker(&[]);
    assert_eq!(early.ended(), Some(0));
    assert_eq!(coordinator.metric("atoll_runs{state=\"finished\"}"), 1.0);
    let mut late = coordinator.worker(&[]);
    assert_eq!(late.ended(), Some(0), "it has missed everything");
    assert_eq!(coordinator.process.ended(), Some(0));

    let mut again = folder.coordinator(&job(&file));
    assert_eq!(again.process.ended(), Some(0), "a job that is started again finds everything done");
}

#[test]
fn sigterm_is_143_within_10_seconds_and_the_work_goes_on() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let mut coordinator = folder.coordinator(&job(&file));
    let mut first = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 2.0);
    assert_eq!(terminated(&mut first), Some(143));
    let mut second = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 4.0);
    assert_eq!(terminated(&mut coordinator.process), Some(143));
    let mut coordinator = coordinator.again();
    assert_eq!(second.ended(), Some(0), "it has waited for the next coordinator");
    assert_eq!(coordinator.process.ended(), Some(0));
    let listed = json(&folder.atoll(&["runs", "--json"]));
    assert_eq!(listed[0]["digest"], DIGEST.as_str());
}

fn terminated(process: &mut Process) -> Option<i32> {
    let start = Instant::now();
    process.signal(Signal::TERM);
    let code = process.ended();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    code
}

#[test]
fn what_is_wrong_for_good_is_78() {
    let folder = Folder::new();
    let config = folder.file("wrong.toml", "leese = \"15s\"\n");
    let experiment = folder.file("experiment.toml", "name = \"x\"\nproblem = { kind = \"chess\" }\n");
    for arguments in [
        ["coordinator", "--config", &config],
        ["worker", "--config", &config],
        ["coordinator", "--run", &experiment],
        ["coordinator", "--run", "not-there.toml"],
        ["coordinator", "--linger", "long"],
    ] {
        let output = folder.atoll(&arguments);
        assert_eq!(output.status.code(), Some(78), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn who_finds_nobody_gives_up_with_1() {
    let mut lonely = worker("http://127.0.0.1:9", &["--give-up-after", "300ms"]);
    assert_eq!(lonely.ended(), Some(1));
}

#[test]
fn logs_for_machines_tell_run_island_epoch_worker_and_lease_apart() {
    let folder = Folder::new();
    let variables = vec![("ATOLL_LOG_FORMAT".to_owned(), "json".to_owned())];
    let coordinator = folder.coordinator_with(&["--lease", "300ms"], variables);
    let run = coordinator.submit(EXPERIMENT);
    let worker = coordinator.worker(&["--name", "doomed"]);
    coordinator.wait_for("atoll_grants_total", 1.0);
    worker.signal(Signal::STOP);
    wait_until("a lease that expires", || coordinator.said().contains("lease expired"));
    let line = coordinator.said().lines().find(|line| line.contains("lease expired")).unwrap().to_owned();
    let fields = serde_json::from_str::<serde_json::Value>(&line).unwrap()["fields"].clone();
    assert_eq!((&fields["run"], &fields["worker"]), (&run.into(), &"doomed".into()), "{line}");
    assert!(fields["island"].is_u64() && fields["epoch"].is_u64() && fields["lease"].is_u64(), "{line}");
    assert!(fields["reason"].as_str().unwrap().contains("not renewed in time"), "{line}");
    let quiet = atoll().args(["runs", "--coordinator", &coordinator.url()]).output().unwrap();
    assert!(quiet.status.success());
}
