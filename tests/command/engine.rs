//! `atoll engine` in whole games: driven by another library, and by ourselves.

use checkers::{
    Consult, Database, DrawRules, Endgames, Game, Knowledge, Limits, Outcome, PlaySettings, Player,
    PlayerSpec, Side, Style,
};
use hub::{HubEngine, HubPlayer};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn pydraughts_plays_whole_games_against_the_engine() {
    let games = crate::referee::script("pydraughts", "pydraughts_hub")
        .args(["8", env!("CARGO_BIN_EXE_atoll"), "engine", "material", "--depth", "4"])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let counts = String::from_utf8(games.stdout).unwrap();
    assert!(games.status.success(), "see above; {counts}");
    let counts: Vec<u32> = counts.split_whitespace().map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] >= 7 && counts[1] >= 6, "{counts:?} of 8 games ended and were won");
}

fn engine(arguments: &[&str], folder: &Path) -> HubPlayer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    let engine =
        HubEngine::start(command.arg("engine").args(arguments).current_dir(folder), PATIENCE).unwrap();
    assert!(engine.name().starts_with("Atoll "), "{}", engine.name());
    HubPlayer::new(engine, Limits::depth(3))
}

fn play(black: &mut dyn Player, white: &mut dyn Player) -> (Outcome, Vec<String>) {
    let mut game = Game::new(DrawRules::default());
    black.new_game(1);
    white.new_game(1);
    let outcome = game.play_out(black, white);
    (outcome, game.moves().iter().map(ToString::to_string).collect())
}

#[test]
fn our_players_play_whole_games_against_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let mut engine = engine(&["material", "--depth", "3", "--seed", "0"], folder.path());
    let mut gambler = PlayerSpec::Random.build();
    let (outcome, moves) = play(&mut *gambler, &mut engine);
    assert!(engine.failure().is_none(), "{:?}", engine.failure());
    assert_eq!(outcome, Outcome::Win(Side::White));
    // What comes through the process is what the same player does here.
    let knowledge = Knowledge { style: Style { history: true, ..Style::default() }, ..Knowledge::default() };
    let player = PlayerSpec::Knowing { player: Box::new(PlayerSpec::Material { depth: 3 }), knowledge };
    let (limits, settings) = (Limits::depth(3), PlaySettings::default());
    let mut same = PlayerSpec::Playing { player: Box::new(player), limits, settings }.build();
    assert_eq!(play(&mut *gambler, &mut *same).1, moves);
}

#[test]
fn two_engines_play_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (mut black, mut white) =
        (engine(&["material"], folder.path()), engine(&["random", "--book", "deck"], folder.path()));
    let (outcome, moves) = play(&mut black, &mut white);
    assert!(black.failure().is_none() && white.failure().is_none());
    assert_eq!(outcome, Outcome::Win(Side::Black), "{moves:?}");
}

/// A won ending that a piece counter can't win by itself, through the engine with the database.
#[test]
fn an_engine_uses_the_endgame_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Database::compute(3).unwrap());
    let know_all =
        Knowledge { endgames: Some(Endgames { database, consult: Consult::Always }), ..Knowledge::default() };
    let mut defender =
        PlayerSpec::Knowing { player: Box::new(PlayerSpec::Random), knowledge: know_all }.build();
    let mut outcome = |arguments: &[&str]| {
        let mut engine = engine(arguments, folder.path());
        let mut game = Game::from_position("B:WK29:BK1,K4".parse().unwrap(), DrawRules::default());
        let outcome = game.play_out(&mut engine, &mut *defender);
        assert!(engine.failure().is_none(), "{:?}", engine.failure());
        outcome
    };
    let knowing = ["material", "--endgame", "3", "--consult", "always"];
    assert_eq!(outcome(&knowing), Outcome::Win(Side::Black));
    assert!(folder.path().join("atoll-endgame/0201.slice").exists(), "built at first use");
    assert!(matches!(outcome(&["material"]), Outcome::Draw(_)));
}
