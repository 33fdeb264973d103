//! `atoll play` in a real terminal, from the first move to the result.

use crate::support::Place;
use crate::terminal::Terminal;
use checkers::{DrawRules, Game, Outcome, PlayerSpec, Position, Side, read_pdn};
use std::fs::File;

/// Says something, and waits for the next question.
fn ask(terminal: &mut Terminal, text: &str) -> String {
    terminal.say(text);
    terminal.wait_for(&["Your move: "])
}

/// The move that the player made, if it made one.
fn reply(shown: &str) -> Option<&str> {
    let (_, rest) = shown.split_once("Atoll plays ")?;
    rest.split([' ', '.', '\r']).next()
}

#[test]
fn a_person_plays_a_whole_game() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["play", "random", "--seed", "3", "--pdn", "mine.pdn"]);
    let mut game = Game::new(DrawRules::default());
    let mut person = PlayerSpec::Material { depth: 6 }.build();
    person.new_game(1);
    let mut shown = terminal.wait_for(&["Your move: "]);
    assert!(shown.contains("You have black") && shown.contains("\x1b["), "in colours: {shown}");
    while game.outcome().is_none() {
        let mv = person.choose(&game).unwrap();
        game.play(mv).unwrap();
        terminal.say(&mv.to_string());
        shown = terminal.wait_for(&["Your move: ", "The game is in mine.pdn."]);
        if let Some(reply) = reply(&shown) {
            game.play(game.position().parse_move(reply).unwrap()).unwrap();
        }
    }
    assert_eq!(game.outcome(), Some(Outcome::Win(Side::Black)));
    assert!(shown.contains("You win."), "{shown}");
    assert!(terminal.ended() == Some(0));
    let saved = std::fs::read_to_string(place.path().join("mine.pdn")).unwrap();
    let saved = &read_pdn(&saved).unwrap()[0];
    assert_eq!((saved.moves.as_slice(), saved.result.text()), (game.moves(), "0-1"));
    assert_eq!((saved.tag("Black"), saved.tag("White")), (Some("Person"), Some("Atoll (random)")));
}

#[test]
fn hints_captures_undo_and_mistakes_are_explained() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["play", "material", "--depth", "4", "--seed", "1"]);
    terminal.wait_for(&["Your move: "]);
    assert!(ask(&mut terminal, "help").contains("take back your last move"));
    assert!(ask(&mut terminal, "nonsense").contains("`nonsense` is no move"));
    assert!(ask(&mut terminal, "11-22").contains("you can play"));
    assert!(ask(&mut terminal, "undo").contains("nothing to take back"));
    let hint = ask(&mut terminal, "hint");
    assert!(hint.contains("Atoll would play ") && hint.contains("4 plies"), "{hint}");
    assert!(ask(&mut terminal, "eval").contains("Evaluation for your side: "));
    assert!(ask(&mut terminal, "moves").contains("9-13"));
    let before = ask(&mut terminal, "11-15");
    assert!(reply(&before).is_some() && before.contains("value "), "{before}");
    let after = ask(&mut terminal, "undo");
    assert!(!after.contains("Atoll plays") && after.contains("black to move"), "{after}");
    assert_eq!(reply(&ask(&mut terminal, "11-15")), reply(&before), "the same game again");
    terminal.say("resign");
    assert!(terminal.wait_for(&["The game is in atoll-games.pdn."]).contains("Atoll wins."));
    let saved = std::fs::read_to_string(place.path().join("atoll-games.pdn")).unwrap();
    assert_eq!(read_pdn(&saved).unwrap()[0].result.text(), "1-0");
}

#[test]
fn a_hint_takes_no_more_than_a_share_of_the_clock() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["play", "material", "--clock", "0.2", "--seed", "1"]);
    terminal.wait_for(&["Your move: "]);
    assert!(ask(&mut terminal, "hint").contains("Atoll would play "));
    assert!(ask(&mut terminal, "eval").contains("Evaluation for your side: "));
    terminal.say("quit");
    terminal.wait_for(&["The game is in"]);
}

#[test]
fn what_a_browser_does_not_allow_is_refused_before_a_board_is_served() {
    let place = Place::new();
    for (flag, value, most) in [("--seconds", "60", "20"), ("--depth", "30", "24")] {
        let refused = place.run(&["play", "material", "--web", flag, value]);
        refused.expect_error(2, &[flag, &format!("expected at most {most} with --web, found {value}")]);
    }
}

#[test]
fn a_person_who_can_capture_is_told_to() {
    let place = Place::new();
    let fen = "B:W18,31:B14,1";
    let position: Position = fen.parse().unwrap();
    assert!(position.must_capture());
    let mut terminal = Terminal::start(&place, &["play", "random", "--fen", fen]);
    assert!(terminal.wait_for(&["Your move: "]).contains("You must capture: 14x23."));
    assert!(ask(&mut terminal, "1-6").contains("who can capture must, so play 14x23."));
    terminal.say("quit");
    assert!(terminal.wait_for(&["The game is in"]).contains("not finished"));
}

/// Without a terminal it is plain text, for those who read it otherwise; and the game is kept when the input ends.
#[test]
fn a_pipe_gets_letters() {
    let place = Place::new();
    let input = place.path().join("input");
    std::fs::write(&input, b"11-15\n\xff\xfe\n").unwrap();
    let mut command = place.command(&["play", "random", "--seed", "1"]);
    let finished = crate::support::finish(command.stdin(File::open(input).unwrap()));
    let shown = &finished.expect(0).stdout;
    assert!(!shown.contains('\x1b') && shown.contains("12b"), "{shown}");
    assert!(shown.contains("is no move") && shown.contains("not finished"), "{shown}");
    let saved = std::fs::read_to_string(place.path().join("atoll-games.pdn")).unwrap();
    assert_eq!(read_pdn(&saved).unwrap()[0].moves.len(), 2);
}
