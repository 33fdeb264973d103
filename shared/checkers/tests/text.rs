//! FEN, move notation and PDN: what is written can be read, and nothing that is read can do harm.

use checkers::{Comment, Tag};
use checkers::{
    DrawRules, FenReason, Game, MoveError, PdnGame, PdnReason, PdnResult, Player, Position, RandomPlayer,
    read_pdn,
};
use proptest::prelude::*;

use crate::support::{Random, random_position};

const SAMPLE: &str = include_str!("data/sample.pdn");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn fen_survives_writing_and_reading(seed: u64) {
        let position = random_position(&mut Random::new(seed), 120);
        prop_assert_eq!(position.to_string().parse::<Position>(), Ok(position));
    }

    #[test]
    fn every_legal_move_has_a_name_of_its_own(seed: u64) {
        let position = random_position(&mut Random::new(seed), 120);
        let moves = position.legal_moves();
        for mv in &moves {
            prop_assert_eq!(position.parse_move(&mv.to_string()), Ok(*mv));
            // The short form is understood, or refused for good reason; never mistaken.
            let short = format!("{}x{}", mv.from(), mv.to());
            match position.parse_move(&short) {
                Ok(other) => prop_assert_eq!(position.play(&other), position.play(mv)),
                Err(MoveError::Ambiguous { choices, .. }) => prop_assert!(choices.contains(mv)),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}", moves in "[0-9x. *{}()\\[\\]\";$%/-]{0,80}") {
        let _ = text.parse::<Position>();
        let _ = moves.parse::<Position>();
        let _ = Position::START.parse_move(&moves);
        let _ = read_pdn(&text);
        let _ = read_pdn(&moves);
    }

    #[test]
    fn a_damaged_fen_is_read_or_refused(seed: u64, at in 0usize..60, character in any::<char>()) {
        let fen = random_position(&mut Random::new(seed), 120).to_string();
        let damaged: String = fen.chars().enumerate().map(|(i, c)| if i == at { character } else { c }).collect();
        match damaged.parse::<Position>() {
            Ok(position) => prop_assert_eq!(position.validate(), Ok(())),
            Err(error) => prop_assert!(error.column <= damaged.chars().count() + 1),
        }
    }

    #[test]
    fn a_damaged_pdn_is_read_or_refused(at in 0usize..700, length in 0usize..20, filler in "\\PC{0,3}") {
        let characters: Vec<char> = SAMPLE.chars().collect();
        let at = at.min(characters.len());
        let end = (at + length).min(characters.len());
        let damaged: String = characters[..at].iter().copied().chain(filler.chars()).chain(characters[end..].iter().copied()).collect();
        match read_pdn(&damaged) {
            Ok(games) => prop_assert!(games.len() <= 6),
            Err(error) => {
                let lines: Vec<&str> = damaged.split('\n').collect();
                prop_assert!(error.line <= lines.len());
                prop_assert!(error.column <= lines[error.line - 1].chars().count() + 1);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn games_survive_writing_and_reading(seeds in prop::collection::vec(any::<u64>(), 0..4), value in "\\PC{0,20}", remark in "[a-z;({\"\\[]{1,9}( [a-z)]{1,9}){0,20}") {
        let games: Vec<PdnGame> = seeds.iter().map(|seed| recorded_game(*seed, &value, &remark)).collect();
        let text: String = games.iter().map(ToString::to_string).collect();
        prop_assert_eq!(read_pdn(&text), Ok(games));
    }
}

fn recorded_game(seed: u64, value: &str, remark: &str) -> PdnGame {
    let mut random = Random::new(seed);
    let start = if seed.is_multiple_of(2) { Position::START } else { random_position(&mut random, 60) };
    let mut game = Game::from_position(start, DrawRules { max_plies: 90, ..DrawRules::default() });
    let mut player = RandomPlayer::new();
    player.new_game(seed);
    while game.outcome().is_none() {
        game.play(player.choose(&game).unwrap()).unwrap();
    }
    let mut places: Vec<usize> = (0..random.below(5)).map(|_| random.below(game.moves().len() + 1)).collect();
    places.sort_unstable();
    PdnGame {
        tags: vec![Tag { name: "Event".to_owned(), value: value.to_owned() }],
        start,
        moves: game.moves().to_vec(),
        comments: places.into_iter().map(|after| Comment { after, text: remark.to_owned() }).collect(),
        result: game.outcome().into(),
    }
}

#[test]
fn fen_may_be_written_in_many_ways() {
    for fen in ["B:W21-32:B1-12", "b:b1-12:w21-32.", " B : B1-11,12 : W21-32 "] {
        assert_eq!(fen.parse::<Position>(), Ok(Position::START), "{fen}");
    }
    let start = "B:W21,22,23,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,6,7,8,9,10,11,12";
    assert_eq!(Position::START.to_string(), start);
    assert_eq!("W:W:BK2".parse::<Position>().unwrap().to_string(), "W:W:BK2");
}

#[test]
fn fen_errors_name_the_column_and_the_reason() {
    for (fen, expected) in [
        ("", "column 1: expected `B` or `W`, found the end"),
        ("X:W1:B2", "column 1: expected `B` or `W`, found `X`"),
        ("B;W1:B2", "column 2: expected `:`, found `;`"),
        ("B:W21:B1,33", "column 10: expected a square from 1 to 32, found `33`"),
        ("B:W21:B1,K", "column 11: expected a square, found the end"),
        ("B:W21:B1,21", "column 10: expected each square once, found `21` again"),
        ("B:W21:W22", "column 7: expected each side once, found white again"),
        ("B:W9-5:B1", "column 4: expected a range from a lower to a higher square, found `9-5`"),
        ("B:W21:B1:B2", "column 9: expected the end, found `:`"),
        ("B:W21:B30", "column 1: expected a king on the far row, found a black man on `30`"),
        ("B:W20-32:B1", "column 1: expected at most 12 white pieces, found `13`"),
    ] {
        let error = fen.parse::<Position>().unwrap_err();
        assert_eq!(error.to_string(), expected, "{fen}");
    }
    let error = "B:W21:B1,99999999999999999999".parse::<Position>().unwrap_err();
    assert!(matches!(error.reason, FenReason::NoSquare(_)));
}

#[test]
fn moves_that_leave_doubt_are_refused() {
    let position: Position = "B:W6,7,14,15,23:BK2".parse().unwrap();
    assert!(position.parse_move("2x2").is_ok(), "both ways round take the same");
    let fork: Position = "B:W7,15,16,8,24:BK3".parse().unwrap();
    let names: Vec<String> = fork.legal_moves().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["3x10x19x28", "3x10x19x12x3", "3x12x19x28", "3x12x19x10x3"]);
    let error = fork.parse_move("3x28").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected every square of the jump, found `3x28` for any of [3x10x19x28, 3x12x19x28]"
    );
    let error = Position::START.parse_move("11-18").unwrap_err().to_string();
    assert!(error.contains("`11-18`") && error.contains("black can play 9-13 10-14"), "{error}");
    for text in ["", "11", "11-", "a-b", "11-15-", "+1-15", "011-15", &"1x".repeat(1000)] {
        assert!(matches!(Position::START.parse_move(text), Err(MoveError::Unreadable(_))), "{text}");
    }
}

#[test]
fn a_file_as_people_write_them_is_read() {
    let games = read_pdn(SAMPLE).unwrap();
    let [classic, study, nothing] = games.as_slice() else { panic!("{games:?}") };
    assert_eq!(classic.tag("Event"), Some("Club night, \"the long one\""));
    assert_eq!(classic.result, PdnResult::WhiteWon);
    assert_eq!(classic.moves.len(), 12);
    assert_eq!(
        classic.comments[0],
        Comment { after: 1, text: "a classic; it needs no brackets ( here".to_owned() }
    );
    assert_eq!(classic.comments[1].after, 8);
    assert_eq!(study.start.to_string(), "B:W6,7,14,15,32:BK2");
    assert_eq!(study.moves.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2x9x18x11x2", "32-27"]);
    assert_eq!((nothing.moves.len(), nothing.result), (0, PdnResult::Unknown));
    let again: String = games.iter().map(ToString::to_string).collect();
    assert_eq!(read_pdn(&again), Ok(games));
}

#[test]
fn pdn_errors_name_line_column_and_reason() {
    for (text, expected) in [
        ("1. 11-15 23-19\n2. 8-12 *", "line 2, column 4: expected a legal move, found `8-12`"),
        (
            "[Event \"x]\n",
            "line 1, column 1: expected the end of a header before the end of the text, found none",
        ),
        ("[Event x]", "line 1, column 1: expected a header such as [Event \"value\"], found `Event`"),
        ("1. 11-15 {never closed", "line 1, column 10: expected the `}` of a comment before the end"),
        ("1. 11-15 (never (closed)", "line 1, column 10: expected the `)` of a variation before the end"),
        ("1. 11-15\n", "line 2, column 1: expected a result at the end of the game, found none"),
        ("1. 11-15\n[Event \"y\"]", "line 2, column 1: expected a result at the end of the game, found none"),
        (
            "[Result \"0-1\"]\n1. 11-15 1-0",
            "line 2, column 10: expected 0-1, as the header says, found `1-0`",
        ),
        ("[Result \"2-0\"]", "line 1, column 10: expected a result of 1-0, 0-1, 1/2-1/2 or *, found `2-0`"),
        ("[GameType \"20\"]", "line 1, column 12: expected game type 21 (English checkers), found `20`"),
        ("[FEN \"B:W1:B40\"]", "line 1, column 7: in the starting position, column 7: expected a square"),
        ("1. 11-15 & *", "line 1, column 10: expected a header, a move, a comment or a result, found `&`"),
    ] {
        let error = read_pdn(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    assert!(matches!(read_pdn("1. 11x15x18 *").unwrap_err().reason, PdnReason::Move(_)));
}

#[test]
fn deep_variations_are_skipped_without_recursion() {
    let text = format!("1. 11-15 {}{} *", "(".repeat(200_000), ")".repeat(200_000));
    assert_eq!(read_pdn(&text).unwrap()[0].moves.len(), 1);
}
