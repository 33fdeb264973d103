//! Coordinators and workers as processes, and how tests wait for them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer than this, or something hangs.
pub(crate) const DEADLINE: Duration = Duration::from_mins(2);

/// An experiment that takes a few seconds: long enough for something to happen to it.
pub(crate) const EXPERIMENT: &str = r#"
name = "faults"
seed = 7
problem = { kind = "maze", width = 20, height = 20, turns = 50 }
algorithm = { kind = "ga", population = 1000, mutation = { rate = 0.3 } }
islands = { count = 4 }
migration = { interval = 100, count = 5 }
budget = { generations = 3000 }
checkpoint = { every = 50 }
"#;

/// The digest of that experiment, computed in one process.
pub(crate) static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let folder = Folder::new();
    let file = folder.file("faults.toml", EXPERIMENT);
    let output = folder.atoll(&["run", &file, "--json"]);
    digest(&output)
});

/// The program under test: `ATOLL` names another one, such as an optimised build for measurements.
pub(crate) fn atoll() -> Command {
    let program = std::env::var_os("ATOLL").unwrap_or_else(|| env!("CARGO_BIN_EXE_atoll").into());
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env_remove("ATOLL_STORE").env_remove("ATOLL_COORDINATOR");
    command
}

/// Variables of the environment.
pub(crate) type Variables = Vec<(String, String)>;

/// A folder for one test's files and its store.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Runs a command in the folder, to its end.
    pub(crate) fn atoll(&self, arguments: &[&str]) -> Output {
        atoll().args(arguments).current_dir(self.path()).output().unwrap()
    }

    pub(crate) fn coordinator(&self, arguments: &[&str]) -> Coordinator {
        self.coordinator_with(arguments, vec![])
    }

    /// A coordinator with such an environment.
    pub(crate) fn coordinator_with(&self, arguments: &[&str], variables: Variables) -> Coordinator {
        Coordinator::start(self.path().to_path_buf(), "127.0.0.1:0", arguments, variables)
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn digest(output: &Output) -> String {
    json(output)["digest"].as_str().unwrap().to_owned()
}

/// Waits for something that must come.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that ends with its test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end; answers its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut code = None;
        wait_until("the end of a process", || {
            let status = self.0.try_wait().unwrap();
            code = status.and_then(|status| status.code());
            status.is_some()
        });
        code
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) struct Coordinator {
    pub(crate) process: Process,
    url: String,
    pub(crate) address: String,
    pub(crate) http: String,
    folder: PathBuf,
    arguments: Vec<String>,
    variables: Variables,
    said: Arc<Mutex<String>>,
}

impl Coordinator {
    fn start(folder: PathBuf, listen: &str, arguments: &[&str], variables: Variables) -> Self {
        let mut child = atoll()
            .envs(variables.iter().cloned())
            .args(["coordinator", "--listen", listen, "--http", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut address = |prefix: &str| {
            let line = lines.next().expect("a coordinator says where it is").unwrap();
            if let Ok(logged) = serde_json::from_str::<serde_json::Value>(&line) {
                return logged["fields"]["url"].as_str().unwrap().to_owned();
            }
            line.strip_prefix(prefix).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let url = address("coordinator at ");
        let http = address("dashboard, health and metrics at ");
        let said = Arc::new(Mutex::new(String::new()));
        let log = said.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().extend([&line, "\n"]);
            }
        });
        let bare = |url: &str| url.split_once("://").unwrap().1.to_owned();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (address, http) = (bare(&url), bare(&http));
        Self { process: Process(child), url, address, http, folder, arguments, variables, said }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// One that listens elsewhere than on loopback.
    pub(crate) fn start_at(folder: &Path, listen: &str, arguments: &[&str]) -> Self {
        Self::start(folder.to_path_buf(), listen, arguments, vec![])
    }

    /// What it has said on stderr since it said where it is.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Kills it without a word, and starts another one in its place.
    pub(crate) fn restart(mut self) -> Self {
        self.process.0.kill().unwrap();
        self.again()
    }

    /// Starts another one in the place of one that has ended, or is about to.
    pub(crate) fn again(self) -> Self {
        let Self { mut process, address, folder, arguments, variables, .. } = self;
        process.ended();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Self::start(folder, &address, &arguments, variables)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let url = self.url();
        atoll().args(arguments).args(["--coordinator", &url]).current_dir(&self.folder).output().unwrap()
    }

    /// Submits the experiment; answers the run.
    pub(crate) fn submit(&self, text: &str) -> String {
        let file = self.folder.join("submitted.toml");
        std::fs::write(&file, text).unwrap();
        let output = self.command(&["submit", &file.display().to_string(), "--json"]);
        json(&output)["run"].as_str().unwrap().to_owned()
    }

    pub(crate) fn worker(&self, arguments: &[&str]) -> Process {
        worker(&self.url(), arguments)
    }

    /// Waits for the end of a run, as long as the coordinator is there; answers its digest.
    pub(crate) fn digest(&self, run: &str) -> String {
        let mut watch = atoll()
            .args(["watch", run, "--json", "--coordinator", &self.url])
            .current_dir(&self.folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while watch.try_wait().unwrap().is_none() {
            if self.has_ended() {
                watch.kill().unwrap();
                panic!("the coordinator has ended:\n{}", self.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        digest(&watch.wait_with_output().unwrap())
    }

    /// Whether its process has ended: it was not waited for, so it is a zombie then.
    pub(crate) fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.0.id())).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
    }

    /// A page over HTTP, whatever its status; nothing without a response.
    pub(crate) fn page(&self, path: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.http) else { return String::new() };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut page = String::new();
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut page));
        page
    }

    /// One number of the metrics page; 0 if it is not there.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let line = page.lines().find(|line| !line.starts_with('#') && line.starts_with(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    pub(crate) fn wait_for(&self, metric: &str, least: f64) {
        wait_until(&format!("{metric} >= {least}"), || self.metric(metric) >= least);
    }
}

pub(crate) fn worker(url: &str, arguments: &[&str]) -> Process {
    let child = atoll()
        .args(["worker", "--coordinator", url, "--threads", "1"])
        .args(arguments)
        .env("ATOLL_LOG", "error")
        .spawn()
        .unwrap();
    Process(child)
}
