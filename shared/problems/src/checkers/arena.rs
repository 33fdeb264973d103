//! Where games are played: tables with all the memory they need, used again and again.

use super::schedule::{Pairing, Side};
use super::{BenchmarkPlayer, Checkers};
use checkers::{Knowledge, Labels, Lesson, Network, Outcome, PlayerSpec, Position, Table};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Tables that are free, and what those who play at them know.
#[derive(Default)]
pub(super) struct Arena {
    tables: Mutex<Vec<Table>>,
    knowledge: OnceLock<Option<Knowledge>>,
}

impl Arena {
    /// Plays a game at a free table, or at a new one. With labels, what it teaches comes with it.
    pub(super) fn play(
        &self,
        keys: &Checkers,
        pairing: &Pairing,
        networks: &[Arc<Network>],
        labels: Option<&Labels>,
    ) -> (Outcome, Vec<Lesson>) {
        let mut table = self.lock().pop().unwrap_or_else(|| Table::new(keys.rules(), None));
        let starts = keys.openings.starts().unwrap_or(checkers::openings());
        let opening = pairing.opening.map_or(Position::START, |opening| starts[opening].position);
        let start = opening.after_random_moves(keys.random_plies, pairing.start);
        let [black, white] = [(pairing.black, 0), (pairing.white, 1)]
            .map(|(side, seat)| self.player(keys, side, networks, pairing.seed ^ seat));
        let players = [&black.0, &white.0];
        let outcome = table.play(start, players, [black.1, white.1]);
        let lessons = labels.map_or(vec![], |labels| table.lessons(labels));
        self.lock().push(table);
        (outcome, lessons)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Table>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who plays, and the seed of what it leaves to chance.
    fn player(&self, keys: &Checkers, side: Side, networks: &[Arc<Network>], seed: u64) -> (PlayerSpec, u64) {
        let depth = keys.depth;
        match (side, keys.benchmark.player) {
            (Side::Network(network), _) => (self.informed(keys, networks[network].clone()), seed),
            (Side::Benchmark(seed), BenchmarkPlayer::Material) => (PlayerSpec::Material { depth }, seed),
            (Side::Benchmark(seed), BenchmarkPlayer::Random) => (PlayerSpec::Random, seed),
        }
    }

    /// A network with what all of them know.
    fn informed(&self, keys: &Checkers, network: Arc<Network>) -> PlayerSpec {
        let player = PlayerSpec::Network { network, depth: keys.depth };
        match self.knowledge.get_or_init(|| keys.knowledge()) {
            None => player,
            Some(knowledge) => PlayerSpec::Knowing { player: Box::new(player), knowledge: knowledge.clone() },
        }
    }
}
