//! Documents against a schema that `schemars` derived: golden reports, and laws over any document.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod golden;
mod laws;
mod reading;
mod rules;
mod shapes;
mod types;
