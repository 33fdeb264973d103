//! What a new user does first, and does wrong.

use crate::process::{Folder, atoll, json, text, wait_until};
use std::io::{Read as _, Write as _};
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
    wait_until("a word about it", || said().contains("the coordinator does not respond; trying again"));
    assert!(said().contains("coordinator=127.0.0.1:9") && said().contains("refused"), "{}", said());
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.ended(), Some(143));
    assert!(said().contains("asked to stop before a coordinator had answered"), "{}", said());
    assert_eq!(said().matches("does not respond").count(), 1, "once is enough: {}", said());
}

#[test]
fn watching_without_a_coordinator_ends() {
    let folder = Folder::new();
    let output = folder.atoll(&["watch", "latest", "--coordinator", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not respond"), "{}", text(&output.stderr));
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
        plain(&["runs", "--json", "--store", "atoll-store"])[0]["kind"],
        "evolution",
        "a store was named"
    );
    let missing = command(&["watch", "tinny"]).env_remove("ATOLL_TLS_CA").output().unwrap();
    assert!(text(&missing.stderr).contains(&format!("did you mean `{run}`?")), "{}", text(&missing.stderr));
}

#[test]
fn watching_ends_when_the_coordinator_stays_away() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(TINY);
    let url = coordinator.url();
    let log = folder.path().join("log");
    let watch = atoll()
        .args(["watch", &run, "--coordinator", &url, "--give-up-after", "1s"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut watch = crate::process::Process(watch);
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_until("its first look", || said().contains("no worker has joined"));
    coordinator.process.kill();
    assert_eq!(watch.ended(), Some(1));
    assert!(said().contains("does not respond; trying again"), "{}", said());
    assert!(said().contains("has not responded for 1.0s"), "{}", said());
}

#[test]
fn what_an_operator_does_is_logged_with_the_run_and_the_peer() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(TINY);
    let body = "{}";
    let host = &coordinator.http;
    let request = format!(
        "POST /api/v1/runs/{run}/pause HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    for arguments in [&["pause", &run, "--off"][..], &["cancel", &run]] {
        let output = coordinator.command(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    coordinator.process.signal(rustix::process::Signal::TERM);
    assert_eq!(coordinator.process.ended(), Some(143));
    let told = || coordinator.said();
    wait_until("its last line", || told().contains("stopping reason"));
    for line in [format!("paused run={run}"), format!("resumed run={run}"), format!("cancelled run={run}")] {
        assert!(told().contains(&line), "{line}: {}", told());
    }
    assert!(told().contains("done on the dashboard peer=127.0.0.1"), "{reply}\n{}", told());
}
