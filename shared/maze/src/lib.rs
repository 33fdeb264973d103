//! The number-collecting maze and its solvers.
//!
//! A character starts on a board of cells worth 0 to 9 points. Each turn it must move one cell up, down, left
//! or right and takes that cell's points, once; after a given number of turns the sum counts. Other [`Goal`]s ask for
//! numbers in an order, for an exact sum, or for all numbers in the fewest moves.
//!
//! The crate holds what such games need: [`Board`]s, the [`Evaluator`] that scores genomes, the solvers
//! [`random`], [`greedy`], beam and [`Chokudai`] search, the [`Exact`] one that proves its answers, and with
//! [`Router`] the operators of a genetic algorithm that knows what a path is. It runs no genetic algorithm
//! itself, and it draws nothing at random: that comes from a seed or from a source that the caller passes in,
//! so equal calls give equal answers everywhere.
//!
//! ```
//! use maze::{Board, Evaluator, Exact, Turns, greedy};
//!
//! let board = Board::generate(10, 10, 0)?;
//! let turns = Turns::new(20)?;
//! let quick = greedy(&board, turns);
//! let best = Exact::default().solve(&board, turns)?;
//! assert_eq!((quick.score, best.score, best.is_proved()), (124, 141, true));
//!
//! let mut genes: Vec<u8> = best.path.iter().map(|way| way.gene()).collect();
//! assert_eq!(Evaluator::new(&board).score(&mut genes), 141);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod board;
mod chokudai;
mod direction;
mod drawing;
mod evaluator;
mod exact;
mod exact_goal;
mod goal;
mod heap;
mod mersenne;
mod notation;
mod relaxation;
mod router;
mod segment;
mod simple;
mod solution;
mod taken;

pub use board::{Board, BoardError, Cell, MAX_CELLS, MAX_POINTS, MAX_TURNS, Place, Turns, TurnsError};
pub use chokudai::{Chokudai, Horizon, MAX_SEARCH_MEMORY, SearchError};
pub use direction::Direction;
pub use evaluator::Evaluator;
pub use exact::Exact;
pub use goal::{Goal, GoalError, MAX_SUM, Objective, Outcome};
pub use mersenne::MersenneTwister;
pub use notation::{MAX_BOARD_BYTES, NotationError};
pub use relaxation::{BoundError, MAX_BOUND_TURNS};
pub use router::{Guide, Meeting, Router};
pub use segment::Planning;
pub use simple::{
    greedy, greedy_for, greedy_for_with_random_ties, greedy_with_random_ties, random, random_for,
};
pub use solution::{BlockedMove, Solution};
