//! A game from its first position to its end, with the rules under which it is drawn.

use crate::endgame::{Database, EndgameResult};
use crate::moves::Move;
use crate::player::Player;
use crate::position::{Position, Side};
use crate::squares::Squares;
use std::sync::Arc;

/// When a game ends although there are moves. These are rules of a game; searches know nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, deny_unknown_fields)
)]
pub struct DrawRules {
    /// A position, with the same side to move, that stands on the board for this many times.
    pub repetitions: Option<u32>,
    /// Plies in a row without a capture or a man's move.
    pub quiet_plies: Option<u32>,
    /// Plies of the whole game: every game ends.
    pub max_plies: u32,
    /// Pieces with which the endgame database says who has won, 2 to [`Database::MOST_PIECES`]; 0 for never.
    pub adjudicate: u32,
}

impl Default for DrawRules {
    /// The third repetition, 40 moves a side without progress, or 500 a side in all.
    fn default() -> Self {
        Self { repetitions: Some(3), quiet_plies: Some(80), max_plies: 1000, adjudicate: 0 }
    }
}

/// Why a game was drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DrawReason {
    /// A position came back too often.
    Repetition,
    /// Nothing was captured and no man moved for too long.
    NoProgress,
    /// The game lasted too long.
    TooLong,
    /// The endgame database knows that neither side can win.
    Adjudicated,
}

/// How a game ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// One side could no longer move, or the endgame database knows that it loses; the other one won.
    Win(Side),
    /// Neither side won.
    Draw(DrawReason),
}

impl Outcome {
    /// 1 if `side` won, -1 if it lost, 0 for a draw.
    pub fn points(self, side: Side) -> i32 {
        match self {
            Self::Win(winner) if winner == side => 1,
            Self::Win(_) => -1,
            Self::Draw(_) => 0,
        }
    }
}

/// Why a move was not played.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlayError {
    /// It is not legal in the current position.
    #[error("expected a legal move, found `{mv}` in {position}")]
    Illegal {
        /// The move.
        mv: Move,
        /// Where it can't be played.
        position: Position,
    },
    /// The game has ended.
    #[error("expected a game under way, found `{mv}` after its end")]
    Over {
        /// The move.
        mv: Move,
    },
}

/// A game: where it started, what was played, and whether it is over. It keeps its memory from game to game.
#[derive(Clone, Debug)]
pub struct Game {
    rules: DrawRules,
    start: Position,
    position: Position,
    moves: Vec<Move>,
    /// Positions since the last capture or man's move, which can't come back; the current one is the last.
    recent: Vec<Position>,
    outcome: Option<Outcome>,
    /// Ends a game as soon as it knows who wins.
    adjudicator: Option<Arc<Database>>,
    adjudicated: bool,
}

impl Game {
    /// A game from the initial position.
    pub fn new(rules: DrawRules) -> Self {
        Self::from_position(Position::START, rules)
    }

    /// A game from any position.
    pub fn from_position(start: Position, rules: DrawRules) -> Self {
        let (moves, recent) = (Vec::new(), Vec::new());
        let mut game = Self {
            rules,
            start,
            position: start,
            moves,
            recent,
            outcome: None,
            adjudicator: Database::shared(rules.adjudicate).ok(),
            adjudicated: false,
        };
        game.restart(start);
        game
    }

    /// Starts again from `start`, under the same rules.
    pub fn restart(&mut self, start: Position) {
        self.start = start;
        self.position = start;
        self.moves.clear();
        self.recent.clear();
        self.recent.push(start);
        self.adjudicated = false;
        self.outcome = self.judge();
    }

    /// Where it started.
    pub fn start(&self) -> &Position {
        &self.start
    }

    /// Where it is now.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// What was played.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The positions since the last capture or man's move, the current one the last: no earlier one can come back.
    pub fn recent(&self) -> &[Position] {
        &self.recent
    }

    /// Whether it was the endgame database that ended it.
    pub fn is_adjudicated(&self) -> bool {
        self.adjudicated
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Plays a move.
    ///
    /// # Errors
    /// If it is not legal, or the game is over; nothing is played then.
    pub fn play(&mut self, mv: Move) -> Result<(), PlayError> {
        if self.outcome.is_some() {
            return Err(PlayError::Over { mv });
        }
        let mut legal = false;
        self.position.for_each_move(|other| legal |= other == mv);
        if !legal {
            return Err(PlayError::Illegal { mv, position: self.position });
        }
        self.advance(mv);
        Ok(())
    }

    /// Lets two players finish the game. A player that resigns by choosing nothing or an illegal move loses.
    pub fn play_out(&mut self, black: &mut dyn Player, white: &mut dyn Player) -> Outcome {
        loop {
            if let Some(outcome) = self.outcome {
                return outcome;
            }
            let side = self.position.side_to_move();
            let player: &mut dyn Player = match side {
                Side::Black => &mut *black,
                Side::White => &mut *white,
            };
            let played = player.choose(self).is_some_and(|mv| self.play(mv).is_ok());
            if !played {
                self.outcome = Some(Outcome::Win(!side));
            }
        }
    }

    fn advance(&mut self, mv: Move) {
        let progress = mv.is_capture() || !self.position.kings.meets(Squares::from(mv.from()));
        if progress {
            self.recent.clear();
        }
        self.position = self.position.play(&mv);
        self.recent.push(self.position);
        self.moves.push(mv);
        self.outcome = self.judge();
        if self.outcome.is_none() {
            self.outcome = self.adjudicate();
            self.adjudicated = self.outcome.is_some();
        }
    }

    fn judge(&self) -> Option<Outcome> {
        if self.position.is_lost() {
            Some(Outcome::Win(!self.position.side_to_move()))
        } else if self.rules.repetitions.is_some_and(|limit| self.repetitions() >= limit.max(1)) {
            Some(Outcome::Draw(DrawReason::Repetition))
        } else if self.rules.quiet_plies.is_some_and(|limit| self.quiet_plies() >= limit.max(1)) {
            Some(Outcome::Draw(DrawReason::NoProgress))
        } else if self.moves.len() >= self.rules.max_plies as usize {
            Some(Outcome::Draw(DrawReason::TooLong))
        } else {
            None
        }
    }

    /// What the database says of the position.
    fn adjudicate(&self) -> Option<Outcome> {
        let side = self.position.side_to_move();
        Some(match self.adjudicator.as_ref()?.probe(&self.position)? {
            EndgameResult::Win => Outcome::Win(side),
            EndgameResult::Loss => Outcome::Win(!side),
            EndgameResult::Draw => Outcome::Draw(DrawReason::Adjudicated),
        })
    }

    /// How often the current position has stood on the board.
    fn repetitions(&self) -> u32 {
        self.recent.iter().filter(|position| **position == self.position).count() as u32
    }

    fn quiet_plies(&self) -> u32 {
        self.recent.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shuffle(game: &mut Game, moves: &[&str]) {
        for text in moves {
            game.play(game.position().parse_move(text).unwrap()).unwrap();
        }
    }

    fn kings(rules: DrawRules) -> Game {
        Game::from_position("B:WK32:BK1".parse().unwrap(), rules)
    }

    const ROUND: [&str; 4] = ["1-6", "32-27", "6-1", "27-32"];

    #[test]
    fn the_third_time_is_a_draw() {
        let mut game = kings(DrawRules::default());
        shuffle(&mut game, &ROUND);
        assert_eq!(game.outcome(), None);
        shuffle(&mut game, &ROUND);
        assert_eq!(game.outcome(), Some(Outcome::Draw(DrawReason::Repetition)));
        let mv = game.moves()[0];
        assert_eq!(game.play(mv), Err(PlayError::Over { mv }));
    }

    #[test]
    fn no_progress_is_a_draw() {
        let mut game =
            kings(DrawRules { repetitions: None, quiet_plies: Some(6), max_plies: 100, adjudicate: 0 });
        shuffle(&mut game, &ROUND);
        assert_eq!(game.outcome(), None);
        shuffle(&mut game, &ROUND[..2]);
        assert_eq!(game.outcome(), Some(Outcome::Draw(DrawReason::NoProgress)));
    }

    #[test]
    fn men_and_captures_are_progress() {
        let rules = DrawRules { repetitions: None, quiet_plies: Some(3), max_plies: 100, adjudicate: 0 };
        let mut game = Game::new(rules);
        shuffle(&mut game, &["11-15", "23-19", "8-11", "22-17", "11-16", "24-20"]);
        assert_eq!(game.outcome(), None);
    }

    #[test]
    fn every_game_ends() {
        let mut game = kings(DrawRules { repetitions: None, quiet_plies: None, max_plies: 4, adjudicate: 0 });
        shuffle(&mut game, &ROUND);
        assert_eq!(game.outcome(), Some(Outcome::Draw(DrawReason::TooLong)));
    }

    #[test]
    fn the_database_ends_a_game_as_soon_as_it_knows() {
        let rules = DrawRules { adjudicate: 3, ..DrawRules::default() };
        let mut game = Game::from_position("B:W32,K31:B1,K22".parse().unwrap(), rules);
        assert_eq!(game.outcome(), None, "there are four");
        shuffle(&mut game, &["22-26", "31x22"]);
        assert_eq!((game.outcome(), game.is_adjudicated()), (Some(Outcome::Win(Side::White)), true));
        let mut even = kings(rules);
        shuffle(&mut even, &["1-6"]);
        assert_eq!(even.outcome(), Some(Outcome::Draw(DrawReason::Adjudicated)));
        even.restart("B:WK32:BK1".parse().unwrap());
        assert_eq!((even.outcome(), even.is_adjudicated()), (None, false), "the first position is played");
    }

    #[test]
    fn whoever_cannot_move_has_lost() {
        let stuck = Game::from_position("W:W:B1".parse().unwrap(), DrawRules::default());
        assert_eq!(stuck.outcome(), Some(Outcome::Win(Side::Black)));
        assert_eq!(Outcome::Win(Side::Black).points(Side::White), -1);
    }

    #[test]
    fn illegal_moves_are_refused_and_change_nothing() {
        let mut game = Game::new(DrawRules::default());
        let foreign = "W:W22:B1".parse::<Position>().unwrap().legal_moves()[0];
        assert!(matches!(game.play(foreign), Err(PlayError::Illegal { .. })));
        assert_eq!(game.position(), &Position::START);
    }
}
