//! The worker: epochs run on a pool of threads, generation by generation, with checkpoints in between.
//!
//! A [`Pool`] deliberately does not know where epochs come from or where their outcomes go: an [`EpochJob`] goes in,
//! [`Message`]s come out, on one machine as in a cluster. [`run`] is what joins it to a coordinator: it pulls work,
//! renews its leases, and delivers, through crashes and cuts on either side.

mod backoff;
mod cache;
mod client;
mod connection_probe;
mod connector;
mod credentials;
mod end_with_data;
mod gauge;
mod grpc;
mod held;
mod memory;
mod pool;
mod session;
mod supply;

pub use client::{CallError, Identity, REFUSED, endpoint};
pub use connection_probe::ConnectionProbe;
pub use connector::connect_lazy;
pub use credentials::{AuthorizedChannel, Bearer, CredentialError, Token, Trust, check_token_is_safe};
pub use gauge::{Gauge, Gauges};
pub use grpc::Grpc;
pub use memory::available_memory;
pub use pool::{EpochJob, Message, Pool, PoolError, Stop};
pub use session::{Config, Replacements, SessionEnd, WorkerError, run, run_replacing};

/// How many threads are worth starting: the cores that this process may use, as its cgroup and its affinity allow.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
