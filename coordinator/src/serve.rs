//! The coordinator as a server: gRPC, HTTP, connections, TLS and permissions around the cluster.

mod call_times;
mod census;
pub(crate) mod change_signal;
pub(crate) mod connections;
mod expiry;
mod families;
pub(crate) mod http;
mod in_flight;
mod large_bodies;
mod log_limit;
mod metrics;
mod notify;
mod operator_api;
mod permissions;
pub(crate) mod principal;
mod server;
mod standby;
mod tls;
#[cfg_attr(not(feature = "otlp"), path = "serve/no_traces.rs")]
mod traces;
mod worker_api;

pub use census::Limits;
pub use families::Families;
pub use http::serve_metrics;
pub use notify::Notify;
pub(crate) use permissions::{LivePermissions, Pace, Right};
pub use permissions::{Permissions, TokenError, Tokens};
pub use server::{
    Ending, Finish, First, OpenStore, Protection, Reload, ServeError, Settings, opened, refuse_listener, run,
    serve_listener, start, start_local,
};
pub use standby::answers;
pub use tls::{Tls, TlsError};
pub use traces::{Traces, TracesError};
pub(crate) use worker_api::Front;
