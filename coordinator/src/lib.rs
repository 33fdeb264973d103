//! The coordinator: it keeps runs, and hands them out to workers. What has been done and decided is written down before
//! anybody relies on it.
//!
//! A run on disk is the crate `run`'s; [`keeper`] joins an open run with its store, and a command that evolves on the
//! spot needs no more than that. [`run()`] serves a whole store to workers and operators: [`lease`] says
//! who works on what and until when, [`plan`] which run comes first, both without a clock or a network. Nothing here
//! computes an epoch or names a problem.
//!
//! ```
//! use coordinator::lease::{Leases, Terms};
//! use proto::convert::{Piece, Work};
//! use std::time::Duration;
//!
//! let mut leases = Leases::new(Terms::default(), 1);
//! let work = Work { run: "maze-0a1b2c3d".to_owned(), piece: Piece::Epoch { island: 0, epoch: 0 } };
//! let token = leases.grant(&work, "worker-1", Duration::ZERO);
//! assert!(leases.renew(&work, "worker-1", token, 100, Duration::from_secs(10)));
//! assert_eq!(leases.expire(Duration::from_secs(20)).len(), 0);
//! assert_eq!(leases.expire(Duration::from_secs(60)).len(), 1, "it was not renewed");
//! assert_eq!(leases.waiting_for("worker-2", "maze-0a1b2c3d"), Some(work));
//! ```

mod bell;
mod cells;
mod connections;
mod course;
mod epochs;
mod guard;
mod http;
pub mod keeper;
pub mod lease;
mod members;
mod office;
mod operator;
pub mod plan;
mod room;
mod runs;
mod serve;
mod service;
mod tls;
mod turn;

pub use connections::{Connection, Limits, connections};
pub use guard::{Guard, TokenError, Tokens};
pub use members::MemberError;
pub use office::{First, Moment, Refusal, Settings};
pub use serve::{Ending, ServeError, run, serve_listener};
pub use tls::{Tls, TlsError};
