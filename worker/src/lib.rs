//! The epoch runner: islands evolved on a pool of threads.
