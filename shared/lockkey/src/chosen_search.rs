//! A* with a chosen heuristic and tie-break, on ordinary containers.
//!
//! The default choice has a search of its own (`search.rs`), which is some ten times faster and visits the same nodes.

use crate::difficulty::Method;
use crate::grid::{Cell, Direction, Grid, open_neighbours};
use crate::level::{Fixture, Level};
use crate::search::{LegSearch, mark};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How A* chooses the next node: the smallest f = g + h, of equals the smallest h, of those by `ties`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct AStar {
    /// The estimate h of the steps from a cell to the goal.
    pub heuristic: Heuristic,
    /// Which of several nodes with equal f and h is visited first.
    pub ties: Ties,
}

/// The estimate of the steps from a cell to the goal. None of them overestimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Heuristic {
    /// Columns and rows between them: the published one.
    #[default]
    Manhattan,
    /// The straight line.
    Euclidean,
    /// The larger of the columns and rows between them.
    Chebyshev,
    /// 0: A* becomes Dijkstra's search, which knows nothing of the goal.
    None,
}

/// Which of several nodes with equal f and h is visited first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// The lower cell, counted row by row.
    #[default]
    LowCell,
    /// The higher cell.
    HighCell,
    /// The one that was put on the open list first.
    Oldest,
    /// The one that was put on the open list last.
    Newest,
}

impl AStar {
    /// Whether nothing but the default is chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Heuristic {
    fn estimate(self, cell: Cell, goal: Cell) -> f64 {
        let (dx, dy) = (f64::from(cell.x().abs_diff(goal.x())), f64::from(cell.y().abs_diff(goal.y())));
        match self {
            Self::Manhattan => dx + dy,
            Self::Euclidean => (dx * dx + dy * dy).sqrt(),
            Self::Chebyshev => dx.max(dy),
            Self::None => 0.0,
        }
    }
}

/// A node on the open list, in the order in which nodes are taken. Bits of numbers that are not negative are ordered as
/// the numbers are.
type Node = (u64, u64, i64, Cell);

/// Farther than any cell.
const FAR: u32 = u32::MAX;

/// What is known of a cell.
#[derive(Clone, Copy, Default)]
struct Notes {
    /// Open directions, with closed locks walled off.
    passages: u8,
    marks: u8,
    /// Steps from the start of this leg, and the direction by which it is entered.
    steps: u32,
    by: Option<Direction>,
    /// Its node on the open list.
    node: Option<Node>,
}

impl Notes {
    fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
}

/// The lists of a search, kept from leg to leg.
#[derive(Clone, Default)]
pub(crate) struct ChosenSearch {
    options: AStar,
    notes: Vec<Notes>,
    open: BTreeSet<Node>,
    visited: Vec<Cell>,
    /// Nodes ever put on the open list.
    opened: i64,
}

impl ChosenSearch {
    pub(crate) fn new(options: AStar) -> Self {
        Self { options, ..Self::default() }
    }

    fn set_lock(&mut self, grid: &Grid, cell: Cell, open: bool) {
        for direction in Direction::ALL.into_iter().filter(|&way| grid.is_open(cell, way)) {
            let entrance = &mut self.notes[cell.step(direction).index()].passages;
            let bit = direction.opposite().bit();
            *entrance = if open { *entrance | bit } else { *entrance & !bit };
        }
    }

    /// Puts a cell on the open list, or moves it to the front if this way is shorter.
    fn open(&mut self, cell: Cell, steps: u32, by: Option<Direction>, goal: Cell) {
        let h = self.options.heuristic.estimate(cell, goal);
        let tie = match self.options.ties {
            Ties::LowCell => cell.index() as i64,
            Ties::HighCell => -(cell.index() as i64),
            Ties::Oldest => self.opened,
            Ties::Newest => -self.opened,
        };
        let notes = &mut self.notes[cell.index()];
        if notes.has(mark::VISITED | mark::DEAD) || notes.node.is_some() && notes.steps <= steps {
            return;
        }
        let node = ((f64::from(steps) + h).to_bits(), h.to_bits(), tie, cell);
        if let Some(worse) = notes.node.replace(node) {
            self.open.remove(&worse);
        }
        (notes.steps, notes.by) = (steps, by);
        notes.marks |= mark::KNOWN;
        self.open.insert(node);
        self.opened += 1;
    }

    /// Steps from `start` to every known live cell through such cells; those that cannot be reached so are left out.
    fn remember(&mut self, start: Cell, goal: Cell) {
        let mut queue = vec![(start, 0, None)];
        let mut found = vec![false; self.notes.len()];
        found[start.index()] = true;
        let mut next = 0;
        while let Some(&(cell, steps, _)) = queue.get(next) {
            next += 1;
            for way in self.ways(cell) {
                let notes = &self.notes[cell.step(way).index()];
                let is_live = notes.has(mark::KNOWN) && !notes.has(mark::DEAD);
                if is_live && !std::mem::replace(&mut found[cell.step(way).index()], true) {
                    queue.push((cell.step(way), steps + 1, Some(way)));
                }
            }
        }
        for (cell, steps, by) in queue {
            self.open(cell, steps, by, goal);
        }
    }

    fn ways(&self, cell: Cell) -> impl Iterator<Item = Direction> + use<> {
        let open = self.notes[cell.index()].passages;
        Direction::ALL.into_iter().filter(move |way| open & way.bit() != 0)
    }

    /// Closes a dead end for good, and its corridor back to the last junction.
    fn close_dead_ends(&mut self, grid: &Grid, mut cell: Cell, start: Cell, goal: Cell) {
        loop {
            let notes = self.notes[cell.index()];
            // With a passage less than the grid has, it lies next to a closed lock.
            let beside_lock = notes.passages != grid.passages[cell.index()];
            let kept = notes.has(mark::AWAITED) || !notes.has(mark::ENTERED) || beside_lock;
            if kept || cell == start || cell == goal {
                return;
            }
            let is_alive = |neighbour: &Cell| !self.notes[neighbour.index()].has(mark::DEAD);
            let mut alive = open_neighbours(cell, notes.passages).filter(is_alive);
            let (only, more) = (alive.next(), alive.next());
            if more.is_some() {
                return;
            }
            self.notes[cell.index()].marks |= mark::DEAD;
            if let Some(node) = self.notes[cell.index()].node.take() {
                self.open.remove(&node);
            }
            match only {
                Some(neighbour) => cell = neighbour,
                None => return,
            }
        }
    }
}

impl LegSearch for ChosenSearch {
    fn begin(&mut self, level: &Level, method: Method) {
        self.notes.clear();
        let notes = |&passages: &u8| Notes { passages, steps: FAR, ..Notes::default() };
        self.notes.extend(level.grid.passages.iter().map(notes));
        self.opened = 0;
        for lock in &level.locks {
            self.set_lock(&level.grid, lock.cell, false);
        }
        if method == Method::Optimised {
            let fixtures = level.locks.iter().chain(&level.keys).map(|fixture| fixture.cell);
            for cell in fixtures.chain([level.exit]) {
                self.notes[cell.index()].marks |= mark::AWAITED;
            }
        }
    }

    fn reached(&mut self, cell: Cell) {
        self.notes[cell.index()].marks &= !mark::AWAITED;
    }

    fn open_lock(&mut self, grid: &Grid, lock: Fixture) {
        self.set_lock(grid, lock.cell, true);
        self.reached(lock.cell);
    }

    fn leg(&mut self, grid: &Grid, start: Cell, goal: Cell, method: Method) -> Option<u32> {
        let is_optimised = method == Method::Optimised;
        self.visited.clear();
        self.open.clear();
        for notes in &mut self.notes {
            notes.marks &= !mark::VISITED;
            (notes.steps, notes.by, notes.node) = (FAR, None, None);
        }
        if is_optimised {
            self.remember(start, goal);
        } else {
            self.open(start, 0, None, goal);
        }
        while let Some((.., cell)) = self.open.pop_first() {
            let notes = &mut self.notes[cell.index()];
            notes.node = None;
            notes.marks |= mark::VISITED | mark::ENTERED;
            let steps = notes.steps;
            self.visited.push(cell);
            if cell == goal {
                return Some(steps);
            }
            for way in self.ways(cell) {
                self.open(cell.step(way), steps + 1, Some(way), goal);
            }
            if is_optimised {
                self.close_dead_ends(grid, cell, start, goal);
            }
        }
        None
    }

    fn visited(&self) -> &[Cell] {
        &self.visited
    }

    fn path(&self, start: Cell, goal: Cell) -> Vec<Cell> {
        let mut path = vec![goal];
        let mut cell = goal;
        while cell != start {
            let Some(way) = self.notes[cell.index()].by else { break };
            cell = cell.step(way.opposite());
            path.push(cell);
        }
        path.reverse();
        path
    }
}
