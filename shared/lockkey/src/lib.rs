//! Lock-and-key levels: grids of cells whose entry and exit are kept apart by locks, and the difficulty of
//! finding one's way through them.
//!
//! A [`Blueprint`] says what levels to make, a [`Builder`] makes one of any genome (a flat slice of bytes), always
//! solvable, and a [`Rater`] counts the nodes that A* visits on the way from key to key. [`Level::verdict`] proves whether
//! a player can use keys in an order that leaves them locked out. Levels are read and written as text and JSON, and
//! drawn as SVG or exported for the Tiled editor.
//!
//! It is deliberately no search for levels: nothing here evolves, and nothing is random but by a seed.
//!
//! ```
//! use lockkey::{Blueprint, Builder, Level, ProofVerdict};
//!
//! let mut builder = Builder::new(Blueprint { width: 8, height: 8, pairs: 2, ..Blueprint::default() })?;
//! let genes = vec![7; builder.blueprint().genes()];
//! let level = builder.build(&genes)?;
//! let figures = level.difficulty()?;
//! assert!(figures.plain >= figures.steps);
//! assert!(matches!(level.verdict(), ProofVerdict::Safe { .. }));
//! assert_eq!(level.to_string().parse::<Level>()?, *level);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod blueprint;
mod chosen_search;
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
mod svg;
mod text;
mod tiled;

pub use blueprint::{Blueprint, BlueprintError, Builder};
pub use chosen_search::{AStar, Heuristic, Ties};
pub use difficulty::{Difficulty, Leg, Method, Rater, Survey};
pub use file::{FORMAT, FileError};
pub use grid::{Cell, Direction, Grid};
pub use level::{Colour, Fault, Fixture, Level, LevelError};
pub use maze::Maze;
pub use proof::ProofVerdict;
pub use random::Stream;
pub use text::TextError;
pub use tiled::{TILE_SHEET, tile_sheet};
