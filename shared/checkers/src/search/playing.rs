//! The playing search: one long search by time, nodes or depth, on one thread or several.
//!
//! It deepens ply by ply in one go, uses the best move of a depth that it could not finish, and reduces late moves. On one
//! thread and without a clock it finds the same on every machine; evolution does not use it, because what it finds
//! depends on what it has searched before.

use super::budget::Budget;
use super::core::Core;
use super::shared::SharedTable;
use super::tree::Tree;
use super::{Found, Limits, Line};
use crate::behaviour::sample_positions;
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::position::{Position, Side};
use crate::score::Score;
use crate::squares::Squares;
use crate::style::Style;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a playing search works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlaySettings {
    /// Threads that search together.
    pub threads: u32,
    /// Bits of the table; by the limits of a search if nothing is said.
    pub table_bits: Option<u32>,
    /// What a draw costs, in men: more than 0 plays on in equal positions.
    pub contempt: f32,
}

impl Default for PlaySettings {
    fn default() -> Self {
        Self { threads: 1, table_bits: None, contempt: 0.0 }
    }
}

/// Follows a search from outside.
pub struct Watch<'a> {
    /// Ends the search when it is set.
    pub stop: &'a AtomicBool,
    /// Called after every completed depth: the depth, the positions visited so far, and the best lines.
    pub report: &'a mut dyn FnMut(u32, u64, &[Line]),
}

/// A searcher that plays as well as it can.
pub struct PlayingSearch {
    settings: PlaySettings,
    style: Style,
    /// Made for the longest search so far; the first of them is the one that answers.
    cores: Vec<Core<SharedTable>>,
    /// Bits of their table; 0 before the first search.
    bits: u32,
    past: Vec<Position>,
    /// What a man is worth to the evaluator it was made for.
    man: Option<f32>,
}

impl PlayingSearch {
    /// A searcher of this style.
    pub fn new(settings: PlaySettings, style: Style) -> Self {
        Self { settings, style, cores: vec![], bits: 0, past: vec![], man: None }
    }

    /// Forgets everything that earlier searches found.
    pub fn forget(&mut self) {
        self.cores.iter_mut().for_each(Core::forget);
        self.past.clear();
    }

    /// Takes the game into account whose position is searched next.
    pub fn follow(&mut self, game: &Game) {
        self.past.clear();
        if self.style.history {
            self.past.extend_from_slice(game.recent());
        }
    }

    /// What a man is worth to an evaluator: the mean change of its opinion when the other side loses one.
    pub fn man(&mut self, evaluator: &mut impl Evaluator) -> f32 {
        *self.man.get_or_insert_with(|| man_of(evaluator))
    }

    /// The best lines of the last search, the best first.
    pub fn lines(&self) -> &[Line] {
        self.cores.first().map_or(&[], |core| &core.lines)
    }

    /// The best move, or nothing if there is no legal move.
    pub fn run<E: Evaluator + Clone + Send>(
        &mut self,
        evaluator: &mut E,
        position: &Position,
        limits: &Limits,
        watch: &mut Watch<'_>,
    ) -> Option<Found> {
        self.prepare(evaluator, position, limits);
        if self.cores.first().is_none_or(|core| core.roots.is_empty()) {
            return None;
        }
        let budget = Budget::new(limits, true);
        let (first, helpers) = self.cores.split_first_mut()?;
        let over = AtomicBool::new(false);
        let found = std::thread::scope(|scope| {
            for (number, core) in helpers.iter_mut().enumerate() {
                let (mut evaluator, over) = (evaluator.clone(), &over);
                let alone = Limits { lines: 1, ..*limits };
                scope.spawn(move || {
                    let mut tree = Tree::new(core, &mut evaluator, Some(over));
                    let unlimited = Limits { nodes: None, time: None, ..alone };
                    let budget = Budget::new(&unlimited, true);
                    tree.budget = budget;
                    // Threads that start at different depths are seldom at the same place.
                    let start = 2 + number as u32 % 2;
                    tree.deepen_selectively(position, &unlimited, start, budget, &mut |_, _, _| {});
                });
            }
            let mut tree = Tree::new(first, evaluator, Some(watch.stop));
            let depth = tree.deepen_selectively(position, limits, 1, budget, watch.report);
            over.store(true, Ordering::Relaxed);
            (depth, tree.nodes, tree.evaluations)
        });
        let (depth, nodes, evaluations) = found;
        let best = self.cores.first()?.lines.first()?;
        Some(Found { best: *best.moves.first()?, score: best.score, depth, nodes, evaluations })
    }

    fn prepare<E: Evaluator>(&mut self, evaluator: &mut E, position: &Position, limits: &Limits) {
        let threads = self.settings.threads.max(1);
        let fitting = || table_bits(limits, threads);
        let bits = self.settings.table_bits.unwrap_or_else(fitting).clamp(2, LARGEST_TABLE);
        // A much longer search than any before gets a larger, empty table: what the old one holds is worth more
        // than twice the room.
        if self.cores.is_empty() || bits > self.bits + 1 {
            self.bits = bits;
            let table = SharedTable::new(bits);
            self.cores = (0..threads).map(|_| Core::new(table.clone(), self.style)).collect();
        }
        let man = self.man(evaluator);
        self.cores[0].table.grow_older();
        for (number, core) in self.cores.iter_mut().enumerate() {
            core.remember_positions(&self.past);
            core.contempt = (self.settings.contempt * man * Score::ONE) as i32;
            core.man = (man * Score::ONE) as i32;
            core.prepare(position, &Limits { lines: if number == 0 { limits.lines } else { 1 }, ..*limits });
        }
    }
}

/// Larger tables are cut to this: 1 GiB.
const LARGEST_TABLE: u32 = 26;

/// A table that a search of this number of threads within these limits fills, 2^14 to 2^22 entries for each thread.
fn table_bits(limits: &Limits, threads: u32) -> u32 {
    const NODES_A_SECOND: f64 = 2e6;
    let by_time = limits.time.map(|time| time.as_secs_f64() * NODES_A_SECOND);
    let by_depth = libm::pow(2.2, f64::from(limits.depth.min(64)));
    let nodes = [by_time, limits.nodes.map(|nodes| nodes as f64), Some(by_depth)];
    let nodes = nodes.into_iter().flatten().fold(f64::INFINITY, f64::min);
    (libm::log2(nodes.max(1.0)) as u32 + 1).clamp(14, 22) + threads.ilog2()
}

/// The mean change of an opinion, over positions of games, when the other side loses a man.
fn man_of(evaluator: &mut impl Evaluator) -> f32 {
    const POSITIONS: usize = 32;
    let mut changes = vec![];
    for position in sample_positions(0, POSITIONS) {
        let other = !position.side_to_move();
        let Some(lost) = position.men(other).into_iter().next() else { continue };
        let mut fewer = position;
        match other {
            Side::Black => fewer.black = Squares(fewer.black.0 & !Squares::from(lost).0),
            Side::White => fewer.white = Squares(fewer.white.0 & !Squares::from(lost).0),
        }
        if fewer.must_capture() || fewer.is_lost() || fewer.pieces(other).is_empty() {
            continue;
        }
        changes.push(f64::from(evaluator.evaluate(&fewer).value() - evaluator.evaluate(&position).value()));
    }
    let mean = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    (mean as f32).max(1e-4)
}
