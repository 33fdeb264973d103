//! What a player makes of a position, for those who want to know more than its move.

use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::moves::Move;
use crate::score::Score;
use crate::search::{Limits, Line, Search};

/// A move, and what led to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thought {
    /// What to play.
    pub best: Move,
    /// What it is worth to the side to move; nothing if it was not searched for.
    pub score: Option<Score>,
    /// The depth to which it was searched in full.
    pub depth: u32,
    /// Positions visited.
    pub nodes: u64,
    /// Best play from here on, as far as it is known; `best` comes first.
    pub line: Vec<Move>,
    /// The best lines, the best first, where several were asked for.
    pub lines: Vec<Line>,
    /// Where several decide: how many were for which move, most first. Empty for a player that decides alone.
    pub votes: Vec<(Move, u32)>,
}

impl Thought {
    /// A move that needed no search.
    pub fn without_search(best: Move) -> Self {
        Self { best, score: None, depth: 0, nodes: 0, line: vec![best], lines: vec![], votes: vec![] }
    }

    /// What a search finds within limits; nothing if there is no legal move.
    pub(crate) fn search<E: Evaluator>(
        search: &mut Search,
        evaluator: &mut E,
        game: &Game,
        limits: &Limits,
    ) -> Option<Self> {
        let found = search.run(evaluator, game.position(), limits)?;
        let lines = search.lines().to_vec();
        let line = lines.first()?.moves.clone();
        let (score, votes) = (Some(found.score), Vec::new());
        Some(Self { best: found.best, score, depth: found.depth, nodes: found.nodes, line, lines, votes })
    }
}
