//! Texts are plain technical English: phrases that once stood in them, and say less than the usual words of the field, do
//! not come back.

use std::fs;
use std::path::Path;
use std::process::Command;

/// One phrase a line; the file itself is not searched.
const PHRASES: &str = "tests/data/words.txt";

#[test]
fn no_text_uses_the_phrases_that_were_given_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let phrases = fs::read_to_string(root.join(PHRASES)).unwrap().to_lowercase();
    let phrases: Vec<&str> = phrases.lines().filter(|line| !line.is_empty()).collect();
    assert!(phrases.len() >= 20, "{} phrases", phrases.len());
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut searched = 0;
    let mut found = vec![];
    for name in listed.split('\0').filter(|name| !name.is_empty() && *name != PHRASES) {
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

/// A text in small letters without what separates lines: the marks of comments, quotes and lists, and the backslashes of
/// strings in code. A phrase may go on in the next line.
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
