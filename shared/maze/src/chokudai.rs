//! Beam search and Chokudai search: a beam search is a Chokudai search of one beam.

use crate::board::{Board, Cell, Turns};
use crate::direction::Direction;
use crate::heap::{Heap, Keyed};
use crate::solution::Solution;
use crate::taken::{Names, TakenRows, is_taken, word_of};
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

/// Chokudai search: several narrow beams one after the other, each going on with the states that those before it left over.
///
/// In every turn of a beam the `width` best states of the layer are taken out and all their moves entered in the next layer;
/// the answer leads to the best state of the last layer.
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
    /// Beam search: a single beam of the given width; otherwise the setting that reproduces the published beam scores (with width 2).
    pub fn beam(width: usize) -> Self {
        Self { width, beams: 1, horizon: Horizon::Full, ..Self::default() }
    }

    /// Searches a path for the whole game.
    ///
    /// # Errors
    /// When width or beams are 0, or the search would not fit in memory.
    pub fn solve(&self, board: &Board, turns: Turns) -> Result<Solution, SearchError> {
        let mut search = Search::new(board, *self, turns)?;
        let (mut path, mut score) = (Vec::with_capacity(turns.count()), 0);
        while path.len() < turns.count() {
            let depth = match self.horizon {
                Horizon::Full => turns.count(),
                Horizon::Remaining => turns.count() - path.len(),
            };
            let mut plan = search.plan(depth);
            if self.replan {
                plan.truncate(1);
            }
            score += plan.iter().map(|&way| search.advance(way)).sum::<u32>();
            path.append(&mut plan);
        }
        Ok(Solution { path, score, bound: None, evaluations: search.evaluations })
    }

    /// Bytes for one search: the states entered, those expanded, and their sets of taken cells.
    fn memory(&self, board: &Board, turns: Turns) -> usize {
        let expanded = self.width.saturating_mul(self.beams).saturating_mul(turns.count());
        let state = 4 * size_of::<Entered>() + size_of::<Expanded>();
        let names = if self.distinct { 4 * 2 * size_of::<u64>() } else { 0 };
        let sets = self.rows(turns).saturating_mul(TakenRows::words_of(board) * size_of::<u64>());
        expanded.saturating_mul(state + names).saturating_add(sets)
    }

    /// A single beam never looks back beyond the last layer, so two layers of sets are enough for it.
    fn rows(&self, turns: Turns) -> usize {
        let layers = if self.beams == 1 { 2 } else { turns.count().saturating_mul(self.beams) };
        self.width.saturating_mul(layers).saturating_add(1)
    }
}

/// A state waiting in its layer.
#[derive(Clone, Copy, Debug)]
struct Entered {
    score: u32,
    parent: u32,
    cell: Cell,
    way: Direction,
}

impl Keyed for Entered {
    #[inline]
    fn key(self) -> u32 {
        self.score
    }
}

/// A state whose moves have been entered.
#[derive(Clone, Copy, Debug)]
struct Expanded {
    parent: u32,
    way: Direction,
    /// Names the set of cells whose points it has.
    name: u64,
}

/// The root is its own parent, and its set stays in row 0.
const ROOT: u32 = 0;

struct Search<'a> {
    board: &'a Board,
    options: Chokudai,
    root: Cell,
    layers: Vec<Heap<Entered>>,
    names: Vec<Names>,
    expanded: Vec<Expanded>,
    taken: TakenRows,
    rows: usize,
    evaluations: u64,
}

impl<'a> Search<'a> {
    fn new(board: &'a Board, options: Chokudai, turns: Turns) -> Result<Self, SearchError> {
        let Chokudai { width, beams, .. } = options;
        if width == 0 || beams == 0 {
            return Err(SearchError::Nothing { width, beams });
        }
        let needed = options.memory(board, turns);
        if needed > MAX_SEARCH_MEMORY {
            return Err(SearchError::Memory { needed });
        }
        let rows = options.rows(turns);
        Ok(Self {
            board,
            options,
            root: board.start(),
            layers: vec![Heap::new(); turns.count() + 1],
            names: vec![Names::default(); if options.distinct { turns.count() + 1 } else { 0 }],
            expanded: Vec::new(),
            taken: TakenRows::new(board, rows),
            rows,
            evaluations: 0,
        })
    }

    /// The moves that lead to the best state `depth` moves ahead.
    fn plan(&mut self, depth: usize) -> Vec<Direction> {
        self.layers.iter_mut().for_each(Heap::clear);
        self.names.iter_mut().for_each(Names::clear);
        self.expanded.clear();
        self.layers[0].push(Entered { score: 0, parent: ROOT, cell: self.root, way: Direction::Up });
        for _ in 0..self.options.beams {
            for layer in 0..depth {
                for _ in 0..self.options.width {
                    let Some(state) = self.layers[layer].pop() else { break };
                    self.expand(layer, state);
                }
            }
        }
        let best = self.layers[depth].top().expect("every state has a move, so the last layer has a state");
        self.path_to(*best, depth)
    }

    fn expand(&mut self, layer: usize, state: Entered) {
        let index = self.expanded.len();
        let (parent, row) = (self.row(state.parent as usize), self.row(index));
        let mut name = self.expanded.get(state.parent as usize).map_or(0, |parent| parent.name);
        if index > 0 {
            name ^= self.gain_word(parent, state.cell);
            self.taken.copy(parent, row);
            self.taken.insert(row, state.cell);
        }
        self.expanded.push(Expanded { parent: state.parent, way: state.way, name });
        for way in Direction::SEARCH_ORDER {
            let Some(cell) = self.board.step(state.cell, way) else { continue };
            self.evaluations += 1;
            let score = state.score + self.gain(row, cell);
            if self.is_new(layer + 1, row, name, cell) {
                self.layers[layer + 1].push(Entered { score, parent: index as u32, cell, way });
            }
        }
    }

    /// Where the set of an expanded state is kept: a ring behind the root's.
    #[inline]
    fn row(&self, index: usize) -> usize {
        if index == 0 { 0 } else { 1 + (index - 1) % (self.rows - 1) }
    }

    /// The points still to be had in a cell.
    #[inline]
    fn gain(&self, row: usize, cell: Cell) -> u32 {
        if is_taken(self.taken.row(row), cell) { 0 } else { u32::from(self.board.points(cell).unwrap_or(0)) }
    }

    fn is_new(&mut self, layer: usize, row: usize, name: u64, cell: Cell) -> bool {
        if !self.options.distinct {
            return true;
        }
        let place = word_of((self.board.cells() + usize::from(cell)) as u64);
        let name = name ^ self.gain_word(row, cell) ^ place;
        self.names[layer].insert(name)
    }

    /// What taking a cell changes in the name of the set: nothing, when it has no points left.
    fn gain_word(&self, row: usize, cell: Cell) -> u64 {
        if self.options.distinct && self.gain(row, cell) > 0 { word_of(u64::from(cell)) } else { 0 }
    }

    fn path_to(&self, state: Entered, depth: usize) -> Vec<Direction> {
        let mut path = vec![state.way; depth];
        let mut index = state.parent as usize;
        for way in path[..depth - 1].iter_mut().rev() {
            *way = self.expanded[index].way;
            index = self.expanded[index].parent as usize;
        }
        path
    }

    /// Makes a move for good, and gives its points.
    fn advance(&mut self, way: Direction) -> u32 {
        self.root = self.board.step(self.root, way).expect("plans consist of possible moves");
        let gain = self.gain(0, self.root);
        self.taken.insert(0, self.root);
        gain
    }
}
