//! The number-collecting maze and its solvers.
