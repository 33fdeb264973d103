//! The recursive part: principal variation search below the root.

use super::budget::Budget;
use super::core::Core;
use super::selective;
use super::table::{Bound, Entry, Hint, Memory};
use crate::evaluator::Evaluator;
use crate::moves::Move;
use crate::position::Position;
use crate::score::Score;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Leaves of one node that are evaluated together once the first has not cut off.
const LEAVES_TOGETHER: usize = 4;

/// The scores that matter: at most `alpha` is too bad for the side to move, at least `beta` too good for the
/// other to allow it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) alpha: Score,
    pub(super) beta: Score,
}

impl Window {
    /// Asks only whether a score is above `alpha`.
    pub(super) fn above(alpha: Score) -> Self {
        Self { alpha, beta: alpha.above() }
    }

    /// Every score matters.
    pub(super) const WHOLE: Self = Self { alpha: Score(-i32::MAX), beta: Score::INFINITE };

    /// Asks only yes or no, so that there is no line of best play to find.
    pub(super) fn is_null(self) -> bool {
        self.alpha.above() == self.beta
    }

    /// The same window as the other side sees it.
    pub(super) fn turned(self) -> Self {
        Self { alpha: -self.beta, beta: -self.alpha }
    }
}

/// Where a node stands in the tree.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Moves still to be searched, captures at the leaves aside.
    pub(super) depth: u32,
    /// Moves played since the root.
    pub(super) ply: usize,
}

/// The best that a node has found so far.
struct Best {
    score: Score,
    hint: Hint,
    window: Window,
}

/// One search under way.
pub(super) struct Tree<'a, E, T> {
    pub(super) search: &'a mut Core<T>,
    pub(super) evaluator: &'a mut E,
    pub(super) budget: Budget,
    /// Set by others when the search has to end.
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) nodes: u64,
    pub(super) evaluations: u64,
    /// The budget is spent: scores no longer mean anything.
    pub(super) stopped: bool,
    /// The search was stopped when some moves of its last depth were done: the best of them stands in the drafts.
    pub(super) unfinished: bool,
}

impl<'a, E: Evaluator, T: Memory> Tree<'a, E, T> {
    /// A search that may use whatever it needs until it is given a budget.
    pub(super) fn new(search: &'a mut Core<T>, evaluator: &'a mut E, stop: Option<&'a AtomicBool>) -> Self {
        let budget = Budget::UNLIMITED;
        Self { search, evaluator, budget, stop, nodes: 1, evaluations: 0, stopped: false, unfinished: false }
    }

    /// The score of a position `ply` moves below the root: exact if inside the window, else a bound on its side.
    pub(super) fn score(&mut self, position: &Position, window: Window, depth: u32, ply: usize) -> Score {
        self.visit();
        if self.stopped {
            return Score::EVEN;
        }
        self.search.variations.clear(ply);
        if self.search.past.contains(position) || T::SELECTIVE && self.search.recurs(position) {
            return self.search.draw(ply);
        }
        if depth == 0 && !(self.search.style.quiescence && position.must_capture()) {
            return self.leaf(position, ply);
        }
        let place = Place { depth, ply };
        let entry = if depth > 0 { self.search.table.look_up(position) } else { None };
        if let Some(score) = entry.and_then(|entry| self.known(entry, window, place)) {
            return score;
        }
        if T::SELECTIVE
            && let Some(score) = self.evaluator.settled(position)
        {
            self.evaluations += 1;
            return score;
        }
        self.expand(position, window, place, entry.map_or(Hint::NONE, |entry| entry.hint))
    }

    fn visit(&mut self) {
        if self.budget.is_spent(self.nodes, self.stop) {
            self.stopped = true;
        } else {
            self.nodes += 1;
        }
    }

    /// A position that is not searched any further.
    fn leaf(&mut self, position: &Position, ply: usize) -> Score {
        if position.is_lost() {
            return Score::loss_in(ply);
        }
        self.evaluations += 1;
        self.evaluator.evaluate(position)
    }

    /// What the table says, if that settles it. Lines of best play are searched in full.
    fn known(&self, entry: Entry, window: Window, place: Place) -> Option<Score> {
        let counts = self.search.table.counts(entry, place.depth);
        let score = entry.score.farther(place.ply);
        let settled = match entry.bound {
            Bound::Exact => true,
            Bound::AtLeast => score >= window.beta,
            Bound::AtMost => score <= window.alpha,
        };
        (counts && settled && window.is_null()).then_some(score)
    }

    /// Searches every move until one is too good.
    fn expand(&mut self, position: &Position, window: Window, place: Place, hint: Hint) -> Score {
        let start = self.search.moves.len();
        self.generate(position, place.ply, hint);
        if self.search.moves.len() == start {
            return Score::loss_in(place.ply);
        }
        let mut best = Best { score: -Score::INFINITE, hint: Hint::NONE, window };
        if T::SELECTIVE {
            self.search.path.push(*position);
        }
        if place.depth <= 1 {
            self.frontier(position, start, place, &mut best);
        } else {
            self.interior(position, start, place, &mut best);
        }
        if T::SELECTIVE {
            self.search.path.pop();
        }
        self.search.moves.truncate(start);
        self.remember(position, window, place, &best);
        best.score
    }

    /// Puts the legal moves on top of the stack of moves.
    fn generate(&mut self, position: &Position, ply: usize, hint: Hint) {
        let Core { moves, ordering, .. } = &mut *self.search;
        let side = position.side_to_move();
        position.for_each_move(|mv| moves.push((ordering.key(&mv, side, ply, hint), mv)));
    }

    /// Brings the move to be tried next to `index`: the highest key, the first of equals.
    fn pick(&mut self, index: usize) -> Move {
        let rest = &mut self.search.moves[index..];
        let mut highest = 0;
        for (i, (key, _)) in rest.iter().enumerate().skip(1) {
            if *key > rest[highest].0 {
                highest = i;
            }
        }
        rest.swap(0, highest);
        rest[0].1
    }

    fn interior(&mut self, position: &Position, start: usize, place: Place, best: &mut Best) {
        for index in start..self.search.moves.len() {
            let mv = self.pick(index);
            let reduction = if T::SELECTIVE { selective::reduction(place, index - start, &mv) } else { 0 };
            let score = self.child(&position.play(&mv), place, best, index == start, reduction);
            if self.stopped || self.offer(best, score, &mv, position, place) {
                return;
            }
        }
    }

    /// The score of a child to this node: later children only have to prove that they are no better.
    fn child(&mut self, child: &Position, place: Place, best: &Best, first: bool, reduction: u32) -> Score {
        let (depth, ply, window) = (place.depth.saturating_sub(1), place.ply + 1, best.window);
        if T::SELECTIVE && reduction > 0 {
            let score = -self.score(child, Window::above(window.alpha).turned(), depth - reduction, ply);
            if score <= window.alpha {
                return score;
            }
        }
        if !first {
            let score = -self.score(child, Window::above(window.alpha).turned(), depth, ply);
            if score <= window.alpha || score >= window.beta {
                return score;
            }
        }
        -self.score(child, window.turned(), depth, ply)
    }

    /// The moves before the leaves: those that leave no capture pending are evaluated several together, but the
    /// first alone, because it often cuts off.
    fn frontier(&mut self, position: &Position, start: usize, place: Place, best: &mut Best) {
        let end = self.search.moves.len();
        let mut index = start;
        let mut together = 1;
        while index < end {
            let next = end.min(index + together);
            if self.few(position, index..next, place, best) {
                return;
            }
            index = next;
            together = LEAVES_TOGETHER;
        }
    }

    /// Some moves of a frontier node; true if one cut off.
    fn few(&mut self, position: &Position, moves: Range<usize>, place: Place, best: &mut Best) -> bool {
        let mut children = [*position; LEAVES_TOGETHER];
        let mut leaves = [*position; LEAVES_TOGETHER];
        let mut scores = [Score::EVEN; LEAVES_TOGETHER];
        let mut count = 0;
        for (child, index) in children.iter_mut().zip(moves.clone()) {
            *child = position.play(&self.pick(index));
            if self.is_leaf(child) {
                leaves[count] = *child;
                count += 1;
            }
        }
        self.evaluator.evaluate_children(position, &leaves[..count], &mut scores[..count]);
        self.evaluations += count as u64;
        let mut evaluated = leaves.iter().zip(scores).take(count).peekable();
        for (child, index) in children.iter().zip(moves) {
            let score = match evaluated.next_if(|(leaf, _)| *leaf == child) {
                Some((_, score)) => -self.visit_leaf(score, place.ply + 1),
                None => self.child(child, place, best, false, 0),
            };
            let mv = self.search.moves[index].1;
            if self.stopped || self.offer(best, score, &mv, position, place) {
                return true;
            }
        }
        false
    }

    /// True if a child of a frontier node is judged by the evaluator: nothing is pending, or pending captures do not
    /// matter, and it is no draw by repetition.
    fn is_leaf(&self, position: &Position) -> bool {
        let quiet = if position.must_capture() { !self.search.style.quiescence } else { position.can_step() };
        let repeated = self.search.past.contains(position) || T::SELECTIVE && self.search.recurs(position);
        quiet && !repeated
    }

    /// Takes a leaf that is already evaluated into the tree.
    fn visit_leaf(&mut self, score: Score, ply: usize) -> Score {
        self.visit();
        self.search.variations.clear(ply);
        score
    }

    /// Takes a move's score into account; true if it is too good for the other side to allow.
    fn offer(&mut self, best: &mut Best, score: Score, mv: &Move, position: &Position, place: Place) -> bool {
        if score <= best.score {
            return false;
        }
        best.score = score;
        if score <= best.window.alpha {
            return false;
        }
        best.hint = Hint::of(mv);
        if score >= best.window.beta {
            self.search.ordering.reward(mv, position.side_to_move(), place.ply, place.depth);
            return true;
        }
        self.search.variations.extend(place.ply, *mv);
        best.window.alpha = score;
        false
    }

    fn remember(&mut self, position: &Position, window: Window, place: Place, best: &Best) {
        if self.stopped || place.depth == 0 {
            return;
        }
        let bound = if best.score >= window.beta {
            Bound::AtLeast
        } else if best.score <= window.alpha {
            Bound::AtMost
        } else {
            Bound::Exact
        };
        let score = best.score.nearer(place.ply);
        self.search.table.store(position, Entry { score, hint: best.hint, depth: place.depth as u8, bound });
    }
}
