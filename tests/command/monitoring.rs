//! Metrics are well formed, and alerts fire on metrics that exist.

use crate::deploy::{REFEREES, expect_success, output, root};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn promtool(arguments: &[&str]) -> Output {
    let folder = root().join("deploy/prometheus");
    output(Command::new(REFEREES.join("promtool/promtool")).args(arguments).current_dir(folder))
}

#[test]
fn every_alert_is_well_formed_and_fires() {
    expect_success(&promtool(&["check", "rules", "alerts.yaml"]));
    expect_success(&promtool(&["test", "rules", "alerts_test.yaml"]));
    let read = |path: &str| std::fs::read_to_string(root().join("deploy").join(path)).unwrap();
    let (alerts, tests) = (read("prometheus/alerts.yaml"), read("prometheus/alerts_test.yaml"));
    assert_eq!(alerts, read("helm/atoll/alerts.yaml"), "the chart has a copy");
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels");
        assert!(tests.contains(&fires), "{alert} does not fire in a test");
    }
}

#[test]
fn metrics_are_well_formed_and_those_that_are_asked_for_exist() {
    let folder = tempfile::tempdir().unwrap();
    let pages = metrics(folder.path());
    // The parser of Prometheus' own client is strict: it refuses every page that breaks the format.
    let script = "import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
                  for family in read(sys.stdin.read()):\n\
                  \x20   assert family.documentation, family.name\n\
                  \x20   print(family.name + {'counter': '_total', 'info': '_info'}.get(family.type, ''))";
    let mut parsed = String::new();
    for page in &pages {
        let mut parser = Command::new(REFEREES.join("operators/bin/python"));
        let parser =
            parser.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = parser.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), page.as_bytes()).unwrap();
        parsed += &expect_success(&child.wait_with_output().unwrap());
    }
    let known: BTreeSet<&str> = parsed.lines().collect();
    assert!(known.contains("atoll_worker_pieces") && known.contains("atoll_pieces_ready"), "{pages:?}");
    for file in ["prometheus/alerts.yaml", "grafana/atoll.json", "../docs/operations.md"] {
        let asked = std::fs::read_to_string(root().join("deploy").join(file)).unwrap();
        for word in asked.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            assert!(!word.starts_with("atoll_") || known.contains(word), "{file} asks for {word}");
        }
        if file.ends_with(".md") {
            let untold: Vec<_> = known.iter().filter(|name| !asked.contains(**name)).collect();
            assert!(untold.is_empty(), "not told in {file}: {untold:?}");
        }
    }
}

/// A process that says on stderr where its metrics are.
struct Measured {
    process: std::process::Child,
    lines: Vec<String>,
}

impl Measured {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        use std::io::{BufRead, BufReader};
        let mut process = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(arguments)
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut rest = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut lines: Vec<String> = vec![];
        while !lines.last().is_some_and(|line| line.contains("metrics at http://")) {
            lines.push(rest.next().unwrap());
        }
        // It continues to write, and must not wait for a reader.
        std::thread::spawn(move || rest.for_each(drop));
        Self { process, lines }
    }

    /// The address after these words.
    fn address(&self, words: &str) -> &str {
        self.lines.iter().find_map(|line| line.strip_prefix(words)).unwrap()
    }

    /// The page of its metrics, once it has this one.
    fn page(&self, words: &str, metric: &str) -> String {
        use std::io::{Read, Write};
        let mut page = String::new();
        while !page.contains(metric) {
            let mut stream = std::net::TcpStream::connect(self.address(words)).unwrap();
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .unwrap();
            page.clear();
            stream.read_to_string(&mut page).unwrap();
        }
        page.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The metrics of a coordinator that has a run and a collector of traces, and of its worker.
fn metrics(folder: &Path) -> [String; 2] {
    let experiment = root().join("deploy/experiment.toml");
    let any = "127.0.0.1:0";
    let run = experiment.to_str().unwrap();
    // It need not answer.
    let collector = std::net::TcpListener::bind(any).unwrap();
    let otlp = format!("otlp = \"http://{}\"\n", collector.local_addr().unwrap());
    std::fs::write(folder.join("settings.toml"), otlp).unwrap();
    let arguments = ["--config", "settings.toml", "--listen", any, "--http", any, "--run", run];
    let coordinator = Measured::start(folder, &[&["coordinator"], &arguments[..]].concat());
    let url = coordinator.address("coordinator at ");
    let worker = Measured::start(folder, &["worker", "--http", any, "--threads", "1", "--coordinator", url]);
    let page = coordinator.page("dashboard, health and metrics at http://", "atoll_run_leases");
    [page, worker.page("health and metrics at http://", "atoll_worker_threads 1")]
}
