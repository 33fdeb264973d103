//! Which cells can be reached while some locks are closed.

use crate::grid::{Cell, Grid};
use crate::level::Fixture;

/// Buffers for repeated floods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    seen: Vec<bool>,
    /// The cells reached, in the order of their distance.
    pub(crate) cells: Vec<Cell>,
}

impl Reach {
    /// Finds every cell that can be reached from `start` while `closed` locks block theirs.
    pub(crate) fn flood(&mut self, grid: &Grid, start: Cell, closed: &[Fixture]) -> &Self {
        self.seen.clear();
        self.seen.resize(grid.passages.len(), false);
        self.cells.clear();
        self.mark(closed, true);
        self.enter(start);
        let mut next = 0;
        while let Some(&cell) = self.cells.get(next) {
            next += 1;
            for neighbour in grid.neighbours(cell) {
                if !self.seen[neighbour.index()] {
                    self.enter(neighbour);
                }
            }
        }
        // A closed lock was marked only to keep the flood out.
        self.mark(closed, false);
        self
    }

    fn mark(&mut self, locks: &[Fixture], seen: bool) {
        for lock in locks {
            self.seen[lock.cell.index()] = seen;
        }
    }

    fn enter(&mut self, cell: Cell) {
        self.seen[cell.index()] = true;
        self.cells.push(cell);
    }

    pub(crate) fn contains(&self, cell: Cell) -> bool {
        self.seen[cell.index()]
    }
}
