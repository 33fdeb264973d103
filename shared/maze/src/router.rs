//! Operators that know what a path is, for genetic algorithms whose children shall be better than chance.
//!
//! A gene means little without those before it: cut two genomes and join them, and the second half walks
//! somewhere else than in its parent. These operators keep the cells where they are: a tail planned again from
//! where the path stands, a detour between two cells of the path, a crossover where two paths meet.

use crate::board::{Board, Cell, Turns};
use crate::direction::Direction;
use crate::evaluator::Evaluator;
use crate::exact::{PRICE_ROUNDS, first_answer};
use crate::relaxation::{BoundError, Relaxation};
use crate::segment::{Destination, Planning, Segment, Stretch};
use std::sync::Arc;

/// The most memory a guide may take, in bytes.
const MAX_GUIDE_MEMORY: usize = 1 << 28;

/// What may still be collected from each cell with a number of moves left: an upper bound, the same
/// for all callers. Many routers can share one.
#[derive(Clone, Debug)]
pub struct Guide {
    relaxation: Relaxation,
    bound: u32,
}

/// Moves that the walks behind a guide's estimates remember.
const GUIDE_DIGITS: usize = 3;

impl Guide {
    /// Whether there can be a guide, without making one.
    ///
    /// # Errors
    /// When the game is too long or the board too large.
    pub fn check(board: &Board, turns: Turns) -> Result<(), BoundError> {
        Relaxation::check(board, turns, GUIDE_DIGITS, MAX_GUIDE_MEMORY)
    }

    /// Computes the estimates for a board and a number of turns; tenths of a second for 30x30 cells and 50
    /// turns.
    ///
    /// # Errors
    /// When the game is too long or the board too large.
    pub fn new(board: &Board, turns: Turns) -> Result<Self, BoundError> {
        let mut relaxation = Relaxation::new(board, turns, GUIDE_DIGITS, MAX_GUIDE_MEMORY)?;
        let score = first_answer(board, turns).score;
        let bound = relaxation.tighten(PRICE_ROUNDS, score) / relaxation.scale();
        Ok(Self { relaxation, bound })
    }

    /// What no path can exceed.
    pub fn bound(&self) -> u32 {
        self.bound
    }
}

/// Where a crossover changed from one parent to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Turns of the child that come from the first parent.
    pub turn: usize,
    /// The turn of the second parent with which the child continues.
    pub other_turn: usize,
}

/// Changes paths on one board. Genomes have a gene for each turn; genes that lead nowhere are repaired by r1
/// on the way.
///
/// It keeps its working space from one call to the next, so every thread has its own.
#[derive(Clone, Debug)]
pub struct Router {
    board: Board,
    guide: Option<Arc<Guide>>,
    evaluator: Evaluator,
    segment: Segment,
    goal: Destination,
    cells: Vec<Cell>,
    /// For each cell, the last turn in which the path at hand stood there.
    turns: Vec<Option<u16>>,
}

impl Router {
    /// Without a guide, tails are planned by the points they collect; with one, also by what they leave for
    /// later.
    pub fn new(board: &Board, guide: Option<Arc<Guide>>) -> Self {
        Self {
            board: board.clone(),
            guide,
            evaluator: Evaluator::new(board),
            segment: Segment::new(board),
            goal: Destination::new(board),
            cells: Vec::new(),
            turns: vec![None; board.cells()],
        }
    }

    /// Plans all moves of a path from turn `from` on again. `guided` asks for the guide's advice, if there is
    /// one.
    ///
    /// # Panics
    /// When `from` lies beyond the path, or the guide that is asked was made for another number of turns.
    pub fn replan_tail(
        &mut self,
        genes: &mut [u8],
        from: usize,
        planning: Planning,
        guided: bool,
        random: impl FnMut() -> u64,
    ) {
        let guide = self.guide.as_ref().filter(|_| guided).map(|guide| &guide.relaxation);
        assert!(guide.is_none_or(|guide| guide.turns() == genes.len()), "the guide is for another game");
        let (head, tail) = genes.split_at_mut(from);
        self.evaluator.trace(head, &mut self.cells);
        self.segment.take(&self.cells);
        let memory = guide.map_or(0, |guide| {
            head.iter().fold(0, |memory, &gene| guide.memory().after(memory, Direction::from_gene(gene)))
        });
        let stretch = Stretch { board: &self.board, from: self.cells[from], memory, guide, goal: None };
        write(tail, self.segment.plan(stretch, tail.len(), planning, random));
    }

    /// Replaces the moves of turns `from..to` by others that lead to the same cell.
    ///
    /// # Panics
    /// When `from..to` is no part of the path.
    pub fn reroute(
        &mut self,
        genes: &mut [u8],
        from: usize,
        to: usize,
        planning: Planning,
        random: impl FnMut() -> u64,
    ) {
        assert!(from <= to && to <= genes.len(), "turns {from}..{to} are no part of {}", genes.len());
        self.evaluator.trace(genes, &mut self.cells);
        self.segment.take(self.cells[..=from].iter().chain(&self.cells[to..]));
        self.goal.set(&self.board, self.cells[to], to - from);
        let stretch = Stretch {
            board: &self.board,
            from: self.cells[from],
            memory: 0,
            guide: None,
            goal: Some(&self.goal),
        };
        write(&mut genes[from..to], self.segment.plan(stretch, to - from, planning, random));
    }

    /// Makes the most promising child that walks as `first` does to a cell where both paths come by, in
    /// whatever turn, and continues as `second` does from there. Where that ends too early, the rest is
    /// planned. `None`, and `child` is worth nothing, when the paths meet nowhere but where the child would
    /// be one of them.
    ///
    /// # Panics
    /// When the three are not equally long.
    pub fn cross(
        &mut self,
        first: &[u8],
        second: &[u8],
        child: &mut [u8],
        planning: Planning,
        random: impl FnMut() -> u64,
    ) -> Option<Meeting> {
        let meeting = self.best_meeting(first, second, child)?;
        let end = join(first, second, meeting, child);
        if end < child.len() {
            self.replan_tail(child, end, planning, false, random);
        }
        Some(meeting)
    }

    fn best_meeting(&mut self, first: &[u8], second: &[u8], trial: &mut [u8]) -> Option<Meeting> {
        trial.copy_from_slice(first);
        self.evaluator.trace(trial, &mut self.cells);
        self.turns.fill(None);
        for (turn, &cell) in self.cells.iter().enumerate() {
            self.turns[usize::from(cell)] = Some(turn as u16);
        }
        trial.copy_from_slice(second);
        self.evaluator.trace(trial, &mut self.cells);
        let mut best = None;
        for other_turn in 1..second.len() {
            let Some(turn) = self.turns[usize::from(self.cells[other_turn])] else { continue };
            let meeting = Meeting { turn: usize::from(turn), other_turn };
            let worth = self.worth(first, second, meeting, trial);
            if worth > best.map_or(0, |(worth, _)| worth) {
                best = Some((worth, meeting));
            }
        }
        best.map(|(_, meeting)| meeting)
    }

    /// Points of a child in proportion to the turns that it has; 0 for a copy of a parent.
    fn worth(&mut self, first: &[u8], second: &[u8], meeting: Meeting, trial: &mut [u8]) -> usize {
        let end = join(first, second, meeting, trial);
        if trial[..end] == first[..end] || trial[..end] == second[..end] {
            return 0;
        }
        self.evaluator.score(&mut trial[..end]) as usize * trial.len() / end
    }
}

/// Joins two paths, and returns how many turns the child has by that.
fn join(first: &[u8], second: &[u8], meeting: Meeting, child: &mut [u8]) -> usize {
    let Meeting { turn, other_turn } = meeting;
    let end = child.len().min(turn + second.len() - other_turn);
    child[..turn].copy_from_slice(&first[..turn]);
    child[turn..end].copy_from_slice(&second[other_turn..][..end - turn]);
    end
}

fn write(genes: &mut [u8], plan: Option<&[Direction]>) {
    for (gene, way) in genes.iter_mut().zip(plan.into_iter().flatten()) {
        *gene = way.gene();
    }
}
