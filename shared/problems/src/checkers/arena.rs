//! Where games are played: tables with all the memory they need, used again and again.

use super::schedule::{Pairing, Side};
use super::{BenchmarkPlayer, Checkers};
use checkers::{Game, MaterialPlayer, Network, NetworkPlayer, Outcome, Player, Position, RandomPlayer};
use std::sync::{Arc, Mutex, PoisonError};

/// Tables that are free.
#[derive(Default)]
pub(super) struct Arena(Mutex<Vec<Table>>);

impl Arena {
    /// Plays a game at a free table, or at a new one.
    pub(super) fn play(&self, keys: &Checkers, pairing: &Pairing, networks: &[Arc<Network>]) -> Outcome {
        let mut table = self.lock().pop().unwrap_or_else(|| Table::new(keys));
        let outcome = table.play(pairing, networks);
        self.lock().push(table);
        outcome
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Table>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one game at a time.
struct Table {
    depth: u32,
    /// Seats of networks as Black and as White; taken when somebody first sits down.
    seats: [Option<NetworkPlayer>; 2],
    benchmark: Box<dyn Player + Send>,
    game: Game,
}

impl Table {
    fn new(keys: &Checkers) -> Self {
        let benchmark: Box<dyn Player + Send> = match keys.benchmark.player {
            BenchmarkPlayer::Material => Box::new(MaterialPlayer::new(keys.depth)),
            BenchmarkPlayer::Random => Box::new(RandomPlayer::new()),
        };
        Self { depth: keys.depth, seats: [None, None], benchmark, game: Game::new(keys.draw.rules()) }
    }

    fn play(&mut self, pairing: &Pairing, networks: &[Arc<Network>]) -> Outcome {
        let opening = pairing.opening.map(|opening| checkers::openings()[opening].position);
        self.game.restart(opening.unwrap_or(Position::START));
        let Self { depth, seats: [black, white], benchmark, game } = self;
        let sit = |seat: &mut Option<NetworkPlayer>, network: usize| {
            let network = networks[network].clone();
            match seat {
                Some(player) => player.set_network(network),
                None => *seat = Some(NetworkPlayer::new(network, *depth)),
            }
        };
        let mut seat = |seat: &mut Option<NetworkPlayer>, side: Side| match side {
            Side::Network(network) => sit(seat, network),
            Side::Benchmark(seed) => benchmark.new_game(seed),
        };
        seat(black, pairing.black);
        seat(white, pairing.white);
        let at_their_seat = "a network sat down";
        match (pairing.black, pairing.white) {
            (Side::Network(_), Side::Network(_)) => {
                game.play_out(black.as_mut().expect(at_their_seat), white.as_mut().expect(at_their_seat))
            }
            (Side::Network(_), Side::Benchmark(_)) => {
                game.play_out(black.as_mut().expect(at_their_seat), &mut **benchmark)
            }
            (Side::Benchmark(_), Side::Network(_)) => {
                game.play_out(&mut **benchmark, white.as_mut().expect(at_their_seat))
            }
            (Side::Benchmark(_), Side::Benchmark(_)) => unreachable!("an individual plays in every game"),
        }
    }
}
