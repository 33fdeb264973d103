//! Every test that `docs/guarantees.md` names exists.

use std::path::Path;

/// The sources below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &std::fs::read_to_string(path).unwrap();
        }
    }
}

#[test]
fn every_guarantee_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/guarantees.md")).unwrap();
    let mut code = String::new();
    for folder in ["tests", "shared", "coordinator", "worker", "proto", "src"] {
        sources(&root.join(folder), &mut code);
    }
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise"));
    let mut count = 0;
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test shows: {row}");
        for name in names {
            // What takes longer than the suite is a target of `tests/long`.
            let is_test = name
                .strip_prefix("./tests/long ")
                .map(|target| root.join("tests/long.d").join(target).is_file());
            let is_test = is_test.unwrap_or_else(|| {
                code.split("#[").any(|item| {
                    let is_marked = item.starts_with("test]") || item.starts_with("tokio::test");
                    // A property test may follow its attributes after comments.
                    is_marked && item.contains(&format!("fn {name}("))
                })
            });
            assert!(is_test, "no test is called `{name}`: {row}");
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} tests are named");
}
