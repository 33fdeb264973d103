//! The number-collecting maze and its solvers.
//!
//! A character starts on a board of cells worth 0 to 9 points. Each turn it must move one cell up, down, left or right
//! and takes that cell's points, once; after a given number of turns the sum counts.
//!
//! The crate holds boards, the evaluation of genomes, and the classic solvers. It draws nothing at random by itself:
//! whatever is random comes from a seed or from a source that the caller passes in. It runs no genetic algorithm.
//!
//! ```
//! use maze::{Board, Evaluator};
//!
//! let board = Board::generate(10, 10, 0)?;
//! let mut genes = [2, 0, 2, 0, 2];
//! let score = Evaluator::new(&board).score(&mut genes);
//! assert!(score > 0);
//! # Ok::<(), maze::BoardError>(())
//! ```

mod board;
mod chokudai;
mod direction;
mod drawing;
mod evaluator;
mod exact;
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
pub use mersenne::MersenneTwister;
pub use notation::{MAX_BOARD_BYTES, NotationError};
pub use relaxation::{BoundError, MAX_BOUND_TURNS};
pub use router::{Guide, Meeting, Router};
pub use segment::Planning;
pub use simple::{greedy, greedy_with_random_ties, random};
pub use solution::{BlockedMove, Solution};
