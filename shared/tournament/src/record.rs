//! Games as they are kept: small, and able to be played again.

use bincode::{Decode, Encode};
use checkers::{
    Comment, DrawReason, DrawRules, Game, Move, Opening, Outcome, PdnGame, PdnResult, Position, Side, Tag,
    opening_of,
};
use serde::{Deserialize, Serialize};

/// What the first of two players got from a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Points {
    /// It won.
    Win,
    /// Neither player won.
    Draw,
    /// It lost.
    Loss,
}

/// Why a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum GameEnding {
    /// The loser could not move any more.
    NoMove,
    /// A position came back too often.
    Repetition,
    /// Nothing was captured and no man moved for too long.
    NoProgress,
    /// The game lasted too long.
    TooLong,
    /// The loser did something that is no play.
    Forfeit(Forfeit),
    /// The endgame database knows which side wins, or that neither can.
    Adjudicated,
}

/// What an engine loses a game by, beside its play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Forfeit {
    /// It chose what it may not play.
    IllegalMove,
    /// It went away, could not be started, or did not speak Hub.
    Crash,
    /// It took too long.
    Time,
}

impl GameEnding {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NoMove,
        Self::Repetition,
        Self::NoProgress,
        Self::TooLong,
        Self::Forfeit(Forfeit::IllegalMove),
        Self::Forfeit(Forfeit::Crash),
        Self::Forfeit(Forfeit::Time),
        Self::Adjudicated,
    ];

    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoMove => "no-move",
            Self::Repetition => "repetition",
            Self::NoProgress => "no-progress",
            Self::TooLong => "too-long",
            Self::Forfeit(Forfeit::IllegalMove) => "illegal-move",
            Self::Forfeit(Forfeit::Crash) => "crash",
            Self::Forfeit(Forfeit::Time) => "time",
            Self::Adjudicated => "adjudicated",
        }
    }
}

/// A game between two players.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct GameRecord {
    /// The number of its opening: in the list of the American Checker Federation, or of a sharp start.
    pub opening: u16,
    /// Whether the first of the two players was Black.
    pub first_is_black: bool,
    /// What the first player got.
    pub points: Points,
    /// Why it ended.
    pub ending: GameEnding,
    /// What was played after the opening: each move's place among the legal ones.
    moves: Vec<u8>,
}

/// Two games from one opening, the first player Black in the first of them.
pub type PlayedPair = [GameRecord; 2];

/// Not a valid game record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// There is no such opening.
    #[error("expected an opening of the deck, found `{0}`")]
    Opening(u16),
    /// There is no such move.
    #[error("expected a legal move at ply {ply}, found number `{found}` of {legal}")]
    Move {
        /// Where.
        ply: usize,
        /// The place that it names.
        found: u8,
        /// How many legal moves there are.
        legal: usize,
    },
}

impl GameRecord {
    /// A game that has ended, by itself or with a forfeit of a side.
    pub(crate) fn of(
        opening: u16,
        first_is_black: bool,
        game: &Game,
        forfeit: Option<(Side, Forfeit)>,
    ) -> Self {
        let first = if first_is_black { Side::Black } else { Side::White };
        let (points, ending) = match (forfeit, game.outcome()) {
            (Some((loser, why)), _) => (if loser == first { -1 } else { 1 }, GameEnding::Forfeit(why)),
            (None, Some(Outcome::Draw(DrawReason::Repetition))) => (0, GameEnding::Repetition),
            (None, Some(Outcome::Draw(DrawReason::NoProgress))) => (0, GameEnding::NoProgress),
            (None, Some(outcome)) if game.is_adjudicated() => {
                (outcome.points(first), GameEnding::Adjudicated)
            }
            (None, Some(outcome @ Outcome::Win(_))) => (outcome.points(first), GameEnding::NoMove),
            (None, Some(Outcome::Draw(DrawReason::TooLong | DrawReason::Adjudicated)) | None) => {
                (0, GameEnding::TooLong)
            }
        };
        let points = match points {
            1 => Points::Win,
            0 => Points::Draw,
            _ => Points::Loss,
        };
        Self { opening, first_is_black, points, ending, moves: places(*game.start(), game.moves()) }
    }

    fn opening(&self) -> Result<&'static Opening, RecordError> {
        opening_of(self.opening).ok_or(RecordError::Opening(self.opening))
    }

    /// All moves, those of the opening included.
    pub fn moves(&self) -> Result<Vec<Move>, RecordError> {
        let opening = self.opening()?;
        let (mut position, mut moves) = (opening.position, opening.moves.to_vec());
        for &place in &self.moves {
            let legal = position.legal_moves();
            let error = RecordError::Move { ply: moves.len(), found: place, legal: legal.len() };
            let mv = *legal.get(usize::from(place)).ok_or(error)?;
            position = position.play(&mv);
            moves.push(mv);
        }
        Ok(moves)
    }

    /// Whether it is a game by these rules: of legal moves, and at its end for the reason and with the result that it
    /// says. A forfeit cannot be seen from the moves, but then the game must have been open.
    pub fn is_game(&self, rules: DrawRules) -> bool {
        let (Ok(opening), Ok(moves)) = (self.opening(), self.moves()) else { return false };
        // Rules count from where the players took over.
        let mut game = Game::from_position(opening.position, rules);
        if moves[opening.moves.len()..].iter().any(|mv| game.play(*mv).is_err()) {
            return false;
        }
        match self.ending {
            GameEnding::Forfeit(_) => game.outcome().is_none() && self.points != Points::Draw,
            _ => {
                game.outcome().is_some() && Self::of(self.opening, self.first_is_black, &game, None) == *self
            }
        }
    }

    /// The number of moves, those of the opening included.
    pub fn plies(&self) -> usize {
        self.opening().map_or(0, |opening| opening.moves.len()) + self.moves.len()
    }

    /// How it ended for White and Black.
    pub fn result(&self) -> PdnResult {
        match (self.points, self.first_is_black) {
            (Points::Draw, _) => PdnResult::Draw,
            (Points::Win, true) | (Points::Loss, false) => PdnResult::BlackWon,
            (Points::Win, false) | (Points::Loss, true) => PdnResult::WhiteWon,
        }
    }

    /// The game between players of these names, with the reason of its end. Its event and round are whatever the
    /// caller calls them.
    pub fn to_pdn(&self, players: [&str; 2], event: &str, round: &str) -> Result<PdnGame, RecordError> {
        let [black, white] = if self.first_is_black { players } else { [players[1], players[0]] };
        let opening = self.opening.to_string();
        let tags = [
            ("Event", event),
            ("Round", round),
            ("White", white),
            ("Black", black),
            ("Opening", &opening),
            ("Termination", self.ending.word()),
        ];
        let tag = |(name, value): (&str, &str)| Tag { name: name.to_owned(), value: value.to_owned() };
        let moves = self.moves()?;
        let end = Comment { after: moves.len(), text: self.reason() };
        Ok(PdnGame {
            tags: tags.map(tag).to_vec(),
            start: self.opening()?.start,
            moves,
            comments: vec![end],
            result: self.result(),
        })
    }

    /// Why it ended, for people.
    fn reason(&self) -> String {
        let (winner, loser) = match self.result() {
            PdnResult::WhiteWon => ("White", "Black"),
            _ => ("Black", "White"),
        };
        match self.ending {
            GameEnding::NoMove => format!("{winner} wins: {loser} cannot move"),
            GameEnding::Repetition => "drawn: the position came back too often".to_owned(),
            GameEnding::NoProgress => "drawn: no capture and no move of a man for too long".to_owned(),
            GameEnding::TooLong => "drawn: the game lasted too long".to_owned(),
            GameEnding::Forfeit(Forfeit::IllegalMove) => {
                format!("{winner} wins: {loser} chose an illegal move")
            }
            GameEnding::Forfeit(Forfeit::Crash) => {
                format!("{winner} wins: {loser} does not respond any more")
            }
            GameEnding::Forfeit(Forfeit::Time) => format!("{winner} wins: {loser} took too long"),
            GameEnding::Adjudicated if self.points == Points::Draw => {
                "drawn: so the endgame database".to_owned()
            }
            GameEnding::Adjudicated => format!("{winner} wins: so the endgame database"),
        }
    }
}

/// Legal moves by their places among all legal ones; there are never more than a few dozen.
fn places(mut position: Position, moves: &[Move]) -> Vec<u8> {
    let place = |mv: &Move| {
        let place = position.legal_moves().iter().position(|other| other == mv);
        position = position.play(mv);
        place.expect("a game holds legal moves") as u8
    };
    moves.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_game_is_refused() {
        let (opening, first_is_black) = (1, true);
        let record = |opening, moves| GameRecord {
            opening,
            first_is_black,
            points: Points::Draw,
            ending: GameEnding::TooLong,
            moves,
        };
        assert_eq!(record(opening, vec![]).moves().map(|moves| moves.len()), Ok(3));
        assert_eq!(record(0, vec![]).moves(), Ok(vec![]), "the initial position");
        assert_eq!(record(175, vec![]).moves(), Err(RecordError::Opening(175)));
        assert!(matches!(
            record(opening, vec![200]).moves(),
            Err(RecordError::Move { ply: 3, found: 200, .. })
        ));
    }

    #[test]
    fn what_was_altered_is_no_game() {
        let players = [checkers::PlayerSpec::Random, checkers::PlayerSpec::Random].map(Into::into);
        let rules = DrawRules::default();
        let duel = crate::Match { players, rules, limits: None, seed: 1 };
        for game in duel.games(&crate::deck_pairs(10, 1)).into_iter().flatten() {
            assert!(game.is_game(rules), "{game:?}");
            let turned = if game.points == Points::Win { Points::Loss } else { Points::Win };
            let other_ending =
                if game.ending == GameEnding::NoMove { GameEnding::Repetition } else { GameEnding::NoMove };
            let shorter = game.moves[..game.moves.len() - 1].to_vec();
            let forfeit = GameEnding::Forfeit(Forfeit::Time);
            for altered in [
                GameRecord { points: turned, ..game.clone() },
                GameRecord { ending: other_ending, ..game.clone() },
                GameRecord { moves: shorter.clone(), ..game.clone() },
                GameRecord { ending: forfeit, points: turned, ..game.clone() },
                GameRecord { opening: 0, ..game.clone() },
                GameRecord { moves: vec![200], ..game.clone() },
            ] {
                assert!(!altered.is_game(rules), "{altered:?}");
            }
            let given_up = GameRecord { moves: shorter, ending: forfeit, points: turned, ..game };
            assert!(given_up.is_game(rules), "nobody can tell");
        }
    }

    #[test]
    fn words_tell_endings_apart() {
        for (at, ending) in GameEnding::ALL.iter().enumerate() {
            assert_eq!(GameEnding::ALL.iter().position(|other| other.word() == ending.word()), Some(at));
        }
    }
}
