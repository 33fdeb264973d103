//! What holds of every generation, migration and epoch, whatever the parameters: laws as properties, and slow obvious
//! references that draw from the same streams.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adaptation;
mod breeders;
mod epochs;
mod generations;
mod league;
mod migrations;
mod references;
mod settings;
mod theory;
mod worlds;
