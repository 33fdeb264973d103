//! `atoll verify` agrees with what is right, and finds whatever is not.

use crate::support::{Finished, MAZE, Place, RASTRIGIN, until};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

/// A small finished run that keeps some of its past, and its name.
fn small_run() -> (Place, String) {
    let place = Place::new();
    place.write(
        "experiment.toml",
        r#"
        name = "small"
        seed = 5
        problem = { kind = "rastrigin", dimensions = 3 }
        algorithm = { kind = "es", parents = 4, offspring = 8 }
        islands = { count = 3 }
        migration = { interval = 4 }
        budget = { generations = 20 }
        checkpoint = { every = 4 }
        retention = { keep = 2, milestones = 3 }
        "#,
    );
    let run = place.json(&["run", "experiment.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    (place, run)
}

fn verify(place: &Place, run: &str) -> Finished {
    place.run(&["verify", run, "--json", "--threads", "1"])
}

/// Verifying fails, and says what is wrong with an object.
fn finds(place: &Place, run: &str, path: &Path) -> String {
    let finished = verify(place, run);
    finished.expect(1);
    let found = finished.json();
    assert_eq!(found["ok"], false);
    let problems = found["problems"].to_string();
    let name = path.file_name().expect("an object").to_str().expect("a name");
    assert!(problems.contains(name), "expected {name} to be named in {problems}");
    problems
}

#[test]
fn what_is_right_is_found_right() {
    for experiment in [MAZE, RASTRIGIN] {
        let place = Place::new();
        place.write("experiment.toml", experiment);
        let run = place.json(&["run", "experiment.toml", "--json"]);
        let found = place.json(&["verify", run["run"].as_str().expect("a run"), "--json"]);
        assert_eq!(found["ok"], true, "{found}");
        assert_eq!(found["recomputed"], found["epochs"]);
        assert!(found["objects"].as_u64() > Some(8), "{found}");
    }
}

/// A slow island is killed in the middle of epochs, while more arrives for it than it had when they began.
#[test]
fn asynchronous_runs_can_be_verified() {
    let place = Place::new();
    place.write(
        "experiment.toml",
        r#"
        name = "asynchronous"
        problem = { kind = "onemax", length = 60, work = 100000 }
        algorithm = { kind = "ga", population = 6 }
        migration = { interval = 10, count = 1, mode = "asynchronous" }
        budget = { generations = 100 }
        checkpoint = { every = 2 }
        [islands]
        count = 4
        [[islands.override]]
        islands = [0]
        algorithm = { kind = "ga", population = 60 }
        "#,
    );
    for _ in 0..5 {
        let before = place.kept(10);
        let inside = |kept: &BTreeMap<u64, u64>| kept.get(&0).is_some_and(|generation| generation % 10 > 3);
        let run = place.start(&["run", "experiment.toml", "--threads", "2"]);
        until("the slow island is inside an epoch", || {
            let kept = place.kept(10);
            inside(&kept) && kept.get(&0) != before.get(&0)
        });
        assert!(run.kill().was_killed());
    }
    let run = place.json(&["resume", "--json"]);
    let found = place.json(&["verify", run["run"].as_str().expect("a run"), "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(found["recomputed"], found["epochs"]);
}

#[test]
fn every_flipped_bit_is_found() {
    let (place, run) = small_run();
    let objects = place.objects(&run);
    assert!(objects.len() > 10, "{objects:?}");
    let mut runner = TestRunner::new(Config { cases: 300, ..Config::default() });
    let flip = (any::<Index>(), any::<Index>(), 0u8..8);
    let result = runner.run(&flip, |(object, byte, bit)| {
        let path = &objects[object.index(objects.len())];
        let right = std::fs::read(path)?;
        let mut wrong = right.clone();
        wrong[byte.index(right.len())] ^= 1 << bit;
        std::fs::write(path, &wrong)?;
        finds(&place, &run, path);
        std::fs::write(path, &right)?;
        Ok(())
    });
    result.expect("every flipped bit is found");
    verify(&place, &run).expect(0);
}

/// The experiment is text without a header, so every kind of change to it is tried.
#[test]
fn an_altered_experiment_is_found() {
    let (place, run) = small_run();
    let path = place.store().join("runs").join(&run).join("experiment.toml");
    let right = std::fs::read_to_string(&path).expect("an experiment");
    for (from, to) in [
        ("name = \"small\"", "name = \"smell\""),
        ("seed = 5", "seed = 6"),
        ("generations = 20", "generations = 24"),
        ("keep = 2", "keep = 3"),
        ("every = 4", "every = 5"),
        ("offspring = 8", "offspring = 9"),
    ] {
        let wrong = right.replace(from, to);
        assert_ne!(wrong, right, "{from} is in it");
        std::fs::write(&path, wrong).expect("it can be altered");
        verify(&place, &run).expect(1);
    }
    std::fs::write(&path, right).expect("it can be restored");
    verify(&place, &run).expect(0);
}

#[test]
fn cut_and_appended_bytes_are_found() {
    let (place, run) = small_run();
    for path in place.objects(&run) {
        let right = std::fs::read(&path).expect("an object");
        let longer = [&right[..], b"#"].concat();
        for wrong in [&right[..right.len() - 1], &right[..right.len() / 2], &[], &longer] {
            std::fs::write(&path, wrong).expect("it can be altered");
            finds(&place, &run, &path);
        }
        std::fs::write(&path, &right).expect("it can be restored");
    }
    verify(&place, &run).expect(0);
}

/// What is gone is missed, unless nobody needs it, and whatever can be computed again is.
#[test]
fn deleted_objects_are_missed_and_computed_again() {
    let (place, run) = small_run();
    let digest = place.json(&["resume", &run, "--json"])["digest"].clone();
    let objects = place.objects(&run);
    let last_event = objects.iter().rfind(|path| path.display().to_string().contains("events"));
    for path in &objects {
        let text = path.display().to_string();
        let right = std::fs::read(path).expect("an object");
        std::fs::remove_file(path).expect("it can be deleted");
        // States of the past can be thinned out, and without its last event a run is one that was not finished yet.
        let is_old_state = text.contains(".state") && !text.contains("0000000004.state");
        let is_whole = is_old_state || Some(path) == last_event;
        verify(&place, &run).expect(i32::from(!is_whole));
        if Some(path) == last_event {
            assert_eq!(place.json(&["runs", "--json"])[0]["state"], "unfinished");
        }
        if text.contains("islands") || Some(path) == last_event {
            assert_eq!(place.json(&["resume", &run, "--json"])["digest"], digest, "without {text}");
            assert_eq!(
                place.json(&["verify", &run, "--json"])["ok"],
                true,
                "after {text} was computed again"
            );
        } else {
            std::fs::write(path, &right).expect("it can be restored");
        }
    }
}

#[test]
fn strangers_in_the_store_are_told() {
    let (place, run) = small_run();
    let stranger = place.store().join("runs").join(&run).join("islands/notes.txt");
    std::fs::write(&stranger, "hello").expect("it can be written");
    finds(&place, &run, &stranger);
}

#[test]
fn runs_that_are_not_there_are_named() {
    let (place, _) = small_run();
    place.run(&["verify", "nobody-12345678"]).expect_error(1, &["nobody-12345678", "atoll runs"]);
    place.run(&["verify", "No Run"]).expect_error(2, &["No Run"]);
}

#[test]
fn sweeps_can_be_verified() {
    let place = Place::new();
    place.write(
        "sweep.toml",
        r#"
        name = "sweep"
        problem = { kind = "onemax", length = 20 }
        algorithm = { kind = "ga", population = 10 }
        islands = { count = 2 }
        budget = { generations = 12 }
        [sweep]
        repeats = 2
        axis = [{ keys = ["algorithm.population"], values = [8, 12] }]
        "#,
    );
    let run = place.json(&["run", "sweep.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    let found = place.json(&["verify", &run, "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(found["recomputed"], 4);
    let cell = place.objects(&run).into_iter().find(|path| path.display().to_string().contains("cells"));
    let cell = cell.expect("cells are stored");
    let mut bytes = std::fs::read(&cell).expect("a cell");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&cell, bytes).expect("it can be altered");
    finds(&place, &run, &cell);
}
