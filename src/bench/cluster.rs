//! What a cluster costs: a coordinator and one worker process on loopback against the same run in one process.
//!
//! Measured over all processes together, because that is what the work costs: `cluster.overhead` by their CPU time,
//! which a busy machine does not distort, `cluster.rate` by the clock, which waiting for the network would show in.

use super::{Bench, Figure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const QUICKSTART: &str = include_str!("../../examples/quickstart.toml");
/// Repeats of both, in turn. The fastest count: a busy machine can only make them slower.
const ROUNDS: usize = 5;

pub(super) fn benches() -> Vec<Bench> {
    vec![
        ("cluster.overhead", || overhead(QUICKSTART, |run| run.cpu)),
        ("cluster.overhead_long", || overhead(&long_epochs(), |run| run.cpu)),
        ("cluster.rate", || overhead(QUICKSTART, |run| run.seconds)),
        ("cluster.two_workers", two_workers),
    ]
}

/// What one run took.
struct Run {
    evaluations: f64,
    seconds: f64,
    cpu: f64,
}

/// One worker process against no cluster at all.
fn overhead(plan: &str, time: fn(&Run) -> f64) -> Figure {
    compare(plan, &["--workers", "1"], &[], time)
}

/// Two workers of one thread against one.
fn two_workers() -> Figure {
    let (two, one) = (["--workers", "2", "--threads", "2"], ["--workers", "1", "--threads", "1"]);
    compare(QUICKSTART, &two, &one, |run| run.seconds)
}

/// The quickstart with a single epoch of about a second for each island.
fn long_epochs() -> String {
    let plan = QUICKSTART.replace("interval = 50", "interval = 5000");
    let plan = plan.replace("generations = 2000", "generations = 5000");
    assert_eq!(plan.matches("= 5000").count(), 2, "the quickstart has other numbers by now");
    plan
}

fn compare(plan: &str, arguments: &[&str], reference: &[&str], time: fn(&Run) -> f64) -> Figure {
    let rate = |arguments: &[&str]| {
        let run = evolve(plan, arguments);
        run.evaluations / time(&run)
    };
    let (mut best, mut best_reference): (f64, f64) = (0.0, 0.0);
    for _ in 0..ROUNDS {
        best_reference = best_reference.max(rate(reference));
        best = best.max(rate(arguments));
    }
    Figure::new("evaluations/s", best, best_reference)
}

/// A plan, as a process of its own, in a folder that is gone afterwards.
fn evolve(plan: &str, arguments: &[&str]) -> Run {
    let folder =
        std::env::temp_dir().join(format!("atoll-bench-{}-{:x}", std::process::id(), rand::random::<u64>()));
    let run = in_folder(&folder, plan, arguments);
    let _ = std::fs::remove_dir_all(&folder);
    run
}

fn in_folder(folder: &Path, plan: &str, arguments: &[&str]) -> Run {
    std::fs::create_dir_all(folder).expect("a bench may write to the temporary folder");
    let file = folder.join("plan.toml");
    std::fs::write(&file, plan).expect("the folder was just made");
    let (before, start) = (children_cpu_seconds(), Instant::now());
    let output = Command::new(std::env::current_exe().expect("this program is somewhere"))
        .arg("run")
        .arg(&file)
        .args(["--json", "--store"])
        .arg(folder.join("store"))
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .expect("this program can be started");
    let (cpu, seconds) = (children_cpu_seconds() - before, start.elapsed().as_secs_f64());
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it ends with one object");
    let number = |key: &str| summary[key].as_f64().expect("it is a number");
    Run { evaluations: number("evaluations"), seconds, cpu }
}

/// CPU time of all processes that were started here and have ended, and of theirs.
fn children_cpu_seconds() -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
    // The command's name may hold spaces, so fields are counted from its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / TICKS
}
