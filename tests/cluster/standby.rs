//! A coordinator that stands by takes over when the other is killed, again and again, and no work is lost.

use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder, digest, json, wait_until, worker};
use std::time::{Duration, Instant};

/// How long the owner of the store must be silent: longer than a busy machine lets a process wait.
const TAKEOVER: Duration = Duration::from_secs(2);

/// Generations of an epoch of the experiment.
const EPOCH: u64 = 100;

fn is_ready(coordinator: &Coordinator) -> bool {
    coordinator.page("/readyz").starts_with("HTTP/1.1 200")
}

/// The longest times of takeovers.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
    /// Until the standby was ready.
    takeover: Duration,
    /// For which it read the store.
    reading: Duration,
    /// Without both the silence that is asked for and the reading.
    beside: Duration,
}

/// For how long a coordinator has read its store, as it says itself: it is ready before its log has been read.
fn reading(coordinator: &Coordinator) -> Duration {
    let mut milliseconds = None;
    wait_until("the line that says how long reading took", || {
        let said = coordinator.said();
        let line = said.lines().rfind(|line| line.contains("read the store"));
        milliseconds =
            line.and_then(|line| line.split("milliseconds=").nth(1)?.split_whitespace().next()?.parse().ok());
        milliseconds.is_some()
    });
    Duration::from_millis(milliseconds.unwrap())
}

/// The slowest island's generation of the only active run; nothing if it is finished.
fn generation(page: &str) -> Option<u64> {
    page.lines().find(|line| line.starts_with("atoll_run_generation{")).and_then(number)
}

fn number(line: &str) -> Option<u64> {
    Some(line.rsplit(' ').next()?.parse::<f64>().ok()? as u64)
}

/// The generation once this coordinator hands out work: until then its worker delivers what the other one had, and no call
/// comes before that.
fn generation_after_delivery(coordinator: &Coordinator) -> Option<u64> {
    let mut found = None;
    wait_until("the first grant or the end", || {
        let page = coordinator.page("/metrics");
        let is = |name: &str| page.lines().any(|line| line.starts_with(name) && number(line) >= Some(1));
        found = generation(&page);
        is("atoll_grants_total ") || is("atoll_runs{state=\"finished\"}")
    });
    found
}

/// Kills the active one of two coordinators so often; returns the longest times that none was ready.
fn kill_again_and_again(kills: u32) -> Longest {
    // It must not be finished before the last of them.
    let experiment = EXPERIMENT.replace("generations = 3000", &format!("generations = {}", 600 * kills));
    let folder = Folder::new();
    let start = || folder.coordinator(&["--standby", "--takeover-after", "2s", "--lease", "2s"]);
    let mut active = start();
    wait_until("the first to be ready", || is_ready(&active));
    let run = active.submit(&experiment);
    let mut standby = start();
    let urls = format!("{},{}", active.url(), standby.url());
    let _worker = worker(&urls, &[]);
    let mut longest = Longest::default();
    for _ in 0..kills {
        // A fast machine may have finished before the last of them is killed.
        let has_work = |one: &Coordinator| one.metric("atoll_grants_total") >= 1.0;
        let is_done = |one: &Coordinator| one.metric("atoll_runs{state=\"finished\"}") >= 1.0;
        wait_until("some work", || has_work(&active) || is_done(&active));
        let before = generation(&active.page("/metrics"));
        // The worker has heard that what was accepted until then was accepted: it has delivered more since.
        let accepted = active.metric("atoll_results_accepted_total");
        let is_heard = |one: &Coordinator| one.metric("atoll_results_accepted_total") >= accepted + 3.0;
        wait_until("three more results", || is_heard(&active) || is_done(&active));
        assert!(!is_ready(&standby), "it only stands by");
        let killed = Instant::now();
        active.process.0.kill().unwrap();
        wait_until("the takeover", || is_ready(&standby));
        let takeover = killed.elapsed();
        let reading = reading(&standby);
        longest.takeover = longest.takeover.max(takeover);
        longest.reading = longest.reading.max(reading);
        longest.beside = longest.beside.max(takeover.saturating_sub(TAKEOVER + reading));
        let both = format!("{},{}", active.url(), standby.url());
        let listed = json(&folder.atoll(&["runs", "--json", "--coordinator", &both]));
        assert_eq!(listed[0]["run"], run.as_str(), "operators name both, and the dead one first");
        if let (Some(before), Some(after)) = (before, generation_after_delivery(&standby)) {
            // Of an epoch that its worker still computes the next coordinator hears with the next renewal.
            let before = before - before % EPOCH;
            assert!(after >= before, "generation {after} after the takeover, {before} before it");
        }
        let restarted = active.again();
        active = std::mem::replace(&mut standby, restarted);
    }
    let alone = || {
        let file = folder.file("alone.toml", &experiment);
        digest(&folder.atoll(&["run", &file, "--json", "--store", "alone"]))
    };
    let alone = if experiment == EXPERIMENT { DIGEST.clone() } else { alone() };
    assert_eq!(active.digest(&run), alone, "one digest, whoever has the store");
    assert!(!active.said().contains("quarantined"), "{}", active.said());
    longest
}

#[test]
fn a_standby_takes_over_and_no_work_is_lost() {
    // `tests/long standby` kills more often.
    let kills = std::env::var("STANDBY_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let Longest { takeover, reading, beside } = kill_again_and_again(kills);
    println!(
        "{kills} kills: ready after at most {takeover:?}, of which {TAKEOVER:?} are the silence that is asked for, at most \
         {reading:?} reading the store, and at most {beside:?} anything else (2 s are allowed)"
    );
    assert!(beside < Duration::from_secs(2), "{beside:?} beside the silence and the reading");
}
