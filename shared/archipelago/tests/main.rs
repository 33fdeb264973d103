//! The islands of a run, in any order of events.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod any_order;
mod counted;
mod delivered;
mod progress;
