//! Moves as text: `11-15`, `15x22`, and multi-jumps with every square, `6x31x10x19`.

use crate::moves::Move;
use crate::position::Position;
use crate::squares::Square;
use std::fmt;

/// Every square the move touches, so that no two moves of a position are written alike.
impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.is_capture() { "x" } else { "-" };
        for (i, square) in self.squares().enumerate() {
            write!(f, "{}{square}", if i > 0 { separator } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no move in a position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MoveError {
    /// It does not read as a move at all.
    #[error("expected a move such as 11-15 or 15x22x31, found `{0}`")]
    Unreadable(String),
    /// It reads as a move that is not legal.
    #[error("expected a legal move, found `{text}` in {position}, where {}", Choices(position))]
    Illegal {
        /// What was read.
        text: String,
        /// Where it can't be played.
        position: Position,
    },
    /// It names the ends of several multi-jumps that take different pieces.
    #[error("expected every square of the jump, found `{text}` for any of {choices:?}")]
    Ambiguous {
        /// What was read.
        text: String,
        /// What it can mean.
        choices: Vec<Move>,
    },
}

/// What can be played, as a clause.
struct Choices<'a>(&'a Position);

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moves: Vec<String> = self.0.legal_moves().iter().map(ToString::to_string).collect();
        let side = self.0.side_to_move();
        if moves.is_empty() {
            write!(f, "{side} has no legal move")
        } else {
            write!(f, "{side} can play {}", moves.join(" "))
        }
    }
}

impl Position {
    /// The legal move that `text` names: its squares separated by `-` or `x`, either all of them, or only the
    /// first and the last where that leaves no doubt which pieces are taken.
    ///
    /// # Errors
    /// If it names no legal move, or more than one.
    pub fn parse_move(&self, text: &str) -> Result<Move, MoveError> {
        let squares = squares_of(text).ok_or_else(|| MoveError::Unreadable(shortened(text)))?;
        let mut choices = self.legal_moves();
        choices.retain(|mv| names(&squares, mv));
        let Some(&first) = choices.first() else {
            return Err(MoveError::Illegal { text: shortened(text), position: *self });
        };
        let after = self.play(&first);
        if choices.iter().any(|mv| self.play(mv) != after) {
            return Err(MoveError::Ambiguous { text: shortened(text), choices });
        }
        Ok(first)
    }
}

/// Two squares name the ends of a move, more name all of them.
fn names(squares: &[Square], mv: &Move) -> bool {
    match squares {
        [from, to] => mv.from() == *from && mv.to() == *to,
        _ => mv.squares().eq(squares.iter().copied()),
    }
}

/// The squares of a move's text, if it is one.
fn squares_of(text: &str) -> Option<Vec<Square>> {
    const MOST: usize = 1 + Position::PIECES_A_SIDE as usize;
    let squares = text
        .split(['-', 'x', 'X'])
        .take(MOST + 1)
        .map(|number| {
            let digits = (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
            if digits { number.parse().ok().and_then(Square::new) } else { None }
        })
        .collect::<Option<Vec<Square>>>()?;
    (2..=MOST).contains(&squares.len()).then_some(squares)
}

/// As much of a text as an error message can bear.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut characters = text.chars();
    let mut short: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}
