//! The five lines of the cluster's page work as they stand there.

use crate::process::{Folder, text};
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/cluster.md");

#[test]
fn the_five_lines_work() {
    let script = PAGE.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let lines: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len(), 5, "{script}");
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("examples")).unwrap();
    let quickstart =
        include_str!("../../examples/quickstart.toml").replace("generations = 2000", "generations = 200");
    assert!(quickstart.contains("generations = 200\n"), "{quickstart}");
    std::fs::write(folder.path().join("examples/quickstart.toml"), quickstart).unwrap();
    // What is left running ends with the shell, and the ports of the page may be taken here.
    let script = script.replace("atoll coordinator", "atoll coordinator --http off");
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
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("finished"), "{said}");
}
