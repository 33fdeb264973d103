//! The optimum for goals other than points, with a proof: best-first search over distinct states, by what no walk
//! through them can exceed.

use crate::board::{Board, Cell, Turns};
use crate::chokudai::{Chokudai, Horizon};
use crate::direction::Direction;
use crate::exact::Exact;
use crate::goal::{Goal, Objective};
use crate::relaxation::BoundError;
use crate::simple::greedy_for;
use crate::solution::Solution;
use crate::taken::{NameHasher, TakenRows, is_taken, word_of};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
#[expect(clippy::disallowed_types, reason = "only asked for single names; its order is never seen")]
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// The fewest moves in which each state was met.
#[expect(clippy::disallowed_types, reason = "only asked for single names; its order is never seen")]
type Met = HashMap<u64, u16, BuildHasherDefault<NameHasher>>;

/// Numbers looked at in all for bounds: some seconds.
const MAX_LOOKS: u64 = 4_000_000_000;

const FAR: u16 = u16::MAX;

impl Exact {
    /// Searches the best path for any objective. [`Solution::bound`] is always given: equal to the score it proves the
    /// path optimal.
    ///
    /// # Errors
    /// For points, when the game is too long or the board too large for bounds within the limits.
    pub fn solve_for(
        &self,
        board: &Board,
        turns: Turns,
        objective: &Objective,
    ) -> Result<Solution, BoundError> {
        if objective.goal().is_points() {
            return self.solve(board, turns);
        }
        let beam =
            Chokudai { width: 64, beams: 1, replan: false, horizon: Horizon::Remaining, distinct: true };
        let beam = beam.solve_for(board, turns, objective).expect("a beam of 64 fits in memory");
        let greedy = greedy_for(board, objective);
        let best = if greedy.score > beam.score { greedy } else { beam };
        Ok(BestFirst::new(board, objective, best).run(*self))
    }
}

/// A state that waits for its moves.
#[derive(Clone, Copy)]
struct Node {
    progress: u32,
    parent: u32,
    cell: Cell,
    moves: u16,
    way: Direction,
    /// Names the cell and the set of numbers taken.
    name: u64,
    set_name: u64,
    /// Numbers left on cells of each colour of a chessboard.
    left: [u16; 2],
}

struct BestFirst<'a> {
    board: &'a Board,
    objective: &'a Objective,
    bounds: Bounds<'a>,
    nodes: Vec<Node>,
    /// The numbers taken, a row for each node.
    taken: TakenRows,
    /// Highest bound first, of equals the furthest, of those the oldest.
    queue: BinaryHeap<(u32, u32, Reverse<u32>)>,
    met: Met,
    best: Solution,
}

impl<'a> BestFirst<'a> {
    fn new(board: &'a Board, objective: &'a Objective, best: Solution) -> Self {
        let bounds = Bounds::new(board, objective);
        let mut search = Self {
            board,
            objective,
            bounds,
            nodes: vec![],
            taken: TakenRows::new(board, 1),
            queue: BinaryHeap::new(),
            met: Met::default(),
            best,
        };
        let left = search.bounds.colours();
        let cell = board.start();
        let name = word_of((board.cells() + usize::from(cell)) as u64);
        let root =
            Node { progress: 0, parent: 0, cell, moves: 0, way: Direction::Up, name, set_name: 0, left };
        if !objective.is_reached(0) {
            search.nodes.push(root);
            search.met.insert(name, 0);
            search.queue.push((u32::MAX, 0, Reverse(0)));
        }
        search
    }

    fn run(mut self, limits: Exact) -> Solution {
        let most = self.affordable(limits);
        let mut expanded = 0;
        while let Some(&(bound, _, Reverse(index))) = self.queue.peek() {
            if bound <= self.best.score || self.nodes.len() >= most || expanded >= limits.max_states {
                break;
            }
            self.queue.pop();
            let node = self.nodes[index as usize];
            if self.met.get(&node.name) == Some(&node.moves) {
                expanded += 1;
                self.expand(index as usize, node, bound);
            }
        }
        let open = self.queue.peek().map_or(0, |&(bound, ..)| bound);
        // The root waits with a bound that says nothing, if no state may be expanded.
        let trivial = self.objective.score(self.objective.needed().unwrap_or(0), 0);
        let bound = open.min(trivial).max(self.best.score);
        Solution { bound: Some(bound), ..self.best }
    }

    /// How many states the limits allow.
    fn affordable(&self, limits: Exact) -> usize {
        let set = TakenRows::words_of(self.board) * size_of::<u64>();
        // A node, its place in the queue, and its name; vectors and maps double when they grow.
        let each = 2 * (set + size_of::<Node>() + 16 + 2 * size_of::<(u64, u16)>());
        let looks = MAX_LOOKS / (4 * self.bounds.numbers.len().max(1) as u64);
        (limits.max_memory / each).min(usize::try_from(looks).unwrap_or(usize::MAX)).min(u32::MAX as usize)
    }

    fn expand(&mut self, index: usize, node: Node, bound: u32) {
        let board = self.board;
        for (way, cell) in board.moves(node.cell) {
            self.best.evaluations += 1;
            let points =
                if is_taken(self.taken.row(index), cell) { 0 } else { board.points(cell).unwrap_or(0) };
            if !self.objective.allows(node.progress, points) {
                continue;
            }
            let mut child = Node { parent: index as u32, cell, moves: node.moves + 1, way, ..node };
            if points > 0 {
                child.progress += u32::from(self.objective.worth(points));
                child.set_name ^= word_of(u64::from(cell));
                let colour = &mut child.left[self.bounds.colour(cell)];
                *colour = colour.saturating_sub(1);
            }
            child.name = child.set_name ^ word_of((board.cells() + usize::from(cell)) as u64);
            self.consider(index, child, points > 0, bound);
        }
    }

    /// Keeps a state that is new, or met in fewer moves, and can still be better than what is known.
    fn consider(&mut self, parent: usize, child: Node, takes: bool, bound: u32) {
        if self.met.get(&child.name).is_some_and(|&moves| moves <= child.moves) {
            return;
        }
        self.met.insert(child.name, child.moves);
        let score = self.objective.score(child.progress, usize::from(child.moves));
        if score > self.best.score {
            self.best.score = score;
            self.best.path = self.path_to(child);
        }
        if self.objective.is_reached(child.progress) || usize::from(child.moves) == self.objective.turns() {
            return;
        }
        let row = self.nodes.len();
        self.taken.grow(row + 1);
        self.taken.copy(parent, row);
        if takes {
            self.taken.insert(row, child.cell);
        }
        let bound = bound.min(self.bounds.bound(&child, self.taken.row(row)));
        if bound > self.best.score {
            self.nodes.push(child);
            self.queue.push((bound, child.progress, Reverse(row as u32)));
        }
    }

    fn path_to(&self, last: Node) -> Vec<Direction> {
        let mut path = vec![last.way];
        let mut index = last.parent as usize;
        while index > 0 {
            path.push(self.nodes[index].way);
            index = self.nodes[index].parent as usize;
        }
        path.reverse();
        path
    }
}

/// What no walk can exceed from a state on.
struct Bounds<'a> {
    board: &'a Board,
    objective: &'a Objective,
    /// The cells with numbers that can be reached; only where all of them count.
    numbers: Vec<Cell>,
    /// For each number from 1 to 9 and each cell, the moves to the nearest such number; only for orders.
    distances: Vec<Vec<u16>>,
    /// The highest number on the board.
    highest: u32,
}

impl<'a> Bounds<'a> {
    fn new(board: &'a Board, objective: &'a Objective) -> Self {
        let cells = || 0..board.cells() as Cell;
        let from_start = distances(board, |cell| cell == board.start());
        let is_number = |cell: &Cell| {
            board.points(*cell).is_some_and(|points| points > 0) && from_start[usize::from(*cell)] != FAR
        };
        let is_all = *objective.goal() == Goal::All;
        let is_order = matches!(objective.goal(), Goal::Order { .. });
        let to = |number: u8| distances(board, |cell| board.points(cell) == Some(number));
        Self {
            board,
            objective,
            numbers: if is_all { cells().filter(is_number).collect() } else { vec![] },
            distances: if is_order { (1..=9).map(to).collect() } else { vec![] },
            highest: cells().filter_map(|cell| board.points(cell)).max().map_or(0, u32::from),
        }
    }

    fn colour(&self, cell: Cell) -> usize {
        let place = self.board.place(cell);
        (place.x + place.y) % 2
    }

    /// Numbers on cells of each colour.
    fn colours(&self) -> [u16; 2] {
        let mut colours = [0; 2];
        self.numbers.iter().for_each(|&cell| colours[self.colour(cell)] += 1);
        colours
    }

    fn bound(&self, node: &Node, taken: &[u64]) -> u32 {
        let needed = self.objective.needed().unwrap_or(u32::MAX);
        let left = (self.objective.turns() - usize::from(node.moves)) as u32;
        let missing = needed - node.progress;
        let (least_moves, most_gain) = match self.objective.goal() {
            Goal::Order { numbers } => {
                let next = numbers[node.progress as usize];
                let away = u32::from(self.distances[usize::from(next) - 1][usize::from(node.cell)]).max(1);
                (away + missing - 1, (left + 1).saturating_sub(away))
            }
            Goal::All => (self.moves_to_all(node, taken), left),
            Goal::Sum { .. } | Goal::Points => (missing.div_ceil(self.highest.max(1)), left * self.highest),
        };
        if least_moves <= left {
            needed + left - least_moves
        } else {
            node.progress + most_gain.min(missing - 1)
        }
    }

    /// A walk enters cells of both colours in turn, and it has to come to the number that is farthest away.
    fn moves_to_all(&self, node: &Node, taken: &[u64]) -> u32 {
        let own = self.colour(node.cell);
        let by_colour =
            (2 * u32::from(node.left[1 - own])).saturating_sub(1).max(2 * u32::from(node.left[own]));
        let here = self.board.place(node.cell);
        let away = |&cell: &Cell| {
            let place = self.board.place(cell);
            place.x.abs_diff(here.x) + place.y.abs_diff(here.y)
        };
        let farthest = self.numbers.iter().filter(|&&cell| !is_taken(taken, cell)).map(away).max();
        by_colour.max(farthest.unwrap_or(0) as u32)
    }
}

/// The moves from each cell to the nearest of some cells.
fn distances(board: &Board, is_source: impl Fn(Cell) -> bool) -> Vec<u16> {
    let mut cells: Vec<Cell> = (0..board.cells() as Cell).filter(|&cell| is_source(cell)).collect();
    let mut distances = vec![FAR; board.cells()];
    for &cell in &cells {
        distances[usize::from(cell)] = 0;
    }
    let mut next = 0;
    while let Some(&cell) = cells.get(next) {
        for (_, beside) in board.moves(cell) {
            if distances[usize::from(beside)] == FAR {
                distances[usize::from(beside)] = distances[usize::from(cell)] + 1;
                cells.push(beside);
            }
        }
        next += 1;
    }
    distances
}
