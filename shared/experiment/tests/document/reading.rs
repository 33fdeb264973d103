//! Files that are too long, endless or no text, and texts made to exhaust a parser.

use crate::types;
use experiment::document::{self, MAX_BYTES, MAX_STORED, ReadError, read_limited, read_limited_from};
use std::fs::{self, File};
use std::io;
use std::path::Path;

#[test]
fn the_longest_file_is_read_and_a_longer_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.toml");
    fs::write(&path, "#".repeat(MAX_BYTES as usize)).unwrap();
    assert_eq!(read_limited(&path).unwrap().len() as u64, MAX_BYTES);
    // A sparse file: 100 GB by its own account, and nothing on the disk.
    File::options().write(true).open(&path).unwrap().set_len(100 << 30).unwrap();
    let message = read_limited(&path).unwrap_err().to_string();
    assert_eq!(message, format!("{}: expected at most 1048576 bytes, found more", path.display()));
}

#[test]
fn what_never_ends_is_not_read_to_its_end() {
    assert!(matches!(read_limited_from("endless", io::repeat(b'#')), Err(ReadError::TooLong { .. })));
}

#[cfg(unix)]
#[test]
fn folders_devices_and_pipes_are_refused() {
    let message = |path: &str| read_limited(Path::new(path)).unwrap_err().to_string();
    assert_eq!(message("/dev/zero"), "/dev/zero: expected a file, found a pipe or device");
    assert_eq!(message("/"), "/: expected a file, found a folder");
    let missing = message("/no/such/file.toml");
    assert_eq!(missing, "file not found: /no/such/file.toml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("quickstart.toml"), "").unwrap();
    let missing = message(folder.path().join("quikstart.toml").to_str().unwrap());
    assert!(missing.ends_with("quickstart.toml`?") && missing.contains("; did you mean `"), "{missing}");
    let program = std::env::current_exe().unwrap();
    assert!(message(program.to_str().unwrap()).ends_with(": expected text in TOML, found binary data"));
}

#[test]
fn a_missing_file_is_looked_for_in_folders_near_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["examples/quickstart.toml", "examples/maze.toml", "more/maze.toml", ".old/tournament.toml"] {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), "").unwrap();
    }
    let meant = |name: &str| match read_limited(&at(name)) {
        Err(ReadError::Missing { near, .. }) => near,
        other => panic!("{other:?}"),
    };
    let file = |name: &str| Some(at(name).display().to_string());
    assert_eq!(meant("quickstrat.toml"), file("examples/quickstart.toml"), "in a folder beside it");
    assert_eq!(meant("maze.toml"), file("examples/maze.toml"), "the first of two");
    assert_eq!(meant("exmaples/quickstart.toml"), file("examples/quickstart.toml"), "a misspelt folder");
    assert_eq!(meant("more/maize.toml"), file("more/maze.toml"), "its own folder");
    assert_eq!(meant("tournament.toml"), None, "hidden folders are not searched");
    assert_eq!(meant("elsewhere/checkers.toml"), None);
    fs::write(at("maze.toml.bak"), "").unwrap();
    fs::write(at("mazes.toml"), "").unwrap();
    assert_eq!(meant("maze2.toml"), file("mazes.toml"), "its own folder comes first");
}

#[test]
fn bytes_that_are_no_text_have_a_place() {
    let error = read_limited_from("latin.toml", &b"seed = 1\nname = \"\xc3\xa9t\xe9\"\n"[..]).unwrap_err();
    assert_eq!(error.to_string(), "latin.toml:2:11: expected UTF-8 text, found the byte `0xe9`");
}

/// Checked on a small stack: what is nested too deeply must be refused before anything recurses into it.
#[test]
fn hostile_texts_are_refused() {
    let limit = MAX_BYTES as usize;
    let texts = [
        format!("a = {}", "[".repeat(limit - 4)),
        format!("a = {}", "{a=".repeat(limit / 3 - 4)),
        format!("{} = 1", "a.".repeat(limit / 2 - 10)),
        format!("[{}a]", "a.".repeat(limit / 2 - 10)),
        format!("a = 1\na = {}1{}", format!("{{ {} = ", ["a"; 79].join(".")).repeat(79), "}".repeat(79)),
        "a = 1\n".repeat(limit / 6),
        "[[a]]\n".repeat(limit / 6),
        "[a]\n".repeat(limit / 4),
        "\u{0}".repeat(limit),
        "\"".repeat(limit),
        "= = =\n".repeat(limit / 6),
        "x".repeat(MAX_STORED as usize + 1),
        format!("{} = 1", "k".repeat(limit - 4)),
        (0..limit / 11).map(|key| format!("k{key:06}=1")).collect::<Vec<_>>().join("\n"),
        format!("seed = {}", "9".repeat(limit - 7)),
    ];
    let checked = std::thread::Builder::new().stack_size(512 << 10).spawn(move || {
        for text in texts {
            let decoded =
                document::parse("bad.toml", &text).and_then(|d| d.decode::<types::Config>(&types::schema()));
            let report = decoded.unwrap_err();
            assert!(report.problems.len() <= document::MAX_DIAGNOSTICS);
            assert!(report.to_string().len() < 100_000);
        }
    });
    checked.unwrap().join().unwrap();
}
