//! Opening books: what is played at the start without a search.
//!
//! A book file is text: each line is the moves of one line of play from the initial position, separated by blanks,
//! with every square of a jump that could be mistaken for another; `#` begins a remark. A move that more lines
//! contain is played more often.

use crate::moves::Move;
use crate::notation::MoveError;
use crate::openings::openings;
use crate::position::Position;
use crate::random::mix;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Moves to play at the start, by position: other ways to a position find the same moves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Book {
    entries: BTreeMap<Key, Vec<BookMove>>,
}

/// Every bit of a position.
type Key = [u32; 4];

fn key(position: &Position) -> Key {
    [position.black.0, position.white.0, position.kings.0, position.side as u32]
}

/// A move of a book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BookMove {
    /// What to play.
    pub mv: Move,
    /// How many lines of the book contain it, which makes it as much likelier.
    pub lines: u32,
}

/// Why a text is no book.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file can't be read.
    #[error("expected a readable book: {0}")]
    Read(#[from] io::Error),
    /// It is too long.
    #[error("expected a book of at most {} bytes", Book::LONGEST_FILE)]
    TooLong,
    /// A line holds something else than legal moves.
    #[error("line {line}: {error}")]
    Move {
        /// Counted from 1.
        line: usize,
        /// What is wrong with a move of it.
        error: MoveError,
    },
}

impl Book {
    /// Bytes that a book file may have.
    pub const LONGEST_FILE: u64 = 16 << 20;

    /// The first three moves of all openings of the deck.
    pub fn deck() -> Self {
        let mut book = Self::default();
        for opening in openings() {
            book.add(opening.moves);
        }
        book
    }

    /// Reads a book.
    ///
    /// # Errors
    /// If a line holds anything but legal moves, one after the other, from the initial position.
    pub fn parse(text: &str) -> Result<Self, BookError> {
        let mut book = Self::default();
        for (index, line) in text.lines().enumerate() {
            let moves = read_line(line).map_err(|error| BookError::Move { line: index + 1, error })?;
            book.add(&moves);
        }
        Ok(book)
    }

    /// Reads a book file.
    ///
    /// # Errors
    /// If it can't be read, or is no book.
    pub fn load(path: &Path) -> Result<Self, BookError> {
        let mut text = String::new();
        File::open(path)?.take(Self::LONGEST_FILE + 1).read_to_string(&mut text)?;
        if text.len() as u64 > Self::LONGEST_FILE {
            return Err(BookError::TooLong);
        }
        Self::parse(&text)
    }

    /// Adds a line of legal moves from the initial position.
    fn add(&mut self, moves: &[Move]) {
        let mut position = Position::START;
        for mv in moves {
            let choices = self.entries.entry(key(&position)).or_default();
            match choices.iter_mut().find(|choice| choice.mv == *mv) {
                Some(choice) => choice.lines += 1,
                None => choices.push(BookMove { mv: *mv, lines: 1 }),
            }
            position = position.play(mv);
        }
    }

    /// What the book plays here, in the order of its lines; nothing where it ends.
    pub fn moves(&self, position: &Position) -> &[BookMove] {
        self.entries.get(&key(position)).map_or(&[], Vec::as_slice)
    }

    /// One of the book's moves, drawn by seed and position.
    pub fn choose(&self, position: &Position, seed: u64) -> Option<Move> {
        let choices = self.moves(position);
        let all: u64 = choices.iter().map(|choice| u64::from(choice.lines)).sum();
        let mut drawn = mix(position.hash64() ^ mix(seed)).checked_rem(all)?;
        let choice = choices.iter().find(|choice| {
            let found = drawn < u64::from(choice.lines);
            drawn = drawn.saturating_sub(u64::from(choice.lines));
            found
        });
        choice.map(|choice| choice.mv)
    }
}

fn read_line(line: &str) -> Result<Vec<Move>, MoveError> {
    let moves = line.split('#').next().unwrap_or_default();
    let mut position = Position::START;
    let read = |text| {
        let mv = position.parse_move(text)?;
        position = position.play(&mv);
        Ok(mv)
    };
    moves.split_whitespace().map(read).collect()
}
