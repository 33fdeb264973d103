//! From a file to levels that designers can use: the examples are run, and what comes out is what was asked for.

use crate::support::Place;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).display().to_string()
}

/// Runs an example and writes its levels.
fn ladder(place: &Place, name: &str) -> PathBuf {
    place.run(&["run", &example(name)]).expect(0);
    place.run(&["level", "ladder", &example(name)]).expect(0);
    place.path().join("levels")
}

/// The files of a folder that end so, in the order of their names.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    files
}

fn levels(folder: &Path) -> Vec<Value> {
    let read = |path: &PathBuf| {
        serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("a JSON object")
    };
    files(folder, ".json").iter().map(read).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number, not {value}"))
}

/// Every level in every form, and a page that needs nothing else.
fn is_complete(folder: &Path, count: usize) {
    for end in [".json", ".png", ".tmj"] {
        assert_eq!(files(folder, end).len(), count, "{end}");
    }
    for picture in files(folder, ".png") {
        assert!(std::fs::read(picture).expect("a picture").starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    let map: Value =
        serde_json::from_slice(&std::fs::read(&files(folder, ".tmj")[0]).expect("a map")).expect("JSON");
    let sheet = map["tilesets"][0]["image"].as_str().expect("a sheet");
    assert!(folder.join(sheet).is_file());
    let page = std::fs::read_to_string(folder.join("index.html")).expect("the page");
    assert_eq!(page.matches("\"picture\":").count(), count);
    for outside in ["https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(outside), "the page refers to {outside}");
    }
    assert_eq!(page.matches("</script>").count(), 1, "levels must not end the script");
}

/// The ten further rungs take a minute of processor time: `./tests/long match3-stages` climbs them.
#[test]
fn the_stages_are_passed_as_often_as_they_should_be() {
    let place = Place::new();
    let text = std::fs::read_to_string(example("match3-stages.toml")).expect("the example");
    let (stages, _) = text.split_once("[study.rung-01]").expect("the stages come first");
    // Fewer plays than the example's million: the boards are judged again below.
    let plays = stages.lines().find(|line| line.starts_with("plays = ")).expect("a line of plays");
    place.write("stages.toml", stages.replace(plays, "plays = { most = 200_000, precision = 0.001 }"));
    place.run(&["run", "stages.toml"]).expect(0);
    place.run(&["level", "ladder", "stages.toml"]).expect(0);
    let folder = place.path().join("levels");
    is_complete(&folder, 3);
    assert_eq!(files(&folder, ".scores.svg").len(), 3);
    for level in levels(&folder) {
        assert_eq!(level["metrics"]["plays"], 100_000);
        let (estimate, target) = (number(&level["metrics"]["estimate"]), number(&level["found"]["target"]));
        assert!((estimate - target).abs() <= 0.005, "{estimate} for {target}");
    }
}

#[test]
fn the_ladder_of_mazes_rises_as_asked_and_every_level_is_proved() {
    let place = Place::new();
    let folder = ladder(&place, "lock-key-ladder.toml");
    is_complete(&folder, 10);
    for level in levels(&folder) {
        let (plain, target) = (number(&level["metrics"]["plain"]), number(&level["found"]["target"]));
        assert!((plain - target).abs() <= 0.02 * target, "{plain} for {target}");
        assert_eq!(level["proof"]["verdict"], "safe");
    }
    // A level file is read by the other commands.
    let first = files(&folder, ".json")[0].display().to_string();
    assert_eq!(
        place.json(&["level", "rate", &first, "--json"])["plain"],
        levels(&folder)[0]["metrics"]["plain"]
    );
    let png = place.path().join("again.png").display().to_string();
    place.run(&["level", "export", &first, "--to", "png", "--output", &png]).expect(0);
    assert_eq!(
        std::fs::read(&png).expect("a picture"),
        std::fs::read(&files(&folder, ".png")[0]).expect("a picture")
    );
}

#[test]
fn an_unfinished_study_shows_what_there_is() {
    let place = Place::new();
    let study = "name = \"half\"\nproblem = { kind = \"match3\" }\n\
                 algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 1 }\n\
                 [study.first]\nproblem.target = { passed = 0.6 }\n\
                 [study.second]\nproblem.target = 0.5\n";
    place.write("half.toml", study);
    place.run(&["run", "half.toml"]).expect(0);
    // As if it had been stopped before its second part.
    let second = std::fs::read_dir(place.store().join("runs")).unwrap().map(|run| run.unwrap().path());
    let second: Vec<PathBuf> = second.filter(|run| run.to_string_lossy().ends_with(".second")).collect();
    std::fs::remove_dir_all(&second[0]).unwrap();
    let shown = place.run(&["level", "ladder", "half.toml", "--plays", "1000"]);
    shown.expect(0);
    assert!(shown.stderr.contains("note: The experiment `second` has not started."), "{}", shown.stderr);
    assert!(shown.stdout.contains("target 0.6 passed") && shown.stdout.contains(" ± "), "{}", shown.stdout);
    let level = &levels(&place.path().join("levels"))[0];
    assert_eq!(level["found"]["target"], serde_json::json!({ "passed": 0.6 }));
    place.write("none.toml", study.replace("half", "none"));
    place.run(&["level", "ladder", "none.toml"]).expect(1);
}

#[test]
fn what_cannot_be_had_is_refused() {
    let place = Place::new();
    let rest = "algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 1 }\n";
    let refused = |problem: &str, reason: &str| {
        place.write("bad.toml", format!("name = \"bad\"\nproblem = {problem}\n{rest}"));
        let checked = place.run(&["check", "bad.toml"]);
        assert!(checked.expect(78).stderr.contains(reason), "{}", checked.stderr);
    };
    refused("{ kind = \"lock-key\", targets = [1] }", "expected targets from 6 to 300");
    refused("{ kind = \"lock-key\", targets = [] }", "problem.targets");
    refused("{ kind = \"lock-key\", level = { width = 2, height = 2 } }", "expected at most 0 pairs");
    refused("{ kind = \"match3\", targets = [1.2] }", "problem.targets");
    refused("{ kind = \"match3\", target = { passed = 1.2 } }", "problem.target");
    refused("{ kind = \"match3\", target = { past = 0.5 } }", "problem.target");
    refused("{ kind = \"lock-key\", astar = { ties = \"coin\" } }", "problem.astar");
    refused("{ kind = \"maze\", goal = { kind = \"order\", numbers = [0] } }", "problem.goal");
    refused("{ kind = \"maze\", goal = { kind = \"sum\" } }", "problem.goal");
    refused("{ kind = \"match3\", rules = { colours = 0 } }", "colours");
    refused("{ kind = \"match3\", rules = { width = 60, height = 60 } }", "at most 128 cells");

    // A board on which nothing ever happens is never passed, and says so.
    place.write(
        "still.toml",
        format!("name = \"still\"\nproblem = {{ kind = \"match3\", rules = {{ width = 2, height = 2, colours = 1 }}, targets = [0.7] }}\n{rest}"),
    );
    let still = place.json(&["run", "still.toml", "--json"]);
    assert!((number(&still["best_fitness"]) - 0.3).abs() < 1e-12, "{still}");
    place.run(&["level", "ladder", "still.toml"]).expect(0);

    place.write(
        "other.toml",
        format!("name = \"other\"\nproblem = {{ kind = \"onemax\", length = 8 }}\n{rest}"),
    );
    place.run(&["run", "other.toml"]).expect(0);
    let other = place.run(&["level", "ladder", "other.toml"]);
    assert!(other.expect(2).stderr.contains("expected a run of the problem `lock-key` or `match3`"));
    place.run(&["level", "ladder", "nobody-knows"]).expect(1);
}
