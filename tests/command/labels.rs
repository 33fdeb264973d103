//! Labels: given, shown, filtered, copied and repaired, and no part of any result.

use crate::support::Place;
use serde_json::{Value, json};

const ONES: &str = r#"
name = "ones"
problem = { kind = "onemax", length = 16 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 20 }
"#;

/// The labels of each listed run.
fn listed(place: &Place, arguments: &[&str]) -> Vec<(String, Value)> {
    let runs = place.json(&[&["runs", "--json"], arguments].concat());
    let runs = runs.as_array().unwrap().iter();
    runs.map(|run| (run["run"].as_str().unwrap().to_owned(), run["labels"].clone())).collect()
}

#[test]
fn runs_get_labels_when_they_start_and_later_and_are_found_by_them() {
    let place = Place::new();
    place.write("ones.toml", ONES);
    let first = place.json(&["run", "ones.toml", "--label", "paper", "--label", "figure-3", "--json"]);
    let second = place.json(&["run", "ones.toml", "--seed", "5", "--json"]);
    let [first, second] = [&first, &second].map(|run| run["run"].as_str().unwrap().to_owned());
    assert_eq!(listed(&place, &["--label", "paper"]), [(first.clone(), json!(["figure-3", "paper"]))]);
    assert_eq!(
        place.json(&["label", &second, "paper", "--json"]),
        json!({ "run": second, "labels": ["paper"] })
    );
    assert_eq!(listed(&place, &["--label", "paper"]).len(), 2);
    assert_eq!(listed(&place, &["--label", "paper", "--label", "figure-3"]).len(), 1, "all that are named");
    assert_eq!(
        place.run(&["label", &first, "--remove", "figure-3"]).expect(0).stdout,
        format!("{first}: paper\n")
    );
    // The same run again: a label is added, and the others stay.
    place.run(&["run", "ones.toml", "--label", "again"]).expect(0);
    assert_eq!(listed(&place, &["--label", "again"]), [(first.clone(), json!(["again", "paper"]))]);
    let table = place.run(&["runs"]).expect(0).stdout.clone();
    assert!(table.lines().next().unwrap().contains(" LABELS "), "{table}");
    assert!(table.contains(" again paper "), "{table}");
    place.run(&["label", &first, "--remove", "paper", "--remove", "again"]).expect(0);
    place.run(&["label", &second, "--remove", "paper"]).expect(0);
    assert!(!place.run(&["runs"]).expect(0).stdout.contains("LABELS"), "no run has any");
    let none = place.run(&["runs", "--label", "paper"]);
    assert!(none.expect(0).stderr.contains("has these labels") && none.stdout.is_empty(), "{none:?}");
}

#[test]
fn labels_are_no_part_of_a_result_and_go_with_the_run() {
    let (plain, place) = (Place::new(), Place::new());
    for place in [&plain, &place] {
        place.write("ones.toml", ONES);
    }
    let expected = plain.json(&["run", "ones.toml", "--json"]);
    let found = place.json(&["run", "ones.toml", "--label", "paper", "--json"]);
    assert_eq!((&found["run"], &found["digest"]), (&expected["run"], &expected["digest"]));
    let run = found["run"].as_str().unwrap();
    let events = |place: &Place| {
        place.objects(run).iter().filter(|file| file.to_string_lossy().contains("/events/")).count()
    };
    let before = events(&place);
    place.run(&["label", run, "draft"]).expect(0);
    assert_eq!(events(&place), before, "a finished run is not opened again");
    assert_eq!(place.json(&["verify", run, "--json"])["ok"], true);
    place.run(&["backup", "copy"]).expect(0);
    place.run(&["restore", "copy", "--store", "restored"]).expect(0);
    assert_eq!(listed(&place, &["--store", "restored"]), [(run.to_owned(), json!(["draft", "paper"]))]);
    place.run(&["rm", run, "--yes"]).expect(0);
    assert!(!place.store().join("runs").join(run).exists(), "they are removed with their run");
    place.run(&["run", "ones.toml"]).expect(0);
    assert_eq!(listed(&place, &[]), [(run.to_owned(), json!([]))], "a new run has none");
}

#[test]
fn damaged_labels_are_found_and_repaired_and_the_run_is_whole() {
    let place = Place::new();
    place.write("ones.toml", ONES);
    let run =
        place.json(&["run", "ones.toml", "--label", "paper", "--json"])["run"].as_str().unwrap().to_owned();
    place.run(&["label", &run, "draft"]).expect(0);
    let object = place.store().join("runs").join(&run).join("labels/00000000000000000001");
    let mut bytes = std::fs::read(&object).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&object, bytes).unwrap();
    let rows = place.json(&["runs", "--json"]);
    assert_eq!(
        (&rows[0]["state"], &rows[0]["labels"]),
        (&json!("finished"), &json!(["paper"])),
        "the newest whole ones"
    );
    place.run(&["verify", &run]).expect(1);
    let asked = place.run(&["repair", &run]);
    assert!(
        asked.stdout.contains("labels/00000000000000000001")
            || asked.stderr.contains("labels/00000000000000000001"),
        "{asked:?}"
    );
    assert!(asked.stdout.contains("no result is affected"), "{asked:?}");
    let repaired = place.run(&["repair", &run, "--yes"]);
    assert!(repaired.expect(0).stderr.contains("repaired; no result was affected"), "{repaired:?}");
    assert_eq!(place.json(&["runs", "--json"])[0]["state"], "finished", "it is not opened again");
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
    place.run(&["label", &run, "other"]).expect(0);
    assert_eq!(listed(&place, &[]), [(run, json!(["other", "paper"]))]);
}

#[test]
fn a_run_gets_labels_while_another_process_works_on_it() {
    let place = Place::new();
    let long = ONES.replace("length = 16", "length = 40, work = 1000000").replace("= 20 }", "= 1000000 }");
    place.write("long.toml", long);
    let mut running = place.start(&["run", "long.toml", "--label", "night"]);
    running.wait_for("run ones");
    crate::support::until("it is labelled", || listed(&place, &["--label", "night"]).len() == 1);
    place.run(&["label", "latest", "long"]).expect(0);
    running.signal("TERM");
    running.finish().expect(143);
    assert_eq!(listed(&place, &["--label", "long"])[0].1, json!(["long", "night"]));
}

#[test]
fn what_cannot_be_a_label_is_rejected() {
    let place = Place::new();
    place.write("ones.toml", ONES);
    place.run(&["run", "ones.toml"]).expect(0);
    for (label, reason) in [
        (
            "two words",
            "expected a label of lowercase letters, digits, `-`, `_` and `.`, found ` ` in `two words`",
        ),
        ("", "expected a label of 1 to 40 characters, found 0"),
        (&"x".repeat(41), "expected a label of 1 to 40 characters, found 41"),
        (".hidden", "expected a label that begins with a letter or a digit, found `.hidden`"),
    ] {
        place.run(&["label", "latest", label]).expect_error(2, &[reason]);
        place.run(&["run", "ones.toml", "--label", label]).expect_error(2, &[reason]);
    }
    let many: Vec<String> = (0..17).map(|number| format!("label-{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    place
        .run(&[&["label", "latest"], &many[..]].concat())
        .expect_error(2, &["expected at most 16 labels, found 17"]);
    place.run(&["label", "latest"]).expect_error(2, &["LABEL"]);
    place.run(&["label", "lastest", "x"]).expect_error(1, &["there is no run `lastest`"]);
}
