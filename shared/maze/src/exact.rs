//! The optimum, with a proof: layers of distinct states, cut off where even a relaxed walk could not do
//! better than what is known.

use crate::board::{Board, Cell, Place, Turns};
use crate::chokudai::{Chokudai, Horizon};
use crate::direction::Direction;
use crate::relaxation::{BoundError, Relaxation};
use crate::solution::Solution;
use crate::taken::{Names, TakenRows, is_taken, word_of};
use std::cmp::Reverse;

/// Exact search within limits: proves its answer optimal, or says what no path can exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exact {
    /// States expanded in all, a few million a second.
    pub max_states: u64,
    /// Bytes taken at once.
    pub max_memory: usize,
}

impl Default for Exact {
    fn default() -> Self {
        Self { max_states: 20_000_000, max_memory: 1 << 30 }
    }
}

/// Moves that relaxed walks remember, and states kept in each layer: each stage costs more and proves more
/// than the one before.
const STAGES: [(usize, usize); 6] =
    [(3, 1 << 10), (3, 1 << 13), (5, 1 << 13), (5, 1 << 16), (5, 1 << 19), (5, 1 << 22)];

/// Prices hardly improve after this number of rounds.
pub(crate) const PRICE_ROUNDS: usize = 100;

/// Fewer are no use: nothing can be cut off before the first moves fill the memory of relaxed walks.
const LEAST_WIDTH: usize = 1 << 10;

impl Exact {
    /// Whether such a search can be run, without running it.
    ///
    /// # Errors
    /// When the game is too long or the board too large for bounds within the limits.
    pub fn check(&self, board: &Board, turns: Turns) -> Result<(), BoundError> {
        Relaxation::check(board, turns, STAGES[0].0, self.max_memory)
    }

    /// Searches the best path there is. [`Solution::bound`] is always given: equal to the score it proves the
    /// path optimal.
    ///
    /// # Errors
    /// When the game is too long or the board too large for bounds within the limits.
    pub fn solve(&self, board: &Board, turns: Turns) -> Result<Solution, BoundError> {
        let mut relaxation = Relaxation::new(board, turns, STAGES[0].0, self.max_memory)?;
        let mut best = first_answer(board, turns);
        tighten(&mut relaxation, &mut best);
        let mut states_left = self.max_states;
        for (digits, width) in STAGES {
            let needed = Relaxation::memory_needed(board, turns.count(), digits);
            let width = self.affordable(board, turns, states_left, needed).min(width);
            if best.is_proved() || width < LEAST_WIDTH {
                break;
            }
            if relaxation.memory().digits() != digits {
                relaxation = Relaxation::new(board, turns, digits, self.max_memory)?;
                tighten(&mut relaxation, &mut best);
            }
            let found = Sweep::new(board, &relaxation, best.score, width).run(turns.count());
            states_left = states_left.saturating_sub(found.states);
            found.improve(&mut best);
        }
        Ok(best)
    }

    /// The widest layers that the remaining states and memory allow.
    fn affordable(&self, board: &Board, turns: Turns, states_left: u64, relaxation: usize) -> usize {
        let sets = 2 * TakenRows::words_of(board) * size_of::<u64>();
        let each =
            sets + 4 * (size_of::<State>() + 2 * size_of::<u64>()) + turns.count() * size_of::<Origin>();
        let by_memory = self.max_memory.saturating_sub(relaxation) / each;
        by_memory.min(usize::try_from(states_left / turns.count() as u64).unwrap_or(usize::MAX))
    }
}

/// A good path to begin with, and the trivial bound: as many cells of the most points as there are turns.
pub(crate) fn first_answer(board: &Board, turns: Turns) -> Solution {
    let beam = Chokudai { width: 64, beams: 1, replan: false, horizon: Horizon::Remaining, distinct: true };
    let mut points: Vec<u32> =
        (0..board.cells() as Cell).filter_map(|cell| board.points(cell)).map(u32::from).collect();
    points.sort_unstable_by_key(|&points| Reverse(points));
    let bound = points.iter().take(turns.count()).sum();
    let found = beam.solve(board, turns).expect("a beam of 64 fits in memory for any board and game");
    Solution { bound: Some(bound), ..found }
}

fn tighten(relaxation: &mut Relaxation, best: &mut Solution) {
    let bound = relaxation.tighten(PRICE_ROUNDS, best.score) / relaxation.scale();
    lower(best, bound);
}

fn lower(best: &mut Solution, bound: u32) {
    best.bound = best.bound.min(Some(bound.max(best.score)));
}

/// A state of a layer, whose set of taken cells is the row of the same index.
#[derive(Clone, Copy, Debug)]
struct State {
    score: u32,
    /// What no path through it can exceed, in the relaxation's units; unknown in the first turns.
    bound: u32,
    origin: Origin,
    cell: Cell,
    memory: u16,
    /// Names the set of cells whose points it has.
    name: u64,
}

/// Where a state came from: the index in the layer before, and the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin(u32);

impl Origin {
    fn new(index: usize, way: Direction) -> Self {
        Self((index as u32) << 2 | u32::from(way.gene()))
    }

    fn index(self) -> usize {
        (self.0 >> 2) as usize
    }

    fn way(self) -> Direction {
        Direction::from_gene(self.0 as u8)
    }
}

/// What a sweep found.
struct Found {
    path: Option<(Vec<Direction>, u32)>,
    /// The highest bound among the states that found no room, in points.
    dropped: u32,
    states: u64,
    evaluations: u64,
}

impl Found {
    /// All that is better than the score before lies among what was found and what was dropped.
    fn improve(self, best: &mut Solution) {
        best.evaluations += self.evaluations;
        if let Some((path, score)) = self.path.filter(|(_, score)| *score > best.score) {
            (best.path, best.score) = (path, score);
        }
        lower(best, self.dropped);
    }
}

/// One pass through all turns that keeps the `width` most promising states of each.
struct Sweep<'a> {
    board: &'a Board,
    relaxation: &'a Relaxation,
    /// What is known already: only states that can be better are of interest.
    score: u32,
    width: usize,
    /// Cells with a granted part, which counts as long as they can be reached.
    contested: Vec<(Cell, Place, u32)>,
    layer: Vec<State>,
    taken: TakenRows,
    history: Vec<Vec<Origin>>,
    found: Found,
}

impl<'a> Sweep<'a> {
    fn new(board: &'a Board, relaxation: &'a Relaxation, score: u32, width: usize) -> Self {
        let contested = (0..board.cells() as Cell)
            .map(|cell| (cell, board.place(cell), relaxation.granted(cell)))
            .filter(|&(_, _, granted)| granted > 0)
            .collect();
        let origin = Origin::new(0, Direction::Up);
        let start = State { score: 0, bound: u32::MAX, origin, cell: board.start(), memory: 0, name: 0 };
        Self {
            board,
            relaxation,
            score,
            width,
            contested,
            layer: vec![start],
            taken: TakenRows::new(board, 1),
            history: Vec::new(),
            found: Found { path: None, dropped: 0, states: 0, evaluations: 0 },
        }
    }

    fn run(mut self, turns: usize) -> Found {
        for left in (0..turns).rev() {
            let mut next = self.successors(left);
            self.drop_beyond_width(&mut next);
            self.enter(next);
        }
        self.found.path = self.best_path();
        self.found
    }

    /// The distinct states after one more move that may still lead to a better score.
    fn successors(&mut self, left: usize) -> Vec<State> {
        let mut names = Names::default();
        let mut next = Vec::new();
        for (index, state) in self.layer.iter().enumerate() {
            for (way, cell) in self.board.moves(state.cell) {
                let child = self.child(state, index, way, cell, left);
                let place = word_of((self.board.cells() + usize::from(cell)) as u64);
                let promising = child.bound >= (self.score + 1) * self.relaxation.scale();
                if promising && names.insert(child.name ^ place) {
                    next.push(child);
                }
                self.found.evaluations += 1;
            }
        }
        self.found.states += self.layer.len() as u64;
        next
    }

    fn child(&self, state: &State, index: usize, way: Direction, cell: Cell, left: usize) -> State {
        let taken = self.taken.row(index);
        let gain = if is_taken(taken, cell) { 0 } else { u32::from(self.board.points(cell).unwrap_or(0)) };
        let score = state.score + gain;
        let name = if gain > 0 { state.name ^ word_of(u64::from(cell)) } else { state.name };
        let memory = self.relaxation.memory().after(usize::from(state.memory), way);
        let is_memory_full = self.history.len() + 1 >= self.relaxation.memory().digits();
        let bound = if is_memory_full {
            let granted = self.granted(taken, cell, left);
            score * self.relaxation.scale() + granted + self.relaxation.best(left, cell, memory)
        } else {
            u32::MAX
        };
        State { score, bound, origin: Origin::new(index, way), cell, memory: memory as u16, name }
    }

    /// What is granted by cells not yet taken, as far as the moves left can reach them.
    fn granted(&self, taken: &[u64], cell: Cell, left: usize) -> u32 {
        let here = self.board.place(cell);
        let counts = |(other, place, _): &&(Cell, Place, u32)| {
            let distance = place.x.abs_diff(here.x) + place.y.abs_diff(here.y);
            distance <= left && *other != cell && !is_taken(taken, *other)
        };
        self.contested.iter().filter(counts).map(|(_, _, granted)| granted).sum()
    }

    fn drop_beyond_width(&mut self, next: &mut Vec<State>) {
        if next.len() <= self.width {
            return;
        }
        next.select_nth_unstable_by_key(self.width, |state| (Reverse(state.bound), state.origin));
        let dropped = next[self.width].bound / self.relaxation.scale();
        self.found.dropped = self.found.dropped.max(dropped);
        next.truncate(self.width);
    }

    fn enter(&mut self, next: Vec<State>) {
        let mut taken = TakenRows::new(self.board, next.len());
        for (index, state) in next.iter().enumerate() {
            taken.set(index, self.taken.row(state.origin.index()));
            taken.insert(index, state.cell);
        }
        self.history.push(next.iter().map(|state| state.origin).collect());
        (self.layer, self.taken) = (next, taken);
    }

    fn best_path(&self) -> Option<(Vec<Direction>, u32)> {
        let scores = self.layer.iter().enumerate().map(|(index, state)| (state.score, Reverse(index)));
        let (score, Reverse(mut index)) = scores.max()?;
        let mut path = Vec::with_capacity(self.history.len());
        for layer in self.history.iter().rev() {
            path.push(layer[index].way());
            index = layer[index].index();
        }
        path.reverse();
        Some((path, score))
    }
}
