//! Runs on disk: the journal, what is stored of jobs, and how a run is opened again.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod damaged;
mod durable;
mod jobs;
mod journal;
mod reopen;
mod repair;
