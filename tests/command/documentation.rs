//! The documentation is true: its commands run, its examples load, its reference is that of this binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files that speak to users.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    documents.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    documents
}

/// All fenced blocks: what stands behind the fence, and the text.
fn fenced(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks = vec![];
    let mut inside: Option<(String, String)> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        match &mut inside {
            None => inside = bare.strip_prefix("```").map(|language| (language.to_owned(), String::new())),
            Some(_) if bare == "```" => blocks.extend(inside.take()),
            Some((_, block)) => block.extend([line, "\n"]),
        }
    }
    assert!(inside.is_none(), "{}: a fence stays open", path.display());
    blocks
}

/// The texts of all fenced blocks of a language.
fn blocks(path: &Path, language: &str) -> Vec<String> {
    fenced(path).into_iter().filter(|(found, _)| found == language).map(|(_, text)| text).collect()
}

fn atoll(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// A folder as a new user has it: the examples, and nothing else.
fn fresh_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let examples = folder.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, examples.join(path.file_name().unwrap())).unwrap();
    }
    folder
}

#[test]
fn every_command_in_the_documentation_runs() {
    let folder = fresh_folder();
    let mut count = 0;
    // The commands of `docs/cluster.md` run side by side, in several processes: `tests/cluster` runs them.
    for document in documents().iter().filter(|path| !path.ends_with("docs/cluster.md")) {
        for line in blocks(document, "sh").iter().flat_map(|block| block.lines()) {
            let line = line
                .strip_prefix("cargo run --release --")
                .map_or(line.to_owned(), |rest| format!("atoll{rest}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["./tests/run"] => assert!(root().join("tests/run").exists()),
                ["atoll", arguments @ ..] => {
                    let output = atoll(folder.path(), arguments);
                    assert!(output.status.success(), "{}: {line}: {output:?}", document.display());
                    count += 1;
                }
                other => panic!("{}: a command that no test knows how to run: {other:?}", document.display()),
            }
        }
    }
    assert!(count > 20, "only {count} commands were found");
}

/// Commands that take too long, or need something of the reader's own, say so behind their fence: `sh (REASON)`. Of these
/// the command and its flags are compared with `--help`.
#[test]
fn commands_that_are_not_run_are_marked_and_exist() {
    let (folder, mut marked) = (fresh_folder(), 0);
    let others = ["deploy/README.md", "ARCHITECTURE.md"].map(|name| root().join(name));
    for document in documents().iter().chain(&others) {
        for (language, text) in fenced(document) {
            for line in text.lines().map(str::trim).filter(|line| line.starts_with("atoll ")) {
                let place = format!("{}: {line}", document.display());
                match language.strip_prefix("sh (").and_then(|rest| rest.strip_suffix(')')) {
                    None => assert_eq!(language, "sh", "neither run nor marked with a reason: {place}"),
                    Some(reason) => {
                        assert!(!reason.is_empty(), "{place}");
                        check_flags(folder.path(), line, &place);
                        marked += 1;
                    }
                }
            }
        }
    }
    assert!(marked > 10, "only {marked} commands are marked");
}

const PLAYERS: &str = r#"
name = "players"
problem = { kind = "checkers", depth = 1, games = 1, draw = { moves = 30 } }
algorithm = { kind = "es", parents = 4, offspring = 4 }
islands = { count = 2 }
migration = { interval = 1 }
budget = { generations = 6 }
retention = { milestones = 1 }
"#;

const GAMES: &str = r#"
name = "games"
[tournament]
openings = 4
depth = 1
players = [{ name = "NAME", player = "material" }, { name = "gambler", player = "random" }]
"#;

/// What readers do with runs of their own, done with small ones: shallow searches, and few games.
#[test]
fn commands_for_a_run_of_ones_own_work_with_a_small_one() {
    let folder = fresh_folder();
    let start = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        let output = atoll(folder.path(), &["run", name, "--json"]);
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        run["run"].as_str().unwrap().to_owned()
    };
    let (players, games) = (start("players.toml", PLAYERS), start("games.toml", GAMES));
    std::fs::write(
        folder.path().join("games.pdn"),
        "[Black \"one\"]\n[White \"two\"]\n\n1. 11-15 23-19 2. 8-11 22-17 *\n",
    )
    .unwrap();
    let mut count = 0;
    for document in documents() {
        let own = ["sh (with your own run)", "sh (with your own games)"].map(|mark| blocks(&document, mark));
        for line in own.iter().flatten().flat_map(|block| block.lines()) {
            let line = line.split(" #").next().unwrap().trim_end();
            let run = if line.starts_with("atoll tournament") { &games } else { &players };
            let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
            if words.starts_with(&["checkers", "match"]) {
                words.extend(["--pairs", "2"]);
            }
            if let Some(depth) = words.iter().position(|word| *word == "--depth") {
                words[depth + 1] = "2";
            }
            let words: Vec<String> = words.into_iter().map(|word| word.replace("RUN", run)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = atoll(folder.path(), &words);
            assert!(output.status.success(), "{}: {line}: {output:?}", document.display());
            count += 1;
        }
    }
    assert!(count > 8, "only {count} commands were found");
}

/// The long flags in a text, whole: `--token-file` is not `--to`.
fn flags(text: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| word.len() > 2 && word.starts_with("--")).collect()
}

#[test]
fn flags_are_compared_as_a_whole() {
    assert_eq!(flags("  -t, --token-file <FILE>, `--to DIR`"), ["--token-file", "--to"]);
    assert_eq!(flags("--to=DIR -- --"), ["--to"]);
}

/// Whether the command of a line exists and knows the flags.
fn check_flags(folder: &Path, line: &str, place: &str) {
    let line = line.split(" #").next().unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let is_group = |word: &str| ["checkers", "tournament", "endgame", "maze", "level"].contains(&word);
    let length = if is_group(words[0]) || words.starts_with(&["bench", "strength"]) { 2 } else { 1 };
    let help = atoll(folder, &[&words[..length], &["--help"]].concat());
    assert!(help.status.success(), "{place}");
    let help = String::from_utf8(help.stdout).unwrap();
    let known = flags(&help);
    for flag in flags(line) {
        assert!(known.contains(&flag), "{place}: {flag} is no flag");
    }
}

/// What the README says about installing is what Cargo would do: the root package has the one binary `atoll`.
#[test]
fn cargo_installs_what_the_readme_names() {
    let installed = blocks(&root().join("README.md"), "sh (builds for minutes)");
    assert_eq!(installed, ["cargo install --locked --path .\n"]);
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[package]\nname = \"atoll\"\n"), "the package of this folder");
    assert!(root().join("Cargo.lock").is_file(), "`--locked` needs it");
    assert!(root().join("src/main.rs").is_file() && !root().join("src/bin").exists(), "one binary");
    assert!(manifest.contains("[profile.release]"), "what is installed is optimised");
}

#[test]
fn every_experiment_in_the_documentation_and_every_example_loads() {
    let folder = fresh_folder();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.path().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for (number, text) in documents().iter().flat_map(|document| blocks(document, "toml")).enumerate() {
        let path = folder.path().join(format!("{number}.toml"));
        std::fs::write(&path, text).unwrap();
        files.push(path);
    }
    assert!(files.len() >= 5);
    for file in files {
        let output = atoll(folder.path(), &["check", "--no-trial", file.to_str().unwrap()]);
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_reference_of_keys_is_current() {
    let output = atoll(&root(), &["schema", "--markdown"]);
    let reference = String::from_utf8(output.stdout).unwrap();
    let written = std::fs::read_to_string(root().join("docs/experiments.md")).unwrap();
    assert!(
        written.ends_with(&reference),
        "write it again: `atoll schema --markdown` into docs/experiments.md"
    );
}

#[test]
fn the_mistake_shown_in_the_readme_is_what_one_gets() {
    let folder = fresh_folder();
    let text = "name = \"wrong\"\n[problem]\nkind = \"rastrigin\"\ndimension = 10\n\
                [algorithm]\nkind = \"ga\"\n[budget]\ngenerations = 1\n";
    std::fs::write(folder.path().join("wrong.toml"), text).unwrap();
    let output = atoll(folder.path(), &["check", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(78));
    let shown =
        blocks(&root().join("README.md"), "text").into_iter().find(|block| block.starts_with("wrong.toml"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(shown.unwrap().trim_end()), "{said}");
}
