//! What one core can do: rates of the engine and the games, each beside a plain reference measured in the same run.
//!
//! Rates are per second of thread CPU time, so that a busy machine does not distort them. A crate of its own, because the
//! references must be compiled with the same optimisation as what they are compared with.
//!
//! ```
//! let figure = bench::Figure::new("leaves", 120.0, 40.0);
//! assert_eq!(figure.ratio, 3.0);
//! ```

mod checkers;
mod evolution;
mod lockkey;
mod match3;
mod maze;
mod self_play;
mod tournament;

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::BTreeMap;

/// One measured figure; its key is stable across releases.
#[derive(Serialize)]
pub struct Figure {
    /// What one second of one core's time achieved.
    pub rate: f64,
    /// Of what.
    pub unit: &'static str,
    /// The same work done by the plain reference, in the same run.
    pub reference_rate: f64,
    /// How many times the reference that is.
    pub ratio: f64,
    /// What else was measured in the same run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, f64>,
}

/// A bench: its key, and what measures it.
pub type Bench = (&'static str, fn() -> Figure);

/// Every bench of this crate; each game's are listed in a module of its own.
pub fn benches() -> Vec<Bench> {
    [
        checkers::benches(),
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
    /// A rate beside that of the reference.
    pub fn new(unit: &'static str, rate: f64, reference_rate: f64) -> Self {
        Self { rate, unit, reference_rate, ratio: rate / reference_rate, details: BTreeMap::new() }
    }
}

/// Median rate of some rounds: `work` does some work and says how much it did.
pub fn rate(mut work: impl FnMut() -> u64) -> f64 {
    median((0..ROUNDS).map(|_| round(&mut work)).collect())
}

/// The rates of two kinds of work, in rounds that take turns: what slows the machine down slows down both.
pub fn rates(mut work: impl FnMut() -> u64, mut reference: impl FnMut() -> u64) -> (f64, f64) {
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
pub fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process.
pub fn process_cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
