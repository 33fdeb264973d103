//! The rooms of a level and the passages between them.

use serde::Serialize;
use std::fmt;

/// A cell of a grid. Cells are ordered row by row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "(u8, u8)")]
pub struct Cell(pub(crate) u16);

/// A way out of a cell; in the order of the cells it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the row above.
    North,
    /// To the column before.
    West,
    /// To the column after.
    East,
    /// To the row below.
    South,
}

/// A rectangle of cells, some of which are joined by passages.
// A row takes 64 entries whatever the width, so that a neighbour is always the same distance away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    width: u8,
    height: u8,
    /// For each cell the directions that are open, one bit each.
    pub(crate) passages: Vec<u8>,
}

/// Entries of a row.
pub(crate) const ROW: usize = 64;

impl Cell {
    /// The cell in column `x`, row `y`.
    ///
    /// # Panics
    /// When either is not below [`Grid::LONGEST`].
    pub fn new(x: u8, y: u8) -> Self {
        assert!(x < Grid::LONGEST && y < Grid::LONGEST, "no grid has a cell ({x}, {y})");
        Self(u16::from(y) << 6 | u16::from(x))
    }

    /// Its column.
    pub fn x(self) -> u8 {
        (self.0 & 63) as u8
    }

    /// Its row.
    pub fn y(self) -> u8 {
        (self.0 >> 6) as u8
    }

    /// Steps to another cell if there were no walls.
    pub fn distance(self, other: Self) -> u32 {
        u32::from(self.x().abs_diff(other.x())) + u32::from(self.y().abs_diff(other.y()))
    }

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    /// The neighbour in a direction in which there is one.
    pub(crate) fn step(self, direction: Direction) -> Self {
        Self(self.0.wrapping_add_signed(direction.offset()))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cell {
    /// Column and row, counted from 1, as messages name cells.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.x() + 1, self.y() + 1)
    }
}

impl From<Cell> for (u8, u8) {
    fn from(cell: Cell) -> Self {
        (cell.x(), cell.y())
    }
}

impl Direction {
    /// All four, in the order of the cells they lead to.
    pub const ALL: [Self; 4] = [Self::North, Self::West, Self::East, Self::South];

    pub(crate) const fn offset(self) -> i16 {
        [-64, -1, 1, 64][self as usize]
    }

    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The way back.
    #[must_use]
    pub fn opposite(self) -> Self {
        Self::ALL[3 - self as usize]
    }
}

impl Grid {
    /// Sides are shorter than this or as long.
    pub const LONGEST: u8 = 64;

    /// A grid without passages.
    ///
    /// # Panics
    /// When a side is 0 or longer than [`Grid::LONGEST`].
    pub fn new(width: u8, height: u8) -> Self {
        let possible = 1..=Self::LONGEST;
        assert!(possible.contains(&width) && possible.contains(&height), "no grid is {width}x{height}");
        Self { width, height, passages: vec![0; ROW * usize::from(height)] }
    }

    /// Columns.
    pub fn width(&self) -> u8 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u8 {
        self.height
    }

    /// Number of cells.
    pub fn size(&self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Whether a cell lies in this grid.
    pub fn contains(&self, cell: Cell) -> bool {
        cell.x() < self.width && cell.y() < self.height
    }

    /// Every cell, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + use<> {
        let width = self.width;
        (0..self.height).flat_map(move |y| (0..width).map(move |x| Cell::new(x, y)))
    }

    /// The neighbour of a cell, passage or not.
    pub fn neighbour(&self, cell: Cell, direction: Direction) -> Option<Cell> {
        let edge = match direction {
            Direction::North => cell.y() == 0,
            Direction::West => cell.x() == 0,
            Direction::East => cell.x() + 1 == self.width,
            Direction::South => cell.y() + 1 == self.height,
        };
        (!edge).then(|| cell.step(direction))
    }

    /// Whether one can go from a cell of this grid in a direction.
    pub fn is_open(&self, cell: Cell, direction: Direction) -> bool {
        self.passages[cell.index()] & direction.bit() != 0
    }

    /// Makes a passage; at the edge there is nowhere to go, and nothing happens.
    pub fn open(&mut self, cell: Cell, direction: Direction) {
        if self.neighbour(cell, direction).is_some() {
            self.join(cell, direction);
        }
    }

    /// Makes a passage to a neighbour that is known to be there.
    pub(crate) fn join(&mut self, cell: Cell, direction: Direction) {
        self.passages[cell.index()] |= direction.bit();
        self.passages[cell.step(direction).index()] |= direction.opposite().bit();
    }

    /// The cells to which passages lead, in order.
    pub fn neighbours(&self, cell: Cell) -> impl Iterator<Item = Cell> + use<> {
        open_neighbours(cell, self.passages[cell.index()])
    }

    /// Number of passages.
    pub fn passage_count(&self) -> usize {
        self.passages.iter().map(|open| open.count_ones() as usize).sum::<usize>() / 2
    }

    pub(crate) fn clear(&mut self) {
        self.passages.fill(0);
    }
}

pub(crate) fn open_neighbours(cell: Cell, mut open: u8) -> impl Iterator<Item = Cell> {
    std::iter::from_fn(move || {
        let direction = Direction::ALL.get(open.trailing_zeros() as usize)?;
        open &= open - 1;
        Some(cell.step(*direction))
    })
}
