//! `atoll rm` and `atoll gc`: what is removed is recorded first, and nothing else is touched.

use crate::support::Place;

const ONES: &str = r#"
name = "ones"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 10 }
"#;

const STUDY: &str = r#"
name = "study"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
migration = { interval = 5 }
budget = { generations = 10 }
[study.first]
[study.second]
"#;

fn names(place: &Place) -> Vec<String> {
    let listed = place.json(&["runs", "--json"]);
    listed.as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap().to_owned()).collect()
}

fn started(place: &Place, file: &str) -> [String; 2] {
    let run = place.json(&["run", file, "--json"]);
    ["run", "digest"].map(|key| run[key].as_str().unwrap().to_owned())
}

#[test]
fn a_run_is_removed_with_a_record_and_can_be_run_again() {
    let place = Place::new();
    place.write("ones.toml", ONES);
    let [run, digest] = started(&place, "ones.toml");
    let listed = place.json(&["runs", "--json"]);
    let sizes = place.objects(&run).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    assert_eq!(listed[0]["disk_bytes"], sizes);
    assert!(place.run(&["runs"]).stdout.contains("DISK"));

    let asked = place.run(&["rm", &run]);
    asked.expect_error(1, &["nothing was removed", "--yes"]);
    assert_eq!(names(&place), [run.as_str()]);

    let removed = place.json(&["rm", "ones", "--yes", "--json"]);
    assert_eq!(removed["removed"], serde_json::json!([run]));
    assert!(names(&place).is_empty());
    assert!(!place.store().join("runs").join(&run).exists(), "its folder is gone");
    let record = place.store().join("removals/00000000000000000000/record");
    assert!(record.exists() && record.with_file_name("done").exists());

    assert_eq!(started(&place, "ones.toml"), [run.clone(), digest]);
    assert_eq!(place.json(&["gc", "--json"])["removed"], serde_json::json!([]));
    assert_eq!(names(&place), [run.as_str()], "a completed removal says nothing of a later run");
}

#[test]
fn an_interrupted_removal_is_completed() {
    let place = Place::new();
    place.write("ones.toml", ONES);
    let [run, _] = started(&place, "ones.toml");
    let kept = place.path().join("kept");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let copied = std::process::Command::new("cp").arg("-r").args([from, to]).status();
        assert!(copied.unwrap().success());
    };
    let folder = place.store().join("runs").join(&run);
    copy(&folder, &kept);
    place.run(&["rm", &run, "--yes"]).expect(0);
    // As if the process had been killed after some deletions: the rest is there, and the removal is not done.
    copy(&kept, &folder);
    std::fs::remove_file(folder.join("experiment.toml")).unwrap();
    std::fs::remove_dir_all(folder.join("commits")).unwrap();
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    std::fs::remove_file(place.store().join("removals/00000000000000000000/done")).unwrap();
    assert_eq!(place.json(&["gc", "--json"])["removed"], serde_json::json!([run]));
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"], "what is none of its objects stays");
    let again = place.run(&["gc"]);
    again.expect(0);
    assert!(again.stderr.contains("nothing to remove"), "{again:?}");
    // A run that was started again since its removal was recorded is left, and that is no success.
    std::fs::remove_file(place.store().join("removals/00000000000000000000/done")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    started(&place, "ones.toml");
    place.run(&["gc"]).expect_error(1, &["it changed after its removal was recorded"]);
    assert_eq!(names(&place), [run]);
}

#[test]
fn a_study_is_removed_with_its_parts_and_a_part_alone_is_refused() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    place.write("ones.toml", ONES);
    let ([study, _], [other, _]) = (started(&place, "study.toml"), started(&place, "ones.toml"));
    let part = format!("{study}.first");
    let refused = [format!("is a part of the study `{study}`"), format!("atoll rm {study}")];
    place.run(&["rm", &part, "--yes"]).expect_error(2, &[&refused[0], &refused[1]]);
    assert_eq!(names(&place).len(), 4);
    place.run(&["rm", &study, "--yes"]).expect(0);
    assert_eq!(names(&place), [other]);
}

#[test]
fn a_run_that_a_process_works_on_is_not_removed() {
    let place = Place::new();
    let long = ONES.replace("length = 40", "length = 40, work = 1000000").replace("10 }", "1000000 }");
    place.write("long.toml", long);
    let mut running = place.start(&["run", "long.toml"]);
    running.wait_for("run ones");
    let process = format!("process {}", running.id());
    place.run(&["rm", "latest", "--yes"]).expect_error(1, &[&process]);
    assert!(!place.store().join("removals").exists(), "nothing was recorded");
    running.signal("TERM");
    running.finish().expect(143);
    place.run(&["rm", "latest", "--yes"]).expect(0);
    place.run(&["rm", "latest", "--yes"]).expect_error(1, &["there is no run `latest`"]);
}
