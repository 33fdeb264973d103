//! The laws of checkers, its texts, its players and what they know.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod endgame;
mod ensembles;
mod knowledge;
mod network;
mod openings;
mod perft;
mod players;
mod playing;
mod rules;
mod search;
mod support;
mod text;
