//! Retrograde analysis of a slice together with its mirror image.
//!
//! 1. Every position is looked at once. Where Black must capture, all moves lead to slices with fewer pieces, and the
//!    verdict is settled. Elsewhere crownings lead to slices with fewer men, which may settle it too; what remains is
//!    the number of moves that are not yet known to lose (escapes).
//! 2. From every settled position the moves that lead there are taken back: where it is lost, the side that could move there
//!    wins; where it is won, the side that moved there has one escape less, and without any has lost. And so on, one ply
//!    further each time, until nothing changes.
//! 3. What is not settled then is drawn.
//!
//! Threads settle positions in any order, but what is settled, and after how many plies, is always the same.

use super::index::Index;
use super::piece_counts::PieceCounts;
use super::slice::Slice;
use super::{Board, Database, EndgameResult};
use crate::squares::{Direction, Squares};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// States of a position; anything lower is a number of escapes.
const SETTLED: u8 = 253;
const DRAWN: u8 = 253;
const WON: u8 = 254;
const LOST: u8 = 255;

/// Positions that one thread works on at a time.
const CHUNK: usize = 1 << 12;

/// One of the two slices of a pair, under analysis.
pub(super) struct Half {
    pub(super) index: Arc<Index>,
    states: Vec<AtomicU8>,
    /// What a crowned man of Black leads to.
    crowned: Option<PieceCounts>,
}

/// A slice and its mirror image; one half if they are the same.
pub(super) struct Pair<'a> {
    database: &'a Database,
    halves: Vec<Half>,
}

/// Positions that were settled in the same ply, of each half.
type Frontier = Vec<Vec<u32>>;

impl<'a> Pair<'a> {
    /// The two slices of a material; `database` must hold all that come before them.
    pub(super) fn new(database: &'a Database, material: PieceCounts) -> Self {
        let mut halves = vec![Half::new(material)];
        if material != material.mirrored() {
            halves.push(Half::new(material.mirrored()));
        }
        Self { database, halves }
    }

    /// Settles everything. `visit` receives which positions of which half were settled in which ply: 1 for those whose
    /// end or way into another slice is the next move.
    pub(super) fn solve(&self, mut visit: impl FnMut(usize, &[u32], u8)) {
        let mut frontier: Frontier = self.halves.iter().map(|half| self.look_at_all(half)).collect();
        let mut ply = 1_u8;
        while frontier.iter().any(|settled| !settled.is_empty()) {
            for (half, settled) in frontier.iter().enumerate() {
                visit(half, settled, ply);
            }
            frontier = self.take_back(&frontier);
            ply = ply.saturating_add(1);
        }
    }

    /// Step 1: what is settled by what other slices know.
    fn look_at_all(&self, half: &Half) -> Vec<u32> {
        let chunks = half.states.par_chunks(CHUNK).enumerate();
        let settled = chunks.map(|(chunk, states)| {
            let first = (chunk * CHUNK) as u32;
            let numbers = first..first + states.len() as u32;
            let look = |(number, state): (u32, &AtomicU8)| {
                let found = self.look_at(half, &half.index.board(number));
                state.store(found, Ordering::Relaxed);
                (found > DRAWN).then_some(number)
            };
            numbers.zip(states).filter_map(look).collect::<Vec<u32>>()
        });
        settled.collect::<Vec<_>>().concat()
    }

    /// The state of a position as far as other slices tell.
    fn look_at(&self, half: &Half, board: &Board) -> u8 {
        let position = board.position();
        if position.must_capture() {
            return self.settle_capture(board);
        }
        let (mut escapes, mut won) = (0, false);
        position.for_each_move(|mv| {
            let crowned = half
                .crowned
                .filter(|_| Squares::BOTTOM_ROW.contains(mv.to()) && !position.kings.contains(mv.from()));
            match crowned.map(|material| self.known(&Board::of(&position.play(&mv)), material)) {
                Some(EndgameResult::Win) => {}
                Some(EndgameResult::Loss) => won = true,
                Some(EndgameResult::Draw) | None => escapes += 1,
            }
        });
        match (won, escapes) {
            (true, _) => WON,
            (false, 0) => LOST,
            _ => escapes,
        }
    }

    /// The state of a position in which Black must capture.
    fn settle_capture(&self, board: &Board) -> u8 {
        let position = board.position();
        let mut best = LOST;
        position.for_each_move(|mv| {
            let verdict = self.database.probe(&position.play(&mv));
            match verdict.expect("slices with fewer pieces are built before") {
                EndgameResult::Loss => best = WON,
                EndgameResult::Draw if best == LOST => best = DRAWN,
                _ => {}
            }
        });
        best
    }

    fn known(&self, board: &Board, material: PieceCounts) -> EndgameResult {
        let shelf = self.database.shelf(material).expect("slices with fewer men are built before");
        shelf.slice.verdict(shelf.index.number(board))
    }

    /// Step 2, one ply: what follows from the positions settled last.
    fn take_back(&self, frontier: &Frontier) -> Frontier {
        let mut next: Frontier = vec![Vec::new(); self.halves.len()];
        for (place, settled) in frontier.iter().enumerate() {
            let (from, before) = (&self.halves[place], self.halves.len() - 1 - place);
            let found = settled.par_chunks(CHUNK).map(|numbers| {
                let mut found = Vec::new();
                for number in numbers {
                    self.halves[before].settle_before(from, *number, &mut found);
                }
                found
            });
            next[before] = found.collect::<Vec<_>>().concat();
        }
        next
    }

    /// The slices, everything being settled: first that of the material itself, then that of its mirror image.
    pub(super) fn into_slices(self) -> Vec<(Arc<Index>, Slice)> {
        self.halves.into_iter().map(|half| (half.index.clone(), half.pack())).collect()
    }
}

impl Half {
    fn new(material: PieceCounts) -> Self {
        let index = Arc::new(Index::new(material));
        let states = (0..index.len()).map(|_| AtomicU8::new(0)).collect();
        Self { index, states, crowned: (material.black_men > 0).then(|| material.crowned()) }
    }

    /// Visits the positions of this half from which a quiet move leads to position `number` of the other, which is
    /// settled; pushes those that are settled by it.
    fn settle_before(&self, from: &Self, number: u32, found: &mut Vec<u32>) {
        let lost = from.states[number as usize].load(Ordering::Relaxed) == LOST;
        from.index.board(number).turned().for_each_before(|board| {
            let before = self.index.number(&board);
            let state = &self.states[before as usize];
            let settles = if lost { settle_won(state) } else { lose_escape(state) };
            if settles {
                found.push(before);
            }
        });
    }

    fn pack(&self) -> Slice {
        Slice::pack(self.states.iter().map(|state| match state.load(Ordering::Relaxed) {
            WON => EndgameResult::Win,
            LOST => EndgameResult::Loss,
            _ => EndgameResult::Draw,
        }))
    }
}

/// A move leads to a lost position; true if that settles it.
fn settle_won(state: &AtomicU8) -> bool {
    let win = |state| (state < SETTLED).then_some(WON);
    state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, win).is_ok()
}

/// A move leads to a won position; true if it was the last that did not.
fn lose_escape(state: &AtomicU8) -> bool {
    let one_less = |state| match state {
        SETTLED.. => None,
        1 => Some(LOST),
        escapes => Some(escapes - 1),
    };
    state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) == Ok(1)
}

impl Board {
    /// Visits every board from which a step of Black, no crowning, leads to this one: Black's pieces go back.
    fn for_each_before(self, mut visit: impl FnMut(Board)) {
        let empty = !(self.black | self.white);
        for direction in Direction::ALL {
            let back = direction.opposite();
            let men_go = matches!(direction, Direction::DownLeft | Direction::DownRight);
            let movers = if men_go { self.black } else { self.black & self.kings };
            for origin in Squares(movers).step(back) & Squares(empty) {
                let origin = Squares::from(origin).0;
                let piece = Squares(origin).step(direction).0;
                let kings = if self.kings & piece == 0 { self.kings } else { self.kings ^ piece | origin };
                visit(Board { black: self.black ^ piece | origin, kings, ..self });
            }
        }
    }
}
