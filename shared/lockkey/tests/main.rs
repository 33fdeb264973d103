//! Lock-and-key levels, against a reference of their own.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod levels;
mod reference;
