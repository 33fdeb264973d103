//! A board as designers see it: which colour lies where before the first move.

use crate::random::Stream;
use crate::rules::Rules;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The blocks of a board, row by row from the top; 0 is an empty cell, colours count from 1.
///
/// Its text form has one line a row, a digit for a block and a dot for an empty cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    width: u8,
    height: u8,
    cells: Vec<u8>,
}

/// Why a text, a genome or a set of cells is no board.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoardError {
    /// Nothing was given.
    #[error("expected at least one row of blocks, found none")]
    Empty,
    /// Too wide or too high to be any board.
    #[error("expected at most {most} rows and columns, found `{found}`", most = Board::LONGEST)]
    TooLong {
        /// Rows or columns found.
        found: usize,
    },
    /// Rows of different lengths.
    #[error("expected {expected} cells in row {row}, found `{found}`")]
    Ragged {
        /// The row, from 1.
        row: usize,
        /// Cells of the first row.
        expected: usize,
        /// Cells of this one.
        found: usize,
    },
    /// A character that is no block.
    #[error("expected a digit or a dot in row {row}, column {column}, found `{found}`")]
    Character {
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
        /// What was found there.
        found: char,
    },
    /// A board of another size than the rules'.
    #[error("expected a board of {expected_width}x{expected_height}, found `{width}x{height}`")]
    Size {
        /// Columns by the rules.
        expected_width: u8,
        /// Rows by the rules.
        expected_height: u8,
        /// Columns found.
        width: u8,
        /// Rows found.
        height: u8,
    },
    /// A block of a colour the rules don't have.
    #[error("expected colours from 1 to {colours}, found `{found}` in row {row}, column {column}")]
    Colour {
        /// Colours by the rules.
        colours: u8,
        /// The colour found.
        found: u8,
        /// The row, from 1.
        row: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A genome of another length than the board's cells.
    #[error("expected {expected} genes, one a cell, found `{found}`")]
    Genes {
        /// Cells by the rules.
        expected: usize,
        /// Genes given.
        found: usize,
    },
}

impl Board {
    /// More rows or columns than this are refused before anything is read.
    pub const LONGEST: usize = 128;

    /// The board of a 32-bit genome: a seed from which every cell's colour is drawn.
    pub fn from_seed(rules: &Rules, seed: u32) -> Self {
        let mut stream = Stream::new(seed.into());
        let colour = |_| 1 + stream.below(rules.colours.into()) as u8;
        Self { width: rules.width, height: rules.height, cells: (0..rules.cells()).map(colour).collect() }
    }

    /// The board of a direct genome: one gene a cell, row by row, its colour the gene modulo the colours.
    ///
    /// # Errors
    /// [`BoardError::Genes`] where there is not one gene a cell.
    pub fn from_genes(rules: &Rules, genes: &[u8]) -> Result<Self, BoardError> {
        if genes.len() != rules.cells() {
            return Err(BoardError::Genes { expected: rules.cells(), found: genes.len() });
        }
        let cells = genes.iter().map(|gene| 1 + gene % rules.colours).collect();
        Ok(Self { width: rules.width, height: rules.height, cells })
    }

    /// Makes a board of `width` columns from cells row by row.
    pub(crate) fn from_cells(width: u8, height: u8, cells: Vec<u8>) -> Self {
        debug_assert_eq!(cells.len(), usize::from(width) * usize::from(height), "one value a cell");
        Self { width, height, cells }
    }

    /// Columns.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u8 {
        self.height
    }

    /// Every cell's colour, row by row from the top; 0 where it is empty.
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// Every row's cells, from the top.
    pub fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.cells.chunks(self.width.into())
    }

    /// The colour in column `x`, row `y` from the top; 0 where it is empty.
    ///
    /// # Panics
    /// When the cell lies outside the board.
    pub fn colour(&self, x: u8, y: u8) -> u8 {
        assert!(x < self.width, "column {x} lies outside a board of {} columns", self.width);
        self.cells[usize::from(y) * usize::from(self.width) + usize::from(x)]
    }

    /// Says why this board cannot be played by these rules, if anything stands against it.
    ///
    /// # Errors
    /// [`BoardError::Size`] or [`BoardError::Colour`].
    pub fn check(&self, rules: &Rules) -> Result<(), BoardError> {
        let (width, height) = (self.width, self.height);
        if (width, height) != (rules.width, rules.height) {
            let (expected_width, expected_height) = (rules.width, rules.height);
            return Err(BoardError::Size { expected_width, expected_height, width, height });
        }
        match self.cells.iter().position(|&colour| colour > rules.colours) {
            None => Ok(()),
            Some(at) => Err(BoardError::Colour {
                colours: rules.colours,
                found: self.cells[at],
                row: at / usize::from(width) + 1,
                column: at % usize::from(width) + 1,
            }),
        }
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows() {
            let line: String = row.iter().map(|&colour| character(colour)).collect();
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

fn character(colour: u8) -> char {
    if colour == 0 { '.' } else { char::from(b'0' + colour) }
}

impl FromStr for Board {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        let rows: Vec<&str> = text.trim().lines().map(str::trim_end).take(Self::LONGEST + 1).collect();
        let width = rows.first().map_or(0, |row| row.chars().count());
        if width == 0 {
            return Err(BoardError::Empty);
        }
        if width > Self::LONGEST || rows.len() > Self::LONGEST {
            return Err(BoardError::TooLong { found: width.max(rows.len()) });
        }
        let mut cells = Vec::with_capacity(width * rows.len());
        for (index, row) in rows.iter().enumerate() {
            read_row(row, index + 1, width, &mut cells)?;
        }
        Ok(Self::from_cells(width as u8, rows.len() as u8, cells))
    }
}

fn read_row(text: &str, row: usize, expected: usize, cells: &mut Vec<u8>) -> Result<(), BoardError> {
    let found = text.chars().count();
    if found != expected {
        return Err(BoardError::Ragged { row, expected, found });
    }
    for (index, character) in text.chars().enumerate() {
        let colour = match character {
            '.' => 0,
            '1'..='9' => character as u8 - b'0',
            found => return Err(BoardError::Character { row, column: index + 1, found }),
        };
        cells.push(colour);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_as_it_was() {
        let text = "..3\n121\n";
        let board: Board = text.parse().unwrap();
        assert_eq!((board.width(), board.height(), board.cells()), (3, 2, &[0, 0, 3, 1, 2, 1][..]));
        assert_eq!(board.to_string(), text);
        assert_eq!((board.colour(2, 0), board.colour(1, 1)), (3, 2));
    }

    #[test]
    fn malformed_text_is_refused_where_it_is_wrong() {
        let error = |text: &str| text.parse::<Board>().unwrap_err().to_string();
        assert_eq!(error(" \n"), "expected at least one row of blocks, found none");
        assert_eq!(error("123\n12\n"), "expected 3 cells in row 2, found `2`");
        assert_eq!(error("123\n1x3\n"), "expected a digit or a dot in row 2, column 2, found `x`");
        assert_eq!(error("103\n"), "expected a digit or a dot in row 1, column 2, found `0`");
        assert_eq!(error(&"1".repeat(5000)), "expected at most 128 rows and columns, found `5000`");
        assert_eq!(error(&"1\n".repeat(5000)), "expected at most 128 rows and columns, found `129`");
    }

    #[test]
    fn genes_are_colours_and_a_seed_is_a_whole_board() {
        let rules = Rules { width: 2, height: 2, colours: 3, ..Rules::default() };
        assert_eq!(Board::from_genes(&rules, &[0, 1, 5, 255]).unwrap().cells(), [1, 2, 3, 1]);
        assert_eq!(Board::from_genes(&rules, &[0]), Err(BoardError::Genes { expected: 4, found: 1 }));
        let board = Board::from_seed(&Rules::default(), 1);
        assert_eq!(board, Board::from_seed(&Rules::default(), 1));
        assert_ne!(board, Board::from_seed(&Rules::default(), 2));
        assert_eq!(board.check(&Rules::default()), Ok(()));
    }

    #[test]
    fn a_board_that_does_not_fit_the_rules_is_refused() {
        let board: Board = "12\n36\n".parse().unwrap();
        let rules = Rules { width: 2, height: 2, ..Rules::default() };
        let message = board.check(&rules).unwrap_err().to_string();
        assert_eq!(message, "expected colours from 1 to 5, found `6` in row 2, column 2");
        let message = board.check(&Rules::default()).unwrap_err().to_string();
        assert_eq!(message, "expected a board of 5x10, found `2x2`");
    }
}
