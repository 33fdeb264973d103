//! Where games are played: tables with all the memory they need, used again and again.

use super::schedule::{Pairing, Side};
use super::{BenchmarkPlayer, Checkers};
use checkers::{Network, Outcome, PlayerSpec, Position, Table};
use std::sync::{Arc, Mutex, PoisonError};

/// Tables that are free.
#[derive(Default)]
pub(super) struct Arena(Mutex<Vec<Table>>);

impl Arena {
    /// Plays a game at a free table, or at a new one.
    pub(super) fn play(&self, keys: &Checkers, pairing: &Pairing, networks: &[Arc<Network>]) -> Outcome {
        let mut table = self.lock().pop().unwrap_or_else(|| Table::new(keys.draw.rules(), None));
        let opening = pairing.opening.map(|opening| checkers::openings()[opening].position);
        let [black, white] = [pairing.black, pairing.white].map(|side| player(keys, side, networks));
        let players = [&black.0, &white.0];
        let outcome = table.play(opening.unwrap_or(Position::START), players, [black.1, white.1]);
        self.lock().push(table);
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Table>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who plays, and the seed of what it leaves to chance.
fn player(keys: &Checkers, side: Side, networks: &[Arc<Network>]) -> (PlayerSpec, u64) {
    let depth = keys.depth;
    match (side, keys.benchmark.player) {
        (Side::Network(network), _) => (PlayerSpec::Network { network: networks[network].clone(), depth }, 0),
        (Side::Benchmark(seed), BenchmarkPlayer::Material) => (PlayerSpec::Material { depth }, seed),
        (Side::Benchmark(seed), BenchmarkPlayer::Random) => (PlayerSpec::Random, seed),
    }
}
