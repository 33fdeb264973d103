//! Every EXAMPLE of every `--help` is run, in a folder in which it can succeed.

use crate::support::{Place, finish};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

/// Examples that are not run here, each with the reason.
const LEFT_OUT: [(&str, &str); 4] = [
    ("atoll batch --coordinator-config c.toml --worker-config w.toml --index 0", "needs a bucket"),
    ("atoll coordinator --store s3://bucket/atoll", "needs a bucket"),
    ("atoll worker --coordinator https://atoll.example:7440 --tls-ca ca.pem", "needs that coordinator"),
    ("atoll bench checkers", "measures for minutes"),
];

/// Examples that other tests run, with the test and its file.
const ELSEWHERE: [(&str, &str, &str); 5] = {
    const DOCS: &str = include_str!("../cluster/docs.rs");
    const TEST: &str = "operators_examples_in_the_help_work";
    [
        ("atoll submit examples/quickstart.toml --wait", TEST, DOCS),
        ("atoll workers --json", TEST, DOCS),
        ("atoll drain worker-1", TEST, DOCS),
        ("atoll pause quickstart", TEST, DOCS),
        ("atoll cancel quickstart", TEST, DOCS),
    ]
};

const QUICKSTART: &str = r#"
name = "quickstart"
problem = { kind = "onemax", length = 60 }
algorithm = { kind = "ga", population = 20 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 40 }
"#;

const CHECKERS: &str = r#"
name = "checkers"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 30 } }
algorithm = { kind = "es", parents = 4, offspring = 4 }
islands = { count = 2 }
migration = { interval = 2 }
budget = { generations = 4 }
retention = { milestones = 1 }
"#;

const LEVELS: &str = r#"
name = "levels"
problem = { kind = "lock-key", targets = [60, 90] }
algorithm = { kind = "ga", population = 30, mutation = { rate = 0.5 } }
islands = { count = 2 }
migration = { interval = 5, count = 1 }
budget = { generations = 10 }
"#;

const GAMES: &str = r#"
name = "games"
[tournament]
openings = 4
depth = 1
players = [{ name = "counter", player = "material" }, { name = "gambler", player = "random" }]
"#;

/// A folder whose newest run is this one.
fn place(text: &str) -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path().join("examples")).unwrap();
    place.write("examples/quickstart.toml", QUICKSTART);
    place.write("newest.toml", text);
    place.run(&["run", "newest.toml"]).expect(0);
    place
}

/// What stands below EXAMPLES in the help of a command and of all commands below it.
fn collect(place: &Place, words: &[&str], found: &mut BTreeSet<String>) {
    let help = place.run(&[words, &["--help"]].concat());
    let help = &help.expect(0).stdout;
    let (_, examples) = help.split_once("EXAMPLES:").unwrap_or_else(|| panic!("no examples of {words:?}"));
    for line in examples.lines().filter(|line| line.starts_with("  atoll")) {
        found.insert(line.trim().split("  ").next().unwrap().to_owned());
    }
    let commands = help.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let names = commands.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        collect(place, &[words, &[name]].concat(), found);
    }
}

#[test]
fn every_example_in_the_help_runs() {
    let quickstart = place(QUICKSTART);
    let mut examples = BTreeSet::new();
    collect(&quickstart, &[], &mut examples);
    quickstart.write("ca.pem", "");
    for (example, reason) in LEFT_OUT {
        assert!(examples.remove(example), "`{example}` ({reason}) is no example any more");
        // Its flags at least are read.
        let words: Vec<&str> = example.split_whitespace().skip(1).collect();
        if let ["coordinator" | "worker", ..] = words.as_slice() {
            quickstart.run(&[&words[..], &["--print-config"]].concat()).expect(0);
        }
    }
    for (example, test, file) in ELSEWHERE {
        assert!(examples.remove(example), "`{example}` is no example any more");
        let (_, body) = file.split_once(&format!("fn {test}(")).unwrap();
        assert!(body.split("\n}\n").next().unwrap().contains(&format!("\"{example}\"")), "{test}: {example}");
    }
    assert!(examples.len() > 40, "only {examples:?}");
    let [checkers, games, levels, removed] = [CHECKERS, GAMES, LEVELS, QUICKSTART].map(place);
    let pdn = games.run(&["tournament", "games", "latest"]);
    games.write("atoll-games.pdn", &pdn.expect(0).stdout);
    levels.run(&["level", "ladder", "latest", "--to", "ladder"]).expect(0);
    let files = std::fs::read_dir(levels.path().join("ladder")).unwrap().map(|entry| entry.unwrap().path());
    let level = files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).min();
    std::fs::copy(level.expect("a level"), levels.path().join("level.txt")).unwrap();
    quickstart.run(&["backup", "monday"]).expect(0);
    quickstart.run(&["init", "my.toml"]).expect(0);
    levels.write("session.json", crate::level_study::simulated_session());
    for example in examples {
        let words: Vec<&str> = example.split_whitespace().skip(1).collect();
        let place = match words.as_slice() {
            ["checkers", "species", ..] | ["ratings", ..] => &checkers,
            ["tournament" | "analyse", ..] => &games,
            ["level", ..] => &levels,
            ["rm", ..] => &removed,
            _ => &quickstart,
        };
        // These exist already, for the others.
        let made = match words.as_slice() {
            ["init", file] => Some(place.path().join(file)),
            ["backup", folder] => Some(place.path().join(folder)),
            _ => None,
        };
        if let Some(path) = made.filter(|path| path.exists()) {
            std::fs::rename(&path, path.with_extension("before")).unwrap();
        }
        let mut command = place.command(&words);
        // A browser that opens nothing, and ports that are free.
        command.env("BROWSER", "true").env("ATOLL_LISTEN", "127.0.0.1:0").env("ATOLL_HTTP", "off");
        if words[0] == "dashboard" {
            serves(&mut command, &example);
            continue;
        }
        let finished = finish(&mut command);
        assert!(finished.status.success(), "{example}: {finished:?}");
    }
}

/// Whether a command serves its pages until it is stopped, or at least finds that its port is taken.
fn serves(command: &mut Command, example: &str) {
    use std::io::{BufRead, BufReader};
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let line = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let is_taken = line.contains("cannot listen on 127.0.0.1:7442");
    assert!(line.starts_with("dashboard at http://") || is_taken, "{example}: {line}");
}
