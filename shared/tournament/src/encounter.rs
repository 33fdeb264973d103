//! What came out between two teams, and how sure that is.
//!
//! The players of a team stand for a method, and what they have in common with each other is where they come from: the
//! run that evolved them. Another run might have made others, and however many games these play, they tell nothing of
//! that. So a team's score is judged by its origins, not by its games: each origin of either side is left out once, and
//! what that changes says how much the score would differ with other runs (a jackknife over both sides, with Student's
//! distribution, because there are few). The luck of single games is counted on both sides, which makes intervals
//! rather too wide than too narrow.

use crate::student;
use crate::tally::{Interval, Tally};
use std::collections::{BTreeMap, BTreeSet};

/// All games of two teams, by where their players come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encounter {
    /// By the origins of the first team's player and of the second's, as the first team saw it.
    cells: BTreeMap<[usize; 2], Tally>,
}

/// How sure a score is.
struct Spread {
    error: f64,
    /// Degrees of freedom of Student's distribution; without any, games alone say how sure it is.
    degrees: Option<f64>,
}

impl Encounter {
    /// Adds games between players of these origins, as the first team saw them.
    pub fn add(&mut self, origins: [usize; 2], tally: &Tally) {
        if tally.games() > 0 {
            let sum = self.cells.entry(origins).or_default();
            *sum = sum.join(tally);
        }
    }

    /// The same as the second team saw it.
    pub fn turned(&self) -> Self {
        let turned = |(&[first, second], tally): (&[usize; 2], &Tally)| ([second, first], tally.turned());
        Self { cells: self.cells.iter().map(turned).collect() }
    }

    /// All games together.
    pub fn tally(&self) -> Tally {
        self.sum(|_| true)
    }

    /// How many origins of the first and of the second team have played.
    pub fn origins(&self) -> [usize; 2] {
        [0, 1].map(|side| self.origins_of(side).len())
    }

    /// Whether there are several origins on a side, so that they are what the score is judged by.
    pub fn is_sample(&self) -> bool {
        self.origins().into_iter().any(|count| count > 1)
    }

    /// Where the score lies with 95 % confidence: for teams of several origins that of the methods that made them, else
    /// that of these players.
    pub fn interval(&self) -> Interval {
        let (tally, Spread { error, degrees }) = (self.tally(), self.spread());
        let Some(degrees) = degrees else { return tally.interval() };
        let (score, margin) = (tally.score(), student::confidence(degrees) * error);
        Interval { low: (score - margin).max(0.0), high: (score + margin).min(1.0) }
    }

    /// How likely it is, after these games, that the first team is the stronger one.
    pub fn superiority(&self) -> f64 {
        let (tally, Spread { error, degrees }) = (self.tally(), self.spread());
        let Some(degrees) = degrees else { return tally.superiority() };
        let deviations = (tally.score() - 0.5) / error;
        0.5 + student::within(deviations.abs(), degrees).copysign(deviations) / 2.0
    }

    fn sum(&self, counts: impl Fn(&[usize; 2]) -> bool) -> Tally {
        let counted = self.cells.iter().filter(|(origins, _)| counts(origins));
        counted.fold(Tally::default(), |sum, (_, tally)| sum.join(tally))
    }

    fn origins_of(&self, side: usize) -> BTreeSet<usize> {
        self.cells.keys().map(|origins| origins[side]).collect()
    }

    fn spread(&self) -> Spread {
        let own = self.tally().standard_error();
        if !self.is_sample() {
            return Spread { error: own, degrees: None };
        }
        let sides = [0, 1].map(|side| self.variance_by(side));
        let freedom = self.origins().map(|count| count.saturating_sub(1) as f64);
        let variance = sides[0] + sides[1];
        // Welch and Satterthwaite's degrees of freedom, of sides that were judged with different sureness.
        let weighed: f64 = (0..2)
            .filter(|&side| freedom[side] > 0.0)
            .map(|side| sides[side] * sides[side] / freedom[side])
            .sum();
        let degrees = if weighed > 0.0 { variance * variance / weighed } else { freedom[0] + freedom[1] };
        // Few origins may happen to be alike; then it is their games that leave something open.
        Spread { error: variance.sqrt().max(own), degrees: Some(degrees) }
    }

    /// The variance of the score by leaving out the origins of a side, one after the other.
    fn variance_by(&self, side: usize) -> f64 {
        let origins = self.origins_of(side);
        let count = origins.len() as f64;
        if origins.len() < 2 {
            return 0.0;
        }
        let without = |origin: &usize| self.sum(|origins| origins[side] != *origin).score();
        let scores: Vec<f64> = origins.iter().map(without).collect();
        let mean = scores.iter().sum::<f64>() / count;
        let squares: f64 = scores.iter().map(|score| (score - mean) * (score - mean)).sum();
        squares * (count - 1.0) / count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of pairs: this share is won, the others are lost.
    fn pairs(count: u64, share: f64) -> Tally {
        let won = (count as f64 * share).round() as u64;
        let lost = count - won;
        Tally { wins: 2 * won, draws: 0, losses: 2 * lost, pairs: [lost, 0, 0, 0, won] }
    }

    fn encounter(shares: &[([usize; 2], f64)]) -> Encounter {
        let mut encounter = Encounter::default();
        for (origins, share) in shares {
            encounter.add(*origins, &pairs(1000, *share));
        }
        encounter
    }

    #[test]
    fn against_one_opponent_it_is_students_interval_over_the_origins() {
        let shares = [0.4, 0.5, 0.6, 0.7];
        let all: Vec<_> = shares.iter().enumerate().map(|(origin, share)| ([origin, 9], *share)).collect();
        let Interval { low, high } = encounter(&all).interval();
        // A mean of 0.55, a deviation of 0.1291, four values: 3.1824 * 0.1291 / 2.
        assert!(
            (low - (0.55 - 0.205_42)).abs() < 1e-4 && (high - (0.55 + 0.205_42)).abs() < 1e-4,
            "{low} to {high}"
        );
        assert!((encounter(&all).superiority() - 0.75).abs() < 0.1);
    }

    #[test]
    fn more_games_of_the_same_players_do_not_make_it_surer() {
        let share = |one: usize, other: usize| 0.5 + 0.02 * one as f64 - 0.03 * other as f64;
        let cells: Vec<_> = (0..25).map(|at| ([at / 5, at % 5], share(at / 5, at % 5))).collect();
        let few = encounter(&cells);
        let mut many = few.clone();
        for (origins, share) in &cells {
            many.add(*origins, &pairs(99_000, *share));
        }
        let width = |interval: Interval| interval.high - interval.low;
        assert!((width(few.interval()) - width(many.interval())).abs() < 1e-9);
        assert!(width(many.interval()) < 0.2, "{:?}", many.interval());
        assert!(
            width(many.tally().interval()) < 0.2 * width(few.tally().interval()),
            "games alone would say so"
        );
    }

    #[test]
    fn one_origin_on_each_side_is_judged_by_its_games() {
        let alone = encounter(&[([3, 5], 0.6)]);
        assert!(!alone.is_sample());
        assert_eq!(alone.interval(), alone.tally().interval());
        assert_eq!(alone.superiority(), alone.tally().superiority());
        assert_eq!(Encounter::default().interval(), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn origins_that_are_alike_leave_what_their_games_leave() {
        let alike = encounter(&[([0, 0], 1.0), ([1, 0], 1.0), ([2, 0], 1.0)]);
        let Interval { low, high } = alike.interval();
        assert!(low < 1.0 && high == 1.0, "{low} to {high}");
    }

    #[test]
    fn both_teams_see_the_same() {
        let one = encounter(&[([0, 0], 0.4), ([0, 1], 0.6), ([1, 0], 0.8), ([1, 1], 0.7)]);
        let (ours, theirs) = (one.interval(), one.turned().interval());
        assert!(
            (ours.low - (1.0 - theirs.high)).abs() < 1e-12 && (ours.high - (1.0 - theirs.low)).abs() < 1e-12
        );
        assert!((one.superiority() + one.turned().superiority() - 1.0).abs() < 1e-12);
        assert_eq!(one.turned().turned(), one);
        assert_eq!(one.origins(), [2, 2]);
    }

    struct Dice(u64);

    impl Dice {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// What a run makes of its players, better or worse than others of its method.
        fn runs(&mut self) -> [f64; 5] {
            std::array::from_fn(|_| 0.3 * (self.uniform() - 0.5))
        }
    }

    /// Two methods that are equally good, but whose runs differ: 95 % of intervals must hold a half.
    #[test]
    fn intervals_cover_what_they_say() {
        const TRIALS: usize = 2000;
        let mut dice = Dice(7);
        let (mut by_origins, mut by_games) = (0, 0);
        for _ in 0..TRIALS {
            let (ours, theirs) = (dice.runs(), dice.runs());
            let mut encounter = Encounter::default();
            for (one, us) in ours.iter().enumerate() {
                for (other, them) in theirs.iter().enumerate() {
                    let mut tally = Tally::default();
                    for _ in 0..40 {
                        tally.add(&[0, 1].map(|_| if dice.uniform() < 0.5 + us - them { 1 } else { -1 }));
                    }
                    encounter.add([one, other], &tally);
                }
            }
            by_origins += usize::from(encounter.interval().contains(0.5));
            by_games += usize::from(encounter.tally().interval().contains(0.5));
        }
        let share = |count: usize| count as f64 / TRIALS as f64;
        assert!((0.94..0.99).contains(&share(by_origins)), "{}", share(by_origins));
        assert!(share(by_games) < 0.6, "games alone are too sure of themselves: {}", share(by_games));
    }
}
