//! Levels searched on a cluster: the digest is the one of a run in one process.

use crate::process::{Folder, digest};

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

/// In one process, with so many threads.
fn in_process(experiment: &str, threads: &str) -> String {
    let folder = Folder::new();
    let file = folder.file("levels.toml", experiment);
    digest(&folder.atoll(&["run", &file, "--threads", threads, "--json"]))
}

#[test]
fn threads_workers_and_crashes_do_not_show() {
    for experiment in [LOCK_KEY, MATCH3] {
        let expected = in_process(experiment, "1");
        assert_eq!(in_process(experiment, "2"), expected);

        let folder = Folder::new();
        let coordinator = folder.coordinator(&["--lease", "1s"]);
        let run = coordinator.submit(experiment);
        let workers = [(); 3].map(|()| coordinator.worker(&[]));
        coordinator.wait_for(GENERATION, 2.0);
        let [first, ..] = workers;
        first.kill();
        let coordinator = coordinator.restart();
        assert_eq!(coordinator.digest(&run), expected, "with workers and the coordinator killed");
    }
}
