//! Commands of a place in a real terminal.

#[path = "../support/terminal.rs"]
mod pty;

use crate::support::Place;
pub(crate) use pty::{Screen, Terminal};

impl Terminal {
    /// Starts a command in a terminal whose size is not known: it has no whole screen.
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        Self::of(place.command(arguments), (0, 0))
    }
}
