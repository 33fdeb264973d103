//! The commands of the README's cluster, of the cluster's page and of the operators' page work as they stand there.

use crate::process::{Folder, atoll, text};
use std::net::TcpListener;
use std::process::{Command, Stdio};

const README: &str = include_str!("../../README.md");
const PAGE: &str = include_str!("../../docs/cluster.md");
const OPERATIONS: &str = include_str!("../../docs/operations.md");

/// A folder with a shorter quick start.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    let quickstart =
        include_str!("../../examples/quickstart.toml").replace("generations = 2000", "generations = 200");
    assert!(quickstart.contains("generations = 200\n"), "{quickstart}");
    std::fs::write(folder.path().join("examples/quickstart.toml"), quickstart).unwrap();
    folder
}

/// Runs a script as a shell does, with this binary, and expects that it succeeds; all that it printed, stdout first.
fn run(folder: &Folder, script: &str) -> [String; 2] {
    // What is left running ends with the shell.
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    let binaries = std::path::Path::new(env!("CARGO_BIN_EXE_atoll")).parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-e", "-c", &script])
        .env("PATH", path)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = [text(&output.stdout), text(&output.stderr)];
    assert!(output.status.success(), "{}: {printed:?}", output.status);
    printed
}

#[test]
fn the_five_lines_work() {
    let script = PAGE.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 5, "{script}");
    let [stdout, stderr] = run(&folder(), &elsewhere(script));
    assert!(stdout.contains("finished"), "{stdout}{stderr}");
}

#[test]
fn one_command_starts_coordinator_and_workers() {
    let script = PAGE.split("```sh\n").nth(2).unwrap().split("```").next().unwrap();
    assert!(script.starts_with("atoll run ") && script.contains("--workers 2"), "{script}");
    let [stdout, stderr] = run(&folder(), script);
    assert!(stdout.contains("finished"), "{stdout}{stderr}");
}

/// The same script at a free port: that of the page may be taken here.
fn elsewhere(script: &str) -> String {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = format!("atoll coordinator --http off --listen {address}");
    assert!(script.contains("atoll coordinator"), "{script}");
    format!("export ATOLL_COORDINATOR=http://{address}\n{}", script.replace("atoll coordinator", &start))
}

#[test]
fn the_four_terminals_of_the_readme_work() {
    let script =
        README.split("```sh (each in its own terminal)\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = script.lines().collect();
    let [coordinator, workers @ .., submit] = lines.as_slice() else { panic!("{script}") };
    assert!(workers.len() == 2 && submit.starts_with("atoll submit"), "{script}");
    // A person types the last line when the coordinator is there.
    let is_there = "until atoll runs --json >/dev/null 2>&1; do sleep 0.1; done";
    let script = format!("{coordinator} &\n{} &\n{} &\n{is_there}\n{submit}\n", workers[0], workers[1]);
    let [stdout, stderr] = run(&folder(), &elsewhere(&script));
    assert!(stdout.contains("finished"), "{stdout}{stderr}");
}

/// The examples in the help of commands that speak with a coordinator.
#[test]
fn operators_examples_in_the_help_work() {
    let folder = folder();
    let coordinator = folder.coordinator(&[]);
    let command = |words: &[&str]| {
        let mut command = atoll();
        command.args(words).env("ATOLL_COORDINATOR", coordinator.url()).current_dir(folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let example = |example: &str| {
        let words: Vec<&str> = example.split_whitespace().skip(1).collect();
        let help = command(&[words[0], "--help"]);
        assert!(help.contains(&format!("\n  {example}  ")), "`{example}` is no example: {help}");
        command(&words)
    };
    command(&["submit", "examples/quickstart.toml"]);
    example("atoll pause quickstart");
    command(&["pause", "quickstart", "--off"]);
    example("atoll cancel quickstart");
    let _worker = coordinator.worker(&["--name", "worker-1"]);
    coordinator.wait_for("atoll_workers", 1.0);
    assert!(example("atoll workers --json").contains("\"worker-1\""));
    let submitted = example("atoll submit examples/quickstart.toml --wait");
    assert!(submitted.contains("finished"), "{submitted}");
    assert!(submitted.contains("next:\n") && submitted.contains("atoll export quickstart-"), "{submitted}");
    example("atoll drain worker-1");
}

#[test]
fn an_operator_comes_from_certificates_to_a_report() {
    let script = OPERATIONS.split("```sh (side by side)\n").nth(1).unwrap().split("```").next().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script
        .replace("0.0.0.0:7440", &format!("127.0.0.1:{port}"))
        .replace("localhost:7440", &format!("localhost:{port}"));
    let folder = folder();
    let [stdout, stderr] = run(&folder, &script);
    assert!(stdout.contains("finished"), "{stdout}{stderr}");
    for file in ["results/champions.csv", "report/report.html"] {
        assert!(folder.path().join(file).is_file(), "{file}: {stdout}{stderr}");
    }
}
