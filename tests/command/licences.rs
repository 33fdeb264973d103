//! Every dependency may be used: its licence is one of those that `deny.toml` allows. The rest of `deny.toml` needs a
//! program of its own: `tests/long deny`.

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Output};

/// The licences that `deny.toml` allows.
fn allowed() -> BTreeSet<&'static str> {
    let list = include_str!("../../deny.toml").split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether an SPDX expression can be met: `AND` binds more than `OR`, and a slash is an old `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let words = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let (met, rest) = any(&words, allowed);
    assert!(rest.is_empty(), "{expression}");
    met
}

fn any<'a, 'b>(words: &'a [&'b str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'b str]) {
    let (mut met, mut rest) = all(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (other, left) = all(after, allowed);
        (met, rest) = (met | other, left);
    }
    (met, rest)
}

fn all<'a, 'b>(words: &'a [&'b str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'b str]) {
    let (mut met, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (other, left) = one(after, allowed);
        (met, rest) = (met & other, left);
    }
    (met, rest)
}

fn one<'a, 'b>(words: &'a [&'b str], allowed: &BTreeSet<&str>) -> (bool, &'a [&'b str]) {
    match words {
        ["(", inside @ ..] => {
            let (met, rest) = any(inside, allowed);
            (met, rest.strip_prefix(&[")"]).expect("a parenthesis is closed"))
        }
        [licence, "WITH", exception, rest @ ..] => {
            let with = format!("{licence} WITH {exception}");
            (allowed.contains(with.as_str()) || allowed.contains(licence), rest)
        }
        [licence, rest @ ..] => (allowed.contains(licence), rest),
        [] => panic!("expected a licence, found nothing"),
    }
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    let allowed = BTreeSet::from(["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"]);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND Unicode-3.0", true),
        ("GPL-3.0 OR MIT AND Apache-2.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
    ] {
        assert_eq!(is_met(expression, &allowed), expected, "{expression}");
    }
}

/// Everything that the lock file names, crates of other platforms included: a machine that has only built the project has
/// not downloaded those yet.
fn metadata() -> Output {
    let ask = |more: &[&str]| {
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--locked"])
            .args(more)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap()
    };
    let offline = ask(&["--offline"]);
    if offline.status.success() { offline } else { ask(&[]) }
}

#[test]
fn all_dependencies_are_permissive() {
    let metadata = metadata();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "dependencies are there: {}", packages.len());
    let allowed = allowed();
    let refused = packages.iter().filter(|package| {
        let licence = package["license"].as_str().unwrap_or("none");
        !is_met(licence, &allowed)
    });
    let refused: Vec<String> =
        refused.map(|package| format!("{}: {}", package["name"], package["license"])).collect();
    assert_eq!(refused, [""; 0]);
}
