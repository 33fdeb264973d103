//! What judges the leaves of a search.

use crate::position::{Position, Side};
use crate::random::mix;
use crate::score::Score;

/// Judges positions at which nothing is pending: the side to move can move and, unless searches end without looking at
/// captures ([`crate::Style::quiescence`]), need not capture.
///
/// The score depends on the position alone, never on what was judged before; `&mut self` is for what an
/// evaluator remembers to be faster.
pub trait Evaluator {
    /// A new game begins; `seed` decides whatever the evaluator leaves to chance in it.
    fn new_game(&mut self, seed: u64) {
        let _ = seed;
    }

    /// What `position` is worth to its side to move.
    fn evaluate(&mut self, position: &Position) -> Score;

    /// How sure a score is, 0 to 1, for either side: the size of the opinion, unless an evaluator's own scale is
    /// another.
    fn certainty(&self, score: Score) -> f32 {
        score.value().abs()
    }

    /// The score of a position that need not be searched any further, because it is known.
    fn settled(&mut self, position: &Position) -> Option<Score> {
        let _ = position;
        None
    }

    /// Puts the score of each of `children`, all one move after `parent`, into `scores`, which is as long.
    fn evaluate_children(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        let _ = parent;
        for (child, score) in children.iter().zip(scores) {
            *score = self.evaluate(child);
        }
    }
}

/// Counts pieces: a man 2, a king 3; ties are broken at random, by seed and position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Material {
    /// Decides ties.
    pub seed: u64,
}

impl Material {
    /// A man is `2 * UNIT`; ties are decided within less than half a unit.
    const UNIT: i32 = 1 << 18;
    /// Men ahead that make a result sure.
    const SURE: f32 = 4.0;

    fn count(position: &Position, side: Side) -> i32 {
        (2 * position.men(side).count() + 3 * position.kings(side).count()) as i32
    }
}

impl Evaluator for Material {
    fn new_game(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// A man ahead is a quarter: all 24 pieces have to fit into -1 to 1, so that the value of a man is only 1/32.
    fn certainty(&self, score: Score) -> f32 {
        let men = score.value().abs() * (Score::ONE / (2 * Self::UNIT) as f32);
        (men / Self::SURE).min(1.0)
    }

    fn evaluate(&mut self, position: &Position) -> Score {
        let side = position.side_to_move();
        let lead = Self::count(position, side) - Self::count(position, !side);
        let tie = (mix(position.hash64() ^ self.seed) >> 47) as i32 - Self::UNIT / 4;
        Score(lead * Self::UNIT + tie)
    }
}

/// Any opinion, by seed and position: what a search alone is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomOpinion {
    /// Decides every score.
    pub seed: u64,
}

impl Evaluator for RandomOpinion {
    fn new_game(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn evaluate(&mut self, position: &Position) -> Score {
        Score((mix(position.hash64() ^ mix(self.seed)) as i32) >> 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_outweighs_every_tie() {
        let ahead: Position = "B:W21:B1,2".parse().unwrap();
        let king: Position = "B:W21:BK1".parse().unwrap();
        for seed in 0..1000 {
            let mut material = Material { seed };
            let scores = [&ahead, &king, &Position::START].map(|p| material.evaluate(p));
            assert!(scores[0] > scores[1] && scores[1] > scores[2], "seed {seed}: {scores:?}");
        }
    }

    #[test]
    fn scores_stay_opinions() {
        let most: Position = "B:W:BK1,K2,K3,K4,K5,K6,K7,K8,K9,K10,K11,K12".parse().unwrap();
        for seed in 0..1000 {
            let score = Material { seed }.evaluate(&most);
            assert!(score.value() < 1.0 && score.win_in().is_none());
            assert!(RandomOpinion { seed }.evaluate(&most).value().abs() <= 0.5);
        }
    }

    #[test]
    fn seeds_decide_ties() {
        let score = |seed| Material { seed }.evaluate(&Position::START);
        assert_ne!(score(1), score(2));
        assert_eq!(score(1), score(1));
    }
}
