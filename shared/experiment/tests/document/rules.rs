//! Rules beyond the schema, and values that are put into a document.

use crate::types;
use experiment::document::{self, Document, KeyPath};
use serde_json::json;

const TEXT: &str = r#"seed = 1

[algorithm]
kind = "genetic"
population = 40

[[islands.override]]
islands = [0, 1]
algorithm = { kind = "random-search" }

[axes]
"algorithm.population" = [10, "many"]
"#;

fn document() -> Document {
    document::parse("run.toml", TEXT).unwrap()
}

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

#[test]
fn a_rule_points_at_the_key_or_the_nearest_place_there_is() {
    let document = document();
    let place = |key: &str| {
        let problem = document.problem(key, "wrong", None);
        assert_eq!(problem.key, key);
        (problem.line, problem.column)
    };
    assert_eq!(place("algorithm.population"), (5, 1));
    assert_eq!(place("algorithm.elite"), (3, 1));
    assert_eq!(place("algorithm.population.size"), (5, 14));
    assert_eq!(place("algorithm"), (3, 2));
    assert_eq!(place("islands.override[0].islands[1]"), (8, 15));
    assert_eq!(place("islands.override[0].algorithm.kind"), (9, 15));
    assert_eq!(place("islands.override[0].algorithm.size"), (9, 13));
    assert_eq!(place("islands.override[7]"), (7, 1));
    assert_eq!(place("islands.count"), (7, 3));
    assert_eq!(place("axes.\"algorithm.population\"[1]"), (12, 31));
    assert_eq!(place("migration.count"), (1, 1));
    assert_eq!(place(""), (1, 1));
    assert_eq!(place("no [path"), (1, 1));
}

#[test]
fn rules_and_schema_are_reported_together_in_order() {
    let document = document::parse("run.toml", &TEXT.replace("seed = 1", "seed = -1")).unwrap();
    let mut problems =
        vec![document.problem("algorithm.population", "expected an even number", Some("try 42"))];
    problems.extend(document.check(&types::schema()));
    let report = document.conclude(problems).unwrap_err();
    assert_eq!(
        report.to_string(),
        "run.toml:1:8: seed: expected an integer of at least 0, found the integer `-1`\n    \
         seed = -1\n           ^^\n\
         run.toml:5:1: algorithm.population: expected an even number\n    \
         population = 40\n    ^^^^^^^^^^\n    help: try 42"
    );
    assert_eq!(
        serde_json::to_value(&report).unwrap(),
        json!({"file": "run.toml", "more": false, "problems": [
            {"key": "seed", "line": 1, "column": 8, "help": null,
             "message": "expected an integer of at least 0, found the integer `-1`"},
            {"key": "algorithm.population", "line": 5, "column": 1, "help": "try 42",
             "message": "expected an even number"},
        ]})
    );
}

#[test]
fn a_value_is_set_and_its_tables_made() {
    let mut document = document();
    document.set(&path("algorithm.population"), json!(7)).unwrap();
    document.set(&path("migration.share.count"), json!(2)).unwrap();
    document.set(&path("islands.override[0].islands[1]"), json!(9)).unwrap();
    assert_eq!(document.get(&path("algorithm.population")), Some(json!(7)));
    assert_eq!(document.get(&path("migration")), Some(json!({"share": {"count": 2}})));
    assert_eq!(document.get(&path("islands.override[0].islands")), Some(json!([0, 9])));
}

#[test]
fn what_cannot_be_set_changes_nothing() {
    let mut document = document();
    let before = document.to_json();
    let mut message =
        |key: &str, value| document.set(&path(key), value).unwrap_err().problems[0].message.clone();
    assert_eq!(message("seed.x", json!(1)), "expected a table with `x`, found the integer `1`");
    assert_eq!(message("seed[0]", json!(1)), "expected an array with `[0]`, found the integer `1`");
    assert_eq!(message("new[0]", json!(1)), "expected an array with `[0]`, found a table");
    assert_eq!(
        message("islands.override[1].x", json!(1)),
        "expected an index into the array, found `[1]` and an array of 1"
    );
    assert_eq!(message("", json!({})), "expected a key, found an empty path");
    assert_eq!(message("seed", json!([null])), "expected a value, found null");
    assert_eq!(document.to_json(), before);
}

#[test]
fn a_grafted_value_is_blamed_where_it_was_written() {
    let mut document = document();
    document.graft(&path("algorithm.population"), &path("axes.\"algorithm.population\"[0]")).unwrap();
    assert_eq!(document.check(&types::schema()), vec![]);
    document.graft(&path("algorithm.population"), &path("axes.\"algorithm.population\"[1]")).unwrap();
    let problems = document.check(&types::schema());
    assert_eq!(
        problems[0].to_string(),
        "12:31: algorithm.population: expected an integer from 1 to 1000, found the string `\"many\"`\n    \
         \"algorithm.population\" = [10, \"many\"]\n    \
         \x20                             ^^^^^^"
    );
    let nothing = document.graft(&path("seed"), &path("axes.seed[0]")).unwrap_err();
    assert_eq!(nothing.problems[0].message, "expected a value, found nothing");
}

#[test]
fn dates_are_strings_and_big_seeds_stay_whole() {
    let text = "seed = 18446744073709551615\nname = 1979-05-27T07:32:00Z\nalgorithm.kind = \"random-search\"";
    let config: types::Config = document::parse("run.toml", text).unwrap().decode(&types::schema()).unwrap();
    assert_eq!(config.seed, u64::MAX);
    assert_eq!(config.name.as_deref(), Some("1979-05-27T07:32:00Z"));
}
