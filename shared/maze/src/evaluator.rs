//! What a genome collects: the innermost loop of every genetic algorithm over this game.

use crate::board::{Board, Cell, MAX_CELLS};
use crate::direction::Direction;

/// Genomes walked side by side: one alone would wait for each look-up of its next cell.
const LANES: usize = 4;
const TABLE: usize = MAX_CELLS * LANES;

/// Points take the low byte of a word, the number of the walk that took them last the rest.
const WALK: u32 = 1 << 8;

/// Scores genomes on one board: a gene for each turn, 0 to 3 for up, down, left and right, of which only the two lowest bits count.
///
/// It keeps the marks of the cells already taken from one call to the next, so every thread has its own.
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
    start: u16,
    /// For 4 x cell + gene: 4 x the next cell + the gene as repaired by r1.
    next: Box<[u16; TABLE]>,
    /// For 4 x cell + gene: whether the gene had to be repaired.
    blocked: Box<[bool; TABLE]>,
    /// For 4 x cell + lane: points, and the last walk that took them.
    marks: Box<[u32; TABLE]>,
    walk: u32,
}

impl Evaluator {
    /// Prepares the tables for a board.
    pub fn new(board: &Board) -> Self {
        let mut evaluator = Self {
            start: board.start() * LANES as u16,
            next: boxed(0),
            blocked: boxed(false),
            marks: boxed(0),
            walk: 0,
        };
        for cell in 0..board.cells() as Cell {
            evaluator.enter(board, cell);
        }
        evaluator
    }

    fn enter(&mut self, board: &Board, cell: Cell) {
        let row = usize::from(cell) * LANES;
        let points = u32::from(board.points(cell).unwrap_or(0));
        self.marks[row..row + LANES].fill(points);
        for wanted in Direction::ALL {
            let index = row + usize::from(wanted.gene());
            let (way, next) = nearest_move(board, cell, wanted);
            self.next[index] = next * LANES as u16 + u16::from(way.gene());
            self.blocked[index] = way != wanted;
        }
    }

    /// The points that `genes` collect, with repair r1: a gene that leads nowhere is rewritten to the nearest
    /// possible direction by number, the lower of two equally near.
    pub fn score(&mut self, genes: &mut [u8]) -> u32 {
        self.walk_together([genes])[0]
    }

    /// The points that `genes` collect, with repair r2: `None` if any of them leads nowhere.
    pub fn score_strictly(&mut self, genes: &[u8]) -> Option<u32> {
        let stamp = self.next_walk();
        let (mut at, mut score) = (self.start, 0);
        for gene in genes {
            let index = usize::from(at | u16::from(gene & 3));
            if self.blocked[index] {
                return None;
            }
            at = self.next[index] & !3;
            score += take(&mut self.marks[usize::from(at)], stamp);
        }
        Some(score)
    }

    /// Repair r3: every gene that leads nowhere is replaced by a random possible direction.
    pub fn repair_randomly(&self, genes: &mut [u8], mut random: impl FnMut() -> u64) {
        let mut at = self.start;
        for gene in genes {
            *gene &= 3;
            if self.blocked[usize::from(at | u16::from(*gene))] {
                *gene = self.random_gene(at, random());
            }
            at = self.next[usize::from(at | u16::from(*gene))] & !3;
        }
    }

    fn random_gene(&self, at: u16, random: u64) -> u8 {
        let possible = |gene: &u8| !self.blocked[usize::from(at | u16::from(*gene))];
        let choices = (0..4).filter(possible).count() as u64;
        let chosen = (u128::from(random) * u128::from(choices)) >> 64;
        (0..4).filter(possible).nth(chosen as usize).expect("a cell that was entered can be left")
    }

    /// Scores a whole population with repair r1, several genomes at a time: each takes the first `turns` bytes of a row
    /// of `stride` bytes. `scores` receives one score for each row.
    ///
    /// # Panics
    /// When `turns` exceeds `stride`, or the rows are fewer than the scores.
    pub fn score_rows(&mut self, rows: &mut [u8], stride: usize, turns: usize, scores: &mut [u32]) {
        assert!(turns <= stride, "a row of {stride} bytes can't hold {turns} genes");
        assert!(rows.len() >= stride * scores.len(), "expected a row of genes for each score");
        let mut groups = rows.chunks_exact_mut(stride * LANES);
        let mut together = scores.chunks_exact_mut(LANES);
        for (group, scores) in groups.by_ref().zip(together.by_ref()) {
            let (first, group) = group.split_at_mut(stride);
            let (second, group) = group.split_at_mut(stride);
            let (third, fourth) = group.split_at_mut(stride);
            let lanes = [first, second, third, fourth].map(|row| &mut row[..turns]);
            scores.copy_from_slice(&self.walk_together(lanes));
        }
        let rest = groups.into_remainder().chunks_exact_mut(stride);
        for (row, score) in rest.zip(together.into_remainder()) {
            *score = self.score(&mut row[..turns]);
        }
    }

    #[inline]
    #[expect(clippy::needless_range_loop, reason = "the inner loop goes across the lanes")]
    fn walk_together<const N: usize>(&mut self, mut lanes: [&mut [u8]; N]) -> [u32; N] {
        let stamp = self.next_walk();
        let turns = lanes[0].len();
        lanes = lanes.map(|genes| &mut genes[..turns]);
        let (mut at, mut scores) = ([self.start; N], [0; N]);
        for turn in 0..turns {
            for lane in 0..N {
                let gene = &mut lanes[lane][turn];
                let next = self.next[usize::from(at[lane] | u16::from(*gene & 3))];
                *gene = (next & 3) as u8;
                at[lane] = next & !3;
                scores[lane] += take(&mut self.marks[usize::from(at[lane]) | lane], stamp);
            }
        }
        scores
    }

    /// The mark of a new walk; once in 2^24 of them all marks start afresh.
    fn next_walk(&mut self) -> u32 {
        self.walk = self.walk.wrapping_add(WALK);
        if self.walk == 0 {
            self.marks.iter_mut().for_each(|mark| *mark %= WALK);
            self.walk = WALK;
        }
        self.walk
    }
}

/// The points of a cell, unless this walk has already taken them.
#[inline]
fn take(mark: &mut u32, walk: u32) -> u32 {
    let points = *mark % WALK;
    let fresh = *mark - points != walk;
    *mark = walk | points;
    if fresh { points } else { 0 }
}

/// What repair r1 makes of a direction; a cell that nobody can enter or leave leads to itself.
fn nearest_move(board: &Board, cell: Cell, wanted: Direction) -> (Direction, Cell) {
    let possible = |way: Direction| board.step(cell, way).map(|next| (way, next));
    wanted.nearest().into_iter().find_map(possible).unwrap_or((wanted, cell))
}

fn boxed<T: Copy + std::fmt::Debug>(value: T) -> Box<[T; TABLE]> {
    vec![value; TABLE].into_boxed_slice().try_into().expect("the length is the one asked for")
}
