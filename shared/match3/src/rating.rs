//! How hard a board is: what many plays say of the next one.

use crate::board::{Board, BoardError};
use crate::game::{Game, Play};
use crate::player::{Player, PlayerError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the plays of a board add up to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    pass: f64,
    plays: u64,
    /// Sums of the first four powers of each score's distance to the pass score.
    powers: [f64; 4],
    passed: u64,
    scoring_moves: u64,
    waves: u64,
}

/// How hard a board is for a player.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rating {
    /// Plays it rests on.
    pub plays: u64,
    /// Mean score.
    pub mean: f64,
    /// Standard deviation of the scores.
    pub deviation: f64,
    /// The probability of passing if scores were normally distributed.
    pub estimate: f64,
    /// The standard error of that estimate; too small where rare cascades make most of the deviation.
    pub error: f64,
    /// The share of plays that really passed.
    pub passed: f64,
    /// The 95 % interval (Wilson's) of the true share, from and to.
    pub interval: (f64, f64),
    /// How many times a scoring move cleared blocks, in the mean: 1 without cascades.
    pub cascade: f64,
}

/// A wanted probability of passing, and what is compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Target {
    /// The normal estimate from mean and deviation.
    Estimate(#[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))] f64),
    /// The share of plays that really pass.
    Passed(PassedShare),
}

/// A wanted share of plays that really pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PassedShare {
    /// The share of plays that reach the pass score.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub passed: f64,
}

impl Target {
    /// A share of plays that really pass.
    pub fn passed(passed: f64) -> Self {
        Self::Passed(PassedShare { passed })
    }

    /// The wanted probability.
    pub fn value(self) -> f64 {
        match self {
            Self::Estimate(wanted) | Self::Passed(PassedShare { passed: wanted }) => wanted,
        }
    }

    /// What a rating says of it.
    pub fn measure(self, rating: &Rating) -> f64 {
        match self {
            Self::Estimate(_) => rating.estimate,
            Self::Passed(_) => rating.passed,
        }
    }

    /// The standard error of that. For the share that passed it follows from Wilson's interval, which has a width even
    /// where all plays or none passed.
    pub fn error(self, rating: &Rating) -> f64 {
        match self {
            Self::Estimate(_) => rating.error,
            Self::Passed(_) => (rating.interval.1 - rating.interval.0) / (2.0 * QUANTILE_95),
        }
    }

    /// 1 - |wanted - measured|.
    pub fn fitness(self, rating: &Rating) -> f64 {
        1.0 - (self.value() - self.measure(rating)).abs()
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Estimate(wanted) => write!(formatter, "{wanted}"),
            Self::Passed(share) => write!(formatter, "{} passed", share.passed),
        }
    }
}

/// How many plays a board deserves: few if it is hopeless, many if it comes near the target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// The wanted probability of passing.
    pub target: Target,
    /// The fitness below which a board needs no exact rating.
    pub worth: f64,
    /// Enough is known once the standard error of what is compared with the target is below this.
    pub precision: f64,
    /// No fewer plays than these.
    pub least: u32,
    /// No more plays than these.
    pub most: u32,
}

/// Why a board was not rated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RateError {
    /// The board does not fit the rules.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The player cannot play.
    #[error(transparent)]
    Player(#[from] PlayerError),
    /// The target is no probability, or the plays none at all.
    #[error("expected {expected}, found `{found}`")]
    Sampling {
        /// What the value must be.
        expected: &'static str,
        /// The value given.
        found: f64,
    },
}

/// Plays between two looks at the result.
const BATCH: usize = 64;

/// Standard errors by which an estimate must miss before it counts as having missed. This many, because a search finds the
/// luckiest of thousands of boards, and because scores have long tails, which few plays do not show.
const SURE: f64 = 4.0;

/// The normal quantile of a two-sided 95 % interval.
const QUANTILE_95: f64 = 1.959_963_984_540_054;

impl Tally {
    /// No plays yet, to be judged by this pass score.
    pub fn new(pass: f64) -> Self {
        Self { pass, plays: 0, powers: [0.0; 4], passed: 0, scoring_moves: 0, waves: 0 }
    }

    /// Adds one play.
    pub fn add(&mut self, play: &Play) {
        let above = play.score - self.pass;
        let mut power = 1.0;
        for sum in &mut self.powers {
            power *= above;
            *sum += power;
        }
        self.plays += 1;
        self.passed += u64::from(play.score >= self.pass);
        self.scoring_moves += u64::from(play.scoring_moves);
        self.waves += u64::from(play.waves);
    }

    /// What the plays so far say; nothing but zeros before the first.
    pub fn rating(&self) -> Rating {
        let n = self.plays.max(1) as f64;
        let [m1, m2, m3, m4] = self.powers.map(|sum| sum / n);
        let variance = (m2 - m1 * m1).max(0.0);
        let deviation = (variance * n / (n - 1.0).max(1.0)).sqrt();
        let mean = if self.plays == 0 { 0.0 } else { self.pass + m1 };
        let third = m3 - m1 * (3.0 * m2 - 2.0 * m1 * m1);
        let fourth = m4 - m1 * (4.0 * m3 - m1 * (6.0 * m2 - 3.0 * m1 * m1));
        let passed = self.passed as f64 / n;
        Rating {
            plays: self.plays,
            mean,
            deviation,
            estimate: probability_of_passing(mean, deviation, self.pass),
            error: if deviation > 0.0 {
                let (skewness, kurtosis) = (third / (variance * deviation), fourth / (variance * variance));
                standard_error((self.pass - mean) / deviation, skewness, kurtosis, n)
            } else {
                0.0
            },
            passed,
            interval: wilson(passed, n),
            cascade: self.waves as f64 / self.scoring_moves.max(1) as f64,
        }
    }
}

/// The standard error of the normal estimate at `z` deviations above the mean.
// Scores have a long tail: the error of their deviation follows from the kurtosis they have, and that of the mean
// goes along with it by their skewness. Taken for normal, the error would come out at half of what it is.
fn standard_error(z: f64, skewness: f64, kurtosis: f64, n: f64) -> f64 {
    let density = libm::exp(-0.5 * z * z) / (2.0 * std::f64::consts::PI).sqrt();
    let spread = 1.0 + z * skewness + z * z * (kurtosis - 1.0) / 4.0;
    density * (spread.max(0.0) / n).sqrt()
}

/// The share of a normal distribution that lies at or above `pass`; without deviation all of it or nothing.
pub fn probability_of_passing(mean: f64, deviation: f64, pass: f64) -> f64 {
    if deviation == 0.0 {
        return if mean >= pass { 1.0 } else { 0.0 };
    }
    0.5 * libm::erfc((pass - mean) / deviation * std::f64::consts::FRAC_1_SQRT_2)
}

fn wilson(share: f64, n: f64) -> (f64, f64) {
    let z2 = QUANTILE_95 * QUANTILE_95;
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = QUANTILE_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

impl Default for Sampling {
    fn default() -> Self {
        Self { target: Target::Estimate(0.7), worth: 0.95, precision: 0.002, least: 256, most: 65_536 }
    }
}

impl Sampling {
    fn check(&self) -> Result<(), RateError> {
        let shares = [
            ("a target probability from 0 to 1", self.target.value()),
            ("a worth from 0 to 1", self.worth),
            ("a precision from 0 to 1", self.precision),
        ];
        if let Some(&(expected, found)) = shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(RateError::Sampling { expected, found });
        }
        if self.most == 0 {
            return Err(RateError::Sampling { expected: "at least one play", found: 0.0 });
        }
        Ok(())
    }

    /// Whether more plays would not change what becomes of the board.
    fn is_settled(&self, rating: &Rating) -> bool {
        let (fitness, error) = (self.target.fitness(rating), self.target.error(rating));
        let hopeless = fitness + SURE * error < self.worth;
        rating.plays >= self.least.into() && (hopeless || error < self.precision)
    }
}

impl Game {
    /// Rates a board by `plays` plays of a player.
    ///
    /// ```
    /// use match3::{Board, Game, Player, Rules};
    /// let game = Game::new(&Rules::default())?;
    /// let board = Board::from_seed(game.rules(), 42);
    /// let rating = game.rate(&board, Player::Random, 1, 1_000)?;
    /// assert!((5.0..40.0).contains(&rating.mean));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When board or player do not fit, or no plays are asked for.
    pub fn rate(&self, board: &Board, player: Player, seed: u64, plays: u32) -> Result<Rating, RateError> {
        // Never settled: a worth of 0 is always reached, and no error is below 0.
        let all = Sampling { worth: 0.0, precision: 0.0, least: plays, most: plays, ..Sampling::default() };
        self.rate_for(board, player, seed, &all)
    }

    /// Rates a board for a target: stops early where it is hopeless, plays on where it comes near.
    ///
    /// # Errors
    /// When board, player or sampling do not fit.
    pub fn rate_for(
        &self,
        board: &Board,
        player: Player,
        seed: u64,
        sampling: &Sampling,
    ) -> Result<Rating, RateError> {
        sampling.check()?;
        let mut tally = Tally::new(self.rules().pass);
        let mut plays = [Play::default(); BATCH];
        loop {
            let left = u64::from(sampling.most) - tally.plays;
            let batch = &mut plays[..BATCH.min(left as usize)];
            self.plays(board, player, seed, tally.plays, batch)?;
            for play in batch.iter() {
                tally.add(play);
            }
            let rating = tally.rating();
            if tally.plays >= u64::from(sampling.most) || sampling.is_settled(&rating) {
                return Ok(rating);
            }
        }
    }

    /// The scores of `plays` plays, for a histogram.
    ///
    /// # Errors
    /// When board or player do not fit.
    pub fn scores(
        &self,
        board: &Board,
        player: Player,
        seed: u64,
        plays: u32,
    ) -> Result<Vec<f64>, RateError> {
        let mut scores = Vec::with_capacity(plays as usize);
        let mut batch = [Play::default(); BATCH];
        while scores.len() < plays as usize {
            let batch = &mut batch[..BATCH.min(plays as usize - scores.len())];
            self.plays(board, player, seed, scores.len() as u64, batch)?;
            scores.extend(batch.iter().map(|play| play.score));
        }
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::rules::Rules;

    #[test]
    fn the_normal_estimate_is_that_of_the_tables() {
        // The published stages: mean, deviation, probability of 15 points.
        for (mean, deviation, percent) in [(17.2, 4.31, 70.0), (16.8, 5.59, 63.0), (16.0, 5.95, 57.0)] {
            let found = 100.0 * probability_of_passing(mean, deviation, 15.0);
            assert!((found - percent).abs() < 1.0, "{found} for {percent}");
        }
        assert!((probability_of_passing(0.0, 1.0, 1.96) - 0.024_997_895).abs() < 1e-8);
        assert_eq!(
            (probability_of_passing(15.0, 0.0, 15.0), probability_of_passing(14.9, 0.0, 15.0)),
            (1.0, 0.0)
        );
    }

    #[test]
    fn wilsons_interval_is_that_of_the_textbook() {
        let (low, high) = wilson(0.1, 10.0);
        assert!((low - 0.017_876).abs() < 1e-5 && (high - 0.404_15).abs() < 1e-5, "{low} {high}");
        let (low, high) = wilson(0.0, 100.0);
        assert!(low < 1e-12 && (high - 0.036_994).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn a_tally_has_the_mean_and_deviation_of_its_scores() {
        let mut tally = Tally::new(5.0);
        for score in [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] {
            tally.add(&Play { score, scoring_moves: 2, waves: 3 });
        }
        let rating = tally.rating();
        assert_eq!((rating.plays, rating.mean, rating.passed, rating.cascade), (8, 5.0, 0.5, 1.5));
        assert!((rating.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert!(Tally::new(5.0).rating().mean.abs() < 1e-12);
    }

    #[test]
    fn a_hopeless_board_is_played_less_than_a_promising_one() {
        let game = Game::new(&Rules::default()).unwrap();
        let board = Board::from_seed(game.rules(), 3);
        let truth = game.rate(&board, Player::Random, 1, 20_000).unwrap().estimate;
        let sampling = |target| Sampling { target: Target::Estimate(target), ..Sampling::default() };
        let rate = |target| game.rate_for(&board, Player::Random, 2, &sampling(target)).unwrap();
        let (near, far) = (rate(truth), rate((truth + 0.5) % 1.0));
        assert!(far.plays < 1_000, "{}", far.plays);
        assert!(near.plays > 10_000, "{}", near.plays);
        assert!((near.estimate - truth).abs() < 0.02);
    }

    #[test]
    fn a_share_that_passes_is_sought_by_the_plays_that_passed() {
        // Half of the plays pass, but by the normal estimate nearly all do: a single low score widens nothing.
        let mut tally = Tally::new(10.0);
        for play in 0..1_000 {
            let score = if play % 2 == 0 { 10.0 } else { 9.99 };
            tally.add(&Play { score, scoring_moves: 1, waves: 1 });
        }
        for _ in 0..1_000 {
            tally.add(&Play { score: 30.0, scoring_moves: 1, waves: 1 });
        }
        let rating = tally.rating();
        assert_eq!(rating.passed, 0.75);
        assert!((rating.estimate - 0.8413).abs() < 1e-3, "{}", rating.estimate);
        assert_eq!(Target::passed(0.85).fitness(&rating), 0.9);
        assert!((Target::Estimate(0.85).fitness(&rating) - (0.15 + rating.estimate)).abs() < 1e-12);
        // The textbook's standard error of a share.
        assert!((Target::passed(0.85).error(&rating) - (0.75_f64 * 0.25 / 2_000.0).sqrt()).abs() < 1e-5);
        let never = Tally { passed: 0, ..tally }.rating();
        assert!(Target::passed(0.0).error(&never) > 0.0, "no share is known from a few plays");
    }

    /// The rating of 400 plays whose scores are squares of a sum of two dice: skewed, with a tail.
    fn rating_of_dice(seed: u64) -> Rating {
        let mut stream = Stream::new(seed);
        let mut tally = Tally::new(60.0);
        for _ in 0..400 {
            let score = f64::from(2 + stream.below(6) + stream.below(6)).powi(2);
            tally.add(&Play { score, scoring_moves: 1, waves: 1 });
        }
        tally.rating()
    }

    #[test]
    fn the_standard_error_is_the_spread_of_repeated_estimates() {
        let ratings: Vec<Rating> = (0..1_000).map(rating_of_dice).collect();
        let mean = |value: &dyn Fn(&Rating) -> f64| ratings.iter().map(value).sum::<f64>() / 1_000.0;
        let centre = mean(&|rating| rating.estimate);
        let spread = mean(&|rating| (rating.estimate - centre).powi(2)).sqrt();
        let stated = mean(&|rating| rating.error);
        assert!((0.95..1.05).contains(&(stated / spread)), "{stated} {spread}");
    }

    #[test]
    fn nonsense_is_refused() {
        let game = Game::new(&Rules::default()).unwrap();
        let board = Board::from_seed(game.rules(), 3);
        let message = game.rate(&board, Player::Random, 1, 0).unwrap_err().to_string();
        assert_eq!(message, "expected at least one play, found `0`");
        let sampling = Sampling { target: Target::passed(1.2), ..Sampling::default() };
        let message = game.rate_for(&board, Player::Random, 1, &sampling).unwrap_err().to_string();
        assert_eq!(message, "expected a target probability from 0 to 1, found `1.2`");
        let message = game.rate(&board, Player::LookAhead { depth: 9 }, 1, 1).unwrap_err().to_string();
        assert_eq!(message, "expected a look-ahead of 1 to 3 plies, found `9`");
    }
}
