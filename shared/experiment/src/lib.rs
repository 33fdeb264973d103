//! Experiment, sweep and study files: parsed, validated, expanded.

pub mod document;
