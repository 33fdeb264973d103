//! Ensembles: networks that decide together, by vote.

mod file;

use crate::book::Book;
use crate::game::Game;
use crate::knowledge::{Knowing, Knowledge};
use crate::moves::Move;
use crate::network::{Network, NetworkEvaluator};
use crate::player::{Player, forced};
use crate::position::Position;
use crate::search::{Limits, Reuse, Search};
use crate::thought::Thought;
use std::cmp::Reverse;
use std::sync::Arc;

pub(crate) use file::{LONGEST_FILE, MAGIC};

/// Networks that play as one.
#[derive(Clone, Debug)]
pub struct Ensemble {
    members: Vec<Arc<Network>>,
}

/// Why networks make no ensemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("expected an ensemble of 1 to {most} members, found `{0}`", most = Ensemble::MOST_MEMBERS)]
pub struct EnsembleError(pub usize);

impl Ensemble {
    /// Each of them has to look at every position.
    pub const MOST_MEMBERS: usize = 256;

    /// An ensemble of these networks.
    ///
    /// # Errors
    /// If there are none, or more than [`Ensemble::MOST_MEMBERS`].
    pub fn new(members: Vec<Arc<Network>>) -> Result<Self, EnsembleError> {
        let fits = (1..=Self::MOST_MEMBERS).contains(&members.len());
        if fits { Ok(Self { members }) } else { Err(EnsembleError(members.len())) }
    }

    /// Its networks.
    pub fn members(&self) -> &[Arc<Network>] {
        &self.members
    }
}

/// What an ensemble thinks of a move.
#[derive(Clone, PartialEq, Debug)]
pub struct Votes {
    /// The move.
    pub mv: Move,
    /// The members whose best move it is, in order.
    pub voters: Vec<usize>,
    /// Where the vote was tied, and the move one of the tied: the sum of what all members think it is worth, each
    /// between -1 and 1 (a proved win is 1).
    pub score: Option<f64>,
}

/// Lets each member of an ensemble look ahead and vote for its best move.
///
/// Most votes win. Of moves with as many votes that wins to which the exact scores of all members, those who did not
/// vote for it too, add up to more; of moves alike in that too the first of the legal moves. Chance plays no part.
pub struct EnsemblePlayer {
    members: Vec<Knowing<NetworkEvaluator>>,
    book: Option<Arc<Book>>,
    /// One for all, forgetting between them: its memory does not grow with the ensemble.
    search: Search,
    limits: Limits,
    seed: u64,
}

impl EnsemblePlayer {
    /// Each member looks `depth` plies ahead.
    pub fn new(ensemble: &Ensemble, depth: u32) -> Self {
        Self::with_limits(ensemble, &Knowledge::default(), Limits::depth(depth), Search::SMALL_TABLE)
    }

    /// The members search within `limits`, which are for all of them together, with a table of 2^`table_bits`
    /// entries. Each asks the endgame database by its own judgement; the book is for all.
    pub fn with_limits(ensemble: &Ensemble, knowledge: &Knowledge, limits: Limits, table_bits: u32) -> Self {
        let Knowledge { book, endgames, style } = knowledge.clone();
        let member =
            |network: &Arc<Network>| Knowing::new(NetworkEvaluator::new(network.clone()), endgames.clone());
        let members: Vec<_> = ensemble.members.iter().map(member).collect();
        let limits = shared(&limits, members.len());
        Self {
            members,
            book,
            search: Search::with_style(table_bits, Reuse::EqualDepth, style),
            limits,
            seed: 0,
        }
    }

    /// What the members think of each legal move, the one to play first.
    pub fn votes(&mut self, position: &Position) -> Vec<Votes> {
        let legal = position.legal_moves().into_iter();
        let mut votes: Vec<Votes> = legal.map(|mv| Votes { mv, voters: vec![], score: None }).collect();
        for voter in 0..self.members.len() {
            let best = self.favourite(voter, position);
            votes
                .iter_mut()
                .filter(|votes| Some(votes.mv) == best)
                .for_each(|votes| votes.voters.push(voter));
        }
        self.score_ties(position, &mut votes);
        votes.sort_by(|a, b| {
            let by_votes = Reverse(a.voters.len()).cmp(&Reverse(b.voters.len()));
            by_votes.then(b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)))
        });
        votes
    }

    /// What a member votes for.
    fn favourite(&mut self, member: usize, position: &Position) -> Option<Move> {
        self.search.forget();
        let guided = self.members[member].guided(&mut self.search, position, self.limits.depth);
        guided.or_else(|| {
            self.look(member, position, 1);
            self.search.lines().first().and_then(|line| line.moves.first().copied())
        })
    }

    /// What the book plays.
    fn by_heart(&self, position: &Position) -> Option<Move> {
        self.book.as_ref().and_then(|book| book.choose(position, self.seed))
    }

    /// Lets a member find its best moves.
    fn look(&mut self, member: usize, position: &Position, lines: usize) {
        self.search.forget();
        self.search.run(&mut self.members[member], position, &Limits { lines, ..self.limits });
    }

    /// Adds up what all members think of the moves with most votes, if there are several.
    fn score_ties(&mut self, position: &Position, votes: &mut [Votes]) {
        let most = votes.iter().map(|votes| votes.voters.len()).max().unwrap_or(0);
        let moves = votes.len();
        let mut tied: Vec<&mut Votes> = votes.iter_mut().filter(|votes| votes.voters.len() == most).collect();
        if tied.len() < 2 {
            return;
        }
        for member in 0..self.members.len() {
            self.look(member, position, moves);
            for votes in &mut tied {
                let line = self.search.lines().iter().find(|line| line.moves.first() == Some(&votes.mv));
                let value = line.map_or(0.0, |line| f64::from(line.score.value()));
                // Exact in any order: opinions are multiples of 2^-24, and there are few of them.
                *votes.score.get_or_insert(0.0) += value;
            }
        }
    }
}

impl Player for EnsemblePlayer {
    fn new_game(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        self.search.follow(game, self.seed);
        let known = self.by_heart(game.position()).or_else(|| forced(game));
        known.or_else(|| self.votes(game.position()).first().map(|votes| votes.mv))
    }

    /// The limits are for all members together.
    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        self.search.follow(game, self.seed);
        if let Some(best) = self.by_heart(game.position()) {
            return Some(Thought::without_search(best));
        }
        let own = std::mem::replace(&mut self.limits, shared(limits, self.members.len()));
        let votes = self.votes(game.position());
        self.limits = own;
        let best = votes.first()?.mv;
        let counted = votes.iter().map(|votes| (votes.mv, votes.voters.len() as u32));
        Some(Thought {
            depth: limits.depth,
            votes: counted.filter(|(_, voters)| *voters > 0).collect(),
            ..Thought::without_search(best)
        })
    }
}

/// The share of each member of limits that are for all of them. A tie takes every member a second search.
fn shared(limits: &Limits, members: usize) -> Limits {
    let searches = 2 * members.max(1) as u32;
    Limits {
        time: limits.time.map(|time| time / searches),
        nodes: limits.nodes.map(|nodes| nodes / u64::from(searches)),
        ..*limits
    }
}
