//! The yardstick: how strong a player is, measured against opponents that never change.
//!
//! The frozen ladder is made of players that count pieces, plain and with every privilege (the game's history, the
//! endgame database with 4 pieces), 2 to 10 plies ahead. Their ratings are data (`data/ladder.csv`), measured once by
//! games of neighbouring rungs; the plain player of 4 plies is 0. By depth or by nodes everything here is the same on
//! every machine.

use crate::ratings::Rating;
use crate::tally::{CONFIDENCE, Tally};
use checkers::{
    Consult, Database, EndgameError, Endgames, Knowledge, Limits, PlaySettings, PlayerSpec, Style,
};
use std::sync::LazyLock;

/// Pieces of the database that privileged players ask.
pub const LADDER_PIECES: u32 = 4;

/// A player of the frozen ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Plies that it looks ahead.
    pub plies: u32,
    /// Whether it knows the game's history and asks the database.
    pub privileged: bool,
    /// How strong it is, if that has been measured.
    pub elo: Option<f64>,
}

impl Rung {
    /// What it is called.
    pub fn name(&self) -> String {
        let kind = if self.privileged { "privileged" } else { "plain" };
        format!("material {} {kind}", self.plies)
    }

    /// The player itself.
    pub fn player(&self) -> Result<PlayerSpec, EndgameError> {
        let player = PlayerSpec::Material { depth: self.plies };
        if self.privileged { privileged(player) } else { Ok(player) }
    }
}

/// The frozen ladder, plain players first, by plies.
pub fn ladder() -> &'static [Rung] {
    static LADDER: LazyLock<Vec<Rung>> = LazyLock::new(|| {
        let lines = include_str!("../data/ladder.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
        lines
            .map(|line| read_rung(line).expect("the ladder's lines are rungs: a test reads them all"))
            .collect()
    });
    &LADDER
}

fn read_rung(line: &str) -> Option<Rung> {
    let [kind, plies, elo] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
    let privileged = match kind {
        "plain" => false,
        "privileged" => true,
        _ => return None,
    };
    let elo = if elo.is_empty() { None } else { Some(elo.parse().ok()?) };
    Some(Rung { plies: plies.parse().ok()?, privileged, elo })
}

/// A player with every privilege: it knows the game's history, and asks the database wherever that knows the position.
pub fn privileged(player: PlayerSpec) -> Result<PlayerSpec, EndgameError> {
    let database = Database::shared(LADDER_PIECES)?;
    let endgames = Some(Endgames { database, consult: Consult::Always });
    let style = Style { history: true, ..Style::default() };
    let knowledge = Knowledge { endgames, style, ..Knowledge::default() };
    Ok(PlayerSpec::Knowing { player: Box::new(player), knowledge })
}

/// A player with the search that plays by nodes or time. It has one thread and a table of a fixed size, so that by nodes
/// it plays the same on every machine.
pub fn playing(player: PlayerSpec, limits: Limits) -> PlayerSpec {
    const TABLE_BITS: u32 = 18;
    let settings = PlaySettings { table_bits: Some(TABLE_BITS), ..PlaySettings::default() };
    PlayerSpec::Playing { player: Box::new(player), limits, settings }
}

/// The difference in Elo that a score stands for.
pub fn elo_of(score: f64) -> f64 {
    -400.0 * libm::log10(1.0 / score - 1.0)
}

fn expected(difference: f64) -> f64 {
    1.0 / (1.0 + libm::exp10(-difference / 400.0))
}

/// The difference in Elo between two players after some games, with its interval. Half a pair more and less keeps it
/// finite where all games were won or lost.
pub fn difference(tally: &Tally) -> Rating {
    let edge = 0.5 / (tally.pair_count() + 1) as f64;
    let bounded = |score: f64| elo_of(score.clamp(edge, 1.0 - edge));
    let (score, interval) = (tally.score(), tally.interval());
    Rating { elo: bounded(score), low: bounded(interval.low), high: bounded(interval.high) }
}

/// The rating of a player that has met opponents of known ratings: that at which they would be expected to score as they
/// did. Nothing without games.
pub fn performance(met: &[(f64, Tally)]) -> Option<Rating> {
    let games: f64 = met.iter().map(|(_, tally)| tally.games() as f64).sum();
    if games == 0.0 {
        return None;
    }
    let edge = 0.5 / (games + 1.0);
    let scored: f64 = met.iter().map(|(_, tally)| tally.score() * tally.games() as f64).sum();
    let scored = scored.clamp(edge * games, (1.0 - edge) * games);
    let surplus = |elo: f64| {
        let due: f64 = met.iter().map(|(other, tally)| expected(elo - other) * tally.games() as f64).sum();
        scored - due
    };
    // Halving a range that holds every answer: what is due rises with the rating.
    let (mut low, mut high) = (-10_000.0, 10_000.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if surplus(middle) > 0.0 { low = middle } else { high = middle }
    }
    let elo = f64::midpoint(low, high);
    let slope: f64 = met
        .iter()
        .map(|(other, tally)| {
            let share = expected(elo - other);
            tally.games() as f64 * share * (1.0 - share) * std::f64::consts::LN_10 / 400.0
        })
        .sum();
    let error = |tally: &Tally| {
        let error = tally.games() as f64 * tally.standard_error();
        error * error
    };
    let deviation = met.iter().map(|(_, tally)| error(tally)).sum::<f64>().sqrt() / slope;
    let margin = CONFIDENCE * deviation;
    Some(Rating { elo, low: elo - margin, high: elo + margin })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(wins: u64, draws: u64, losses: u64) -> Tally {
        let mut tally = Tally::default();
        // Pairs as independent games would make them, nearly.
        let mut results: Vec<i32> = vec![];
        for (count, points) in [(wins, 1), (draws, 0), (losses, -1)] {
            results.extend(std::iter::repeat_n(points, count as usize));
        }
        let half = results.len() / 2;
        for at in 0..half {
            tally.add(&[results[at], results[(at * 7 + 3) % half + half]]);
        }
        tally
    }

    #[test]
    fn the_ladder_has_every_rung_once() {
        let rungs: Vec<(bool, u32)> = ladder().iter().map(|rung| (rung.privileged, rung.plies)).collect();
        let all = [false, true].into_iter().flat_map(|kind| [2, 4, 6, 8, 10].map(|plies| (kind, plies)));
        assert_eq!(rungs, all.collect::<Vec<_>>());
        assert_eq!(ladder()[1].elo, Some(0.0));
        for kind in ladder().chunks(5) {
            let known: Vec<f64> = kind.iter().filter_map(|rung| rung.elo).collect();
            assert!(known.is_sorted(), "more plies are stronger: {kind:?}");
        }
    }

    #[test]
    fn an_even_score_is_the_opponents_rating() {
        let rating = performance(&[(120.0, tally(50, 100, 50))]).expect("there were games");
        assert!((rating.elo - 120.0).abs() < 1.0, "{rating:?}");
        assert!(rating.low < 100.0 && rating.high > 140.0, "{rating:?}");
        assert_eq!(performance(&[(0.0, Tally::default())]), None);
    }

    #[test]
    fn one_opponent_gives_the_same_as_the_difference() {
        let games = tally(120, 40, 40);
        let (one, other) = (difference(&games), performance(&[(0.0, games)]).expect("there were games"));
        assert!((one.elo - other.elo).abs() < 1e-6, "{one:?} {other:?}");
        assert!((elo_of(0.75) - 190.8).abs() < 0.1);
        assert!((expected(elo_of(0.3)) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn whoever_wins_everything_has_a_finite_rating() {
        for games in [tally(200, 0, 0), tally(0, 0, 200)] {
            let rating = performance(&[(0.0, games), (100.0, games)]).expect("there were games");
            assert!(rating.elo.is_finite() && difference(&games).elo.is_finite());
        }
    }
}
