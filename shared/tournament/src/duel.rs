//! Two players against each other, pair by pair.

use crate::contestant::Contestant;
use crate::game_runner::{GameRunner, Meeting};
use crate::record::PlayedPair;
use crate::tally::Tally;
use checkers::{DrawRules, Limits, Opening, openings};
use rayon::prelude::*;

/// Two games from one opening, each player with each colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where both games start.
    pub opening: &'static Opening,
    /// Distinguishes pairs with the same opening: random choices of players depend on it.
    pub number: u64,
}

/// This number of pairs: the openings of the deck in their order, spread over it when there are fewer, and again from the first
/// when there are more.
pub fn deck_pairs(count: usize, seed: u64) -> Vec<Pair> {
    let deck = openings();
    let whole = (0..count / deck.len() * deck.len()).map(|at| &deck[at % deck.len()]);
    let rest = checkers::stratified_openings(deck, count % deck.len(), seed);
    whole.chain(rest).zip(0..).map(|(opening, number)| Pair { opening, number }).collect()
}

/// A match of two players.
#[derive(Clone, Debug)]
pub struct Match {
    /// Whose score is counted, and whom against.
    pub players: [Contestant; 2],
    /// When games are drawn.
    pub rules: DrawRules,
    /// How far players may look, instead of what is their own.
    pub limits: Option<Limits>,
    /// Seed of the players' random choices.
    pub seed: u64,
}

impl Match {
    /// Whether the same opening is the same pair of games every time: neither player, nor a clock, leaves anything to
    /// chance. Pairs that come back prove nothing then.
    pub fn repeats_itself(&self) -> bool {
        let is_fixed = |player: &Contestant| match player {
            Contestant::Ours(spec) => !spec.leaves_to_chance(),
            Contestant::Engine { .. } => false,
        };
        self.limits.is_none_or(|limits| limits.time.is_none()) && self.players.iter().all(is_fixed)
    }

    /// Plays all pairs on all cores, and counts them in order.
    pub fn play(&self, pairs: &[Pair]) -> Tally {
        self.play_counted(pairs, || {})
    }

    /// The same; `played` is called after each pair.
    pub fn play_counted(&self, pairs: &[Pair], played: impl Fn() + Sync) -> Tally {
        let play = |runner: &mut GameRunner, pair: &Pair| {
            let games = self.pair(runner, *pair);
            played();
            games
        };
        let games: Vec<PlayedPair> = pairs.par_iter().map_init(|| self.runner(), play).collect();
        let mut tally = Tally::default();
        for pair in &games {
            tally.count(pair);
        }
        tally
    }

    /// Plays all pairs on all cores, in order.
    pub fn games(&self, pairs: &[Pair]) -> Vec<PlayedPair> {
        // Players remember nothing from game to game, so they may be used again.
        pairs.par_iter().map_init(|| self.runner(), |runner, pair| self.pair(runner, *pair)).collect()
    }

    /// Where pairs of this match are played one after the other.
    pub fn runner(&self) -> GameRunner {
        GameRunner::new(self.rules, self.limits)
    }

    /// Plays a pair, the first player Black in the first game.
    pub fn pair(&self, runner: &mut GameRunner, pair: Pair) -> PlayedPair {
        [0, 1].map(|black| {
            // Far apart, so that no two games share their luck.
            let place = |seat: u64| pair.number.wrapping_mul(4) + 2 * black as u64 + seat;
            let seed = |seat| self.seed.wrapping_add(place(seat).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let seeds = [seed(0), seed(1)];
            runner.play(&Meeting { opening: pair.opening, players: &self.players, seeds, black })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{GameEnding, Points};
    use checkers::{DrawReason, Game, Network, NodeKind, Outcome, PlayerSpec, Side};
    use std::sync::Arc;

    fn duel(players: [PlayerSpec; 2], seed: u64) -> Match {
        Match { players: players.map(Into::into), rules: DrawRules::default(), limits: None, seed }
    }

    #[test]
    fn equal_players_share_every_pair() {
        let same = || PlayerSpec::Material { depth: 1 };
        // With the same seeds both games of a pair would be one; they have their own, and still score about a half.
        let tally = duel([same(), same()], 3).play(&deck_pairs(156, 0));
        assert_eq!(tally.games(), 312);
        assert!(tally.interval().contains(0.5), "{tally:?}");
    }

    #[test]
    fn who_looks_ahead_wins() {
        let players = [PlayerSpec::Material { depth: 3 }, PlayerSpec::Random];
        let tally = duel(players, 5).play(&deck_pairs(20, 0));
        assert!(tally.wins >= 38, "{tally:?}");
    }

    #[test]
    fn the_other_way_round_is_the_mirror_image() {
        let material = || PlayerSpec::Material { depth: 2 };
        let one = duel([material(), PlayerSpec::Random], 5).play(&deck_pairs(10, 0));
        let other = duel([PlayerSpec::Random, material()], 5).play(&deck_pairs(10, 0));
        assert!(one.score() > 0.5 && other.score() < 0.5);
    }

    #[test]
    fn games_can_be_played_again_from_their_records() {
        let players = [PlayerSpec::Random, PlayerSpec::Material { depth: 1 }];
        let played = duel(players, 5).games(&deck_pairs(20, 0));
        for (at, record) in played.iter().flatten().enumerate() {
            assert_eq!(record.first_is_black, at % 2 == 0);
            let mut again = Game::new(DrawRules::default());
            for mv in record.moves().expect("it was played") {
                again.play(mv).expect("it was legal");
            }
            let first = if record.first_is_black { Side::Black } else { Side::White };
            let (points, ending) = match again.outcome().expect("it has ended") {
                Outcome::Win(side) if side == first => (Points::Win, GameEnding::NoMove),
                Outcome::Win(_) => (Points::Loss, GameEnding::NoMove),
                Outcome::Draw(DrawReason::Repetition) => (Points::Draw, GameEnding::Repetition),
                Outcome::Draw(DrawReason::NoProgress) => (Points::Draw, GameEnding::NoProgress),
                Outcome::Draw(DrawReason::TooLong | DrawReason::Adjudicated) => {
                    (Points::Draw, GameEnding::TooLong)
                }
            };
            assert_eq!((record.points, record.ending), (points, ending));
            let pdn = record.to_pdn(["one", "other"], "a test", "1").expect("it was played").to_string();
            let read = checkers::read_pdn(&pdn).expect("it is PDN");
            assert_eq!(read.len(), 1);
            assert_eq!(read[0].moves, record.moves().expect("it was played"));
            assert_eq!(read[0].tag("Termination"), Some(record.ending.word()));
        }
    }

    #[test]
    fn whoever_leaves_nothing_to_chance_plays_the_same_game_again() {
        let network = |weight: f32| {
            let weights = vec![weight; NodeKind::Sum.weight_count()];
            let network = Arc::new(Network::new(NodeKind::Sum, &weights).expect("as many as it wants"));
            PlayerSpec::Network { network, depth: 2 }
        };
        let again = |duel: &Match| {
            let pairs = deck_pairs(156 + 3, 0);
            let place = pairs[..156].iter().position(|pair| pair.opening == pairs[157].opening);
            let games = duel.games(&[pairs[place.expect("the deck holds it")], pairs[157]]);
            games[0] == games[1]
        };
        let fixed = duel([network(0.01), network(0.02)], 1);
        assert!(fixed.repeats_itself() && again(&fixed));
        let open = duel([network(0.01), PlayerSpec::Material { depth: 2 }], 1);
        assert!(!open.repeats_itself() && !again(&open));
        let timed = Limits { time: Some(std::time::Duration::from_millis(1)), ..Limits::depth(2) };
        assert!(!Match { limits: Some(timed), ..fixed }.repeats_itself(), "a clock plays along");
    }

    #[test]
    fn pairs_go_through_the_deck() {
        let pairs = deck_pairs(160, 7);
        assert_eq!(pairs.len(), 160);
        let numbers: Vec<u16> = pairs[..156].iter().map(|pair| pair.opening.number).collect();
        assert!(numbers.is_sorted() && numbers.len() == openings().len());
        assert_ne!(pairs[0].number, pairs[156].number);
    }
}
