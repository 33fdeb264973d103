//! Match-3: the rules against a reference, and the players.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod players;
mod reference;
