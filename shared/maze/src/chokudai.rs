//! Beam search and Chokudai search: a beam search is a Chokudai search of one beam.

use crate::board::{Board, Cell, Turns};
use crate::direction::Direction;
use crate::goal::{Goal, Objective};
use crate::heap::{Heap, Keyed};
use crate::solution::Solution;
use crate::taken::{Names, Sets, SmallRows, TakenRows, insert, is_taken, kept_words, word_of};
use std::hint::select_unpredictable;
use thiserror::Error;

/// The most memory a search may need, in bytes.
pub const MAX_SEARCH_MEMORY: usize = 1 << 30;

/// How deep a search looks in each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Horizon {
    /// Always as many moves as the game has turns, even past its end.
    Full,
    /// Up to the end of the game.
    Remaining,
}

/// Chokudai search: several narrow beams one after the other, each continuing with the states that those before
/// it left over.
///
/// In every turn of a beam the `width` best states of the layer are taken out and all their moves entered in
/// the next layer; the answer leads to the best state of the last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Chokudai {
    /// States expanded in each layer by each beam.
    pub width: usize,
    /// Beams sent out, one after the other.
    pub beams: usize,
    /// Search again before every move, rather than once for the whole path.
    pub replan: bool,
    /// How deep to look.
    pub horizon: Horizon,
    /// Enter a state only once: two paths to the same cell that took the same points are one state.
    pub distinct: bool,
}

impl Default for Chokudai {
    /// The setting that reproduces the published Chokudai scores.
    fn default() -> Self {
        Self { width: 2, beams: 2, replan: true, horizon: Horizon::Remaining, distinct: false }
    }
}

/// Why a search can't be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// No states would be expanded.
    #[error("expected a width and a number of beams of at least 1, found `{width}` and `{beams}`")]
    Nothing {
        /// Width asked for.
        width: usize,
        /// Beams asked for.
        beams: usize,
    },
    /// More memory than [`MAX_SEARCH_MEMORY`].
    #[error("expected a search that fits in {MAX_SEARCH_MEMORY} bytes, found one that needs `{needed}`")]
    Memory {
        /// Bytes it would take.
        needed: usize,
    },
}

impl Chokudai {
    /// Beam search: a single beam of the given width; otherwise the setting that reproduces the published
    /// beam scores (with width 2).
    pub fn beam(width: usize) -> Self {
        Self { width, beams: 1, horizon: Horizon::Full, ..Self::default() }
    }

    /// Whether such a search can be run, without running it.
    ///
    /// # Errors
    /// When width or beams are 0, or the search would not fit in memory.
    pub fn check(&self, board: &Board, turns: Turns) -> Result<(), SearchError> {
        let Self { width, beams, .. } = *self;
        if width == 0 || beams == 0 {
            return Err(SearchError::Nothing { width, beams });
        }
        let needed = self.memory(board, turns);
        if needed > MAX_SEARCH_MEMORY { Err(SearchError::Memory { needed }) } else { Ok(()) }
    }

    /// Searches a path for the whole game.
    ///
    /// # Errors
    /// When width or beams are 0, or the search would not fit in memory.
    pub fn solve(&self, board: &Board, turns: Turns) -> Result<Solution, SearchError> {
        match kept_words(board) {
            2 => self.solve_with::<SmallRows<2>>(board, turns),
            16 => self.solve_with::<SmallRows<16>>(board, turns),
            _ => self.solve_with::<TakenRows>(board, turns),
        }
    }

    /// The same with sets of taken cells of a kind that fits the board.
    fn solve_with<S: Sets>(&self, board: &Board, turns: Turns) -> Result<Solution, SearchError> {
        let points = Objective::new(&Goal::Points, board, turns).expect("points can always be asked for");
        let mut search = Search::<S>::new(board, *self, turns, &points)?;
        let (mut path, mut score) = (Vec::with_capacity(turns.count()), 0);
        while path.len() < turns.count() {
            let depth = match self.horizon {
                Horizon::Full => turns.count(),
                Horizon::Remaining => turns.count() - path.len(),
            };
            let best = search.best(depth);
            if self.replan {
                path.push(best.first());
                score += search.advance(best.first());
            } else {
                path = search.path_to(best, depth);
                score = path.iter().map(|&way| search.advance(way)).sum();
            }
        }
        Ok(Solution { path, score, bound: None, evaluations: search.evaluations })
    }

    /// Searches a path for any objective: beams are ordered by what counts for it, and the shortest way to the most that
    /// was seen is walked.
    ///
    /// # Errors
    /// When width or beams are 0, or the search would not fit in memory.
    pub fn solve_for(
        &self,
        board: &Board,
        turns: Turns,
        objective: &Objective,
    ) -> Result<Solution, SearchError> {
        if objective.goal().is_points() {
            return self.solve(board, turns);
        }
        let mut search = Search::<TakenRows>::new(board, *self, turns, objective)?;
        let mut path = Vec::with_capacity(turns.count());
        while path.len() < turns.count() && !objective.is_reached(search.progress) {
            let depth = match self.horizon {
                Horizon::Full => turns.count(),
                Horizon::Remaining => turns.count() - path.len(),
            };
            let mut plan = search.plan_for(depth);
            if plan.is_empty() {
                break;
            }
            plan.truncate(if self.replan { 1 } else { turns.count() - path.len() });
            for &way in &plan {
                search.progress += search.advance(way);
            }
            path.append(&mut plan);
        }
        Ok(objective.solution(board, path, search.evaluations))
    }

    /// Bytes for one search: the states entered, those expanded, and their sets of taken cells.
    fn memory(&self, board: &Board, turns: Turns) -> usize {
        let expanded = self.width.saturating_mul(self.beams).saturating_mul(turns.count());
        // Each is entered by at most four moves, and named.
        let state = 5 * size_of::<Entered>() + size_of::<u64>();
        let names = if self.distinct { 4 * 2 * size_of::<u64>() } else { 0 };
        let sets = self.ring(turns).saturating_mul(kept_words(board) * size_of::<u64>());
        expanded.saturating_mul(state + names).saturating_add(sets)
    }

    /// How many sets of expanded states are kept, a power of two. A single beam never looks back beyond the
    /// last layer, so two layers of them are enough for it.
    fn ring(&self, turns: Turns) -> usize {
        let layers = if self.beams == 1 { 2 } else { turns.count().saturating_mul(self.beams) };
        self.width.saturating_mul(layers).checked_next_power_of_two().unwrap_or(usize::MAX)
    }
}

/// A state waiting in its layer, in one word: score, first move, parent, cell and last move. Scores take 20 bits and
/// parents 26, which [`MAX_SEARCH_MEMORY`] keeps them below.
#[derive(Clone, Copy, Debug)]
struct Entered(u64);

const SCORE_SHIFT: u32 = 44;
const FIRST_SHIFT: u32 = 42;
const PARENT_SHIFT: u32 = 16;
const _: () = assert!(MAX_SEARCH_MEMORY / (6 * size_of::<Entered>()) < 1 << (FIRST_SHIFT - PARENT_SHIFT));

impl Entered {
    /// A move to a cell by a state without score or parent.
    fn by_move(way: Direction, cell: Cell, points: u8) -> Self {
        Self((u64::from(points) << SCORE_SHIFT) + (u64::from(cell) << 2) + u64::from(way.gene()))
    }

    /// The state after a move that pays, or does not pay any more.
    #[inline]
    fn after(self, parent: usize, step: Self, pays: bool) -> Self {
        let unpaid = step.0 & ((1 << PARENT_SHIFT) - 1);
        let kept = self.0 >> FIRST_SHIFT << FIRST_SHIFT;
        Self(kept + ((parent as u64) << PARENT_SHIFT) + select_unpredictable(pays, step.0, unpaid))
    }

    /// The same state with its last move as the first.
    fn begun(self) -> Self {
        Self(self.0 | u64::from(self.way().gene()) << FIRST_SHIFT)
    }

    /// The same state with these points added.
    fn ahead_by(self, progress: u32) -> Self {
        Self(self.0 + (u64::from(progress) << SCORE_SHIFT))
    }

    #[inline]
    fn score(self) -> u32 {
        (self.0 >> SCORE_SHIFT) as u32
    }

    #[inline]
    fn parent(self) -> usize {
        (self.0 >> PARENT_SHIFT) as usize & ((1 << (FIRST_SHIFT - PARENT_SHIFT)) - 1)
    }

    /// The move from the root that leads to it.
    fn first(self) -> Direction {
        Direction::from_gene((self.0 >> FIRST_SHIFT) as u8)
    }

    #[inline]
    fn cell(self) -> Cell {
        self.0 as Cell >> 2
    }

    #[inline]
    fn way(self) -> Direction {
        Direction::from_gene(self.0 as u8)
    }
}

/// The moves from a cell in search order.
#[derive(Clone, Copy, Debug)]
struct Exits {
    steps: [Entered; 4],
    count: usize,
}

impl Exits {
    fn new(board: &Board, from: Cell, objective: &Objective) -> Self {
        let mut exits = Self { steps: [Entered(0); 4], count: 0 };
        for way in Direction::SEARCH_ORDER {
            if let Some(cell) = board.step(from, way) {
                let worth = objective.worth(board.points(cell).unwrap_or(0));
                exits.steps[exits.count] = Entered::by_move(way, cell, worth);
                exits.count += 1;
            }
        }
        exits
    }
}

impl Keyed for Entered {
    #[inline]
    fn outranks(self, other: Self) -> bool {
        self.0 >> SCORE_SHIFT << SCORE_SHIFT > other.0
    }
}

/// The furthest state that a search for an objective has seen.
#[derive(Clone, Copy)]
struct Furthest {
    state: Entered,
    layer: usize,
}

impl Furthest {
    /// The better of two: further, or as far in fewer moves; the first of equals.
    fn or(self, other: Self) -> Self {
        let is_better = other.state.score() > self.state.score()
            || other.state.score() == self.state.score() && other.layer < self.layer;
        if is_better { other } else { self }
    }
}

/// One state is the root of all: it is its own parent.
struct Search<'a, S> {
    board: &'a Board,
    options: Chokudai,
    objective: &'a Objective,
    /// What counts at the root; scores of points start at 0 with every plan.
    progress: u32,
    furthest: Option<Furthest>,
    exits: Vec<Exits>,
    root: Cell,
    root_taken: Vec<u64>,
    layers: Vec<Heap<Entered>>,
    /// The states whose moves have been entered.
    expanded: Vec<Entered>,
    /// Their sets of taken cells, in a ring.
    taken: S,
    ring: usize,
    /// Where states must be distinct: what has been entered in each layer, and the names of the sets of those expanded.
    names: Vec<Names>,
    set_names: Vec<u64>,
    evaluations: u64,
}

impl<'a, S: Sets> Search<'a, S> {
    fn new(
        board: &'a Board,
        options: Chokudai,
        turns: Turns,
        objective: &'a Objective,
    ) -> Result<Self, SearchError> {
        /// Wider layers grow when they are entered.
        const MOST_ROOM: usize = 64;
        options.check(board, turns)?;
        let ring = options.ring(turns);
        let room = MOST_ROOM.min(4 * options.width * options.beams);
        Ok(Self {
            board,
            options,
            objective,
            progress: 0,
            furthest: None,
            exits: (0..board.cells() as Cell).map(|cell| Exits::new(board, cell, objective)).collect(),
            root: board.start(),
            root_taken: vec![0; TakenRows::words_of(board)],
            layers: (0..=turns.count()).map(|_| Heap::with_room(room)).collect(),
            expanded: Vec::new(),
            taken: S::new(board, ring),
            ring,
            names: vec![Names::default(); if options.distinct { turns.count() + 1 } else { 0 }],
            set_names: Vec::new(),
            evaluations: 0,
        })
    }

    fn clear(&mut self) {
        self.layers.iter_mut().for_each(Heap::clear);
        self.names.iter_mut().for_each(Names::clear);
        self.expanded.clear();
        self.set_names.clear();
    }

    /// The best state `depth` moves ahead.
    fn best(&mut self, depth: usize) -> Entered {
        self.clear();
        if self.options.distinct {
            self.send_beams::<true, false>(depth);
        } else {
            self.send_beams::<false, false>(depth);
        }
        self.layers[depth].top().expect("every state has a move, so the last layer has a state")
    }

    /// The moves that lead to the furthest state at most `depth` moves ahead, the nearest of equals. Where none is
    /// further than the root, those that survive longest.
    fn plan_for(&mut self, depth: usize) -> Vec<Direction> {
        self.clear();
        self.furthest = None;
        if self.options.distinct {
            self.send_beams::<true, true>(depth);
        } else {
            self.send_beams::<false, true>(depth);
        }
        let furthest = self.furthest.filter(|found| found.state.score() > self.progress);
        if let Some(Furthest { state, layer }) = furthest {
            return self.path_to(state, layer);
        }
        let last = (1..=depth).rev().find_map(|layer| Some((self.layers[layer].top()?, layer)));
        last.map_or(vec![], |(state, layer)| self.path_to(state, layer))
    }

    /// Sends out all beams. Whether states are distinct and whether an objective decides what may be taken is known to
    /// the compiler, because asking at every move costs.
    fn send_beams<const DISTINCT: bool, const RULED: bool>(&mut self, depth: usize) {
        self.expand_root::<DISTINCT, RULED>();
        for beam in 1..=self.options.beams {
            let is_last = beam == self.options.beams;
            for layer in 1..depth {
                for states_left in (0..self.options.width).rev() {
                    let waiting = &mut self.layers[layer];
                    // The last beam leaves its last two states where they are, because their layer is not read again.
                    // With an objective the last one's layer may be: there a walk can end anywhere.
                    let state = match states_left {
                        0 if is_last && !RULED && self.options.width > 1 => waiting.second(),
                        1 if is_last && !RULED => waiting.top(),
                        0 if is_last => waiting.top(),
                        _ => waiting.pop(),
                    };
                    let Some(state) = state else { break };
                    self.expand::<DISTINCT, RULED>(layer, state);
                }
            }
        }
    }

    fn expand_root<const DISTINCT: bool, const RULED: bool>(&mut self) {
        let root = Entered::by_move(Direction::Up, self.root, 0).ahead_by(self.progress);
        self.taken.set(0, &self.root_taken);
        self.expanded.push(root);
        if DISTINCT {
            self.set_names.push(0);
        }
        self.enter_moves::<DISTINCT, RULED, true>(0, 0, root);
    }

    #[inline]
    fn expand<const DISTINCT: bool, const RULED: bool>(&mut self, layer: usize, state: Entered) {
        let index = self.expanded.len();
        self.expanded.push(state);
        let (parent, row) = (self.row(state.parent()), self.row(index));
        if DISTINCT {
            let word = taking_word(self.board, self.taken.row(parent), state.cell());
            self.set_names.push(self.set_names[state.parent()] ^ word);
        }
        self.taken.inherit(parent, row, state.cell());
        self.enter_moves::<DISTINCT, RULED, false>(layer, index, state);
    }

    /// Enters the moves of an expanded state in the next layer.
    #[inline]
    fn enter_moves<const DISTINCT: bool, const RULED: bool, const ROOT: bool>(
        &mut self,
        layer: usize,
        index: usize,
        state: Entered,
    ) {
        let Exits { steps, count } = self.exits[usize::from(state.cell())];
        self.evaluations += count as u64;
        if DISTINCT || RULED {
            for &step in &steps[..count] {
                let pays = !is_taken(self.taken.row(self.row(index)), step.cell());
                let child = state.after(index, step, pays);
                let child = if ROOT { child.begun() } else { child };
                if self.is_entered::<DISTINCT, RULED>(layer, index, state, (step, pays, child)) {
                    self.layers[layer + 1].push(child);
                }
            }
            return;
        }
        let taken = self.taken.row(self.row(index));
        let children = steps.map(|step| {
            let child = state.after(index, step, !is_taken(taken, step.cell()));
            if ROOT { child.begun() } else { child }
        });
        self.layers[layer + 1].push_all(children, count);
    }

    /// Whether a move of a state is entered: whether the objective allows it and does not end with it, and no other way led
    /// to the same before.
    #[inline]
    fn is_entered<const DISTINCT: bool, const RULED: bool>(
        &mut self,
        layer: usize,
        index: usize,
        state: Entered,
        (step, pays, child): (Entered, bool, Entered),
    ) -> bool {
        if RULED && pays {
            let points = self.board.points(step.cell()).unwrap_or(0);
            if !self.objective.allows(state.score(), points) {
                return false;
            }
        }
        if DISTINCT {
            let place = word_of(self.exits.len() as u64 + u64::from(step.cell()));
            let taken = taking_word(self.board, self.taken.row(self.row(index)), step.cell());
            if !self.names[layer + 1].insert(self.set_names[index] ^ taken ^ place) {
                return false;
            }
        }
        if RULED {
            let found = Furthest { state: child, layer: layer + 1 };
            self.furthest = Some(self.furthest.map_or(found, |best| best.or(found)));
            return !self.objective.is_reached(child.score());
        }
        true
    }

    /// Where the set of an expanded state is kept.
    #[inline]
    fn row(&self, index: usize) -> usize {
        index & (self.ring - 1)
    }

    fn path_to(&self, state: Entered, depth: usize) -> Vec<Direction> {
        let mut path = vec![state.way(); depth];
        let mut index = state.parent();
        for way in path[..depth - 1].iter_mut().rev() {
            *way = self.expanded[index].way();
            index = self.expanded[index].parent();
        }
        path
    }

    /// Makes a move for good, and gives its points.
    fn advance(&mut self, way: Direction) -> u32 {
        self.root = self.board.step(self.root, way).expect("plans consist of possible moves");
        let pays = !is_taken(&self.root_taken, self.root);
        insert(&mut self.root_taken, self.root);
        if pays { u32::from(self.objective.worth(self.board.points(self.root).unwrap_or(0))) } else { 0 }
    }
}

/// What taking a cell changes in the name of a set: nothing, when it has no points left.
fn taking_word(board: &Board, taken: &[u64], cell: Cell) -> u64 {
    let pays = board.points(cell) != Some(0) && !is_taken(taken, cell);
    if pays { word_of(u64::from(cell)) } else { 0 }
}
