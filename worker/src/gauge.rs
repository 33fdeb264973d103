//! Where each island stands just now, for people who watch.

use evolution::epoch::Standing;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The current state of one island. Written by the thread that evolves it, read by status pages.
#[derive(Debug)]
pub struct Gauge {
    generation: AtomicU64,
    evaluations: AtomicU64,
    best: AtomicU64,
}

impl Gauge {
    /// Shows a standing.
    pub fn set(&self, standing: &Standing) {
        self.generation.store(standing.generation, Relaxed);
        self.evaluations.store(standing.evaluations, Relaxed);
        self.best.store(standing.best.to_bits(), Relaxed);
    }

    /// Where the island stands.
    pub fn standing(&self) -> Standing {
        Standing {
            generation: self.generation.load(Relaxed),
            evaluations: self.evaluations.load(Relaxed),
            best: f64::from_bits(self.best.load(Relaxed)),
        }
    }
}

/// The gauges of all islands.
#[derive(Debug)]
pub struct Gauges(Vec<Gauge>);

impl Gauges {
    /// Gauges for this number of islands, before their founding.
    pub fn new(islands: usize) -> Self {
        let gauge = |_| Gauge {
            generation: AtomicU64::new(0),
            evaluations: AtomicU64::new(0),
            best: AtomicU64::new(f64::NEG_INFINITY.to_bits()),
        };
        Self((0..islands).map(gauge).collect())
    }

    /// The gauge of an island.
    pub fn of(&self, island: u32) -> &Gauge {
        &self.0[island as usize]
    }

    /// The slowest island's generation, all evaluations, and the best fitness.
    pub fn total(&self) -> Standing {
        let standings = || self.0.iter().map(Gauge::standing);
        Standing {
            generation: standings().map(|standing| standing.generation).min().unwrap_or(0),
            evaluations: standings().map(|standing| standing.evaluations).sum(),
            best: standings().map(|standing| standing.best).fold(f64::NEG_INFINITY, f64::max),
        }
    }
}
