//! The coordinator as a server: gRPC, HTTP, connections, TLS and permissions around the cluster.

mod call_times;
pub(crate) mod change_signal;
mod connection_slots;
pub(crate) mod connections;
mod disk_use;
mod ending;
mod expiry;
pub(crate) mod http;
mod in_flight;
mod large_bodies;
mod log_limit;
mod metric_families;
mod metrics;
mod notify;
mod opening;
mod operator_api;
mod permissions;
pub(crate) mod principal;
mod server;
mod standby;
mod tls;
#[cfg_attr(not(feature = "otlp"), path = "serve/no_traces.rs")]
mod traces;
mod worker_api;

pub use connection_slots::ConnectionLimits;
pub use http::serve_metrics;
pub use metric_families::MetricFamilies;
pub use notify::Notify;
pub use opening::{OpenStore, opened, start, start_local};
pub(crate) use permissions::{LivePermissions, RateLimit, Right};
pub use permissions::{Permissions, TokenError, Tokens};
pub use server::{
    CoordinatorSettings, Finish, First, Protection, Reload, ServeEnding, ServeError, refuse_listener, run,
    serve_listener,
};
pub use standby::answers;
pub use tls::{Tls, TlsError};
pub use traces::{Traces, TracesError};
pub(crate) use worker_api::ServedCluster;
