//! Planning a stretch of a path by a narrow beam of distinct states.

use crate::board::{Board, Cell};
use crate::direction::Direction;
use crate::relaxation::Relaxation;
use crate::taken::{TakenRows, is_taken, word_of};

/// How a stretch of a path is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Planning {
    /// States kept for each turn, 1 to [`Planning::MAX_WIDTH`].
    pub width: usize,
    /// Every state's worth is raised by a random part of this number of points, so that equal calls give different
    /// stretches.
    pub noise: u32,
}

impl Planning {
    /// The widest beam; a wider one is cut down to it.
    pub const MAX_WIDTH: usize = 1024;
}

impl Default for Planning {
    fn default() -> Self {
        Self { width: 16, noise: 1 }
    }
}

const FAR: u32 = u32::MAX;

/// The cell a stretch must lead to, by the distance of the cells around it.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    distances: Vec<u32>,
    flooded: Vec<Cell>,
}

impl Destination {
    pub(crate) fn new(board: &Board) -> Self {
        Self { distances: vec![FAR; board.cells()], flooded: Vec::new() }
    }

    /// Moves the goal; distances beyond `moves` stay unknown.
    pub(crate) fn set(&mut self, board: &Board, goal: Cell, moves: usize) {
        for cell in self.flooded.drain(..) {
            self.distances[usize::from(cell)] = FAR;
        }
        self.flood(goal, 0);
        let mut next = 0;
        while let Some(&cell) = self.flooded.get(next) {
            let distance = self.distances[usize::from(cell)];
            if distance as usize == moves {
                break;
            }
            board.moves(cell).for_each(|(_, beside)| self.flood(beside, distance + 1));
            next += 1;
        }
    }

    fn flood(&mut self, cell: Cell, distance: u32) {
        if self.distances[usize::from(cell)] == FAR {
            self.distances[usize::from(cell)] = distance;
            self.flooded.push(cell);
        }
    }

    fn is_within(&self, cell: Cell, moves: usize) -> bool {
        (self.distances[usize::from(cell)] as usize) <= moves
    }
}

/// Where a stretch begins, and what is known there.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    pub(crate) board: &'a Board,
    pub(crate) from: Cell,
    /// The last moves before it, as the guide remembers them.
    pub(crate) memory: usize,
    /// An estimate of what may still be collected; without it the points at hand decide.
    pub(crate) guide: Option<&'a Relaxation>,
    /// Where it must lead; without it, anywhere.
    pub(crate) goal: Option<&'a Destination>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// What the beam orders by.
    promise: u32,
    /// Points collected, and the part of them that the guide counts, in its units.
    points: u32,
    units: u32,
    parent: u32,
    cell: Cell,
    memory: u16,
    way: Direction,
    /// Names the set of cells whose points it has.
    name: u64,
}

/// The working space of a beam, kept from one stretch to the next.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Row 0 holds the cells taken elsewhere on the path; two halves behind it the sets of this layer and the
    /// next.
    taken: TakenRows,
    half: usize,
    layer: Vec<State>,
    candidates: Vec<State>,
    /// The candidates, most promising first; equal ones in their own order.
    order: Vec<u64>,
    /// All layers before.
    history: Vec<State>,
    plan: Vec<Direction>,
}

impl Segment {
    pub(crate) fn new(board: &Board) -> Self {
        let taken = TakenRows::new(board, 1);
        Self {
            taken,
            half: 0,
            layer: vec![],
            candidates: vec![],
            order: vec![],
            history: vec![],
            plan: vec![],
        }
    }

    /// Says which cells the rest of the path takes.
    pub(crate) fn take<'c>(&mut self, cells: impl IntoIterator<Item = &'c Cell>) {
        self.taken.clear(0);
        cells.into_iter().for_each(|&cell| self.taken.insert(0, cell));
    }

    /// The best moves found; none if the goal can't be reached in this number of moves.
    pub(crate) fn plan(
        &mut self,
        stretch: Stretch<'_>,
        moves: usize,
        planning: Planning,
        mut random: impl FnMut() -> u64,
    ) -> Option<&[Direction]> {
        let width = planning.width.clamp(1, Planning::MAX_WIDTH);
        self.start(stretch, width);
        for left in (0..moves).rev() {
            self.propose(stretch, left, planning.noise, &mut random);
            self.keep(width);
        }
        self.trace_back(moves)
    }

    fn start(&mut self, stretch: Stretch<'_>, width: usize) {
        if self.half < width {
            self.taken.grow(1 + 2 * width);
            self.half = width;
        }
        self.history.clear();
        self.layer.clear();
        self.layer.push(State {
            promise: 0,
            points: 0,
            units: 0,
            parent: 0,
            cell: stretch.from,
            memory: stretch.memory as u16,
            way: Direction::Up,
            name: 0,
        });
        self.taken.copy(0, 1);
    }

    /// Collects every move from every state of the layer.
    fn propose(&mut self, stretch: Stretch<'_>, left: usize, noise: u32, random: &mut impl FnMut() -> u64) {
        let scale = stretch.guide.map_or(SCALE, Relaxation::scale);
        let base = self.history.len();
        self.candidates.clear();
        for (index, state) in self.layer.iter().enumerate() {
            let taken = self.taken.row(1 + index);
            for (way, cell) in stretch.board.moves(state.cell) {
                if stretch.goal.is_none_or(|goal| goal.is_within(cell, left)) {
                    let mut child = step(stretch, state, taken, way, cell, left);
                    child.parent = (base + index) as u32;
                    if noise > 0 {
                        child.promise += fraction(u64::from(noise * scale), random());
                    }
                    self.candidates.push(child);
                }
            }
        }
    }

    /// The next layer: the most promising of the candidates, each state once.
    fn keep(&mut self, width: usize) {
        let base = self.history.len();
        self.history.append(&mut self.layer);
        // States are large and only a few are kept: what is sorted is one word for each.
        let word = |(index, state): (usize, &State)| u64::from(u32::MAX - state.promise) << 32 | index as u64;
        self.order.clear();
        self.order.extend(self.candidates.iter().enumerate().map(word));
        self.order.sort_unstable();
        for &word in &self.order {
            if self.layer.len() == width {
                break;
            }
            let state = &self.candidates[word as u32 as usize];
            let is_same = |kept: &State| kept.name == state.name && kept.cell == state.cell;
            if !self.layer.iter().any(is_same) {
                let row = 1 + self.half + self.layer.len();
                self.taken.copy(1 + state.parent as usize - base, row);
                self.taken.insert(row, state.cell);
                self.layer.push(*state);
            }
        }
        self.taken.swap(1, 1 + self.half, self.layer.len());
    }

    fn trace_back(&mut self, moves: usize) -> Option<&[Direction]> {
        let first_best = |best: &State, state: &State| best.points >= state.points;
        let mut state =
            *self.layer.iter().reduce(|best, state| if first_best(best, state) { best } else { state })?;
        self.plan.clear();
        self.plan.resize(moves, Direction::Up);
        for way in self.plan.iter_mut().rev() {
            *way = state.way;
            state = self.history[state.parent as usize];
        }
        Some(&self.plan)
    }
}

/// Units to a point where no guide says otherwise.
const SCALE: u32 = 64;

fn step(
    stretch: Stretch<'_>,
    state: &State,
    taken: &[u64],
    way: Direction,
    cell: Cell,
    left: usize,
) -> State {
    let points = u32::from(stretch.board.points(cell).unwrap_or(0));
    let pays = points > 0 && !is_taken(taken, cell);
    let mut child = State { cell, way, ..*state };
    if pays {
        child.points += points;
        child.units += stretch.guide.map_or(points * SCALE, |guide| guide.price(cell));
        child.name ^= word_of(u64::from(cell));
    }
    child.promise = child.units;
    if let Some(guide) = stretch.guide {
        let memory = guide.memory().after(usize::from(state.memory), way);
        child.memory = memory as u16;
        child.promise += guide.best(left, cell, memory);
    }
    child
}

/// A random part of a whole.
fn fraction(whole: u64, random: u64) -> u32 {
    (((random >> 32) * whole) >> 32) as u32
}
