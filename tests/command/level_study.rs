//! `atoll level study` on logs of simulated players: they stand in for people, and say so.

use crate::support::Place;
use match3::{Board, Direction, Game, Level, Move, Rules, Stream};
use serde_json::{Value, json};

const STAGES: [u32; 3] = [3, 5, 8];
const GAMES: usize = 5;

/// A player who makes `moves` random moves on each of the stages, in an order; the log, and the scores by stage.
fn session(number: usize, moves: usize, order: &str) -> (Value, Vec<Vec<f64>>) {
    let rules = Rules::default();
    let game = Game::new(&rules).expect("rules");
    let mut stream = Stream::nth(7, number as u64);
    let boards = STAGES.map(|seed| Board::from_seed(&rules, seed));
    let mut stages = [0, 1, 2];
    if order == "down" {
        stages.reverse();
    }
    let mut scores = vec![vec![]; 3];
    let mut plays = vec![];
    for stage in stages.into_iter().flat_map(|stage| [stage; GAMES]) {
        let mut supply = Stream::new(0);
        let (mut board, mut score) = game.start(&boards[stage], &mut supply).expect("a board");
        let mut swaps = vec![];
        for _ in 0..moves {
            let direction =
                [Direction::Up, Direction::Right, Direction::Down, Direction::Left][stream.below(4) as usize];
            let block = Move { x: stream.below(5) as u8, y: stream.below(10) as u8, direction };
            score += game.play(&mut board, block, &mut supply).expect("a move").score;
            swaps.push(json!([block.x, block.y, direction]));
        }
        scores[stage].push(score);
        let times: Vec<usize> = (1..=moves).map(|turn| 500 * turn).collect();
        plays.push(
            json!({ "level": stage, "moves": swaps, "times": times, "done": score >= 15.0, "score": score }),
        );
    }
    let levels: Vec<Value> = boards
        .into_iter()
        .enumerate()
        .map(|(stage, board)| {
            let level = Level::new(rules.clone(), board).expect("a level").to_json(None, None);
            json!({ "name": format!("stage {}", stage + 1), "group": "stages", "level": level })
        })
        .collect();
    let log = json!({
        "format": "atoll.play/1", "code": format!("S{number:02}"), "simulated": true,
        "settings": { "order": order, "games": GAMES }, "levels": levels, "plays": plays, "rankings": [],
    });
    (log, scores)
}

/// The log of a session, as other tests need one.
pub(crate) fn simulated_session() -> String {
    session(0, 10, "up").0.to_string()
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

#[test]
fn twenty_simulated_players_make_the_published_tables_of_scores() {
    let place = Place::new();
    let mut arguments = vec!["level".to_owned(), "study".to_owned()];
    let mut by_order = [vec![vec![]; 3], vec![vec![]; 3]];
    for number in 0..20 {
        let order = if number % 2 == 0 { "up" } else { "down" };
        let (log, scores) = session(number, 60, order);
        let name = format!("{number}.json");
        place.write(&name, log.to_string());
        arguments.push(name);
        for (stage, scores) in scores.into_iter().enumerate() {
            by_order[number % 2][stage].extend(scores);
        }
    }
    let mut names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let told = place.run(&names);
    told.expect(0);
    assert!(told.stdout.starts_with("# Play study: 20 sessions, 300 games\n"), "{}", told.stdout);
    assert!(told.stdout.contains("All sessions are of simulated players, not of people."), "{}", told.stdout);
    names.push("--json");
    let study = place.json(&names);
    for stage in 0..3 {
        let all: Vec<f64> = by_order.iter().flat_map(|scores| scores[stage].clone()).collect();
        let average = mean(&all);
        let deviation = (all.iter().map(|score| (score - average).powi(2)).sum::<f64>() / 99.0).sqrt();
        let passed = all.iter().filter(|&&score| score >= 15.0).count() as f64 / 100.0;
        let row = &study["stages"][stage]["sessions"];
        let near = |key: &str, truth: f64| (row[key].as_f64().expect("a number") - truth).abs() < 1e-9;
        assert!(row["plays"] == 100 && near("mean", average) && near("deviation", deviation), "{row}");
        assert!(near("passed", passed), "{row}");
        let wanted = format!("| stage {} | sessions | 100 | {average:.2} | {deviation:.2} |", stage + 1);
        assert!(told.stdout.contains(&wanted), "{wanted} in\n{}", told.stdout);
        for (order, scores) in ["first_to_last", "last_to_first"].into_iter().zip(&by_order) {
            let found = study["stages"][stage][order]["mean"].as_f64().expect("a mean");
            assert!((found - mean(&scores[stage])).abs() < 1e-9, "{order}: {found}");
        }
        // Who makes 60 moves scores less than the simulated player with 100.
        assert!(study["stages"][stage]["simulated"]["mean"].as_f64() > row["mean"].as_f64(), "{row}");
    }
    // In whatever order logs are named, the tables are the same.
    let mut turned = arguments[..2].to_vec();
    turned.extend(arguments[2..].iter().rev().cloned());
    let turned: Vec<&str> = turned.iter().map(String::as_str).collect();
    assert_eq!(place.run(&turned).stdout, told.stdout);
}

/// Three mazes whose published order is by size, drawn by hand: a corridor with a key and a lock, ever longer.
fn mazes() -> Vec<Value> {
    [3, 5, 8]
        .into_iter()
        .map(|cells| {
            let middle = ".".repeat(2 * cells - 3);
            let row = format!("#a.<{middle}A.>#");
            let wall = "#".repeat(row.len());
            json!({
                "name": format!("M{cells}"), "group": "G1",
                "level": { "format": "atoll.lock-key/1", "rows": [wall, row, wall] },
            })
        })
        .collect()
}

#[test]
fn simulated_players_make_the_published_table_of_ranks() {
    let place = Place::new();
    // The ranks of the published table, for its first group: one of seven disagrees.
    let ranks = [[1, 2, 3], [1, 2, 3], [1, 3, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]];
    let mut arguments = vec!["level".to_owned(), "study".to_owned()];
    for (number, ranks) in ranks.iter().enumerate() {
        let plays: Vec<Value> = [3_usize, 5, 8]
            .iter()
            .enumerate()
            .map(|(level, cells)| {
                // To the key, and back over the entry to the exit.
                let moves = format!("L{}", "R".repeat(cells + 1));
                let times: Vec<usize> = (1..=moves.len()).collect();
                json!({ "level": level, "moves": moves, "times": times, "done": true, "visited": moves.len() })
            })
            .collect();
        let log = json!({
            "format": "atoll.play/1", "code": format!("P{}", number + 1), "simulated": true,
            "settings": { "order": "up" }, "levels": mazes(), "plays": plays,
            "rankings": [{ "group": "G1", "ranks": ranks }],
        });
        let name = format!("p{number}.json");
        place.write(&name, log.to_string());
        arguments.push(name);
    }
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let told = place.run(&names);
    told.expect(0);
    assert!(told.stdout.contains("| P3 | 1 | 3 | 2 |"), "{}", told.stdout);
    let line =
        "6 of 7 sessions have the order of E. Kendall's tau with E: 0.90 (95 % interval 0.18 to 0.99).";
    assert!(told.stdout.contains(line), "{}", told.stdout);
    let study = place.json(&[names.as_slice(), &["--json"]].concat());
    assert_eq!(study["groups"][0]["agreement"]["same_order"], 6);
    assert_eq!((&study["mazes"][2]["solved"], &study["mazes"][2]["games"]), (&7.into(), &7.into()));
}

/// E is what `atoll level rate` counts with the same settings, and they are named.
#[test]
fn e_is_counted_as_it_is_asked_for() {
    let place = Place::new();
    // A dead end behind the entry, which only a search without an estimate looks into.
    let level =
        json!({ "format": "atoll.lock-key/1", "rows": ["#############", "#....<.a.A.>#", "#############"] });
    let log = json!({
        "format": "atoll.play/1", "code": "E1", "simulated": true, "settings": { "order": "up" },
        "levels": [{ "name": "one", "group": "g", "level": level }],
        "plays": [{ "level": 0, "moves": "RRR", "times": [1, 2, 3], "done": true, "visited": 4 }],
        "rankings": [{ "group": "g", "ranks": [1] }],
    });
    place.write("level.json", level.to_string());
    place.write("log.json", log.to_string());
    let mut counted = vec![];
    for (count, heuristic, ties) in
        [("plain", "manhattan", "low-cell"), ("plain", "none", "newest"), ("optimised", "none", "low-cell")]
    {
        let search = ["--heuristic", heuristic, "--ties", ties];
        let rated = place.json(&[&["level", "rate", "level.json", "--json"], &search[..]].concat());
        let arguments = [&["level", "study", "log.json", "--count", count], &search[..]].concat();
        let study = place.json(&[&arguments[..], &["--json"]].concat());
        assert_eq!(study["mazes"][0]["difficulty"], rated[count], "{study}");
        assert_eq!(study["groups"][0]["difficulty"][0], rated[count], "{study}");
        assert_eq!(study["measure"], json!({ "count": count, "heuristic": heuristic, "ties": ties }));
        let told = place.run(&arguments);
        assert!(
            told.stdout.contains(&format!("(count {count}, heuristic {heuristic}, ties {ties})")),
            "{}",
            told.stdout
        );
        counted.push(rated[count].as_u64().expect("a number"));
    }
    assert!(counted[0] < counted[1], "{counted:?}");
    assert_eq!(place.json(&["level", "study", "log.json", "--json"])["mazes"][0]["difficulty"], counted[0]);
    place.run(&["level", "study", "log.json", "--count", "all"]).expect(2);
}

#[test]
fn unfinished_sessions_and_pooled_settings_are_named() {
    let place = Place::new();
    let [mut one, mut other] = [1, 2].map(|number| session(number, 10, "up").0);
    for (log, view) in [(&mut one, 1), (&mut other, 2)] {
        log["settings"]["view"] = view.into();
        log["settings"]["sequence"] = json!([0, 1, 2]);
        log["finished"] = (view == 1).into();
        log["resumed"] = (view - 1).into();
    }
    other["plays"].as_array_mut().expect("games").truncate(4);
    place.write("one.json", one.to_string());
    place.write("other.json", other.to_string());
    let told = place.run(&["level", "study", "one.json", "other.json"]);
    for line in [
        "Sessions, not finished; its games count as far as they were played: S02.",
        "Sessions, interrupted and resumed; one game was started again: S02.",
        "Sessions with different settings are pooled: `view` is 1 or 2.",
    ] {
        assert!(told.stdout.contains(line), "{line} in\n{}", told.stdout);
    }
    let study = place.json(&["level", "study", "one.json", "other.json", "--json"]);
    assert_eq!(study["unfinished"], json!(["S02"]));
    assert_eq!(study["different_settings"], json!(["view"]));
    let alone = place.run(&["level", "study", "one.json"]);
    assert!(!alone.stdout.contains("Sessions,") && alone.stdout.contains("± – %"), "{}", alone.stdout);
}

#[test]
fn what_a_log_claims_is_not_believed() {
    let place = Place::new();
    let (log, _) = session(1, 10, "up");
    for (key, value, reason) in [
        ("score", json!(99.0), "game 1: expected the replayed score"),
        ("done", json!(true), "game 1: expected what the replay shows"),
        ("times", json!([5, 4]), "game 1: expected 10 rising times"),
        ("level", json!(9), "game 1: expected the number of a level below 3, found `9`"),
    ] {
        let mut log = log.clone();
        log["plays"][0][key] = value;
        place.write("log.json", log.to_string());
        let answer = place.run(&["level", "study", "log.json"]);
        assert!(answer.expect(78).stderr.contains(reason), "{}", answer.stderr);
    }
    place.write("log.json", log.to_string());
    place.write("other.json", session(1, 11, "up").0.to_string());
    let twice = place.run(&["level", "study", "log.json", "other.json"]);
    assert!(
        twice.expect(78).stderr.contains("expected each session once, found `S01` again"),
        "{}",
        twice.stderr
    );
    place.write("other.json", session(2, 10, "up").0.to_string().replace("\"stage 1\"", "\"another\""));
    let mixed = place.run(&["level", "study", "log.json", "other.json"]);
    assert!(mixed.expect(78).stderr.contains("expected sessions of the same levels"), "{}", mixed.stderr);
    place.write("none.json", "{");
    place.run(&["level", "study", "none.json"]).expect(78);
}
