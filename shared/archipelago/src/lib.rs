//! The islands of a run as a pure state machine: which epoch may run next, what it is given, and when the run ends.
//!
//! The coordinator drives an [`Archipelago`] with epochs that others compute; [`solo::evolve`] drives one to its end
//! on the spot, which is how a worker computes a whole cell of a sweep. Sweeps and tournaments are plans of numbered
//! [`cell`]s; [`CellProgress`] says which of them are done, wanted, and count. Nothing here reads a clock, stores anything or
//! knows where something is computed.

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod archipelago;
pub mod cell;
mod end;
pub mod job;
mod progress;
pub mod schedule;
pub mod solo;

pub use archipelago::{Archipelago, Completion, CompletionError, IslandHistory, LeftBehind, Mark, Remains};
pub use end::{End, Reason};
pub use progress::CellProgress;
