//! Mazes grown from genes: one gene a cell says in which order its neighbours are tried.

use crate::grid::{Cell, Direction, Grid};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How passages are laid out, before any loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maze {
    /// A walk that turns back only where it is stuck: long winding corridors.
    #[default]
    DepthFirst,
    /// Cells joined to the tree in the order of their genes: many short dead ends.
    Prim,
}

/// The 24 orders of the four directions.
const ORDERS: [[Direction; 4]; 24] = orders();

/// For each order and each set of directions, the first of the set in that order (0 for the empty set).
const FIRST: [[u8; 16]; 24] = first();

const fn orders() -> [[Direction; 4]; 24] {
    let mut orders = [[Direction::North; 4]; 24];
    let mut index = 0;
    while index < 24 {
        let mut left = Direction::ALL;
        let mut rest = index;
        let mut place = 0;
        while place < 4 {
            let choice = place + rest % (4 - place);
            rest /= 4 - place;
            orders[index][place] = left[choice];
            left[choice] = left[place];
            place += 1;
        }
        index += 1;
    }
    orders
}

const fn first() -> [[u8; 16]; 24] {
    let mut first = [[0; 16]; 24];
    let mut index = 0;
    while index < 24 {
        let mut set = 1;
        while set < 16 {
            let mut place = 0;
            while set >> ORDERS[index][place] as u8 & 1 == 0 {
                place += 1;
            }
            first[index][set] = ORDERS[index][place] as u8;
            set += 1;
        }
        index += 1;
    }
    first
}

/// The direction that a gene prefers among a non-empty set of them.
fn preferred(gene: u8, set: u8) -> Direction {
    Direction::ALL[usize::from(FIRST[usize::from(gene % 24)][usize::from(set)])]
}

/// Buffers for growing mazes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carver {
    stack: Vec<Cell>,
    /// Cells not yet part of the maze, a word a row, with an empty row at either end and an empty column before.
    free: Vec<u128>,
}

impl Carver {
    /// Lays out a spanning tree over a grid, one gene a cell.
    pub(crate) fn carve(&mut self, grid: &mut Grid, maze: Maze, genes: &[u8]) {
        grid.clear();
        self.free.clear();
        self.free.resize(usize::from(grid.height()) + 2, 0);
        let row = ((1_u128 << grid.width()) - 1) << 1;
        self.free[1..=usize::from(grid.height())].fill(row);
        match maze {
            Maze::DepthFirst => self.depth_first(grid, genes),
            Maze::Prim => self.prim(grid, genes),
        }
    }

    fn depth_first(&mut self, grid: &mut Grid, genes: &[u8]) {
        let width = usize::from(grid.width());
        self.stack.clear();
        self.join(Cell::new(0, 0));
        self.stack.push(Cell::new(0, 0));
        while let Some(&cell) = self.stack.last() {
            let free = self.free_around(cell);
            if free == 0 {
                self.stack.pop();
                continue;
            }
            let gene = genes[usize::from(cell.y()) * width + usize::from(cell.x())];
            let direction = preferred(gene, free);
            grid.open(cell, direction);
            self.join(cell.step(direction));
            self.stack.push(cell.step(direction));
        }
    }

    fn prim(&mut self, grid: &mut Grid, genes: &[u8]) {
        let width = usize::from(grid.width());
        let gene = |cell: Cell| genes[usize::from(cell.y()) * width + usize::from(cell.x())];
        let mut border = BinaryHeap::from([Reverse((0, Cell::new(0, 0)))]);
        while let Some(Reverse((_, cell))) = border.pop() {
            if !self.is_free(cell) {
                continue;
            }
            self.join(cell);
            let around = |way: &Direction| grid.neighbour(cell, *way).is_some();
            let inside = Direction::ALL.iter().filter(|way| around(way)).fold(0, |set, way| set | way.bit());
            let free = self.free_around(cell);
            let joined = inside & !free;
            if joined != 0 {
                grid.open(cell, preferred(gene(cell), joined));
            }
            for direction in Direction::ALL.into_iter().filter(|way| free & way.bit() != 0) {
                let neighbour = cell.step(direction);
                border.push(Reverse((gene(neighbour), neighbour)));
            }
        }
    }

    fn join(&mut self, cell: Cell) {
        self.free[usize::from(cell.y()) + 1] &= !(2 << cell.x());
    }

    fn is_free(&self, cell: Cell) -> bool {
        self.free[usize::from(cell.y()) + 1] >> (cell.x() + 1) & 1 == 1
    }

    /// The directions in which cells are not yet part of the maze.
    fn free_around(&self, cell: Cell) -> u8 {
        let (x, y) = (cell.x(), usize::from(cell.y()));
        let bit = |row: usize, shift: u8| (self.free[row] >> shift) as u8 & 1;
        bit(y, x + 1) | bit(y + 1, x) << 1 | bit(y + 1, x + 2) << 2 | bit(y + 2, x + 1) << 3
    }
}
