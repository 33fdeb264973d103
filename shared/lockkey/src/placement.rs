//! Where entry, exit, locks and keys go, so that a level can be solved by construction.

use crate::blueprint::Blueprint;
use crate::grid::{Cell, Direction, Grid};
use crate::level::{Fixture, Level};
use crate::reach::Reach;

/// Choices read from genes, two a choice. On a further attempt the same genes choose differently.
pub(crate) struct Choices<'a> {
    genes: &'a [u8],
    shift: u16,
}

impl<'a> Choices<'a> {
    pub(crate) fn new(genes: &'a [u8], attempt: u16) -> Self {
        // An odd multiplier near the golden ratio spreads the attempts over all choices.
        Self { genes, shift: attempt.wrapping_mul(40_503) }
    }

    /// One of `count` possibilities, from 0.
    pub(crate) fn choose(&mut self, count: usize) -> usize {
        let (pair, rest) = self.genes.split_at(2);
        self.genes = rest;
        let value = u16::from_le_bytes([pair[0], pair[1]]).wrapping_add(self.shift);
        (usize::from(value) * count) >> 16
    }
}

/// Buffers for placing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placer {
    reach: Reach,
    gates: Gates,
    candidates: Vec<Cell>,
}

impl Placer {
    /// Places everything by these choices; false when they leave a lock or a key no place.
    ///
    /// From the last pair back to the first: the lock somewhere on the way from the entry to its target, which is the exit
    /// for the last lock and the next key for the others; the key where one can get while its own and later locks are
    /// closed.
    pub(crate) fn place(
        &mut self,
        level: &mut Level,
        blueprint: Blueprint,
        choices: &mut Choices<'_>,
    ) -> bool {
        let size = level.grid.size();
        let width = usize::from(level.grid.width());
        let cell = |index: usize| Cell::new((index % width) as u8, (index / width) as u8);
        let entry = choices.choose(size);
        let exit = choices.choose(size - 1);
        level.entry = cell(entry);
        level.exit = cell(exit + usize::from(exit >= entry));
        level.locks.clear();
        level.keys.clear();
        self.gates.find(&level.grid, level.entry, blueprint.loops > 0);
        let mut target = level.exit;
        for colour in blueprint.colours_from_last() {
            let Some(lock) = self.lock_before(level, target, choices) else { return false };
            level.locks.push(Fixture { colour, cell: lock });
            let Some(key) = self.key_in_reach(level, choices) else { return false };
            level.keys.push(Fixture { colour, cell: key });
            target = key;
        }
        level.locks.sort_unstable();
        level.keys.sort_unstable();
        true
    }

    fn lock_before(&mut self, level: &Level, target: Cell, choices: &mut Choices<'_>) -> Option<Cell> {
        self.candidates.clear();
        let mut cell = self.gates.before(target);
        while cell != level.entry {
            if is_bare(level, cell) {
                self.candidates.push(cell);
            }
            cell = self.gates.before(cell);
        }
        let choice = choices.choose(self.candidates.len());
        self.candidates.get(choice).copied()
    }

    fn key_in_reach(&mut self, level: &Level, choices: &mut Choices<'_>) -> Option<Cell> {
        self.reach.flood(&level.grid, level.entry, &level.locks);
        self.candidates.clear();
        self.candidates.extend(self.reach.cells.iter().filter(|&&cell| is_bare(level, cell)));
        let choice = choices.choose(self.candidates.len());
        self.candidates.get(choice).copied()
    }

    /// Places everything along the way between two corners of a tree, which is always long enough.
    pub(crate) fn place_in_line(&mut self, level: &mut Level, blueprint: Blueprint) {
        let (width, height) = (level.grid.width(), level.grid.height());
        level.entry = Cell::new(0, 0);
        level.exit = Cell::new(width - 1, height - 1);
        level.locks.clear();
        level.keys.clear();
        self.gates.find(&level.grid, level.entry, false);
        let mut cell = level.exit;
        for colour in blueprint.colours_from_last() {
            cell = self.gates.before(cell);
            level.locks.push(Fixture { colour, cell });
            cell = self.gates.before(cell);
            level.keys.push(Fixture { colour, cell });
        }
        level.locks.sort_unstable();
        level.keys.sort_unstable();
    }
}

fn is_bare(level: &Level, cell: Cell) -> bool {
    let fixtures = || level.locks.iter().chain(&level.keys);
    cell != level.entry && cell != level.exit && fixtures().all(|fixture| fixture.cell != cell)
}

/// For each cell the last one that every way from the entry to it must pass.
///
/// In a tree that is the cell before it; where there are loops, the cut vertex that leads into its block.
#[derive(Clone, Debug, Default)]
struct Gates {
    /// When each cell was first met, from 1; 0 if not yet.
    met: Vec<u16>,
    /// The earliest cell that can be met from each cell or below it without the passage to its parent.
    lowest: Vec<u16>,
    gate: Vec<Cell>,
    /// The cells and their parents, in the order in which they were met.
    order: Vec<(Cell, Cell)>,
    /// The cells on the way to the present one, with their parents and the directions not yet tried.
    way: Vec<(Cell, Cell, u8)>,
}

impl Gates {
    fn find(&mut self, grid: &Grid, entry: Cell, has_loops: bool) {
        self.gate.resize(grid.passages.len(), entry);
        self.gate[entry.index()] = entry;
        if has_loops {
            self.find_among_loops(grid, entry);
        } else {
            self.find_in_tree(grid, entry);
        }
    }

    fn find_in_tree(&mut self, grid: &Grid, entry: Cell) {
        self.order.clear();
        self.order.push((entry, entry));
        let mut next = 0;
        while let Some(&(cell, parent)) = self.order.get(next) {
            next += 1;
            self.gate[cell.index()] = parent;
            let onward = grid.neighbours(cell).filter(|&neighbour| neighbour != parent);
            self.order.extend(onward.map(|neighbour| (neighbour, cell)));
        }
    }

    fn find_among_loops(&mut self, grid: &Grid, entry: Cell) {
        let size = grid.passages.len();
        self.met.clear();
        self.met.resize(size, 0);
        self.lowest.resize(size, 0);
        self.search(grid, entry);
        for &(cell, parent) in &self.order[1..] {
            let is_cut = self.lowest[cell.index()] >= self.met[parent.index()];
            self.gate[cell.index()] = if is_cut { parent } else { self.gate[parent.index()] };
        }
    }

    /// Meets every cell depth first, so that each passage outside the tree leads to an ancestor.
    fn search(&mut self, grid: &Grid, entry: Cell) {
        self.order.clear();
        self.meet(grid, entry, entry);
        while let Some((cell, parent, left)) = self.way.last_mut() {
            let (cell, parent) = (*cell, *parent);
            if *left == 0 {
                self.way.pop();
                self.lower(parent, self.lowest[cell.index()]);
                continue;
            }
            let direction = Direction::ALL[left.trailing_zeros() as usize & 3];
            *left &= *left - 1;
            let next = cell.step(direction);
            match self.met[next.index()] {
                0 => self.meet(grid, next, cell),
                met if next != parent => self.lower(cell, met),
                _ => {}
            }
        }
    }

    fn meet(&mut self, grid: &Grid, cell: Cell, parent: Cell) {
        self.order.push((cell, parent));
        self.met[cell.index()] = self.order.len() as u16;
        self.lowest[cell.index()] = self.order.len() as u16;
        self.way.push((cell, parent, grid.passages[cell.index()]));
    }

    fn lower(&mut self, cell: Cell, met: u16) {
        let lowest = &mut self.lowest[cell.index()];
        *lowest = met.min(*lowest);
    }

    fn before(&self, cell: Cell) -> Cell {
        self.gate[cell.index()]
    }
}
