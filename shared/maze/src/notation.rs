//! Boards as text and as JSON.
//!
//! Text has a line for each row and a character for each cell: a digit for its points, `#` for a wall, `@`
//! for the start. Empty lines at the end and lines that begin with `//` are skipped.
//!
//! ```text
//! 31#4
//! 2@95
//! ```
//!
//! JSON is `{"start": {"x": 1, "y": 1}, "rows": [[3, 1, null, 4], [2, 0, 9, 5]]}`, where `null` is a wall.

use crate::board::{Board, BoardError, Cell, MAX_CELLS, Place};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The longest text that is read as a board, in bytes: well above what the largest board takes.
pub const MAX_BOARD_BYTES: usize = 16 * MAX_CELLS;

/// Why a text is not a board.
#[derive(Debug, Error)]
pub enum NotationError {
    /// A character that means nothing.
    #[error("expected a digit, `#` or `@`, found `{found}` in column {} of row {}", place.x + 1, place.y + 1)]
    Character {
        /// Where.
        place: Place,
        /// What was found there.
        found: char,
    },
    /// A row that is longer or shorter than the first.
    #[error("expected rows of {expected} cells, found `{found}` in row {}", row + 1)]
    Ragged {
        /// The row, counted from 0.
        row: usize,
        /// Cells in the first row.
        expected: usize,
        /// Cells in this row.
        found: usize,
    },
    /// No start, or more than one.
    #[error("expected one start `@`, found `{0}`")]
    Starts(usize),
    /// More than [`MAX_BOARD_BYTES`].
    #[error("expected a board of at most {MAX_BOARD_BYTES} bytes, found `{0}`")]
    TooLong(usize),
    /// JSON that does not have the form of a board.
    #[error("expected a board in JSON, found an error: {0}")]
    Json(#[from] serde_json::Error),
    /// Readable, but not a board that can be played.
    #[error(transparent)]
    Board(#[from] BoardError),
}

/// The form of a board in JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    start: Place,
    rows: Vec<Vec<Option<u8>>>,
}

impl Board {
    /// Reads a board in either notation: JSON if it begins with a brace.
    ///
    /// # Errors
    /// When it can't be read, or is not a board that can be played.
    pub fn read(text: &str) -> Result<Self, NotationError> {
        if text.trim_start().starts_with('{') { Self::from_json(text) } else { text.parse() }
    }

    /// Reads a board in JSON.
    ///
    /// # Errors
    /// When it can't be read, or is not a board that can be played.
    pub fn from_json(text: &str) -> Result<Self, NotationError> {
        check_length(text)?;
        let Plain { start, rows } = serde_json::from_str(text)?;
        from_rows(start, &rows)
    }

    /// The board in JSON, on one line.
    #[expect(clippy::missing_panics_doc, reason = "numbers in lists are always valid JSON")]
    pub fn to_json(&self) -> String {
        let cells: Vec<Option<u8>> = (0..self.cells() as Cell).map(|cell| self.points(cell)).collect();
        let rows = cells.chunks(self.width()).map(<[_]>::to_vec).collect();
        let plain = Plain { start: self.place(self.start()), rows };
        serde_json::to_string(&plain).expect("numbers in lists are always valid JSON")
    }

    fn character(&self, cell: Cell) -> char {
        match self.points(cell) {
            _ if cell == self.start() => '@',
            Some(points) => char::from(b'0' + points),
            None => '#',
        }
    }
}

impl FromStr for Board {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        check_length(text)?;
        let mut starts = Vec::new();
        let lines = text.trim_end().lines().filter(|line| !line.starts_with("//"));
        let rows: Vec<Vec<Option<u8>>> = lines
            .enumerate()
            .map(|(y, line)| read_line(line.trim_end(), y, &mut starts))
            .collect::<Result<_, _>>()?;
        match starts[..] {
            [start] => from_rows(start, &rows),
            _ if rows.is_empty() => Err(BoardError::Size { width: 0, height: 0 }.into()),
            _ => Err(NotationError::Starts(starts.len())),
        }
    }
}

impl fmt::Display for Board {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in 0..self.height() {
            let cells = row * self.width()..(row + 1) * self.width();
            let line: String = cells.map(|cell| self.character(cell as Cell)).collect();
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

fn check_length(text: &str) -> Result<(), NotationError> {
    if text.len() > MAX_BOARD_BYTES { Err(NotationError::TooLong(text.len())) } else { Ok(()) }
}

fn read_line(line: &str, y: usize, starts: &mut Vec<Place>) -> Result<Vec<Option<u8>>, NotationError> {
    let read = |(x, found): (usize, char)| match found {
        '0'..='9' => Ok(Some(found as u8 - b'0')),
        '#' => Ok(None),
        '@' => {
            starts.push(Place { x, y });
            Ok(Some(0))
        }
        _ => Err(NotationError::Character { place: Place { x, y }, found }),
    };
    line.chars().enumerate().map(read).collect()
}

fn from_rows(start: Place, rows: &[Vec<Option<u8>>]) -> Result<Board, NotationError> {
    let width = rows.first().map_or(0, Vec::len);
    if let Some(row) = rows.iter().position(|row| row.len() != width) {
        return Err(NotationError::Ragged { row, expected: width, found: rows[row].len() });
    }
    Ok(Board::new(width, rows.len(), start, &rows.concat())?)
}
