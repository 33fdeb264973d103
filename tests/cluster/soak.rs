//! A soak of real processes: workers and coordinators are killed, stopped and terminated, connections are cut, fall silent, are
//! half open or slow, and disks are full, all in a random order that follows from a seed. Two coordinators share the store, of
//! which one stands by; workers have tokens, and a tenth of what they deliver is audited.
//!
//! A fault counts only if it happened: to a process that was there, to bytes that were on their way, to a write that failed,
//! and while a run was unfinished.
//!
//! `ATOLL_SOAK_SECONDS` says for how long (`tests/long soak`), `ATOLL_SOAK_SEED` with which seed to begin. Without them there
//! is one short round.

use crate::process::{Coordinator, EXPERIMENT, Folder, Process, atoll, digest, json, text, wait_until};
use crate::proxy::Proxy;
use rustix::process::{Pid, Resource, Rlimit, Signal};
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

/// The most faults of one round.
const FAULTS: u32 = 25;
const WORKERS: usize = 3;
/// How long a disk is full at most until a write fails.
const FULL: Duration = Duration::from_secs(5);

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
    /// Two; one has the store.
    coordinators: Vec<Coordinator>,
    active: usize,
    /// One before each coordinator.
    proxies: Vec<Proxy>,
    workers: Vec<Process>,
    /// How many workers were started.
    started: usize,
    dice: Dice,
    counts: BTreeMap<&'static str, u32>,
    /// What coordinators have said that are gone.
    said: String,
}

fn is_ready(coordinator: &Coordinator) -> bool {
    coordinator.page("/readyz").starts_with("HTTP/1.1 200")
}

impl Soak {
    fn new(seed: u64) -> Self {
        let folder = Folder::new();
        let tokens: Vec<String> = (0..WORKERS).map(|number| format!("worker-{number}-{seed:032}")).collect();
        for (number, token) in tokens.iter().enumerate() {
            folder.file(&format!("worker-{number}.token"), token);
        }
        folder.file("workers.token", &tokens.join("\n"));
        folder.file("operator.token", &format!("operator-{seed:032}"));
        folder.file("settings.toml", "audit = 0.1\n");
        let start = || {
            folder.coordinator(&[
                "--config=settings.toml",
                "--worker-token-file=workers.token",
                "--operator-token-file=operator.token",
                "--standby",
                "--takeover-after=1s",
                "--lease=1s",
            ])
        };
        let first = start();
        wait_until("the claim of the first", || is_ready(&first));
        let coordinators = vec![first, start()];
        let proxies = coordinators.iter().map(|coordinator| Proxy::to(&coordinator.address)).collect();
        let mut soak = Self {
            folder,
            coordinators,
            active: 0,
            proxies,
            workers: vec![],
            started: 0,
            dice: Dice(seed),
            counts: BTreeMap::new(),
            said: String::new(),
        };
        soak.supervise();
        (0..WORKERS).for_each(|_| soak.start_worker());
        soak
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Every other worker is reached through a network that fails. Three tokens are three principals.
    fn start_worker(&mut self) {
        let number = self.started;
        self.started += 1;
        let urls: Vec<String> = if number.is_multiple_of(2) {
            self.proxies.iter().map(|proxy| proxy.url.clone()).collect()
        } else {
            self.coordinators.iter().map(Coordinator::url).collect()
        };
        let token = self.path(&format!("worker-{}.token", number % WORKERS));
        let worker = atoll()
            .args(["worker", "--coordinator", &urls.join(","), "--threads", "1", "--token-file", &token])
            .env("ATOLL_LOG", "error")
            .current_dir(self.folder.path())
            .spawn();
        self.workers.push(Process(worker.unwrap()));
    }

    /// Takes a worker that is there.
    fn take_worker(&mut self) -> Process {
        let at = self.dice.roll(self.workers.len() as u64) as usize;
        let mut worker = self.workers.swap_remove(at);
        let status = worker.0.try_wait().unwrap();
        assert!(status.is_none(), "a worker has left: {status:?}\n{}", self.words());
        worker
    }

    fn submit(&self, plan: &str) -> String {
        let file = self.folder.file("submitted.toml", plan);
        let url = self.coordinators[self.active].url();
        let token = self.path("operator.token");
        let submit = ["submit", &file, "--json", "--coordinator", &url, "--token-file", &token];
        json(&self.folder.atoll(&submit))["run"].as_str().unwrap().to_owned()
    }

    /// The runs as they are stored.
    fn runs(&self) -> Vec<serde_json::Value> {
        json(&self.folder.atoll(&["runs", "--json"])).as_array().unwrap().clone()
    }

    fn has_unfinished_runs(&self) -> bool {
        self.runs().iter().any(|run| run["state"] != "finished")
    }

    /// Everything that coordinators have said.
    fn words(&self) -> String {
        let said: Vec<String> = self.coordinators.iter().map(Coordinator::said).collect();
        format!("{}{}", self.said, said.join("\n"))
    }

    /// How often a coordinator could not write.
    fn failed_writes(&self) -> usize {
        self.words().matches("cannot be written").count()
    }

    /// Starts a coordinator again if it has ended, as a supervisor would.
    fn start_again(&mut self, at: usize) {
        if self.coordinators[at].has_ended() {
            let ended = self.coordinators.remove(at);
            self.said += &ended.said();
            self.coordinators.insert(at, ended.again());
        }
    }

    /// Starts coordinators again until one of them has the store.
    fn supervise(&mut self) {
        let before = self.active;
        wait_until("a coordinator that has the store", || {
            (0..self.coordinators.len()).for_each(|at| self.start_again(at));
            let ready: Vec<usize> = (0..2).filter(|&at| is_ready(&self.coordinators[at])).collect();
            self.active = ready.first().copied().unwrap_or(self.active);
            ready.len() == 1
        });
        if self.active != before {
            *self.counts.entry("standby takeovers").or_default() += 1;
        }
    }

    /// Lets one thing go wrong; returns its name if it happened, and how often.
    fn disturb(&mut self) -> Option<(&'static str, u32)> {
        match self.dice.roll(16) {
            0..=4 => {
                let kills = 1 + self.dice.roll(2) as u32;
                for _ in 0..kills {
                    self.take_worker().kill();
                    self.start_worker();
                }
                Some(("workers killed", kills))
            }
            5 => {
                let mut worker = self.take_worker();
                worker.signal(Signal::TERM);
                worker.ended();
                self.start_worker();
                Some(("workers terminated", 1))
            }
            6 => {
                let worker = self.take_worker();
                worker.signal(Signal::STOP);
                self.dice.pause(2500);
                worker.signal(Signal::CONT);
                self.workers.push(worker);
                Some(("workers stopped", 1))
            }
            7..=9 => {
                self.coordinators[self.active].process.0.kill().unwrap();
                if self.dice.roll(2) == 0 {
                    let standby = 1 - self.active;
                    // One that has lost the store ends itself, sometimes only now: then nobody else is there.
                    wait_until("the standby to take over", || {
                        self.start_again(standby);
                        is_ready(&self.coordinators[standby])
                    });
                }
                Some(("coordinators killed", 1))
            }
            10 => {
                self.coordinators[self.active].process.signal(Signal::TERM);
                wait_until("the end of a coordinator", || self.coordinators[self.active].has_ended());
                Some(("coordinators terminated", 1))
            }
            11 => {
                self.coordinators[self.active].process.signal(Signal::STOP);
                self.dice.pause(2500);
                self.coordinators[self.active].process.signal(Signal::CONT);
                Some(("coordinators stopped", 1))
            }
            12 | 13 => self.break_connections().map(|kind| (kind, 1)),
            _ => self.fill_disk().then_some(("disks full", 1)),
        }
    }

    /// For a while, what goes through the active coordinator's proxy does not arrive as it should.
    fn break_connections(&mut self) -> Option<&'static str> {
        let (kind, time) = (self.dice.roll(4), Duration::from_millis(20 + self.dice.roll(300)));
        let proxy = &self.proxies[self.active];
        let before = proxy.held();
        let name = match kind {
            0 => {
                proxy.cut();
                "connections cut"
            }
            1 => {
                proxy.fall_silent();
                "connections silent"
            }
            2 => {
                proxy.fall_half_silent();
                "connections half-open"
            }
            _ => {
                proxy.slow_down(time);
                "connections slow"
            }
        };
        self.dice.pause(2500);
        let proxy = &self.proxies[self.active];
        proxy.heal();
        (proxy.held() > before).then_some(name)
    }

    /// For a while, the active coordinator can write no file beyond a small size; returns whether it wanted to.
    fn fill_disk(&mut self) -> bool {
        let before = self.failed_writes();
        let coordinator = &self.coordinators[self.active].process;
        let pid = Pid::from_raw(coordinator.0.id() as i32);
        let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
        let limit = |current| {
            let limits = Rlimit { current, maximum };
            rustix::process::prlimit(pid, Resource::Fsize, limits).unwrap()
        };
        limit(Some(0));
        self.dice.pause(1500);
        // How soon something is to be written depends on the runs.
        let start = Instant::now();
        while self.failed_writes() == before && start.elapsed() < FULL {
            std::thread::sleep(Duration::from_millis(20));
        }
        limit(maximum);
        self.failed_writes() > before
    }
}

/// One round: four kinds of runs, some dozen faults, and what they came to.
fn round(seed: u64, faults: u32, expected: &[(&str, Option<&str>)]) -> BTreeMap<&'static str, u32> {
    let mut soak = Soak::new(seed);
    let runs: Vec<String> = expected.iter().map(|(text, _)| soak.submit(text)).collect();
    for _ in 0..faults {
        soak.dice.pause(600);
        if !soak.has_unfinished_runs() {
            break;
        }
        if let Some((kind, times)) = soak.disturb() {
            *soak.counts.entry(kind).or_default() += times;
        }
        soak.supervise();
    }
    wait_until("the end of all runs", || {
        soak.supervise();
        let failed = soak.runs().into_iter().find(|run| run["state"] == "failed");
        assert!(failed.is_none(), "seed {seed}: {failed:?}\n{}", soak.words());
        !soak.has_unfinished_runs()
    });
    let stored = soak.runs();
    for (run, (_, expected)) in runs.iter().zip(expected) {
        let found = stored.iter().find(|stored| stored["run"] == run.as_str()).unwrap();
        let found = found["digest"].as_str().unwrap();
        assert!(
            expected.is_none_or(|expected| found == expected),
            "seed {seed}: {run} is {found}\n{}",
            soak.words()
        );
        let verified = soak.folder.atoll(&["verify", run]);
        assert!(verified.status.success(), "seed {seed}: {run}: {}", text(&verified.stdout));
    }
    let words = soak.words();
    for never in ["quarantined", "panicked", "taken back"] {
        assert!(!words.contains(never), "seed {seed}: {words}");
    }
    (0..soak.workers.len()).for_each(|_| drop(soak.take_worker()));
    soak.counts
}

#[test]
fn soak() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seconds, first) = (number("ATOLL_SOAK_SECONDS"), number("ATOLL_SOAK_SEED").unwrap_or(0));
    // In a long soak, runs are long enough for all faults of a round.
    let experiment = match seconds {
        Some(_) => EXPERIMENT.replace("3000", "12000"),
        None => EXPERIMENT.to_owned(),
    };
    let faults = if seconds.is_some() { FAULTS } else { 3 };
    let asynchronous = experiment.replace("\"faults\"", "\"asynchronous\"");
    let asynchronous = asynchronous.replace("count = 5 }", "count = 5, mode = \"asynchronous\" }");
    let alone = |plan: &str| {
        let folder = Folder::new();
        let file = folder.file("alone.toml", plan);
        digest(&folder.atoll(&["run", &file, "--json"]))
    };
    let (single, sweep, games) = (alone(&experiment), alone(SWEEP), alone(TOURNAMENT));
    let expected = [
        (experiment.as_str(), Some(single.as_str())),
        (asynchronous.as_str(), None),
        (SWEEP, Some(sweep.as_str())),
        (TOURNAMENT, Some(games.as_str())),
    ];
    println!("soak: digests {single}, {sweep}, {games}");
    let start = Instant::now();
    for seed in first.. {
        let counts = round(seed, faults, &expected);
        let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        println!("soak: seed {seed}, {}", counts.join(", "));
        if start.elapsed().as_secs() >= seconds.unwrap_or(0) {
            break;
        }
    }
}
