//! The endgame database: who wins with few pieces left, by retrograde analysis.
//!
//! A [`Database`] knows for every position of up to a number of pieces whether the side to move wins, draws or loses
//! under best play. It is made of slices, one for each [`PieceCounts`], always Black to move: with White to move the
//! board is turned and the colours are swapped. A slice gives every placement of its pieces one number (`index`) and
//! holds five verdicts in a byte, so that a probe is a few table look-ups.

mod build;
mod file;
mod guide;
mod index;
mod mapping;
mod piece_counts;
mod shared;
mod slice;
mod solve;

pub use build::BuildStep;
pub use file::EndgameError;
pub use piece_counts::PieceCounts;
pub use slice::Counts;

use crate::position::{Position, Side};
use crate::random::Stream;
use crate::squares::Squares;
use guide::Guide;
use index::Index;
use slice::Slice;
use std::sync::{Arc, OnceLock};

/// What best play gives the side to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum EndgameResult {
    /// The side to move wins.
    Win,
    /// Neither side can force a win.
    Draw,
    /// The side to move loses.
    Loss,
}

impl EndgameResult {
    /// What the other side makes of it.
    #[must_use]
    pub const fn turned(self) -> Self {
        match self {
            Self::Win => Self::Loss,
            Self::Draw => Self::Draw,
            Self::Loss => Self::Win,
        }
    }
}

/// A database of all positions of up to a number of pieces.
pub struct Database {
    pieces: u32,
    /// By [`PieceCounts::place`]; those that the database does not hold are vacant.
    shelves: Vec<Option<Shelf>>,
    /// Computed when it is first requested: of 6 pieces that takes a second.
    digest: OnceLock<String>,
}

/// A slice, with what makes it useful.
struct Shelf {
    index: Arc<Index>,
    slice: Slice,
    guide: OnceLock<Guide>,
}

impl Database {
    /// The largest database that can be built.
    pub const MOST_PIECES: u32 = 6;

    /// A database that knows of no pieces at all.
    fn empty() -> Self {
        let shelves = (0..PieceCounts::PLACES).map(|_| None).collect();
        Self { pieces: 0, shelves, digest: OnceLock::new() }
    }

    fn insert(&mut self, index: Arc<Index>, slice: Slice) {
        let place = index.material().place();
        self.shelves[place] = Some(Shelf { index, slice, guide: OnceLock::new() });
        self.digest = OnceLock::new();
    }

    fn shelf(&self, material: PieceCounts) -> Option<&Shelf> {
        self.shelves.get(material.place())?.as_ref()
    }

    /// Every position with this number of pieces, and fewer, is known.
    pub fn pieces(&self) -> u32 {
        self.pieces
    }

    /// What best play gives the side to move; nothing if there are too many pieces.
    #[inline]
    pub fn probe(&self, position: &Position) -> Option<EndgameResult> {
        let board = Board::of(position);
        if board.black == 0 || board.white == 0 {
            return Some(if board.black == 0 { EndgameResult::Loss } else { EndgameResult::Win });
        }
        let shelf = self.shelf(board.material()?)?;
        Some(shelf.slice.verdict(shelf.index.number(&board)))
    }

    /// The slices, in the order in which they were built, and what is in them.
    pub fn slices(&self) -> impl Iterator<Item = (PieceCounts, Counts)> + '_ {
        PieceCounts::up_to(self.pieces)
            .filter_map(|material| Some((material, self.shelf(material)?.slice.counts())))
    }

    /// Looks at `samples` positions, drawn from all by `seed`, and answers the first whose verdict does not follow from
    /// those of its successors: none, unless something is badly wrong.
    pub fn contradiction(&self, samples: u64, seed: u64) -> Option<Position> {
        let slices: Vec<&Shelf> = self.shelves.iter().flatten().collect();
        let all: usize = slices.iter().map(|shelf| shelf.index.len() as usize).sum();
        let mut stream = Stream::new(seed);
        (0..samples).find_map(|_| {
            let mut drawn = stream.below(all);
            let shelf = slices.iter().find(|shelf| {
                let within = drawn < shelf.index.len() as usize;
                drawn -= if within { 0 } else { shelf.index.len() as usize };
                within
            });
            let position = shelf?.index.board(drawn as u32).position();
            (self.probe(&position) != self.by_successors(&position)).then_some(position)
        })
    }

    /// What the moves of a position make of it.
    fn by_successors(&self, position: &Position) -> Option<EndgameResult> {
        let mut best = EndgameResult::Loss;
        for mv in position.legal_moves() {
            match self.probe(&position.play(&mv))? {
                EndgameResult::Loss => return Some(EndgameResult::Win),
                EndgameResult::Draw => best = EndgameResult::Draw,
                EndgameResult::Win => {}
            }
        }
        Some(best)
    }

    /// Bytes that the verdicts take.
    pub fn bytes(&self) -> u64 {
        self.shelves.iter().flatten().map(|shelf| shelf.slice.bytes().len() as u64).sum()
    }

    /// Names the contents: two databases with the same digest give the same answers.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| self.computed_digest())
    }

    fn computed_digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for material in PieceCounts::up_to(self.pieces) {
            if let Some(shelf) = self.shelf(material) {
                hasher.update(material.name().as_bytes());
                hasher.update(blake3::hash(shelf.slice.bytes()).as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}

/// A position as slices have it: Black to move, and nothing but bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Board {
    black: u32,
    white: u32,
    kings: u32,
}

impl Board {
    /// The position itself, or seen from the other side of the table if White is to move.
    #[inline]
    fn of(position: &Position) -> Self {
        let board = Self { black: position.black.0, white: position.white.0, kings: position.kings.0 };
        match position.side {
            Side::Black => board,
            Side::White => board.turned(),
        }
    }

    #[inline]
    fn turned(self) -> Self {
        let Self { black, white, kings } = self;
        Self { black: white.reverse_bits(), white: black.reverse_bits(), kings: kings.reverse_bits() }
    }

    #[inline]
    fn position(self) -> Position {
        let Self { black, white, kings } = self;
        Position { black: Squares(black), white: Squares(white), kings: Squares(kings), side: Side::Black }
    }

    /// The slice it belongs to; nothing if there are more pieces than any database has.
    #[inline]
    fn material(self) -> Option<PieceCounts> {
        let count = |squares: u32| squares.count_ones() as u8;
        if count(self.black | self.white) > Database::MOST_PIECES as u8 {
            return None;
        }
        Some(PieceCounts {
            black_men: count(self.black & !self.kings),
            black_kings: count(self.black & self.kings),
            white_men: count(self.white & !self.kings),
            white_kings: count(self.white & self.kings),
        })
    }
}
