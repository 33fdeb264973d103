//! When enough has been played: Wald's sequential test, on pairs.

use crate::tally::Tally;

/// A sequential probability ratio test between two opinions of how much stronger the first player is.
///
/// Each opinion is given the normal distribution of pairs' scores under which the pairs so far are likeliest, its variance
/// being unknown: so games of one pair need not be independent of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprt {
    /// The lesser difference, in Elo.
    pub elo0: f64,
    /// The greater one.
    pub elo1: f64,
    /// How often the greater one may be accepted although the lesser is true.
    pub alpha: f64,
    /// How often the lesser one may be accepted although the greater is true.
    pub beta: f64,
}

/// What a test has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SprtVerdict {
    /// The lesser difference was accepted.
    Lesser,
    /// The greater difference was accepted.
    Greater,
}

impl Sprt {
    /// Fewer pairs say too little of their variance.
    const FEWEST_PAIRS: u64 = 12;

    /// What the pairs so far decide, if they do.
    pub fn verdict(&self, tally: &Tally) -> Option<SprtVerdict> {
        let ratio = self.log_likelihood_ratio(tally);
        let (low, high) = self.bounds();
        match tally.pair_count() {
            0..Self::FEWEST_PAIRS => None,
            _ if ratio >= high => Some(SprtVerdict::Greater),
            _ if ratio <= low => Some(SprtVerdict::Lesser),
            _ => None,
        }
    }

    /// The logarithm of how much likelier the pairs so far are with the greater difference.
    pub fn log_likelihood_ratio(&self, tally: &Tally) -> f64 {
        let spread = |elo: f64| {
            let distance = tally.score() - expected_score(elo);
            tally.pair_variance() + distance * distance
        };
        tally.pair_count() as f64 / 2.0 * libm::log(spread(self.elo0) / spread(self.elo1))
    }

    /// Below and above which ratio it is decided.
    pub fn bounds(&self) -> (f64, f64) {
        let Self { alpha, beta, .. } = *self;
        (libm::log(beta / (1.0 - alpha)), libm::log((1.0 - beta) / alpha))
    }
}

/// The score that a difference in Elo stands for.
pub(crate) fn expected_score(elo: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-elo * std::f64::consts::LN_10 / 400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: Sprt = Sprt { elo0: 0.0, elo1: 40.0, alpha: 0.05, beta: 0.05 };

    #[test]
    fn elo_is_what_it_is_elsewhere() {
        for (elo, score) in [(0.0, 0.5), (100.0, 0.640_064_99), (-200.0, 0.240_253_07), (400.0, 10.0 / 11.0)]
        {
            assert!((expected_score(elo) - score).abs() < 1e-7, "{elo}");
        }
    }

    #[test]
    fn the_bounds_are_walds() {
        let (low, high) = TEST.bounds();
        assert!((high - 19f64.ln()).abs() < 1e-12 && (low + 19f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_clear_case_is_decided_and_few_pairs_are_not() {
        let won = Tally { wins: 60, draws: 0, losses: 0, pairs: [0, 0, 0, 0, 30] };
        assert_eq!(TEST.verdict(&won), Some(SprtVerdict::Greater));
        assert_eq!(TEST.verdict(&won.turned()), Some(SprtVerdict::Lesser));
        let few = Tally { wins: 22, draws: 0, losses: 0, pairs: [0, 0, 0, 0, 11] };
        let wide = Sprt { elo0: -400.0, elo1: 400.0, ..TEST };
        assert!(wide.log_likelihood_ratio(&few) > wide.bounds().1);
        assert_eq!(wide.verdict(&few), None);
    }

    /// A pair as dice fall: each game is won, drawn or lost, and an opening that favours a colour joins the two.
    struct Dice {
        state: u64,
        win: f64,
        draw: f64,
    }

    impl Dice {
        fn new(seed: u64, elo: f64) -> Self {
            let draw = 0.4;
            Self { state: seed, win: expected_score(elo) - draw / 2.0, draw }
        }

        fn uniform(&mut self) -> f64 {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = self.state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn game(&mut self, favour: f64) -> i32 {
            let luck = self.uniform();
            let win = self.win + favour;
            if luck < win { 1 } else { -i32::from(luck >= win + self.draw) }
        }

        fn pair(&mut self) -> [i32; 2] {
            let favour = if self.uniform() < 0.5 { 0.15 } else { -0.15 };
            [self.game(favour), self.game(-favour)]
        }
    }

    /// What a simulated match comes to, and after how many pairs.
    fn simulate(seed: u64, elo: f64) -> (Option<SprtVerdict>, u64) {
        let mut dice = Dice::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d), elo);
        let mut tally = Tally::default();
        while tally.pair_count() < 20_000 {
            tally.add(&dice.pair());
            if let Some(verdict) = TEST.verdict(&tally) {
                return (Some(verdict), tally.pair_count());
            }
        }
        (None, tally.pair_count())
    }

    #[test]
    fn the_error_rates_hold() {
        const MATCHES: u64 = 10_000;
        for (elo, wrong, rate) in
            [(0.0, SprtVerdict::Greater, TEST.alpha), (40.0, SprtVerdict::Lesser, TEST.beta)]
        {
            let ended: Vec<_> = (0..MATCHES).map(|seed| simulate(seed, elo)).collect();
            assert!(ended.iter().all(|(verdict, _)| verdict.is_some()), "every match is decided");
            let errors = ended.iter().filter(|(verdict, _)| *verdict == Some(wrong)).count();
            let rate_found = errors as f64 / MATCHES as f64;
            // Three standard errors of 10,000 matches are 0.0065. A test that never errs would show nothing.
            assert!(rate_found < rate + 0.0065, "{elo} Elo: {rate_found} wrong");
            assert!(rate_found > 0.01, "{elo} Elo: {rate_found} wrong");
            let mean = ended.iter().map(|(_, pairs)| pairs).sum::<u64>() / MATCHES;
            assert!((50..400).contains(&mean), "{elo} Elo: {mean} pairs on average");
        }
    }
}
