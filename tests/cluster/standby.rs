//! A coordinator that stands by takes over when the other is killed, again and again, and no work is lost.

use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder, wait_until, worker};
use std::time::{Duration, Instant};

/// How long the owner of the store must be silent: longer than a busy machine lets a process wait.
const TAKEOVER: Duration = Duration::from_secs(2);

fn is_ready(coordinator: &Coordinator) -> bool {
    coordinator.page("/readyz").starts_with("HTTP/1.1 200")
}

/// Kills the active one of two coordinators so often; returns the longest time that no one was ready.
fn kill_again_and_again(kills: u32) -> Duration {
    let folder = Folder::new();
    let start = || folder.coordinator(&["--standby", "--takeover-after", "2s", "--lease", "2s"]);
    let mut active = start();
    wait_until("the first to be ready", || is_ready(&active));
    let run = active.submit(EXPERIMENT);
    let mut standby = start();
    let urls = format!("{},{}", active.url(), standby.url());
    let _worker = worker(&urls, &[]);
    let mut longest = Duration::ZERO;
    for _ in 0..kills {
        // A fast machine may have finished before the last of them is killed.
        let has_work = |one: &Coordinator| one.metric("atoll_grants_total") >= 1.0;
        let is_done = |one: &Coordinator| one.metric("atoll_runs{state=\"finished\"}") >= 1.0;
        wait_until("some work", || has_work(&active) || is_done(&active));
        assert!(!is_ready(&standby), "it only stands by");
        let killed = Instant::now();
        active.process.0.kill().unwrap();
        wait_until("the takeover", || is_ready(&standby));
        longest = longest.max(killed.elapsed());
        let restarted = active.again();
        active = std::mem::replace(&mut standby, restarted);
    }
    assert_eq!(active.digest(&run), *DIGEST, "one digest, whoever has the store");
    assert!(!active.said().contains("quarantined"), "{}", active.said());
    longest
}

#[test]
fn a_standby_takes_over_and_no_work_is_lost() {
    // `tests/long standby` kills more often.
    let kills = std::env::var("STANDBY_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let longest = kill_again_and_again(kills);
    println!("{kills} kills: at most {longest:?} without a coordinator, of it {TAKEOVER:?} of silence");
    // A second for reading the store, and two that a busy machine may take.
    assert!(longest < TAKEOVER + Duration::from_secs(3), "{longest:?}");
}
