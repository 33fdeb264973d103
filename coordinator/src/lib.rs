//! The coordinator: it keeps runs. What has been done and decided is written down before anybody relies on it.
//!
//! [`keeper`] joins the archipelago's state machine with the [`ledger`] that keeps a run in a store. Nothing here
//! computes an epoch, reads a clock, or names a problem.

pub mod history;
pub mod keeper;
pub mod ledger;
pub mod record;
