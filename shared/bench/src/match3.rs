//! Benches of Match-3 plays.

use crate::{Bench, Figure, rate};
use match3::{Board, Game, Play, Player, Rules, Stream};

pub(crate) fn benches() -> Vec<Bench> {
    vec![("match3.play100", plays)]
}

/// Plays of 100 random moves with five colours, against the same on a plain grid of bytes.
fn plays() -> Figure {
    const PLAYS: usize = 64;
    let game = Game::new(&Rules::default()).expect("the default rules can be played by");
    let boards: Vec<Board> = (0..50).map(|seed| Board::from_seed(game.rules(), seed)).collect();
    let mut plays = [Play::default(); PLAYS];
    let mut seed = 0;
    let fast = rate(|| {
        seed += 1;
        let board = &boards[seed as usize % boards.len()];
        game.plays(board, Player::Random, seed, 0, &mut plays).expect("the board fits the rules");
        PLAYS as u64
    });
    let scores: Vec<f64> = (0..64).map(|removed| (f64::from(removed) / 3.0).exp2()).collect();
    let slow = rate(|| {
        seed += 1;
        let score = play(&boards[seed as usize % boards.len()], &scores, &mut Stream::new(seed));
        assert!(score >= 0.0, "scores are never negative");
        1
    });
    Figure::new("plays/s", fast, slow)
}

/// A grid of bytes, row by row from the top; 0 is empty.
struct Grid {
    width: usize,
    cells: Vec<u8>,
}

fn play(board: &Board, scores: &[f64], stream: &mut Stream) -> f64 {
    let mut grid = Grid { width: board.width().into(), cells: board.cells().to_vec() };
    grid.settle();
    let mut score = 0.0;
    for _ in 0..100 {
        let Some((from, to)) = grid.random_move(stream) else { continue };
        grid.cells.swap(from, to);
        let removed = grid.settle();
        score += if removed > 0 { scores[removed] } else { 0.0 };
    }
    score
}

impl Grid {
    /// A random block and the cell beside it in a random direction, unless that lies outside.
    fn random_move(&self, stream: &mut Stream) -> Option<(usize, usize)> {
        if self.cells.iter().all(|&colour| colour == 0) {
            return None;
        }
        let mut from = stream.below(self.cells.len() as u32) as usize;
        while self.cells[from] == 0 {
            from = stream.below(self.cells.len() as u32) as usize;
        }
        let column = from % self.width;
        match stream.below(4) {
            0 => from.checked_sub(self.width),
            1 => (column > 0).then(|| from - 1),
            2 => (column + 1 < self.width).then_some(from + 1),
            _ => Some(from + self.width).filter(|&to| to < self.cells.len()),
        }
        .map(|to| (from, to))
    }

    /// Lets blocks fall and clears lines until nothing changes; the number of blocks removed.
    fn settle(&mut self) -> usize {
        let mut removed = 0;
        loop {
            self.fall();
            let lines = self.lines();
            let count = lines.iter().filter(|&&in_line| in_line).count();
            if count == 0 {
                return removed;
            }
            removed += count;
            for (colour, in_line) in self.cells.iter_mut().zip(lines) {
                *colour = if in_line { 0 } else { *colour };
            }
        }
    }

    fn fall(&mut self) {
        for column in 0..self.width {
            let mut floor = self.cells.len() - self.width + column;
            for cell in (column..self.cells.len()).step_by(self.width).rev() {
                if self.cells[cell] != 0 {
                    self.cells.swap(cell, floor);
                    floor = floor.saturating_sub(self.width);
                }
            }
        }
    }

    fn lines(&self) -> Vec<bool> {
        let mut in_line = vec![false; self.cells.len()];
        for cell in 0..self.cells.len() {
            for (step, fits) in [(1, cell % self.width + 2 < self.width), (self.width, true)] {
                let three = [cell, cell + step, cell + 2 * step];
                if fits && three[2] < self.cells.len() && self.cells[cell] != 0 {
                    let equal = three.iter().all(|&other| self.cells[other] == self.cells[cell]);
                    for other in three {
                        in_line[other] |= equal;
                    }
                }
            }
        }
        in_line
    }
}
