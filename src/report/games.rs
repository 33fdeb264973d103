//! Games of checkers as pages show them, to be stepped through.

use checkers::{PdnResult, Piece, Position, Side, Squares, opening_of};
use report::Ply;
use tournament::{GameEnding, GameRecord, RecordError};

/// A game between players of these names; the record holds the points of the first. Its title says what it is, and from which
/// opening it was played.
pub(crate) fn shown(
    played: &GameRecord,
    players: [&str; 2],
    what: &str,
) -> Result<report::Game, RecordError> {
    let opening = opening_of(played.opening).ok_or(RecordError::Opening(played.opening))?;
    let title = format!("{what}, {opening}");
    let [first, second] = players.map(str::to_owned);
    let pdn = played.to_pdn([&first, &second], &title, "-")?;
    let players = if played.first_is_black { [first, second] } else { [second, first] };
    let mut position = pdn.start;
    let start = letters(&position);
    let plies = pdn.moves.iter().map(|mv| {
        position = position.play(mv);
        let between = [mv.from(), mv.to()].map(|square| square.number() - 1);
        Ply { text: mv.to_string(), board: letters(&position), between }
    });
    let plies = plies.collect();
    Ok(report::Game { title, start, plies, result: result(played).to_owned(), players, pdn: pdn.to_string() })
}

fn result(game: &GameRecord) -> &'static str {
    match (game.ending, game.result()) {
        (GameEnding::Repetition, _) => "drawn by repetition",
        (GameEnding::NoProgress, _) => "draw (no progress)",
        (GameEnding::TooLong, _) => "draw (move limit)",
        (_, PdnResult::BlackWon) => "black wins",
        (_, _) => "white wins",
    }
}

/// The 32 squares of a position: `b` and `w` men, `B` and `W` kings, `.` none.
pub(crate) fn letters(position: &Position) -> String {
    let letter = |square| match position.piece(square) {
        Some(Piece::Man(Side::Black)) => 'b',
        Some(Piece::King(Side::Black)) => 'B',
        Some(Piece::Man(Side::White)) => 'w',
        Some(Piece::King(Side::White)) => 'W',
        None => '.',
    };
    Squares::ALL.into_iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::{DrawRules, Game, PlayerSpec};
    use tournament::{Match, deck_pairs};

    /// Openings have the numbers of a list that is longer than the deck: 158 stands in a deck of 156.
    #[test]
    fn a_title_names_the_opening_and_counts_no_deck() {
        let players = [PlayerSpec::Random, PlayerSpec::Random].map(Into::into);
        let duel = Match { players, rules: DrawRules::default(), limits: None, seed: 1 };
        let pairs: Vec<_> =
            deck_pairs(156, 1).into_iter().filter(|pair| pair.opening.number == 158).collect();
        let played = duel.games(&pairs);
        let shown = shown(&played[0][0], ["one", "two"], "A win").unwrap();
        assert_eq!(shown.title, "A win, opening 158 (Bristol)");
    }

    #[test]
    fn a_shown_game_ends_as_it_was_played() {
        let players = [PlayerSpec::Material { depth: 2 }, PlayerSpec::Material { depth: 1 }].map(Into::into);
        let duel = Match { players, rules: DrawRules::default(), limits: None, seed: 1 };
        let played = duel.games(&deck_pairs(1, 1));
        let moves = played[0][1].moves().unwrap();
        let shown = shown(&played[0][1], ["two", "one"], "a game").unwrap();
        assert_eq!(shown.players, ["one", "two"], "colours are swapped");
        assert_eq!(shown.plies.len(), moves.len());
        assert_eq!(shown.start, letters(&Position::START));
        assert_eq!(checkers::read_pdn(&shown.pdn).unwrap()[0].moves, moves, "the download is the game");
        let mut game = Game::new(DrawRules::default());
        for mv in &moves {
            game.play(*mv).unwrap();
        }
        assert_eq!(shown.plies.last().unwrap().board, letters(game.position()));
        assert_eq!(shown.title, format!("a game, {}", opening_of(played[0][1].opening).unwrap()));
        assert_eq!(letters(&Position::START), "bbbbbbbbbbbb........wwwwwwwwwwww");
    }
}
