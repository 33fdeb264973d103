//! What operators do, over gRPC.

use crate::process::{EXPERIMENT, Folder, atoll, digest, json, text, wait_until};
use rustix::process::Signal;
use std::process::Stdio;

const SWEEP: &str = r#"
name = "sweep"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 30 }
islands = { count = 2 }
budget = { generations = 30 }
sweep = { repeats = 3, axis = [{ keys = ["problem.length"], values = [20, 30, 40, 50] }] }
"#;

const STUDY: &str = r#"
name = "study"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 30 }
islands = { count = 2 }
budget = { generations = 20 }
study = { first = {}, second = { guests = "first", seed = 5 }, third = { guests = "second" } }
"#;

/// One experiment that never ends by itself within a test.
fn endless() -> String {
    EXPERIMENT.replace("3000", "1000000").replace("\"faults\"", "\"endless\"")
}

#[test]
fn sweeps_and_studies_are_worked_off_by_workers() {
    for (name, plan) in [("sweep", SWEEP), ("study", STUDY)] {
        let (here, there) = (Folder::new(), Folder::new());
        let file = here.file("plan.toml", plan);
        let expected = digest(&here.atoll(&["run", &file, "--json"]));
        let output = there.atoll(&["run", &file, "--workers", "2", "--json"]);
        assert!(!text(&output.stderr).contains("already"), "it was done just now: {}", text(&output.stderr));
        let found = digest(&output);
        assert_eq!(found, expected, "{name}");
        let coordinator = here.coordinator(&["--store", "other"]);
        let _worker = coordinator.worker(&[]);
        let run = coordinator.submit(plan);
        assert_eq!(coordinator.digest(&run), expected, "{name}, submitted");
        let listed = json(&here.atoll(&["runs", "--store", "other", "--json"]));
        assert!(listed.as_array().unwrap().iter().all(|run| run["state"] != "damaged"), "{listed}");
    }
}

#[test]
fn a_fresh_run_of_workers_is_the_one_that_is_told() {
    let folder = Folder::new();
    for plan in [EXPERIMENT.replace("3000", "100"), SWEEP.to_owned()] {
        let file = folder.file("plan.toml", &plan);
        let run = |arguments: &[&str]| json(&folder.atoll(&[&["run", &file, "--json"], arguments].concat()));
        let first = run(&[]);
        let fresh = run(&["--fresh", "--workers", "2"]);
        assert_eq!(fresh["run"], format!("{}.2", first["run"].as_str().unwrap()));
        assert_eq!(fresh["digest"], first["digest"]);
    }
}

/// Their coordinator is a part of that command: nobody else takes what they compute.
#[test]
fn workers_end_with_the_command_that_started_them() {
    let folder = Folder::new();
    let file = folder.file("endless.toml", &endless());
    let mut command = atoll();
    command.current_dir(folder.path()).args(["run", &file, "--workers", "1"]);
    let mut run = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_until("its worker to compute", || {
        let listed = folder.atoll(&["runs", "--json"]);
        listed.status.success() && json(&listed)[0]["generations"].as_u64() > Some(0)
    });
    run.kill().unwrap();
    // What is said ends with the last process that might say something.
    let output = run.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("the command that started this worker has ended"), "{said}");
}

#[test]
fn a_run_without_a_worker_waits_and_says_so() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(EXPERIMENT);
    let runs = json(&coordinator.command(&["runs", "--json"]));
    assert_eq!(runs[0]["run"], run);
    assert_eq!(runs[0]["state"], "waiting");
    assert_eq!(runs[0]["reason"], "no worker has joined");
    let stored = json(&folder.atoll(&["runs", "--json"]));
    assert!(stored[0]["disk_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{stored}");
    assert_eq!(runs[0]["disk_bytes"], stored[0]["disk_bytes"], "of a coordinator as of its store");
    let table = text(&coordinator.command(&["runs"]).stdout);
    assert!(table.lines().next().unwrap().contains("  DISK  "), "{table}");
}

/// A coordinator stores labels at once, shows them, and knows them after a restart.
#[test]
fn runs_of_a_coordinator_have_labels() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let file = folder.file("endless.toml", &endless());
    let submitted = coordinator.command(&["submit", &file, "--label", "night", "--label", "paper", "--json"]);
    let run = json(&submitted)["run"].as_str().unwrap().to_owned();
    let listed = |coordinator: &crate::process::Coordinator, label: &str| {
        let rows = json(&coordinator.command(&["runs", "--label", label, "--json"]));
        rows.as_array().unwrap().first().map(|row| row["labels"].clone())
    };
    assert_eq!(listed(&coordinator, "night"), Some(serde_json::json!(["night", "paper"])));
    let changed = json(&coordinator.command(&["label", "latest", "draft", "--remove", "paper", "--json"]));
    assert_eq!(changed, serde_json::json!({ "run": run, "labels": ["draft", "night"] }));
    assert_eq!(listed(&coordinator, "paper"), None);
    let table = text(&coordinator.command(&["runs"]).stdout);
    assert!(table.contains("  LABELS ") && table.contains("  draft night  "), "{table}");
    // The coordinator would not know what another process writes.
    let beside = folder.atoll(&["label", "latest", "beside"]);
    assert_eq!(beside.status.code(), Some(1));
    assert!(text(&beside.stderr).contains("use `--coordinator URL`"), "{}", text(&beside.stderr));
    let wrong = coordinator.command(&["submit", &file, "--label", "Two Words"]);
    assert_eq!(wrong.status.code(), Some(2));
    let many: Vec<String> = (0..15).map(|number| format!("label-{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let full = coordinator.command(&[&["label", "latest"], &many[..]].concat());
    assert_eq!(full.status.code(), Some(2));
    assert!(text(&full.stderr).contains("expected at most 16 labels, found 17"), "{}", text(&full.stderr));
    json(&coordinator.command(&["label", &run, "late", "--json"]));
    drop(coordinator);
    let again = folder.coordinator(&[]);
    assert_eq!(listed(&again, "late"), Some(serde_json::json!(["draft", "late", "night"])));
}

#[test]
fn runs_are_paused_continued_and_cancelled() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(&endless());
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_run_generation", 100.0);
    assert!(coordinator.command(&["pause", &run]).status.success());
    let state = |coordinator: &crate::process::Coordinator| {
        json(&coordinator.command(&["runs", "--json"]))[0]["state"].as_str().unwrap().to_owned()
    };
    assert_eq!(state(&coordinator), "paused");
    coordinator = coordinator.restart();
    assert_eq!(state(&coordinator), "paused", "it is written down");
    assert!(coordinator.command(&["pause", &run, "--off"]).status.success());
    wait_until("the run to go on", || state(&coordinator) == "running");
    assert!(coordinator.command(&["cancel", &run]).status.success());
    assert_eq!(state(&coordinator), "cancelled");
    let stored = json(&folder.atoll(&["runs", "--json"]));
    assert_eq!(stored[0]["state"], "cancelled", "what reads the store says the same");
    let refused = coordinator.command(&["pause", &run]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("has ended already"), "{}", text(&refused.stderr));
    let watched = coordinator.command(&["watch", &run]);
    assert_eq!(watched.status.code(), Some(1), "it is not finished");
}

#[test]
fn a_paused_run_is_handed_back_with_all_that_was_done() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&["--lease", "500ms"]);
    // Nothing is kept by itself: all islands are in the middle of their only epoch.
    let plan = EXPERIMENT.replace("interval = 100", "interval = 6000").replace("3000", "6000");
    let run = coordinator.submit(&plan.replace("every = 50", "every = \"1h\""));
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_run_leases", 1.0);
    let status = |coordinator: &crate::process::Coordinator| {
        json(&coordinator.command(&["runs", "--json"])).as_array().unwrap()[0].clone()
    };
    wait_until("some generations", || coordinator.metric("atoll_run_evaluations") > 1e5);
    assert_eq!(coordinator.metric("atoll_checkpoints_total"), 0.0);
    assert!(coordinator.command(&["pause", &run]).status.success());
    wait_until("everything to be handed back", || status(&coordinator)["leases"] == 0);
    assert!(coordinator.metric("atoll_checkpoints_total") >= 1.0, "what was done is kept");
    coordinator = coordinator.restart();
    assert!(coordinator.command(&["pause", &run, "--off"]).status.success());
    let file = folder.file("here.toml", &plan);
    let expected = digest(&folder.atoll(&["run", &file, "--json", "--store", "here"]));
    assert_eq!(coordinator.digest(&run), expected);
}

#[test]
fn a_finished_run_still_tells_its_best_after_a_restart() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&EXPERIMENT.replace("3000", "300"));
    coordinator.digest(&run);
    let before = json(&coordinator.command(&["watch", &run, "--json"]));
    assert!(before["best_fitness"].as_f64().unwrap() > 0.0, "{before}");
    let coordinator = coordinator.restart();
    let after = json(&coordinator.command(&["watch", &run, "--json"]));
    for key in ["digest", "best_fitness", "generations", "evaluations", "state", "reason"] {
        assert_eq!(after[key], before[key], "{key}");
    }
}

#[test]
fn a_higher_priority_comes_first() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    // Generations of 20 ms.
    let slow = |name: &str, generations: u32| {
        format!(
            r#"
            name = "{name}"
            problem = {{ kind = "onemax", length = 100, work = 2000000 }}
            algorithm = {{ kind = "ga", population = 10 }}
            islands = {{ count = 4 }}
            migration = {{ interval = 1 }}
            budget = {{ generations = {generations} }}
            "#
        )
    };
    let low = coordinator.submit(&slow("low", 100_000));
    let file = folder.file("urgent.toml", &slow("urgent", 60));
    let urgent = coordinator.command(&["submit", &file, "--priority", "5", "--json"]);
    let urgent = json(&urgent)["run"].as_str().unwrap().to_owned();
    let _worker = coordinator.worker(&[]);
    // While the urgent one is under way, the low one has what was left of the worker at most.
    let mut before = 0;
    wait_until("the urgent one", || {
        let runs = json(&coordinator.command(&["runs", "--json"]));
        let row = |name: &str| runs.as_array().unwrap().iter().find(|run| run["run"] == name).unwrap();
        let is_done = row(&urgent)["state"] == "finished";
        if !is_done {
            before = row(&low)["generations"].as_u64().unwrap();
        }
        is_done
    });
    assert!(before <= 20, "it waited for the urgent one: {before} generations");
}

#[test]
fn a_finished_run_starts_no_workers() {
    let folder = Folder::new();
    let file = folder.file("short.toml", &EXPERIMENT.replace("3000", "30"));
    let first = digest(&folder.atoll(&["run", &file, "--json"]));
    let start = std::time::Instant::now();
    let again = folder.atoll(&["run", &file, "--workers", "2", "--json"]);
    assert_eq!(digest(&again), first);
    assert!(!text(&again.stderr).contains("worker"), "{}", text(&again.stderr));
    assert!(start.elapsed().as_secs() < 10, "it waited for workers that have nothing to do");
}

#[test]
fn an_export_is_the_same_from_a_coordinator_and_from_its_store() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&EXPERIMENT.replace("3000", "200"));
    coordinator.digest(&run);
    let remote = json(&coordinator.command(&["export", &run, "--json"]));
    let local = json(&folder.atoll(&["export", &run, "--json"]));
    assert_eq!(remote, local);
    assert_eq!(remote["finished"], true);
}

#[test]
fn health_readiness_and_the_end_by_a_signal() {
    let folder = Folder::new();
    let mut coordinator = folder.coordinator(&[]);
    assert!(coordinator.page("/healthz").ends_with("ok\n"));
    wait_until("readiness", || coordinator.page("/readyz").ends_with("ready\n"));
    let run = coordinator.submit(&endless());
    let mut worker = coordinator.worker(&["--give-up-after", "1s"]);
    coordinator.wait_for("atoll_run_generation", 100.0);
    let start = std::time::Instant::now();
    coordinator.process.signal(Signal::TERM);
    assert_eq!(coordinator.process.ended(), Some(143));
    assert!(start.elapsed().as_secs() < 10, "a shutdown has a deadline");
    assert_eq!(worker.ended(), Some(6), "it gave up, because nobody answered");
    let resumed = json(&folder.atoll(&["runs", "--json"]));
    assert_eq!(resumed[0]["run"], run);
    assert!(resumed[0]["generations"].as_u64().unwrap() > 0, "what was done is kept");
}
