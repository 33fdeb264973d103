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
use std::ops::{Index, IndexMut};

/// What is known of a cell, one bit each.
pub(crate) mod mark {
    /// Taken from the open list in this leg.
    pub(crate) const VISITED: u8 = 1;
    /// Ever put on the open list.
    pub(crate) const KNOWN: u8 = 2;
    /// Ever taken from the open list.
    pub(crate) const ENTERED: u8 = 4;
    /// A dead end, closed for good.
    pub(crate) const DEAD: u8 = 8;
    /// A key, lock or exit still to come: never a dead end.
    pub(crate) const AWAITED: u8 = 16;
}

/// A node on the open list: its h, its cell and how it was reached, in this order of importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node(u32);

/// How a start was reached.
const NOT_AT_ALL: u8 = 4;

/// For each way of having reached a cell, the set of directions that lead on.
const ONWARD: [u8; 8] = [0b0111, 0b1011, 0b1101, 0b1110, 0b1111, 0b1111, 0b1111, 0b1111];

impl Node {
    fn new(h: u32, cell: Cell, by: u8) -> Self {
        Self(h << 16 | u32::from(cell.0) << 3 | u32::from(by))
    }

    /// Its neighbour in a direction, nearer to the goal by one or farther.
    fn step(self, direction: u32, nearer: bool) -> Self {
        let offset = i32::from([-64_i16, -1, 1, 64][direction as usize & 3]) << 3;
        let h = if nearer { -1 << 16 } else { 1 << 16 };
        Self((self.0 & !7).wrapping_add_signed(offset + h) | direction)
    }

    fn cell(self) -> Cell {
        Cell((self.0 >> 3 & 0xFFF) as u16)
    }

    fn by(self) -> u8 {
        (self.0 & 7) as u8
    }
}

/// Cells there can be.
const CELLS: usize = 64 * ROW;

/// What is noted of every cell. A cell's number is always within, so nothing need be checked.
#[derive(Clone)]
struct Notes(Box<[u8; CELLS]>);

impl Default for Notes {
    fn default() -> Self {
        Self(Box::new([0; CELLS]))
    }
}

impl Index<Cell> for Notes {
    type Output = u8;

    fn index(&self, cell: Cell) -> &u8 {
        &self.0[cell.index() % CELLS]
    }
}

impl IndexMut<Cell> for Notes {
    fn index_mut(&mut self, cell: Cell) -> &mut u8 {
        &mut self.0[cell.index() % CELLS]
    }
}

/// A stack onto which nodes can be pushed or not without a branch.
#[derive(Clone)]
struct Stack {
    nodes: Box<[Node; 4 * CELLS]>,
    len: usize,
}

impl Default for Stack {
    fn default() -> Self {
        let nodes = vec![Node(0); 4 * CELLS].into_boxed_slice();
        Self { nodes: nodes.try_into().expect("as many as asked for"), len: 0 }
    }
}

impl Stack {
    // A cell is entered from each neighbour once at most, so there is room.
    fn push_if(&mut self, wanted: bool, node: Node) {
        self.nodes[self.len % (4 * CELLS)] = node;
        self.len += usize::from(wanted);
    }

    fn pop(&mut self) -> Option<Node> {
        self.len = self.len.checked_sub(1)?;
        Some(self.nodes[self.len % (4 * CELLS)])
    }

    fn all_mut(&mut self) -> &mut [Node] {
        &mut self.nodes[..self.len]
    }
}

/// A search that goes through a level leg by leg.
pub(crate) trait LegSearch {
    /// Begins a level: all its locks are closed, nothing is known.
    fn begin(&mut self, level: &Level, method: Method);
    /// Notes that a goal is no longer to come.
    fn reached(&mut self, cell: Cell);
    /// Opens a lock.
    fn open_lock(&mut self, grid: &Grid, lock: Fixture);
    /// Looks for the goal; the length of the path, if there is one.
    fn leg(&mut self, grid: &Grid, start: Cell, goal: Cell, method: Method) -> Option<u32>;
    /// The cells visited in this leg, in order.
    fn visited(&self) -> &[Cell];
    /// The path of the last leg, from its start to its goal.
    fn path(&self, start: Cell, goal: Cell) -> Vec<Cell>;
}

/// The lists of a search, kept from leg to leg and from level to level.
#[derive(Clone, Default)]
pub(crate) struct Search {
    /// Entries of the grid in use.
    size: usize,
    /// Open directions of every cell, with closed locks walled off.
    passages: Notes,
    marks: Notes,
    /// The direction by which each visited cell was entered.
    entered_by: Notes,
    /// Nodes of the present f, the next to be taken last.
    stack: Stack,
    /// Nodes of the next f.
    later: Stack,
    /// Nodes known from earlier legs, with their f, the next to be taken last.
    remembered: Vec<(u32, Node)>,
    /// The cells visited in this leg, in order.
    visited: Vec<Cell>,
    known: Vec<Cell>,
    distances: Vec<u16>,
    queue: Vec<Cell>,
}

impl Search {
    /// Marks what dead ends must not swallow.
    fn await_all(&mut self, level: &Level) {
        let fixtures = level.locks.iter().chain(&level.keys).map(|fixture| fixture.cell);
        for cell in fixtures.chain([level.exit]) {
            self.marks[cell] |= mark::AWAITED;
        }
    }

    fn set_lock(&mut self, grid: &Grid, cell: Cell, open: bool) {
        for direction in Direction::ALL.into_iter().filter(|&way| grid.is_open(cell, way)) {
            let entrance = &mut self.passages[cell.step(direction)];
            let bit = direction.opposite().bit();
            *entrance = if open { *entrance | bit } else { *entrance & !bit };
        }
    }

    fn leg_by<const OPTIMISED: bool>(&mut self, grid: &Grid, start: Cell, goal: Cell) -> Option<u32> {
        self.forget_last_leg::<OPTIMISED>();
        let shortest = start.distance(goal);
        if OPTIMISED && !self.known.is_empty() {
            self.remember(start, goal);
        } else {
            self.later.push_if(true, Node::new(shortest, start, NOT_AT_ALL));
            self.learn(start);
        }
        for f in (shortest..).step_by(2) {
            self.take_turn(f);
            if self.stack.len == 0 && self.remembered.is_empty() {
                return None;
            }
            if self.search_at_same_f::<OPTIMISED>(grid, start, goal) {
                return Some(f);
            }
        }
        None
    }

    fn forget_last_leg<const OPTIMISED: bool>(&mut self) {
        let forgotten = if OPTIMISED { mark::VISITED } else { u8::MAX };
        self.marks.0[..self.size].iter_mut().for_each(|mark| *mark &= !forgotten);
        self.visited.clear();
        self.stack.len = 0;
        self.later.len = 0;
        self.remembered.clear();
    }

    /// Puts all that is known and alive on the open list, with g and h for this leg.
    fn remember(&mut self, start: Cell, goal: Cell) {
        self.measure(start);
        for &cell in &self.known {
            let is_alive = self.marks[cell] & mark::DEAD == 0;
            if is_alive {
                let h = cell.distance(goal);
                let f = u32::from(self.distances[cell.index()]) + h;
                self.remembered.push((f, Node::new(h, cell, self.entered_by[cell])));
            }
        }
        self.remembered.sort_unstable_by_key(|&entry| Reverse(entry));
    }

    /// Steps from `start` to every known live cell through known live cells, and how each is entered.
    fn measure(&mut self, start: Cell) {
        const FAR: u16 = u16::MAX;
        self.distances.clear();
        self.distances.resize(self.size, FAR);
        self.distances[start.index()] = 0;
        self.entered_by[start] = NOT_AT_ALL;
        self.queue.clear();
        self.queue.push(start);
        let mut next = 0;
        while let Some(&cell) = self.queue.get(next) {
            next += 1;
            for direction in Direction::ALL.into_iter().filter(|way| self.passages[cell] & way.bit() != 0) {
                let neighbour = cell.step(direction);
                let is_live = self.marks[neighbour] & (mark::KNOWN | mark::DEAD) == mark::KNOWN;
                if is_live && self.distances[neighbour.index()] == FAR {
                    self.distances[neighbour.index()] = self.distances[cell.index()] + 1;
                    self.entered_by[neighbour] = direction as u8;
                    self.queue.push(neighbour);
                }
            }
        }
    }

    /// Brings up the nodes whose turn has come with this f.
    fn take_turn(&mut self, f: u32) {
        std::mem::swap(&mut self.stack, &mut self.later);
        while self.remembered.last().is_some_and(|entry| entry.0 <= f) {
            let (_, node) = self.remembered.pop().expect("there is a last one");
            self.stack.push_if(true, node);
        }
        if self.stack.len > 1 {
            self.stack.all_mut().sort_unstable_by_key(|&node| Reverse(node));
        }
    }

    fn search_at_same_f<const OPTIMISED: bool>(&mut self, grid: &Grid, start: Cell, goal: Cell) -> bool {
        while let Some(node) = self.stack.pop() {
            let cell = node.cell();
            if self.marks[cell] & (mark::VISITED | mark::DEAD) != 0 {
                continue;
            }
            self.marks[cell] |= mark::VISITED | mark::ENTERED;
            self.entered_by[cell] = node.by();
            self.visited.push(cell);
            if cell == goal {
                return true;
            }
            self.expand::<OPTIMISED>(node, cell, goal);
            if OPTIMISED {
                self.close_dead_ends(grid, cell, start, goal);
            }
        }
        false
    }

    #[inline]
    fn expand<const OPTIMISED: bool>(&mut self, node: Node, cell: Cell, goal: Cell) {
        let towards = towards(cell, goal);
        let mut open = self.passages[cell] & ONWARD[usize::from(node.by())];
        // From south to north, so that of two equally near the earlier cell lies on top of the stack.
        while open != 0 {
            let direction = u32::from(open).ilog2();
            open ^= 1 << direction;
            let nearer = towards >> direction & 1 == 1;
            let next = node.step(direction, nearer);
            self.stack.push_if(nearer, next);
            self.later.push_if(!nearer, next);
            if OPTIMISED {
                self.learn(next.cell());
            }
        }
    }

    fn learn(&mut self, cell: Cell) {
        let marks = &mut self.marks[cell];
        if *marks & mark::KNOWN == 0 {
            *marks |= mark::KNOWN;
            self.known.push(cell);
        }
    }

    /// Closes a dead end for good, and its corridor back to the last junction.
    fn close_dead_ends(&mut self, grid: &Grid, mut cell: Cell, start: Cell, goal: Cell) {
        loop {
            let marks = self.marks[cell];
            // With a passage less than the grid has, it lies next to a closed lock.
            let open = self.passages[cell];
            let kept = marks & mark::AWAITED != 0
                || marks & mark::ENTERED == 0
                || cell == start
                || cell == goal
                || open != grid.passages[cell.index()];
            if kept {
                return;
            }
            let mut alive =
                open_neighbours(cell, open).filter(|neighbour| self.marks[*neighbour] & mark::DEAD == 0);
            let (only, more) = (alive.next(), alive.next());
            if more.is_some() {
                return;
            }
            self.marks[cell] |= mark::DEAD;
            match only {
                Some(neighbour) => cell = neighbour,
                None => return,
            }
        }
    }
}

impl LegSearch for Search {
    fn begin(&mut self, level: &Level, method: Method) {
        self.size = level.grid.passages.len();
        self.passages.0[..self.size].copy_from_slice(&level.grid.passages);
        self.marks.0[..self.size].fill(0);
        self.known.clear();
        for lock in &level.locks {
            self.set_lock(&level.grid, lock.cell, false);
        }
        if method == Method::Optimised {
            self.await_all(level);
        }
    }

    fn reached(&mut self, cell: Cell) {
        self.marks[cell] &= !mark::AWAITED;
    }

    fn open_lock(&mut self, grid: &Grid, lock: Fixture) {
        self.set_lock(grid, lock.cell, true);
        self.reached(lock.cell);
    }

    fn leg(&mut self, grid: &Grid, start: Cell, goal: Cell, method: Method) -> Option<u32> {
        match method {
            Method::Plain => self.leg_by::<false>(grid, start, goal),
            Method::Optimised => self.leg_by::<true>(grid, start, goal),
        }
    }

    fn visited(&self) -> &[Cell] {
        &self.visited
    }

    fn path(&self, start: Cell, goal: Cell) -> Vec<Cell> {
        let mut path = vec![goal];
        let mut cell = goal;
        while cell != start {
            cell = cell.step(Direction::ALL[usize::from(self.entered_by[cell])].opposite());
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
