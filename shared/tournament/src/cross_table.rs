//! What came out between each two players.

use crate::tally::Tally;
use std::collections::BTreeMap;

/// The results of a tournament by pairings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossTable {
    players: usize,
    /// As the player with the lower number saw it.
    tallies: BTreeMap<[usize; 2], Tally>,
}

impl CrossTable {
    /// A table of this number of players before the first game.
    pub fn new(players: usize) -> Self {
        Self { players, tallies: BTreeMap::new() }
    }

    /// How many players there are.
    pub fn players(&self) -> usize {
        self.players
    }

    /// Adds games of two players, as the first one saw them.
    pub fn add(&mut self, [first, second]: [usize; 2], tally: &Tally) {
        let (key, tally) =
            if first < second { ([first, second], *tally) } else { ([second, first], tally.turned()) };
        let sum = self.tallies.entry(key).or_default();
        *sum = sum.join(&tally);
    }

    /// The games of two players, as the first one saw them.
    pub fn between(&self, first: usize, second: usize) -> Tally {
        let tally = self.tallies.get(&[first.min(second), first.max(second)]).copied().unwrap_or_default();
        if first < second { tally } else { tally.turned() }
    }

    /// All games of a player.
    pub fn total(&self, player: usize) -> Tally {
        (0..self.players).fold(Tally::default(), |sum, other| sum.join(&self.between(player, other)))
    }

    /// All pairings that have been played, as the player with the lower number saw them.
    pub fn pairings(&self) -> impl Iterator<Item = ([usize; 2], &Tally)> {
        self.tallies.iter().map(|(key, tally)| (*key, tally))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_the_same_games() {
        let mut table = CrossTable::new(3);
        let tally = Tally { wins: 3, draws: 2, losses: 1, pairs: [0, 1, 0, 1, 1] };
        table.add([2, 0], &tally);
        table.add([1, 2], &tally);
        assert_eq!(table.between(2, 0), tally);
        assert_eq!(table.between(0, 2), tally.turned());
        assert_eq!(table.between(0, 1), Tally::default());
        assert_eq!(table.total(2), tally.join(&tally.turned()));
        assert_eq!(table.pairings().count(), 2);
    }
}
