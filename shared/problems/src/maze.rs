//! The number-collecting maze: a genome is a path, its fitness the points that it collects, or what another goal counts.

mod path;

pub use path::PathOperators;

use crate::ProblemError;
use evolution::gene::{Alphabet, Gene, Shape};
use evolution::population::{Chunk, Cost, Population};
use evolution::problem::{Breeder, Founder, Judging, Problem};
use evolution::random::Stream;
use maze::{Board, Chokudai, Evaluator, Exact, Goal, Objective, Solution, Turns};
use path::PathBreeder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Collect as many points as possible on a path of `turns` steps, or reach another goal.
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
    /// The percentage of cells that become walls.
    #[schemars(range(min = 0, max = 90))]
    pub walls: u8,
    /// A board given as text, instead of `width`, `height`, `walls` and `board_seed`: a digit, `#` (wall) or `@` (start) for each cell; or JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// Turns of a game, and so genes of a genome.
    #[schemars(range(min = 1, max = 10_000))]
    pub turns: u32,
    /// What the game asks for. Fitness is its score.
    #[schemars(extend("default" = { "kind": "points" }))]
    #[serde(skip_serializing_if = "Goal::is_points")]
    pub goal: Goal,
    /// How to repair a gene that leads over the edge or into a wall.
    pub repair: Repair,
    /// Where the first paths come from.
    pub founders: Founders,
    /// What makes the children.
    #[schemars(extend("default" = { "kind": "genes" }))]
    #[serde(skip_serializing_if = "Operators::are_blind")]
    pub operators: Operators,
}

impl Default for Maze {
    fn default() -> Self {
        Self {
            width: 10,
            height: 10,
            board_seed: 0,
            walls: 0,
            board: None,
            turns: 20,
            goal: Goal::Points,
            repair: Repair::Nearest,
            founders: Founders::Genes,
            operators: Operators::Genes,
        }
    }
}

/// How to repair a gene that leads over the edge or into a wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// The nearest possible direction by number, the lower of two; the gene is rewritten (r1).
    Nearest,
    /// No repair: the path gets the worst fitness (r2).
    Worst,
    /// A random possible direction; the gene is rewritten (r3).
    Random,
}

/// Where the first paths come from. With a population of one and no generations they are the answer: so the paper's
/// other solvers stand in a sweep beside the genetic algorithms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Founders {
    /// Random genes.
    Genes,
    /// Random possible moves.
    Walks,
    /// The best next cell, move by move.
    Greedy {
        /// The share of the founders that is greedy; the others have random genes.
        #[serde(default = "all")]
        #[schemars(range(min = 0.0, max = 1.0))]
        share: f64,
        /// Whether equally good cells are chosen from at random, rather than the first of right, left, down, up.
        #[serde(default)]
        random_ties: bool,
    },
    /// Beam search.
    Beam {
        /// States expanded in each turn.
        #[serde(default = "two")]
        #[schemars(range(min = 1, max = 10_000))]
        width: u32,
        /// Whether it searches again before every move.
        #[serde(default = "yes")]
        replan: bool,
        /// Whether equal states are entered only once.
        #[serde(default)]
        distinct: bool,
    },
    /// Chokudai search.
    Chokudai {
        /// States expanded in each turn.
        #[serde(default = "two")]
        #[schemars(range(min = 1, max = 10_000))]
        width: u32,
        /// Beams sent out.
        #[serde(default = "two")]
        #[schemars(range(min = 1, max = 10_000))]
        beams: u32,
        /// Whether it searches again before every move.
        #[serde(default = "yes")]
        replan: bool,
        /// Whether equal states are entered only once.
        #[serde(default)]
        distinct: bool,
    },
    /// The optimum, or the best that was found within the solver's limits.
    Exact,
}

fn all() -> f64 {
    1.0
}

fn two() -> u32 {
    2
}

fn yes() -> bool {
    true
}

/// What makes the children.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Operators {
    /// The algorithm's crossover and mutation, which know nothing of paths.
    Genes,
    /// Operators that know what a path is, in place of the algorithm's crossover and mutation.
    Path(PathOperators),
}

impl Operators {
    fn are_blind(&self) -> bool {
        *self == Self::Genes
    }
}

/// A solver that gives one answer for each board.
#[derive(Clone, Copy, Debug)]
enum Solver {
    Search(Chokudai),
    Exact(Exact),
}

impl Founders {
    fn solver(&self) -> Option<Solver> {
        match *self {
            Self::Beam { width, replan, distinct } => {
                Some(Solver::Search(Chokudai { replan, distinct, ..Chokudai::beam(width as usize) }))
            }
            Self::Chokudai { width, beams, replan, distinct } => {
                let (width, beams) = (width as usize, beams as usize);
                Some(Solver::Search(Chokudai { width, beams, replan, distinct, ..Chokudai::default() }))
            }
            Self::Exact => Some(Solver::Exact(Exact::default())),
            Self::Genes | Self::Walks | Self::Greedy { .. } => None,
        }
    }
}

impl Solver {
    /// Whether it could solve the game, without solving it.
    fn check(self, board: &Board, turns: Turns) -> Result<(), ProblemError> {
        let key = "problem.founders";
        match self {
            Self::Search(search) => {
                search.check(board, turns).map_err(|error| ProblemError::new(key, &error))
            }
            Self::Exact(exact) => exact.check(board, turns).map_err(|error| ProblemError::new(key, &error)),
        }
    }

    fn solve(self, board: &Board, turns: Turns, objective: &Objective) -> Solution {
        match self {
            Self::Search(search) => search.solve_for(board, turns, objective).expect("it was checked"),
            Self::Exact(exact) => exact.solve_for(board, turns, objective).expect("it was checked"),
        }
    }
}

impl Maze {
    /// The problem, if there is such a board.
    pub(crate) fn problem(&self) -> Result<MazeWalk, ProblemError> {
        let board = self.board()?;
        let refused = |key: &str, error: &dyn Display| ProblemError::new(key, error);
        let turns = Turns::new(self.turns as usize).map_err(|error| refused("problem.turns", &error))?;
        let objective =
            Objective::new(&self.goal, &board, turns).map_err(|error| refused("problem.goal", &error))?;
        if let Some(solver) = self.founders.solver() {
            solver.check(&board, turns)?;
        }
        let breeder = match self.operators {
            Operators::Genes => None,
            Operators::Path(operators) => Some(
                PathBreeder::new(operators, &self.goal.planning_board(&board), turns)
                    .map_err(|error| refused("problem.operators", &error))?,
            ),
        };
        Ok(MazeWalk {
            evaluator: Evaluator::new(&board),
            board,
            turns,
            objective,
            repair: self.repair,
            founders: self.founders.clone(),
            breeder,
            solved: OnceLock::new(),
            spare: Mutex::default(),
        })
    }

    /// The board.
    pub fn board(&self) -> Result<Board, ProblemError> {
        if let Some(text) = &self.board {
            return Board::read(text).map_err(|error| ProblemError::new("problem.board", &error));
        }
        let (width, height) = (self.width as usize, self.height as usize);
        Board::generate_walled(width, height, self.board_seed, self.walls)
            .map_err(|error| ProblemError::new("problem", &error))
    }
}

fn genes(solution: &Solution) -> Vec<u8> {
    solution.path.iter().map(|direction| direction.gene()).collect()
}

/// Writes a walk; a game that it ends before its last turn is filled up with random genes, which count for nothing.
fn begin_with(walk: &[u8], genome: &mut [u8], stream: &mut Stream) {
    let (head, tail) = genome.split_at_mut(walk.len());
    head.copy_from_slice(walk);
    tail.fill_with(|| u8::random(Alphabet(4), stream));
}

/// The direction of a gene, as people write it: up, down, left, right.
pub(crate) fn letter(gene: f64) -> char {
    *['U', 'D', 'L', 'R'].get(gene as usize).unwrap_or(&'?')
}

/// The maze as a problem to evolve.
pub(crate) struct MazeWalk {
    board: Board,
    turns: Turns,
    objective: Objective,
    repair: Repair,
    founders: Founders,
    breeder: Option<PathBreeder>,
    /// The answer of a solver among the founders, once it is asked for.
    solved: OnceLock<Vec<u8>>,
    evaluator: Evaluator,
    /// An evaluator marks cells as it walks, so each thread needs one of its own; they are used again.
    spare: Mutex<Vec<Evaluator>>,
}

/// Less than any path collects.
const WORST: f64 = -1.0;

impl MazeWalk {
    fn judge_chunk(&self, chunk: Chunk<'_, u8>, judging: &Judging) {
        let spare = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let mut evaluator = spare().pop().unwrap_or_else(|| self.evaluator.clone());
        let (stride, turns) = (chunk.stride(), self.turns.count());
        let Chunk { first, rows, fitness, .. } = chunk;
        if !self.objective.goal().is_points() {
            for (at, (fitness, row)) in fitness.iter_mut().zip(rows.chunks_exact_mut(stride)).enumerate() {
                *fitness = self.judge_row(&mut evaluator, first + at, &mut row[..turns], judging);
            }
            return spare().push(evaluator);
        }
        match self.repair {
            Repair::Nearest => {
                let mut scores = vec![0; fitness.len()];
                evaluator.score_rows(rows, stride, turns, &mut scores);
                for (fitness, score) in fitness.iter_mut().zip(scores) {
                    *fitness = f64::from(score);
                }
            }
            Repair::Worst => {
                for (fitness, row) in fitness.iter_mut().zip(rows.chunks_exact(stride)) {
                    *fitness = evaluator.score_strictly(&row[..turns]).map_or(WORST, f64::from);
                }
            }
            Repair::Random => {
                for (at, (fitness, row)) in fitness.iter_mut().zip(rows.chunks_exact_mut(stride)).enumerate()
                {
                    let mut stream = judging.stream(first + at);
                    evaluator.repair_randomly(&mut row[..turns], || stream.bits());
                    *fitness = f64::from(evaluator.score(&mut row[..turns]));
                }
            }
        }
        spare().push(evaluator);
    }

    /// The fitness of one path for a goal other than points.
    fn judge_row(&self, evaluator: &mut Evaluator, index: usize, genes: &mut [u8], judging: &Judging) -> f64 {
        match self.repair {
            Repair::Nearest => f64::from(evaluator.score_for(genes, &self.objective)),
            Repair::Worst => evaluator.score_strictly_for(genes, &self.objective).map_or(WORST, f64::from),
            Repair::Random => {
                let mut stream = judging.stream(index);
                evaluator.repair_randomly(genes, || stream.bits());
                f64::from(evaluator.score_for(genes, &self.objective))
            }
        }
    }

    /// The first path of a founder for a goal other than points, as far as it goes; nothing for random genes.
    fn found_for(&self, founder: Founder, stream: &mut Stream) -> Option<Solution> {
        let (board, objective) = (&self.board, &self.objective);
        match self.founders {
            Founders::Walks => Some(maze::random_for(board, objective, || stream.bits())),
            Founders::Greedy { share, random_ties: false } if founder.is_among_first(share) => {
                Some(maze::greedy_for(board, objective))
            }
            Founders::Greedy { share, .. } if founder.is_among_first(share) => {
                Some(maze::greedy_for_with_random_ties(board, objective, || stream.bits()))
            }
            _ => None,
        }
    }
}

impl Problem for MazeWalk {
    type Gene = u8;

    fn shape(&self) -> Shape<u8> {
        Shape { length: self.turns.count(), domain: Alphabet(4) }
    }

    fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
        population.judge_chunks(judging.fresh.clone(), self.cost(), |chunk| self.judge_chunk(chunk, judging))
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 4 + 3 * self.turns.count() as u64 / 2 }
    }

    fn breeder(&self) -> Option<&dyn Breeder<u8>> {
        self.breeder.as_ref().map(|breeder| breeder as &dyn Breeder<u8>)
    }

    fn found(&self, founder: Founder, genome: &mut [u8], stream: &mut Stream) {
        let (board, turns) = (&self.board, self.turns);
        if let Some(solver) = self.founders.solver() {
            let solved = self.solved.get_or_init(|| genes(&solver.solve(board, turns, &self.objective)));
            return begin_with(solved, genome, stream);
        }
        if !self.objective.goal().is_points() {
            let walk = self.found_for(founder, stream).map_or(vec![], |walk| genes(&walk));
            return begin_with(&walk, genome, stream);
        }
        let solution = match self.founders {
            Founders::Walks => maze::random(board, turns, || stream.bits()),
            Founders::Greedy { share, random_ties } if founder.is_among_first(share) => {
                if random_ties {
                    maze::greedy_with_random_ties(board, turns, || stream.bits())
                } else {
                    maze::greedy(board, turns)
                }
            }
            _ => return genome.fill_with(|| u8::random(Alphabet(4), stream)),
        };
        genome.copy_from_slice(&genes(&solution));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProblemSpec;
    use evolution::algorithm::{Algorithm, Ga};
    use evolution::epoch::{EpochTask, run};
    use evolution::island::{IslandSetting, Setting};
    use evolution::migration::Policy;

    /// The best of the founding population.
    fn founded(maze: Maze, population: u32) -> f64 {
        let algorithm = Algorithm::Ga(Ga { population, ..Ga::default() });
        let own = IslandSetting { algorithm, policy: Policy::default(), exploits: false };
        let setting = Setting { seed: 1, islands: vec![own], edges: vec![], opponents: vec![] };
        let evolver = ProblemSpec::Maze(maze).evolver(setting).unwrap();
        let task = EpochTask { island: 0, epoch: 0, until: 0, state: None, packets: vec![] };
        run(&*evolver, &task).unwrap().standing.best
    }

    #[test]
    fn solvers_found_populations_with_their_answers() {
        // The published scores of these solvers on the board of seed 0, 20 x 20, 50 turns, and the proved optimum.
        let on =
            |founders| founded(Maze { width: 20, height: 20, turns: 50, founders, ..Maze::default() }, 1);
        assert_eq!(on(Founders::Greedy { share: 1.0, random_ties: false }), 314.0);
        assert_eq!(on(Founders::Beam { width: 2, replan: true, distinct: false }), 334.0);
        assert_eq!(on(Founders::Chokudai { width: 2, beams: 2, replan: true, distinct: false }), 338.0);
        assert_eq!(on(Founders::Exact), 359.0);
    }

    #[test]
    fn repairs_do_what_they_say() {
        let with = |repair| Maze { turns: 10, repair, ..Maze::default() };
        // Of random walks of 30 steps near an edge hardly any is possible as it stands.
        let strict = Maze { turns: 30, repair: Repair::Worst, width: 3, height: 3, ..Maze::default() };
        assert_eq!(founded(strict, 20), WORST);
        assert!(founded(with(Repair::Nearest), 200) > 30.0);
        assert!(founded(with(Repair::Random), 200) > 30.0);
    }

    #[test]
    fn every_goal_is_judged_and_founded() {
        let on = |goal: &str, founders, repair| {
            let board = Some("@12\n#43\n".to_owned());
            let goal = goal.parse().unwrap();
            founded(Maze { board, turns: 6, goal, founders, repair, ..Maze::default() }, 4000)
        };
        for (goal, best) in [("order:1,2,3,4", 6.0), ("sum:6", 9.0), ("all", 6.0)] {
            assert_eq!(on(goal, Founders::Exact, Repair::Nearest), best);
            let beam = Founders::Beam { width: 2, replan: true, distinct: false };
            assert_eq!(on(goal, beam, Repair::Nearest), best);
            for repair in [Repair::Nearest, Repair::Worst, Repair::Random] {
                assert_eq!(on(goal, Founders::Genes, repair), best, "{goal} {repair:?}");
            }
            assert_eq!(on(goal, Founders::Walks, Repair::Nearest), best);
            let greedy = Founders::Greedy { share: 0.5, random_ties: true };
            assert_eq!(on(goal, greedy, Repair::Worst), best);
        }
    }

    #[test]
    fn half_of_the_founders_are_greedy() {
        let founders = Founders::Greedy { share: 0.5, random_ties: true };
        assert!(founded(Maze { turns: 15, founders, ..Maze::default() }, 100) >= 95.0);
    }
}
