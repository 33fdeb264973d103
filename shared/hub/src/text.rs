//! Positions and moves as Hub writes them.
//!
//! A position is 33 characters. Hub calls the side that moves first white, and sees the board from there: our Black is
//! its `w`, and its first square is our 32. A step is `11-15`; a capture is where it starts, where it ends and what it
//! takes, `6x31x10x19x27`, by our own numbers.

use checkers::{Move, MoveError, Piece, Position, Side, Square, Squares};

/// Why a text is no position.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TextError {
    /// It has too few or too many characters, or others than `W`, `B`, `w`, `b` and `e`.
    #[error("expected W or B and 32 of w, b, W, B and e, found `{0}`")]
    Unreadable(String),
    /// Pieces that can't stand like this.
    #[error(transparent)]
    Invalid(#[from] checkers::InvalidPosition),
}

/// A position as Hub writes it.
pub fn position_text(position: &Position) -> String {
    let letter = |piece| match piece {
        None => 'e',
        Some(Piece::Man(Side::Black)) => 'w',
        Some(Piece::Man(Side::White)) => 'b',
        Some(Piece::King(Side::Black)) => 'W',
        Some(Piece::King(Side::White)) => 'B',
    };
    let side = match position.side_to_move() {
        Side::Black => 'W',
        Side::White => 'B',
    };
    let squares = (1..=32).rev().filter_map(Square::new);
    std::iter::once(side).chain(squares.map(|square| letter(position.piece(square)))).collect()
}

/// The position that Hub writes like this.
///
/// # Errors
/// If it is none.
pub fn parse_position(text: &str) -> Result<Position, TextError> {
    let unreadable = || TextError::Unreadable(text.chars().take(40).collect());
    let (side, squares) = text.split_at_checked(1).ok_or_else(unreadable)?;
    let side = match side {
        "W" => Side::Black,
        "B" => Side::White,
        _ => return Err(unreadable()),
    };
    if squares.len() != 32 {
        return Err(unreadable());
    }
    let (mut black, mut white, mut kings) = (Squares::NONE, Squares::NONE, Squares::NONE);
    for (square, letter) in (1..=32).rev().filter_map(Square::new).zip(squares.chars()) {
        match letter.to_ascii_lowercase() {
            'w' => black |= square.into(),
            'b' => white |= square.into(),
            'e' => continue,
            _ => return Err(unreadable()),
        }
        if letter.is_ascii_uppercase() {
            kings |= square.into();
        }
    }
    Ok(Position::new(black, white, kings, side)?)
}

/// A move as Hub writes it.
pub fn move_text(mv: &Move) -> String {
    if !mv.is_capture() {
        return mv.to_string();
    }
    let squares = [mv.from(), mv.to()].into_iter().chain(mv.captured());
    squares.map(|square| square.to_string()).collect::<Vec<_>>().join("x")
}

/// The legal move that Hub writes like this; one with every square it touches is understood too.
///
/// # Errors
/// If there is none.
pub fn parse_move(position: &Position, text: &str) -> Result<Move, MoveError> {
    let as_hub = position.legal_moves().into_iter().find(|mv| move_text(mv) == text);
    as_hub.map_or_else(|| position.parse_move(text), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::{DrawRules, Game, Player as _, RandomPlayer};
    use proptest::prelude::*;

    #[test]
    fn the_start_is_written_as_others_write_it() {
        assert_eq!(position_text(&Position::START), "Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww");
    }

    #[test]
    fn captures_name_what_they_take() {
        let position: Position = "B:W10,19,27:BK6".parse().unwrap();
        let mv = position.legal_moves()[0];
        assert_eq!(move_text(&mv), "6x31x10x19x27");
        assert_eq!(parse_move(&position, "6x31x10x19x27"), Ok(mv));
        assert_eq!(parse_move(&position, "6x15x24x31"), Ok(mv));
        assert!(parse_move(&position, "6x31x10").is_err());
    }

    proptest! {
        #[test]
        fn positions_and_moves_of_games_are_read_again(seed: u64) {
            let mut player = RandomPlayer::new();
            player.new_game(seed);
            let mut game = Game::new(DrawRules::default());
            while let Some(mv) = player.choose(&game).filter(|_| game.outcome().is_none()) {
                let position = *game.position();
                prop_assert_eq!(parse_position(&position_text(&position)), Ok(position));
                let read = parse_move(&position, &move_text(&mv)).unwrap();
                prop_assert_eq!(position.play(&read), position.play(&mv));
                game.play(mv).unwrap();
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[WBwbe]{30,36}|\\PC{0,40}") {
            if let Ok(position) = parse_position(&text) {
                prop_assert_eq!(&position_text(&position), &text);
            }
            let _ = parse_move(&Position::START, &text);
        }
    }
}
