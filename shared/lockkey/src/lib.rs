//! Lock-and-key levels and their difficulty by path finding.

mod blueprint;
mod difficulty;
mod file;
mod grid;
mod level;
mod maze;
mod placement;
mod proof;
mod random;
mod reach;
mod search;
mod text;

pub use blueprint::{Blueprint, BlueprintError, Builder};
pub use difficulty::{Difficulty, Leg, Method, Rater, Survey};
pub use file::{FORMAT, FileError};
pub use grid::{Cell, Direction, Grid};
pub use level::{Colour, Fault, Fixture, Level, LevelError};
pub use maze::Maze;
pub use proof::Verdict;
pub use random::Stream;
pub use text::TextError;
