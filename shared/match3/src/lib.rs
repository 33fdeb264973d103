//! Match-3 boards, their rules and simulated players.
//!
//! A [`Board`] comes from a text, a 32-bit seed or one gene a cell. A [`Game`] is a set of [`Rules`] ready to play:
//! move by move ([`Game::play`]), or whole plays of a simulated [`Player`] by the thousand ([`Game::plays`]), from which
//! follows how likely a board is passed ([`Game::rate`], and [`Game::rate_for`], which spends its plays
//! where they matter). Boards live in bit planes; random plays go side by side through the lanes of a vector.
//!
//! It is deliberately no search for boards: nothing here evolves, and nothing is random but by a seed.
//!
//! ```
//! use match3::{Board, Game, Player, Rules};
//!
//! let game = Game::new(&Rules::default())?;
//! let genes: Vec<u8> = (0..50).map(|cell| cell * 3 + cell / 5).collect();
//! let board = Board::from_genes(game.rules(), &genes)?;
//! let weak = game.rate(&board, Player::Random, 1, 500)?;
//! let strong = game.rate(&board, Player::Mixture { skill: 0.5 }, 1, 50)?;
//! assert!(strong.mean > weak.mean);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod board;
mod engine;
mod file;
mod game;
mod lanes;
mod planes;
mod player;
mod random;
mod rating;
mod rules;
mod svg;
mod tiled;
mod vector;
mod word;

pub use board::{Board, BoardError};
pub use file::{FORMAT, FileError, Level};
pub use game::{Direction, Game, Move, Outcome, Play};
pub use player::{Player, PlayerError};
pub use random::Stream;
pub use rating::{PassedShare, RateError, Rating, Sampling, Tally, Target, probability_of_passing};
pub use rules::{InitialMatches, Rules, RulesError, Score};
pub use svg::histogram_svg;
pub use tiled::{TILE_SHEET, tile_sheet};
