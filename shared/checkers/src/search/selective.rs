//! What only the playing search does: it reduces late moves, and looks at a window around the last score first.
//!
//! Extending captures without a choice and believing shallow searches far outside the window were tried, and made searches
//! of the same depth larger (`docs/evidence/checkers-search.md`).

use super::budget::Budget;
use super::table::Memory;
use super::tree::{Place, Tree, Window};
use super::{Limits, MAX_DEPTH};
use crate::evaluator::Evaluator;
use crate::moves::Move;
use crate::position::Position;
use crate::score::Score;

/// Moves that are tried in full before later ones are reduced.
const FULL_MOVES: usize = 2;
/// Late moves are reduced from this depth on.
const REDUCED_FROM: u32 = 3;

/// Plies by which a late move is searched less deep at first.
#[inline]
pub(super) fn reduction(place: Place, order: usize, mv: &Move) -> u32 {
    if place.depth < REDUCED_FROM || order < FULL_MOVES || mv.is_capture() {
        return 0;
    }
    1 + u32::from(order >= 5 && place.depth >= 6)
}

impl<E: Evaluator, T: Memory> Tree<'_, E, T> {
    /// Searches deeper and deeper within the limits, and reports every completed depth; returns the last of them.
    pub(super) fn deepen_selectively(
        &mut self,
        position: &Position,
        limits: &Limits,
        first: u32,
        budget: Budget,
        report: &mut dyn FnMut(u32, u64, &[super::Line]),
    ) -> u32 {
        let deepest = limits.depth.clamp(1, MAX_DEPTH);
        let mut searched = 0;
        for depth in first.min(deepest)..=deepest {
            if self.search.drafts.len() > 1 {
                self.best_lines(position, depth);
            } else {
                self.aspire(position, depth, searched > 0);
            }
            if self.stopped {
                if self.unfinished {
                    self.search.promote_draft();
                }
                break;
            }
            searched = depth;
            std::mem::swap(&mut self.search.lines, &mut self.search.drafts);
            report(depth, self.nodes, &self.search.lines);
            let without_choice =
                self.search.roots.len() == 1 && (limits.time.is_some() || limits.nodes.is_some());
            if self.search.is_settled(depth) || without_choice {
                break;
            }
            self.budget = budget;
            if budget.is_nearly_spent(self.nodes) {
                break;
            }
        }
        searched
    }

    /// Searches around the last score first; further out as long as the score is not inside.
    fn aspire(&mut self, position: &Position, depth: u32, known: bool) {
        let unit = self.search.man.max(1 << 14) / 4;
        let last = self.search.lines.first().map_or(Score::EVEN, |line| line.score);
        let proved = last.win_in().is_some() || last.lost_in().is_some();
        let mut width = unit;
        let mut window = if known && !proved && depth > 4 {
            Window { alpha: Score(last.0 - width), beta: Score(last.0 + width) }
        } else {
            Window::WHOLE
        };
        let mut raised = false;
        loop {
            let best = self.best_root(position, depth, 0, window);
            if self.stopped {
                self.unfinished |= raised;
                return;
            }
            let score = self.search.drafts.first().map_or(Score::EVEN, |line| line.score);
            width = width.saturating_mul(4);
            match best {
                None => window.alpha = wider(window.alpha, -width),
                Some(place) if score >= window.beta && window.beta < Score::INFINITE => {
                    raised = true;
                    self.search.roots[..=place].rotate_right(1);
                    window.beta = wider(window.beta, width);
                }
                Some(place) => {
                    self.search.roots[..=place].rotate_right(1);
                    return;
                }
            }
        }
    }
}

/// A bound moved outwards; everything once it leaves what opinions there are.
fn wider(bound: Score, by: i32) -> Score {
    let limit = Score::ONE as i32;
    match bound.0.saturating_add(by) {
        far if far > limit => Score::INFINITE,
        far if far < -limit => -Score::INFINITE,
        near => Score(near),
    }
}
