//! Texts are plain technical English: phrases that once stood in them, and say less than the usual words of the field, do
//! not come back.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One phrase a line; the file itself is not searched.
const PHRASES: &str = "tests/data/words.txt";
/// Words that texts for users do without: they hide a person or a thing that has a name.
const WORDS: &str = "tests/data/words-docs.txt";
/// The texts for users: these files, and those of these endings in these folders.
const TEXTS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"];
const FOLDERS: [&str; 3] = ["docs/", "deploy/", "examples/"];
const ENDINGS: [&str; 5] = [".md", ".toml", ".txt", ".yaml", ".json"];

#[test]
fn no_text_uses_the_phrases_that_were_given_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let phrases = fs::read_to_string(root.join(PHRASES)).unwrap().to_lowercase();
    let phrases: Vec<&str> = phrases.lines().filter(|line| !line.is_empty()).collect();
    assert!(phrases.len() >= 20, "{} phrases", phrases.len());
    let mut searched = 0;
    let mut found = vec![];
    for name in listed(root).iter().filter(|name| *name != PHRASES) {
        // Pictures and stored objects are no texts; a file may be gone from the working tree.
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        searched += 1;
        let text = joined(&text);
        found.extend(
            phrases.iter().filter(|phrase| text.contains(**phrase)).map(|phrase| format!("{name}: {phrase}")),
        );
    }
    assert!(searched > 300, "only {searched} files were searched");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The names of all files of the repository.
fn listed(root: &Path) -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A text in small letters without what separates lines: the marks of comments, quotes and lists, and the backslashes of
/// strings in code. A phrase may continue in the next line.
fn joined(text: &str) -> String {
    let line = |line: &str| {
        let line = line.trim().trim_end_matches('\\');
        line.trim_start_matches(['/', '!', '#', '*', '>', '|', '-', '"']).trim().to_owned()
    };
    let lines: Vec<String> = text.to_lowercase().lines().map(line).collect();
    lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn phrases_are_found_across_lines() {
    let texts = [
        "/// plain\n    /// words",
        "//! plain\n//! words",
        "    \"plain \\\n     words\"",
        "# plain\n# words",
        "- plain\n  words",
        "> plain\n> words",
    ];
    for text in texts {
        assert!(joined(text).contains("plain words"), "{text}: {}", joined(text));
    }
}

#[test]
fn documentation_and_help_name_what_they_mean() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = fs::read_to_string(root.join(WORDS)).unwrap();
    let words: Vec<&str> = words.lines().filter(|line| !line.is_empty()).collect();
    assert!(words.len() >= 10, "{} words", words.len());
    let is_text = |name: &str| {
        let is_inside = FOLDERS.iter().any(|folder| name.starts_with(folder));
        TEXTS.contains(&name) || is_inside && ENDINGS.iter().any(|ending| name.ends_with(ending))
    };
    let mut texts: Vec<(String, String)> = listed(root)
        .into_iter()
        .filter(|name| is_text(name))
        .filter_map(|name| Some((fs::read_to_string(root.join(&name)).ok()?, name)))
        .map(|(text, name)| (name, text))
        .collect();
    let documents = texts.len();
    help(&[], &mut texts);
    assert!(documents > 80 && texts.len() > documents + 40, "{documents} documents, {} texts", texts.len());
    let found = |(name, text): &(String, String)| {
        let text = prose(text);
        let found = words.iter().filter(|word| text.contains(&format!(" {word} ")));
        found.map(|word| format!("{name}: {word}")).collect::<Vec<_>>()
    };
    let found: Vec<String> = texts.iter().flat_map(found).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// How far a search looks has one unit.
#[test]
fn depth_is_in_plies_in_options_and_keys() {
    let mut texts = vec![];
    help(&[], &mut texts);
    let mut options = 0;
    for (name, text) in &texts {
        // An option's description ends where the next option begins.
        let listed = text.split_once("\nOptions:").map_or("", |(_, listed)| listed);
        for described in listed.split("depth <").skip(1) {
            let described = described.split("\n  -").next().unwrap().split("\n      -").next().unwrap();
            assert!(described.to_lowercase().contains("plies"), "{name}: {described}");
            options += 1;
        }
    }
    assert!(options >= 8, "{options} options");
    let schema = Command::new(env!("CARGO_BIN_EXE_atoll")).arg("schema").output().expect("atoll starts");
    let mut keys = vec![];
    depths(&serde_json::from_slice(&schema.stdout).unwrap(), &mut keys);
    assert!(keys.len() >= 5, "{keys:?}");
    assert!(keys.iter().all(|described| described.contains("Plies")), "{keys:?}");
}

/// The descriptions of all keys `depth` of a schema.
fn depths(schema: &serde_json::Value, found: &mut Vec<String>) {
    let described = &schema["properties"]["depth"]["description"];
    found.extend(described.as_str().map(str::to_owned));
    match schema {
        serde_json::Value::Object(fields) => fields.values().for_each(|value| depths(value, found)),
        serde_json::Value::Array(items) => items.iter().for_each(|value| depths(value, found)),
        _ => {}
    }
}

/// The help of a command and of all commands below it.
fn help(words: &[&str], texts: &mut Vec<(String, String)>) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_atoll")).args(words).arg("--help").output().expect("atoll starts");
    let text = String::from_utf8(output.stdout).unwrap();
    let commands = text.split_once("Commands:\n").map_or("", |(_, rest)| rest);
    let names = commands.lines().take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| line.chars().nth(2).is_some_and(char::is_alphabetic));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        help(&[words, &[name]].concat(), texts);
    }
    texts.push((format!("atoll {} --help", words.join(" ")), text));
}

/// The words of a text outside code, in small letters, with one space before and after each.
fn prose(text: &str) -> String {
    let mut prose = " ".to_owned();
    // Every second part stands between backticks: a span, or a block behind its fence.
    for part in text.replace("```", "`").split('`').step_by(2) {
        let words = part.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        for word in words.filter(|word| !word.is_empty()) {
            prose.push_str(&word.to_lowercase());
            prose.push(' ');
        }
        // What stands on both sides of code is no phrase.
        prose.push_str(". ");
    }
    prose
}

#[test]
fn words_are_found_outside_code() {
    let text = prose("Nobody\ngoes *on*. `so many` so\n```sh\nwhoever\n```\nmany");
    for (word, is_found) in [("nobody", true), ("goes on", true), ("so many", false), ("whoever", false)] {
        assert_eq!(text.contains(&format!(" {word} ")), is_found, "{word}: {text}");
    }
}
