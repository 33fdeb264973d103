//! What a player knows beside its own judgement: openings, and who wins with few pieces left.

use crate::book::Book;
use crate::endgame::{Database, EndgameResult};
use crate::evaluator::{Evaluator, Material};
use crate::game::Game;
use crate::moves::Move;
use crate::network::{Network, NetworkEvaluator};
use crate::player::{Player, forced};
use crate::position::Position;
use crate::score::Score;
use crate::search::{Found, Limits, Reuse, Search};
use crate::style::Style;
use crate::thought::Thought;
use std::sync::Arc;

/// Plies that are searched to choose among moves that the database finds equally good: limits of nodes or time, beside
/// which players may look as far as they like, do not hold there.
const DEEPEST_GUIDE: u32 = 8;

/// When the endgame database is asked.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Consult {
    /// Whenever it contains the position.
    Always,
    /// Where it knows the position and the player is unsure: `from < certainty < to` ([`Evaluator::certainty`], which is
    /// `|value|` for networks and a quarter for each man of lead for those who count pieces).
    Unsure {
        /// A player that sees no difference between the sides is left to itself.
        from: f32,
        /// So is one that is sure who wins.
        to: f32,
    },
}

impl Default for Consult {
    fn default() -> Self {
        Self::Unsure { from: 0.25, to: 0.75 }
    }
}

impl Consult {
    fn applies(self, evaluator: &impl Evaluator, own: Score) -> bool {
        match self {
            Self::Always => true,
            Self::Unsure { from, to } => {
                let certainty = evaluator.certainty(own);
                from < certainty && certainty < to
            }
        }
    }
}

/// The endgame database, and when to ask it.
#[derive(Clone, Debug)]
pub struct Endgames {
    /// Who wins.
    pub database: Arc<Database>,
    /// When it matters.
    pub consult: Consult,
}

impl Endgames {
    /// Whether both ask the same database at the same time.
    fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.database, &other.database) && self.consult == other.consult
    }
}

/// What a player knows beside the position, and how it searches. By default nothing, and as in the literature.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// Moves to play at the start.
    pub book: Option<Arc<Book>>,
    /// Verdicts for the end, in the search too.
    pub endgames: Option<Endgames>,
    /// How it searches, and whether it knows the game so far.
    pub style: Style,
}

impl Knowledge {
    /// Whether it is the default: nothing, and the usual style.
    pub fn is_none(&self) -> bool {
        self.book.is_none() && self.endgames.is_none() && self.style == Style::default()
    }

    /// Whether both have the same book, the same database and the same style.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let books = match (&self.book, &other.book) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let endgames = match (&self.endgames, &other.endgames) {
            (None, None) => true,
            (Some(one), Some(other)) => one.is_same(other),
            _ => false,
        };
        books && endgames && self.style == other.style
    }
}

// Searches with the evaluators that commands use, compiled here, where everything is optimised.

impl Knowing<Material> {
    /// As [`Search::run`].
    pub fn search(&mut self, search: &mut Search, position: &Position, limits: &Limits) -> Option<Found> {
        search.run(self, position, limits)
    }
}

impl Knowing<NetworkEvaluator> {
    /// As [`Search::run`].
    pub fn search(&mut self, search: &mut Search, position: &Position, limits: &Limits) -> Option<Found> {
        search.run(self, position, limits)
    }
}

/// An evaluator that gives way to the endgame database.
#[derive(Clone, Debug)]
pub struct Knowing<E> {
    own: E,
    endgames: Option<Endgames>,
}

impl<E: Evaluator> Knowing<E> {
    /// `own` with what the database knows; without one it is `own` alone.
    pub fn new(own: E, endgames: Option<Endgames>) -> Self {
        Self { own, endgames }
    }

    /// The evaluator's own opinion, or what the database makes of it where it is asked.
    fn informed(&self, position: &Position, own: Score) -> Score {
        let asked = self.endgames.as_ref().filter(|endgames| endgames.consult.applies(&self.own, own));
        let verdict = asked.and_then(|endgames| endgames.database.probe(position));
        verdict.map_or(own, |verdict| known(verdict, own))
    }

    /// The best moves where the database is asked.
    fn best_moves(&mut self, position: &Position) -> Option<Vec<Move>> {
        let endgames = self.endgames.as_ref()?;
        endgames.database.probe(position)?;
        let own = self.own.evaluate(position);
        let asked = endgames.consult.applies(&self.own, own);
        asked.then(|| endgames.database.best_moves(position)).flatten()
    }

    /// What the database plays where it is asked; a search of `depth` plies, at most a few, chooses among moves that it finds
    /// equally good.
    pub(crate) fn guided(&mut self, search: &mut Search, position: &Position, depth: u32) -> Option<Move> {
        let depth = depth.min(DEEPEST_GUIDE);
        let mut moves = self.best_moves(position)?;
        search.order_ties(&mut moves);
        match moves.as_slice() {
            [only] => Some(*only),
            moves => self.best_of(search, position, moves, depth),
        }
    }

    /// The best of some moves, by what the search makes of the positions they lead to; the first of equal ones.
    fn best_of(
        &mut self,
        search: &mut Search,
        position: &Position,
        moves: &[Move],
        depth: u32,
    ) -> Option<Move> {
        let mut best: Option<(Move, Score)> = None;
        for mv in moves {
            let (limits, child) = (Limits::depth(depth.saturating_sub(1)), position.play(mv));
            let score = if search.is_past(&child) {
                Score::EVEN
            } else {
                search.run(self, &child, &limits).map_or(Score::INFINITE, |found| -found.score)
            };
            if best.is_none_or(|(_, other)| score > other) {
                best = Some((*mv, score));
            }
        }
        best.map(|(mv, _)| mv)
    }
}

/// Far apart by verdict; equal verdicts keep the order of the evaluator's own opinions.
fn known(verdict: EndgameResult, own: Score) -> Score {
    let centre = match verdict {
        EndgameResult::Win => 15.0 / 16.0,
        EndgameResult::Draw => 0.0,
        EndgameResult::Loss => -15.0 / 16.0,
    };
    Score::from_value(centre + own.value() / 16.0)
}

impl<E: Evaluator> Evaluator for Knowing<E> {
    fn new_game(&mut self, seed: u64) {
        self.own.new_game(seed);
    }

    fn certainty(&self, score: Score) -> f32 {
        self.own.certainty(score)
    }

    /// Where the database is always asked, what it knows needs no search.
    fn settled(&mut self, position: &Position) -> Option<Score> {
        let endgames = self.endgames.as_ref().filter(|endgames| endgames.consult == Consult::Always)?;
        let verdict = endgames.database.probe(position)?;
        Some(known(verdict, self.own.evaluate(position)))
    }

    fn evaluate(&mut self, position: &Position) -> Score {
        let own = self.own.evaluate(position);
        self.informed(position, own)
    }

    fn evaluate_children(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        self.own.evaluate_children(parent, children, scores);
        if self.endgames.is_none() {
            return;
        }
        for (child, score) in children.iter().zip(scores) {
            *score = self.informed(child, *score);
        }
    }
}

/// Looks a fixed number of plies ahead with what it knows: the book first, then the database, then the search, which
/// asks the database too.
pub struct KnowingPlayer<E> {
    evaluator: Knowing<E>,
    book: Option<Arc<Book>>,
    search: Search,
    limits: Limits,
    seed: u64,
    last_score: Option<Score>,
}

impl<E: Evaluator> KnowingPlayer<E> {
    /// A player that judges by `own`, `depth` plies ahead.
    pub fn new(own: E, depth: u32, knowledge: &Knowledge) -> Self {
        Self {
            evaluator: Knowing::new(own, knowledge.endgames.clone()),
            book: knowledge.book.clone(),
            search: Search::with_style(Search::SMALL_TABLE, Reuse::EqualDepth, knowledge.style),
            limits: Limits::depth(depth),
            seed: 0,
            last_score: None,
        }
    }

    /// What the book or the database plays; a search of `depth` plies chooses among moves that are equal by the database.
    fn known(&mut self, game: &Game, depth: u32) -> Option<Move> {
        self.search.follow(game, self.seed);
        let position = game.position();
        let book = self.book.as_ref().and_then(|book| book.choose(position, self.seed));
        book.or_else(|| self.evaluator.guided(&mut self.search, position, depth))
    }
}

impl KnowingPlayer<NetworkEvaluator> {
    /// Plays with another network from the next game on, keeping memory and knowledge.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.evaluator.own = NetworkEvaluator::new(network);
        self.search.forget();
    }
}

impl<E: Evaluator> Player for KnowingPlayer<E> {
    fn new_game(&mut self, seed: u64) {
        self.seed = seed;
        self.evaluator.new_game(seed);
        self.search.forget();
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        self.last_score = None;
        self.known(game, self.limits.depth).or_else(|| forced(game)).or_else(|| {
            let found = self.search.run(&mut self.evaluator, game.position(), &self.limits);
            self.last_score = found.map(|found| found.score);
            found.map(|found| found.best)
        })
    }

    fn last_score(&self) -> Option<Score> {
        self.last_score
    }

    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        let Some(best) = self.known(game, limits.depth.min(self.limits.depth)) else {
            return Thought::search(&mut self.search, &mut self.evaluator, game, limits);
        };
        let score = self.evaluator.evaluate(game.position());
        Some(Thought { score: Some(score), ..Thought::without_search(best) })
    }
}
