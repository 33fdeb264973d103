//! The coordinator: it keeps runs. What has been done and decided is written down before anybody relies on it.
//!
//! [`keeper`] joins the archipelago's state machine with the [`ledger`] that keeps a run in a store. Nothing here
//! computes an epoch, reads a clock, or names a problem.

mod cells;
mod course;
mod epochs;
pub mod export;
pub mod history;
mod http;
pub mod keeper;
pub mod lease;
pub mod ledger;
mod members;
mod office;
mod operator;
pub mod plan;
pub mod record;
mod room;
mod runs;
mod serve;
mod service;

pub use members::MemberError;
pub use office::{Moment, Refusal, Settings};
pub use serve::{Ending, ServeError, connections, run};
