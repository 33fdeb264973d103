//! Search: which move is best, looking a number of plies ahead.
//!
//! Principal variation search with iterative deepening (two plies at a time), a transposition table, move ordering, and extension at
//! the leaves while a capture is pending. The best move is the first of the legal moves with the highest score,
//! whatever the order in which they were tried, so with [`Reuse::Never`] or [`Reuse::EqualDepth`] a search to a
//! fixed depth finds the move and the score of a plain minimax. So it does with the positions of a game in mind
//! ([`Search::follow`]), which are one fixed set for each search.

mod budget;
mod core;
mod ordering;
mod past;
mod playing;
mod selective;
mod shared;
mod table;
mod tree;
mod variation;

pub use playing::{PlaySettings, PlayingSearch, Watch};
pub use table::Reuse;

use self::core::Core;
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::moves::Move;
use crate::position::Position;
use crate::score::Score;
use crate::style::Style;
use budget::Budget;
use std::time::Duration;
use table::Table;
use tree::Tree;

/// The deepest that can be asked for.
pub const MAX_DEPTH: u32 = 64;
/// Captures at the leaves continue for as long as there are pieces.
const MAX_PLY: usize = MAX_DEPTH as usize + 2 * Position::PIECES_A_SIDE as usize;

/// How far to search, and what to find. Whatever the limits, the first pass of one or two plies is completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Plies to search, 1 to [`MAX_DEPTH`]; other values count as the nearest of these.
    pub depth: u32,
    /// Positions to look at.
    pub nodes: Option<u64>,
    /// Time to spend; only with this limit is a clock looked at.
    pub time: Option<Duration>,
    /// How many of the best moves to find, each with its exact score.
    pub lines: usize,
}

impl Limits {
    /// The best move at a fixed depth: the same on every machine.
    pub const fn depth(depth: u32) -> Self {
        Self { depth, nodes: None, time: None, lines: 1 }
    }
}

/// What a search found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The best move.
    pub best: Move,
    /// What it is worth to the side to move.
    pub score: Score,
    /// The depth to which it was searched in full.
    pub depth: u32,
    /// Positions visited, those used as leaves among them.
    pub nodes: u64,
    /// Positions evaluated, also those that were evaluated beside others and then not needed.
    pub evaluations: u64,
}

/// One of the best moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// What its first move is worth to the side to move at the root.
    pub score: Score,
    /// Best play from the root on.
    pub moves: Vec<Move>,
}

/// A searcher: its table and all the memory it needs, to be used for many searches.
///
/// What it remembers belongs to one evaluator: call [`Search::forget`] before searching with another, and before
/// each game whose moves must not depend on earlier ones.
pub struct Search {
    core: Core<Table>,
}

impl Search {
    /// Bits of a table that suits searches of a few plies: it stays in the processor's cache.
    pub const SMALL_TABLE: u32 = 14;
    /// Larger tables are cut to this.
    pub const LARGEST_TABLE: u32 = 24;

    /// A searcher with a table of 2^`table_bits` entries of 28 bytes.
    pub fn new(table_bits: u32, reuse: Reuse) -> Self {
        Self::with_style(table_bits, reuse, Style::default())
    }

    /// A searcher of this style. [`Search::follow`] sets the game.
    pub fn with_style(table_bits: u32, reuse: Reuse, style: Style) -> Self {
        Self { core: Core::new(Table::new(table_bits.min(Self::LARGEST_TABLE), reuse), style) }
    }

    /// Forgets everything that earlier searches found; costs next to nothing.
    pub fn forget(&mut self) {
        self.core.forget();
    }

    /// Takes the game into account whose position is searched next, as far as the style asks for it: the positions since
    /// its last irreversible move, and its seed and ply, which decide ties.
    pub fn follow(&mut self, game: &Game, seed: u64) {
        self.core.follow(game, seed);
    }

    /// Scores these positions as draws wherever the next searches meet them; a search's own root is among them.
    pub fn remember_positions(&mut self, positions: &[Position]) {
        self.core.remember_positions(positions);
    }

    /// Whether a position is one of the game that counts as a draw.
    pub(crate) fn is_past(&self, position: &Position) -> bool {
        self.core.past.contains(position)
    }

    /// Puts equally good moves into the order that decides ties, if that is not their own.
    pub(crate) fn order_ties(&self, moves: &mut [Move]) {
        self.core.order_ties(moves);
    }

    /// The best move, or nothing if there is no legal move.
    pub fn run<E: Evaluator>(
        &mut self,
        evaluator: &mut E,
        position: &Position,
        limits: &Limits,
    ) -> Option<Found> {
        self.core.prepare(position, limits);
        let mut tree = Tree::new(&mut self.core, evaluator, None);
        let depth = tree.deepen(position, limits);
        let (nodes, evaluations) = (tree.nodes, tree.evaluations);
        let best = self.core.lines.first()?;
        Some(Found { best: *best.moves.first()?, score: best.score, depth, nodes, evaluations })
    }

    /// The best lines of the last search, in the requested number, the best first.
    pub fn lines(&self) -> &[Line] {
        &self.core.lines
    }
}

impl<E: Evaluator> Tree<'_, E, Table> {
    /// Searches deeper and deeper within the limits; returns the depth that was searched in full.
    fn deepen(&mut self, position: &Position, limits: &Limits) -> u32 {
        let budget = Budget::new(limits, false);
        let deepest = limits.depth.clamp(1, MAX_DEPTH);
        let mut searched = 0;
        // Two plies at a time: what is best for the side to move after an odd number of plies is a poor guide to
        // an even one.
        for depth in (1..=deepest).filter(|depth| (deepest - depth).is_multiple_of(2)) {
            self.best_lines(position, depth);
            if self.stopped {
                break;
            }
            searched = depth;
            std::mem::swap(&mut self.search.lines, &mut self.search.drafts);
            if self.search.is_settled(depth) {
                break;
            }
            self.budget = budget;
        }
        searched
    }
}
