//! Experiment, sweep and study files: parsed, validated, expanded.
