//! Checkers by self-play on a cluster: fitness is relative, and the digest is still the one of a run in one process.

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

const GENERATION: &str = "atoll_run_generation";

/// In one process, with so many threads.
fn in_process(threads: &str) -> String {
    let folder = Folder::new();
    let file = folder.file("self-play.toml", SELF_PLAY);
    digest(&folder.atoll(&["run", &file, "--threads", threads, "--json"]))
}

#[test]
fn threads_workers_and_crashes_do_not_show() {
    let expected = in_process("1");
    assert_eq!(in_process("2"), expected);

    let folder = Folder::new();
    let file = folder.file("self-play.toml", SELF_PLAY);
    assert_eq!(digest(&folder.atoll(&["run", &file, "--workers", "1", "--json"])), expected, "with 1 worker");

    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    let run = coordinator.submit(SELF_PLAY);
    let workers = [(); 3].map(|()| coordinator.worker(&[]));
    coordinator.wait_for(GENERATION, 2.0);
    let [first, ..] = workers;
    first.kill();
    let coordinator = coordinator.restart();
    assert_eq!(coordinator.digest(&run), expected, "with workers and the coordinator killed");
}
