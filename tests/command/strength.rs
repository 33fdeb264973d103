//! `atoll bench strength` and `atoll analyse`.

use crate::support::Place;

#[test]
fn strength_is_measured_alike_every_time() {
    let place = Place::new();
    let measure = |arguments: &[&str]| {
        let all = [&["bench", "strength"], arguments, &["--pairs", "6", "--json"]].concat();
        place.json(&all)
    };
    let weak = measure(&["random", "--depth", "4"]);
    assert_eq!(weak["opponents"].as_array().unwrap().len(), 2);
    assert!(weak["opponents"][0]["score"].as_f64().unwrap() < 0.2, "{weak}");
    assert!(weak["rating"]["elo"].as_f64().unwrap() < -100.0, "{weak}");
    let by_nodes = ["material", "--nodes", "200", "--seed", "4"];
    let found = measure(&by_nodes);
    assert_eq!(found, measure(&by_nodes));
    // Where nodes end a search, plies say nothing.
    let names =
        [0, 1].map(|at: usize| found["opponents"][at]["opponent"].as_str().expect("a name").to_owned());
    assert_eq!(names, ["material plain", "material privileged"]);
}

#[test]
fn only_rungs_that_played_are_rated() {
    let place = Place::new();
    let calibrate = ["bench", "strength", "--calibrate", "--depth", "4", "--pairs", "1"];
    let printed = place.run(&calibrate);
    let lines: Vec<&str> = printed.expect(0).stdout.lines().collect();
    assert_eq!((lines[0], lines.len()), ("kind,plies,elo", 13), "{lines:?}");
    for line in &lines[1..] {
        let [kind, plies, elo] = line.split(',').collect::<Vec<_>>().try_into().expect("three fields");
        let played = plies.parse::<u32>().expect("plies") <= 4;
        assert_eq!(elo.parse::<f64>().is_ok(), played, "{kind} {plies}: `{elo}`");
    }
    assert!(lines.contains(&"plain,4,0"), "{lines:?}");
    let json = place.json(&[&calibrate[..], &["--json"]].concat());
    let rungs = json["rungs"].as_array().expect("rungs");
    assert_eq!(rungs.len(), 12);
    let rated = rungs.iter().filter(|rung| rung["elo"].is_number()).count();
    assert_eq!(rated, 5, "{json}");
    place.run(&["bench", "strength", "--calibrate", "--depth", "2"]).expect_error(2, &["--depth", "4"]);
}

#[test]
fn matches_are_played_by_nodes() {
    let place = Place::new();
    let play = |arguments: &[&str]| {
        place.json(
            &[&["checkers", "match", "material", "material", "--pairs", "3", "--json"], arguments].concat(),
        )
    };
    let by_nodes = play(&["--nodes", "300"]);
    assert_eq!(by_nodes, play(&["--nodes", "300"]));
    assert_eq!(by_nodes["nodes"], 300);
    let stronger = play(&["--nodes", "3000", "--opponent-depth", "1"]);
    assert!(stronger["score"].as_f64().unwrap() > 0.6, "{stronger}");
    play(&["--milliseconds", "1", "--opponent-privileges"]);
    place
        .run(&["checkers", "match", "material", "random", "--nodes", "9", "--depth", "3"])
        .expect_error(2, &["--nodes"]);
}

#[test]
fn the_best_move_comes_from_the_book_or_a_run() {
    let place = Place::new();
    let best = |arguments: &[&str]| {
        place.json(&[&["checkers", "best", "--depth", "3", "--json"], arguments].concat())
    };
    let book = best(&["--player", "material", "--book", "deck"]);
    assert_eq!(book["book"], true, "{book}");
    assert_eq!(best(&["--player", "material", "--history"])["depth"], 3);
    place.write(
        "tiny.toml",
        "name = \"tiny\"\nproblem = { kind = \"checkers\", nodes = \"sum\", depth = 1, games = 1, draw = { moves = 9 } }\n\
         algorithm = { kind = \"es\", parents = 2, offspring = 2 }\nbudget = { generations = 1 }\n",
    );
    let run = place.json(&["run", "tiny.toml", "--json"]);
    let name = run["run"].as_str().expect("a run");
    assert_eq!(best(&["--player", name])["depth"], 3);
}

#[test]
fn games_are_commented() {
    let place = Place::new();
    // Black gives a man away with its second move.
    place.write("games.pdn", "[Event \"one\"]\n\n1. 9-14 24-20 2. 14-18 23x14 *\n");
    let commented = place.run(&["analyse", "games.pdn", "material", "--depth", "6"]);
    let text = &commented.expect(0).stdout;
    let games = checkers::read_pdn(text).unwrap();
    assert_eq!((games.len(), games[0].moves.len()), (1, 4));
    assert!(
        games[0].comments.iter().any(|comment| comment.after == 3 && comment.text.contains("better")),
        "{text}"
    );
    place.run(&["analyse", "nothing.pdn", "material"]).expect_error(78, &["nothing.pdn"]);
}
