//! Mazes grown from genes: one gene a cell says in which order its neighbours are tried.

use crate::grid::{Cell, Direction, Grid, ROW};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How passages are laid out, before any loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The directions in which a cell has neighbours.
fn inside(grid: &Grid, cell: Cell) -> u8 {
    let ways = Direction::ALL.into_iter().filter(|&way| grid.neighbour(cell, way).is_some());
    ways.fold(0, |set, way| set | way.bit())
}

/// Buffers for growing mazes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carver {
    stack: Vec<Cell>,
    /// For each cell, in which directions its neighbours are not yet part of the maze. An unused row at either end
    /// takes what is noted beyond the edge.
    free: Vec<u8>,
}

impl Carver {
    /// Lays out a spanning tree over a grid, one gene a cell.
    pub(crate) fn carve(&mut self, grid: &mut Grid, maze: Maze, genes: &[u8]) {
        grid.clear();
        self.free_all(grid);
        match maze {
            Maze::DepthFirst => self.depth_first(grid, genes),
            Maze::Prim => self.prim(grid, genes),
        }
    }

    fn free_all(&mut self, grid: &Grid) {
        self.free.clear();
        self.free.resize(ROW * (usize::from(grid.height()) + 2), 0);
        for y in 0..usize::from(grid.height()) {
            let (above, below) = (y > 0, y + 1 < usize::from(grid.height()));
            let row = ROW * (y + 1);
            let inner = u8::from(above) | 0b0110 | u8::from(below) << 3;
            self.free[row..row + usize::from(grid.width())].fill(inner);
            self.free[row] &= !Direction::West.bit();
            self.free[row + usize::from(grid.width()) - 1] &= !Direction::East.bit();
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
            grid.join(cell, direction);
            self.join(cell.step(direction));
            self.stack.push(cell.step(direction));
        }
    }

    fn prim(&mut self, grid: &mut Grid, genes: &[u8]) {
        let width = usize::from(grid.width());
        let gene = |cell: Cell| genes[usize::from(cell.y()) * width + usize::from(cell.x())];
        let mut border = BinaryHeap::from([Reverse((0, Cell::new(0, 0)))]);
        while let Some(Reverse((_, cell))) = border.pop() {
            if grid.passages[cell.index()] != 0 {
                continue;
            }
            self.join(cell);
            let free = self.free_around(cell);
            let joined = inside(grid, cell) & !free;
            if joined != 0 {
                grid.join(cell, preferred(gene(cell), joined));
            }
            for direction in Direction::ALL.into_iter().filter(|way| free & way.bit() != 0) {
                let neighbour = cell.step(direction);
                border.push(Reverse((gene(neighbour), neighbour)));
            }
        }
    }

    fn join(&mut self, cell: Cell) {
        let place = ROW + cell.index();
        // Beyond an edge these fall on a cell of another row that has no such neighbour anyway.
        self.free[place - ROW] &= !Direction::South.bit();
        self.free[place - 1] &= !Direction::East.bit();
        self.free[place + 1] &= !Direction::West.bit();
        self.free[place + ROW] &= !Direction::North.bit();
    }

    /// The directions in which cells are not yet part of the maze.
    fn free_around(&self, cell: Cell) -> u8 {
        self.free[ROW + cell.index()]
    }
}
