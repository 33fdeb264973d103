//! The coordinator: which epoch of which island may run next, what has been done and decided, and when a run ends.
//!
//! [`archipelago`] is a pure state machine; [`keeper`] joins it with the [`ledger`] that keeps a run in a store.
//! Nothing here computes an epoch, reads a clock, or names a problem.

pub mod archipelago;
pub mod history;
pub mod keeper;
pub mod ledger;
pub mod record;
pub mod schedule;
