//! Bad files and what is said of them: `bad/NAME.toml` against `bad/NAME.expected`.

use crate::types;
use experiment::document::{self, Diagnostics};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/document/bad")
}

fn bad_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

fn report(file: &Path) -> Diagnostics {
    let name = file.file_name().unwrap().to_str().unwrap();
    let text = document::read_limited(file).unwrap();
    let decoded =
        document::parse(name, &text).and_then(|document| document.decode::<types::Config>(&types::schema()));
    decoded.expect_err(name)
}

/// What lies between the first and the last line that differ, with `-` (expected) and `+` (found).
fn difference(expected: &str, found: &str) -> String {
    let (expected, found): (Vec<_>, Vec<_>) = (expected.lines().collect(), found.lines().collect());
    let same = |(old, new): &(&&str, &&str)| old == new;
    let before = expected.iter().zip(&found).take_while(same).count();
    let (expected, found) = (&expected[before..], &found[before..]);
    let after = expected.iter().rev().zip(found.iter().rev()).take_while(same).count();
    let removed = expected[..expected.len() - after].iter().map(|line| format!("- {line}"));
    let added = found[..found.len() - after].iter().map(|line| format!("+ {line}"));
    format!("after line {before}:\n{}", removed.chain(added).collect::<Vec<_>>().join("\n"))
}

/// With `GOLDEN_WRITE=1` in the environment the expected files are written instead of compared.
#[test]
fn bad_files_are_reported_as_expected() {
    let write = std::env::var_os("GOLDEN_WRITE").is_some();
    let mut differences = Vec::new();
    for file in bad_files() {
        let found = format!("{}\n", report(&file));
        let golden = file.with_extension("expected");
        if write {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if expected != found {
            differences.push(format!("{}:\n{}", file.display(), difference(&expected, &found)));
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n\n"));
}

#[test]
fn there_are_bad_files() {
    assert!(bad_files().len() >= 10);
}
