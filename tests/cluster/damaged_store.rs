//! A coordinator on a store with damaged runs: it starts, sets them aside with a message and a command, and continues the
//! others.

use crate::process::{Folder, json, text};
use std::path::{Path, PathBuf};

/// A run that takes a second, in epochs of a millisecond.
const SHORT: &str = r#"
name = "short"
seed = 7
problem = { kind = "maze", width = 20, height = 20, turns = 50 }
algorithm = { kind = "ga", population = 200, mutation = { rate = 0.3 } }
islands = { count = 4 }
migration = { interval = 10, count = 2 }
budget = { generations = 2000 }
checkpoint = { every = 10 }
"#;

/// A run that crashed just before its end was recorded.
fn unfinished(folder: &Folder, name: &str) -> String {
    let short = SHORT.replace("\"short\"", &format!("\"{name}\"")).replace("2000", "40");
    let file = folder.file(&format!("{name}.toml"), &short);
    let run = json(&folder.atoll(&["run", &file, "--json"]))["run"].as_str().unwrap().to_owned();
    let run_folder = folder.path().join("atoll-store/runs").join(&run);
    std::fs::remove_file(last(&run_folder.join("events"))).unwrap();
    std::fs::remove_dir_all(run_folder.join("summaries")).unwrap();
    run
}

fn last(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.pop().unwrap()
}

#[test]
fn damaged_runs_are_set_aside_and_others_continue() {
    let folder = Folder::new();
    let [swapped, altered, piped, whole] =
        ["swapped", "altered", "piped", "whole"].map(|name| unfinished(&folder, name));
    let runs = folder.path().join("atoll-store/runs");
    let states = runs.join(&swapped).join("states");
    let [one, other] = ["0", "1"].map(|island| last(&states.join(format!("{island:0>20}"))));
    let kept = std::fs::read(&one).unwrap();
    std::fs::copy(&other, &one).unwrap();
    std::fs::write(&other, kept).unwrap();
    let experiment = runs.join(&altered).join("experiment.toml");
    let seed = std::fs::read_to_string(&experiment).unwrap().replace("seed = 7", "seed = 8");
    std::fs::write(&experiment, seed).unwrap();
    let pipe = runs.join(&piped).join("experiment.toml");
    std::fs::remove_file(&pipe).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());

    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    coordinator.digest(&whole);
    let listed = json(&coordinator.command(&["runs", "--json"]));
    for run in [&swapped, &altered, &piped] {
        let listed = listed.as_array().unwrap().iter().find(|listed| listed["run"] == **run);
        assert_eq!(listed.unwrap()["state"], "failed", "{run}: {listed:?}");
    }
    let said = coordinator.said();
    for expected in [
        format!("atoll repair {swapped}"),
        format!("atoll repair {altered}"),
        "not a regular file".to_owned(),
    ] {
        assert!(said.contains(&expected), "expected {expected} in {said}");
    }
    drop(coordinator);
    for run in [&swapped, &altered, &piped] {
        for command in ["verify", "resume"] {
            let output = folder.atoll(&[command, run]);
            let code = output.status.code();
            assert!(matches!(code, Some(1 | 78)), "{command} {run}: {code:?} {}", text(&output.stderr));
        }
    }
    // What was swapped is computed again; the experiment of the others has to come from a copy.
    assert_eq!(json(&folder.atoll(&["repair", &swapped, "--yes", "--json"]))["repaired"], true);
    assert!(folder.atoll(&["resume", &swapped]).status.success());
    assert!(folder.atoll(&["verify", &swapped]).status.success());
    assert_eq!(folder.atoll(&["repair", &altered, "--yes"]).status.code(), Some(1));
}

#[test]
fn swapped_states_of_a_finished_run_are_named() {
    let folder = Folder::new();
    let file = folder.file("short.toml", &SHORT.replace("2000", "40"));
    let finished = json(&folder.atoll(&["run", &file, "--json"]));
    let run = finished["run"].as_str().unwrap();
    let states = folder.path().join("atoll-store/runs").join(run).join("states");
    let [one, other] = ["0", "1"].map(|island| last(&states.join(format!("{island:0>20}"))));
    let kept = std::fs::read(&one).unwrap();
    std::fs::copy(&other, &one).unwrap();
    std::fs::write(&other, kept).unwrap();
    for command in ["verify", "resume", "export"] {
        let output = folder.atoll(&[command, run]);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("state") && !said.contains("panicked"), "{command}: {said}");
    }
    assert_eq!(json(&folder.atoll(&["repair", run, "--yes", "--json"]))["repaired"], true);
    let again = json(&folder.atoll(&["resume", run, "--json"]));
    assert_eq!(again["digest"], finished["digest"]);
}

/// A store with a finished run, sweep and tournament.
fn golden(folder: &Folder) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v2");
    let to = folder.path().join("atoll-store");
    assert!(std::process::Command::new("cp").arg("-r").arg(from).arg(&to).status().unwrap().success());
    to.join("runs")
}

const STUDY: &str = r#"
name = "study"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
budget = { generations = 10 }
[study.first]
[study.second]
guests = "first"
"#;

#[test]
fn a_coordinator_lists_finished_runs_as_their_folder_does() {
    let folder = Folder::new();
    let runs = golden(&folder);
    let study = folder.file("study.toml", STUDY);
    let study = json(&folder.atoll(&["run", &study, "--json"]))["run"].as_str().unwrap().to_owned();
    let coordinator = folder.coordinator(&[]);
    let mut there = json(&coordinator.command(&["runs", "--json"]));
    let here = json(&folder.atoll(&["runs", "--json"]));
    assert_eq!(here.as_array().unwrap().len(), 11, "{here}");
    there.as_array_mut().unwrap().sort_by_key(|run| run["run"].as_str().unwrap().to_owned());
    for (here, there) in here.as_array().unwrap().iter().zip(there.as_array().unwrap()) {
        for key in ["run", "kind", "state", "digest", "generations", "cells", "games", "parts", "goal"] {
            assert_eq!(here[key], there[key], "{key}: {here} {there}");
        }
    }
    let budget = ["extend", &study, "--generations", "60"];
    let [remotely, locally] = [coordinator.command(&budget), folder.atoll(&budget)];
    assert_eq!(remotely.status.code(), Some(2), "a study has no budget: {remotely:?}");
    assert_eq!(locally.status.code(), Some(1), "it is served: {locally:?}");
    drop(coordinator);

    let [run, games, sweep] = ["golden-aa062d6d", "golden-games-50a88128", "golden-sweep-802584f1"];
    std::fs::remove_dir_all(runs.join(run).join("states").join("0".repeat(20))).unwrap();
    let plan = std::fs::read_to_string(runs.join(sweep).join("experiment.toml")).unwrap();
    std::fs::remove_dir_all(runs.join(sweep).join("jobs")).unwrap();
    std::fs::remove_file(runs.join(games).join("experiment.toml")).unwrap();
    let part = format!("{study}.first");
    std::fs::remove_file(last(&runs.join(&part).join("events"))).unwrap();
    let coordinator = folder.coordinator(&[]);
    let listed = json(&coordinator.command(&["runs", "--json"]));
    for damaged in [run, games, sweep, &part, &study] {
        let listed = listed.as_array().unwrap().iter().find(|listed| listed["run"] == *damaged).unwrap();
        assert_eq!(listed["state"], "failed", "{listed}");
        assert!(listed["reason"].as_str().unwrap().contains("is damaged"), "{listed}");
    }
    drop(coordinator);
    let file = folder.file("plan.toml", &plan);
    let arguments =
        ["coordinator", "--listen", "127.0.0.1:0", "--http", "off", "--linger", "0s", "--exit-when-done"];
    let ended = folder.atoll(&[&arguments[..], &["--run", &file]].concat());
    assert!(ended.status.code().is_some_and(|code| code != 0), "{ended:?}");
    assert!(text(&ended.stderr).contains(&format!("atoll repair {sweep}")), "{}", text(&ended.stderr));
}

/// A run is copied while it is worked on: by `atoll backup`, and as a folder.
#[test]
fn a_live_run_is_backed_up_and_a_plain_copy_is_told_from_a_whole_one() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let run = coordinator.submit(SHORT);
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_results_accepted_total", 20.0);
    let generations = |store: &str| {
        let listed = json(&folder.atoll(&["runs", "--json", "--store", store]));
        let listed = listed.as_array().unwrap().iter().find(|listed| listed["run"] == *run);
        listed.unwrap()["generations"].as_u64()
    };
    let mut durable = 0;
    for number in 0..2 {
        let to = format!("backup-{number}");
        // What is listed while it is written may look damaged; then nothing is known of it.
        durable = generations("atoll-store").unwrap_or(durable);
        let copied = json(&folder.atoll(&["backup", &to, "--json"]));
        assert_eq!(copied["ok"], true, "{copied}");
        let mut plain = std::process::Command::new("cp");
        plain.args(["-r", "atoll-store", &format!("plain-{number}")]).current_dir(folder.path());
        // Files may vanish while they are copied.
        let _ = plain.output().unwrap();
    }
    let calm = coordinator.digest(&run);
    drop(coordinator);
    let target = "restored";
    assert!(folder.atoll(&["restore", "backup-1", "--store", target]).status.success());
    assert_eq!(
        folder.atoll(&["restore", "backup-1", "--store", target]).status.code(),
        Some(2),
        "it is not empty"
    );
    let held = generations(target).unwrap();
    assert!(held >= durable, "{held} of {durable} generations that were durable when it began");
    let finished = json(&folder.atoll(&["resume", &run, "--store", target, "--json"]));
    assert_eq!(finished["digest"], calm);
    for number in 0..2 {
        let (plain, target) = (format!("plain-{number}"), format!("from-plain-{number}"));
        let restored = folder.atoll(&["restore", &plain, "--store", &target]);
        match restored.status.code() {
            Some(0) => {}
            Some(1) => {
                let said = text(&restored.stderr);
                assert!(said.contains(&format!("atoll repair {run}")), "{said}");
                assert!(folder.atoll(&["repair", &run, "--yes", "--store", &plain]).status.success());
                std::fs::remove_dir_all(folder.path().join(&target)).unwrap();
                let again = folder.atoll(&["restore", &plain, "--store", &target]);
                assert!(again.status.success(), "{}", text(&again.stderr));
            }
            code => panic!("{code:?}"),
        }
        let finished = json(&folder.atoll(&["resume", &run, "--store", &target, "--json"]));
        assert_eq!(finished["digest"], calm, "{plain}");
    }
}
