//! What a game asks for: the most points, or one of the other rules that number mazes are played by.

use crate::board::{Board, Cell, MAX_POINTS, MAX_TURNS, Turns};
use crate::direction::Direction;
use crate::solution::{BlockedMove, Solution};
use thiserror::Error;

/// The highest sum that can be asked for: the most points, in every turn.
pub const MAX_SUM: u32 = MAX_POINTS as u32 * MAX_TURNS as u32;

/// What a game asks for. Cells worth 0 hold no number: they can be crossed at any time, as can cells whose number has
/// been taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Goal {
    /// Collect as many points as possible in all turns. The score is the points.
    #[default]
    Points,
    /// Take numbers in a given order, in the fewest moves. Taking any other number ends the path. The score is the
    /// numbers taken, and 1 for each turn that is left after the last of them.
    Order {
        /// The numbers in their order, each from 1 to 9.
        #[cfg_attr(
            feature = "schema",
            schemars(length(min = 1, max = 10_000), inner(range(min = 1, max = 9)))
        )]
        numbers: Vec<u8>,
    },
    /// Collect an exact sum, in the fewest moves. Exceeding it ends the path. The score is the points, and 1 for each
    /// turn that is left when the sum is reached.
    Sum {
        /// The points to collect.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 90_000)))]
        sum: u32,
    },
    /// Take every number that can be reached, in the fewest moves. The score is the numbers taken, and 1 for each turn
    /// that is left after the last of them.
    All,
}

/// Why a goal cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GoalError {
    /// No numbers, or more than a game has turns.
    #[error("expected an order of 1 to {MAX_TURNS} numbers, found `{0}`")]
    Length(usize),
    /// Not a number that a cell can hold.
    #[error("expected numbers from 1 to {MAX_POINTS} in the order, found `{0}`")]
    Number(u8),
    /// A sum that no walk can have.
    #[error("expected a sum from 1 to {MAX_SUM}, found `{0}`")]
    Sum(u32),
    /// A text that names no goal.
    #[error("expected `points`, `all`, `sum:30` or `order:1,2,3,4`, found `{0}`")]
    Text(String),
}

impl Goal {
    /// Whether this is the plain game, for which the fast evaluator and the bounds are made.
    pub fn is_points(&self) -> bool {
        *self == Self::Points
    }

    /// Checks the numbers of a goal.
    ///
    /// # Errors
    /// When the order is empty, too long or holds something other than 1 to 9, or the sum is out of range.
    pub fn check(&self) -> Result<(), GoalError> {
        match self {
            Self::Order { numbers } if !(1..=MAX_TURNS).contains(&numbers.len()) => {
                Err(GoalError::Length(numbers.len()))
            }
            Self::Order { numbers } => match numbers.iter().find(|number| !(1..=MAX_POINTS).contains(number))
            {
                Some(&number) => Err(GoalError::Number(number)),
                None => Ok(()),
            },
            Self::Sum { sum } if !(1..=MAX_SUM).contains(sum) => Err(GoalError::Sum(*sum)),
            Self::Points | Self::Sum { .. } | Self::All => Ok(()),
        }
    }

    /// The board that path operators plan on: they collect points, so the points are what the goal counts. Numbers
    /// outside an order are walls there, unless they would enclose the start.
    #[must_use]
    pub fn planning_board(&self, board: &Board) -> Board {
        let change = |points: u8| match self {
            Self::Points | Self::Sum { .. } => Some(points),
            Self::All => Some(points.min(1)),
            Self::Order { numbers } if points == 0 || numbers.contains(&points) => Some(points.min(1)),
            Self::Order { .. } => None,
        };
        let cells: Vec<Option<u8>> =
            (0..board.cells() as Cell).map(|cell| board.points(cell).and_then(change)).collect();
        let start = board.place(board.start());
        Board::new(board.width(), board.height(), start, &cells).unwrap_or_else(|_| board.clone())
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Points => formatter.write_str("points"),
            Self::Order { numbers } => {
                let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
                write!(formatter, "order:{}", numbers.join(","))
            }
            Self::Sum { sum } => write!(formatter, "sum:{sum}"),
            Self::All => formatter.write_str("all"),
        }
    }
}

impl std::str::FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let unknown = || GoalError::Text(text.to_owned());
        let goal = match text.split_once(':') {
            None if text == "points" => Self::Points,
            None if text == "all" => Self::All,
            Some(("sum", sum)) => Self::Sum { sum: sum.parse().map_err(|_| unknown())? },
            Some(("order", numbers)) => {
                let numbers: Result<Vec<u8>, _> = numbers.split(',').map(str::parse).collect();
                Self::Order { numbers: numbers.map_err(|_| unknown())? }
            }
            _ => return Err(unknown()),
        };
        goal.check().map(|()| goal)
    }
}

/// A goal on one board in a game of this number of turns.
#[derive(Clone, Debug)]
pub struct Objective {
    goal: Goal,
    turns: u32,
    needed: u32,
}

impl Objective {
    /// Prepares a goal.
    ///
    /// # Errors
    /// When [`Goal::check`] fails.
    pub fn new(goal: &Goal, board: &Board, turns: Turns) -> Result<Self, GoalError> {
        goal.check()?;
        let needed = match goal {
            Goal::Points => u32::MAX,
            Goal::Order { numbers } => numbers.len() as u32,
            Goal::Sum { sum } => *sum,
            Goal::All => reachable(board).filter(|&cell| board.points(cell) != Some(0)).count() as u32,
        };
        Ok(Self { goal: goal.clone(), turns: turns.count() as u32, needed })
    }

    /// The goal.
    pub fn goal(&self) -> &Goal {
        &self.goal
    }

    /// The numbers or points after which the goal is reached; `None` where more is always better.
    pub fn needed(&self) -> Option<u32> {
        (!self.goal.is_points()).then_some(self.needed)
    }

    /// What a number that has not been taken adds, if it may be taken.
    #[inline]
    pub(crate) fn worth(&self, points: u8) -> u8 {
        match self.goal {
            Goal::Points | Goal::Sum { .. } => points,
            Goal::Order { .. } | Goal::All => points.min(1),
        }
    }

    /// Whether a number may be taken after `progress`, without ending the walk.
    #[inline]
    pub(crate) fn allows(&self, progress: u32, points: u8) -> bool {
        match &self.goal {
            Goal::Points | Goal::All => true,
            Goal::Sum { sum } => progress + u32::from(points) <= *sum,
            Goal::Order { numbers } => points == 0 || numbers.get(progress as usize) == Some(&points),
        }
    }

    #[inline]
    pub(crate) fn is_reached(&self, progress: u32) -> bool {
        progress == self.needed
    }

    /// The score of a walk that came to `progress` after `moves` moves.
    pub(crate) fn score(&self, progress: u32, moves: usize) -> u32 {
        let saved = if self.is_reached(progress) { self.turns.saturating_sub(moves as u32) } else { 0 };
        progress + saved
    }

    /// The number of turns of the game.
    pub(crate) fn turns(&self) -> usize {
        self.turns as usize
    }

    /// Judges a path by the rules; moves beyond the end of the game do not count.
    ///
    /// # Errors
    /// At the first move that leads into a wall or off the board, if the walk comes to it.
    pub fn judge(&self, board: &Board, path: &[Direction]) -> Result<Outcome, BlockedMove> {
        let mut taken = vec![false; board.cells()];
        let mut outcome =
            Outcome { progress: 0, moves: 0, reached: self.is_reached(0), failed: false, score: 0 };
        let mut cell = board.start();
        for (turn, &direction) in path.iter().enumerate().take(self.turns()) {
            if outcome.reached {
                break;
            }
            let blocked = BlockedMove { turn, direction, place: board.place(cell) };
            cell = board.step(cell, direction).ok_or(blocked)?;
            if std::mem::replace(&mut taken[usize::from(cell)], true) {
                continue;
            }
            let points = board.points(cell).unwrap_or(0);
            if !self.allows(outcome.progress, points) {
                outcome.failed = true;
                break;
            }
            if points > 0 {
                outcome.progress += u32::from(self.worth(points));
                outcome.moves = turn + 1;
                outcome.reached = self.is_reached(outcome.progress);
            }
        }
        outcome.score = self.score(outcome.progress, outcome.moves);
        Ok(outcome)
    }

    /// A path as an answer, without the moves after the last number that counts.
    pub(crate) fn solution(&self, board: &Board, mut path: Vec<Direction>, evaluations: u64) -> Solution {
        let outcome = self.judge(board, &path).expect("solvers make possible moves");
        if !self.goal.is_points() {
            path.truncate(outcome.moves);
        }
        Solution { path, score: outcome.score, bound: None, evaluations }
    }
}

/// What a path came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Points, or numbers in the order or of all.
    pub progress: u32,
    /// Moves up to the last number that counts.
    pub moves: usize,
    /// Whether the goal is reached; never where more is always better.
    pub reached: bool,
    /// Whether the walk ended because it took a wrong number or exceeded the sum.
    pub failed: bool,
    /// The score: the progress, and the turns left if the goal is reached.
    pub score: u32,
}

/// The cells that the character can come to, the start included.
fn reachable(board: &Board) -> impl Iterator<Item = Cell> {
    let mut seen = vec![false; board.cells()];
    let mut cells = vec![board.start()];
    seen[usize::from(board.start())] = true;
    let mut next = 0;
    while let Some(&cell) = cells.get(next) {
        for (_, beside) in board.moves(cell) {
            if !std::mem::replace(&mut seen[usize::from(beside)], true) {
                cells.push(beside);
            }
        }
        next += 1;
    }
    cells.into_iter()
}
