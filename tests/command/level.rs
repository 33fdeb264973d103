//! `atoll level` on real files, as a designer would call it.

use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MAZE: &str = "\
###########
#.#.#....a#
#.#.#.###.#
#>#...#..<#
#.#####.#.#
#...#..B#.#
###.#.###.#
#.....#b.A#
###########
";

const TRAP: &str = "#############\n#..A.<.a.A.>#\n#############\n";

const BOARD: &str = "1234\n4321\n1143\n2212\n";

fn atoll(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("level")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that refuses its arguments does not read its input.
    let _ = child.stdin.take().expect("stdin is piped").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

fn output(arguments: &[&str], input: &str) -> String {
    let output = atoll(arguments, input);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes text");
    assert!(output.status.success(), "{arguments:?}: {}", text(output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}: {}", text(output.stderr));
    text(output.stdout)
}

fn json(arguments: &[&str], input: &str) -> Value {
    serde_json::from_str(&output(arguments, input)).expect("one JSON object")
}

#[test]
fn show_says_what_a_level_is() {
    let shown = output(&["show"], MAZE);
    assert!(shown.starts_with(MAZE) && shown.contains("paired       true"), "{shown}");
    let value = json(&["show", "--json", "-"], BOARD);
    assert_eq!((&value["game"], &value["rules"]["width"]), (&"match3".into(), &4.into()));
    assert_eq!(value["rows"][1], "4321");
}

#[test]
fn rate_measures_either_game() {
    let value = json(&["rate", "--json"], MAZE);
    assert_eq!(value["verdict"], "safe");
    assert!(value["plain"].as_u64() >= value["steps"].as_u64());
    assert_eq!(json(&["rate", "--json"], TRAP)["verdict"], "trap");
    let random = json(&["rate", "--json", "--plays", "2000"], BOARD);
    let greedy = json(&["rate", "--json", "--plays", "200", "--player", "greedy"], BOARD);
    assert_eq!(random["plays"], 2000);
    assert!(greedy["mean"].as_f64() > random["mean"].as_f64());
    assert!(output(&["rate"], MAZE).contains("optimised"));
}

#[test]
fn every_form_can_be_read_back_or_drawn() {
    for level in [MAZE, TRAP, BOARD] {
        assert_eq!(output(&["export", "--to", "text"], level), level);
        let json = output(&["export", "--to", "json", "--plays", "64"], level);
        assert_eq!(output(&["export", "--to", "text"], &json), level);
        assert!(output(&["export", "--to", "svg"], level).starts_with("<svg"));
        let map: Value = serde_json::from_str(&output(&["export", "--to", "tiled"], level)).expect("JSON");
        assert_eq!((&map["type"], &map["orientation"]), (&"map".into(), &"orthogonal".into()));
    }
    assert!(output(&["export", "--to", "histogram", "--plays", "64"], BOARD).starts_with("<svg"));
}

#[test]
fn a_tiled_map_is_written_with_its_tile_sheet() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tiled");
    std::fs::create_dir_all(&folder).expect("a folder for the map");
    let map = folder.join("maze.tmj");
    output(&["export", "--to", "tiled", "--output", map.to_str().expect("a plain path")], MAZE);
    let map: Value = serde_json::from_slice(&std::fs::read(map).expect("the map")).expect("JSON");
    let sheet = map["tilesets"][0]["image"].as_str().expect("the sheet's name");
    assert!(std::fs::read_to_string(folder.join(sheet)).expect("the sheet").starts_with("<svg"));
}

#[test]
fn a_file_called_tmx_is_xml_that_tiled_reads() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tmx");
    std::fs::create_dir_all(&folder).expect("a folder for the map");
    for (name, level, tiles) in [("maze.tmx", MAZE, 99), ("board.TMX", BOARD, 16)] {
        let map = folder.join(name);
        output(&["export", "--to", "tiled", "-o", map.to_str().expect("a plain path")], level);
        let text = std::fs::read_to_string(&map).expect("the map");
        assert!(
            text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<map version=\"1.10\""),
            "{text}"
        );
        // A stack of elements: each that is opened is closed, by its own name.
        let mut open: Vec<&str> = vec![];
        for tag in text.split('<').skip(2).map(|rest| rest.split('>').next().expect("a tag ends")) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().expect("a name")),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        let data = text.split("encoding=\"csv\">").nth(1).expect("tiles").split('<').next().expect("an end");
        let found: Vec<u32> = data.split(',').map(|tile| tile.trim().parse().expect("a tile")).collect();
        assert_eq!(found.len(), tiles);
        let sheet = text.split("source=\"").nth(1).expect("a sheet").split('"').next().expect("its name");
        assert!(folder.join(sheet).is_file());
    }
    assert_eq!(output(&["export", "--to", "tmx"], MAZE).matches("<object ").count(), 6 + 3);
}

#[test]
fn nodes_are_chosen_as_asked() {
    let nodes = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["rate", "--json"].iter().chain(arguments).copied().collect();
        json(&arguments, MAZE)["plain"].as_u64().expect("a number")
    };
    let plain = nodes(&[]);
    assert_eq!(nodes(&["--heuristic", "manhattan", "--ties", "low-cell"]), plain);
    // Dijkstra's search knows nothing of the goal, and visits everything that a search with a bound visits. Two bounds
    // may differ either way in the cells that lie on ties.
    let blind = nodes(&["--heuristic", "none"]);
    assert!(blind > plain);
    assert!(nodes(&["--heuristic", "euclidean"]) <= blind);
}

#[test]
fn letters_may_be_given_in_any_order() {
    let swapped: String = MAZE
        .chars()
        .map(|mark| match mark {
            'a' => 'b',
            'b' => 'a',
            'A' => 'B',
            'B' => 'A',
            other => other,
        })
        .collect();
    let figures = |level: &str| {
        let rated = json(&["rate", "--json"], level);
        (rated["plain"].clone(), rated["optimised"].clone(), rated["steps"].clone())
    };
    assert_eq!(figures(&swapped), figures(MAZE));
}

#[test]
fn estimates_are_listed_with_their_errors() {
    let listed = output(&["rate", "--plays", "2000"], BOARD);
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
    assert!(line("estimate").contains(" ± ") && line("mean score").contains(" ± "), "{listed}");
    assert!(line("passed").contains(" to "), "{listed}");
    assert!(!listed.split_whitespace().any(|word| word.len() > 12 && word.contains('.')), "{listed}");
}

#[test]
fn bad_levels_are_refused_with_78_and_the_reason() {
    let refused = |arguments: &[&str], input: &str, reason: &str| {
        let output = atoll(arguments, input);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(78), "{message}");
        assert!(message.contains(reason), "{message}");
        assert!(output.stdout.is_empty());
    };
    refused(&["show"], "", "stdin: expected at least one row of blocks, found none");
    refused(&["show"], "###\n#<#\n###\n", "stdin: expected one exit `>`, found `0`");
    refused(&["rate"], "{\"format\": \"atoll.go/1\"}", "found `atoll.go/1`");
    refused(&["rate"], "{", "EOF while parsing");
    refused(&["rate"], "#########\n#<.A.>.a#\n#########\n", "key `a` at (4, 1) is out of reach");
    refused(&["rate"], &"1".repeat(2 << 20), "at most 1048576 bytes");
    refused(&["show", "/nowhere/at/all"], "", "file not found: /nowhere/at/all");
    refused(&["rate"], "19\n11\n", "expected 1 to 7 colours, found `9`");
}

#[test]
fn wrong_usage_is_refused_with_2() {
    for arguments in [
        &["export", "--to", "histogram"][..],
        &["export", "--to", "png"],
        &["rate", "--player", "lucky"],
        &["rate", "--plays", "0"],
        &["rate", "--heuristic", "wishful"],
        &["study"],
        &["paint"],
    ] {
        assert_eq!(atoll(arguments, MAZE).status.code(), Some(2), "{arguments:?}");
    }
}
