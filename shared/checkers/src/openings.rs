//! The three-move openings: the deck from which tournaments draw how a game begins.
//!
//! `data/openings.csv` is part of the crate. An opening's number is its place in the list of the American Checker
//! Federation, where the openings that are not in the deck have numbers too.

use crate::moves::Move;
use crate::position::Position;
use crate::random::Stream;
use std::sync::LazyLock;

/// How a game may begin: three moves, and the position after them, White to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// 1 to 174.
    pub number: u8,
    /// Its own name or that of its first two moves, if either has one.
    pub name: Option<&'static str>,
    /// Black's, White's, Black's.
    pub moves: [Move; 3],
    /// Where they lead.
    pub position: Position,
}

impl Opening {
    /// What players call all openings with this first move.
    pub fn family(&self) -> &'static str {
        match (self.moves[0].from().number(), self.moves[0].to().number()) {
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

/// The 156 openings of the deck, by number.
pub fn openings() -> &'static [Opening] {
    static DECK: LazyLock<Vec<Opening>> = LazyLock::new(read_deck);
    &DECK
}

/// `count` openings of the deck that represent all of it, by number: the deck, in which openings with the same first
/// moves are neighbours, is cut into `count` equal parts, and `seed` draws one of each. All of them if there are not
/// so many.
///
/// ```
/// let eighty = checkers::stratified_openings(80, 7);
/// assert_eq!(eighty.len(), 80);
/// assert_eq!(eighty, checkers::stratified_openings(80, 7));
/// ```
pub fn stratified_openings(count: usize, seed: u64) -> Vec<&'static Opening> {
    let deck = openings();
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
    let moves = played.try_into().expect("the list's openings have three moves");
    let number = number.parse().expect("the list's numbers are numbers");
    Some(Opening { number, name: Some(name).filter(|name| !name.is_empty()), moves, position })
}
