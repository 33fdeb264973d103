//! How fast the maze's paths are evaluated and its searches run.

use super::{Bench, Figure, rate};
use maze::{Board, Evaluator, MersenneTwister};
use std::hint::black_box;

pub(super) fn benches() -> Vec<Bench> {
    vec![("maze.path_n50", || paths(50)), ("maze.path_n5", || paths(5))]
}

/// Paths a second with repair r1, the slower of 10x10 and 30x30; the reference copies the board for each path.
fn paths(turns: usize) -> Figure {
    let slowest = |measure: fn(&Board, usize) -> f64| {
        [10, 30].map(|side| measure(&board(side), turns)).into_iter().fold(f64::INFINITY, f64::min)
    };
    Figure::new("paths/s", slowest(evaluator_rate), slowest(plain_rate))
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
