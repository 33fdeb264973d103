//! Every game on a cluster: threads, workers and crashes do not show in the digest of a run.

use crate::process::{Folder, digest, json, text};
use std::fmt::Write as _;

/// Four islands of four kinds, with everything that self-play has to offer, played quickly.
const SELF_PLAY: &str = r#"
name = "self-play"
seed = 4
checkpoint.every = 1
budget = { generations = 12 }
migration = { interval = 3, count = 2 }

[problem]
kind = "checkers"
depth = 1
games = 2
colours = "swapped"
openings = "deck"
draw = { moves = 40 }
hall_of_fame = { size = 3, games = 1, choice = "hardest" }
benchmark = { games = 1 }
champion = { contenders = 3, pairs = 1 }

[algorithm]
kind = "es"
parents = 4
offspring = 4

[islands]
count = 4
league = "fully-connected"

[[islands.override]]
islands = [1]
algorithm = { kind = "crowding", population = 6, mutation = { rate = 0.01, per = "gene", step = 0.1 } }

[[islands.override]]
islands = [2]
algorithm = { kind = "sep-cma", parents = 4, offspring = 8 }

[[islands.override]]
islands = [3]
algorithm = { kind = "lm-ma", parents = 4, offspring = 8 }
exploits = true
"#;

/// Two islands whose means learn: positions and moments travel with them.
const LEARNING: &str = r#"
name = "learning"
seed = 4
checkpoint.every = 1
budget = { generations = 8 }
migration = { interval = 2 }

[problem]
kind = "checkers"
depth = 1
games = 2
colours = "swapped"
openings = "deck"
random_plies = 4
draw = { moves = 40, quiet = 20 }
learning = { positions = 512, learners = "mean", memory = 2000, half_life = 4, discount = 0.99, quiet = 6, king = true }

[algorithm]
kind = "es"
parents = 2
offspring = 4
sigma = 0.01
recombination = "intermediate"
survival = "comma"

[islands]
count = 2
"#;

const LOCK_KEY: &str = r#"
name = "lock-key"
seed = 4
checkpoint.every = 1
budget = { generations = 30 }
migration = { interval = 3, count = 4 }

[problem]
kind = "lock-key"
level = { width = 8, height = 8, pairs = 3, colours = 2, loops = 2 }
targets = [60, 90, 120]

[algorithm]
kind = "map-elites"
bins = [30, 5, 5]
founders = 60
batch = 40

[islands]
count = 4
"#;

const MATCH3: &str = r#"
name = "match3"
seed = 4
checkpoint.every = 1
budget = { generations = 30 }
migration = { interval = 3 }

[problem]
kind = "match3"
targets = [0.7]
plays = { least = 64, most = 1024 }

[algorithm]
kind = "ga"
population = 10

[islands]
count = 4
"#;

const GENERATION: &str = "atoll_run_generation";

/// In one process or with worker processes, as the flags say.
fn run(experiment: &str, flags: &[&str]) -> String {
    let folder = Folder::new();
    let file = folder.file("experiment.toml", experiment);
    digest(&folder.atoll(&[&["run", &file, "--json"], flags].concat()))
}

fn has_one_digest(experiment: &str) {
    let expected = run(experiment, &["--threads", "1"]);
    assert_eq!(run(experiment, &["--threads", "2"]), expected);
    assert_eq!(run(experiment, &["--workers", "1"]), expected, "with 1 worker");

    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    let submitted = coordinator.submit(experiment);
    let [first, _second, _third] = [(); 3].map(|()| coordinator.worker(&[]));
    coordinator.wait_for(GENERATION, 2.0);
    first.kill();
    let coordinator = coordinator.restart();
    assert_eq!(coordinator.digest(&submitted), expected, "with a worker and the coordinator killed");
}

#[test]
fn self_play_has_one_digest() {
    has_one_digest(SELF_PLAY);
}

#[test]
fn learning_has_one_digest() {
    has_one_digest(LEARNING);
}

#[test]
fn what_was_learnt_is_computed_again() {
    let folder = Folder::new();
    let file = folder.file("experiment.toml", LEARNING);
    let run = json(&folder.atoll(&["run", &file, "--json"]));
    let name = run["run"].as_str().expect("a run");
    let verified = json(&folder.atoll(&["verify", name, "--json"]));
    assert_eq!(verified["ok"], true, "{verified}");
    assert!(verified["recomputed"].as_u64() > Some(0), "nothing was computed again: {verified}");
}

#[test]
fn lock_key_levels_have_one_digest() {
    has_one_digest(LOCK_KEY);
}

#[test]
fn match3_levels_have_one_digest() {
    has_one_digest(MATCH3);
}

/// Networks that have never learnt anything, and who counts pieces: enough games that something can happen to them.
fn tournament(folder: &Folder) -> String {
    let mut text =
        "name = \"tournament\"\nseed = 4\n[tournament]\ndepth = 3\ndraw = { max_plies = 120 }\n".to_owned();
    for number in 1..=4u32 {
        let weight = |at: usize| {
            ((at as u32 + 1).wrapping_mul(2_654_435_761_u32.wrapping_mul(number)) % 401) as f32 / 1000.0 - 0.2
        };
        let weights: Vec<f32> = (0..checkers::NodeKind::Sum.weight_count()).map(weight).collect();
        let network = checkers::Network::new(checkers::NodeKind::Sum, &weights).unwrap();
        let path = folder.path().join(format!("{number}.acp"));
        std::fs::write(&path, network.to_player_file()).unwrap();
        let player = path.display();
        write!(text, "[[tournament.players]]\nname = \"{number}\"\nplayer = \"{player}\"\n").unwrap();
    }
    text + "[[tournament.players]]\nname = \"counter\"\nplayer = \"material\"\n"
}

#[test]
fn a_tournament_has_one_digest_and_every_game_once() {
    let folder = Folder::new();
    let text = tournament(&folder);
    let file = folder.file("tournament.toml", &text);
    let alone = json(&folder.atoll(&["run", &file, "--json", "--threads", "1"]));
    let expected = alone["digest"].as_str().unwrap();
    assert_eq!(digest(&folder.atoll(&["run", &file, "--json", "--fresh", "--workers", "1"])), expected);

    // The player files are those of another machine: neither the coordinator nor its workers have them.
    let elsewhere = Folder::new();
    let coordinator = elsewhere.coordinator(&["--lease", "1s"]);
    let run = coordinator.submit(&text);
    // It takes seconds: without a pause, one worker could finish it before another one has started.
    assert!(coordinator.command(&["pause", &run]).status.success());
    let [first, _second, _third] = [(); 3].map(|()| coordinator.worker(&[]));
    coordinator.wait_for("atoll_workers", 3.0);
    assert!(coordinator.command(&["pause", &run, "--off"]).status.success());
    coordinator.wait_for(GENERATION, 5.0);
    first.kill();
    let coordinator = coordinator.restart();
    assert_eq!(coordinator.digest(&run), expected, "with a worker and the coordinator killed");

    let games = elsewhere.atoll(&["tournament", "games", &run]);
    let games = checkers::read_pdn(&String::from_utf8(games.stdout).unwrap()).unwrap();
    let rounds: std::collections::BTreeSet<&str> =
        games.iter().map(|game| game.tag("Round").unwrap()).collect();
    assert_eq!((games.len(), rounds.len()), (10 * 312, 10 * 312), "none is lost, none was played twice");
    let table = json(&elsewhere.atoll(&["tournament", "table", &run, "--json"]));
    assert_eq!(table["players"], alone["players"]);
}

#[test]
fn a_coordinator_rates_milestones_as_a_local_store_does() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&SELF_PLAY.replace("generations = 12", "generations = 6"));
    coordinator.digest(&run);
    let rate = [
        "ratings",
        &run,
        "--milestones",
        "2",
        "--island",
        "0",
        "--island",
        "2",
        "--depth",
        "1",
        "--openings",
        "1",
    ];
    let rate = [&rate[..], &["--json"]].concat();
    let there = json(&coordinator.command(&rate));
    assert_eq!(there["milestones"].as_array().unwrap().len(), 4, "{there}");
    let games = there["tournament"].as_str().unwrap();
    let listed = json(&coordinator.command(&["runs", "--json"]));
    let is_played = |run: &serde_json::Value| run["run"] == games && run["state"] == "finished";
    assert!(listed.as_array().unwrap().iter().any(is_played), "{listed}");
    let exported = coordinator.command(&["export", games]);
    assert_eq!(exported.status.code(), Some(2), "a tournament has no champions to export");
    // Runs have the same names there as here.
    let named = r#"
        name = "named"
        tournament = { openings = 1, depth = 1, players = [
            { name = "evolved", player = "self-play/0" },
            { name = "other", player = "self/1" },
            { name = "random", player = "random" },
        ] }
    "#;
    let named = folder.file("named.toml", named);
    let submitted = json(&coordinator.command(&["submit", &named, "--json"]));
    let digest = coordinator.digest(submitted["run"].as_str().unwrap());
    drop(coordinator);
    let alone = json(&folder.atoll(&["run", &named, "--json"]));
    assert_eq!((&alone["run"], alone["digest"].as_str()), (&submitted["run"], Some(&*digest)));
    assert_eq!(text(&exported.stderr), text(&folder.atoll(&["export", games]).stderr), "in the same words");
    let here = json(&folder.atoll(&rate));
    for key in ["run", "tournament", "milestones", "benchmarks", "progress", "comparisons"] {
        assert_eq!(there[key], here[key], "{key}");
    }
}
