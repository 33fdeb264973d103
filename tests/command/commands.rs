//! Every command as people and programs use it: what it prints, and that only data is on stdout.

use crate::support::{MAZE, Place, until, with_checkpoints};
use serde_json::Value;
use std::path::Path;

const TINY: &str = r#"
name = "tiny"
problem = { kind = "onemax", length = 16 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 3 }
migration = { interval = 5 }
budget = { generations = 20 }
"#;

fn tiny() -> (Place, String) {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let run = place.json(&["run", "tiny.toml", "--json"])["run"].as_str().expect("a run").to_owned();
    (place, run)
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn run_ends_with_one_object() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let found = place.json(&["run", "tiny.toml", "--json"]);
    for key in
        ["run", "digest", "best_fitness", "generations", "evaluations", "evaluations_per_second", "seconds"]
    {
        assert!(found.get(key).is_some(), "{key} in {found}");
    }
    assert_eq!(found["generations"], 20);
    assert_eq!(found["evaluations"], 3 * 12 * 21);
    assert_eq!(found["digest"].as_str().map(str::len), Some(64));
    let again = place.run(&["run", "tiny.toml", "--json"]);
    assert!(again.expect(0).stderr.contains("finished already"), "{again:?}");
    assert_eq!(again.json()["digest"], found["digest"]);
    assert_eq!(again.json()["run"], found["run"]);
}

#[test]
fn run_tells_people_what_came_out_and_what_to_do_next() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let finished = place.run(&["run", "tiny.toml", "--store", "elsewhere"]);
    for said in ["best fitness", "digest", "stored in", "atoll export tiny-", "--store elsewhere"] {
        assert!(finished.expect(0).stdout.contains(said), "{said} in {}", finished.stdout);
    }
    assert!(place.path().join("elsewhere/runs").is_dir());
}

#[test]
fn fresh_starts_anew_beside_what_is_there() {
    let (place, run) = tiny();
    let fresh = place.json(&["run", "tiny.toml", "--json", "--fresh"]);
    place.run(&["export", "tiny"]).expect_error(2, &["found 2 that begin with `tiny`", &run]);
    assert_eq!(place.json(&["export", "latest", "--json"])["run"], fresh["run"], "the newer one");
    assert_eq!(fresh["run"], format!("{run}.2"));
    let runs = place.json(&["runs", "--json"]);
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "{runs}");
    assert_eq!(runs[0]["digest"], runs[1]["digest"]);
}

#[test]
fn extending_is_asking_for_more() {
    let (place, run) = tiny();
    let extended = place.json(&["extend", &run, "--generations", "45", "--json"]);
    place.write("long.toml", TINY.replace("generations = 20", "generations = 45"));
    let at_once = place.json(&["run", "long.toml", "--json"]);
    for key in ["digest", "generations", "evaluations", "best_fitness"] {
        assert_eq!(extended[key], at_once[key], "{key}");
    }
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
    // Elsewhere than at a whole epoch too it can be verified, and read back.
    place.json(&["extend", &run, "--generations", "52", "--json"]);
    let elsewhere = place.json(&["extend", &run, "--generations", "60", "--json"]);
    assert_eq!(place.json(&["resume", &run, "--json"])["digest"], elsewhere["digest"]);
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
}

#[test]
fn a_budget_that_is_spent_already_changes_nothing_of_the_past() {
    for budget in [["--evaluations", "40"], ["--stagnation", "1"]] {
        let (place, run) = tiny();
        let extended = place.json(&["extend", &run, budget[0], budget[1], "--json"]);
        let read_back = place.json(&["resume", &run, "--json"]);
        assert_eq!(read_back["digest"], extended["digest"], "{budget:?}");
        assert_eq!(read_back["generations"], extended["generations"], "{budget:?}");
        let verified = place.json(&["verify", &run, "--json"]);
        assert_eq!(verified["ok"], true, "{budget:?}: {verified}");
    }
}

#[test]
fn budgets_that_cannot_be_are_refused() {
    let (place, run) = tiny();
    place.run(&["extend", &run]).expect_error(2, &["at least one of `--generations`", "`--wall-time`"]);
    place.run(&["extend", &run, "--generations", "3"]).expect_error(2, &["at least the 20", "`3`"]);
    place
        .run(&["extend", &run, "--target-fitness", "9"])
        .expect_error(2, &["another limit beside `target_fitness`"]);
    place.run(&["extend", &run, "--wall-time", "soon"]).expect_error(2, &["soon", "30s"]);
    assert_eq!(place.json(&["resume", &run, "--json"])["generations"], 20, "nothing has changed");
}

#[test]
fn runs_lists_what_there_is() {
    let (place, run) = tiny();
    let runs = place.json(&["runs", "--json"]);
    assert_eq!(
        keys(&runs[0]),
        ["best_fitness", "created", "digest", "disk_bytes", "generations", "kind", "labels", "run", "state"]
    );
    assert!(runs[0]["disk_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{runs}");
    assert_eq!(runs[0]["run"], run);
    assert_eq!(runs[0]["state"], "finished");
    let table = place.run(&["runs"]);
    assert!(table.expect(0).stdout.contains(&run), "{table:?}");
    place.run(&["runs", "--store", "nowhere"]).expect_error(1, &["nowhere"]);
}

#[test]
fn export_writes_tables_and_prints_objects() {
    let (place, run) = tiny();
    let object = place.json(&["export", &run, "--json"]);
    assert_eq!(object["champions"].as_array().map(Vec::len), Some(3));
    assert_eq!(object["champions"][0]["genome"].as_array().map(Vec::len), Some(16));
    assert_eq!(object["finished"], true);
    let finished = place.run(&["export", &run, "--to", "out"]);
    let files: Vec<&str> = finished.expect(0).stdout.lines().collect();
    assert_eq!(files, ["out/run.json", "out/champions.csv", "out/statistics.csv", "out/migrations.csv"]);
    for file in files.iter().filter(|file| file.contains(".csv")) {
        let text = std::fs::read_to_string(place.path().join(file)).expect("a table");
        let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
        assert!(columns.len() > 3 && columns.iter().all(|count| *count == columns[0]), "{text}");
    }
    let migrations = std::fs::read_to_string(place.path().join("out/migrations.csv")).expect("a table");
    assert_eq!(
        migrations.lines().count(),
        1 + 3 * 3,
        "three islands receive before each epoch but the first"
    );
}

#[test]
fn check_estimates_and_finds_fault() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let found = place.json(&["check", "tiny.toml", "--json"]);
    assert_eq!(
        keys(&found),
        ["disk_bytes", "evaluations", "memory_bytes", "ok", "run", "seconds", "threads", "yardstick"]
    );
    assert_eq!(found["evaluations"], 3 * 12 * 21);
    assert!(!place.store().exists(), "checking creates nothing");
    place.write("wrong.toml", TINY.replace("population", "popluation"));
    let wrong = place.run(&["check", "wrong.toml", "--json"]);
    assert_eq!(wrong.expect(78).json()["ok"], false);
}

#[test]
fn every_example_can_be_run() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let place = Place::new();
    let mut count = 0;
    for example in std::fs::read_dir(examples).expect("examples") {
        let path = example.expect("an example").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let found = place.json(&["check", path.to_str().expect("a path"), "--json", "--no-trial"]);
            assert_eq!(found["ok"], true, "{}", path.display());
            count += 1;
        }
    }
    assert!(count > 0, "there are examples");
}

#[test]
fn the_schema_is_a_schema_of_experiments() {
    let schema = Place::new().json(&["schema"]);
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for key in ["name", "seed", "problem", "algorithm", "islands", "migration", "budget", "sweep", "study"] {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
    // Whatever the schema refers to is in it.
    let mut references = vec![];
    collect_references(&schema, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("references are local");
        assert!(schema.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect_references(schema: &Value, references: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            references.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|value| collect_references(value, references));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_references(value, references)),
        _ => {}
    }
}

#[test]
fn bench_prints_rates() {
    let figures = Place::new().json(&["bench", "evolution.onemax50", "--json"]);
    assert_eq!(keys(&figures), ["evolution.onemax50"]);
    let figure = &figures["evolution.onemax50"];
    assert_eq!(keys(figure), ["rate", "ratio", "reference_rate", "unit"]);
    assert!(figure["rate"].as_f64() > Some(1e5), "{figure}");
    assert_eq!(figure["unit"], "evaluations/s");
    let ratio = figure["rate"].as_f64().expect("a rate") / figure["reference_rate"].as_f64().expect("a rate");
    assert!((figure["ratio"].as_f64().expect("a ratio") - ratio).abs() < 1e-6 * ratio);
}

const SWEEP: &str = r#"
name = "sweep"
problem = { kind = "onemax", length = 16, work = 200000 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 10 }

[sweep]
repeats = 3

[[sweep.axis]]
keys = ["problem.length"]
values = [8, 16]

[[sweep.axis]]
keys = ["algorithm.population", "migration.count"]
values = [[8, 1], [12, 2]]
"#;

#[test]
fn a_sweep_goes_on_after_a_crash() {
    // Cells of about half a second each: shorter ones are delivered together.
    let slow = SWEEP.replace("work = 200000", "work = 1500000");
    let calm = Place::new();
    calm.write("sweep.toml", &slow);
    let expected = calm.json(&["run", "sweep.toml", "--json"]);
    assert_eq!(expected["cells"].as_array().map(Vec::len), Some(12));
    assert_eq!(expected["cells"][4]["seed"], 1);

    let place = Place::new();
    place.write("sweep.toml", &slow);
    let sweep = place.start(&["run", "sweep.toml", "--json", "--threads", "1"]);
    until("two cells are done", || {
        let begun = std::fs::read_dir(place.store().join("runs")).is_ok_and(|mut runs| runs.next().is_some());
        begun && count_cells(&place) >= 2
    });
    assert!(sweep.kill().was_killed(), "it is in the middle");
    let resumed = place.run(&["resume", "--json", "--threads", "2"]);
    assert!(resumed.expect(0).stderr.contains("12 cells, "), "{resumed:?}");
    assert!(!resumed.stderr.contains("12 cells, 0 done"), "{resumed:?}");
    assert_eq!(resumed.json()["digest"], expected["digest"]);
    assert_eq!(resumed.json()["cells"], expected["cells"]);
    let seconds = |object: &serde_json::Value| {
        ["seconds", "session_seconds"].map(|key| object[key].as_f64().expect("a number"))
    };
    let [total, session] = seconds(&calm.json(&["run", "sweep.toml", "--json"]));
    assert!(total > session, "nothing was left to do by this command: {total} s, {session} s");
    let [total, session] = seconds(&expected);
    assert!((total - session).abs() < 1e-9, "all of it was done in that session: {total} s, {session} s");
    let rows = place.run(&["runs"]);
    assert!(rows.expect(0).stdout.contains(" sweep       finished         12/12 cells "), "{rows:?}");
    // A cell is a run like any other.
    let table = place.run(&["run", "sweep.toml"]);
    assert_eq!(table.expect(0).stdout.lines().filter(|line| line.starts_with('|')).count(), 2 + 4);
    assert!(table.stdout.contains(" this time\ndigest "), "{}", table.stdout);
    assert!(table.stdout.contains("\nnext:\n  open the report "), "{}", table.stdout);
}

/// How many batches of cells are stored.
fn count_cells(place: &Place) -> u64 {
    let cells = place.store().join("runs").join(place.only_run()).join("jobs");
    let names =
        std::fs::read_dir(cells).into_iter().flatten().map(|entry| entry.expect("a cell").file_name());
    names.filter(|name| !name.to_string_lossy().contains('#')).count() as u64
}

const STUDY: &str = r#"
name = "study"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 20 }

[study.first]
seed = 1

[study.second]
guests = "first"
seed = 2
budget = { generations = 0 }

[study.without]
seed = 2
budget = { generations = 0 }
"#;

#[test]
fn guests_arrive_at_the_founding() {
    let place = Place::new();
    place.write("study.toml", STUDY);
    let study = place.json(&["run", "study.toml", "--json"]);
    let best = |name: &str| {
        let parts = study["parts"].as_array().expect("parts");
        let part = parts.iter().find(|part| part["name"] == name).expect("a part");
        part["best_fitness"].as_f64().expect("a fitness")
    };
    assert!(best("second") >= best("first"), "{study}");
    assert!(best("without") < best("first"), "{study}");
    let again = place.json(&["run", "study.toml", "--json"]);
    assert_eq!(again["digest"], study["digest"]);
    assert_eq!(place.json(&["watch", "latest", "--json"])["run"], study["run"], "not its last part");
    let watched = place.run(&["watch", "latest"]);
    assert!(!watched.expect(0).stdout.contains("best fitness"), "its parts have one: {watched:?}");
    let shown = place.run(&["run", "study.toml"]);
    let run = study["run"].as_str().expect("a run");
    assert!(
        shown
            .expect(0)
            .stdout
            .contains(&format!("next:\n  compare the experiments                  atoll report {run}\n"))
    );
    for part in study["parts"].as_array().expect("parts") {
        let run = part["run"].as_str().expect("a run");
        place.run(&["extend", run, "--generations", "30"]).expect_error(2, &["part of the study"]);
        assert_eq!(place.json(&["verify", run, "--json"])["ok"], true, "{part}");
    }
    assert_eq!(place.json(&["runs", "--json"]).as_array().map(Vec::len), Some(4), "the study and its parts");
}

/// Epochs are over sooner than the decision is written down, that the time is up.
#[test]
fn a_run_of_short_epochs_ends_when_its_time_is_up() {
    for mode in ["synchronous", "asynchronous"] {
        let place = Place::new();
        place.write(
            "timed.toml",
            format!(
                r#"
                name = "timed"
                problem = {{ kind = "onemax", length = 400 }}
                algorithm = {{ kind = "ga", population = 50 }}
                islands = {{ count = 4, topology = "ring" }}
                migration = {{ interval = 1, mode = "{mode}" }}
                budget = {{ generations = 1000000, wall_time = "300ms" }}
                "#
            ),
        );
        let ended = place.json(&["run", "timed.toml", "--json"]);
        assert_eq!(ended["reason"], "time limit reached", "{ended}");
        assert_eq!(place.json(&["verify", "latest", "--json"])["ok"], true);
    }
}

#[test]
fn resume_names_what_it_could_go_on_with() {
    let (place, run) = tiny();
    place.run(&["resume"]).expect_error(2, &["no unfinished run"]);
    assert_eq!(place.json(&["resume", &run, "--json"])["generations"], 20);
    place.run(&["resume", "nobody"]).expect_error(1, &["`nobody`", "atoll runs"]);
    // `run` wants a file: who names a run is told the command for runs.
    let meant = format!("`atoll resume {run}`");
    place.run(&["run", &run]).expect_error(78, &["file not found", &meant]);
}

#[test]
fn a_command_nobody_listens_to_ends_quietly() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = place.command(&["schema"]).stdout(writer).output().expect("atoll starts");
    assert_eq!(ended.status.code(), Some(141), "as a shell reports a broken pipe");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id_by_its_name_or_as_the_latest() {
    let (place, run) = tiny();
    for name in [&run[..6], "tiny", "latest"] {
        assert_eq!(place.json(&["export", name, "--json"])["run"], run.as_str(), "{name}");
    }
    assert_eq!(place.json(&["verify", "latest", "--json"])["ok"], true);
    place
        .run(&["verify", "tinny"])
        .expect_error(1, &["there is no run `tinny`", &format!("did you mean `{run}`?")]);
    place.json(&["run", "tiny.toml", "--seed", "5", "--json"]);
    place.run(&["export", "tiny"]).expect_error(2, &["found 2 that begin with `tiny`", &run]);
    let listed = place.run(&["runs"]);
    let lines: Vec<&str> = listed.expect(0).stdout.lines().collect();
    assert!(lines[0].contains("KIND") && lines[0].contains("PROGRESS"), "{lines:?}");
    assert!(lines[1].contains(" evolution ") && lines[1].contains(" generation 20 "), "{lines:?}");
}

#[test]
fn what_was_done_before_is_told_from_this_time() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let first = place.run(&["run", "tiny.toml"]);
    let counted = |finished: &crate::support::Finished| {
        let line =
            finished.stdout.lines().find(|line| line.starts_with("  evaluations ")).unwrap().to_owned();
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<String>>()
    };
    let all = counted(first.expect(0));
    assert_eq!((all[0].as_str(), all.len()), ("756", 3), "nothing before: {all:?}");
    let second = place.run(&["extend", "tiny", "--generations", "40"]);
    let all = counted(second.expect(0));
    assert_eq!(all[..4], ["1476", "(720", "this", "time,"], "{all:?}");
    assert!(second.stdout.contains(" this time)\n"), "the time as well: {}", second.stdout);
}

#[test]
fn after_a_kill_the_counters_go_on_from_what_was_kept() {
    let calm = Place::new();
    let maze = with_checkpoints(MAZE, "20");
    calm.write("maze.toml", &maze);
    let expected = calm.json(&["run", "maze.toml", "--json"]);
    let place = Place::new();
    place.write("maze.toml", &maze);
    let running = place.start(&["run", "maze.toml", "--threads", "1"]);
    until("every island has some epochs", || {
        let kept = place.kept();
        kept.len() == 8 && kept.values().all(|&generation| generation >= 40)
    });
    assert!(running.kill().was_killed(), "it is in the middle");
    let kept = place.kept();
    let resumed = place.run(&["resume", "latest"]);
    let shown = &resumed.expect(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("  evaluations ")).unwrap();
    let numbers: Vec<u64> = line.split([' ', '(']).filter_map(|word| word.parse().ok()).collect();
    let [all, this_time] = numbers[..2] else { panic!("{line}") };
    assert_eq!(expected["evaluations"], all, "{shown}");
    // An island of 101 evaluates as many in each generation, and at its founding.
    let of = |generations: u64| 101 * (generations + 8);
    let before = all - this_time;
    assert!(before <= of(kept.values().sum()), "no more than was kept: {before} of {kept:?}");
    assert!(before >= of(8 * 10), "the epochs that all islands have done: {before} of {kept:?}");
    assert!(shown.contains(" this time)\n"), "the time as well: {shown}");
    let read = place.json(&["resume", "latest", "--json"]);
    assert_eq!(read["evaluations"], all, "{read}");
    assert_eq!(read["digest"], expected["digest"]);
}

#[test]
fn a_sweep_shows_its_progress_without_a_terminal() {
    let place = Place::new();
    let text = MAZE.replace("name = \"maze\"", "name = \"cells\"");
    // More than can be done before the first line is printed.
    let axis = "[sweep]\nrepeats = 10000\n[[sweep.axis]]\nkeys = [\"problem.turns\"]\nvalues = [25, 30]\n";
    place.write("cells.toml", format!("{text}{axis}"));
    let mut sweep = place.start(&["run", "cells.toml", "--threads", "1"]);
    sweep.wait_for("/20000 cells, ");
    // What is computed and what was left are not the same word.
    assert_eq!(place.json(&["runs", "--json"])[0]["state"], "running");
    let ended = sweep.kill();
    assert_eq!(place.json(&["runs", "--json"])[0]["state"], "stopped");
    let line = ended.stderr.lines().find(|line| line.contains("/20000 cells, ")).unwrap();
    assert!(line.contains("best ") && line.contains(" evaluations/s"), "{line}");
}

/// Boards with different pass rates that all take the same number of plays.
const STAGES: &str = r#"
name = "stages"
algorithm = { kind = "ga", population = 20 }
islands = { count = 1 }
migration = { interval = 2 }
budget = { generations = 4 }
[problem]
kind = "match3"
plays = { least = 1000, most = 1000, worth = 0.0, precision = 0.0 }
[study.stage-1]
problem.targets = [0.70]
[study.stage-2]
problem.targets = [0.57]
[study.rung]
problem.targets = [0.35]
"#;

/// By the time of the processor: others work on this machine too.
#[test]
fn the_estimate_of_a_study_of_levels_is_right_within_a_factor_of_two() {
    let place = Place::new();
    place.write("stages.toml", STAGES);
    let expected = place.json(&["check", "stages.toml", "--json"])["seconds"].as_f64().unwrap();
    let script = format!("TIMEFORMAT=%U; time {} run stages.toml --threads 1", env!("CARGO_BIN_EXE_atoll"));
    let timed = crate::support::finish(&mut place.command_of("bash", &["-c", &script]));
    let found: f64 = timed.expect(0).stderr.lines().last().unwrap().parse().unwrap();
    assert!((0.5..2.0).contains(&(expected / found)), "{expected} s expected, {found} s found");
}

#[test]
fn names_that_are_nearly_right_are_told() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place
        .run(&["play", "matrial"])
        .expect_error(2, &["there is no player `matrial`; did you mean `material`?"]);
    place.run(&["play", "deep-blue"]).expect_error(
        2,
        &["there is no player `deep-blue`: expected `material`, `random`, a player file, or"],
    );
    place
        .run(&["run", "tinny.toml"])
        .expect_error(78, &["file not found: tinny.toml; did you mean `tiny.toml`?"]);
    // The command is run where the examples are in a folder.
    std::fs::create_dir(place.path().join("examples")).unwrap();
    place.write("examples/quickstart.toml", TINY);
    place
        .run(&["run", "quickstrat.toml"])
        .expect_error(78, &["file not found: quickstrat.toml; did you mean `examples/quickstart.toml`?"]);
    place
        .run(&["check", "tests/quickstart.toml"])
        .expect_error(78, &["did you mean `examples/quickstart.toml`?"]);
    place.write("program.toml", b"\x7fELF\0\x01\x02".as_slice());
    place.run(&["run", "program.toml"]).expect_error(78, &["expected text in TOML, found binary data"]);
    place
        .run(&["checkers", "best", "--player", "matrial", "--depth", "2"])
        .expect_error(2, &["there is no player `matrial`; did you mean `material`?"]);
    place.write("board.txt", "1");
    place
        .run(&["maze", "solve", "--board", "bord.txt", "--turns", "5", "--algorithm", "greedy"])
        .expect_error(78, &["file not found: bord.txt; did you mean `board.txt`?"]);
    place
        .run(&["run", "tiny.toml", "--seed", "-1"])
        .expect_error(2, &["'-1'", "expected a whole number from 0 to"]);
}

#[test]
fn a_starter_is_written_once_and_runs() {
    let place = Place::new();
    let written = place.run(&["init"]);
    assert_eq!(written.expect(0).stdout, "experiment.toml\natoll.schema.json\n");
    let starter = std::fs::read_to_string(place.path().join("experiment.toml")).unwrap();
    assert!(starter.starts_with("#:schema ./atoll.schema.json\n"), "{starter}");
    assert!(place.path().join("atoll.schema.json").is_file());
    assert_eq!(place.json(&["check", "experiment.toml", "--json"])["ok"], true);
    assert_eq!(place.json(&["run", "experiment.toml", "--json"])["best_fitness"], 200.0);
    place.run(&["init"]).expect_error(1, &["experiment.toml exists", "atoll init my.toml"]);
}
