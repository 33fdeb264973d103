//! Ratings by maximum likelihood: the model of Bradley and Terry, with draws as Davidson adds them.
//!
//! A player of strength g beats one of strength h with probability g / (g + h + n √(g h)), and draws with
//! n √(g h) / (g + h + n √(g h)); n says how common draws are. The logarithm of the likelihood is concave, so Newton's
//! method finds its only maximum.
//!
//! Elo is a multiple of the logarithm of the strength: 400 / ln 10, as if there were no draws, times 2 / (2 + n), the share
//! of games between equals that are not drawn. So a small difference stands for the same expected score as everywhere
//! (10 Elo for 0.514), however common draws are, and for the same as in the sequential test.
//!
//! A player that only won would be infinitely strong. So each player gets one virtual game against a player of the mean
//! strength, half won and half lost, and the share of draws one virtual game between equals, half drawn. That is little beside real
//! games, and makes every rating and every interval finite.

use crate::cross_table::CrossTable;
use crate::matrix::{cholesky, inverse, solve};
use crate::tally::{CONFIDENCE, normal};

/// Elo of one unit of a strength's natural logarithm where no game is drawn.
const ELO: f64 = 400.0 / std::f64::consts::LN_10;
/// Newton's method needs five or six; this is a limit for unforeseen cases.
const MOST_STEPS: usize = 100;

/// How strong a player is, in Elo above the mean of all, and where that lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rating {
    /// The most likely.
    pub elo: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The ratings of all players of a tournament.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratings {
    /// Natural logarithms of strengths; the last is that of the draws' n.
    parameters: Vec<f64>,
    covariance: Vec<Vec<f64>>,
}

impl Ratings {
    /// The most likely ratings.
    pub fn of(table: &CrossTable) -> Self {
        let likelihood = Likelihood { table };
        let mut parameters = vec![0.0; table.players() + 1];
        let mut value = likelihood.value(&parameters);
        for _ in 0..MOST_STEPS {
            let (gradient, information) = likelihood.slope(&parameters);
            let Some(lower) = cholesky(&information) else { break };
            let step = solve(&lower, &gradient);
            let (next, next_value) = climb(&likelihood, &parameters, &step, value);
            let moved = next.iter().zip(&parameters).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            (parameters, value) = (next, next_value);
            if moved < 1e-10 {
                break;
            }
        }
        let (_, information) = likelihood.slope(&parameters);
        let covariance = cholesky(&information).map(|lower| inverse(&lower)).unwrap_or_default();
        Self { parameters, covariance }
    }

    /// The rating of a player.
    pub fn of_player(&self, player: usize) -> Rating {
        let players = self.players();
        let mean = self.parameters[..players].iter().sum::<f64>() / players as f64;
        let (above, decided) = (self.parameters[player] - mean, 1.0 - self.draws_of_equals());
        let elo = ELO * decided * above;
        // How common draws are is uncertain too, and with it the scale.
        let slope = |at: usize| match at {
            at if at == players => -ELO * decided * (1.0 - decided) * above,
            at => ELO * decided * (f64::from(u8::from(player == at)) - 1.0 / players as f64),
        };
        let margin = CONFIDENCE * self.variance(slope).sqrt();
        Rating { elo, low: elo - margin, high: elo + margin }
    }

    /// How likely it is that the first is stronger than the second.
    pub fn superiority(&self, first: usize, second: usize) -> f64 {
        if first == second {
            return 0.5;
        }
        let share = |at: usize| f64::from(u8::from(at == first)) - f64::from(u8::from(at == second));
        normal((self.parameters[first] - self.parameters[second]) / self.variance(share).sqrt())
    }

    /// How likely equals draw.
    pub fn draws_of_equals(&self) -> f64 {
        let n = libm::exp(self.parameters[self.players()]);
        n / (2.0 + n)
    }

    fn players(&self) -> usize {
        self.parameters.len() - 1
    }

    /// The variance of a sum of the parameters.
    fn variance(&self, share: impl Fn(usize) -> f64) -> f64 {
        let all = 0..self.parameters.len();
        let row =
            |one: usize| all.clone().map(|other| self.covariance[one][other] * share(other)).sum::<f64>();
        all.clone().map(|one| share(one) * row(one)).sum()
    }
}

/// Goes uphill by a step, or by as much of it as leads uphill.
fn climb(likelihood: &Likelihood<'_>, from: &[f64], step: &[f64], value: f64) -> (Vec<f64>, f64) {
    let mut length = 1.0;
    loop {
        let next: Vec<f64> = from.iter().zip(step).map(|(at, step)| at + length * step).collect();
        let reached = likelihood.value(&next);
        // Near the top rounding decides which of two values is larger, and Newton's step is right by itself.
        if reached + 1e-9 * (1.0 + value.abs()) >= value {
            return (next, reached);
        }
        length /= 2.0;
        if length < 1e-9 {
            return (from.to_vec(), value);
        }
    }
}

struct Likelihood<'a> {
    table: &'a CrossTable,
}

/// What may come of a game of two: the probabilities that the first wins, the second wins, the game is drawn; and the
/// logarithm of what they are shares of.
struct Odds {
    shares: [f64; 3],
    whole: f64,
}

impl Odds {
    fn new(first: f64, second: f64, draws: f64) -> Self {
        let logarithms = [first, second, draws + f64::midpoint(first, second)];
        let largest = logarithms.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let sizes = logarithms.map(|logarithm| libm::exp(logarithm - largest));
        let sum = sizes[0] + sizes[1] + sizes[2];
        Self { shares: sizes.map(|size| size / sum), whole: largest + libm::log(sum) }
    }
}

impl Likelihood<'_> {
    /// The logarithm of the likelihood.
    fn value(&self, parameters: &[f64]) -> f64 {
        let (players, draws) = (&parameters[..parameters.len() - 1], parameters[parameters.len() - 1]);
        let mut sum = 0.0;
        for ([first, second], tally) in self.table.pairings() {
            let (one, other) = (players[first], players[second]);
            let won = tally.wins as f64 * one + tally.losses as f64 * other;
            let drawn = tally.draws as f64 * (draws + f64::midpoint(one, other));
            sum += won + drawn - tally.games() as f64 * Odds::new(one, other, draws).whole;
        }
        let imagined: f64 = players.iter().map(|player| player / 2.0 - log_of_sum(*player, 1.0)).sum();
        sum + imagined + draws / 2.0 - log_of_sum(draws, 2.0)
    }

    /// Its first derivatives, and the second ones with their sign turned.
    fn slope(&self, parameters: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let draws = parameters.len() - 1;
        let mut slope = Slope::new(parameters.len());
        for ([first, second], tally) in self.table.pairings() {
            let odds = Odds::new(parameters[first], parameters[second], parameters[draws]);
            let seen = [tally.wins, tally.losses, tally.draws].map(|count| count as f64);
            // What a win of the first, of the second, and a draw each add to the logarithm.
            let features = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 1.0]];
            slope.add([first, second, draws], &features, &odds.shares, &seen);
        }
        for (player, &strength) in parameters[..draws].iter().enumerate() {
            slope.imagine(player, share_of_sum(strength, 1.0));
        }
        slope.imagine(draws, share_of_sum(parameters[draws], 2.0));
        (slope.gradient, slope.information)
    }
}

/// The logarithm of e^x + constant.
fn log_of_sum(x: f64, constant: f64) -> f64 {
    let largest = x.max(0.0);
    largest + libm::log(libm::exp(x - largest) + constant * libm::exp(-largest))
}

/// The share of e^x in e^x + constant.
fn share_of_sum(x: f64, constant: f64) -> f64 {
    1.0 / (1.0 + constant * libm::exp(-x))
}

struct Slope {
    gradient: Vec<f64>,
    information: Vec<Vec<f64>>,
}

impl Slope {
    fn new(size: usize) -> Self {
        Self { gradient: vec![0.0; size], information: vec![vec![0.0; size]; size] }
    }

    /// Adds games of three results.
    fn add(&mut self, places: [usize; 3], features: &[[f64; 3]; 3], shares: &[f64; 3], seen: &[f64; 3]) {
        let games: f64 = seen.iter().sum();
        let mean = |axis: usize| (0..3).map(|result| shares[result] * features[result][axis]).sum::<f64>();
        for axis in 0..3 {
            let found: f64 = (0..3).map(|result| seen[result] * features[result][axis]).sum();
            self.gradient[places[axis]] += found - games * mean(axis);
            for other in 0..3 {
                let product =
                    |result: usize| shares[result] * features[result][axis] * features[result][other];
                let together: f64 = (0..3).map(product).sum();
                let spread = together - mean(axis) * mean(other);
                self.information[places[axis]][places[other]] += games * spread;
            }
        }
    }

    /// Adds an imagined game of two results, half of each.
    fn imagine(&mut self, place: usize, share: f64) {
        self.gradient[place] += 0.5 - share;
        self.information[place][place] += share * (1.0 - share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use proptest::prelude::*;

    fn games(wins: u64, draws: u64, losses: u64) -> Tally {
        Tally { wins, draws, losses, pairs: [0; 5] }
    }

    fn table(players: usize, results: &[([usize; 2], Tally)]) -> CrossTable {
        let mut table = CrossTable::new(players);
        for (pairing, tally) in results {
            table.add(*pairing, tally);
        }
        table
    }

    #[test]
    fn two_players_differ_by_the_logarithm_of_their_wins() {
        // Without draws and with many games the imagined ones do not matter: 3 to 1 is 190.8 Elo.
        let ratings = Ratings::of(&table(2, &[([0, 1], games(300_000, 0, 100_000))]));
        let difference = ratings.of_player(0).elo - ratings.of_player(1).elo;
        assert!((difference - 400.0 * 3f64.log10()).abs() < 0.01, "{difference}");
        // The variance of the logarithm of the odds is 1/wins + 1/losses; each rating is half of the difference.
        let width = ratings.of_player(0).high - ratings.of_player(0).low;
        let expected = CONFIDENCE * (1.0f64 / 300_000.0 + 1.0 / 100_000.0).sqrt() * ELO;
        assert!((width - expected).abs() < 0.01 * expected, "{width} and {expected}");
    }

    #[test]
    fn draws_of_equals_are_what_they_are() {
        let ratings = Ratings::of(&table(2, &[([0, 1], games(25_000, 50_000, 25_000))]));
        assert!((ratings.draws_of_equals() - 0.5).abs() < 1e-4);
        assert!(ratings.of_player(0).elo.abs() < 1e-6);
        assert!((ratings.superiority(0, 1) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn whoever_only_wins_is_strong_but_not_infinitely() {
        let all = [([0, 1], games(20, 0, 0)), ([1, 2], games(20, 0, 0))];
        let ratings = Ratings::of(&table(3, &all));
        let [first, second, third] = [0, 1, 2].map(|player| ratings.of_player(player));
        assert!(first.elo > second.elo + 200.0 && second.elo > third.elo + 200.0 && first.elo < 2000.0);
        assert!(first.low < first.elo && first.elo < first.high);
        assert!(ratings.superiority(0, 1) > 0.95);
    }

    #[test]
    fn without_games_all_are_equal() {
        let ratings = Ratings::of(&CrossTable::new(3));
        assert!(ratings.of_player(1).elo.abs() < 1e-9);
        // One imagined game each, and half of the games between equals are drawn: 1.96 √(4 · 2/3) / 2 logarithms.
        let expected = CONFIDENCE * (8.0f64 / 3.0).sqrt() / 2.0 * ELO;
        assert!((ratings.of_player(1).high - expected).abs() < 0.01, "{:?}", ratings.of_player(1));
    }

    /// The score that the ratings of two players let one expect is the one that Elo stands for, however many draws.
    #[test]
    fn a_difference_means_the_same_however_many_draws_there_are() {
        for draws in [0, 100_000, 600_000, 900_000] {
            let (wins, losses) = ((1_000_000 - draws) / 2 + 1000, (1_000_000 - draws) / 2 - 1000);
            let ratings = Ratings::of(&table(2, &[([0, 1], games(wins, draws, losses))]));
            let difference = ratings.of_player(0).elo - ratings.of_player(1).elo;
            assert!((crate::sprt::expected_score(difference) - 0.501).abs() < 1e-6, "{draws}: {difference}");
        }
    }

    proptest! {
        #[test]
        fn the_maximum_has_no_slope(results in prop::collection::vec((0u64..40, 0u64..40, 0u64..40), 6)) {
            let pairings = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
            let all: Vec<_> = pairings
                .into_iter()
                .zip(results)
                .map(|(pairing, (wins, draws, losses))| (pairing, games(wins, draws, losses)))
                .collect();
            let table = table(4, &all);
            let ratings = Ratings::of(&table);
            let (gradient, _) = Likelihood { table: &table }.slope(&ratings.parameters);
            prop_assert!(gradient.iter().all(|slope| slope.abs() < 1e-6), "{gradient:?}");
            let sum: f64 = (0..4).map(|player| ratings.of_player(player).elo).sum();
            prop_assert!(sum.abs() < 1e-6);
        }

        #[test]
        fn the_slope_is_that_of_the_value(strengths in prop::collection::vec(-2.0..2.0f64, 4)) {
            let all = [([0, 1], games(5, 3, 2)), ([1, 2], games(1, 7, 4))];
            let table = table(3, &all);
            let likelihood = Likelihood { table: &table };
            let (gradient, _) = likelihood.slope(&strengths);
            for at in 0..4 {
                let moved = |by: f64| {
                    let mut moved = strengths.clone();
                    moved[at] += by;
                    likelihood.value(&moved)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                prop_assert!((slope - gradient[at]).abs() < 1e-4, "{slope} and {}", gradient[at]);
            }
        }
    }
}
