//! Which moves to try first. Nothing here changes a score, only how soon it is found.

use super::table::Hint;
use crate::moves::Move;
use crate::position::Side;

/// What earlier cut-offs tell about moves.
pub(super) struct Ordering {
    /// How often a move of each side cut off, weighted by depth.
    history: Box<[[u32; 1024]; 2]>,
    /// The last two steps that cut off at each ply.
    killers: Vec<[Hint; 2]>,
}

impl Ordering {
    const FIRST: u32 = u32::MAX;
    const CAPTURE: u32 = 1 << 30;
    const KILLER: u32 = 1 << 29;
    /// Below every killer, whatever is added.
    const HISTORY_LIMIT: u32 = 1 << 28;

    pub(super) fn new(plies: usize) -> Self {
        Self { history: Box::new([[0; 1024]; 2]), killers: vec![[Hint::NONE; 2]; plies] }
    }

    pub(super) fn clear(&mut self) {
        *self.history = [[0; 1024]; 2];
        self.killers.fill([Hint::NONE; 2]);
    }

    /// How early to try a move: the table's own first, then captures by size, killers, and by history.
    #[inline]
    pub(super) fn key(&self, mv: &Move, side: Side, ply: usize, hint: Hint) -> u32 {
        let this = Hint::of(mv);
        if this == hint {
            Self::FIRST
        } else if mv.is_capture() {
            Self::CAPTURE + mv.captured().count()
        } else if self.killers[ply].contains(&this) {
            Self::KILLER
        } else {
            self.history[side as usize][this.index()]
        }
    }

    /// Remembers a move that cut off.
    #[inline]
    pub(super) fn reward(&mut self, mv: &Move, side: Side, ply: usize, depth: u32) {
        if mv.is_capture() {
            return;
        }
        let this = Hint::of(mv);
        let [first, second] = &mut self.killers[ply];
        if *first != this {
            *second = std::mem::replace(first, this);
        }
        let merit = &mut self.history[side as usize][this.index()];
        *merit = (*merit + depth * depth).min(Self::HISTORY_LIMIT);
    }
}
