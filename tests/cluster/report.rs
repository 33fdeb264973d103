//! What a report shows of a cluster: what each worker did, and what a crash cost.

use crate::process::{EXPERIMENT, Folder, json};

const HOSTILE: &str = "<script>alert(1)</script>";

#[test]
fn a_report_shows_who_worked_and_what_a_crash_cost() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--lease", "1s"]);
    let run = coordinator.submit(EXPERIMENT);
    let first = coordinator.worker(&["--name", HOSTILE]);
    coordinator.wait_for("atoll_run_generation", 300.0);
    first.kill();
    let _second = coordinator.worker(&["--name", "second"]);
    let digest = coordinator.digest(&run);
    let object = json(&folder.atoll(&["report", &run, "--json"]));
    assert_eq!(object["digest"], digest.as_str());
    assert!(object["lost_seconds"].as_f64().unwrap() >= 1.0, "a lease of a second ran out: {object}");
    assert!(folder.atoll(&["report", &run, "--to", "page"]).status.success());
    let read = |name: &str| std::fs::read_to_string(folder.path().join("page").join(name)).unwrap();
    let (page, workers) = (read("report.html"), read("workers.csv"));
    assert!(page.contains("was not renewed in time"));
    assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains(HOSTILE), "names are text");
    let names: Vec<&str> = workers.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(names.len(), 2, "{workers}");
    assert!(names.contains(&HOSTILE) && names.contains(&"second"));
}
