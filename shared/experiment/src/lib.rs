//! Experiment, sweep and study files: parsed, validated, expanded.

//!
//! A file is first a [`document`]: TOML whose values know their lines, checked against the schema of the type that
//! it is to become, so that every mistake in it is told at once.

pub mod document;
