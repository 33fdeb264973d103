//! Clusters and projections, against their definitions.
//!
//! One program: each one more would be compiled and linked against everything again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod dbscan;
mod picture;
mod projection;
