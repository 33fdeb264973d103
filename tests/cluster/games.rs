//! Every game on a cluster: threads, workers and crashes do not show in the digest of a run.

use crate::process::{Folder, digest};

/// Four islands of two kinds, with everything that self-play has to offer, played quickly.
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
hall_of_fame = { size = 3, games = 1 }
benchmark = { games = 1 }
champion = { contenders = 3, pairs = 1 }

[algorithm]
kind = "es"
parents = 4
offspring = 4

[islands]
count = 4

[[islands.override]]
islands = [1, 3]
algorithm = { kind = "crowding", population = 6, mutation = { rate = 0.01, per = "gene", step = 0.1 } }
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
fn lock_key_levels_have_one_digest() {
    has_one_digest(LOCK_KEY);
}

#[test]
fn match3_levels_have_one_digest() {
    has_one_digest(MATCH3);
}
