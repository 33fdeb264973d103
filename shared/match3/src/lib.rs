//! Match-3 boards, their rules and simulated players.

mod board;
mod engine;
mod game;
mod lanes;
mod planes;
mod player;
mod random;
mod rating;
mod rules;
mod vector;
mod word;

pub use board::{Board, BoardError};
pub use game::{Direction, Game, Move, Outcome, Play};
pub use player::{Player, PlayerError};
pub use random::Stream;
pub use rating::{RateError, Rating, Sampling, Tally, probability_of_passing};
pub use rules::{InitialMatches, Rules, RulesError, Score};
