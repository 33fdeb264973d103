//! `atoll maze`, as people and scripts call it.

use serde_json::Value;
use std::io::Write;
use std::process::{Command, Output, Stdio};

fn atoll(arguments: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(arguments.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn solve(arguments: &str) -> Value {
    serde_json::from_str(&stdout(&atoll(&format!("maze solve --json {arguments}"), ""))).unwrap()
}

#[test]
fn every_algorithm_solves_the_published_board() {
    let board = "--width 20 --height 20 --seed 0 --turns 45";
    for (algorithm, score) in [("greedy", 284), ("beam", 298), ("chokudai", 309), ("exact", 322)] {
        let answer = solve(&format!("{board} --algorithm {algorithm}"));
        assert_eq!((&answer["algorithm"], &answer["score"]), (&algorithm.into(), &score.into()));
        assert_eq!(answer["path"].as_str().unwrap().len(), 45);
        assert_eq!(answer["proved"], algorithm == "exact");
        assert!(
            answer["evaluations"].as_u64().unwrap() > 0 && answer["cpu_seconds"].as_f64().unwrap() >= 0.0
        );
    }
    assert_eq!(solve(&format!("{board} --algorithm exact"))["bound"], 322);
}

const ALL: [&str; 10] =
    ["random", "greedy", "beam", "chokudai", "ga-r1", "ga-r2", "ga-r3", "enhanced", "hybrid", "exact"];

/// The points of a path on a board as it is printed, by the rules and nothing else.
fn walk(board: &str, path: &str) -> u64 {
    let mut cells: Vec<Vec<char>> = board.lines().map(|line| line.chars().collect()).collect();
    let at = |cells: &[Vec<char>], wanted| {
        let row = cells.iter().position(|row| row.contains(&wanted)).unwrap();
        (row, cells[row].iter().position(|&cell| cell == wanted).unwrap())
    };
    let (mut row, mut column) = at(&cells, '@');
    cells[row][column] = '0';
    let mut score = 0;
    for way in path.chars() {
        (row, column) = match way {
            'U' => (row.checked_sub(1).unwrap(), column),
            'D' => (row + 1, column),
            'L' => (row, column.checked_sub(1).unwrap()),
            'R' => (row, column + 1),
            _ => panic!("{way}"),
        };
        score += u64::from(std::mem::replace(&mut cells[row][column], '0').to_digit(10).expect("no wall"));
    }
    score
}

#[test]
fn paths_are_legal_and_worth_what_they_claim() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("board");
    for (seed, size, turns) in [(1, "--width 7 --height 5", 8), (2, "--width 4 --height 9", 13), (3, "", 20)]
    {
        let board = stdout(&atoll(&format!("maze board --seed {seed} --walls 12 {size}"), ""));
        std::fs::write(&file, &board).unwrap();
        let source = format!("--turns {turns} --board {}", file.display());
        let optimum = solve(&format!("{source} --algorithm exact"))["score"].as_u64().unwrap();
        for algorithm in ALL {
            let answer = solve(&format!("{source} --algorithm {algorithm} --random-seed {seed}"));
            let (path, score) = (answer["path"].as_str().unwrap(), answer["score"].as_u64().unwrap());
            assert_eq!((path.len(), walk(&board, path)), (turns, score), "{algorithm} on\n{board}");
            assert!(score <= optimum, "{algorithm}: {score} of {optimum} on\n{board}");
        }
    }
}

/// The numbers that a path takes on a printed board, each with the moves made up to it.
fn takes(board: &str, path: &str) -> Vec<(u64, u64)> {
    let points = |moves: usize| walk(board, &path[..moves]);
    (1..=path.len())
        .map(|moves| (moves as u64, points(moves) - points(moves - 1)))
        .filter(|&(_, number)| number > 0)
        .collect()
}

#[test]
fn every_algorithm_pursues_every_goal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("board");
    let board = "@1004\n0#020\n30010\n";
    std::fs::write(&file, board).unwrap();
    let source = format!("--board {} --turns 14", file.display());
    // The fewest moves were found by trying all walks, in another language.
    for (goal, needed, collected, moves) in
        [("order:1,2,1,3", 4, 4, 8), ("sum:7", 7, 7, 6), ("all", 5, 5, 10)]
    {
        let exact = solve(&format!("{source} --algorithm exact --goal {goal}"));
        let path = exact["path"].as_str().unwrap();
        assert_eq!((&exact["proved"], &exact["needed"]), (&true.into(), &needed.into()), "{exact}");
        assert_eq!((&exact["collected"], &exact["moves"]), (&collected.into(), &moves.into()), "{exact}");
        assert_eq!(path.len(), moves, "{exact}");
        let numbers: Vec<u64> = takes(board, path).iter().map(|&(_, number)| number).collect();
        match goal {
            "sum:7" => assert_eq!(numbers.iter().sum::<u64>(), 7),
            "all" => assert_eq!(numbers.len(), 5),
            _ => assert_eq!(numbers, [1, 2, 1, 3]),
        }
        for algorithm in ALL {
            let answer = solve(&format!("{source} --algorithm {algorithm} --goal {goal} --random-seed 3"));
            assert!(answer["score"].as_u64() <= exact["score"].as_u64(), "{algorithm}: {answer}");
            let path = answer["path"].as_str().unwrap();
            assert_eq!(answer["moves"], path.len(), "{algorithm}: {answer}");
            assert_eq!(answer["reached"], answer["collected"] == answer["needed"], "{algorithm}: {answer}");
            walk(board, path);
        }
        let hybrid = solve(&format!("{source} --algorithm hybrid --goal {goal}"));
        assert_eq!(hybrid["score"], exact["score"], "{hybrid}");
    }
    let text = stdout(&atoll(&format!("maze solve {source} --algorithm exact --goal sum:7"), ""));
    assert!(text.contains("collected    7 of 7 points in 6 moves (goal reached)"), "{text}");
}

#[test]
fn evolved_paths_are_told_beside_their_founders() {
    let hybrid = solve("--width 20 --height 20 --turns 40 --algorithm hybrid");
    assert_eq!(hybrid["score"], 288);
    assert!(hybrid["first_score"].as_u64().unwrap() < 288, "{hybrid}");
    assert_eq!(solve("--turns 20 --algorithm greedy")["first_score"], Value::Null);
    let enhanced = solve("--width 20 --height 20 --turns 50 --algorithm enhanced --random-seed 3");
    assert!(enhanced["first_score"].as_u64() <= enhanced["score"].as_u64());
}

#[test]
fn a_path_is_drawn_into_the_picture() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("path.svg");
    stdout(&atoll(&format!("maze solve --turns 30 --algorithm hybrid --svg {}", file.display()), ""));
    let svg = std::fs::read_to_string(&file).unwrap();
    let path = svg.lines().find(|line| line.contains("<polyline")).expect("a path");
    assert_eq!(path.split("points=\"").nth(1).unwrap().split('"').next().unwrap().split(' ').count(), 31);
}

#[test]
fn random_moves_follow_their_seed() {
    let path =
        |seed: u32| solve(&format!("--turns 30 --algorithm random --random-seed {seed}"))["path"].clone();
    assert_eq!(path(1), path(1));
    assert_ne!(path(1), path(2));
}

#[test]
fn options_reach_the_search() {
    let wide =
        solve("--turns 30 --algorithm beam --beam-width 500 --plan-once --distinct --horizon remaining");
    let narrow = solve("--turns 30 --algorithm beam");
    assert_eq!(narrow["score"], 189);
    assert!((190..=205).contains(&wide["score"].as_u64().unwrap()), "{wide}");
    let stopped = solve("--turns 50 --algorithm exact --max-states 0");
    assert_eq!(stopped["proved"], false);
    assert!(stopped["bound"].as_u64() >= Some(322));
}

#[test]
fn a_board_that_was_printed_is_read_back() {
    for format in ["text", "json"] {
        let printed = stdout(&atoll(
            &format!("maze board --width 7 --height 4 --seed 5 --walls 20 --format {format}"),
            "",
        ));
        let again = stdout(&atoll(&format!("maze board --board - --format {format}"), &printed));
        assert_eq!(printed, again);
    }
    assert!(stdout(&atoll("maze board --format svg", "")).starts_with("<svg"));
    assert!(stdout(&atoll("maze board --format drawing", "")).contains('@'));
}

#[test]
fn what_can_not_be_played_is_refused_with_the_reason() {
    let solve = "maze solve --algorithm greedy --turns";
    let cases = [
        (format!("{solve} 5 --board -"), "12\n3@5", 78, "-: expected rows of 2 cells, found `3` in row 2"),
        (
            format!("{solve} 5 --board -"),
            "1x\n3@",
            78,
            "-: expected a digit, `#` or `@`, found `x` in column 2 of row 1",
        ),
        (format!("{solve} 5 --board -"), "#\n@", 78, "-: expected a cell to move to"),
        (format!("{solve} 5 --board no-such-file"), "", 78, "file not found: no-such-file"),
        (
            format!("{solve} 5 --width 0"),
            "",
            2,
            "expected a board of 2 to 16384 cells, found width `0` and height `10`",
        ),
        (format!("{solve} 5 --width 1 --height 1"), "", 2, "expected a board of 2 to 16384 cells"),
        (
            format!("{solve} 5 --goal sum:0"),
            "",
            2,
            "invalid value 'sum:0' for '--goal <GOAL>': expected a sum from 1 to 90000, found `0`",
        ),
        (format!("{solve} 0"), "", 2, "expected 1 to 10000 turns, found `0`"),
        (format!("{solve} 99999999"), "", 2, "expected 1 to 10000 turns, found `99999999`"),
        (
            "maze solve --algorithm hybrid --turns 1001".to_owned(),
            "",
            2,
            "--turns 1001 is too long for --algorithm hybrid: expected at most 1000 turns for a bound, found `1001`",
        ),
        (
            "maze solve --algorithm enhanced --turns 10000".to_owned(),
            "",
            2,
            "--turns 10000 is too long for --algorithm enhanced: expected an island",
        ),
        (
            "maze solve --algorithm chokudai --turns 10000 --width 128 --height 128 --beam-width 9999"
                .to_owned(),
            "",
            2,
            "expected a search that fits in 1073741824 bytes",
        ),
        (
            "maze solve --algorithm ga-r2 --turns 60 --width 3 --height 2".to_owned(),
            "",
            1,
            "expected a path without a step over the edge, found none in",
        ),
        (
            "maze solve --algorithm exact --turns 5000".to_owned(),
            "",
            2,
            "expected at most 1000 turns for a bound, found `5000`",
        ),
        (
            "maze solve --algorithm beam --turns 5 --beam-width 0".to_owned(),
            "",
            2,
            "expected a width and a number of beams of at least 1",
        ),
    ];
    for (arguments, input, code, reason) in cases {
        let output = atoll(&arguments, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!(message.starts_with(&format!("error: {reason}")), "{arguments}: {message}");
        assert!(output.stdout.is_empty());
    }
}
