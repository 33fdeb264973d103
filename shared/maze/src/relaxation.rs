//! An upper bound on what can still be collected: walks that remember only their last few moves, and prices
//! on contested cells.
//!
//! A relaxed walk takes the points of a cell again once it has forgotten that it was there. To make that
//! dear, the points of a cell are split in two: a price, paid at every visit that the walk takes for its
//! first, and the rest, granted once whether the cell is visited or not. Every split gives a bound;
//! [`Relaxation::tighten`] looks for the one that gives the lowest, by subgradient steps (a Lagrangian
//! relaxation of "every cell pays once").

use crate::board::{Board, Cell, MAX_POINTS, Turns};
use crate::direction::Direction;
use thiserror::Error;

/// The last moves of a walk: the newest in the highest digit, a direction to a digit.
///
/// A step leads to the other colour of the chequered board, so what it may come back to was left an odd
/// number of moves ago: an even number of digits would remember no more than one fewer.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    digits: usize,
    /// For direction x memories + memory: all ones if that step leads to a cell not remembered, else 0.
    fresh: Vec<i16>,
}

impl Memory {
    pub(crate) fn new(digits: usize) -> Self {
        let memories = 1 << (2 * digits);
        let fresh = (0..4 * memories)
            .map(|index| {
                let (way, memory) = (Direction::from_gene((index / memories) as u8), index % memories);
                if remembers(digits, memory, way) { 0 } else { -1 }
            })
            .collect();
        Self { digits, fresh }
    }

    /// Moves remembered.
    pub(crate) fn digits(&self) -> usize {
        self.digits
    }

    fn count(&self) -> usize {
        1 << (2 * self.digits)
    }

    #[inline]
    pub(crate) fn after(&self, memory: usize, way: Direction) -> usize {
        memory >> 2 | usize::from(way.gene()) << (2 * (self.digits - 1))
    }

    /// For each memory, whether a step leads to a cell not remembered.
    fn fresh(&self, way: Direction) -> &[i16] {
        &self.fresh[usize::from(way.gene()) * self.count()..][..self.count()]
    }
}

/// Whether a step leads back to a cell that the remembered moves have left.
fn remembers(digits: usize, memory: usize, way: Direction) -> bool {
    let offset = |way: Direction| match way {
        Direction::Up => (0, -1),
        Direction::Down => (0, 1),
        Direction::Left => (-1, 0),
        Direction::Right => (1, 0),
    };
    let mut place = (0, 0);
    (0..digits).rev().any(|digit| {
        let (x, y) = offset(Direction::from_gene((memory >> (2 * digit)) as u8));
        place = (place.0 - x, place.1 - y);
        place == offset(way)
    })
}

/// Cells in the order of their distance from the start.
#[derive(Clone, Debug)]
struct Reach {
    cells: Vec<Cell>,
    distances: Vec<usize>,
    ranks: Vec<u32>,
}

impl Reach {
    fn new(board: &Board) -> Self {
        let mut ranks = vec![u32::MAX; board.cells()];
        ranks[usize::from(board.start())] = 0;
        let (mut cells, mut distances) = (vec![board.start()], vec![0]);
        let mut rank = 0;
        while let Some(&cell) = cells.get(rank) {
            for (_, next) in board.moves(cell) {
                if ranks[usize::from(next)] == u32::MAX {
                    ranks[usize::from(next)] = cells.len() as u32;
                    distances.push(distances[rank] + 1);
                    cells.push(next);
                }
            }
            rank += 1;
        }
        Self { cells, distances, ranks }
    }

    /// How many cells can be reached in this number of moves.
    fn within(&self, moves: usize) -> usize {
        self.distances.partition_point(|&distance| distance <= moves)
    }
}

/// The longest game for which bounds are known: its sums fit their number format, with a few units to a
/// point.
pub const MAX_BOUND_TURNS: usize = 1000;

/// Why no bound can be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BoundError {
    /// The game is too long.
    #[error("expected at most {MAX_BOUND_TURNS} turns for a bound, found `{turns}`")]
    Turns {
        /// Turns asked for.
        turns: usize,
    },
    /// The bounds would not fit in memory.
    #[error("expected bounds that fit in {allowed} bytes, found a board and turns that need `{needed}`")]
    Memory {
        /// Bytes they would take.
        needed: usize,
        /// Bytes they may take.
        allowed: usize,
    },
}

/// Best sums of relaxed walks, by moves left, cell and memory.
#[derive(Clone, Debug)]
pub(crate) struct Relaxation {
    board: Board,
    turns: usize,
    scale: u32,
    memory: Memory,
    reach: Reach,
    /// Price of each cell, in units of a point / scale.
    prices: Vec<i16>,
    /// For each number of moves left: rank of the cell x memories + memory.
    layers: Vec<Vec<i16>>,
}

impl Relaxation {
    /// Bytes that a relaxation takes.
    pub(crate) fn memory_needed(board: &Board, turns: usize, digits: usize) -> usize {
        let reach = Reach::new(board);
        let cells: usize = (0..=turns).map(|played| reach.within(played)).sum();
        cells.saturating_mul(size_of::<i16>() << (2 * digits))
    }

    /// Whether a relaxation can be computed within this number of bytes.
    pub(crate) fn check(
        board: &Board,
        turns: Turns,
        digits: usize,
        max_memory: usize,
    ) -> Result<(), BoundError> {
        let turns = turns.count();
        if turns > MAX_BOUND_TURNS {
            return Err(BoundError::Turns { turns });
        }
        let needed = Self::memory_needed(board, turns, digits);
        if needed > max_memory { Err(BoundError::Memory { needed, allowed: max_memory }) } else { Ok(()) }
    }

    /// With the whole points as prices, and memories of `digits` moves, at least 2.
    pub(crate) fn new(
        board: &Board,
        turns: Turns,
        digits: usize,
        max_memory: usize,
    ) -> Result<Self, BoundError> {
        Self::check(board, turns, digits, max_memory)?;
        let mut relaxation = Self::with_full_prices(board.clone(), turns.count(), Memory::new(digits));
        relaxation.compute();
        Ok(relaxation)
    }

    fn with_full_prices(board: Board, turns: usize, memory: Memory) -> Self {
        let scale = i16::MAX as u32 / (u32::from(MAX_POINTS) * turns as u32);
        let reach = Reach::new(&board);
        let layers = (0..=turns).map(|left| vec![0; reach.within(turns - left) * memory.count()]).collect();
        let points = |cell| i16::from(board.points(cell).unwrap_or(0));
        let prices = (0..board.cells() as Cell).map(|cell| points(cell) * scale as i16).collect();
        Self { board, turns, scale, memory, reach, prices, layers }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn turns(&self) -> usize {
        self.turns
    }

    /// Units to a point.
    pub(crate) fn scale(&self) -> u32 {
        self.scale
    }

    /// The part of a cell's points that is granted without a visit, in units.
    pub(crate) fn granted(&self, cell: Cell) -> u32 {
        self.most(cell) - self.price(cell)
    }

    /// What a first visit to a cell pays, in units.
    #[inline]
    pub(crate) fn price(&self, cell: Cell) -> u32 {
        self.prices[usize::from(cell)] as u32
    }

    fn most(&self, cell: Cell) -> u32 {
        u32::from(self.board.points(cell).unwrap_or(0)) * self.scale
    }

    /// The highest sum of prices from here on, in units.
    #[inline]
    pub(crate) fn best(&self, left: usize, cell: Cell, memory: usize) -> u32 {
        let rank = self.reach.ranks[usize::from(cell)] as usize;
        self.layers[left][rank * self.memory.count() + memory] as u32
    }

    fn compute(&mut self) {
        for left in 1..=self.turns {
            let mut layer = std::mem::take(&mut self.layers[left]);
            let played = self.turns - left;
            for (rank, sums) in layer.chunks_exact_mut(self.memory.count()).enumerate() {
                // The other cells have the wrong colour for this turn.
                if (played - self.reach.distances[rank]).is_multiple_of(2) {
                    self.compute_cell(left, self.reach.cells[rank], sums);
                }
            }
            self.layers[left] = layer;
        }
    }

    fn compute_cell(&self, left: usize, cell: Cell, sums: &mut [i16]) {
        sums.fill(0);
        let memories = self.memory.count();
        for (way, next) in self.board.moves(cell) {
            let row = self.reach.ranks[usize::from(next)] as usize * memories;
            let after = &self.layers[left - 1][row + self.memory.after(0, way)..][..memories / 4];
            raise(sums, after, self.memory.fresh(way), self.prices[usize::from(next)]);
        }
    }

    /// The bound at the start, in units, and how often its walk is paid by each cell.
    fn best_walk(&self) -> (u32, Vec<i32>) {
        let mut cell = self.board.start();
        let at_start = |memory: &usize| self.best(self.turns, self.board.start(), *memory);
        let mut memory = (0..self.memory.count()).max_by_key(at_start).unwrap_or(0);
        let granted: u32 = (0..self.board.cells() as Cell).map(|cell| self.granted(cell)).sum();
        let bound = at_start(&memory) + granted;
        let mut visits = vec![0; self.board.cells()];
        for left in (1..=self.turns).rev() {
            let (way, next, paid) = self.best_step(left, cell, memory);
            visits[usize::from(next)] += i32::from(paid);
            (cell, memory) = (next, self.memory.after(memory, way));
        }
        (bound, visits)
    }

    fn best_step(&self, left: usize, cell: Cell, memory: usize) -> (Direction, Cell, bool) {
        let sum = self.best(left, cell, memory);
        self.board
            .moves(cell)
            .map(|(way, next)| (way, next, self.memory.fresh(way)[memory] != 0))
            .find(|&(way, next, paid)| {
                let price = if paid { self.price(next) } else { 0 };
                price + self.best(left - 1, next, self.memory.after(memory, way)) == sum
            })
            .expect("a sum is reached by one of the moves")
    }

    /// Lowers the price of what the best walk visits more than once and raises that of what it leaves, for a
    /// number of rounds or until the bound falls to `target` points; keeps the best prices seen, and gives
    /// their bound in units.
    pub(crate) fn tighten(&mut self, rounds: usize, target: u32) -> u32 {
        const PATIENCE: usize = 10;
        let (mut bound, mut visits) = self.best_walk();
        let (mut lowest, mut cheapest) = (bound, self.prices.clone());
        let (mut eagerness, mut failures) = (1.0, 0);
        for _ in 0..rounds {
            let gap = bound.saturating_sub(target * self.scale);
            if gap < self.scale || !self.reprice(eagerness * f64::from(gap), &visits) {
                break;
            }
            self.compute();
            (bound, visits) = self.best_walk();
            failures += 1;
            if bound < lowest {
                (lowest, failures) = (bound, 0);
                cheapest.clone_from(&self.prices);
            } else if failures == PATIENCE {
                (eagerness, failures) = (eagerness / 2.0, 0);
            }
        }
        self.prices = cheapest;
        self.compute();
        lowest
    }

    /// One step against the gradient, as long as would lower the bound by `fall` units if it were straight;
    /// false when it is level.
    fn reprice(&mut self, fall: f64, visits: &[i32]) -> bool {
        let pulls: Vec<i32> = (0..visits.len()).map(|cell| self.pull(cell as Cell, visits[cell])).collect();
        let norm: i32 = pulls.iter().map(|pull| pull * pull).sum();
        for (cell, &pull) in pulls.iter().enumerate().filter(|(_, pull)| **pull != 0) {
            let price = f64::from(self.prices[cell]) - fall / f64::from(norm) * f64::from(pull);
            self.prices[cell] = price.round().clamp(0.0, f64::from(self.most(cell as Cell))) as i16;
        }
        norm > 0
    }

    /// By how much the bound would rise with the price of a cell; a price can't rise beyond the whole points.
    fn pull(&self, cell: Cell, visits: i32) -> i32 {
        if visits == 0 && self.granted(cell) == 0 { 0 } else { visits - 1 }
    }
}

/// Raises the sums of a cell to what one move offers, for all memories at once; four by four they differ in
/// their oldest move alone.
fn raise(sums: &mut [i16], after: &[i16], fresh: &[i16], price: i16) {
    for ((sums, after), fresh) in
        sums.chunks_exact_mut(16).zip(after.chunks_exact(4)).zip(fresh.chunks_exact(16))
    {
        let after: [i16; 16] = std::array::from_fn(|i| after[i / 4]);
        for i in 0..16 {
            sums[i] = sums[i].max(after[i] + (fresh[i] & price));
        }
    }
}
