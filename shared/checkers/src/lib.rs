//! English checkers: rules, search and the neural evaluator.

mod moves;
mod perft;
mod position;
mod random;
mod squares;
mod evaluator;
mod fen;
mod network;
mod notation;
mod score;
mod search;

pub use evaluator::{Evaluator, Material, RandomOpinion};
pub use fen::{FenError, FenReason};
pub use moves::Move;
pub use network::{Network, NetworkError, NetworkEvaluator, NodeKind, Path};
pub use score::Score;
pub use search::{Found, Limits, Line, MAX_DEPTH, Reuse, Search};
pub use notation::MoveError;
pub use perft::{perft, perft_merged};
pub use position::{InvalidPosition, Piece, Position, Side};
pub use squares::{Square, Squares};
