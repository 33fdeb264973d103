//! A table: where two players meet, with the memory of one game after the other.

use crate::game::{DrawRules, Game, Outcome};
use crate::knowledge::{KnowingPlayer, Knowledge};
use crate::moves::Move;
use crate::network::{Lesson, Network, NetworkEvaluator};
use crate::player::{NetworkPlayer, Player, PlayerSpec, forced};
use crate::position::Position;
use crate::score::Score;
use crate::search::Limits;
use std::sync::Arc;

/// How positions of a game become lessons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Labels {
    /// The share of a position's worth that comes from its search; the rest comes from the result.
    pub search: f32,
    /// What remains of the result for each ply until the end: who wins sooner, has won more.
    pub discount: f32,
    /// Positions more than this number of plies after the last capture or man's move are left out; 0 for none.
    pub quiet: u32,
}

/// Room for one game at a time. A new player reuses the memory of an earlier player of the same kind.
pub struct Table {
    game: Game,
    limits: Option<Limits>,
    /// Black's and White's.
    seats: [Seat; 2],
    /// What the searches of Black and of White made of the positions of the last game, move by move.
    scores: [Vec<Option<Score>>; 2],
}

impl Table {
    /// A table at which games are drawn by `rules`. Players use their own limits unless others are given.
    pub fn new(rules: DrawRules, limits: Option<Limits>) -> Self {
        Self { game: Game::new(rules), limits, seats: Default::default(), scores: Default::default() }
    }

    /// Plays a game, Black's player first; the seeds decide what each of them leaves to chance.
    pub fn play(&mut self, start: Position, players: [&PlayerSpec; 2], seeds: [u64; 2]) -> Outcome {
        self.game.restart(start);
        let Self { game, limits, seats: [black, white], scores: [black_scores, white_scores] } = self;
        black_scores.clear();
        white_scores.clear();
        let mut black =
            Limited { player: black.seat(players[0], seeds[0]), limits: *limits, scores: black_scores };
        let mut white =
            Limited { player: white.seat(players[1], seeds[1]), limits: *limits, scores: white_scores };
        game.play_out(&mut black, &mut white)
    }

    /// The last game.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// What can be learnt from the last game: its quiet positions in which a player searched, each worth its result to the
    /// side to move, and a share of what that search found.
    pub fn lessons(&self, labels: &Labels) -> Vec<Lesson> {
        let Some(outcome) = self.game.outcome() else { return vec![] };
        let Labels { search, discount, quiet } = *labels;
        // From the end to the start, because a power's rounding is the library's own affair.
        let mut remains = vec![1.0; self.game.moves().len()];
        for ply in (1..remains.len()).rev() {
            remains[ply - 1] = remains[ply] * discount;
        }
        let mut still = 0;
        let mut scores = self.scores.each_ref().map(|scores| scores.iter());
        let mut position = *self.game.start();
        let mut lessons = vec![];
        for (mv, remains) in self.game.moves().iter().zip(remains) {
            let side = position.side_to_move();
            let score = scores[side as usize].next().copied().flatten();
            let wanted = (quiet == 0 || still <= quiet) && !position.must_capture();
            if let Some(score) = score.filter(|_| wanted) {
                let result = outcome.points(side) as f32 * remains;
                let target = search.mul_add(score.value(), (1.0 - search) * result);
                lessons.push(Lesson { position, target });
            }
            let progress = mv.is_capture() || !position.kings.meets(mv.from().into());
            still = if progress { 0 } else { still + 1 };
            position = position.play(mv);
        }
        lessons
    }
}

/// Players of one colour that have sat here, one of each kind.
#[derive(Default)]
struct Seat {
    network: Option<(NetworkPlayer, u32)>,
    knowing: Option<(KnowingPlayer<NetworkEvaluator>, u32, Knowledge)>,
    other: Option<(Box<dyn Player + Send>, PlayerSpec)>,
}

impl Seat {
    /// The player, ready for a new game.
    fn seat(&mut self, spec: &PlayerSpec, seed: u64) -> &mut dyn Player {
        match spec {
            PlayerSpec::Network { network, depth } => self.seat_network(network, *depth),
            PlayerSpec::Knowing { player, knowledge } => match &**player {
                PlayerSpec::Network { network, depth } => self.seat_knowing(network, *depth, knowledge, seed),
                _ => self.seat_other(spec, seed),
            },
            _ => self.seat_other(spec, seed),
        }
    }

    fn seat_knowing(
        &mut self,
        network: &Arc<Network>,
        depth: u32,
        knowledge: &Knowledge,
        seed: u64,
    ) -> &mut dyn Player {
        match &mut self.knowing {
            Some((player, before, known)) if *before == depth && known.is_same(knowledge) => {
                player.set_network(network.clone());
            }
            seat => {
                let player = KnowingPlayer::new(NetworkEvaluator::new(network.clone()), depth, knowledge);
                *seat = Some((player, depth, knowledge.clone()));
            }
        }
        let player = &mut self.knowing.as_mut().expect("it has just sat down").0;
        player.new_game(seed);
        player
    }

    fn seat_network(&mut self, network: &Arc<Network>, depth: u32) -> &mut dyn Player {
        match &mut self.network {
            Some((player, known)) if *known == depth => player.set_network(network.clone()),
            seat => *seat = Some((NetworkPlayer::new(network.clone(), depth), depth)),
        }
        // Chance plays no part in what a network chooses, so there is no seed to tell it.
        &mut self.network.as_mut().expect("it has just sat down").0
    }

    fn seat_other(&mut self, spec: &PlayerSpec, seed: u64) -> &mut dyn Player {
        if !self.other.as_ref().is_some_and(|(_, known)| is_same(known, spec)) {
            self.other = Some((spec.build(), spec.clone()));
        }
        let player = &mut self.other.as_mut().expect("it has just sat down").0;
        player.new_game(seed);
        &mut **player
    }
}

/// Whether a player that was built for the one serves for the other.
fn is_same(one: &PlayerSpec, other: &PlayerSpec) -> bool {
    match (one, other) {
        (PlayerSpec::Material { depth: one }, PlayerSpec::Material { depth: other }) => one == other,
        (PlayerSpec::Random, PlayerSpec::Random) => true,
        (
            PlayerSpec::Network { network: one, depth },
            PlayerSpec::Network { network: other, depth: others },
        ) => Arc::ptr_eq(one, other) && depth == others,
        (
            PlayerSpec::Ensemble { ensemble: one, depth },
            PlayerSpec::Ensemble { ensemble: other, depth: others },
        ) => Arc::ptr_eq(one, other) && depth == others,
        (
            PlayerSpec::Knowing { player: one, knowledge },
            PlayerSpec::Knowing { player: other, knowledge: others },
        ) => is_same(one, other) && knowledge.is_same(others),
        (
            PlayerSpec::Limited { player: one, limits },
            PlayerSpec::Limited { player: other, limits: others },
        ) => is_same(one, other) && limits == others,
        (
            PlayerSpec::Playing { player: one, limits, settings },
            PlayerSpec::Playing { player: other, limits: others, settings: other_settings },
        ) => is_same(one, other) && limits == others && settings == other_settings,
        _ => false,
    }
}

/// A player within its own limits or given ones.
struct Limited<'a> {
    player: &'a mut dyn Player,
    limits: Option<Limits>,
    scores: &'a mut Vec<Option<Score>>,
}

impl Player for Limited<'_> {
    fn new_game(&mut self, seed: u64) {
        self.player.new_game(seed);
    }

    fn choose(&mut self, game: &Game) -> Option<Move> {
        match &self.limits {
            None => {
                let chosen = self.player.choose(game);
                self.scores.push(self.player.last_score());
                chosen
            }
            Some(limits) => {
                forced(game).or_else(|| self.player.think(game, limits).map(|thought| thought.best))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Consult, Database, Endgames, Ensemble, Network, NodeKind, openings};

    fn network(seed: u32) -> PlayerSpec {
        let weight = |at: usize| ((at as u32).wrapping_mul(0x9e37_79b1 ^ seed) % 401) as f32 / 1000.0 - 0.2;
        let weights: Vec<f32> = (0..NodeKind::Sum.weight_count()).map(weight).collect();
        let network = Network::new(NodeKind::Sum, &weights).expect("weights of a network");
        PlayerSpec::Network { network: Arc::new(network), depth: 2 }
    }

    /// The same game between new players.
    fn apart(start: Position, [black, white]: [&PlayerSpec; 2], seeds: [u64; 2]) -> Vec<Move> {
        let (mut black, mut white) = (black.build(), white.build());
        black.new_game(seeds[0]);
        white.new_game(seeds[1]);
        let mut game = Game::from_position(start, DrawRules::default());
        game.play_out(&mut *black, &mut *white);
        game.moves().to_vec()
    }

    fn knowing(player: PlayerSpec, pieces: u32) -> PlayerSpec {
        let database = Database::shared(pieces).expect("few pieces");
        let endgames = Some(Endgames { database, consult: Consult::Always });
        PlayerSpec::Knowing {
            player: Box::new(player),
            knowledge: Knowledge { endgames, ..Knowledge::default() },
        }
    }

    #[test]
    fn what_was_played_before_does_not_matter() {
        let members = [network(1), network(2)].map(|member| match member {
            PlayerSpec::Network { network, .. } => network,
            _ => unreachable!("they are networks"),
        });
        let ensemble = Arc::new(Ensemble::new(members.to_vec()).expect("two members"));
        let ensemble = PlayerSpec::Ensemble { ensemble, depth: 2 };
        let players = [
            network(1),
            PlayerSpec::Random,
            knowing(network(1), 3),
            knowing(network(2), 3),
            knowing(network(2), 2),
            network(2),
            PlayerSpec::Material { depth: 2 },
            knowing(PlayerSpec::Material { depth: 2 }, 3),
            ensemble.clone(),
            knowing(ensemble, 3),
            network(1),
        ];
        let mut table = Table::new(DrawRules::default(), None);
        for (at, black) in players.iter().enumerate() {
            for (number, white) in players.iter().enumerate() {
                let (start, seeds) = (openings()[11 * at + number].position, [at as u64, number as u64]);
                table.play(start, [black, white], seeds);
                assert_eq!(table.game().moves(), apart(start, [black, white], seeds));
            }
        }
    }

    #[test]
    fn limits_of_the_table_take_the_place_of_the_players_own() {
        let players = [&PlayerSpec::Material { depth: 1 }, &PlayerSpec::Material { depth: 4 }];
        let (start, seeds) = (Position::START, [1, 2]);
        let mut own = Table::new(DrawRules::default(), None);
        own.play(start, players, seeds);
        let mut limited = Table::new(DrawRules::default(), Some(Limits::depth(2)));
        limited.play(start, players, seeds);
        let same = PlayerSpec::Material { depth: 2 };
        assert_eq!(limited.game().moves(), apart(start, [&same, &same], seeds));
        assert_ne!(limited.game().moves(), own.game().moves());
    }
}
