//! A release is what it says: archives with their sums, a bill of materials, how it was built, and an installer.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn expect_success(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A release of a program that stands for ours: packing hundreds of megabytes shows nothing more.
fn release(folder: &TempDir, name: &str) -> PathBuf {
    let made = Command::new(root().join("tests/referees/setup")).arg("operators").status();
    assert!(made.is_ok_and(|status| status.success()), "the environments of referees can be made");
    let program = folder.path().join("program");
    let script = "#!/bin/sh\ncase \"$1\" in man) mkdir \"$3\" ;; --version) echo atoll 0.0.0 ;; esac\n";
    std::fs::write(&program, script).unwrap();
    let to = folder.path().join(name);
    let mut command = Command::new(root().join("deploy/release"));
    command.arg("--to").arg(&to).arg("--binary").arg(&program).stdin(Stdio::null());
    let command = command.env("HELM", root().join("target/referees/operators/bin/helm"));
    expect_success(&command.output().unwrap());
    to
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn json(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_release_is_whole_reproducible_and_installs_only_what_it_lists() {
    let folder = tempfile::tempdir().unwrap();
    let made = release(&folder, "first");
    let version = env!("CARGO_PKG_VERSION");
    let names = files(&made);
    let archive = names.iter().find(|name| name.ends_with(".tar.gz")).unwrap().clone();
    let chart = format!("atoll-{version}.tgz");
    for name in ["SHA256SUMS", "install.sh", "release.json", &chart] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    let mut sums = Command::new("sha256sum");
    expect_success(&sums.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&made).output().unwrap());

    let bill = json(&made.join(archive.replace(".tar.gz", ".cdx.json")));
    assert_eq!(
        (&bill["bomFormat"], &bill["metadata"]["component"]["version"]),
        (&"CycloneDX".into(), &version.into())
    );
    let components = bill["components"].as_array().unwrap();
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    let linked = named("tonic").unwrap();
    assert_eq!(linked["hashes"][0]["content"].as_str().unwrap().len(), 64, "{linked}");
    assert!(
        named("object_store").is_some() && named("proptest").is_none(),
        "what is linked, and nothing else"
    );
    assert!(components.iter().all(|component| component["licenses"][0]["expression"].is_string()));

    let provenance = json(&made.join("release.json"));
    let subjects = provenance["subject"].as_array().unwrap();
    assert!(subjects.iter().any(|subject| subject["name"] == archive), "{provenance}");
    let details = &provenance["predicate"]["runDetails"]["metadata"]["notBuilt"];
    assert!(details.to_string().contains("images"), "what is missing is said: {details}");

    let again = release(&folder, "second");
    let read = |folder: &Path| std::fs::read(folder.join(&archive)).unwrap();
    assert!(read(&made) == read(&again), "the same source gives the same bytes");

    let bin = folder.path().join("bin");
    let install = || {
        let mut command = Command::new("sh");
        command.arg(made.join("install.sh")).arg(&bin).env("ATOLL_RELEASE", &made).output().unwrap()
    };
    expect_success(&install());
    assert_eq!(
        expect_success(&Command::new(bin.join("atoll")).arg("--version").output().unwrap()),
        "atoll 0.0.0\n"
    );
    std::fs::remove_dir_all(&bin).unwrap();
    std::fs::write(made.join(&archive), "altered").unwrap();
    let refused = install();
    assert!(!refused.status.success() && !bin.exists());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another SHA-256 sum"));
}
