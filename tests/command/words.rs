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
        // A phrase may go on in the next line of a comment.
        let text = text.to_lowercase().replace("///", " ").replace("//", " ").replace('#', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        found.extend(
            phrases.iter().filter(|phrase| text.contains(**phrase)).map(|phrase| format!("{name}: {phrase}")),
        );
    }
    assert!(searched > 300, "only {searched} files were searched");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
