//! The board: cells worth 0 to 9 points or walls, and the cell where the character starts.

use crate::direction::Direction;
use crate::mersenne::MersenneTwister;
use thiserror::Error;

/// A cell by its row-major number, `y * width + x`.
pub type Cell = u16;

/// The most cells a board may have.
pub const MAX_CELLS: usize = 1 << 14;

/// The most points a cell may be worth.
pub const MAX_POINTS: u8 = 9;

/// The most turns a game may last.
pub const MAX_TURNS: usize = 10_000;

const WALL: u8 = u8::MAX;
const NO_CELL: Cell = Cell::MAX;

/// A column and a row, counted from the top left corner, from 0; messages count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Column.
    pub x: usize,
    /// Row.
    pub y: usize,
}

/// A board that can be played: the character has at least one cell to move to, and so never gets stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    width: usize,
    height: usize,
    start: Cell,
    points: Vec<u8>,
    steps: Vec<[Cell; 4]>,
}

/// Why something is not a board that can be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoardError {
    /// A side is 0, or there are more than [`MAX_CELLS`] cells.
    #[error("expected a board of 2 to {MAX_CELLS} cells, found width `{width}` and height `{height}`")]
    Size {
        /// Columns asked for.
        width: usize,
        /// Rows asked for.
        height: usize,
    },
    /// The number of cells does not match width and height.
    #[error("expected {expected} cells, found `{found}`")]
    Cells {
        /// Width times height.
        expected: usize,
        /// Cells given.
        found: usize,
    },
    /// A cell is worth more than [`MAX_POINTS`].
    #[error("expected 0 to {MAX_POINTS} points, found `{points}` in column {} of row {}", place.x + 1, place.y + 1)]
    Points {
        /// Where.
        place: Place,
        /// What was found there.
        points: u8,
    },
    /// The start lies outside the board.
    #[error("expected a start inside the board, found column `{}` of row `{}`", place.x.saturating_add(1), place.y.saturating_add(1))]
    StartOutside {
        /// Where.
        place: Place,
    },
    /// The start is a wall, or worth something although it is taken before the first turn.
    #[error("expected the start to hold 0 points, found {} in column {} of row {}", found, place.x.saturating_add(1), place.y.saturating_add(1))]
    StartTaken {
        /// Where.
        place: Place,
        /// `a wall`, or the points.
        found: String,
    },
    /// The character can't move.
    #[error("expected a cell to move to, found none next to the start in column `{}` of row `{}`", place.x.saturating_add(1), place.y.saturating_add(1))]
    Enclosed {
        /// The start.
        place: Place,
    },
    /// A share of walls above 100 %.
    #[error("expected 0 to 100 percent of walls, found `{percent}`")]
    Walls {
        /// What was asked for.
        percent: u8,
    },
}

/// The number of turns of a game is 0 or above [`MAX_TURNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected 1 to {MAX_TURNS} turns, found `{0}`")]
pub struct TurnsError(pub usize);

/// How many turns a game lasts: 1 to [`MAX_TURNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turns(u16);

impl Turns {
    /// Checks a number of turns.
    ///
    /// # Errors
    /// When it is 0 or above [`MAX_TURNS`].
    pub fn new(turns: usize) -> Result<Self, TurnsError> {
        if (1..=MAX_TURNS).contains(&turns) { Ok(Self(turns as u16)) } else { Err(TurnsError(turns)) }
    }

    /// As a plain number.
    #[inline]
    pub fn count(self) -> usize {
        usize::from(self.0)
    }
}

impl Board {
    /// A board of the given cells, row by row; `None` is a wall.
    ///
    /// # Errors
    /// When the sizes do not fit, a cell is worth more than [`MAX_POINTS`], or the character could not move.
    pub fn new(width: usize, height: usize, start: Place, cells: &[Option<u8>]) -> Result<Self, BoardError> {
        check_size(width, height)?;
        check_cells(width, height, start, cells)?;
        let points = cells.iter().map(|cell| cell.unwrap_or(WALL)).collect();
        let start = (start.y * width + start.x) as Cell;
        let board = Self { width, height, start, points, steps: Vec::new() }.with_steps();
        if board.moves(start).next().is_none() {
            return Err(BoardError::Enclosed { place: board.place(start) });
        }
        Ok(board)
    }

    /// The board of `seed` without walls, as the study draws it: the row of the start, its column, then the
    /// points of every other cell, row by row.
    ///
    /// # Errors
    /// When a side is 0, the board has a single cell, or more than [`MAX_CELLS`].
    pub fn generate(width: usize, height: usize, seed: u32) -> Result<Self, BoardError> {
        Self::generate_walled(width, height, seed, 0)
    }

    /// The board of `seed` with the same start and points as [`Board::generate`], after which every other
    /// cell becomes a wall with the given probability in percent. Should they enclose the start, the first of
    /// its neighbours by number of direction opens.
    ///
    /// # Errors
    /// As [`Board::generate`], and when `wall_percent` is above 100.
    pub fn generate_walled(
        width: usize,
        height: usize,
        seed: u32,
        wall_percent: u8,
    ) -> Result<Self, BoardError> {
        check_size(width, height)?;
        if wall_percent > 100 {
            return Err(BoardError::Walls { percent: wall_percent });
        }
        let mut random = MersenneTwister::new(seed);
        let open = Self::draw_open(width, height, &mut random)?;
        if wall_percent == 0 { Ok(open) } else { open.with_walls(wall_percent, &mut random) }
    }

    fn draw_open(width: usize, height: usize, random: &mut MersenneTwister) -> Result<Self, BoardError> {
        let y = below(height, random);
        let start = Place { x: below(width, random), y };
        let draw = |cell| if cell == y * width + start.x { 0 } else { below(10, random) as u8 };
        let cells: Vec<Option<u8>> = (0..width * height).map(draw).map(Some).collect();
        Self::new(width, height, start, &cells)
    }

    fn with_walls(&self, percent: u8, random: &mut MersenneTwister) -> Result<Self, BoardError> {
        let mut draw = |cell| cell != self.start && below(100, random) < usize::from(percent);
        let walls: Vec<bool> = (0..self.cells() as Cell).map(&mut draw).collect();
        let is_enclosed = self.moves(self.start).all(|(_, cell)| walls[usize::from(cell)]);
        let way_out = self.moves(self.start).map(|(_, cell)| cell).next().filter(|_| is_enclosed);
        let is_wall = |cell: Cell| walls[usize::from(cell)] && way_out != Some(cell);
        let cells: Vec<Option<u8>> =
            (0..self.cells() as Cell).map(|cell| self.points(cell).filter(|_| !is_wall(cell))).collect();
        Self::new(self.width, self.height, self.place(self.start), &cells)
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Cells, walls included.
    pub fn cells(&self) -> usize {
        self.points.len()
    }

    /// Where the character starts.
    pub fn start(&self) -> Cell {
        self.start
    }

    /// Column and row of a cell.
    ///
    /// # Panics
    /// When the board has no such cell; so do all that take a cell.
    pub fn place(&self, cell: Cell) -> Place {
        let cell = usize::from(cell);
        assert!(cell < self.cells(), "cell {cell} lies outside the board");
        Place { x: cell % self.width, y: cell / self.width }
    }

    /// What a cell is worth; `None` for a wall.
    pub fn points(&self, cell: Cell) -> Option<u8> {
        Some(self.points[usize::from(cell)]).filter(|&points| points != WALL)
    }

    /// The cell that a move leads to; `None` when it is a wall or outside the board.
    #[inline]
    pub fn step(&self, cell: Cell, direction: Direction) -> Option<Cell> {
        let next = self.steps[usize::from(cell)][usize::from(direction.gene())];
        (next != NO_CELL).then_some(next)
    }

    /// The moves possible from a cell, by number of direction.
    pub fn moves(&self, cell: Cell) -> impl Iterator<Item = (Direction, Cell)> + '_ {
        Direction::ALL.into_iter().filter_map(move |way| self.step(cell, way).map(|next| (way, next)))
    }

    fn with_steps(mut self) -> Self {
        self.steps = (0..self.cells())
            .map(|cell| {
                Direction::ALL.map(|way| self.neighbour(cell, way).map_or(NO_CELL, |next| next as Cell))
            })
            .collect();
        self
    }

    fn neighbour(&self, cell: usize, direction: Direction) -> Option<usize> {
        let (x, y) = (cell % self.width, cell / self.width);
        let next = match direction {
            Direction::Up if y > 0 => cell - self.width,
            Direction::Down if y + 1 < self.height => cell + self.width,
            Direction::Left if x > 0 => cell - 1,
            Direction::Right if x + 1 < self.width => cell + 1,
            _ => return None,
        };
        (self.points[cell] != WALL && self.points[next] != WALL).then_some(next)
    }
}

/// As the study draws: the remainder, whose slight preference for low values is part of its boards.
fn below(limit: usize, random: &mut MersenneTwister) -> usize {
    random.next_u32() as usize % limit
}

fn check_size(width: usize, height: usize) -> Result<(), BoardError> {
    let cells = width.saturating_mul(height);
    if (2..=MAX_CELLS).contains(&cells) { Ok(()) } else { Err(BoardError::Size { width, height }) }
}

fn check_cells(width: usize, height: usize, start: Place, cells: &[Option<u8>]) -> Result<(), BoardError> {
    if cells.len() != width * height {
        return Err(BoardError::Cells { expected: width * height, found: cells.len() });
    }
    if start.x >= width || start.y >= height {
        return Err(BoardError::StartOutside { place: start });
    }
    if let Some(cell) = cells.iter().position(|cell| cell.is_some_and(|points| points > MAX_POINTS)) {
        let place = Place { x: cell % width, y: cell / width };
        return Err(BoardError::Points { place, points: cells[cell].unwrap_or(WALL) });
    }
    match cells[start.y * width + start.x] {
        Some(0) => Ok(()),
        Some(points) => Err(BoardError::StartTaken { place: start, found: format!("`{points}`") }),
        None => Err(BoardError::StartTaken { place: start, found: "a wall".to_owned() }),
    }
}
