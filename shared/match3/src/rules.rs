//! What a game is played by.

use crate::planes::Field;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The rules of a game; the default plays as the published study of Match-3 level generation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Columns.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 64)))]
    pub width: u8,
    /// Rows.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 127)))]
    pub height: u8,
    /// Colours of blocks.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 7)))]
    pub colours: u8,
    /// Moves in a play.
    pub moves: u16,
    /// The score from which on a play has passed.
    pub pass: f64,
    /// Whether a move that clears nothing is undone (it counts as a move all the same).
    pub swap_back: bool,
    /// Whether a block may be moved into an empty cell.
    pub into_empty: bool,
    /// What becomes of the lines a board starts with.
    pub initial_matches: InitialMatches,
    /// Whether random blocks fall in from above, so that the board stays full.
    pub refill: bool,
    /// What a move is worth.
    pub score: Score,
}

/// What becomes of the lines a board starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InitialMatches {
    /// They are cleared, cascades included, before the first move, and score nothing.
    Clear,
    /// They are cleared before the first move and score as a move of their own.
    Score,
    /// They stay until the first move that clears blocks, and are cleared with these.
    Keep,
}

/// A move that removes k > 0 blocks scores `base` to the power of k / `blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Score {
    /// By how much the score grows for each further `blocks` blocks.
    pub base: f64,
    /// How many more blocks multiply the score by `base`.
    pub blocks: u8,
}

/// Why rules cannot be played by.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RulesError {
    /// The board has no cells or more than a machine word holds.
    #[error(
        "expected a board of at least 1x1 and at most 128 cells, counting a spare one above each column, found `{width}x{height}`"
    )]
    Size {
        /// Columns asked for.
        width: u8,
        /// Rows asked for.
        height: u8,
    },
    /// No colours, or too many.
    #[error("expected 1 to {most} colours, found `{found}`", most = Rules::MOST_COLOURS)]
    Colours {
        /// Colours asked for.
        found: u8,
    },
    /// The score's base would shrink scores or overflow them.
    #[error("expected a score base from 1 to 3 and at least 1 block for it, found `{base}` and `{blocks}`")]
    Score {
        /// The base asked for.
        base: f64,
        /// The blocks asked for.
        blocks: u8,
    },
    /// The pass score is not a number a play can be compared with.
    #[error("expected a finite pass score, found `{found}`")]
    Pass {
        /// The pass score asked for.
        found: f64,
    },
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            width: 5,
            height: 10,
            colours: 5,
            moves: 100,
            pass: 15.0,
            swap_back: false,
            into_empty: true,
            initial_matches: InitialMatches::Clear,
            refill: false,
            score: Score::default(),
        }
    }
}

impl Default for Score {
    fn default() -> Self {
        Self { base: 2.0, blocks: 3 }
    }
}

/// A move that removes more blocks than this has entries scores no more: it would need refill, and the powers of
/// scores beyond would overflow.
pub(crate) const SCORES: usize = 128;

impl Score {
    /// The other published formula, 1.5 to the power of k.
    pub const STEEP: Self = Self { base: 1.5, blocks: 1 };

    /// What a move scores that removes 0, 1, 2, … blocks; beyond the last entry it stays the same.
    pub(crate) fn table(self) -> [f64; SCORES] {
        let mut table = [0.0; SCORES];
        for (removed, score) in table.iter_mut().enumerate().skip(1) {
            *score = libm::pow(self.base, removed as f64 / f64::from(self.blocks));
        }
        table
    }
}

impl Rules {
    /// Colours that three bit planes can tell apart from each other and from an empty cell.
    pub const MOST_COLOURS: u8 = 7;

    /// How many times blocks may be cleared in one move: with few colours and refill it might never end.
    pub const MOST_WAVES: u16 = 100;

    /// Cells of the board.
    pub fn cells(&self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Says what is wrong with these rules, if anything.
    ///
    /// # Errors
    /// The first [`RulesError`] found.
    pub fn check(&self) -> Result<(), RulesError> {
        let (width, height) = (self.width, self.height);
        if width == 0 || height == 0 || !Field::<u128>::fits(width.into(), height.into()) {
            return Err(RulesError::Size { width, height });
        }
        if !(1..=Self::MOST_COLOURS).contains(&self.colours) {
            return Err(RulesError::Colours { found: self.colours });
        }
        let Score { base, blocks } = self.score;
        if !(1.0..=3.0).contains(&base) || blocks == 0 {
            return Err(RulesError::Score { base, blocks });
        }
        if !self.pass.is_finite() {
            return Err(RulesError::Pass { found: self.pass });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_more_blocks_double_the_score_and_one_more_is_about_a_quarter() {
        let table = Score::default().table();
        assert_eq!((table[0], table[3], table[6], table[9]), (0.0, 2.0, 4.0, 8.0));
        assert!((table[4] / table[3] - 1.259_921).abs() < 1e-6);
        assert!((Score::STEEP.table()[3] - 3.375).abs() < 1e-12);
    }

    #[test]
    fn unplayable_rules_are_refused_with_the_value_found() {
        let default = Rules::default;
        let wrong = [
            Rules { width: 0, ..default() },
            Rules { width: 12, height: 10, ..default() },
            Rules { colours: 0, ..default() },
            Rules { colours: 8, ..default() },
            Rules { score: Score { base: 3.5, blocks: 1 }, ..default() },
            Rules { score: Score { base: f64::NAN, blocks: 1 }, ..default() },
            Rules { score: Score { base: 2.0, blocks: 0 }, ..default() },
            Rules { pass: f64::INFINITY, ..default() },
        ];
        let found = ["0x10", "12x10", "0", "8", "3.5", "NaN", "0", "inf"];
        for (rules, found) in wrong.iter().zip(found) {
            let message = rules.check().unwrap_err().to_string();
            assert!(message.contains(&format!("`{found}`")), "{message}");
        }
        assert_eq!(Rules { width: 2, height: 2, colours: 1, ..default() }.check(), Ok(()));
        assert_eq!(Rules { width: 11, height: 10, colours: 7, ..default() }.check(), Ok(()));
    }

    #[test]
    fn rules_left_out_of_a_file_keep_their_defaults() {
        let rules: Rules = serde_json::from_str(r#"{"swap_back": true}"#).unwrap();
        assert_eq!(rules, Rules { swap_back: true, ..Rules::default() });
        assert!(serde_json::from_str::<Rules>(r#"{"swapback": true}"#).is_err());
    }
}
