//! `atoll checkers`, driven as a person drives it.

use crate::support::Place;
use checkers::{Network, NodeKind, Position};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

fn atoll(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_atoll")).arg("checkers").args(arguments).output();
    command.expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    let output = atoll(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).trim_end().lines().count(), 1);
    serde_json::from_slice(&output.stdout).expect("one object")
}

/// A player file of a network with small weights.
fn player_file() -> PathBuf {
    let weights: Vec<f32> =
        (0..NodeKind::Weighted.weight_count()).map(|i| (i % 17) as f32 / 90.0 - 0.1).collect();
    let network = Network::new(NodeKind::Weighted, &weights).expect("weights of a network");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("command-player.acp");
    std::fs::write(&path, network.to_player_file()).expect("a file can be written");
    path
}

#[test]
fn perft_counts() {
    assert_eq!(json(&["perft", "--depth", "8", "--json"])["leaves"], 845_931);
    let merged = ["perft", "--fen", "B:W6,7,14,15:BK2", "--depth", "1", "--merge", "--json"];
    assert_eq!(json(&merged)["leaves"], 1);
    let output = atoll(&["perft", "--fen", "W:WK18,K22,K23:BK1,K2,K32,12", "--depth", "5"]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("24037\n", ""));
}

#[test]
fn every_player_has_a_best_move() {
    let file = player_file();
    for player in ["material", "random", file.to_str().expect("a path")] {
        let fen = "W:W18,21,22,24,25,26,27,28,29,30,31,32:B1,2,3,4,5,7,8,9,10,11,12,13";
        let arguments = ["best", "--player", player, "--fen", fen, "--depth", "5", "--json"];
        let answer = json(&arguments);
        let best = answer["best"].as_str().expect("a move");
        let position: Position = fen.parse().expect("a position");
        assert!(position.parse_move(best).is_ok(), "{player} plays {best}");
        assert_eq!(json(&arguments), answer, "{player} changes its mind");
        let plain = atoll(&arguments[..arguments.len() - 1]);
        assert_eq!(text(&plain.stdout).trim_end(), best);
    }
}

#[test]
fn the_best_lines_are_shown_in_order() {
    let answer = json(&["best", "--player", "material", "--depth", "4", "--lines", "3", "--json"]);
    let values: Vec<f64> =
        answer["lines"].as_array().expect("lines").iter().filter_map(|line| line["value"].as_f64()).collect();
    assert_eq!(values.len(), 3);
    assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
}

#[test]
fn mistakes_are_told_with_their_exit_code() {
    let damaged = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("damaged.acp");
    std::fs::write(&damaged, b"ATOLL-CP and then nothing").expect("a file can be written");
    let damaged = damaged.to_str().expect("a path");
    for (arguments, code, message) in [
        (
            vec!["perft", "--fen", "B:W40:B1", "--depth", "1"],
            78,
            "--fen: column 4: expected a square from 1 to 32",
        ),
        (vec!["best", "--player", damaged, "--depth", "1"], 78, "expected format version 1"),
        (vec!["best", "--player", "no/such/file", "--depth", "1"], 2, "found `no/such/file`"),
        (vec!["best", "--player", "random", "--fen", "W:W:B1", "--depth", "1"], 78, "with a legal move"),
        (vec!["best", "--player", "random", "--depth", "0"], 2, "invalid value '0'"),
        (vec!["perft", "--depth", "4000000000"], 2, "invalid value '4000000000'"),
        (vec!["perft"], 2, "--depth"),
    ] {
        let output = atoll(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(text(&output.stderr).contains(message), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_run_with_several_islands_plays_with_its_best_champion() {
    let place = Place::new();
    place.write(
        "players.toml",
        r#"
        name = "players"
        problem = { kind = "checkers", depth = 1, games = 2, draw = { moves = 30 } }
        algorithm = { kind = "es", parents = 3, offspring = 3 }
        islands = { count = 3 }
        migration = { interval = 2 }
        budget = { generations = 4 }
        "#,
    );
    let run = place.json(&["run", "players.toml", "--json"])["run"].as_str().unwrap().to_owned();
    let champions = place.json(&["export", &run, "--json"])["champions"].clone();
    let order = |champion: &Value| {
        let fitness = champion["fitness"].as_f64().unwrap();
        // Of equals, the one that was found first.
        (fitness, -champion["generation"].as_i64().unwrap(), -champion["island"].as_i64().unwrap())
    };
    let best = champions.as_array().unwrap().iter().max_by(|a, b| order(a).partial_cmp(&order(b)).unwrap());
    let best = best.unwrap()["island"].to_string();
    let play = |player: &str| {
        let mut result =
            place.json(&["checkers", "match", player, "random", "--depth", "1", "--pairs", "6", "--json"]);
        assert_eq!(result["player"].take(), player);
        result
    };
    assert_eq!(play(&run), play(&format!("{run}/{best}")));
    assert_eq!(play("latest"), play("players"), "a run is named in other ways too");
}
