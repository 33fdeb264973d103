//! A soak of real processes (`tests/long soak`): workers and coordinators are killed, stopped and terminated, connections are
//! cut and fall silent, and the store cannot be written for a while, all in a random order that follows from a seed.
//!
//! `ATOLL_SOAK_SECONDS` says for how long, `ATOLL_SOAK_SEED` with which seed to begin.

use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder, Process, digest, text, worker};
use crate::proxy::Proxy;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SWEEP: &str = r#"
name = "soak-sweep"
problem = { kind = "maze", width = 10, height = 10, turns = 20 }
algorithm = { kind = "ga", population = 100 }
islands = { count = 2 }
budget = { generations = 150 }
sweep = { repeats = 20, axis = [{ keys = ["algorithm.population"], values = [50, 100] }] }
"#;

const TOURNAMENT: &str = r#"
name = "soak-games"
[tournament]
openings = 20
depth = 2
draw = { max_plies = 60 }
players = [{ name = "counter", player = "material" }, { name = "other", player = "random" }]
"#;

/// Faults of one round.
const FAULTS: u32 = 25;

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pause(&mut self, longest: u64) {
        // Faults happen at random moments: the time between them is what is drawn.
        std::thread::sleep(Duration::from_millis(20 + self.roll(longest)));
    }
}

/// A cluster under faults, and how many of each kind it has had.
struct Soak {
    folder: Folder,
    coordinator: Option<Coordinator>,
    proxy: Proxy,
    workers: Vec<Process>,
    dice: Dice,
    counts: BTreeMap<&'static str, u32>,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let folder = Folder::new();
        let coordinator = folder.coordinator(&["--lease", "1s"]);
        let proxy = Proxy::to(&coordinator.address);
        let mut soak = Self {
            folder,
            coordinator: Some(coordinator),
            proxy,
            workers: vec![],
            dice: Dice(seed),
            counts: BTreeMap::new(),
        };
        (0..3).for_each(|_| soak.start_worker());
        soak
    }

    fn coordinator(&self) -> &Coordinator {
        self.coordinator.as_ref().unwrap()
    }

    /// Every other worker is reached through a network that fails.
    fn start_worker(&mut self) {
        let url = if self.dice.roll(2) == 0 { self.proxy.url.clone() } else { self.coordinator().url() };
        self.workers.push(worker(&url, &[]));
    }

    fn take_worker(&mut self) -> Process {
        let at = self.dice.roll(self.workers.len() as u64) as usize;
        self.workers.swap_remove(at)
    }

    fn disturb(&mut self) {
        let kind = match self.dice.roll(12) {
            0..=3 => {
                self.take_worker().kill();
                self.start_worker();
                "workers killed"
            }
            4 => {
                let worker = self.take_worker();
                worker.signal(Signal::TERM);
                self.start_worker();
                "workers terminated"
            }
            5 => {
                let worker = self.take_worker();
                worker.signal(Signal::STOP);
                self.dice.pause(1500);
                worker.signal(Signal::CONT);
                self.workers.push(worker);
                "workers stopped"
            }
            6 | 7 => {
                self.coordinator = self.coordinator.take().map(Coordinator::restart);
                "coordinators killed"
            }
            8 => {
                let coordinator = self.coordinator.take().unwrap();
                coordinator.process.signal(Signal::TERM);
                self.coordinator = Some(coordinator.again());
                "coordinators terminated"
            }
            9 => {
                self.coordinator().process.signal(Signal::STOP);
                self.dice.pause(1500);
                self.coordinator().process.signal(Signal::CONT);
                "coordinators stopped"
            }
            10 => {
                let is_silent = self.dice.roll(2) == 0;
                if is_silent {
                    self.proxy.fall_silent();
                } else {
                    self.proxy.cut();
                }
                self.dice.pause(1500);
                self.proxy.heal();
                if is_silent { "connections silent" } else { "connections cut" }
            }
            _ => {
                self.block_store();
                "stores unwritable"
            }
        };
        *self.counts.entry(kind).or_default() += 1;
    }

    /// For a while, nothing can be created below one folder of one run.
    fn block_store(&mut self) {
        let runs = self.folder.path().join("atoll-store/runs");
        let Some(run) = std::fs::read_dir(runs).unwrap().flatten().next() else { return };
        let folder = run.path().join("commits");
        let away = folder.with_file_name("commits-away");
        if std::fs::rename(&folder, &away).is_err() {
            return;
        }
        std::fs::write(&folder, "a file, where nothing can be created").unwrap();
        self.dice.pause(800);
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&away, &folder).unwrap();
    }
}

/// One round: four kinds of runs, some dozen faults, and what they came to.
fn round(seed: u64, expected: &[(&str, Option<&str>)]) -> BTreeMap<&'static str, u32> {
    let mut soak = Soak::new(seed);
    let runs: Vec<String> = expected.iter().map(|(text, _)| soak.coordinator().submit(text)).collect();
    for _ in 0..FAULTS {
        soak.dice.pause(600);
        soak.disturb();
    }
    for (run, (_, expected)) in runs.iter().zip(expected) {
        let found = soak.coordinator().digest(run);
        assert!(expected.is_none_or(|expected| found == expected), "seed {seed}: {run} is {found}");
    }
    for run in &runs {
        let verified = soak.folder.atoll(&["verify", run]);
        assert!(verified.status.success(), "seed {seed}: {run}: {}", text(&verified.stderr));
    }
    soak.counts
}

#[test]
#[ignore = "takes as long as it is told: tests/long soak"]
fn soak() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (seconds, first) = (number("ATOLL_SOAK_SECONDS", 60), number("ATOLL_SOAK_SEED", 0));
    let alone = |name: &str, plan: &str| {
        let folder = Folder::new();
        let file = folder.file(name, plan);
        digest(&folder.atoll(&["run", &file, "--json"]))
    };
    let (sweep, games) = (alone("sweep.toml", SWEEP), alone("games.toml", TOURNAMENT));
    let asynchronous = EXPERIMENT.replace("\"faults\"", "\"asynchronous\"");
    let asynchronous = asynchronous.replace("count = 5 }", "count = 5, mode = \"asynchronous\" }");
    let expected = [
        (EXPERIMENT, Some(DIGEST.as_str())),
        (asynchronous.as_str(), None),
        (SWEEP, Some(sweep.as_str())),
        (TOURNAMENT, Some(games.as_str())),
    ];
    println!("soak: digests {}, {sweep}, {games}", *DIGEST);
    let start = Instant::now();
    for seed in first.. {
        let counts = round(seed, &expected);
        let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        println!("soak: seed {seed}, {}", counts.join(", "));
        if start.elapsed().as_secs() >= seconds {
            break;
        }
    }
}
