//! The commands of the cluster's page and of the operators' page work as they stand there.

use crate::process::{Folder, text};
use std::net::TcpListener;
use std::process::{Command, Stdio};

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
    let script = format!("trap 'kill $(jobs -p)' EXIT\n{script}");
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
    // The ports of the page may be taken here.
    let script = script.replace("atoll coordinator", "atoll coordinator --http off");
    let [stdout, stderr] = run(&folder(), &script);
    assert!(stdout.contains("finished"), "{stdout}{stderr}");
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
