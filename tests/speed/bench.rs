//! Threads that are worth their cores, and an engine near what the processor allows. Not a part of the ordinary tests,
//! because neighbours on a machine decide the result: `./tests/long speed` runs it, in an optimised build.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use support::{Finished, Place, pause};

/// Measurements take turns: in one process the figures of children cannot be separated.
static TURN: Mutex<()> = Mutex::new(());

/// CPU time in seconds, of processes that have ended, as the kernel counts it.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> =
        stat.rsplit(')').next().expect("a name in parentheses").split_whitespace().collect();
    // User and system time of children that were waited for, in hundredths of a second.
    let ticks: f64 = fields[13..15].iter().map(|field| field.parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}

/// CPU time in seconds that all processes of the machine have spent, and that was taken from it.
fn cpu_of_everybody() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("Linux");
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .expect("a line")
        .split_whitespace()
        .skip(1)
        .map(|f| f.parse().expect("a number"))
        .collect();
    // Idle time and waiting for disks are no work; guests are counted in the user time already.
    (fields[..8].iter().sum::<f64>() - fields[3] - fields[4]) / 100.0
}

/// What a command cost.
#[derive(Debug)]
struct Cost {
    /// By the clock.
    wall: f64,
    /// By the processors.
    own: f64,
    /// What others had of the processors meanwhile.
    others: f64,
    /// The share of the work that the busiest of its evolving threads did.
    busiest: f64,
}

/// The CPU time of each evolving thread of a process, in nanoseconds, by the thread's number.
fn look_at_threads(process: u32, times: &mut BTreeMap<String, f64>) {
    for thread in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let time = read("schedstat").split_whitespace().next().and_then(|time| time.parse().ok());
        if let (true, Some(time)) = (read("comm").starts_with("evolve-"), time) {
            times.insert(thread.file_name().to_string_lossy().into_owned(), time);
        }
    }
}

fn cost(place: &Place, threads: &str) -> Cost {
    let (start, own, everybody) = (Instant::now(), cpu_of_children(), cpu_of_everybody());
    let mut run = place.start(&["run", "experiment.toml", "--json", "--fresh", "--threads", threads]);
    let mut times = BTreeMap::new();
    while run.is_running() {
        look_at_threads(run.id(), &mut times);
        pause();
    }
    run.finish().expect(0);
    let (wall, own) = (start.elapsed().as_secs_f64(), cpu_of_children() - own);
    let busiest = times.values().copied().fold(0.0, f64::max) / times.values().sum::<f64>();
    Cost { wall, own, others: (cpu_of_everybody() - everybody - own).max(0.0), busiest }
}

/// How much faster two threads are than one, where other processes use the processors too.
///
/// One thread is counted in its own CPU time and two in what the clock says less the others' half: on a quiet machine
/// this is the plain ratio of times, and a busy one does not make it fail. Where the others leave less than one
/// processor, one thread could not be distinguished from two by the clock: so both must also have done their share of the work.
fn speedup(experiment: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    if processors < 2.0 {
        println!("a single processor: two threads cannot be faster");
        return;
    }
    let place = Place::new();
    place.write("experiment.toml", experiment);
    let one = (0..2).map(|_| cost(&place, "1").own).fold(f64::INFINITY, f64::min);
    let mut best: f64 = 0.0;
    for _ in 0..8 {
        let two = cost(&place, "2");
        let left = two.wall * processors - two.others;
        let speedup = one / (left / 2.0).min(two.wall).max(two.own / 2.0);
        if two.others > 0.5 * two.wall * (processors - 1.0) {
            println!("BUSY: others had {:.2} s of {:.2} s on each processor", two.others, two.wall);
        }
        println!("one thread {one:.2} s of CPU time, two {two:.2?}: {speedup:.2} times as fast");
        // A busy machine gives one thread more time than the other, but a thread that works alone does it all.
        if two.busiest <= 0.8 {
            best = best.max(speedup);
        }
        if best >= 1.8 {
            return;
        }
    }
    panic!("expected two threads to share the work and be 1.8 times as fast as one, found {best:.2}");
}

/// One island whose evaluations take 10 microseconds each.
#[test]
fn two_threads_share_costly_evaluations() {
    speedup(
        r#"
        name = "costly"
        problem = { kind = "onemax", length = 50, work = 10000 }
        algorithm = { kind = "ga", population = 1000 }
        islands = { count = 1 }
        migration = { interval = 1000 }
        budget = { generations = 100 }
        "#,
    );
}

/// Islands of cheap evaluations run side by side.
#[test]
fn two_threads_share_islands() {
    speedup(
        r#"
        name = "cheap"
        problem = { kind = "onemax", length = 50 }
        algorithm = { kind = "ga", population = 1000 }
        islands = { count = 8 }
        migration = { interval = 500 }
        budget = { generations = 5000 }
        "#,
    );
}

/// Twenty million evaluations a second on one core, in an optimised build.
#[test]
fn the_engine_is_fast() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let rate = |finished: Finished| finished.expect(0).json()["evolution.onemax50"]["rate"].as_f64();
    let measure = || rate(place.run(&["bench", "evolution.onemax50", "--json"]));
    // A neighbour on the same core slows it down; it cannot make it faster.
    let best = (0..5).filter_map(|_| measure()).fold(0.0, f64::max);
    println!("{:.1} million evaluations a second", best / 1e6);
    assert!(best >= 20e6, "{best}");
}
