//! What pairs of games add up to, and how sure that is.

use crate::record::{PlayedPair, Points};
use serde::{Deserialize, Serialize};

/// The results of pairs of games, as the first player saw them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
    /// Pairs in which 0, 1/2, 1, 3/2 and 2 points were scored.
    pub pairs: [u64; 5],
}

/// Where a score lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Two-sided 95 % of a normal distribution.
pub(crate) const CONFIDENCE: f64 = 1.959_964;

/// The share of a normal distribution that lies below this number of deviations.
pub(crate) fn normal(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations * std::f64::consts::FRAC_1_SQRT_2)
}

impl Tally {
    /// Counts a pair: for each game 1, 0 or -1.
    pub fn add(&mut self, pair: &[i32; 2]) {
        for points in pair {
            match points.signum() {
                1 => self.wins += 1,
                0 => self.draws += 1,
                _ => self.losses += 1,
            }
        }
        let halves: i32 = pair.iter().map(|points| points.signum() + 1).sum();
        self.pairs[halves as usize] += 1;
    }

    /// Counts a pair of games.
    pub fn count(&mut self, pair: &PlayedPair) {
        self.add(&pair.each_ref().map(|game| match game.points {
            Points::Win => 1,
            Points::Draw => 0,
            Points::Loss => -1,
        }));
    }

    /// The same as the second player saw it.
    pub fn turned(&self) -> Self {
        let mut pairs = self.pairs;
        pairs.reverse();
        Self { wins: self.losses, draws: self.draws, losses: self.wins, pairs }
    }

    /// Both tallies together.
    pub fn join(&self, other: &Self) -> Self {
        Self {
            wins: self.wins + other.wins,
            draws: self.draws + other.draws,
            losses: self.losses + other.losses,
            pairs: std::array::from_fn(|at| self.pairs[at] + other.pairs[at]),
        }
    }

    /// All games.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// The share of the points; a half without games.
    pub fn score(&self) -> f64 {
        if self.games() == 0 {
            0.5
        } else {
            (self.wins as f64 + self.draws as f64 / 2.0) / self.games() as f64
        }
    }

    /// Pairs that were counted.
    pub fn pair_count(&self) -> u64 {
        self.pairs.iter().sum()
    }

    /// The variance of a pair's score, from how much pairs differ. A fifth of a pair more of each result keeps it above
    /// zero when all pairs are alike.
    pub fn pair_variance(&self) -> f64 {
        let mean = self.score();
        let deviation = |at: usize| (at as f64 / 4.0 - mean) * (at as f64 / 4.0 - mean);
        let seen: f64 = (0..5).map(|at| self.pairs[at] as f64 * deviation(at)).sum();
        let imagined: f64 = (0..5).map(|at| deviation(at) / 5.0).sum();
        (seen + imagined) / (self.pair_count() + 1) as f64
    }

    /// The standard error of the score, from how much pairs differ.
    pub fn standard_error(&self) -> f64 {
        (self.pair_variance() / self.pair_count().max(1) as f64).sqrt()
    }

    /// How likely it is, after these games, that the first player is the stronger one; a half without games.
    pub fn superiority(&self) -> f64 {
        normal((self.score() - 0.5) / self.standard_error())
    }

    /// Where the score lies with 95 % confidence.
    pub fn interval(&self) -> Interval {
        let (score, margin) = (self.score(), CONFIDENCE * self.standard_error());
        Interval { low: (score - margin).max(0.0), high: (score + margin).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_by_their_points() {
        let mut tally = Tally::default();
        for pair in [[1, 1], [1, 0], [1, -1], [0, 0], [0, -1], [-1, -1]] {
            tally.add(&pair);
        }
        assert_eq!(tally, Tally { wins: 4, draws: 4, losses: 4, pairs: [1, 1, 2, 1, 1] });
        assert_eq!(tally.score(), 0.5);
    }

    #[test]
    fn pairs_that_even_out_say_more_than_games_that_do_not() {
        // Black always wins: a half, without uncertainty.
        let even = Tally { wins: 100, draws: 0, losses: 100, pairs: [0, 0, 100, 0, 0] };
        let wild = Tally { wins: 100, draws: 0, losses: 100, pairs: [50, 0, 0, 0, 50] };
        assert!(even.standard_error() < 0.005 && wild.standard_error() > 0.045);
    }

    #[test]
    fn an_interval_is_as_wide_as_it_says() {
        // 100 pairs of independent games, each won with probability 0.6: a deviation of sqrt(0.24 / 200) = 0.0346.
        let tally = Tally { wins: 120, draws: 0, losses: 80, pairs: [16, 0, 48, 0, 36] };
        let Interval { low, high } = tally.interval();
        assert!((high - low - 2.0 * 1.96 * 0.0346).abs() < 0.003, "{low} to {high}");
        assert!((tally.score() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn superiority_follows_the_score() {
        let tally = Tally { wins: 60, draws: 100, losses: 40, pairs: [5, 20, 40, 25, 10] };
        assert!((tally.score() - 0.55).abs() < 1e-12);
        // One sixth of a deviation a pair: 0.05 above a half, of about 0.0255.
        assert!((tally.superiority() - 0.975).abs() < 0.005, "{}", tally.superiority());
        assert!((tally.superiority() + tally.turned().superiority() - 1.0).abs() < 1e-12);
        assert_eq!(Tally::default().superiority(), 0.5);
        assert_eq!(tally.turned().turned(), tally);
    }

    #[test]
    fn without_games_nothing_is_known() {
        assert_eq!(Tally::default().interval(), Interval { low: 0.0, high: 1.0 });
    }
}
