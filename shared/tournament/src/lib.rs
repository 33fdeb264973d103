//! Games of checkers in pairs with colours swapped, and what they prove.
//!
//! Two games of a pair start from the same opening, so whatever the opening favours evens out; what is uncertain about a
//! score is therefore judged by pairs, not by games. The crate deliberately knows nothing of stores or clusters: a
//! pair is a pure function of its players, its opening and its seed.
//!
//! ```
//! use checkers::{DrawRules, PlayerSpec};
//! use tournament::{Match, deck_pairs};
//!
//! let players = [PlayerSpec::Material { depth: 2 }, PlayerSpec::Random];
//! let duel = Match { players, rules: DrawRules::default(), seed: 1 };
//! let tally = duel.play(&deck_pairs(4, 1));
//! assert!(tally.score() > 0.9);
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod duel;
mod tally;

pub use duel::{Match, Pair, PlayedGame, deck_pairs};
pub use tally::{Interval, Tally};
