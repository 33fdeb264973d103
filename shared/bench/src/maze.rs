//! How fast the maze's paths are evaluated and its searches run.

use crate::{Bench, Figure, rate};
use maze::{Board, Chokudai, Direction, Evaluator, Horizon, MersenneTwister, Turns};
use std::collections::BinaryHeap;
use std::hint::black_box;

pub(crate) fn benches() -> Vec<Bench> {
    vec![
        ("maze.path_n50", || paths(50)),
        ("maze.path_n5", || paths(5)),
        ("maze.beam", || searches(Chokudai::beam(2))),
        ("maze.chokudai", || searches(Chokudai::default())),
    ]
}

/// Paths a second with repair r1, on the slower of the boards; the reference copies the board for each path.
fn paths(turns: usize) -> Figure {
    let figures = on_both_boards(|board| {
        Figure::new("paths/s", evaluator_rate(board, turns), plain_rate(board, turns))
    });
    lower_by(|figure| figure.rate, figures)
}

/// Whole games of 50 turns a second, on the board that gains less over the reference; it copies the board for
/// each state.
fn searches(search: Chokudai) -> Figure {
    let figures = on_both_boards(|board| {
        Figure::new("games/s", search_rate(board, search), plain_search_rate(board, search))
    });
    lower_by(|figure| figure.ratio, figures)
}

fn on_both_boards(measure: impl Fn(&Board) -> Figure) -> [Figure; 2] {
    [10, 30].map(|side| measure(&board(side)))
}

fn lower_by(value: fn(&Figure) -> f64, [small, large]: [Figure; 2]) -> Figure {
    if value(&small) < value(&large) { small } else { large }
}

fn board(side: usize) -> Board {
    Board::generate(side, side, 0).expect("the sides are within bounds")
}

const ROWS: usize = 1000;
const STRIDE: usize = 64;

fn random_rows() -> Vec<u8> {
    let mut random = MersenneTwister::new(1);
    (0..ROWS * STRIDE).map(|_| (random.next_u32() & 3) as u8).collect()
}

fn evaluator_rate(board: &Board, turns: usize) -> f64 {
    let mut evaluator = Evaluator::new(board);
    let mut rows = random_rows();
    let mut scores = vec![0; ROWS];
    rate(|| {
        evaluator.score_rows(black_box(&mut rows), STRIDE, turns, &mut scores);
        black_box(&scores);
        ROWS as u64
    })
}

fn plain_rate(board: &Board, turns: usize) -> f64 {
    let mut rows = random_rows();
    rate(|| {
        for row in rows.chunks_mut(STRIDE) {
            black_box(plain_score(board, &mut row[..turns]));
        }
        ROWS as u64
    })
}

/// The rules word for word, on a copy of the board.
fn plain_score(board: &Board, genes: &mut [u8]) -> u32 {
    let mut points: Vec<u8> = (0..board.cells()).map(|cell| board.points(cell as u16).unwrap_or(0)).collect();
    let (mut cell, mut score) = (board.start(), 0);
    for gene in genes {
        let (way, next) = board
            .moves(cell)
            .min_by_key(|(way, _)| (way.gene().abs_diff(*gene), way.gene()))
            .expect("no cell is a dead end");
        *gene = way.gene();
        score += u32::from(std::mem::take(&mut points[usize::from(next)]));
        cell = next;
    }
    score
}

const TURNS: usize = 50;

fn search_rate(board: &Board, search: Chokudai) -> f64 {
    let turns = Turns::new(TURNS).expect("50 turns are within bounds");
    rate(|| {
        black_box(search.solve(black_box(board), turns)).expect("a narrow beam fits in memory");
        1
    })
}

fn plain_search_rate(board: &Board, search: Chokudai) -> f64 {
    rate(|| {
        black_box(plain_search(black_box(board), search));
        1
    })
}

/// A state with a board of its own.
#[derive(Clone)]
struct State {
    points: Vec<u8>,
    cell: u16,
    score: u32,
    first: Option<Direction>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.score == other.score
    }
}

impl Eq for State {}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for State {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.cmp(&other.score)
    }
}

impl State {
    fn advance(&mut self, way: Direction, cell: u16) {
        self.score += u32::from(std::mem::take(&mut self.points[usize::from(cell)]));
        self.cell = cell;
        self.first.get_or_insert(way);
    }
}

/// The search as the study describes it: every state is a copy of its parent's whole board.
fn plain_search(board: &Board, search: Chokudai) -> u32 {
    let points = (0..board.cells()).map(|cell| board.points(cell as u16).unwrap_or(0)).collect();
    let mut state = State { points, cell: board.start(), score: 0, first: None };
    for turn in 0..TURNS {
        let depth = if search.horizon == Horizon::Full { TURNS } else { TURNS - turn };
        let way = plain_plan(board, search, &state, depth);
        let cell = board.step(state.cell, way).expect("a plan begins with a possible move");
        state.advance(way, cell);
        state.first = None;
    }
    state.score
}

fn plain_plan(board: &Board, search: Chokudai, root: &State, depth: usize) -> Direction {
    let mut layers = vec![BinaryHeap::new(); depth + 1];
    layers[0].push(root.clone());
    for _ in 0..search.beams {
        for layer in 0..depth {
            for _ in 0..search.width {
                let Some(state) = layers[layer].pop() else { break };
                for way in Direction::SEARCH_ORDER {
                    if let Some(cell) = board.step(state.cell, way) {
                        let mut next = state.clone();
                        next.advance(way, cell);
                        layers[layer + 1].push(next);
                    }
                }
            }
        }
    }
    layers[depth].peek().and_then(|best| best.first).expect("every state has a move")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_references_give_what_is_measured_against_them() {
        let board = board(10);
        let turns = Turns::new(TURNS).unwrap();
        for search in [Chokudai::beam(2), Chokudai::default()] {
            assert_eq!(plain_search(&board, search), search.solve(&board, turns).unwrap().score);
        }
        let mut rows = random_rows();
        let (plain, quick) = rows.split_at_mut(STRIDE);
        quick[..STRIDE].copy_from_slice(plain);
        assert_eq!(plain_score(&board, plain), Evaluator::new(&board).score(&mut quick[..STRIDE]));
        assert_eq!(plain, &quick[..STRIDE]);
    }
}
