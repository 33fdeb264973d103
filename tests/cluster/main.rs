//! Whole clusters of real processes: whatever happens to them, a run has one digest.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod ceilings;
mod commands;
mod damaged_store;
mod dashboard;
mod docs;
mod exit_codes;
mod faults;
mod first_hour;
mod floods;
mod games;
mod lifecycle;
mod manifests;
mod maze_study;
#[path = "../support/mutate.rs"]
mod mutate;
mod one_writer;
mod process;
mod proxy;
mod report;
mod rpc_fuzz;
#[path = "../support/s3.rs"]
mod s3;
mod security;
mod silent_store;
mod soak;
mod standby;
mod state_in_s3;
mod succession;
#[path = "../support/terminal.rs"]
mod terminal;
mod traces;
mod wire;
