//! Checkers games in colour-swapped pairs, and statistics of their results.
//!
//! Two games of a pair start from the same opening, so whatever the opening favours evens out; what is uncertain about a
//! score is therefore judged by pairs, not by games. A [`Match`] plays pairs; a [`Schedule`] says who meets whom, in
//! numbered batches; [`Sprt`] says when enough has been played; a [`CrossTable`] holds what came out, [`Ratings`] what
//! that says of each player, and an [`Encounter`] what it says of two teams. The crate deliberately knows nothing of
//! stores or clusters: a pair between our own players is a pure function of the players, its opening and its seed.
//!
//! ```
//! use checkers::{DrawRules, PlayerSpec};
//! use tournament::{Match, deck_pairs};
//!
//! let players = [PlayerSpec::Material { depth: 2 }, PlayerSpec::Random].map(Into::into);
//! let duel = Match { players, rules: DrawRules::default(), limits: None, seed: 1 };
//! let tally = duel.play(&deck_pairs(4, 1));
//! assert!(tally.score() > 0.9);
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod contestant;
mod cross_table;
mod duel;
mod encounter;
mod game_runner;
mod matrix;
mod ratings;
mod record;
mod schedule;
mod sprt;
mod strength;
mod student;
mod tally;

pub use contestant::{Contestant, EngineCommand};
pub use cross_table::CrossTable;
pub use duel::{Match, Pair, deck_pairs};
pub use encounter::Encounter;
pub use game_runner::GameRunner;
pub use ratings::{Rating, Ratings};
pub use record::{Forfeit, GameEnding, GameRecord, PlayedPair, Points, RecordError};
pub use schedule::{Batch, Format, Race, Schedule};
pub use sprt::{Sprt, SprtVerdict};
pub use strength::{
    KeptChampion, LADDER_PIECES, Rung, RungKind, against_rung, difference, elo_of, kept_champions, ladder,
    material_rungs, performance, playing, privileged,
};
pub use tally::{Interval, Tally};
