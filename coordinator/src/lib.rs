//! The coordinator stores runs and leases their work to workers. What has been done and decided is written down before
//! anything relies on it.
//!
//! `state` is everything a coordinator knows, as a pure state machine with effects; `write` carries the effects out;
//! [`Cluster`] joins the two and is what workers of the same process call; `serve` puts gRPC, HTTP, TLS and permissions
//! around it; [`dashboard`] is what browsers see. What is computed here is only
//! what decides an audit; nothing names a problem.
//!
//! ```
//! use coordinator::leases::{Leases, Terms, WorkerIdentity};
//! use proto::convert::{Piece, Work};
//! use std::time::Duration;
//!
//! let mut leases = Leases::new(Terms::default(), 1);
//! let work = Work { run: "maze-0a1b2c3d".to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
//! let token = leases.grant(&work, "worker-1", Duration::ZERO);
//! let worker = WorkerIdentity { worker: "worker-1", principal: "10.0.0.1", joined: Duration::ZERO };
//! assert!(leases.renew(&work, worker, token, 100, Duration::from_secs(10)));
//! assert_eq!(leases.expire(Duration::from_secs(20)).len(), 0);
//! assert_eq!(leases.expire(Duration::from_secs(60)).len(), 1, "it was not renewed");
//! let now = Duration::from_secs(60);
//! assert_eq!(leases.waiting_for("worker-2", "maze-0a1b2c3d", now, |_| true), Some(work));
//! ```

mod cluster;
pub mod dashboard;
mod histogram;
mod rejection;
mod serve;
mod state;
mod store_watch;
mod untrusted_calls;
mod write;

pub use cluster::{Background, Cluster};
pub use rejection::Rejection;
pub use serve::{
    ConnectionLimits, CoordinatorSettings, Finish, First, MetricFamilies, Notify, OpenStore, Permissions,
    Protection, Reload, ServeEnding, ServeError, Tls, TlsError, TokenError, Tokens, Traces, TracesError,
    answers, opened, refuse_listener, run, serve_listener, serve_metrics, start, start_local,
};
pub use state::leases;
pub use state::queue::{QueueError, RunState};
pub use state::workers::WorkerRejection;
pub use state::{AuditTerms, Moment};
pub use untrusted_calls::UntrustedCalls;
pub use write::open::read_player_inputs;
