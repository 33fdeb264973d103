//! The worker: epochs run on a pool of threads, generation by generation, with checkpoints in between.
//!
//! It deliberately does not know where epochs come from or where their outcomes go: a [`Job`] goes in, [`Message`]s
//! come out, on one machine as in a cluster.

mod gauge;
mod pool;

pub use gauge::{Gauge, Gauges};
pub use pool::{Job, Message, Pool, PoolError, Stop};

/// How many threads are worth starting: the cores that this process may use, as its cgroup and its affinity allow.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
