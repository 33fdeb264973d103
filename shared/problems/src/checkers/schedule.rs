//! The games of an evaluation: opponents, colours and openings, drawn before the first game.

use super::{Checkers, Colours, Openings, Opponents};
use checkers::Opening;
use evolution::problem::Judging;
use evolution::random::Stream;
use std::ops::Range;

/// The random stream of the networks' own choices, apart from all individuals.
const LUCK: usize = 1 << 24;

/// A player of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// An individual, or a former champion, by its place in the population.
    Network(usize),
    /// The player that does not evolve; the seed decides its ties.
    Benchmark(u64),
}

/// A game to play, and the individuals that score in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pairing {
    pub(super) black: Side,
    pub(super) white: Side,
    /// The place of the opening in the deck; the initial position without one.
    pub(super) opening: Option<usize>,
    /// The individuals that score, as Black and as White.
    pub(super) scores: [Option<usize>; 2],
    /// The seed of the networks' random choices.
    pub(super) seed: u64,
    /// Decides random moves after the opening; the same for both games of a pair.
    pub(super) start: u64,
}

/// The games of one judgement.
pub(super) struct Schedule<'a> {
    keys: &'a Checkers,
    /// Of the whole judgement.
    luck: u64,
    pairings: Vec<Pairing>,
    /// From which game on seeds are counted: a panel's games have the same luck for all individuals.
    first: usize,
}

impl<'a> Schedule<'a> {
    /// All games of a judgement. `weights` are those of the former champions, if some are met more often than others.
    pub(super) fn draw(keys: &'a Checkers, judging: &Judging, weights: Option<&[f64]>) -> Vec<Pairing> {
        let mut schedule = Self { keys, luck: judging.stream(LUCK).bits(), pairings: vec![], first: 0 };
        match keys.opponents {
            Opponents::Random => schedule.meet_random_others(judging, weights),
            Opponents::Panel => schedule.meet_a_panel(judging, weights),
        }
        schedule.pairings
    }

    /// The round robin of some contenders: `pairs` pairs of games of each two of them.
    pub(super) fn round_robin(keys: &'a Checkers, contenders: &[u32], judging: &Judging) -> Vec<Pairing> {
        Self::meet_all(keys, contenders, judging, (LUCK, 0..keys.champion.pairs))
    }

    /// A round of a race: one pair of games of each two of those who are left, all from one opening.
    pub(super) fn race_round(
        keys: &'a Checkers,
        left: &[u32],
        judging: &Judging,
        round: u32,
    ) -> Vec<Pairing> {
        Self::meet_all(keys, left, judging, (LUCK + 1 + round as usize, round..round + 1))
    }

    /// These pairs of games of each two contenders, with luck of this stream.
    fn meet_all(
        keys: &'a Checkers,
        contenders: &[u32],
        judging: &Judging,
        (luck, pairs): (usize, Range<u32>),
    ) -> Vec<Pairing> {
        let mut schedule = Self { keys, luck: judging.stream(luck).bits(), pairings: vec![], first: 0 };
        for (at, &one) in contenders.iter().enumerate() {
            for &other in &contenders[at + 1..] {
                for pair in pairs.clone() {
                    // All individuals meet each other from the same openings; from the initial position where evolution
                    // starts there, unless all pairs of two would then be the same two games.
                    let mut stream = judging.stream(pair as usize);
                    let is_start = keys.openings == Openings::Start && keys.leaves_to_chance();
                    let opening = (!is_start).then(|| stream.below(starts(keys).len()));
                    schedule.swapped(one as usize, Side::Network(other as usize), opening, true);
                }
            }
        }
        schedule.pairings
    }

    /// Each individual has a stream of its own.
    fn meet_random_others(&mut self, judging: &Judging, weights: Option<&[f64]>) {
        let count = judging.fresh.len();
        for one in 0..count {
            let mut stream = judging.stream(one);
            for _ in 0..self.among_residents(judging) {
                // The only individual of an island plays against itself.
                let other = if count > 1 { (one + 1 + stream.below(count - 1)) % count } else { one };
                self.meet(one, Side::Network(other), &mut stream, true);
            }
            self.meet_the_past(one, judging, weights, &mut stream);
        }
    }

    /// The opponents come from one stream, which starts again for every individual.
    fn meet_a_panel(&mut self, judging: &Judging, weights: Option<&[f64]>) {
        let count = judging.fresh.len();
        for one in 0..count {
            let mut stream = judging.stream(0);
            self.first = self.pairings.len();
            for _ in 0..self.among_residents(judging) {
                let drawn = stream.below(count);
                // A member of the panel meets its neighbour instead of itself.
                let other = if drawn == one { (drawn + 1) % count } else { drawn };
                self.meet(one, Side::Network(other), &mut stream, false);
            }
            self.meet_the_past(one, judging, weights, &mut stream);
        }
    }

    /// Encounters of each individual with others of its island.
    fn among_residents(&self, judging: &Judging) -> u32 {
        if judging.exploits { 0 } else { self.keys.games }
    }

    /// Encounters with former champions and with the benchmark. Where only former champions count, their number is that of all
    /// encounters otherwise.
    fn meet_the_past(&mut self, one: usize, judging: &Judging, weights: Option<&[f64]>, stream: &mut Stream) {
        if !judging.hall.is_empty() {
            let instead = self.keys.games - self.among_residents(judging);
            for _ in 0..self.keys.hall_of_fame.games + instead {
                let place = match weights {
                    None => stream.below(judging.hall.len()),
                    Some(weights) => chosen(weights, stream),
                };
                let champion = judging.hall.start + place;
                self.meet(one, Side::Network(champion), stream, false);
            }
        }
        for _ in 0..self.keys.benchmark.games {
            let benchmark = Side::Benchmark(stream.bits());
            self.meet(one, benchmark, stream, false);
        }
    }

    /// One encounter: a game, or two with colours swapped.
    fn meet(&mut self, one: usize, other: Side, stream: &mut Stream, both_score: bool) {
        let opening = match self.keys.openings {
            Openings::Start => None,
            Openings::Deck | Openings::Sharp => Some(stream.below(starts(self.keys).len())),
        };
        match self.keys.colours {
            Colours::First => self.game(one, other, opening, both_score),
            Colours::Swapped => self.swapped(one, other, opening, both_score),
        }
    }

    fn swapped(&mut self, one: usize, other: Side, opening: Option<usize>, both_score: bool) {
        self.game(one, other, opening, both_score);
        let Some(Pairing { black, white, scores: [first, second], start, .. }) =
            self.pairings.last().copied()
        else {
            return;
        };
        let (seed, scores) = (self.seed(), [second, first]);
        self.pairings.push(Pairing { black: white, white: black, opening, scores, seed, start });
    }

    fn game(&mut self, one: usize, other: Side, opening: Option<usize>, both_score: bool) {
        let scores = match other {
            Side::Network(other) if both_score => [Some(one), Some(other)],
            _ => [Some(one), None],
        };
        let seed = self.seed();
        let black = Side::Network(one);
        self.pairings.push(Pairing { black, white: other, opening, scores, seed, start: seed });
    }

    /// A seed for each game, by its place among the games of the judgement, or of the individual where all meet one panel.
    fn seed(&self) -> u64 {
        let place = (self.pairings.len() - self.first) as u64;
        self.luck.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// A place, drawn in proportion to its weight.
fn chosen(weights: &[f64], stream: &mut Stream) -> usize {
    let mut left = stream.unit() * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return place;
        }
    }
    weights.len() - 1
}

/// The openings of games that do not start at the initial position.
fn starts(keys: &Checkers) -> &'static [Opening] {
    keys.openings.starts().unwrap_or(checkers::openings())
}

#[cfg(test)]
mod tests {
    use super::super::{BookKey, Choice, HallOfFame, NamedBook, Ties};
    use super::*;
    use evolution::random::Key;
    use std::collections::BTreeSet;

    fn drawn(keys: &Checkers, individuals: usize) -> Vec<Pairing> {
        Schedule::draw(keys, &Judging::new(0..individuals, Key::new(1, 2, 3)), None)
    }

    #[test]
    fn each_begins_as_many_games_as_it_should_and_none_with_itself() {
        let pairings = drawn(&Checkers { games: 5, ..Checkers::default() }, 30);
        assert_eq!(pairings.len(), 150);
        for one in 0..30 {
            assert_eq!(pairings.iter().filter(|game| game.black == Side::Network(one)).count(), 5);
        }
        assert!(pairings.iter().all(|game| game.black != game.white && game.opening.is_none()));
        let all = |game: &Pairing| game.scores.iter().all(Option::is_some);
        assert!(pairings.iter().all(all), "both sides score");
    }

    #[test]
    fn a_panel_is_the_same_for_everybody() {
        let keys = Checkers {
            games: 4,
            opponents: Opponents::Panel,
            openings: Openings::Deck,
            ..Checkers::default()
        };
        let pairings = drawn(&keys, 50);
        let seen = |one: usize| -> Vec<(Side, Option<usize>, u64)> {
            let own = pairings.iter().filter(|game| game.black == Side::Network(one));
            own.map(|game| (game.white, game.opening, game.seed)).collect()
        };
        let panel: Vec<Side> = seen(0).into_iter().map(|(member, ..)| member).collect();
        let outsiders: Vec<usize> = (0..50).filter(|one| !panel.contains(&Side::Network(*one))).collect();
        assert!(outsiders.len() >= 45);
        assert!(outsiders.iter().all(|one| *one == 0 || seen(*one) == seen(outsiders[outsiders.len() - 1])));
        assert!(pairings.iter().all(|game| game.scores[1].is_none()), "who sits on the panel does not score");
        let seeds: BTreeSet<u64> = seen(0).into_iter().map(|(.., seed)| seed).collect();
        assert_eq!(seeds.len(), 4, "games of one individual share no luck");
    }

    #[test]
    fn random_opponents_share_no_luck() {
        let pairings = drawn(&Checkers { colours: Colours::Swapped, ..Checkers::default() }, 20);
        let seeds: BTreeSet<u64> = pairings.iter().map(|game| game.seed).collect();
        assert_eq!(seeds.len(), pairings.len());
    }

    #[test]
    fn champions_are_confirmed_where_games_start_unless_all_would_be_the_same() {
        let openings = |keys: &Checkers| -> Vec<Option<usize>> {
            let judging = Judging::new(0..4, Key::new(1, 2, 3));
            let pairings = Schedule::round_robin(keys, &[0, 1, 2, 3], &judging);
            pairings.iter().map(|game| game.opening).collect()
        };
        let fixed = Checkers::default();
        assert!(openings(&fixed).iter().all(Option::is_some), "each pair would be the same two games");
        let ties = Checkers { ties: Ties::Random, ..Checkers::default() };
        let book = Checkers { book: Some(BookKey::Named(NamedBook::Deck)), ..Checkers::default() };
        for varied in [ties, book] {
            assert!(openings(&varied).iter().all(Option::is_none), "they evolve from the start alone");
            let deck = Checkers { openings: Openings::Deck, ..varied };
            assert!(openings(&deck).iter().all(Option::is_some));
        }
    }

    #[test]
    fn who_exploits_meets_former_champions_alone_and_the_hardest_most() {
        let hall_of_fame = HallOfFame { size: 3, games: 2, choice: Choice::Hardest };
        let keys = Checkers { games: 3, hall_of_fame, ..Checkers::default() };
        let mut judging = Judging::new(0..200, Key::new(1, 2, 3));
        (judging.hall, judging.exploits) = (200..203, true);
        let pairings = Schedule::draw(&keys, &judging, Some(&[0.75, 0.25, 0.0]));
        let met = |place| pairings.iter().filter(|game| game.white == Side::Network(place)).count();
        assert_eq!([met(200) + met(201), met(202)], [1000, 0], "five games each");
        assert!((700..800).contains(&met(200)), "{}", met(200));
    }

    #[test]
    fn swapped_games_share_their_opening() {
        let keys = Checkers {
            colours: Colours::Swapped,
            openings: Openings::Deck,
            hall_of_fame: HallOfFame { size: 1, games: 1, choice: Choice::Random },
            ..Checkers::default()
        };
        let pairings = drawn(&keys, 7);
        for [one, other] in pairings.as_chunks().0 {
            assert_eq!((one.black, one.white, one.opening), (other.white, other.black, other.opening));
            assert_eq!([one.scores[1], one.scores[0]], other.scores);
        }
    }
}
