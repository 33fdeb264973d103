//! How a player searches, beside how far it looks.

/// How a player searches, beside how far it looks. By default as in the literature on evolved players: a search knows
/// the position alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Whether positions of the game so far count as draws in the search, so that a player that is ahead does not step
    /// back into one.
    pub history: bool,
    /// Whether pending captures at the leaves are searched to their end.
    pub quiescence: bool,
    /// Which of equally good moves is played.
    pub ties: Ties,
}

impl Default for Style {
    fn default() -> Self {
        Self { history: false, quiescence: true, ties: Ties::Order }
    }
}

/// Which of equally good moves is played.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Ties {
    /// The first of the legal moves.
    #[default]
    Order,
    /// The first in an order of the legal moves that follows from the game's seed and the ply.
    Random,
}
