//! Search: which move is best, looking a number of moves ahead.
//!
//! Principal variation search with iterative deepening (two plies at a time), a transposition table, move ordering, and extension at
//! the leaves while a capture is pending. The best move is the first of the legal moves with the highest score,
//! whatever the order in which they were tried, so with [`Reuse::Never`] or [`Reuse::EqualDepth`] a search to a
//! fixed depth finds the move and the score of a plain minimax. So it does with the positions of a game in mind
//! ([`Search::follow`]), which are one fixed set for each search.

mod ordering;
mod past;
mod table;
mod tree;
mod variation;

pub use table::Reuse;

use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::moves::Move;
use crate::position::Position;
use crate::random::{Stream, mix};
use crate::score::Score;
use crate::style::{Style, Ties};
use ordering::Ordering;
use past::Past;
use std::time::{Duration, Instant};
use table::Table;
use tree::{Tree, Window};
use variation::Variations;

/// The deepest that can be asked for.
pub const MAX_DEPTH: u32 = 64;
/// Captures at the leaves go on for as long as there are pieces.
const MAX_PLY: usize = MAX_DEPTH as usize + 2 * Position::PIECES_A_SIDE as usize;

/// How far to search, and what to find. Whatever the limits, the first pass of one or two plies is completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Moves to look ahead, 1 to [`MAX_DEPTH`]; other values count as the nearest of these.
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

/// What a search may use up.
#[derive(Clone, Copy)]
struct Budget {
    nodes: u64,
    deadline: Option<Instant>,
}

impl Budget {
    const UNLIMITED: Self = Self { nodes: u64::MAX, deadline: None };
    const NODES_BETWEEN_LOOKS_AT_THE_CLOCK: u64 = 1024;

    #[allow(clippy::disallowed_methods, reason = "the caller asked for a time limit")]
    fn new(limits: &Limits) -> Self {
        Self {
            nodes: limits.nodes.unwrap_or(u64::MAX),
            deadline: limits.time.and_then(|time| Instant::now().checked_add(time)),
        }
    }

    #[inline]
    #[allow(clippy::disallowed_methods, reason = "the caller asked for a time limit")]
    fn is_spent(&self, nodes: u64) -> bool {
        let late = |deadline| {
            nodes.is_multiple_of(Self::NODES_BETWEEN_LOOKS_AT_THE_CLOCK) && Instant::now() >= deadline
        };
        nodes >= self.nodes || self.deadline.is_some_and(late)
    }
}

/// A searcher: its table and all the memory it needs, to be used for many searches.
///
/// What it remembers belongs to one evaluator: call [`Search::forget`] before searching with another, and before
/// each game whose moves must not depend on earlier ones.
pub struct Search {
    table: Table,
    reuse: Reuse,
    style: Style,
    past: Past,
    /// Decides between equally good moves, if not their order.
    ties: Option<u64>,
    ordering: Ordering,
    /// The moves of all nodes on the way from the root, with how early to try them.
    moves: Vec<(u32, Move)>,
    variations: Variations,
    roots: Vec<Root>,
    /// The best lines of the last depth that was searched in full.
    lines: Vec<Line>,
    /// Those of the depth being searched.
    drafts: Vec<Line>,
}

/// A move at the root.
#[derive(Clone, Copy)]
struct Root {
    mv: Move,
    /// Its place among the legal moves, or in the order that decides ties.
    index: usize,
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

    /// A searcher of this style. [`Search::follow`] tells it of the game.
    pub fn with_style(table_bits: u32, reuse: Reuse, style: Style) -> Self {
        Self {
            table: Table::new(table_bits.min(Self::LARGEST_TABLE)),
            reuse,
            style,
            past: Past::default(),
            ties: None,
            ordering: Ordering::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            variations: Variations::new(),
            roots: Vec::with_capacity(64),
            lines: Vec::new(),
            drafts: Vec::new(),
        }
    }

    /// Forgets everything that earlier searches found; costs next to nothing.
    pub fn forget(&mut self) {
        self.table.clear();
        self.ordering.clear();
    }

    /// Takes the game into account whose position is searched next, as far as the style asks for it: the positions since
    /// its last irreversible move, and its seed and ply, which decide ties.
    pub fn follow(&mut self, game: &Game, seed: u64) {
        if self.style.history {
            self.remember_positions(game.recent());
        }
        if self.style.ties == Ties::Random {
            self.ties = Some(mix(seed) ^ game.moves().len() as u64);
        }
    }

    /// Scores these positions as draws wherever the next searches meet them; a search's own root is among them.
    pub fn remember_positions(&mut self, positions: &[Position]) {
        if self.past.set(positions) {
            // What is in the table holds for another set.
            self.table.clear();
        }
    }

    /// Whether a position is one of the game that counts as a draw.
    pub(crate) fn is_past(&self, position: &Position) -> bool {
        self.past.contains(position)
    }

    /// The best move, or nothing if there is no legal move.
    pub fn run<E: Evaluator>(
        &mut self,
        evaluator: &mut E,
        position: &Position,
        limits: &Limits,
    ) -> Option<Found> {
        self.prepare(position, limits);
        let budget = Budget::UNLIMITED;
        let mut tree = Tree { search: self, evaluator, budget, nodes: 1, evaluations: 0, stopped: false };
        let depth = tree.deepen(position, limits);
        let (nodes, evaluations) = (tree.nodes, tree.evaluations);
        let best = self.lines.first()?;
        Some(Found { best: *best.moves.first()?, score: best.score, depth, nodes, evaluations })
    }

    /// The best lines of the last search, as many as it was asked for, the best first.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn prepare(&mut self, position: &Position, limits: &Limits) {
        self.moves.clear();
        self.roots.clear();
        let roots = &mut self.roots;
        position.for_each_move(|mv| roots.push(Root { mv, index: roots.len() }));
        if let Some(seed) = self.ties {
            let mut stream = Stream::new(seed);
            for last in (1..roots.len()).rev() {
                let other = stream.below(last + 1);
                (roots[last].index, roots[other].index) = (roots[other].index, roots[last].index);
            }
        }
        let lines = limits.lines.max(1).min(self.roots.len());
        for buffer in [&mut self.lines, &mut self.drafts] {
            buffer.resize_with(lines, || Line { score: Score::EVEN, moves: Vec::with_capacity(MAX_PLY) });
        }
    }

    /// True if searching deeper can't change anything: the end of the game is within the depth that was searched.
    fn is_settled(&self, depth: u32) -> bool {
        let ends_within =
            |score: Score| score.win_in().or(score.lost_in()).is_some_and(|plies| plies <= depth);
        match self.lines.as_slice() {
            [] => true,
            [line] => ends_within(line.score),
            _ => false,
        }
    }
}

impl<E: Evaluator> Tree<'_, E> {
    /// Searches deeper and deeper within the limits; returns the depth that was searched in full.
    fn deepen(&mut self, position: &Position, limits: &Limits) -> u32 {
        let budget = Budget::new(limits);
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

    /// Finds the best lines at this depth, and brings their moves to the front for the next.
    fn best_lines(&mut self, position: &Position, depth: u32) {
        for line in 0..self.search.drafts.len() {
            let Some(best) = self.best_root(position, depth, line) else { return };
            self.search.roots[line..=best].rotate_right(1);
        }
    }

    /// The place of the best of the moves from `line` on; nothing if the budget ran out.
    fn best_root(&mut self, position: &Position, depth: u32, line: usize) -> Option<usize> {
        let mut best: Option<(usize, Root, Score)> = None;
        for place in line..self.search.roots.len() {
            let root = self.search.roots[place];
            // A move that comes earlier among the legal ones wins a tie.
            let floor =
                best.map_or(
                    -Score::INFINITE,
                    |(_, other, score)| {
                        if root.index < other.index { score.below() } else { score }
                    },
                );
            let score = self.root_score(&position.play(&root.mv), floor, depth, best.is_none());
            if self.stopped {
                return None;
            }
            if score > floor {
                best = Some((place, root, score));
                self.keep_line(line, root.mv, score);
            }
        }
        best.map(|(place, ..)| place)
    }

    /// A root move's score if it is above `floor`, else anything that is not.
    fn root_score(&mut self, child: &Position, floor: Score, depth: u32, first: bool) -> Score {
        if !first {
            let score = -self.score(child, Window::above(floor).turned(), depth - 1, 1);
            if score <= floor {
                return score;
            }
        }
        let window = Window { alpha: floor, beta: Score::INFINITE };
        -self.score(child, window.turned(), depth - 1, 1)
    }

    fn keep_line(&mut self, line: usize, mv: Move, score: Score) {
        let Search { drafts, variations, .. } = &mut *self.search;
        drafts[line].score = score;
        drafts[line].moves.clear();
        drafts[line].moves.push(mv);
        drafts[line].moves.extend_from_slice(variations.line(1));
    }
}
