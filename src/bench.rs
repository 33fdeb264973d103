//! `atoll bench`: what this machine can do, as rates and as ratios to a reference measured in the same run.
//!
//! Rates are per second of thread CPU time, so that a busy machine does not distort them.

mod checkers;
mod cluster;
mod evolution;
mod load;
mod lockkey;
mod match3;
mod maze;
mod self_play;
mod tournament;

use crate::terminal::out;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the benches whose key contains this
    name: Option<String>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// One measured figure; its key is stable across releases.
#[derive(Serialize)]
pub(crate) struct Figure {
    /// What one second of one core's time achieved.
    pub(crate) rate: f64,
    pub(crate) unit: &'static str,
    /// The same work done by the plain reference, in the same run.
    pub(crate) reference_rate: f64,
    pub(crate) ratio: f64,
    /// What else was measured in the same run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) details: BTreeMap<&'static str, f64>,
}

/// A bench: its key, and what measures it.
type Bench = (&'static str, fn() -> Figure);

/// Every bench there is; each game's are listed in a module of its own.
fn benches() -> Vec<Bench> {
    [
        checkers::benches(),
        cluster::benches(),
        load::benches(),
        evolution::benches(),
        lockkey::benches(),
        match3::benches(),
        maze::benches(),
        self_play::benches(),
        tournament::benches(),
    ]
    .concat()
}

impl Figure {
    pub(crate) fn new(unit: &'static str, rate: f64, reference_rate: f64) -> Self {
        Self { rate, unit, reference_rate, ratio: rate / reference_rate, details: BTreeMap::new() }
    }
}

/// Median rate of some rounds: `work` does some work and says how much it did.
pub(crate) fn rate(mut work: impl FnMut() -> u64) -> f64 {
    median((0..ROUNDS).map(|_| round(&mut work)).collect())
}

/// The rates of two kinds of work, in rounds that take turns: what slows the machine down slows down both.
pub(crate) fn rates(mut work: impl FnMut() -> u64, mut reference: impl FnMut() -> u64) -> (f64, f64) {
    let (rates, references) = (0..ROUNDS).map(|_| (round(&mut work), round(&mut reference))).unzip();
    (median(rates), median(references))
}

const ROUNDS: usize = 7;

fn round(work: &mut impl FnMut() -> u64) -> f64 {
    const SECONDS: f64 = 0.15;
    let start = thread_cpu_seconds();
    let mut done = 0;
    loop {
        done += work();
        let spent = thread_cpu_seconds() - start;
        if spent >= SECONDS {
            return done as f64 / spent;
        }
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process.
pub(crate) fn process_cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let wanted = arguments.name.as_deref().unwrap_or("");
    let mut figures = serde_json::Map::new();
    for (key, measure) in benches().into_iter().filter(|(key, _)| key.contains(wanted)) {
        let figure = measure();
        if !arguments.json {
            out!("{key:<28} {:>14.0} {} ({:.1} x the reference)", figure.rate, figure.unit, figure.ratio);
            for (name, value) in &figure.details {
                out!("  {name:<26} {value:>14.1}");
            }
        }
        figures.insert(key.to_owned(), serde_json::json!(figure));
    }
    if arguments.json {
        out!("{}", serde_json::Value::Object(figures));
    }
    ExitCode::SUCCESS
}
