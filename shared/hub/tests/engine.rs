//! Both sides of the protocol: an engine that hears anything, and engines that do anything.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

use checkers::{DrawRules, Game, Limits, Outcome, Player as _, PlayerSpec, Position, RandomPlayer, Side};
use hub::{EngineSettings, HubEngine, HubError, HubPlayer, move_text, serve};
use proptest::prelude::*;
use std::io::Cursor;
use std::process::Command;
use std::time::Duration;

/// What an engine answers to some commands.
fn answers(commands: &str) -> Vec<String> {
    let mut output = Vec::new();
    let mut player = PlayerSpec::Material { depth: 4 }.build();
    let settings = EngineSettings { depth: 4, ..EngineSettings::default() };
    serve(Cursor::new(commands.to_owned()), &mut output, &mut *player, &settings).unwrap();
    String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_engine_introduces_itself_and_gets_ready() {
    let said = answers("hub\nset-param name=variant value=english\ninit\nping\nquit\n");
    assert!(said[0].starts_with("id name=\"Atoll\" version=\""), "{said:?}");
    assert_eq!(said[1], "param name=variant value=english type=enum values=\"english\"");
    assert_eq!(said[2..], ["wait", "ready", "pong"]);
}

fn done(said: &[String]) -> &str {
    let line = said.iter().find_map(|line| line.strip_prefix("done move=")).unwrap();
    line.split(' ').next().unwrap()
}

#[test]
fn it_answers_with_the_move_that_its_player_would_play() {
    let mut player = PlayerSpec::Material { depth: 4 }.build();
    player.new_game(1);
    let expected = player.choose(&Game::new(DrawRules::default())).unwrap();
    let said = answers("new-game\npos\ngo think\n");
    assert_eq!(done(&said), move_text(&expected), "{said:?}");
    let info = said.iter().find(|line| line.starts_with("info depth=")).unwrap();
    assert!(info.contains(" score=") && info.contains(" pv=\""), "{info}");
}

#[test]
fn every_level_gives_a_legal_move() {
    for level in
        ["depth=0", "depth=7", "move-time=0.05", "nodes=500", "time=0.5 inc=0.01", "moves=4 time=1", "time=0"]
    {
        let said = answers(&format!("level {level}\npos moves=\"11-15 22-18 15x22x18\"\ngo think\n"));
        let expected = ["25x18x22", "26x17x22"];
        assert!(expected.contains(&done(&said)), "{level}: {said:?}");
    }
}

#[test]
fn it_stops_when_it_is_told_to() {
    for go in
        ["go analyze\nstop\nping\n", "level infinite\ngo think\nstop\nping\n", "go ponder\nstop\nping\n"]
    {
        let said = answers(go);
        assert!(Position::START.parse_move(done(&said)).is_ok(), "{said:?}");
        assert_eq!(said.last().unwrap(), "pong");
    }
    let said = answers("level depth=3\ngo ponder\nstop\npos\ngo think\n");
    assert!(said.iter().any(|line| line.starts_with("info depth=3")), "the level stays: {said:?}");
    let said = answers("go ponder\nping\nponder-hit\n");
    assert!(said[0] == "pong" && said.last().unwrap().starts_with("done"), "{said:?}");
    for go in ["go analyze", "level infinite\ngo think", "go ponder"] {
        let said = answers(&format!("hub\ninit\nnew-game\n{go}\nfoo\nstop\nquit\n"));
        assert!(said.iter().any(|line| line.starts_with("done move=")), "{go}: {said:?}");
        assert!(said.last().unwrap().contains("found `foo`"), "{go}: {said:?}");
    }
    assert!(answers("go ponder\nquit\n").is_empty());
    assert!(answers("go analyze\n").last().unwrap().starts_with("done"), "its driver has gone");
}

#[test]
fn pondering_answers_for_the_position_that_was_expected() {
    // The driver sends the game with the expected move in it; a hit is answered as if it had asked then.
    let expected = "new-game\npos moves=\"11-15 23-19\"\n";
    let mut game = Game::new(DrawRules::default());
    for text in ["11-15", "23-19"] {
        let mv = game.position().parse_move(text).unwrap();
        game.play(mv).unwrap();
    }
    for level in ["depth=5", "nodes=400", "move-time=0.02"] {
        let said = answers(&format!("level {level}\n{expected}go ponder\nponder-hit\nping\n"));
        let mv = game.position().parse_move(done(&said)).unwrap();
        // By time it still thinks after the hit, and answers meanwhile; otherwise afterwards.
        assert_eq!(said.iter().filter(|line| *line == "pong").count(), 1, "{said:?}");
        // The answer names the reply that it expects, which can be played.
        let line = said.iter().find(|line| line.starts_with("done move=")).unwrap();
        let reply = line.split_once(" ponder=").unwrap().1;
        let replies = game.position().play(&mv).legal_moves();
        assert!(replies.iter().any(|mv| move_text(mv) == reply), "{line}");
    }
    let asked = answers(&format!("level depth=5\n{expected}go think\n"));
    let pondered = answers(&format!("level depth=5\n{expected}go ponder\nponder-hit\n"));
    assert_eq!(done(&pondered), done(&asked), "a search to a depth finds the same");
    // The opponent played another move: the driver stops, ignores that answer, and asks about the position on the board.
    let missed =
        answers(&format!("level depth=5\n{expected}go ponder\nstop\npos moves=\"11-15 22-18\"\ngo think\n"));
    let moves: Vec<&str> = missed.iter().filter_map(|line| line.strip_prefix("done move=")).collect();
    assert_eq!(moves.len(), 2, "one answer to `stop`, and one to the real question: {missed:?}");
    assert!(moves[1].starts_with("15x22"), "it must capture after 22-18: {missed:?}");
    // While the opponent thinks, nothing is written.
    let quiet = answers(&format!("level depth=5\n{expected}go ponder\nstop\n"));
    assert!(quiet.iter().all(|line| !line.starts_with("info")), "{quiet:?}");
}

#[test]
fn no_depth_is_too_deep() {
    let two_pieces = format!("pos pos=WB{}w", "e".repeat(30));
    let said = answers(&format!("level depth=99999999 move-time=0.3\n{two_pieces}\ngo think\n"));
    assert!(said.last().unwrap().starts_with("done move="), "{said:?}");
}

#[test]
fn mistakes_are_told_and_change_nothing() {
    for (command, complaint) in [
        ("hello", "expected a command, found `hello`"),
        ("pos pos=Wbb", "expected W or B and 32 of w, b, W, B and e, found `Wbb`"),
        ("pos moves=\"11-15 11-15\"", "expected a legal move, found `11-15`"),
        ("set-param name=variant value=frisian", "expected variant=english, found `variant=frisian`"),
        (&format!("pos pos=Wb{}\ngo think", "e".repeat(31)), "with a legal move"),
    ] {
        let said = answers(&format!("{command}\nping\n"));
        assert!(said[0].starts_with("error message=\"") && said[0].contains(complaint), "{said:?}");
        assert_eq!(said.last().unwrap(), "pong");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_that_is_said_to_it_is_too_much(
        commands in prop::collection::vec(
            prop_oneof![
                "\\PC{0,40}",
                "(hub|init|pos|level|go|stop|ping|new-game|ponder-hit|set-param)( [a-z-]{1,9}(=[-0-9.a-zA-Z]{0,9}|=\"[0-9x -]{0,9})?){0,3}",
                "pos pos=[WB][wbeWB]{31,33}( moves=\"([0-9]{1,2}[x-][0-9]{1,2} ?){0,4}\")?",
                "level (depth|nodes|move-time|time|inc|moves)=(-?[0-9]{1,12}|nan|inf|1e99)",
            ],
            0..12,
        )
    ) {
        // Without a clock that runs out or a depth it would rightly think for long.
        answers(&format!("{}\nlevel depth=3\ngo think\nquit\n", commands.join("\nlevel nodes=2000\nstop\n")));
    }

    #[test]
    fn bytes_that_are_no_text_end_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut player = PlayerSpec::Random.build();
        let mut output = Vec::new();
        serve(Cursor::new(bytes), &mut output, &mut *player, &EngineSettings::default()).unwrap();
    }
}

/// Longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// For what never comes.
const IMPATIENCE: Duration = Duration::from_millis(300);

/// An engine made of shell commands, whose answers to `go` are these.
fn start(after_go: &str) -> Result<HubEngine, HubError> {
    let script = format!(
        "while read command rest; do case $command in hub) echo 'id name=Fake'; echo wait;; init) echo ready;; \
         go) {after_go};; esac; done"
    );
    HubEngine::start(Command::new("sh").args(["-c", &script]), PATIENCE)
}

fn answer(after_go: &str) -> Result<checkers::Move, HubError> {
    start(after_go)?.choose(&Game::new(DrawRules::default()), &Limits::depth(3))
}

fn answer_at_once(after_go: &str) -> Result<checkers::Move, HubError> {
    let mut engine = start(after_go)?;
    engine.set_patience(IMPATIENCE);
    engine.choose(&Game::new(DrawRules::default()), &Limits::depth(3))
}

#[test]
fn engines_that_fail_are_told_apart() {
    assert_eq!(start("").unwrap().name(), "Fake");
    assert_eq!(answer("echo info depth=1; echo done move=11-15").unwrap().to_string(), "11-15");
    assert!(matches!(answer_at_once("sleep 60"), Err(HubError::Hung { expected: "done", .. })));
    assert!(matches!(answer_at_once("while true; do echo info; done"), Err(HubError::Hung { .. })));
    assert!(matches!(answer("exit 3"), Err(HubError::Gone { expected: "done" })));
    assert!(matches!(answer("echo done move=11-22"), Err(HubError::Move(_))));
    assert!(matches!(answer("echo done"), Err(HubError::Move(_))));
    assert!(
        matches!(answer("echo 'error message=\"no idea\"'"), Err(HubError::Complaint(text)) if text == "no idea")
    );
    assert!(matches!(answer("printf '\\377\\n'; sleep 60"), Err(HubError::Gone { expected: "done" })));
    let silent = HubEngine::start(Command::new("sh").args(["-c", "sleep 60"]), IMPATIENCE);
    assert!(matches!(silent, Err(HubError::Hung { expected: "wait", .. })));
    let missing = HubEngine::start(&mut Command::new("/no/such/engine"), PATIENCE);
    assert!(matches!(missing, Err(HubError::Start(_))));
}

#[test]
fn an_engine_that_fails_forfeits_its_game() {
    let mut broken = HubPlayer::new(start("echo done move=1-2").unwrap(), Limits::depth(1));
    let mut game = Game::new(DrawRules::default());
    broken.new_game(1);
    let outcome = game.play_out(&mut RandomPlayer::new(), &mut broken);
    assert_eq!(outcome, Outcome::Win(Side::Black));
    assert!(matches!(broken.failure(), Some(HubError::Move(_))));
}
