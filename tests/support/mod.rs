//! The real command in a folder of its own: started, watched, stopped and killed.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything takes, even on a busy machine: a longer wait is a defect.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A folder with experiments and a store, in which commands are run.
pub(crate) struct Place {
    folder: TempDir,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("atoll-store")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    /// The command, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_atoll"), arguments)
    }

    /// Any program, in this folder.
    pub(crate) fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).env_remove("ATOLL_STORE").stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        finish(&mut self.command(arguments))
    }

    /// Runs a command that succeeds, and reads the object it prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let finished = self.run(arguments);
        finished.expect(0);
        finished.json()
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }

    /// The files of a run, in order; those that a killed process was just writing are not part of it.
    pub(crate) fn objects(&self, run: &str) -> Vec<PathBuf> {
        let mut files = vec![];
        collect(&self.store().join("runs").join(run), &mut files);
        files.retain(|file| !file.file_name().unwrap().to_string_lossy().contains('#'));
        files.sort();
        files
    }

    /// The name of the only run.
    pub(crate) fn only_run(&self) -> String {
        let runs: Vec<String> = std::fs::read_dir(self.store().join("runs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.into_iter().next().unwrap()
    }

    /// The generation up to which each island of the only run is kept: by its records, or a checkpoint after them.
    pub(crate) fn kept(&self) -> BTreeMap<u64, u64> {
        match std::fs::read_dir(self.store().join("runs")).map(Iterator::count) {
            Ok(1) => {}
            _ => return BTreeMap::new(),
        }
        let (store, run) = (self.store(), run::RunId::new(self.only_run()).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(kept(&store, &run)).unwrap_or_default()
    }
}

async fn kept(folder: &Path, run: &run::RunId) -> Option<BTreeMap<u64, u64>> {
    let location = store::Location::Folder(folder.to_path_buf());
    let store = store::Store::open_at(&location).await.ok()?;
    let head = run::RunHead::read(&store, run).await.ok()?;
    let epochs = run::epochs::StoredEpochs::read(&store, run, &head).await.ok()?;
    let records = epochs.records.iter().map(|records| records.last());
    let kept = records.zip(&epochs.checkpoints).map(|(last, checkpoints)| {
        let recorded = last.map_or(0, |last| last.mark.standing.generation);
        checkpoints.last_key_value().map_or(recorded, |(generation, _)| recorded.max(*generation))
    });
    let kept: BTreeMap<u64, u64> = (0..).zip(kept).collect();
    kept.values().any(|&generation| generation > 0).then_some(kept)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// Runs a command to its end. Nothing that a person does may make it panic.
pub(crate) fn finish(command: &mut Command) -> Finished {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let finished =
        Finished { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) };
    finished.expect_no_panic();
    finished
}

impl Finished {
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    /// It failed with this code, printed nothing on stdout, and said each of these things on stderr.
    pub(crate) fn expect_error(&self, code: i32, said: &[&str]) {
        self.expect(code);
        assert_eq!(self.stdout, "", "data only");
        for said in said {
            assert!(self.stderr.contains(said), "expected {said:?} in:\n{}", self.stderr);
        }
    }

    fn expect_no_panic(&self) {
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
    }

    /// The one object on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// A command under way.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    stdout: Option<JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, lines, said: vec![], stdout: Some(stdout) }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it says something on stderr.
    pub(crate) fn wait_for(&mut self, said: &str) {
        while !self.said.last().is_some_and(|line| line.contains(said)) {
            let line = self.lines.recv_timeout(PATIENCE);
            self.said.push(line.unwrap_or_else(|_| panic!("expected {said:?}, found {:?}", self.said)));
        }
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success(), "{kill}");
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) -> Finished {
        self.child.kill().unwrap();
        self.finish()
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Finished {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("it does not end: {:?}", self.said);
            }
            pause();
        };
        self.said.extend(self.lines.iter());
        let stdout = self.stdout.take().unwrap().join().unwrap();
        let finished = Finished { status, stdout, stderr: self.said.join("\n") };
        finished.expect_no_panic();
        finished
    }
}

impl Finished {
    /// Whether it was killed.
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        pause();
    }
}

/// Lets others run between two looks at a condition.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Numbers that are the same in every run of a test (xorshift).
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Eight islands in a ring walk through a maze.
pub(crate) const MAZE: &str = r#"
name = "maze"
seed = 7
problem = { kind = "maze", width = 12, height = 12, turns = 25 }
algorithm = { kind = "ga", population = 101, mutation = { rate = { from = 0.4, to = 0.1 } }, elite = 0.05 }
islands = { count = 8, topology = "ring" }
migration = { interval = 10, count = 3, emigrants = "tournament", replacement = "most-similar" }
budget = { generations = 400 }
"#;

/// Eight islands in a ring go down Rastrigin's function, one of them by other means.
pub(crate) const RASTRIGIN: &str = r#"
name = "rastrigin"
seed = 8
problem = { kind = "rastrigin", dimensions = 10 }
algorithm = { kind = "es", parents = 15, offspring = 60, sigma = 0.05, tau_common = 0.1, recombination = "discrete" }
migration = { interval = 25, count = 2, transfer = "move" }
budget = { generations = 400 }

[islands]
count = 8
topology = "ring"

[[islands.override]]
islands = [2]
algorithm = { kind = "map-elites", bins = [9, 9], founders = 60, batch = 50, mutation = { per = "gene", step = 0.3 } }

[[islands.override]]
islands = [5]
algorithm = { kind = "crowding", population = 40, mutation = { per = "gene", step = 0.3 } }
migration = { replacement = "random", emigrants = "most-diverse" }
"#;

/// An experiment whose checkpoints are made every so often.
pub(crate) fn with_checkpoints(experiment: &str, every: &str) -> String {
    format!("checkpoint.every = {every}\n{experiment}")
}
