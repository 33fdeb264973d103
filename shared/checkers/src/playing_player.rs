//! A player that uses the playing search: it plays within limits of time, nodes or depth as well as it can.

use crate::book::Book;
use crate::evaluator::Evaluator;
use crate::game::Game;
use crate::knowledge::{Knowing, Knowledge};
use crate::moves::Move;
use crate::player::Player;
use crate::score::Score;
use crate::search::{Limits, Line, PlaySettings, PlayingSearch, Reuse, Search, Watch};
use crate::thought::Thought;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Plays with what it knows: the book first, then the database, then the playing search.
pub struct PlayingPlayer<E> {
    evaluator: Knowing<E>,
    book: Option<Arc<Book>>,
    search: PlayingSearch,
    /// Chooses among moves that are equal by the database.
    guide: Search,
    limits: Limits,
    seed: u64,
}

/// Plies that tell apart what the database finds equally good.
const GUIDE_DEPTH: u32 = 8;

impl<E: Evaluator + Clone + Send> PlayingPlayer<E> {
    /// A player that judges by `own`, within `limits` for each move.
    pub fn new(own: E, knowledge: &Knowledge, limits: Limits, settings: PlaySettings) -> Self {
        Self {
            evaluator: Knowing::new(own, knowledge.endgames.clone()),
            book: knowledge.book.clone(),
            search: PlayingSearch::new(settings, knowledge.style),
            guide: Search::with_style(Search::SMALL_TABLE, Reuse::EqualDepth, knowledge.style),
            limits,
            seed: 0,
        }
    }

    /// What the book or the database plays.
    fn known(&mut self, game: &Game) -> Option<Move> {
        let position = game.position();
        let book = self.book.as_ref().and_then(|book| book.choose(position, self.seed));
        book.or_else(|| {
            self.guide.follow(game, self.seed);
            self.evaluator.guided(&mut self.guide, position, GUIDE_DEPTH)
        })
    }
}

impl<E: Evaluator + Clone + Send> Player for PlayingPlayer<E> {
    fn new_game(&mut self, seed: u64) {
        self.seed = seed;
        self.evaluator.new_game(seed);
        self.search.forget();
        self.guide.forget();
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        // A move without choice is searched too, though not for long: what the table holds helps the next.
        let limits = self.limits;
        self.think(game, &limits).map(|thought| thought.best)
    }

    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        let mut watch = Watch { stop: &AtomicBool::new(false), report: &mut |_, _, _| {} };
        self.watch(game, limits, &mut watch)
    }

    fn watch(&mut self, game: &Game, limits: &Limits, watch: &mut Watch<'_>) -> Option<Thought> {
        if limits.lines <= 1
            && let Some(best) = self.known(game)
        {
            let score = self.evaluator.evaluate(game.position());
            return Some(Thought { score: Some(score), ..Thought::without_search(best) });
        }
        self.search.follow(game);
        let found = self.search.run(&mut self.evaluator, game.position(), limits, watch)?;
        let lines: Vec<Line> = self.search.lines().to_vec();
        let line = lines.first().map(|line| line.moves.clone()).unwrap_or_default();
        let (best, depth, nodes) = (found.best, found.depth, found.nodes);
        Some(Thought { best, score: Some(found.score), depth, nodes, line, lines, votes: vec![] })
    }

    fn man(&mut self) -> Option<f32> {
        Some(self.search.man(&mut self.evaluator))
    }

    fn evaluate(&mut self, game: &Game) -> Option<Score> {
        Some(self.evaluator.evaluate(game.position()))
    }
}
