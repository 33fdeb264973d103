//! The coordinator: it keeps runs, and hands them out to workers. What has been done and decided is written down before
//! anybody relies on it.
//!
//! [`keeper`] joins the archipelago's state machine with the [`ledger`] that keeps a run in a store; a command that
//! evolves on the spot needs no more than that. [`run`] serves a whole store to workers and operators: [`lease`] says
//! who works on what and until when, [`plan`] which run comes first, both without a clock or a network. Nothing here
//! computes an epoch or names a problem. [`results`] keeps what the cells of sweeps and tournaments brought, [`players`]
//! those who play.
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
mod due;
mod epochs;
pub mod export;
mod guard;
pub mod history;
mod http;
pub mod keeper;
pub mod lease;
pub mod ledger;
mod members;
mod office;
mod operator;
mod page;
pub mod plan;
pub mod players;
pub mod record;
pub mod results;
mod room;
mod runs;
mod serve;
mod service;
pub mod states;
pub mod survey;
mod thinning;
mod tls;
mod turn;

pub use connections::{Connection, Limits, connections};
pub use guard::{Guard, TokenError, Tokens};
pub use members::MemberError;
pub use office::{First, Moment, Refusal, Settings};
pub use serve::{Ending, ServeError, run};
pub use tls::{Tls, TlsError};
