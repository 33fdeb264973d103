//! Who takes part.

use checkers::PlayerSpec;
use std::time::Duration;

/// A player of a match.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// One of our own.
    Ours(PlayerSpec),
    /// Another program.
    Engine {
        /// How it is started.
        command: EngineCommand,
        /// Plies that it is asked to look ahead where the match sets no other limits.
        depth: u32,
    },
}

/// How an engine that speaks Hub is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineCommand {
    /// The program, and its arguments.
    pub command: Vec<String>,
    /// How long it may take for an answer, beside the time that it is given for a move.
    pub patience: Duration,
}

impl From<PlayerSpec> for Contestant {
    fn from(player: PlayerSpec) -> Self {
        Self::Ours(player)
    }
}
