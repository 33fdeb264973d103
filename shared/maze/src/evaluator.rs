//! What a genome collects: the innermost loop of every genetic algorithm over this game.

use crate::board::{Board, Cell, MAX_CELLS};
use crate::direction::Direction;
use crate::goal::Objective;

/// Genomes walked side by side: one alone would wait for each look-up of its next cell.
const LANES: usize = 4;
const TABLE: usize = MAX_CELLS * LANES;
/// How far the marks of a cell lie behind the place that its steps have in their table. Both tables often begin at the same place
/// of a page, and a processor that compares only the lower bits of addresses would have each step wait for the mark before it.
const APART: usize = 64;

/// What one gene does in one cell, in one word: the gene as repaired by r1, the points of the next cell, and
/// 4 x that cell.
#[derive(Clone, Copy, Debug)]
struct Step(u32);

impl Step {
    fn new(gene: u8, points: u8, cell: Cell) -> Self {
        Self(u32::from(gene) + (u32::from(points) << 8) + ((u32::from(cell) * LANES as u32) << 16))
    }

    #[inline]
    fn gene(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    fn points(self) -> u32 {
        (self.0 >> 8) & 0xff
    }

    #[inline]
    fn row(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// Scores genomes on one board. A genome has a gene for each turn: 0 to 3 for up, down, left and right; only the two lowest
/// bits count.
///
/// It keeps the marks of the cells already taken from one call to the next, so every thread has its own (half
/// a megabyte).
///
/// ```
/// use maze::{Board, Evaluator};
///
/// let board = Board::generate(10, 10, 0)?;
/// let mut evaluator = Evaluator::new(&board);
/// let mut genes = [3, 3, 3, 3, 3];
/// let score = evaluator.score(&mut genes);
/// assert_eq!(evaluator.score_strictly(&genes), Some(score));
/// # Ok::<(), maze::BoardError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluator {
    /// 4 x the cell of the start: where the character stands is always such a row of the tables.
    start: usize,
    /// For row + gene.
    steps: Box<[Step; TABLE]>,
    /// For row + lane, [`APART`]: the last walk that took the cell's points.
    marks: Box<[u32; TABLE + APART]>,
    walk: u32,
}

impl Evaluator {
    /// Prepares the tables for a board.
    pub fn new(board: &Board) -> Self {
        let start = usize::from(board.start()) * LANES;
        let mut steps = boxed(Step::new(0, 0, 0));
        for cell in 0..board.cells() as Cell {
            for wanted in Direction::ALL {
                let (way, next) = nearest_move(board, cell, wanted);
                let points = board.points(next).unwrap_or(0);
                steps[usize::from(cell) * LANES + usize::from(wanted.gene())] =
                    Step::new(way.gene(), points, next);
            }
        }
        Self { start, steps, marks: boxed(0), walk: 0 }
    }

    #[inline]
    fn step(&self, row: usize, gene: u8) -> Step {
        self.steps[(row | usize::from(gene & 3)) % TABLE]
    }

    #[inline]
    fn mark(&mut self, row: usize, lane: usize) -> &mut u32 {
        &mut self.marks[(row | lane) % TABLE + APART]
    }

    /// The points that `genes` collect, with repair r1: a gene that leads nowhere is rewritten to the nearest
    /// possible direction by number, the lower of two equally near.
    pub fn score(&mut self, genes: &mut [u8]) -> u32 {
        self.walk_together([genes])[0]
    }

    /// The points that `genes` collect, with repair r2: `None` if any of them leads nowhere.
    pub fn score_strictly(&mut self, genes: &[u8]) -> Option<u32> {
        let walk = self.next_walk();
        let (mut row, mut score) = (self.start, 0);
        for &gene in genes {
            let step = self.step(row, gene);
            if step.gene() != gene & 3 {
                return None;
            }
            row = step.row();
            score += take(self.mark(row, 0), walk, step.points());
        }
        Some(score)
    }

    /// The score of `genes` for an objective of this board, with repair r1; genes after the end of the walk are
    /// repaired too.
    pub fn score_for(&mut self, genes: &mut [u8], objective: &Objective) -> u32 {
        let walk = self.next_walk();
        let (mut row, mut progress, mut moves) = (self.start, 0, 0);
        let mut is_over = objective.is_reached(0);
        for (turn, gene) in genes.iter_mut().enumerate() {
            let step = self.step(row, *gene);
            *gene = step.gene();
            row = step.row();
            if !is_over {
                let points = take(self.mark(row, 0), walk, step.points()) as u8;
                is_over = !objective.allows(progress, points);
                if points > 0 && !is_over {
                    progress += u32::from(objective.worth(points));
                    moves = turn + 1;
                    is_over = objective.is_reached(progress);
                }
            }
        }
        objective.score(progress, moves)
    }

    /// The score of `genes` for an objective of this board, with repair r2: `None` if a gene leads nowhere before the
    /// walk ends.
    pub fn score_strictly_for(&mut self, genes: &[u8], objective: &Objective) -> Option<u32> {
        let walk = self.next_walk();
        let (mut row, mut progress, mut moves) = (self.start, 0, 0);
        for (turn, &gene) in genes.iter().enumerate() {
            if objective.is_reached(progress) {
                break;
            }
            let step = self.step(row, gene);
            if step.gene() != gene & 3 {
                return None;
            }
            row = step.row();
            let points = take(self.mark(row, 0), walk, step.points()) as u8;
            if !objective.allows(progress, points) {
                break;
            }
            if points > 0 {
                progress += u32::from(objective.worth(points));
                moves = turn + 1;
            }
        }
        Some(objective.score(progress, moves))
    }

    /// Repairs `genes` by r1, and writes down the cells they lead through, the start first.
    pub(crate) fn trace(&self, genes: &mut [u8], cells: &mut Vec<Cell>) {
        let mut row = self.start;
        cells.clear();
        cells.push((row / LANES) as Cell);
        for gene in genes {
            let step = self.step(row, *gene);
            *gene = step.gene();
            row = step.row();
            cells.push((row / LANES) as Cell);
        }
    }

    /// Repair r3: every gene that leads nowhere is replaced by a random possible direction.
    pub fn repair_randomly(&self, genes: &mut [u8], mut random: impl FnMut() -> u64) {
        let mut row = self.start;
        for gene in genes {
            *gene &= 3;
            if !self.is_possible(row, *gene) {
                *gene = self.random_gene(row, random());
            }
            row = self.step(row, *gene).row();
        }
    }

    fn is_possible(&self, row: usize, gene: u8) -> bool {
        self.step(row, gene).gene() == gene
    }

    fn random_gene(&self, row: usize, random: u64) -> u8 {
        let choices = (0..4).filter(|&gene| self.is_possible(row, gene));
        let chosen = (u128::from(random) * choices.clone().count() as u128) >> 64;
        choices.clone().nth(chosen as usize).expect("a cell that was entered can be left")
    }

    /// Scores a whole population with repair r1, several genomes at a time: each takes the first `turns`
    /// bytes of a row of `stride` bytes. `scores` receives one score for each row.
    ///
    /// # Panics
    /// When `turns` exceeds `stride`, or the rows are fewer than the scores.
    pub fn score_rows(&mut self, rows: &mut [u8], stride: usize, turns: usize, scores: &mut [u32]) {
        assert!(turns <= stride, "a row of {stride} bytes can't hold {turns} genes");
        assert!(rows.len() >= stride * scores.len(), "expected a row of genes for each score");
        if stride == 0 {
            return scores.fill(0);
        }
        let together = scores.len() - scores.len() % LANES;
        let (rows, rest) = rows.split_at_mut(together * stride);
        let (scores, rest_scores) = scores.split_at_mut(together);
        for (group, scores) in rows.chunks_exact_mut(stride * LANES).zip(scores.chunks_exact_mut(LANES)) {
            let (first, group) = group.split_at_mut(stride);
            let (second, group) = group.split_at_mut(stride);
            let (third, fourth) = group.split_at_mut(stride);
            let lanes = [first, second, third, fourth].map(|row| &mut row[..turns]);
            scores.copy_from_slice(&self.walk_together(lanes));
        }
        for (row, score) in rest.chunks_exact_mut(stride).zip(rest_scores) {
            *score = self.score(&mut row[..turns]);
        }
    }

    #[inline]
    #[expect(clippy::needless_range_loop, reason = "the inner loop goes across the lanes")]
    fn walk_together<const N: usize>(&mut self, lanes: [&mut [u8]; N]) -> [u32; N] {
        let walk = self.next_walk();
        let turns = lanes[0].len();
        let lanes = lanes.map(|genes| &mut genes[..turns]);
        let (mut rows, mut scores) = ([self.start; N], [0; N]);
        for turn in 0..turns {
            for lane in 0..N {
                let gene = &mut lanes[lane][turn];
                let step = self.step(rows[lane], *gene);
                *gene = step.gene();
                rows[lane] = step.row();
                scores[lane] += take(self.mark(rows[lane], lane), walk, step.points());
            }
        }
        scores
    }

    /// The mark of a new walk; once in 2^32 of them all marks start afresh.
    fn next_walk(&mut self) -> u32 {
        self.walk = self.walk.wrapping_add(1);
        if self.walk == 0 {
            self.marks.fill(0);
            self.walk = 1;
        }
        self.walk
    }
}

/// The points of a cell, unless this walk has already taken them.
#[inline]
fn take(mark: &mut u32, walk: u32, points: u32) -> u32 {
    let taken = std::mem::replace(mark, walk) == walk;
    if taken { 0 } else { points }
}

/// What repair r1 makes of a direction; a cell that cannot be entered or left leads to itself.
fn nearest_move(board: &Board, cell: Cell, wanted: Direction) -> (Direction, Cell) {
    let possible = |way: Direction| board.step(cell, way).map(|next| (way, next));
    wanted.nearest().into_iter().find_map(possible).unwrap_or((wanted, cell))
}

fn boxed<T: Copy + std::fmt::Debug, const N: usize>(value: T) -> Box<[T; N]> {
    vec![value; N].into_boxed_slice().try_into().expect("the length is the one asked for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_start_afresh_before_their_numbers_run_out() {
        let board = Board::generate(2, 1, 1).unwrap();
        let points = u32::from(board.points(1 - board.start()).unwrap());
        assert!(points > 0, "the board must tell a taken cell from a free one");
        let mut evaluator = Evaluator::new(&board);
        assert_eq!(evaluator.score(&mut [2, 2]), points, "marked by walk 1");
        evaluator.walk = u32::MAX - 1;
        for _ in 0..3 {
            assert_eq!(evaluator.score(&mut [2, 2]), points);
        }
    }
}
