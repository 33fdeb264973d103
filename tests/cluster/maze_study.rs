//! The maze study, reduced: its result does not depend on who computes it, or on who dies over it.

use crate::process::{Folder, digest, json, text, wait_until};
use std::path::Path;

/// The study on the smallest board, with games of three lengths and two repeats.
fn reduced() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/maze-study.toml");
    let mut study = std::fs::read_to_string(file).unwrap();
    for (whole, part) in [
        ("[[10, 10], [20, 20], [30, 30]]", "[[10, 10]]"),
        ("[5, 10, 15, 20, 25, 30, 35, 40, 45, 50]", "[5, 10, 25]"),
        ("repeats = 10", "repeats = 2"),
    ] {
        assert!(study.contains(whole), "{whole}");
        study = study.replace(whole, part);
    }
    study
}

/// How many cells of the only run are stored.
fn cells(folder: &Folder) -> usize {
    let runs = std::fs::read_dir(folder.path().join("atoll-store/runs")).into_iter().flatten().flatten();
    let cells =
        runs.flat_map(|run| std::fs::read_dir(run.path().join("jobs")).into_iter().flatten().flatten());
    cells.filter(|cell| !cell.file_name().to_string_lossy().contains('#')).count()
}

fn report(folder: &Folder, run: &str, file: &str) -> String {
    std::fs::read_to_string(folder.path().join(format!("{run}-report")).join(file)).unwrap()
}

#[test]
fn one_process_two_workers_and_a_killed_one_come_to_the_same_tables() {
    let alone = Folder::new();
    let file = alone.file("study.toml", &reduced());
    let output = alone.atoll(&["run", &file, "--json", "--threads", "1"]);
    let (expected, run) = (digest(&output), json(&output)["run"].as_str().unwrap().to_owned());
    let tables = report(&alone, &run, "tables.csv");

    let together = Folder::new();
    let file = together.file("study.toml", &reduced());
    let output = together.atoll(&["run", &file, "--workers", "2", "--json"]);
    assert_eq!(digest(&output), expected);
    assert_eq!(report(&together, &run, "tables.csv"), tables);

    let killed = Folder::new();
    let coordinator = killed.coordinator(&["--lease", "1s"]);
    assert_eq!(coordinator.submit(&reduced()), run);
    let (first, _second) = (coordinator.worker(&[]), coordinator.worker(&[]));
    wait_until("the first cells", || cells(&killed) > 0);
    first.kill();
    assert!(cells(&killed) < 78, "it is in the middle");
    assert_eq!(coordinator.digest(&run), expected);
    coordinator.process.kill();
    // What the cluster stored is found complete, and comes to the same tables.
    let file = killed.file("study.toml", &reduced());
    let output = killed.atoll(&["run", &file]);
    assert!(text(&output.stderr).contains("78 cells, 78 done"), "{}", text(&output.stderr));
    assert_eq!(report(&killed, &run, "tables.csv"), tables);
}

#[test]
fn the_report_puts_means_beside_published_figures_and_optima() {
    let folder = Folder::new();
    let file = folder.file("study.toml", &reduced());
    let output = folder.atoll(&["run", &file]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for title in ["Table 2: The simple", "Table 5: The simple", "Table 8: The enhanced", "(10 x 10)"] {
        assert!(shown.contains(title), "{title} in {shown}");
    }
    // Deterministic searches: their published figures, and the proved optimum of 176 at 25 turns.
    let row = shown
        .lines()
        .find(|line| line.starts_with("| 25 |") && line.contains("128.0 (128.0) 27.3 %"))
        .unwrap();
    assert!(row.contains("156.0 (156.0) 11.4 %") && row.contains("161.0 (161.0) 8.5 %"), "{row}");
    assert!(row.ends_with("| 176 |"), "{row}");
    let said = text(&output.stderr);
    let run = said.lines().find_map(|line| line.strip_prefix("sweep ")?.split(':').next()).unwrap();
    let csv = report(&folder, run, "tables.csv");
    let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|&count| count == 12), "{csv}");
    let hybrid = csv.lines().find(|line| line.contains(",25,hybrid,")).unwrap();
    assert_eq!(hybrid, "8,10,10,25,hybrid,176,176,176,,176,176,0.000");
    let plot = report(&folder, run, "gap.svg");
    assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n"));
    assert_eq!(plot.matches("<polyline ").count(), 13, "a line for each variant");
}
