//! The number-collecting maze: a genome is a walk, its fitness the points that it collects.

use crate::ProblemError;
use evolution::gene::{Alphabet, Shape};
use evolution::population::{Chunk, Cost, Population};
use evolution::problem::{Judging, Problem};
use maze::{Board, Evaluator, Turns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Collect as many points as a walk of so many turns can.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Maze {
    /// Cells in a row.
    #[schemars(range(min = 1, max = 1000))]
    pub width: u32,
    /// Rows.
    #[schemars(range(min = 1, max = 1000))]
    pub height: u32,
    /// The seed that draws the board.
    pub board_seed: u32,
    /// Turns of a game, and so genes of a genome.
    #[schemars(range(min = 1, max = 10_000))]
    pub turns: u32,
}

impl Default for Maze {
    fn default() -> Self {
        Self { width: 10, height: 10, board_seed: 0, turns: 20 }
    }
}

impl Maze {
    /// The problem, if there is such a board.
    pub(crate) fn problem(&self) -> Result<MazeWalk, ProblemError> {
        let refused = |error: &dyn std::fmt::Display| ProblemError::new("problem", error);
        let turns = Turns::new(self.turns as usize).map_err(|error| refused(&error))?;
        let (width, height) = (self.width as usize, self.height as usize);
        let board = Board::generate(width, height, self.board_seed).map_err(|error| refused(&error))?;
        Ok(MazeWalk { turns: turns.count(), evaluator: Evaluator::new(&board), spare: Mutex::default() })
    }
}

/// The direction of a gene, as people write it: up, down, left, right.
pub(crate) fn letter(gene: f64) -> char {
    *['U', 'D', 'L', 'R'].get(gene as usize).unwrap_or(&'?')
}

/// The maze as a problem to evolve, with repair r1: a step into the edge becomes the nearest possible direction, and
/// the gene is rewritten.
pub(crate) struct MazeWalk {
    turns: usize,
    evaluator: Evaluator,
    /// An evaluator marks cells as it walks, so each thread needs one of its own; they are used again.
    spare: Mutex<Vec<Evaluator>>,
}

impl MazeWalk {
    fn judge_chunk(&self, chunk: Chunk<'_, u8>) {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut evaluator = spare().pop().unwrap_or_else(|| self.evaluator.clone());
        let stride = chunk.stride();
        let Chunk { rows, fitness, .. } = chunk;
        let mut scores = vec![0; fitness.len()];
        evaluator.score_rows(rows, stride, self.turns, &mut scores);
        for (fitness, score) in fitness.iter_mut().zip(scores) {
            *fitness = f64::from(score);
        }
        spare().push(evaluator);
    }
}

impl Problem for MazeWalk {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.turns, domain: Alphabet(4) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_chunks(judging.fresh.clone(), self.cost(), |chunk| self.judge_chunk(chunk))
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 4 + 3 * self.turns as u64 / 2 }
    }
}
