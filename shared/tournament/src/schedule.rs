//! Pairings and openings, in numbered batches.

use crate::duel::Pair;
use crate::record::PlayedPair;
use crate::sprt::{Sprt, SprtVerdict};
use crate::tally::Tally;
use checkers::{Opening, stratified_openings};
use std::ops::Range;

/// Which players meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Each player meets each other.
    RoundRobin,
    /// The first player, and its team, meet all others.
    Gauntlet,
    /// The n-th player of a team meets the n-th of every other team.
    Paired,
}

/// All games of a tournament, before the first one is played.
///
/// Batches are numbered round by round: each pairing's first batch comes before any second one. So all pairings advance at the
/// same pace, and most batches that a sequential test makes unnecessary have not started.
#[derive(Clone, Debug)]
pub struct Schedule {
    pairings: Vec<[usize; 2]>,
    pairs: Vec<Pair>,
}

/// Some pairs between two players.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Which of the pairings.
    pub pairing: usize,
    /// How many of its batches come before this one.
    pub round: u32,
    /// Its places among the pairs of every pairing.
    pub pairs: Range<usize>,
}

impl Schedule {
    /// The pairs of one batch: a twelfth of the deck.
    pub const BATCH: usize = 13;

    /// The games of these teams. Players of one team do not meet. Every other two players play `openings` openings of the deck
    /// (drawn by the seed if fewer than all), repeated this number of times.
    pub fn new(
        teams: &[&str],
        format: Format,
        deck: &'static [Opening],
        openings: usize,
        rounds: usize,
        seed: u64,
    ) -> Self {
        let opponents = |first: usize| first + 1..teams.len();
        let place = |player: usize| teams[..player].iter().filter(|team| **team == teams[player]).count();
        let meet = |first: usize, second: usize| {
            let begins = match format {
                Format::RoundRobin => true,
                Format::Gauntlet => teams[first] == teams[0] || teams[second] == teams[0],
                Format::Paired => place(first) == place(second),
            };
            begins && teams[first] != teams[second]
        };
        let pairings = (0..teams.len())
            .flat_map(|first| opponents(first).map(move |second| [first, second]))
            .filter(|&[first, second]| meet(first, second))
            .collect();
        Self { pairings, pairs: pairs(deck, openings, rounds, seed) }
    }

    /// Which players meet.
    pub fn pairings(&self) -> &[[usize; 2]] {
        &self.pairings
    }

    /// The pairs that each two play.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// The batches of each pairing.
    pub fn rounds(&self) -> u32 {
        self.pairs.len().div_ceil(Self::BATCH) as u32
    }

    /// All batches.
    pub fn len(&self) -> u64 {
        u64::from(self.rounds()) * self.pairings.len() as u64
    }

    /// Whether there are no pairings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All games.
    pub fn games(&self) -> u64 {
        2 * self.pairs.len() as u64 * self.pairings.len() as u64
    }

    /// A batch by its number.
    pub fn batch(&self, number: u32) -> Batch {
        let (round, pairing) = (number / self.pairings.len() as u32, number as usize % self.pairings.len());
        let first = round as usize * Self::BATCH;
        Batch { pairing, round, pairs: first..(first + Self::BATCH).min(self.pairs.len()) }
    }

    /// The number of a pairing's batch.
    pub fn number(&self, pairing: usize, round: u32) -> u32 {
        round * self.pairings.len() as u32 + pairing as u32
    }
}

/// Neighbouring openings of the deck are similar, so the deck is traversed in strides: a match that stops early has
/// sampled the whole deck.
fn pairs(deck: &'static [Opening], openings: usize, rounds: usize, seed: u64) -> Vec<Pair> {
    let drawn = stratified_openings(deck, openings, seed);
    let stride = stride(drawn.len());
    let place = |at: usize| (at * stride) % drawn.len();
    (0..drawn.len() * rounds).map(|at| Pair { opening: drawn[place(at)], number: at as u64 }).collect()
}

/// The first number from the golden section on that has no divisor in common with the count.
fn stride(count: usize) -> usize {
    let is_common = |n: usize, stride: usize| stride.is_multiple_of(n) && count.is_multiple_of(n);
    let is_coprime = |&stride: &usize| !(2..=stride).any(|n| is_common(n, stride));
    (count * 5 / 8..count).find(is_coprime).unwrap_or(1).max(1)
}

/// The progress of two players: the longest prefix of their pairs that was played without a gap counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Race {
    /// The results of the pairs that count.
    pub tally: Tally,
    /// The batches that count.
    pub batches: u32,
    /// What a sequential test has decided: then no further pairs count.
    pub verdict: Option<SprtVerdict>,
}

impl Race {
    /// Counts the next batch, as far as a sequential test leaves it open.
    pub fn count(&mut self, pairs: &[PlayedPair], sprt: Option<&Sprt>) {
        for pair in pairs {
            if self.verdict.is_none() {
                self.tally.count(pair);
                self.verdict = sprt.and_then(|sprt| sprt.verdict(&self.tally));
            }
        }
        self.batches += 1;
    }

    /// Whether this batch of the two can still count.
    pub fn needs(&self, round: u32) -> bool {
        self.verdict.is_none() || round < self.batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::openings;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn everybody_meets_everybody_of_other_teams() {
        let schedule = Schedule::new(&["a", "b", "a", "c"], Format::RoundRobin, openings(), 156, 1, 0);
        assert_eq!(schedule.pairings(), [[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!((schedule.rounds(), schedule.len(), schedule.games()), (12, 60, 5 * 312));
    }

    #[test]
    fn a_gauntlet_is_run_by_the_first_team() {
        let schedule = Schedule::new(&["a", "b", "a", "c"], Format::Gauntlet, openings(), 20, 2, 0);
        assert_eq!(schedule.pairings(), [[0, 1], [0, 3], [1, 2], [2, 3]]);
        assert_eq!(schedule.pairs().len(), 40);
        assert!(Schedule::new(&["a", "a"], Format::Gauntlet, openings(), 20, 2, 0).is_empty());
    }

    #[test]
    fn players_in_the_same_place_of_their_teams_meet() {
        let teams = ["a", "b", "a", "b", "c", "a"];
        let schedule = Schedule::new(&teams, Format::Paired, checkers::initial_opening(), 156, 3, 0);
        assert_eq!(schedule.pairings(), [[0, 1], [0, 4], [1, 4], [2, 3]]);
        assert_eq!((schedule.pairs().len(), schedule.games()), (3, 24), "a pair of games a round");
        assert!(schedule.pairs().iter().all(|pair| pair.opening.position == checkers::Position::START));
    }

    proptest! {
        #[test]
        fn every_pair_is_in_one_batch(players in 2..9usize, openings in 1..=156usize, rounds in 1..4usize) {
            let teams: Vec<String> = (0..players).map(|player| player.to_string()).collect();
            let teams: Vec<&str> = teams.iter().map(String::as_str).collect();
            let schedule = Schedule::new(&teams, Format::RoundRobin, checkers::openings(), openings, rounds, 3);
            let mut seen = BTreeSet::new();
            for number in 0..schedule.len() as u32 {
                let batch = schedule.batch(number);
                prop_assert_eq!(schedule.number(batch.pairing, batch.round), number);
                for pair in batch.pairs {
                    prop_assert!(seen.insert((batch.pairing, pair)));
                }
            }
            prop_assert_eq!(2 * seen.len() as u64, schedule.games());
            let deck: BTreeSet<u16> = schedule.pairs()[..openings].iter().map(|pair| pair.opening.number).collect();
            prop_assert_eq!(deck.len(), openings);
            let numbers: BTreeSet<u64> = schedule.pairs().iter().map(|pair| pair.number).collect();
            prop_assert_eq!(numbers.len(), openings * rounds);
        }
    }
}
