//! Positions as text: FEN as PDN writes it, `B:W21,22,K30:B1,2,K5`.

use crate::position::{InvalidPosition, Position, Side};
use crate::squares::{Square, Squares};
use std::fmt;
use std::str::FromStr;

/// Why a text is no FEN, and at which character (counted from 1).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("column {column}: {reason}")]
pub struct FenError {
    /// The character at which reading stopped, counted from 1.
    pub column: usize,
    /// What was expected there, and what was found.
    pub reason: FenReason,
}

/// What is wrong with a FEN.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FenReason {
    /// Another character was expected.
    #[error("expected {expected}, found {}", Found(*found))]
    Unexpected {
        /// What may stand there.
        expected: &'static str,
        /// What stands there; nothing at the end of the text.
        found: Option<char>,
    },
    /// A number that names no square.
    #[error("expected a square from 1 to 32, found `{0}`")]
    NoSquare(String),
    /// A range that runs backwards.
    #[error("expected a range from a lower to a higher square, found `{0}-{1}`")]
    BadRange(Square, Square),
    /// A square named twice.
    #[error("expected each square once, found `{0}` again")]
    Twice(Square),
    /// A side listed twice.
    #[error("expected each side once, found {0} again")]
    SideTwice(Side),
    /// Pieces that can't stand like this.
    #[error(transparent)]
    Invalid(#[from] InvalidPosition),
}

/// A character in backticks, or the end of the text.
struct Found(Option<char>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(found) => write!(f, "`{}`", found.escape_debug()),
            None => f.write_str("the end"),
        }
    }
}

/// Writes the side to move, then White's pieces, then Black's, by square.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.side_to_move().letter())?;
        for side in [Side::White, Side::Black] {
            write!(f, ":{}", side.letter())?;
            for (i, square) in self.pieces(side).into_iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                let king = if self.kings(side).contains(square) { "K" } else { "" };
                write!(f, "{comma}{king}{square}")?;
            }
        }
        Ok(())
    }
}

/// Reads both orders of the sides, ranges such as `B1-12`, blanks, and a closing full stop.
impl FromStr for Position {
    type Err = FenError;

    fn from_str(text: &str) -> Result<Self, FenError> {
        let mut reader = Reader::new(text);
        let side = reader.side()?;
        let mut board = Board::default();
        for _ in 0..2 {
            reader.expect(':', "`:`")?;
            reader.pieces(&mut board)?;
        }
        reader.accept('.');
        reader.end()?;
        Position::new(board.black, board.white, board.kings, side)
            .map_err(|invalid| FenError { column: 1, reason: invalid.into() })
    }
}

fn error_at(index: usize, reason: FenReason) -> FenError {
    FenError { column: index + 1, reason }
}

/// The pieces read so far.
#[derive(Default)]
struct Board {
    black: Squares,
    white: Squares,
    kings: Squares,
    listed: Vec<Side>,
}

impl Board {
    fn put(&mut self, side: Side, square: Square, king: bool) -> Result<(), FenReason> {
        if (self.black | self.white).contains(square) {
            return Err(FenReason::Twice(square));
        }
        match side {
            Side::Black => self.black |= square.into(),
            Side::White => self.white |= square.into(),
        }
        if king {
            self.kings |= square.into();
        }
        Ok(())
    }
}

/// The text and how far it has been read; blanks are skipped everywhere.
struct Reader {
    characters: Vec<char>,
    next: usize,
}

impl Reader {
    /// No position needs more; what follows is not even looked at.
    const LONGEST: usize = 400;

    fn new(text: &str) -> Self {
        Self { characters: text.chars().take(Self::LONGEST).collect(), next: 0 }
    }

    fn peek(&mut self) -> Option<char> {
        while self.characters.get(self.next).is_some_and(|c| c.is_whitespace()) {
            self.next += 1;
        }
        self.characters.get(self.next).copied()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek().is_some_and(|c| c.eq_ignore_ascii_case(&wanted));
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: char, expected: &'static str) -> Result<(), FenError> {
        if self.accept(wanted) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn end(&mut self) -> Result<(), FenError> {
        if self.peek().is_none() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    fn unexpected(&mut self, expected: &'static str) -> FenError {
        let found = self.peek();
        error_at(self.next, FenReason::Unexpected { expected, found })
    }

    fn side(&mut self) -> Result<Side, FenError> {
        if self.accept('B') {
            Ok(Side::Black)
        } else if self.accept('W') {
            Ok(Side::White)
        } else {
            Err(self.unexpected("`B` or `W`"))
        }
    }

    /// One side's letter and its squares, of which there may be none.
    fn pieces(&mut self, board: &mut Board) -> Result<(), FenError> {
        let start = self.next;
        let side = self.side()?;
        if board.listed.contains(&side) {
            return Err(error_at(start, FenReason::SideTwice(side)));
        }
        board.listed.push(side);
        if matches!(self.peek(), None | Some(':' | '.')) {
            return Ok(());
        }
        self.range(side, board)?;
        while self.accept(',') {
            self.range(side, board)?;
        }
        Ok(())
    }

    /// A square or a range of them, kings if marked.
    fn range(&mut self, side: Side, board: &mut Board) -> Result<(), FenError> {
        let king = self.accept('K');
        let start = self.next;
        let first = self.square()?;
        let last = if self.accept('-') { self.square()? } else { first };
        if last < first {
            return Err(error_at(start, FenReason::BadRange(first, last)));
        }
        for square in Squares::ALL.into_iter().skip_while(|s| *s < first).take_while(|s| *s <= last) {
            board.put(side, square, king).map_err(|reason| error_at(start, reason))?;
        }
        Ok(())
    }

    fn square(&mut self) -> Result<Square, FenError> {
        if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Err(self.unexpected("a square"));
        }
        let start = self.next;
        let digits: String = self.characters[start..].iter().take_while(|c| c.is_ascii_digit()).collect();
        self.next += digits.len();
        let square = digits.parse().ok().and_then(Square::new);
        square.ok_or_else(|| error_at(start, FenReason::NoSquare(digits)))
    }
}
