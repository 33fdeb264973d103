//! A release is what it says: archives with their sums, a bill of materials, how it was built, and an installer.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
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
    let to = folder.path().join(name);
    let mut command = command(folder, &to);
    let command = command.env("HELM", root().join("target/referees/operators/bin/helm"));
    expect_success(&command.output().unwrap());
    to
}

/// What makes a release of a program that stands for ours.
fn command(folder: &TempDir, to: &Path) -> Command {
    let script = "#!/bin/sh\ncase \"$1\" in\nman) mkdir \"$3\"; echo page >\"$3/atoll.1\" ;;\n\
                  completions) echo \"of $2\" ;;\n--version) echo atoll 0.0.0 ;;\nesac\n";
    let program = program(folder, "program", script);
    let mut command = Command::new(root().join("deploy/release"));
    command.arg("--to").arg(to).arg("--binary").arg(&program).stdin(Stdio::null());
    command
}

fn program(folder: &TempDir, name: &str, script: &str) -> PathBuf {
    let program = folder.path().join(name);
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// The archive of another target has a binary that cannot run here; its man pages and completions are written all the same.
#[test]
fn every_archive_has_man_pages_and_completions_and_a_failure_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let native = command(&folder, Path::new("unused")).get_args().last().unwrap().to_owned();
    let foreign = program(&folder, "foreign", "#!/bin/sh\nexit 126\n");
    let to = folder.path().join("release");
    let mut command = Command::new(root().join("deploy/release"));
    command.arg("--to").arg(&to).args(["--target", "aarch64-unknown-linux-gnu", "--binary"]).arg(&foreign);
    command.arg("--host").arg(&native).env("HELM", "no-helm").stdin(Stdio::null());
    expect_success(&command.output().unwrap());
    let name = format!("atoll-{}-aarch64-unknown-linux-gnu", env!("CARGO_PKG_VERSION"));
    let mut list = Command::new("tar");
    let listed = expect_success(&list.arg("-tzf").arg(to.join(format!("{name}.tar.gz"))).output().unwrap());
    for file in ["atoll", "man/atoll.1", "atoll.bash", "atoll.zsh", "atoll.fish", "README.md"] {
        assert!(listed.lines().any(|line| line == format!("{name}/{file}")), "{file}: {listed}");
    }

    // A chart that cannot be read: no sums of the rest are published.
    let script = "#!/bin/sh\nfor last; do :; done\nmkdir \"$last/atoll-0.0.0.tgz\"\n";
    let helm = program(&folder, "helm", script);
    let broken = folder.path().join("broken");
    let failed = self::command(&folder, &broken).env("HELM", &helm).output().unwrap();
    assert!(!failed.status.success(), "{failed:?}");
    assert!(!broken.join("SHA256SUMS").exists() && !broken.join("release.json").exists());
}

/// A redirect to an address without encryption would let anyone on the way choose the sums and the binary.
#[test]
fn the_installer_does_not_leave_encryption() {
    let script = std::fs::read_to_string(root().join("deploy/install.sh")).unwrap();
    let encrypted = script.lines().find(|line| line.trim_start().starts_with("https://*)")).unwrap();
    assert!(encrypted.contains("--proto '=https'"), "{encrypted}");
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
    let listed = std::fs::read_to_string(made.join("SHA256SUMS")).unwrap();
    for name in names.iter().filter(|name| *name != "SHA256SUMS") {
        assert!(listed.lines().any(|line| line.ends_with(&format!("  {name}"))), "{name}: {listed}");
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

    let (bin, share) = (folder.path().join("bin"), folder.path().join("share"));
    let install = || {
        let mut command = Command::new("sh");
        command.arg(made.join("install.sh")).arg(&bin).env("ATOLL_RELEASE", &made).output().unwrap()
    };
    expect_success(&install());
    assert_eq!(
        expect_success(&Command::new(bin.join("atoll")).arg("--version").output().unwrap()),
        "atoll 0.0.0\n"
    );
    for (file, text) in [
        ("man/man1/atoll.1", "page\n"),
        ("bash-completion/completions/atoll", "of bash\n"),
        ("zsh/site-functions/_atoll", "of zsh\n"),
        ("fish/vendor_completions.d/atoll.fish", "of fish\n"),
    ] {
        assert_eq!(std::fs::read_to_string(share.join(file)).unwrap(), text, "{file}");
    }
    std::fs::remove_dir_all(&share).unwrap();
    std::fs::remove_dir_all(&bin).unwrap();
    std::fs::write(made.join(&archive), "altered").unwrap();
    let refused = install();
    assert!(!refused.status.success() && !bin.exists() && !share.exists());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("another SHA-256 sum"));
}
