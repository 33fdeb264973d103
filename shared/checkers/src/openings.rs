//! The three-move openings: the deck from which tournaments draw how a game begins.
//!
//! `data/openings.csv` is part of the crate. An opening's number is its place in the list of the American Checker
//! Federation, where the openings that are not in the deck have numbers too.
//!
//! Sharp starts are another deck (`data/sharp.csv`): 11 men on each side after a move of both, from which players of our
//! own hardly ever drew and both sides won ([`sharpest`]). Their numbers start at 1001.

use crate::evaluator::Material;
use crate::game::{DrawRules, Game};
use crate::knowledge::{KnowingPlayer, Knowledge};
use crate::moves::Move;
use crate::player::Player as _;
use crate::position::{Position, Side};
use crate::random::Stream;
use crate::squares::Squares;
use crate::style::Style;
use std::fmt;
use std::sync::LazyLock;

/// How a game may begin: some moves, and the position after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// 1 to 174 for the deck, from 1001 on for sharp starts, 0 for the initial position.
    pub number: u16,
    /// Its own name or that of its first two moves, if either has one.
    pub name: Option<&'static str>,
    /// Where its moves start.
    pub start: Position,
    /// Black's, White's, Black's; sharp starts have none.
    pub moves: &'static [Move],
    /// Where they lead.
    pub position: Position,
}

impl Opening {
    /// What players call all openings with this first move.
    pub fn family(&self) -> &'static str {
        let Some(first) = self.moves.first() else {
            return if self.number == 0 { "Initial position" } else { "Sharp" };
        };
        match (first.from().number(), first.to().number()) {
            (9, 13) => "Edinburgh",
            (9, 14) => "Double Corner",
            (10, 14) => "Denny",
            (10, 15) => "Kelso",
            (11, 15) => "Old Faithful",
            (11, 16) => "Bristol",
            _ => "Dundee",
        }
    }
}

/// Its number and what players call it: the number is that of a list, and says nothing about how many openings a deck has.
///
/// ```
/// let bristol = checkers::opening_of(158).expect("it is in the deck");
/// assert_eq!(bristol.to_string(), "opening 158 (Bristol)");
/// ```
impl fmt::Display for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.moves, self.number) {
            ([], 0) => f.write_str("the initial position"),
            ([], number) => write!(f, "sharp start {number}"),
            (_, number) => write!(f, "opening {number} ({})", self.name.unwrap_or_else(|| self.family())),
        }
    }
}

/// The 156 openings of the deck, by number.
pub fn openings() -> &'static [Opening] {
    static DECK: LazyLock<Vec<Opening>> = LazyLock::new(read_deck);
    &DECK
}

/// The sharp starts, by number.
pub fn sharp_openings() -> &'static [Opening] {
    static SHARP: LazyLock<Vec<Opening>> = LazyLock::new(|| {
        let lines = include_str!("../data/sharp.csv").lines().filter(|line| !line.starts_with('#')).skip(1);
        lines.map(sharp_line).collect()
    });
    &SHARP
}

fn sharp_line(line: &'static str) -> Opening {
    let (number, rest) = line.split_once(',').expect("the list's lines begin with a number");
    let fen = rest.split(';').next().unwrap_or(rest);
    let position = fen.parse().expect("the list's positions are positions: a test reads them all");
    let number = number.parse().expect("the list's numbers are numbers");
    Opening { number, name: None, start: position, moves: &[], position }
}

/// The initial position as a deck of its own, for games in which players choose their openings themselves.
pub fn initial_opening() -> &'static [Opening] {
    static START: [Opening; 1] =
        [Opening { number: 0, name: None, start: Position::START, moves: &[], position: Position::START }];
    &START
}

/// The opening of this number, of any deck.
pub fn opening_of(number: u16) -> Option<&'static Opening> {
    initial_opening()
        .iter()
        .chain(openings())
        .chain(sharp_openings())
        .find(|opening| opening.number == number)
}

/// A start, and what came of games from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharpStart {
    /// The position.
    pub position: Position,
    /// Games that Black won, that were drawn, that White won.
    pub results: [u32; 3],
}

/// The positions with 11 men on each side after a move of both, in which nothing is to be captured: one man of each side
/// has been taken off the initial position.
pub fn eleven_man_starts() -> Vec<Position> {
    let mut found = std::collections::BTreeMap::new();
    for black in Position::START.black {
        for white in Position::START.white {
            let mut start = Position::START;
            start.black = Squares(start.black.0 & !Squares::from(black).0);
            start.white = Squares(start.white.0 & !Squares::from(white).0);
            let after = |position: &Position| -> Vec<Position> {
                position.legal_moves().iter().map(|mv| position.play(mv)).collect()
            };
            for position in after(&start).iter().flat_map(after) {
                if !position.must_capture() && position.black.count() + position.white.count() == 22 {
                    found.insert(position.to_string(), position);
                }
            }
        }
    }
    found.into_values().collect()
}

/// Plays games from a start between players who count pieces four plies ahead and know the game so far.
pub fn try_start(position: Position, games: u32) -> SharpStart {
    let rules = DrawRules { repetitions: Some(3), quiet_plies: Some(60), max_plies: 200, adjudicate: 0 };
    let style = Style { history: true, ..Style::default() };
    let knowledge = Knowledge { style, ..Knowledge::default() };
    let mut players = [0; 2].map(|_| KnowingPlayer::new(Material { seed: 0 }, 4, &knowledge));
    let mut results = [0; 3];
    for seed in 0..games {
        let [black, white] = &mut players;
        black.new_game(u64::from(seed) * 2 + 1);
        white.new_game(u64::from(seed) * 2 + 2);
        let outcome = Game::from_position(position, rules).play_out(black, white);
        results[(1 - outcome.points(Side::Black)) as usize] += 1;
    }
    SharpStart { position, results }
}

/// The sharpest of some starts: fewest draws first, then those whose sides win most evenly. Neither side wins less than a
/// quarter of the games.
pub fn sharpest(mut starts: Vec<SharpStart>, count: usize) -> Vec<SharpStart> {
    let all = |start: &SharpStart| start.results.iter().sum::<u32>();
    starts.retain(|start| start.results[0].min(start.results[2]) * 4 >= all(start));
    starts.sort_by_key(|start| {
        let [black, draws, white] = start.results;
        (draws, black.abs_diff(white), start.position.to_string())
    });
    starts.truncate(count);
    starts
}

/// `count` openings of the deck that represent all of it, by number: the deck, in which openings with the same first
/// moves are neighbours, is cut into `count` equal parts, and `seed` draws one of each. All of them if there are
/// fewer.
///
/// ```
/// let eighty = checkers::stratified_openings(checkers::openings(), 80, 7);
/// assert_eq!(eighty.len(), 80);
/// assert_eq!(eighty, checkers::stratified_openings(checkers::openings(), 80, 7));
/// ```
pub fn stratified_openings(deck: &'static [Opening], count: usize, seed: u64) -> Vec<&'static Opening> {
    let count = count.min(deck.len());
    let mut stream = Stream::new(seed);
    (0..count)
        .map(|part| {
            let (first, end) = (part * deck.len() / count, (part + 1) * deck.len() / count);
            &deck[first + stream.below(end - first)]
        })
        .collect()
}

fn read_deck() -> Vec<Opening> {
    let lines = include_str!("../data/openings.csv").lines();
    lines.filter_map(|line| deck_line(line.split(',').collect::<Vec<_>>().try_into().ok()?)).collect()
}

/// The opening of a line of the list, if it is in the deck.
fn deck_line([number, standing, moves, name]: [&'static str; 4]) -> Option<Opening> {
    if standing != "deck" {
        return None;
    }
    let mut position = Position::START;
    let played: Vec<Move> = moves
        .split(' ')
        .map(|text| {
            let mv = position.parse_move(text).expect("the list's moves are legal: a test reads them all");
            position = position.play(&mv);
            mv
        })
        .collect();
    let moves = &*played.leak();
    let number = number.parse().expect("the list's numbers are numbers");
    let name = Some(name).filter(|name| !name.is_empty());
    Some(Opening { number, name, start: Position::START, moves, position })
}
