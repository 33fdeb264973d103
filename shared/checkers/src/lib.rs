//! English checkers: rules, search and the neural evaluator.

mod moves;
mod perft;
mod position;
mod random;
mod squares;
mod fen;

pub use moves::Move;
pub use perft::{perft, perft_merged};
pub use position::{InvalidPosition, Piece, Position, Side};
pub use squares::{Square, Squares};
