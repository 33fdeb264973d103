//! `atoll verify` agrees with what is right, and finds whatever is not.

use crate::support::{Finished, MAZE, Place, RASTRIGIN, until};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::path::Path;

/// A small finished run that keeps some of its past, and its name.
fn small_run() -> (Place, String) {
    small_run_of(3)
}

fn small_run_of(islands: u32) -> (Place, String) {
    let place = Place::new();
    let text = r#"
        name = "small"
        seed = 5
        problem = { kind = "rastrigin", dimensions = 3 }
        algorithm = { kind = "es", parents = 4, offspring = 8 }
        islands = { count = 3 }
        migration = { interval = 4 }
        budget = { generations = 20 }
        checkpoint = { every = 4 }
        retention = { keep = 2, milestones = 3 }
        "#;
    place.write("experiment.toml", text.replace("count = 3", &format!("count = {islands}")));
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
        let before = place.kept();
        let inside = |kept: &BTreeMap<u64, u64>| kept.get(&0).is_some_and(|generation| generation % 10 > 3);
        let run = place.start(&["run", "experiment.toml", "--threads", "2"]);
        until("the slow island is inside an epoch", || {
            let kept = place.kept();
            inside(&kept) && kept.get(&0) != before.get(&0)
        });
        assert!(run.kill().was_killed());
    }
    let run = place.json(&["resume", "--json"]);
    let found = place.json(&["verify", run["run"].as_str().expect("a run"), "--json"]);
    assert_eq!(found["ok"], true, "{found}");
    assert_eq!(found["recomputed"], found["epochs"]);
}

/// Checkpoints are deleted, and records are added, while they are read.
#[test]
fn a_run_that_is_worked_on_is_never_called_damaged() {
    let place = Place::new();
    let text = r#"
        name = "busy"
        problem = { kind = "onemax", length = 16, work = 3000 }
        algorithm = { kind = "ga", population = 20 }
        islands = { count = 4 }
        migration = { interval = 5 }
        budget = { generations = 100000000 }
        checkpoint = { every = 1 }
        retention = { keep = 2 }
        "#;
    place.write("busy.toml", text);
    let run = place.start(&["run", "busy.toml", "--threads", "1"]);
    until("something is stored", || !place.kept().is_empty());
    let verified = place.run(&["verify", "busy"]);
    verified.expect_error(75, &["works on run `busy-", "verify it when it has stopped"]);
    run.signal("INT");
    run.finish().expect(130);
    place.run(&["verify", "busy"]).expect(0);
    // The store of workers is locked by their coordinator, for all of its runs.
    let mut run = place.start(&["run", "busy.toml", "--workers", "1", "--fresh"]);
    run.wait_for("run busy-");
    for _ in 0..6 {
        let verified = place.run(&["verify", "latest", "--json"]);
        assert!(matches!(verified.status.code(), Some(0 | 75)), "{verified:?}");
    }
    run.signal("INT");
    run.finish().expect(130);
}

#[test]
fn every_flipped_bit_is_found() {
    let (place, run) = small_run_of(6);
    let objects = place.objects(&run);
    assert!(objects.len() > 15, "{objects:?}");
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

/// Writes a commit of a run again with other records, whole and with the right checksum.
fn alter_records(place: &Place, run: &str, alter: impl Fn(&mut run::record::EpochRecord)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let location = store::Location::Folder(place.store());
        let store = store::Store::open_at(&location).await.expect("a store");
        let id = run::RunId::new(run).expect("a run");
        for path in store.list(&id.commits()).await.expect("commits") {
            let mut commit: run::record::Commit =
                store.read_value(&path, store::Kind::Commit).await.expect("a commit");
            commit.islands.iter_mut().flat_map(|(_, records)| records).for_each(&alter);
            store.delete(&path).await.expect("it is deleted");
            store.create_value(&path, store::Kind::Commit, &commit).await.expect("it is written");
        }
    });
}

#[test]
fn a_flipped_bit_in_a_standing_is_found_though_the_object_is_whole() {
    type Alter = fn(&mut run::record::EpochRecord);
    let alterations: [(u64, Alter); 4] = [
        (4, |record| {
            let best = &mut record.mark.standing.best;
            *best = f64::from_bits(best.to_bits() ^ 1);
        }),
        (4, |record| record.mark.standing.evaluations ^= 1),
        // Of this epoch no state is kept.
        (1, |record| record.mark.standing.evaluations ^= 1),
        (4, |record| record.statistics.rows[0].evaluations ^= 1),
    ];
    for (epoch, alter) in alterations {
        let (place, run) = small_run();
        alter_records(&place, &run, |record| {
            if record.mark.epoch == epoch {
                alter(record);
            }
        });
        let finished = verify(&place, &run);
        finished.expect(1);
        let problems = finished.json()["problems"].to_string();
        assert!(problems.contains(&format!("epoch {epoch}")), "{problems}");
    }
}

#[test]
fn damage_is_told_alike_by_runs_report_and_verify() {
    let (place, run) = small_run();
    let whole: Vec<_> = place.objects(&run);
    let last = |path: &Path, folder: &str| path.to_string_lossy().contains(folder);
    let state = whole.iter().rfind(|path| last(path, "/states/00000000000000000002/")).expect("a state");
    std::fs::remove_file(state).expect("it is deleted");
    let said = "island 2: the state of epoch 4 is missing";
    let listed = place.run(&["runs", "--json"]);
    assert_eq!(listed.json()[0]["state"], "damaged");
    assert!(listed.stderr.contains(said), "{}", listed.stderr);
    let found = verify(&place, &run);
    assert!(found.expect(1).json()["problems"].to_string().contains(said), "{found:?}");
    let report = place.json(&["report", &run, "--json"]);
    assert_eq!(report["state"], "damaged", "{report}");
    assert!(report["damage"].to_string().contains(said), "{report}");
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

/// Missing objects are found, unless they are not needed. Nothing is built on such a run until it was repaired; then whatever can
/// be computed again is.
#[test]
fn deleted_objects_are_missed_and_computed_again_after_a_repair() {
    // What is computed again lies elsewhere, so that each object is deleted from a run of its own.
    for at in 0.. {
        let (place, run) = small_run();
        let objects = place.objects(&run);
        let Some(path) = objects.get(at) else { break };
        let digest = place.json(&["resume", &run, "--json"])["digest"].clone();
        let text = path.display().to_string();
        std::fs::remove_file(path).expect("it can be deleted");
        // States of the past may be pruned, and a summary only saves reading.
        let is_old_state = text.contains("/states/") && !text.contains("/00000000000000000004-");
        let is_whole = is_old_state || text.contains("/summaries/");
        verify(&place, &run).expect(i32::from(!is_whole));
        if !is_whole && !text.ends_with("experiment.toml") {
            assert_eq!(place.json(&["runs", "--json"])[0]["state"], "damaged", "without {text}");
        }
        if text.ends_with("experiment.toml") {
            place.run(&["repair", &run, "--yes"]).expect_error(1, &[&run]);
            continue;
        }
        if is_whole {
            assert_eq!(place.json(&["repair", &run, "--json"])["needed"], false, "without {text}");
        } else {
            let before = place.objects(&run);
            place.run(&["resume", &run]).expect_error(1, &[&run]);
            place.run(&["repair", &run]).expect(1);
            assert_eq!(place.objects(&run), before, "nothing is changed without being asked for");
            assert_eq!(place.json(&["repair", &run, "--json", "--yes"])["repaired"], true, "without {text}");
            let kept = place.objects(&run);
            let is_kept = |path: &&std::path::PathBuf| {
                let name = path.file_name().expect("a name");
                kept.iter().any(|kept| kept.file_name() == Some(name))
            };
            assert!(before.iter().all(|path| is_kept(&path)), "nothing is deleted: {before:?} {kept:?}");
        }
        assert_eq!(place.json(&["resume", &run, "--json"])["digest"], digest, "without {text}");
        let found = place.json(&["verify", &run, "--json"]);
        assert_eq!(found["ok"], true, "after {text} was computed again: {found}");
    }
}

#[test]
fn strangers_in_the_store_are_told() {
    let (place, run) = small_run();
    let stranger = place.store().join("runs").join(&run).join("states/notes.txt");
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
    let cell = place.objects(&run).into_iter().find(|path| path.display().to_string().contains("/jobs/"));
    let cell = cell.expect("cells are stored");
    let mut bytes = std::fs::read(&cell).expect("a cell");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&cell, bytes).expect("it can be altered");
    finds(&place, &run, &cell);
}

#[test]
fn a_part_with_another_budget_than_its_study_is_found() {
    let place = Place::new();
    let study = r#"
        name = "pair"
        problem = { kind = "onemax", length = 16 }
        algorithm = { kind = "ga", population = 12 }
        islands = { count = 1 }
        budget = { generations = 4 }
        study = { first = {}, second = { seed = 5 } }
    "#;
    place.write("pair.toml", study);
    let run = place.json(&["run", "pair.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    verify(&place, &run).expect(0);
    // Earlier versions extended a part that was open.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let location = store::Location::Folder(place.store());
        let store = store::Store::open_at(&location).await.expect("a store");
        let part = run::RunId::new(format!("{run}.second")).expect("a part");
        let (mut journal, _) =
            run::Journal::open::<run::RunEvent>(&store, &part, store::Nonce(1)).await.expect("its journal");
        let budget = r#"{"generations":9}"#.to_owned();
        journal.append(&run::RunEvent::Extended { budget, complete: 4, at: 1 }).await.expect("it is written");
    });
    let verified = verify(&place, &run);
    assert!(verified.stdout.contains("another budget than the study's file has"), "{verified:?}");
}
