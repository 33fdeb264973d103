//! The number maze: boards, solvers, operators, and what was published.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod boards;
mod checker;
mod evaluator;
mod goals;
mod operators;
mod published;
mod random_boards;
mod solvers;
