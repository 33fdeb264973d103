//! Match-3 boards, their rules and simulated players.
