//! Two players against each other, pair by pair.

use crate::tally::Tally;
use checkers::{DrawRules, Game, Move, Opening, Outcome, Player, PlayerSpec, Side, openings};
use rayon::prelude::*;

/// Two games from one opening, each player with each colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where both games start.
    pub opening: &'static Opening,
    /// Tells pairs with the same opening apart: what players leave to chance depends on it.
    pub number: u64,
}

/// So many pairs: the openings of the deck in their order, spread over it when there are fewer, and again from the first
/// when there are more.
pub fn deck_pairs(count: usize, seed: u64) -> Vec<Pair> {
    let deck = openings();
    let whole = (0..count / deck.len() * deck.len()).map(|at| &deck[at % deck.len()]);
    let rest = checkers::stratified_openings(count % deck.len(), seed);
    whole.chain(rest).zip(0..).map(|(opening, number)| Pair { opening, number }).collect()
}

/// A match of two players.
#[derive(Clone, Debug)]
pub struct Match {
    /// Whose score is counted, and whom against.
    pub players: [PlayerSpec; 2],
    /// When games are drawn.
    pub rules: DrawRules,
    /// Decides what players leave to chance.
    pub seed: u64,
}

/// A game as it was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedGame {
    /// The number of its opening in the list of the American Checker Federation.
    pub opening: u8,
    /// Which of the two players was Black.
    pub black: usize,
    /// What was played, the opening's moves included.
    pub moves: Vec<Move>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Match {
    /// Plays all pairs on all cores, and counts them in order.
    pub fn play(&self, pairs: &[Pair]) -> Tally {
        let games = self.games(pairs);
        let mut tally = Tally::default();
        for [one, other] in games.as_chunks().0 {
            tally.add(&[one, other].map(PlayedGame::points));
        }
        tally
    }

    /// Plays all pairs on all cores: two games for each, in order, the first player Black in the first of them.
    pub fn games(&self, pairs: &[Pair]) -> Vec<PlayedGame> {
        let each: Vec<(Pair, usize)> = pairs.iter().flat_map(|&pair| [(pair, 0), (pair, 1)]).collect();
        // Players remember nothing from game to game, so they may be used again.
        let seats = || self.players.each_ref().map(PlayerSpec::build);
        each.into_par_iter().map_init(seats, |seats, (pair, black)| self.game(seats, pair, black)).collect()
    }

    fn game(&self, seats: &mut [Box<dyn Player + Send>; 2], pair: Pair, black: usize) -> PlayedGame {
        for (seat, player) in seats.iter_mut().enumerate() {
            // Far apart, so that no two games share their luck.
            let place = pair.number.wrapping_mul(4) + 2 * black as u64 + seat as u64;
            player.new_game(self.seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        }
        let mut game = Game::from_position(pair.opening.position, self.rules);
        let [one, other] = seats.each_mut();
        let outcome = match black {
            0 => game.play_out(&mut **one, &mut **other),
            _ => game.play_out(&mut **other, &mut **one),
        };
        let moves = pair.opening.moves.iter().chain(game.moves()).copied().collect();
        PlayedGame { opening: pair.opening.number, black, moves, outcome }
    }
}

impl PlayedGame {
    /// What the first player got: 1 for a win, 0 for a draw, -1 for a loss.
    pub fn points(&self) -> i32 {
        self.outcome.points(if self.black == 0 { Side::Black } else { Side::White })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duel(players: [PlayerSpec; 2], seed: u64) -> Match {
        Match { players, rules: DrawRules::default(), seed }
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
    fn games_can_be_played_again_from_their_moves() {
        let played = duel([PlayerSpec::Random, PlayerSpec::Random], 5).games(&deck_pairs(5, 0));
        for game in played {
            let mut again = Game::new(DrawRules::default());
            game.moves.iter().for_each(|mv| again.play(*mv).expect("it was legal"));
            assert_eq!(again.outcome(), Some(game.outcome));
        }
    }

    #[test]
    fn pairs_go_through_the_deck() {
        let pairs = deck_pairs(160, 7);
        assert_eq!(pairs.len(), 160);
        let numbers: Vec<u8> = pairs[..156].iter().map(|pair| pair.opening.number).collect();
        assert!(numbers.is_sorted() && numbers.len() == openings().len());
        assert_ne!(pairs[0].number, pairs[156].number);
    }
}
