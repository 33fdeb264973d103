//! Players: whatever chooses moves.

use crate::ensemble::{Ensemble, EnsemblePlayer};
use crate::evaluator::{Evaluator, Material, RandomOpinion};
use crate::game::Game;
use crate::knowledge::{KnowingPlayer, Knowledge};
use crate::moves::Move;
use crate::network::{Network, NetworkEvaluator};
use crate::playing_player::PlayingPlayer;
use crate::random::Stream;
use crate::score::Score;
use crate::search::{Limits, PlaySettings, Reuse, Search, Watch};
use crate::style::Ties;
use crate::thought::Thought;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Chooses moves. What it chooses in a game follows from the seed of that game and what was played in it.
pub trait Player {
    /// A new game begins; `seed` decides whatever the player leaves to chance in it.
    fn new_game(&mut self, seed: u64);

    /// A legal move, or nothing if there is none.
    fn choose(&mut self, game: &Game) -> Option<Move>;

    /// What it makes of the position within limits of the caller's instead of its own; nothing if there is no legal
    /// move. A player that does not search answers with its move alone.
    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        let _ = limits;
        self.choose(game).map(Thought::without_search)
    }

    /// The same for those who want to follow it or to end it early.
    fn watch(&mut self, game: &Game, limits: &Limits, watch: &mut Watch<'_>) -> Option<Thought> {
        in_slices(|limits| self.think(game, limits), limits, watch)
    }

    /// What it makes of the position without looking ahead; nothing for those who judge no positions.
    fn evaluate(&mut self, game: &Game) -> Option<Score> {
        let _ = game;
        None
    }

    /// What its search made of the last position in which it chose; nothing where it needed no search.
    fn last_score(&self) -> Option<Score> {
        None
    }

    /// What a man is worth on the scale of its scores, if it can tell.
    fn man(&mut self) -> Option<f32> {
        None
    }
}

/// Which player, as experiments and the command line name it.
#[derive(Clone, Debug)]
pub enum PlayerSpec {
    /// A network that looks some plies ahead.
    Network {
        /// What judges the leaves.
        network: Arc<Network>,
        /// Plies to search.
        depth: u32,
    },
    /// Networks that look some plies ahead, and vote.
    Ensemble {
        /// Who votes.
        ensemble: Arc<Ensemble>,
        /// Plies that each of them looks ahead.
        depth: u32,
    },
    /// Counts pieces some plies ahead; ties are broken at random.
    Material {
        /// Plies to search.
        depth: u32,
    },
    /// Plays any legal move.
    Random,
    /// A player that knows something beside its own judgement.
    Knowing {
        /// Who judges where nothing is known.
        player: Box<PlayerSpec>,
        /// What is known.
        knowledge: Knowledge,
    },
    /// A player that searches within limits instead of to a fixed depth.
    Limited {
        /// Who plays.
        player: Box<PlayerSpec>,
        /// What it may use for a move.
        limits: Limits,
    },
    /// A player that uses the playing search; those who do not search, or vote, keep to the limits as they can.
    Playing {
        /// Who judges.
        player: Box<PlayerSpec>,
        /// What it may use for a move.
        limits: Limits,
        /// How it searches.
        settings: PlaySettings,
    },
}

impl PlayerSpec {
    /// The player itself, with memory of its own. Call [`Player::new_game`] before the first game.
    pub fn build(&self) -> Box<dyn Player + Send> {
        match self {
            Self::Network { network, depth } => Box::new(NetworkPlayer::new(network.clone(), *depth)),
            Self::Ensemble { ensemble, depth } => Box::new(EnsemblePlayer::new(ensemble, *depth)),
            Self::Material { depth } => Box::new(MaterialPlayer::new(*depth)),
            Self::Random => Box::new(RandomPlayer::new()),
            Self::Knowing { player, knowledge } => player.build_knowing(knowledge),
            Self::Limited { player, limits } => {
                Box::new(LimitedPlayer { player: player.build(), limits: *limits })
            }
            Self::Playing { player, limits, settings } => {
                player.build_playing(&Knowledge::default(), *limits, *settings)
            }
        }
    }

    /// The player with the playing search.
    fn build_playing(
        &self,
        knowledge: &Knowledge,
        limits: Limits,
        settings: PlaySettings,
    ) -> Box<dyn Player + Send> {
        match self {
            Self::Network { network, .. } => {
                let own = NetworkEvaluator::new(network.clone());
                Box::new(PlayingPlayer::new(own, knowledge, limits, settings))
            }
            Self::Material { .. } => {
                Box::new(PlayingPlayer::new(Material { seed: 0 }, knowledge, limits, settings))
            }
            Self::Knowing { player, knowledge } => player.build_playing(knowledge, limits, settings),
            Self::Playing { player, .. } => player.build_playing(knowledge, limits, settings),
            Self::Ensemble { .. } | Self::Random | Self::Limited { .. } => {
                Box::new(LimitedPlayer { player: self.build_knowing(knowledge), limits })
            }
        }
    }

    /// Whether it may choose differently in games of different seeds. Two players that do not play the same game again
    /// whenever they start from the same position with the same colours.
    pub fn leaves_to_chance(&self) -> bool {
        match self {
            Self::Network { .. } | Self::Ensemble { .. } => false,
            Self::Material { .. } | Self::Random => true,
            Self::Knowing { player, knowledge } => {
                knowledge.book.is_some() || knowledge.style.ties == Ties::Random || player.leaves_to_chance()
            }
            Self::Limited { player, limits } => limits.time.is_some() || player.leaves_to_chance(),
            Self::Playing { player, limits, settings } => {
                limits.time.is_some() || settings.threads > 1 || player.leaves_to_chance()
            }
        }
    }

    /// The player with some knowledge; where it has some of its own, that is used instead.
    fn build_knowing(&self, knowledge: &Knowledge) -> Box<dyn Player + Send> {
        match self {
            Self::Network { network, depth } => {
                Box::new(KnowingPlayer::new(NetworkEvaluator::new(network.clone()), *depth, knowledge))
            }
            Self::Material { depth } => Box::new(KnowingPlayer::new(Material { seed: 0 }, *depth, knowledge)),
            // Search settings make no difference to a player that does not search.
            Self::Random if knowledge.book.is_none() && knowledge.endgames.is_none() => self.build(),
            Self::Random => Box::new(KnowingPlayer::new(RandomOpinion { seed: 0 }, 1, knowledge)),
            Self::Ensemble { ensemble, depth } => {
                let limits = Limits::depth(*depth);
                Box::new(EnsemblePlayer::with_limits(ensemble, knowledge, limits, Search::SMALL_TABLE))
            }
            Self::Limited { player, limits } => {
                Box::new(LimitedPlayer { player: player.build_knowing(knowledge), limits: *limits })
            }
            Self::Playing { player, limits, settings } => player.build_playing(knowledge, *limits, *settings),
            Self::Knowing { .. } => self.build(),
        }
    }
}

/// A search that can't be followed, in slices of time between which it may be ended.
#[allow(clippy::disallowed_methods, reason = "whoever follows a search looks at the clock")]
fn in_slices(
    mut think: impl FnMut(&Limits) -> Option<Thought>,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Option<Thought> {
    const SHORTEST_SLICE: Duration = Duration::from_millis(200);
    let start = Instant::now();
    let mut best: Option<Thought> = None;
    let (mut nodes, mut slice) = (0, SHORTEST_SLICE);
    // Two plies at a time, as searches deepen.
    let mut depth = 2 - limits.depth % 2;
    loop {
        let left = limits.time.map_or(slice, |time| slice.min(time.saturating_sub(start.elapsed())));
        let nodes_left = limits.nodes.map(|all| all.saturating_sub(nodes));
        let Some(thought) =
            think(&Limits { depth, time: Some(left), nodes: nodes_left, lines: limits.lines })
        else {
            return best;
        };
        nodes += thought.nodes;
        let searched = thought.depth;
        let last = searched == 0 || is_proved(&thought) || searched >= limits.depth;
        if best.as_ref().is_none_or(|best| searched > best.depth) {
            (watch.report)(searched, nodes, &thought.lines);
            best = Some(thought);
        }
        let late = limits.time.is_some_and(|time| start.elapsed() >= time);
        let spent = limits.nodes.is_some_and(|all| nodes >= all);
        if last || late || spent || watch.stop.load(Ordering::Relaxed) {
            return best;
        }
        if searched >= depth {
            depth += 2;
        } else {
            // What a slice was too short for begins again in the next.
            slice *= 2;
        }
    }
}

/// True if searching deeper can't change the result.
fn is_proved(thought: &Thought) -> bool {
    thought
        .score
        .is_some_and(|score| score.win_in().or(score.lost_in()).is_some_and(|plies| plies <= thought.depth))
}

/// The only legal move, which needs no thought.
pub(crate) fn forced(game: &Game) -> Option<Move> {
    let mut moves = (None, 0);
    game.position().for_each_move(|mv| moves = (Some(mv), moves.1 + 1));
    moves.0.filter(|_| moves.1 == 1)
}

/// Looks a fixed number of plies ahead, and takes what an evaluator thinks best there.
pub struct SearchPlayer<E> {
    evaluator: E,
    search: Search,
    limits: Limits,
    last_score: Option<Score>,
}

/// A network that looks ahead: chance plays no part.
pub type NetworkPlayer = SearchPlayer<NetworkEvaluator>;

/// Counts pieces some plies ahead; the game's seed breaks ties.
pub type MaterialPlayer = SearchPlayer<Material>;

impl<E: Evaluator> SearchPlayer<E> {
    fn with_evaluator(evaluator: E, depth: u32) -> Self {
        let search = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
        Self { evaluator, search, limits: Limits::depth(depth), last_score: None }
    }
}

impl NetworkPlayer {
    /// Plays with `network`, `depth` plies ahead.
    pub fn new(network: Arc<Network>, depth: u32) -> Self {
        Self::with_evaluator(NetworkEvaluator::new(network), depth)
    }

    /// Plays with another network from the next game on, keeping the memory.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.evaluator = NetworkEvaluator::new(network);
        self.search.forget();
    }
}

impl MaterialPlayer {
    /// Looks `depth` plies ahead.
    pub fn new(depth: u32) -> Self {
        Self::with_evaluator(Material { seed: 0 }, depth)
    }
}

impl<E: Evaluator> Player for SearchPlayer<E> {
    fn new_game(&mut self, seed: u64) {
        self.evaluator.new_game(seed);
        self.search.forget();
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        self.last_score = None;
        forced(game).or_else(|| {
            let found = self.search.run(&mut self.evaluator, game.position(), &self.limits);
            self.last_score = found.map(|found| found.score);
            found.map(|found| found.best)
        })
    }

    fn last_score(&self) -> Option<Score> {
        self.last_score
    }

    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        Thought::search(&mut self.search, &mut self.evaluator, game, limits)
    }
}

/// A player within limits of a move.
struct LimitedPlayer {
    player: Box<dyn Player + Send>,
    limits: Limits,
}

impl Player for LimitedPlayer {
    fn new_game(&mut self, seed: u64) {
        self.player.new_game(seed);
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        forced(game).or_else(|| self.player.think(game, &self.limits).map(|thought| thought.best))
    }

    fn think(&mut self, game: &Game, limits: &Limits) -> Option<Thought> {
        self.player.think(game, limits)
    }
}

/// Plays any legal move, each as likely as the others.
pub struct RandomPlayer {
    stream: Stream,
}

impl RandomPlayer {
    /// A player whose first game has seed 0.
    pub fn new() -> Self {
        Self { stream: Stream::new(0) }
    }
}

impl Default for RandomPlayer {
    fn default() -> Self {
        Self::new()
    }
}

impl Player for RandomPlayer {
    fn new_game(&mut self, seed: u64) {
        self.stream = Stream::new(seed);
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        let moves = game.position().legal_moves();
        (!moves.is_empty()).then(|| moves[self.stream.below(moves.len())])
    }
}
