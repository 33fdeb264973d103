//! Experiment, sweep and study files: parsed, validated, expanded.
//!
//! A file is first a [`document`]: TOML whose values know their lines, checked against the schema of the type that
//! it is to become, so that every mistake in it is told at once. Nothing here runs an experiment.
//!
//! ```
//! use experiment::document::{self, KeyPath};
//!
//! let mut document = document::parse("maze.toml", "[problem]\nturns = 5").expect("it is TOML");
//! let turns: KeyPath = "problem.turns".parse().expect("it is a key path");
//! document.set(&turns, 10.into()).expect("there is a table to set it in");
//! assert_eq!(document.to_json(), serde_json::json!({"problem": {"turns": 10}}));
//! ```

pub mod document;
