//! The JSON form of a level: a board, the rules it is meant for, its figures and how it was found.

use crate::board::{Board, BoardError};
use crate::rating::Rating;
use crate::rules::{Rules, RulesError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What the `format` key of a level file says.
pub const FORMAT: &str = "atoll.match3/1";

/// A board and the rules it is played by.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// The rules.
    pub rules: Rules,
    /// The board before the first move.
    pub board: Board,
}

/// Why a text is no level file.
#[derive(Debug, Error)]
pub enum FileError {
    /// Not JSON, or not of this shape.
    #[error("expected a level as a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// Another format, or a version from the future.
    #[error("expected the format `{FORMAT}`, found `{found}`")]
    Format {
        /// The format named.
        found: String,
    },
    /// The rules cannot be played by.
    #[error("in `rules`: {0}")]
    Rules(#[from] RulesError),
    /// The rows make no board, or none for these rules.
    #[error("in `rows`: {0}")]
    Rows(#[from] BoardError),
}

#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    rules: &'a Rules,
    rows: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<&'a Rating>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a serde_json::Value>,
}

/// What need be read back: figures can be measured again.
#[derive(Deserialize)]
struct Read {
    format: String,
    #[serde(default)]
    rules: Rules,
    rows: Vec<String>,
}

impl Level {
    /// A board for these rules.
    ///
    /// # Errors
    /// When the rules cannot be played by, or not on this board.
    pub fn new(rules: Rules, board: Board) -> Result<Self, FileError> {
        rules.check()?;
        board.check(&rules)?;
        Ok(Self { rules, board })
    }

    /// A board on its own, for the default rules but for its size and any further colours it has.
    ///
    /// # Errors
    /// When no rules fit the board.
    pub fn of_board(board: Board) -> Result<Self, FileError> {
        let default = Rules::default();
        let most = board.cells().iter().copied().max().unwrap_or(0);
        let colours = default.colours.max(most);
        Self::new(Rules { width: board.width(), height: board.height(), colours, ..default }, board)
    }

    /// The level as a JSON object, with its figures and how it was found, if given.
    pub fn to_json(&self, metrics: Option<&Rating>, found: Option<&serde_json::Value>) -> serde_json::Value {
        let rows = self.board.to_string().lines().map(str::to_owned).collect();
        serde_json::json!(Written { format: FORMAT, rules: &self.rules, rows, metrics, found })
    }

    /// Reads a JSON object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(text: &str) -> Result<Self, FileError> {
        let read: Read = serde_json::from_str(text)?;
        if read.format != FORMAT {
            return Err(FileError::Format { found: read.format });
        }
        Self::new(read.rules, read.rows.join("\n").parse()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::Game;
    use crate::player::Player;

    #[test]
    fn a_level_comes_back_with_its_figures_beside_it() {
        let rules = Rules { swap_back: true, ..Rules::default() };
        let board = Board::from_seed(&rules, 3);
        let level = Level::new(rules, board).unwrap();
        let game = Game::new(&level.rules).unwrap();
        let rating = game.rate(&level.board, Player::Random, 1, 64).unwrap();
        let json = level.to_json(Some(&rating), Some(&serde_json::json!({ "seed": 3 })));
        assert_eq!((&json["found"]["seed"], &json["metrics"]["plays"]), (&3.into(), &64.into()));
        assert_eq!(Level::from_json(&json.to_string()).unwrap(), level);
    }

    #[test]
    fn malformed_files_are_refused() {
        let error = |text: &str| Level::from_json(text).unwrap_err().to_string();
        assert!(error("{").starts_with("expected a level as a JSON object: EOF"));
        assert_eq!(
            error(r#"{"format": "atoll.lock-key/1", "rows": []}"#),
            "expected the format `atoll.match3/1`, found `atoll.lock-key/1`"
        );
        let with = |rest: &str| error(&format!(r#"{{"format": "atoll.match3/1", {rest}}}"#));
        assert_eq!(
            with(r#""rules": {"colours": 9}, "rows": ["1"]"#),
            "in `rules`: expected 1 to 7 colours, found `9`"
        );
        assert_eq!(with(r#""rows": ["12"]"#), "in `rows`: expected a board of 5x10, found `2x1`");
        assert!(with(r#""rules": {"color": 3}, "rows": []"#).contains("unknown field `color`"));
    }

    #[test]
    fn a_board_on_its_own_gets_rules_of_its_size() {
        let level = Level::of_board("17\n22\n".parse().unwrap()).unwrap();
        assert_eq!((level.rules.width, level.rules.height, level.rules.colours), (2, 2, 7));
        assert!(Level::of_board("18\n22\n".parse().unwrap()).is_err());
    }
}
