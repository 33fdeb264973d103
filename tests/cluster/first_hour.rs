//! What a new user does first, and does wrong.

use crate::process::{Folder, atoll, json, text, wait_until};
use std::process::Stdio;

const TINY: &str = r#"
name = "tiny"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
budget = { generations = 20 }
"#;

#[test]
fn a_worker_says_what_it_waits_for_and_when_it_leaves() {
    let folder = Folder::new();
    let log = folder.path().join("log");
    let said = || std::fs::read_to_string(&log).unwrap();
    let child = atoll()
        .args(["worker", "--coordinator", "http://127.0.0.1:9"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut worker = crate::process::Process(child);
    wait_until("a word about it", || said().contains("the coordinator does not answer; trying again"));
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended(), Some(143));
    assert!(said().contains("asked to stop before a coordinator had answered"), "{}", said());
    assert_eq!(said().matches("does not answer").count(), 1, "once is enough: {}", said());
}

#[test]
fn watching_without_a_coordinator_ends() {
    let folder = Folder::new();
    let output = folder.atoll(&["watch", "latest", "--coordinator", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not answer"), "{}", text(&output.stderr));
}

#[test]
fn the_shell_names_a_coordinator_and_its_own_workers_do_not_listen() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(TINY);
    let _worker = coordinator.worker(&[]);
    coordinator.digest(&run);
    let local = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = atoll();
        command.args(arguments).current_dir(local.path()).env("ATOLL_COORDINATOR", coordinator.url());
        command.env("ATOLL_TLS_CA", "gone.pem").stderr(Stdio::piped());
        command
    };
    let file = folder.file("tiny.toml", TINY);
    let here = json(&command(&["run", &file, "--workers", "1", "--json"]).output().unwrap());
    assert_eq!(here["run"], run.as_str(), "workers of this machine have nothing to do with that authority");
    let plain = |arguments: &[&str]| json(&command(arguments).env_remove("ATOLL_TLS_CA").output().unwrap());
    assert_eq!(plain(&["runs", "--json"])[0]["leases"], 0, "only a coordinator knows leases");
    assert_eq!(plain(&["export", "tiny", "--json"])["run"], run.as_str());
    let watched = plain(&["watch", "latest", "--json"]);
    assert_eq!(watched["state"], "finished");
    assert_eq!(
        plain(&["runs", "--json", "--store", "./atoll-store"])[0]["kind"],
        "evolution",
        "a store was named"
    );
    let missing = command(&["watch", "tinny"]).env_remove("ATOLL_TLS_CA").output().unwrap();
    assert!(text(&missing.stderr).contains(&format!("did you mean `{run}`?")), "{}", text(&missing.stderr));
}
