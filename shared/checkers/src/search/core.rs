//! What both kinds of search have in common: the memory they need, and the moves at the root.

use super::ordering::Ordering;
use super::past::Past;
use super::table::Memory;
use super::tree::{Tree, Window};
use super::variation::Variations;
use super::{Limits, Line, MAX_PLY};
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::moves::Move;
use crate::position::{Position, Side};
use crate::random::{Stream, mix};
use crate::score::Score;
use crate::style::{Style, Ties};

/// A table and all the memory that a search needs, to be used for many searches.
pub(super) struct Core<T> {
    pub(super) table: T,
    pub(super) style: Style,
    pub(super) past: Past,
    /// Decides between equally good moves, if not their order.
    ties: Option<u64>,
    pub(super) ordering: Ordering,
    /// The moves of all nodes on the way from the root, with how early to try them.
    pub(super) moves: Vec<(u32, Move)>,
    pub(super) variations: Variations,
    pub(super) roots: Vec<Root>,
    /// The best lines of the last depth that was searched in full.
    pub(super) lines: Vec<Line>,
    /// Those of the depth being searched.
    pub(super) drafts: Vec<Line>,
    /// The positions from the root on; only of searches that know of repetitions in the tree.
    pub(super) path: Vec<Position>,
    /// What a draw costs the side to move at the root; 0 for exact searches.
    pub(super) contempt: i32,
    /// What a man is worth, where that is known.
    pub(super) man: i32,
}

/// A move at the root.
#[derive(Clone, Copy)]
pub(super) struct Root {
    pub(super) mv: Move,
    /// Its place among the legal moves, or in the order that decides ties.
    pub(super) index: usize,
}

impl<T: Memory> Core<T> {
    pub(super) fn new(table: T, style: Style) -> Self {
        Self {
            table,
            style,
            past: Past::default(),
            ties: None,
            ordering: Ordering::new(MAX_PLY + 1),
            moves: Vec::with_capacity(1024),
            variations: Variations::new(),
            roots: Vec::with_capacity(64),
            lines: Vec::new(),
            drafts: Vec::new(),
            path: Vec::new(),
            contempt: 0,
            man: 0,
        }
    }

    pub(super) fn forget(&mut self) {
        self.table.clear();
        self.ordering.clear();
    }

    pub(super) fn follow(&mut self, game: &Game, seed: u64) {
        if self.style.history {
            self.remember_positions(game.recent());
        }
        if self.style.ties == Ties::Random {
            self.ties = Some(mix(seed) ^ game.moves().len() as u64);
        }
    }

    pub(super) fn remember_positions(&mut self, positions: &[Position]) {
        if self.past.set(positions) {
            self.table.depend_on(self.past.hash());
        }
    }

    /// What a draw `ply` moves below the root is worth to the side to move there.
    #[inline]
    pub(super) fn draw(&self, ply: usize) -> Score {
        if ply.is_multiple_of(2) { Score(-self.contempt) } else { Score(self.contempt) }
    }

    /// Whether a position stands on the way from the root already.
    #[inline]
    pub(super) fn recurs(&self, position: &Position) -> bool {
        let kings = |side| position.kings(side).count() > 0;
        kings(Side::Black) && kings(Side::White) && self.path.contains(position)
    }

    pub(super) fn prepare(&mut self, position: &Position, limits: &Limits) {
        self.moves.clear();
        self.roots.clear();
        self.path.clear();
        let roots = &mut self.roots;
        position.for_each_move(|mv| roots.push(Root { mv, index: roots.len() }));
        if let Some(seed) = self.ties {
            permute(seed, roots.len(), |one, other| {
                (roots[one].index, roots[other].index) = (roots[other].index, roots[one].index);
            });
        }
        let lines = limits.lines.max(1).min(self.roots.len());
        for buffer in [&mut self.lines, &mut self.drafts] {
            buffer.resize_with(lines, || Line { score: Score::EVEN, moves: Vec::with_capacity(MAX_PLY) });
        }
    }

    /// Puts equally good moves into the order that decides ties; they stay as they are where that is theirs.
    pub(super) fn order_ties(&self, moves: &mut [Move]) {
        if let Some(seed) = self.ties {
            permute(seed, moves.len(), |one, other| moves.swap(one, other));
        }
    }

    /// Puts the best move of an unfinished depth before the lines of the last finished one. The move's own earlier line, or
    /// the last line where it had none, makes room for it, so that no move has two lines and the former best keeps its own.
    pub(super) fn promote_draft(&mut self) {
        let Self { lines, drafts, .. } = self;
        let [best, ..] = drafts.as_slice() else { return };
        let own = lines.iter().position(|line| line.moves.first() == best.moves.first());
        let place = own.unwrap_or(lines.len().saturating_sub(1));
        lines[..=place].rotate_right(1);
        lines[0].clone_from(best);
    }

    /// True if searching deeper can't change anything: the end of the game is within the depth that was searched.
    pub(super) fn is_settled(&self, depth: u32) -> bool {
        let ends_within =
            |score: Score| score.win_in().or(score.lost_in()).is_some_and(|plies| plies <= depth);
        match self.lines.as_slice() {
            [] => true,
            [line] => ends_within(line.score),
            _ => false,
        }
    }
}

/// Exchanges places from the last to the first, each with one before it or itself.
fn permute(seed: u64, count: usize, mut swap: impl FnMut(usize, usize)) {
    let mut stream = Stream::new(seed);
    for last in (1..count).rev() {
        swap(last, stream.below(last + 1));
    }
}

impl<E: Evaluator, T: Memory> Tree<'_, E, T> {
    /// Finds the best lines at this depth, and brings their moves to the front for the next.
    pub(super) fn best_lines(&mut self, position: &Position, depth: u32) {
        for line in 0..self.search.drafts.len() {
            let Some(best) = self.best_root(position, depth, line, Window::WHOLE) else { return };
            self.search.roots[line..=best].rotate_right(1);
        }
    }

    /// The place of the best of the moves from `line` on; nothing if the budget ran out, or none is above the window.
    pub(super) fn best_root(
        &mut self,
        position: &Position,
        depth: u32,
        line: usize,
        window: Window,
    ) -> Option<usize> {
        let mut best: Option<(usize, Root, Score)> = None;
        for place in line..self.search.roots.len() {
            let root = self.search.roots[place];
            // A move that comes earlier among the legal ones wins a tie.
            let floor =
                best.map_or(
                    window.alpha,
                    |(_, other, score)| {
                        if root.index < other.index { score.below() } else { score }
                    },
                );
            let own = Window { alpha: floor, ..window };
            let score = self.root_score(&position.play(&root.mv), own, depth, best.is_none());
            if self.stopped {
                self.unfinished = line == 0 && best.is_some();
                return None;
            }
            if score > floor {
                best = Some((place, root, score));
                self.keep_line(line, root.mv, score);
                if score >= window.beta {
                    break;
                }
            }
        }
        best.map(|(place, ..)| place)
    }

    /// A root move's score if it is inside the window, else a bound on its side.
    fn root_score(&mut self, child: &Position, window: Window, depth: u32, first: bool) -> Score {
        if !first {
            let score = -self.score(child, Window::above(window.alpha).turned(), depth - 1, 1);
            if score <= window.alpha {
                return score;
            }
        }
        -self.score(child, window.turned(), depth - 1, 1)
    }

    fn keep_line(&mut self, line: usize, mv: Move, score: Score) {
        let Core { drafts, variations, .. } = &mut *self.search;
        drafts[line].score = score;
        drafts[line].moves.clear();
        drafts[line].moves.push(mv);
        drafts[line].moves.extend_from_slice(variations.line(1));
    }
}
