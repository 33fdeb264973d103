//! The yardstick of a run: how strong its champions are, measured while it runs. It is the frozen ladder of
//! `atoll bench strength`: the same opponents, openings and numbers.

use checkers::MAX_DEPTH;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tournament::{Rung, Tally, difference, material_rungs, performance};

pub use tournament::Rating;

/// Plies unless the file says otherwise.
const PLIES: u32 = 4;

/// The seed of the players' random choices: that of `atoll bench strength`.
pub const SEED: u64 = 1;

/// How champions are measured: each milestone of each island plays games against each opponent, as work of the lowest
/// priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct YardstickKeys {
    /// Plies that champions look ahead; 4 unless `nodes` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub depth: Option<u32>,
    /// Instead of plies: positions that both players may visit for a move.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub nodes: Option<u64>,
    /// Pairs of games against each opponent, each from an opening of the deck with colours swapped.
    #[schemars(range(min = 1, max = 156))]
    pub pairs: u32,
    /// Opponents, as `atoll bench strength` names them: `"material 6 plain"`, `"champion 4 learning-1"`; with `nodes`
    /// without plies, such as `"material plain"`. Left out: both material players of the same depth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub opponents: Vec<String>,
    /// Share of the workers' time that it may take while epochs are waiting; idle workers measure anyway.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

impl Default for YardstickKeys {
    fn default() -> Self {
        Self { depth: None, nodes: None, pairs: 24, opponents: vec![], share: 0.05 }
    }
}

impl YardstickKeys {
    /// Plies that champions look ahead: as many as a search can where nodes end it.
    pub fn plies(&self) -> u32 {
        if self.nodes.is_some() { MAX_DEPTH } else { self.depth.unwrap_or(PLIES) }
    }

    /// The names of the opponents.
    pub fn opponents(&self) -> Vec<String> {
        if !self.opponents.is_empty() {
            return self.opponents.clone();
        }
        let name = |rung: &Rung| if self.nodes.is_some() { rung.name_without_plies() } else { rung.name() };
        material_rungs(self.plies()).iter().map(name).collect()
    }

    /// Whether this is the name of an opponent.
    pub(crate) fn is_opponent(&self, name: &str) -> bool {
        Rung::named(name).is_some_and(|rung| (rung.plies == MAX_DEPTH) == self.nodes.is_some())
    }

    /// The rating after games against the opponents, in their order: in Elo, where plain material of 4 plies is 0. Where no
    /// rating of an opponent is known, or nodes end the searches, it is the difference to all of them together.
    pub fn rating(&self, tallies: &[Tally]) -> Rating {
        let rated = self.opponents().into_iter().zip(tallies).filter_map(|(name, tally)| {
            let elo = Rung::named(&name)?.elo.filter(|_| self.nodes.is_none())?;
            Some((elo, *tally))
        });
        let rated: Vec<(f64, Tally)> = rated.collect();
        let together = || tallies.iter().fold(Tally::default(), |sum, tally| sum.join(tally));
        performance(&rated).unwrap_or_else(|| difference(&together()))
    }

    /// What the rating is measured from.
    pub fn zero(&self) -> &'static str {
        let is_rated = |name: &String| Rung::named(name).is_some_and(|rung| rung.elo.is_some());
        if self.nodes.is_none() && self.opponents().iter().any(is_rated) {
            "plain material of 4 plies is 0"
        } else {
            "the difference to the opponents"
        }
    }

    /// About how long one champion takes against all opponents, on one thread.
    pub fn time(&self) -> Duration {
        // A game has some 60 moves, a position takes some 250 ns, and a ply takes some three times as many.
        let by_depth = |plies: u32| 4_000_000 * 3u64.saturating_pow(plies) / 81;
        let game = |name: &String| match self.nodes {
            Some(nodes) => nodes.saturating_mul(60 * 250),
            None => by_depth(self.plies())
                .saturating_add(by_depth(Rung::named(name).map_or(PLIES, |rung| rung.plies))),
        };
        let games: u64 = self.opponents().iter().map(game).fold(0, u64::saturating_add);
        Duration::from_nanos(games.saturating_mul(2 * u64::from(self.pairs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(wins: u64, losses: u64) -> Tally {
        let mut tally = Tally::default();
        (0..wins / 2).for_each(|_| tally.add(&[1, 1]));
        (0..losses / 2).for_each(|_| tally.add(&[-1, -1]));
        tally
    }

    #[test]
    fn opponents_are_those_of_the_ladder() {
        let keys = YardstickKeys::default();
        assert_eq!(keys.opponents(), ["material 4 plain", "material 4 privileged"]);
        let nodes = YardstickKeys { nodes: Some(100), ..YardstickKeys::default() };
        assert_eq!(nodes.opponents(), ["material plain", "material privileged"]);
        for (name, [by_depth, by_nodes]) in [
            ("material 6 plain", [true, false]),
            ("champion 4 learning-1", [true, false]),
            ("champion learning-1", [false, true]),
            ("material 4", [false, false]),
        ] {
            assert_eq!([keys.is_opponent(name), nodes.is_opponent(name)], [by_depth, by_nodes], "{name}");
        }
        assert!(nodes.time() > Duration::ZERO && keys.time() > Duration::from_millis(10));
    }

    #[test]
    fn only_rated_opponents_count_if_there_are_any() {
        let keys = YardstickKeys {
            opponents: vec!["material 4 plain".to_owned(), "material 5 plain".to_owned()],
            ..YardstickKeys::default()
        };
        let even = keys.rating(&[tally(20, 20), tally(40, 0)]);
        assert!(even.elo.abs() < 1.0 && keys.zero().contains("is 0"), "{even:?}");
        let unrated =
            YardstickKeys { opponents: vec!["material 5 plain".to_owned()], ..YardstickKeys::default() };
        let above = unrated.rating(&[tally(30, 10)]);
        assert!(above.low > 0.0 && unrated.zero().contains("difference"), "{above:?}");
    }
}
