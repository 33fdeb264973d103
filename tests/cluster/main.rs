//! Whole clusters of real processes: whatever happens to them, a run has one digest.

mod bad_input;
mod commands;
mod docs;
mod faults;
mod process;
mod proxy;
mod wire;
