//! Damage is reported in the same way by every command, for runs of every kind, and nothing is recomputed before a repair.

use crate::support::Place;
use std::path::{Path, PathBuf};

const STUDY: &str = r#"
name = "study"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
migration = { interval = 5 }
budget = { generations = 10 }
[study.first]
[study.second]
guests = "first"
"#;

const RUN: &str = "golden-aa062d6d";
const SWEEP: &str = "golden-sweep-802584f1";
const TOURNAMENT: &str = "golden-games-50a88128";

/// A store with a finished run, sweep and tournament.
fn golden() -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v2");
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(place.store()).status();
    assert!(copied.unwrap().success());
    place
}

fn files(place: &Place, run: &str, folder: &str) -> Vec<PathBuf> {
    let folder = place.store().join("runs").join(run).join(folder);
    place.objects(run).into_iter().filter(|path| path.starts_with(&folder)).collect()
}

fn last_event(place: &Place, run: &str) -> PathBuf {
    files(place, run, "events").pop().unwrap()
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

fn state(place: &Place, run: &str) -> String {
    let listed = place.json(&["runs", "--json"]);
    let row =
        listed.as_array().unwrap().iter().find(|row| row["run"] == run).unwrap_or_else(|| panic!("{run}"));
    row["state"].as_str().unwrap().to_owned()
}

/// A process that is killed while it creates a run leaves the plan alone. Nothing is lost, so nothing is damaged.
#[test]
fn a_run_without_an_event_is_stopped_and_not_damaged() {
    let place = golden();
    for path in place.objects(RUN) {
        if path.file_name().unwrap() != "experiment.toml" {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(state(&place, RUN), "stopped");
    let listed = place.run(&["runs"]);
    assert_eq!(listed.expect(0).stderr, "");
    assert!(place.json(&["resume", RUN, "--json"])["digest"].is_string());
}

/// Commands that would build on a damaged run refuse it and name the repair, after which it comes to the same digest.
fn is_refused_and_repaired(place: &Place, run: &str, digest: &str) {
    place.run(&["resume", run]).expect_error(1, &["atoll repair"]);
    let shown = place.run(&["repair", run]);
    shown.expect(1);
    assert!(!shown.stdout.contains("is damaged:\nthe"), "a reason is given: {}", shown.stdout);
    assert_eq!(place.json(&["repair", run, "--yes", "--json"])["repaired"], true);
    assert_eq!(place.json(&["resume", run, "--json"])["digest"], *digest);
    assert_eq!(place.json(&["verify", run, "--json"])["ok"], true);
}

#[test]
fn a_study_is_verified_and_repaired_with_its_parts() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let study = place.json(&["run", "study.toml", "--json"]);
    let [run, digest] = ["run", "digest"].map(|key| study[key].as_str().unwrap().to_owned());
    let part = format!("{run}.first");
    let verified = place.json(&["verify", &run, "--json"]);
    assert_eq!(verified["parts"].as_array().map(Vec::len), Some(2), "{verified}");
    assert_eq!(state(&place, &run), "finished");

    flip(&files(&place, &part, "commits")[0]);
    let found = place.run(&["verify", &run]);
    found.expect(1);
    assert!(found.stdout.contains(&format!("part `{part}`: object")), "{}", found.stdout);
    assert_eq!([state(&place, &run), state(&place, &part)], ["damaged", "damaged"]);
    place.run(&["resume", &run]).expect_error(1, &[&format!("atoll repair {part}")]);
    is_refused_and_repaired(&place, &run, &digest);

    for job in files(&place, &run, "artifacts") {
        std::fs::remove_file(job).unwrap();
    }
    let found = place.run(&["verify", &run]);
    found.expect(1);
    assert!(found.stdout.contains("job-0000000001"), "{}", found.stdout);
    is_refused_and_repaired(&place, &run, &digest);

    std::fs::remove_file(last_event(&place, &run)).unwrap();
    place.run(&["verify", &run]).expect(1);
    is_refused_and_repaired(&place, &run, &digest);

    // It is no single experiment, but it has a report, and its parts are named.
    place.run(&["export", &run]).expect_error(2, &["study", &format!("{run}.PART")]);
    assert_eq!(place.json(&["report", &run, "--json"])["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn results_that_were_deleted_from_a_finished_run_are_not_recomputed_silently() {
    let place = golden();
    for run in [SWEEP, TOURNAMENT] {
        let digest = place.json(&["resume", run, "--json"])["digest"].as_str().unwrap().to_owned();
        for batch in files(&place, run, "jobs") {
            std::fs::remove_file(batch).unwrap();
        }
        assert_eq!(state(&place, run), "damaged");
        is_refused_and_repaired(&place, run, &digest);
        place.run(&["export", run]).expect_error(2, &[&format!("`{run}`"), "atoll resume"]);
    }
}

/// As a restored copy may leave it: a name that is a file in one store may be a folder in another.
#[test]
fn a_file_in_the_place_of_the_journal_is_moved_out_of_its_way() {
    let place = golden();
    let digest = place.json(&["resume", RUN, "--json"])["digest"].as_str().unwrap().to_owned();
    let events = place.store().join("runs").join(RUN).join("events");
    std::fs::remove_dir_all(&events).unwrap();
    std::fs::write(&events, "no folder").unwrap();
    is_refused_and_repaired(&place, RUN, &digest);
    let dropped = files(&place, RUN, "dropped");
    assert!(dropped.iter().any(|path| path.ends_with("events")), "{dropped:?}");
}

/// Nothing depends on an object with a name that no object has: a finished run needs not be resumed because of it.
#[test]
fn a_finished_run_from_which_a_stray_object_is_moved_stays_finished() {
    let place = golden();
    let stray = place.store().join("runs").join(RUN).join("commits/stray");
    std::fs::write(&stray, "misdirected").unwrap();
    let events = files(&place, RUN, "events").len();
    let repaired = place.run(&["repair", RUN, "--yes"]);
    assert!(repaired.expect(0).stderr.contains("repaired; no result was affected"), "{repaired:?}");
    assert!(!stray.exists());
    assert_eq!((state(&place, RUN), files(&place, RUN, "events").len()), ("finished".to_owned(), events));
    assert_eq!(place.json(&["repair", RUN, "--json"])["needed"], false);
    assert_eq!(place.json(&["verify", RUN, "--json"])["ok"], true);
}

/// Its second end need not be its first one: the summary of the first was taken back with what it told of.
#[test]
fn an_asynchronous_run_that_was_repaired_and_resumed_is_whole() {
    let place = Place::new();
    place.write(
        "small.toml",
        "name = \"small\"\nproblem = { kind = \"onemax\", length = 300 }\nalgorithm = { kind = \"ga\", population = 8 }\n\
         islands = { count = 3 }\nmigration = { interval = 5, count = 2, mode = \"asynchronous\" }\n\
         budget = { generations = 60 }\ncheckpoint = { every = \"0s\" }\n",
    );
    place.run(&["run", "small.toml"]).expect(0);
    let run = place.only_run();
    std::fs::remove_file(&files(&place, &run, "commits")[0]).unwrap();
    assert_eq!(place.json(&["repair", &run, "--yes", "--json"])["repaired"], true);
    place.run(&["resume", &run]).expect(0);
    let verified = place.json(&["verify", &run, "--json"]);
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(place.json(&["repair", &run, "--json"])["needed"], false);
}

#[test]
fn a_finished_run_is_damaged_for_watch_as_it_is_for_runs() {
    let place = golden();
    place.run(&["watch", RUN, "--json"]).expect(0);
    std::fs::remove_file(files(&place, RUN, "commits").pop().unwrap()).unwrap();
    for summary in [true, false] {
        if !summary {
            std::fs::remove_dir_all(place.store().join("runs").join(RUN).join("summaries")).unwrap();
        }
        assert_eq!(state(&place, RUN), "damaged");
        place.run(&["watch", RUN, "--json"]).expect(1);
    }
}

#[test]
fn a_damaged_run_is_neither_exported_nor_resumed() {
    for damage in [
        |place: &Place| std::fs::remove_file(last_event(place, RUN)).unwrap(),
        |place: &Place| {
            flip(&files(place, RUN, "states").pop().unwrap());
        },
    ] {
        let place = golden();
        damage(&place);
        for command in ["export", "resume"] {
            let refused = place.run(&[command, RUN]);
            refused.expect_error(1, &[&format!("atoll repair {RUN}")]);
            assert!(!refused.stderr.contains("delete it"), "{}", refused.stderr);
        }
        assert_eq!(place.json(&["report", RUN, "--json"])["state"], "damaged");
        place.run(&["verify", RUN]).expect(1);
    }
    let place = golden();
    std::fs::remove_file(place.store().join("runs").join(RUN).join("experiment.toml")).unwrap();
    assert_eq!(state(&place, RUN), "damaged");
    place.run(&["resume", RUN]).expect_error(1, &["experiment.toml is missing"]);
}
