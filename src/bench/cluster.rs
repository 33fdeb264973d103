//! What a cluster costs: a coordinator and one worker process on loopback against the same run in one process.
//!
//! Measured over all processes together, because that is what the work costs: `cluster.overhead` by their CPU time,
//! which a busy machine does not distort, `cluster.rate` by the clock, which waiting for the network would show in.

use super::{Bench, Figure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

const QUICKSTART: &str = include_str!("../../examples/quickstart.toml");
const ROUNDS: usize = 3;

pub(super) fn benches() -> Vec<Bench> {
    vec![
        ("cluster.overhead", || measure(|run| run.cpu)),
        ("cluster.rate", || measure(|run| run.seconds)),
        ("cluster.two_workers", two_workers),
    ]
}

/// What one run took.
struct Run {
    evaluations: f64,
    seconds: f64,
    cpu: f64,
}

fn measure(time: fn(&Run) -> f64) -> Figure {
    let rate = |arguments: &[&str]| median(|| quickstart(arguments, "5000"), time);
    Figure::new("evaluations/s", rate(&["--workers", "1"]), rate(&[]))
}

/// Two workers of one thread against one.
fn two_workers() -> Figure {
    let rate = |workers: &str, threads: &str| {
        let arguments = ["--workers", workers, "--threads", threads];
        median(|| quickstart(&arguments, "2500"), |run| run.seconds)
    };
    Figure::new("evaluations/s", rate("2", "2"), rate("1", "1"))
}

fn median(run: impl Fn() -> Run, time: fn(&Run) -> f64) -> f64 {
    let rate = |_| {
        let run = run();
        run.evaluations / time(&run)
    };
    let mut rates: Vec<f64> = (0..ROUNDS).map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates[ROUNDS / 2]
}

/// The quickstart, as a process of its own, in a folder that is gone afterwards.
fn quickstart(arguments: &[&str], generations: &str) -> Run {
    let folder =
        std::env::temp_dir().join(format!("atoll-bench-{}-{:x}", std::process::id(), rand::random::<u64>()));
    let run = in_folder(&folder, arguments, generations);
    let _ = std::fs::remove_dir_all(&folder);
    run
}

fn in_folder(folder: &Path, arguments: &[&str], generations: &str) -> Run {
    std::fs::create_dir_all(folder).expect("a bench may write to the temporary folder");
    let file = folder.join("quickstart.toml");
    std::fs::write(&file, QUICKSTART.replace("5000", generations)).expect("the folder was just made");
    let before = children_cpu_seconds();
    let output = Command::new(std::env::current_exe().expect("this program is somewhere"))
        .arg("run")
        .arg(&file)
        .args(["--json", "--store"])
        .arg(folder.join("store"))
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .expect("this program can be started");
    let cpu = children_cpu_seconds() - before;
    let summary: Value = serde_json::from_slice(&output.stdout).expect("it ends with one object");
    let number = |key: &str| summary[key].as_f64().expect("it is a number");
    Run { evaluations: number("evaluations"), seconds: number("seconds"), cpu }
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
