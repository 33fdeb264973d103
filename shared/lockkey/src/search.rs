//! A* over one leg of a level, and the lists that the difficulty counts.
//!
//! Every step costs 1 and the estimate is the Manhattan distance, so a step towards the goal keeps f = g + h and any
//! other raises it by 2. Hence the open list needs no heap. All nodes of one f are taken before any of the next; among
//! them the smallest h comes first, and what it opens at the same f is nearer still, which makes a stack of
//! them. What it opens at the next f waits, and is sorted once, when its turn comes.

use crate::difficulty::Method;
use crate::grid::{Cell, Direction, Grid, ROW, open_neighbours};
use crate::level::{Fixture, Level};
use std::cmp::Reverse;

/// What is known of a cell, one bit each.
mod mark {
    /// Taken from the open list in this leg.
    pub(super) const VISITED: u8 = 1;
    /// Ever put on the open list.
    pub(super) const KNOWN: u8 = 2;
    /// Ever taken from the open list.
    pub(super) const ENTERED: u8 = 4;
    /// A dead end, closed for good.
    pub(super) const DEAD: u8 = 8;
    /// A key, lock or exit still to come: never a dead end.
    pub(super) const AWAITED: u8 = 16;
}

/// A node on the open list: its h, its cell and the direction by which it was reached, in this order of importance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Node(u32);

impl Node {
    fn new(h: u32, cell: Cell, by: Direction) -> Self {
        Self(h << 16 | u32::from(cell.0) << 2 | by as u32)
    }

    fn h(self) -> u32 {
        self.0 >> 16
    }

    fn cell(self) -> Cell {
        Cell((self.0 >> 2 & 0xFFF) as u16)
    }

    fn by(self) -> u8 {
        (self.0 & 3) as u8
    }
}

/// The lists of a search, kept from leg to leg and from level to level.
#[derive(Clone, Default)]
pub(crate) struct Search {
    /// Open directions of every cell, with closed locks walled off.
    passages: Vec<u8>,
    marks: Vec<u8>,
    /// The direction by which each visited cell was entered.
    entered_by: Vec<u8>,
    /// Nodes of the present f, the next to be taken last.
    stack: Vec<Node>,
    /// Nodes of the next f.
    later: Vec<Node>,
    /// Nodes known from earlier legs, with their f, the next to be taken last.
    remembered: Vec<(u32, Node)>,
    /// The cells visited in this leg, in order.
    pub(crate) visited: Vec<Cell>,
    known: Vec<Cell>,
    distances: Vec<u16>,
}

impl Search {
    /// Begins a level: all its locks are closed, nothing is known.
    pub(crate) fn begin(&mut self, level: &Level, method: Method) {
        self.passages.clear();
        self.passages.extend_from_slice(&level.grid.passages);
        let size = self.passages.len();
        self.marks.clear();
        self.marks.resize(size, 0);
        self.entered_by.resize(size.max(self.entered_by.len()), 0);
        self.known.clear();
        for lock in &level.locks {
            self.set_lock(&level.grid, lock.cell, false);
        }
        if method == Method::Optimised {
            self.await_all(level);
        }
    }

    /// Marks what dead ends must not swallow.
    fn await_all(&mut self, level: &Level) {
        let fixtures = level.locks.iter().chain(&level.keys).map(|fixture| fixture.cell);
        for cell in fixtures.chain([level.exit]) {
            self.marks[cell.index()] |= mark::AWAITED;
        }
    }

    pub(crate) fn reached(&mut self, cell: Cell) {
        self.marks[cell.index()] &= !mark::AWAITED;
    }

    pub(crate) fn open_lock(&mut self, grid: &Grid, lock: &Fixture) {
        self.set_lock(grid, lock.cell, true);
        self.reached(lock.cell);
    }

    fn set_lock(&mut self, grid: &Grid, cell: Cell, open: bool) {
        for direction in Direction::ALL.into_iter().filter(|&way| grid.is_open(cell, way)) {
            let entrance = &mut self.passages[cell.step(direction).index()];
            let bit = direction.opposite().bit();
            *entrance = if open { *entrance | bit } else { *entrance & !bit };
        }
    }

    /// Looks for the goal; the length of the path, if there is one.
    pub(crate) fn leg(&mut self, grid: &Grid, start: Cell, goal: Cell, method: Method) -> Option<u32> {
        self.forget_last_leg(method);
        let shortest = start.distance(goal);
        if method == Method::Optimised && !self.known.is_empty() {
            self.remember(start, goal);
        } else {
            self.stack.push(Node::new(shortest, start, Direction::North));
            self.learn(start);
        }
        for f in (shortest..).step_by(2) {
            self.take_turn(f);
            if self.stack.is_empty() && self.remembered.is_empty() {
                return None;
            }
            if self.search_at_same_f(grid, start, goal, method) {
                return Some(f);
            }
        }
        None
    }

    fn forget_last_leg(&mut self, method: Method) {
        match method {
            Method::Plain => self.marks.fill(0),
            Method::Optimised => self.marks.iter_mut().for_each(|mark| *mark &= !mark::VISITED),
        }
        self.visited.clear();
        self.stack.clear();
        self.later.clear();
        self.remembered.clear();
    }

    /// Puts all that is known and alive on the open list, with g and h for this leg.
    fn remember(&mut self, start: Cell, goal: Cell) {
        self.measure(start);
        for &cell in &self.known {
            let alive = self.marks[cell.index()] & mark::DEAD == 0;
            if alive {
                let h = cell.distance(goal);
                let f = u32::from(self.distances[cell.index()]) + h;
                let by = Direction::ALL[usize::from(self.entered_by[cell.index()])];
                self.remembered.push((f, Node::new(h, cell, by)));
            }
        }
        self.remembered.sort_unstable_by_key(|&entry| Reverse(entry));
    }

    /// Steps from `start` to every known live cell through known live cells, and how each is entered.
    fn measure(&mut self, start: Cell) {
        const FAR: u16 = u16::MAX;
        self.distances.clear();
        self.distances.resize(self.passages.len(), FAR);
        self.distances[start.index()] = 0;
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(&cell) = queue.get(next) {
            next += 1;
            for direction in Direction::ALL {
                let neighbour = cell.step(direction);
                if self.passages[cell.index()] & direction.bit() != 0
                    && self.marks[neighbour.index()] & (mark::KNOWN | mark::DEAD) == mark::KNOWN
                    && self.distances[neighbour.index()] == FAR
                {
                    self.distances[neighbour.index()] = self.distances[cell.index()] + 1;
                    self.entered_by[neighbour.index()] = direction as u8;
                    queue.push(neighbour);
                }
            }
        }
    }

    /// Brings up the nodes whose turn has come with this f.
    fn take_turn(&mut self, f: u32) {
        self.stack.append(&mut self.later);
        while self.remembered.last().is_some_and(|entry| entry.0 <= f) {
            self.stack.extend(self.remembered.pop().map(|entry| entry.1));
        }
        self.stack.sort_unstable_by_key(|&node| Reverse(node));
    }

    fn search_at_same_f(&mut self, grid: &Grid, start: Cell, goal: Cell, method: Method) -> bool {
        while let Some(node) = self.stack.pop() {
            let cell = node.cell();
            let marks = &mut self.marks[cell.index()];
            if *marks & (mark::VISITED | mark::DEAD) != 0 {
                continue;
            }
            *marks |= mark::VISITED | mark::ENTERED;
            self.entered_by[cell.index()] = node.by();
            self.visited.push(cell);
            if cell == goal {
                return true;
            }
            self.expand(node, goal);
            if method == Method::Optimised {
                self.close_dead_ends(grid, cell, start, goal);
            }
        }
        false
    }

    fn expand(&mut self, node: Node, goal: Cell) {
        let cell = node.cell();
        let open = self.passages[cell.index()];
        let towards = towards(cell, goal);
        // From south to north, so that of two equally near the earlier cell lies on top of the stack.
        for direction in Direction::ALL.into_iter().rev().filter(|way| open & way.bit() != 0) {
            let neighbour = cell.step(direction);
            if self.marks[neighbour.index()] & mark::VISITED != 0 {
                continue;
            }
            self.learn(neighbour);
            if towards & direction.bit() != 0 {
                self.stack.push(Node::new(node.h() - 1, neighbour, direction));
            } else {
                self.later.push(Node::new(node.h() + 1, neighbour, direction));
            }
        }
    }

    fn learn(&mut self, cell: Cell) {
        let marks = &mut self.marks[cell.index()];
        if *marks & mark::KNOWN == 0 {
            *marks |= mark::KNOWN;
            self.known.push(cell);
        }
    }

    /// Closes a dead end for good, and its corridor back to the last junction.
    fn close_dead_ends(&mut self, grid: &Grid, mut cell: Cell, start: Cell, goal: Cell) {
        loop {
            let marks = self.marks[cell.index()];
            // With a passage less than the grid has, it lies next to a closed lock.
            let open = self.passages[cell.index()];
            let kept = marks & mark::AWAITED != 0
                || marks & mark::ENTERED == 0
                || cell == start
                || cell == goal
                || open != grid.passages[cell.index()];
            if kept {
                return;
            }
            let mut alive = open_neighbours(cell, open)
                .filter(|neighbour| self.marks[neighbour.index()] & mark::DEAD == 0);
            let (only, more) = (alive.next(), alive.next());
            if more.is_some() {
                return;
            }
            self.marks[cell.index()] |= mark::DEAD;
            match only {
                Some(neighbour) => cell = neighbour,
                None => return,
            }
        }
    }

    /// The path of the last leg, from its start to its goal.
    pub(crate) fn path(&self, start: Cell, goal: Cell) -> Vec<Cell> {
        let mut path = vec![goal];
        let mut cell = goal;
        while cell != start {
            cell = cell.step(Direction::ALL[usize::from(self.entered_by[cell.index()])].opposite());
            path.push(cell);
        }
        path.reverse();
        path
    }
}

/// The directions that lead nearer to the goal.
fn towards(cell: Cell, goal: Cell) -> u8 {
    let bit = |holds: bool, way: Direction| u8::from(holds) << way as u8;
    bit(cell.y() > goal.y(), Direction::North)
        | bit(cell.x() > goal.x(), Direction::West)
        | bit(cell.x() < goal.x(), Direction::East)
        | bit(cell.y() < goal.y(), Direction::South)
}

const _: () = assert!(ROW == 64, "a cell's number keeps its column in six bits");
