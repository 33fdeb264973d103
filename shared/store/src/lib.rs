//! Checkpoints and results as immutable objects.
