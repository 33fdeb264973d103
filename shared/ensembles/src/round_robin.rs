//! A round robin: each player against each other.

use crate::settings::SpeciationSettings;
use checkers::{Knowledge, Network, Opening, PlayerSpec, Race, Side, Table, openings, stratified_openings};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::sync::Arc;

/// The score of a player in a round robin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundRobinStanding {
    /// Whose it is: a place among the players.
    pub player: usize,
    /// Games won.
    pub wins: u32,
    /// Games lost.
    pub losses: u32,
    /// Games drawn.
    pub draws: u32,
}

impl RoundRobinStanding {
    /// Two for a win, one for a draw.
    pub fn points(&self) -> u32 {
        2 * self.wins + self.draws
    }

    /// Of a player before its first game.
    fn fresh(player: usize) -> Self {
        Self { player, ..Self::default() }
    }

    /// Adds a game: 1 won, -1 lost, 0 drawn.
    fn add(&mut self, points: i32) {
        match points {
            1 => self.wins += 1,
            -1 => self.losses += 1,
            _ => self.draws += 1,
        }
    }
}

/// Called with the number of games played or networks looked at since the last call, by any thread.
pub type Count<'a> = &'a (dyn Fn(u64) + Sync);

/// A game to play.
struct Pairing {
    black: usize,
    white: usize,
    opening: &'static Opening,
    /// Decides between equal moves, where chance does.
    seed: u64,
}

impl Pairing {
    /// Black's points.
    fn play(&self, table: &mut Table, players: &[PlayerSpec]) -> i32 {
        let sides = [&players[self.black], &players[self.white]];
        table.play(self.opening.position, sides, [self.seed, self.seed ^ 1]).points(Side::Black)
    }
}

/// Lets each two of these play [`SpeciationSettings::pairs`] openings with both colours; the best comes first. Of several with
/// as many points it is the one with more wins, then the one that comes first among the players. In a race
/// ([`SpeciationSettings::race`]) those come after it who stayed longest.
pub fn round_robin(players: &[Arc<Network>], settings: &SpeciationSettings) -> Vec<RoundRobinStanding> {
    counted_round_robin(players, settings, &|_| ())
}

/// The same, counting each game.
pub(crate) fn counted_round_robin(
    players: &[Arc<Network>],
    settings: &SpeciationSettings,
    count: Count<'_>,
) -> Vec<RoundRobinStanding> {
    let depth = settings.depth;
    let knowledge = Knowledge { style: settings.style, ..Knowledge::default() };
    let spec = |network: &Arc<Network>| {
        let player = PlayerSpec::Network { network: network.clone(), depth };
        if knowledge.is_none() {
            return player;
        }
        PlayerSpec::Knowing { player: Box::new(player), knowledge: knowledge.clone() }
    };
    let specs: Vec<PlayerSpec> = players.iter().map(spec).collect();
    let table = || Table::new(settings.rules, None);
    let play = |table: &mut Table, game: &Pairing| {
        let points = game.play(table, &specs);
        count(1);
        points
    };
    let meet = |games: Vec<Pairing>, standings: &mut [RoundRobinStanding]| {
        let points: Vec<i32> = games.par_iter().map_init(table, play).collect();
        for (pairing, points) in games.iter().zip(points) {
            standings[pairing.black].add(points);
            standings[pairing.white].add(-points);
        }
    };
    let mut standings: Vec<RoundRobinStanding> = (0..players.len()).map(RoundRobinStanding::fresh).collect();
    let (mut draw, mut race) = (Draw::new(settings), Race::new(players.len()));
    if !settings.race {
        meet(draw.games(race.left(), settings.pairs.max(1)), &mut standings);
        standings.sort_by_key(|standing| Reverse((standing.points(), standing.wins)));
        return standings;
    }
    for _ in 0..settings.pairs.max(1) {
        let before: Vec<u32> = race.left().iter().map(|&player| standings[player].points()).collect();
        if before.len() < 2 {
            break;
        }
        meet(draw.games(race.left(), 1), &mut standings);
        let gained =
            race.left().iter().zip(&before).map(|(&player, before)| standings[player].points() - before);
        // A mean over games: fewer are left from round to round.
        let share = 1.0 / (4 * (before.len() - 1)) as f64;
        let scores: Vec<f64> = gained.map(|points| f64::from(points) * share).collect();
        race.add(&scores);
    }
    let rank = |one: &RoundRobinStanding| {
        (one.player == race.best(), race.rounds(one.player), one.points(), one.wins)
    };
    standings.sort_by_key(|standing| Reverse(rank(standing)));
    standings
}

/// Draws games. Each two players take the next openings of the deck, so that no player is judged by one opening alone.
struct Draw {
    openings: Vec<&'static Opening>,
    seed: u64,
    pairs: usize,
}

impl Draw {
    fn new(settings: &SpeciationSettings) -> Self {
        Self { openings: varied_openings(settings.seed), seed: settings.seed, pairs: 0 }
    }

    /// This number of pairs of games of each two of these players.
    fn games(&mut self, players: &[usize], pairs: usize) -> Vec<Pairing> {
        let mut games = vec![];
        for (at, &first) in players.iter().enumerate() {
            for &second in &players[at + 1..] {
                for _ in 0..pairs {
                    let opening = self.openings[self.pairs % self.openings.len()];
                    for (game, [black, white]) in [[first, second], [second, first]].into_iter().enumerate() {
                        let number = (2 * self.pairs + game) as u64 + 1;
                        let seed = self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                        games.push(Pairing { black, white, opening, seed });
                    }
                    self.pairs += 1;
                }
            }
        }
        games
    }
}

/// Openings from all over the deck, in which neighbours are not alike.
fn varied_openings(seed: u64) -> Vec<&'static Opening> {
    const STRATA: u64 = 24;
    const STRATUM: usize = 13;
    (0..STRATA).flat_map(|part| stratified_openings(openings(), STRATUM, seed.wrapping_add(part))).collect()
}
