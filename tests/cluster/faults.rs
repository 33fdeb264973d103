//! Whatever happens to a cluster, its run has the digest of a run in one process.

use crate::process::{DIGEST, EXPERIMENT, Folder, Process, atoll, digest, wait_until, worker};
use crate::proxy::Proxy;
use rustix::process::Signal;
use std::time::{Duration, Instant};

const SHORT_LEASE: [&str; 2] = ["--lease", "1s"];
const GENERATION: &str = "atoll_run_generation";
const EXPIRED: &str = "atoll_leases_expired_total";

#[test]
fn one_two_and_three_workers() {
    for workers in ["1", "2", "3"] {
        let folder = Folder::new();
        let file = folder.file("faults.toml", EXPERIMENT);
        let output = folder.atoll(&["run", &file, "--workers", workers, "--json"]);
        assert_eq!(digest(&output), *DIGEST, "with {workers} workers");
    }
}

#[test]
fn a_worker_is_killed_in_the_middle_of_an_epoch() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let first = coordinator.worker(&[]);
    coordinator.wait_for(GENERATION, 300.0);
    first.kill();
    let _second = coordinator.worker(&[]);
    assert_eq!(coordinator.digest(&run), *DIGEST);
    assert!(coordinator.metric(EXPIRED) >= 1.0, "the killed worker held something");
}

#[test]
fn a_store_that_fails_for_a_while_fails_no_run() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let first = coordinator.worker(&[]);
    coordinator.wait_for(GENERATION, 300.0);
    let events = folder.path().join("atoll-store/runs").join(&run).join("events");
    let away = events.with_file_name("away");
    std::fs::rename(&events, &away).unwrap();
    std::fs::write(&events, "a file, where no event can be created").unwrap();
    // What the lost lease cost cannot be written down.
    first.kill();
    coordinator.wait_for("atoll_store_errors_total", 1.0);
    std::fs::remove_file(&events).unwrap();
    std::fs::rename(&away, &events).unwrap();
    let _second = coordinator.worker(&[]);
    assert_eq!(coordinator.digest(&run), *DIGEST);
}

#[test]
fn a_killed_worker_costs_its_lease_and_an_epoch() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(&EXPERIMENT.replace("3000", "1000000"));
    let (first, _second) = (coordinator.worker(&[]), coordinator.worker(&[]));
    coordinator.wait_for(GENERATION, 300.0);
    first.kill();
    let killed = Instant::now();
    // No island gets further ahead than four epochs, so all of them continue by then, the killed worker's as well.
    coordinator.wait_for(GENERATION, coordinator.metric(GENERATION) + 1000.0);
    let delay = killed.elapsed();
    // A second for the lease, and several for ten epochs of a tenth of a second on a busy machine.
    assert!(delay < Duration::from_secs(10), "{delay:?}");
    assert!(coordinator.command(&["cancel", &run]).status.success());
}

#[test]
fn a_worker_stands_still_for_longer_than_its_lease() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let (first, _second) = (coordinator.worker(&[]), coordinator.worker(&[]));
    coordinator.wait_for(GENERATION, 300.0);
    first.signal(Signal::STOP);
    coordinator.wait_for(EXPIRED, 1.0);
    first.signal(Signal::CONT);
    assert_eq!(coordinator.digest(&run), *DIGEST);
}

#[test]
fn the_coordinator_is_killed_while_workers_compute() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let _workers = [coordinator.worker(&[]), coordinator.worker(&[])];
    for generation in [300.0, 1000.0, 2000.0] {
        coordinator.wait_for(GENERATION, generation);
        coordinator = coordinator.restart();
    }
    assert_eq!(coordinator.digest(&run), *DIGEST);
}

#[test]
fn the_network_is_cut_and_healed() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let proxy = Proxy::to(&coordinator.address);
    let _worker = worker(&proxy.url, &[]);
    coordinator.wait_for(GENERATION, 300.0);
    proxy.cut();
    coordinator.wait_for(EXPIRED, 1.0);
    proxy.heal();
    coordinator.wait_for(GENERATION, 1500.0);
    proxy.cut();
    proxy.heal();
    assert_eq!(coordinator.digest(&run), *DIGEST);
}

#[test]
fn everything_happens_in_one_run() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&SHORT_LEASE);
    let run = coordinator.submit(EXPERIMENT);
    let proxy = Proxy::to(&coordinator.address);
    let (still, _cut_off) = (coordinator.worker(&[]), worker(&proxy.url, &[]));
    for step in 1..=5 {
        let churning = coordinator.worker(&[]);
        coordinator.wait_for(GENERATION, 400.0 * f64::from(step));
        match step {
            1 => still.signal(Signal::STOP),
            2 => proxy.cut(),
            3 => coordinator = coordinator.restart(),
            4 => still.signal(Signal::CONT),
            _ => proxy.heal(),
        }
        if step % 2 == 0 { churning.kill() } else { churning.signal(Signal::TERM) }
    }
    let _last = coordinator.worker(&[]);
    assert_eq!(coordinator.digest(&run), *DIGEST);
    let verified = folder.atoll(&["verify", &run]);
    assert!(verified.status.success(), "{}", crate::process::text(&verified.stderr));
}

#[test]
fn a_worker_that_is_asked_to_stop_gives_back_what_it_holds() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(EXPERIMENT);
    let mut first = coordinator.worker(&[]);
    coordinator.wait_for(GENERATION, 300.0);
    let start = std::time::Instant::now();
    first.signal(Signal::TERM);
    assert_eq!(first.ended(), Some(143));
    assert!(start.elapsed().as_secs() < 10);
    coordinator.worker(&[]);
    let _second = coordinator.worker(&[]);
    assert_eq!(coordinator.digest(&run), *DIGEST);
    assert_eq!(coordinator.metric(EXPIRED), 0.0, "nothing had to run out: leases last longer than this test");
}

#[test]
fn a_coordinator_serves_within_5_seconds_of_a_restart_with_1000_epochs() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let many =
        EXPERIMENT.replace("population = 1000", "population = 10").replace("interval = 100", "interval = 1");
    let many =
        many.replace("generations = 3000", "generations = 1000000").replace("every = 50", "every = 10");
    coordinator.submit(&many);
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for(GENERATION, 250.0);
    // What was delivered is written before it ends.
    coordinator.process.signal(Signal::TERM);
    let start = std::time::Instant::now();
    let coordinator = coordinator.again();
    wait_until("readiness", || coordinator.page("/readyz").ends_with("ready\n"));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    assert!(coordinator.metric(GENERATION) >= 250.0, "4 islands have 250 epochs each");
}

#[test]
fn a_run_with_workers_is_stopped_and_goes_on() {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let arguments = ["run", &file, "--workers", "2", "--json"];
    let child = atoll().args(arguments).current_dir(folder.path()).spawn().unwrap();
    let mut first = Process(child);
    let stored = folder.path().join("atoll-store/runs");
    wait_until("the first stored epochs", || {
        let runs = std::fs::read_dir(&stored).into_iter().flatten().flatten();
        runs.into_iter().any(|run| run.path().join("commits").exists())
    });
    first.signal(Signal::TERM);
    let code = first.ended();
    assert!(code == Some(143) || code == Some(0), "{code:?}");
    assert_eq!(digest(&folder.atoll(&arguments)), *DIGEST);
}
