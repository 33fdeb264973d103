//! One experiment and one seed have one digest: with any number of threads, after a crash, after Ctrl-C, in any build.

use crate::support::{MAZE, Place, RASTRIGIN, until, with_checkpoints};
use std::io::Write;
use std::process::{Command, Stdio};

/// Golden: a change of these changes every result there is, and calls for a new version of semantics.
const MAZE_DIGEST: &str = "f75e787561b1672dc776ef0c68607c79d7a8c59d76a6f58c1f0bda94b77253d0";
const RASTRIGIN_DIGEST: &str = "22897d9ed4927049bc4f4c8c36eb19b8453994ea5ac6233754c4a9debcadc36e";

fn digest(place: &Place, arguments: &[&str]) -> String {
    place.json(arguments)["digest"].as_str().expect("a digest").to_owned()
}

fn same_with_any_threads(experiment: &str, golden: &str) {
    for threads in ["1", "2", "4"] {
        let place = Place::new();
        place.write("experiment.toml", experiment);
        let found = digest(&place, &["run", "experiment.toml", "--json", "--threads", threads]);
        assert_eq!(found, golden, "with {threads} threads");
    }
}

#[test]
fn a_maze_has_one_digest_with_any_threads() {
    same_with_any_threads(MAZE, MAZE_DIGEST);
}

#[test]
fn rastrigin_has_one_digest_with_any_threads() {
    same_with_any_threads(RASTRIGIN, RASTRIGIN_DIGEST);
}

/// Killed in the middle and resumed with another number of threads.
fn same_after_a_crash(experiment: &str, golden: &str) {
    let place = Place::new();
    place.write("experiment.toml", with_checkpoints(experiment, "7"));
    let run = place.start(&["run", "experiment.toml", "--json", "--threads", "2"]);
    until("something is kept of each island", || {
        let kept = place.kept();
        kept.len() == 8 && kept.values().all(|&generation| generation > 0)
    });
    assert!(run.kill().was_killed(), "it is in the middle");
    assert_eq!(digest(&place, &["resume", "--json", "--threads", "1"]), golden);
}

#[test]
fn a_maze_has_one_digest_after_a_crash() {
    same_after_a_crash(MAZE, MAZE_DIGEST);
}

#[test]
fn rastrigin_has_one_digest_after_a_crash() {
    same_after_a_crash(RASTRIGIN, RASTRIGIN_DIGEST);
}

/// Interrupted in the middle, and the same command given again.
fn same_after_an_interruption(experiment: &str, golden: &str) {
    let place = Place::new();
    place.write("experiment.toml", with_checkpoints(experiment, "9"));
    let run = place.start(&["run", "experiment.toml", "--json", "--threads", "2"]);
    until("something is kept of an island", || place.kept().values().any(|&generation| generation > 0));
    run.signal("INT");
    run.finish().expect_error(130, &["stopped", "atoll resume"]);
    assert_eq!(digest(&place, &["run", "experiment.toml", "--json", "--threads", "2"]), golden);
}

#[test]
fn a_maze_has_one_digest_after_an_interruption() {
    same_after_an_interruption(MAZE, MAZE_DIGEST);
}

#[test]
fn rastrigin_has_one_digest_after_an_interruption() {
    same_after_an_interruption(RASTRIGIN, RASTRIGIN_DIGEST);
}

#[test]
fn another_seed_has_another_digest() {
    let place = Place::new();
    place.write("maze.toml", MAZE);
    assert_ne!(digest(&place, &["run", "maze.toml", "--json", "--seed", "8"]), MAZE_DIGEST);
}

/// The digest that an optimised build comes to: of everything that computes, without the command around it. What only
/// reads the experiment is not optimised here, because that would take as long again.
fn optimised(experiment: &str) -> String {
    let mut program = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--locked", "--package", "archipelago", "--example", "digest"])
        .args(["--config", "profile.release.package.'*'.opt-level=0"])
        .args(["--config", "profile.release.package.experiment.opt-level=0"])
        // The lints are those of the tests' own build.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().expect("it is piped").write_all(experiment.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn release_builds_have_the_same_digest() {
    for (experiment, golden) in [(MAZE, MAZE_DIGEST), (RASTRIGIN, RASTRIGIN_DIGEST)] {
        assert_eq!(optimised(experiment), golden);
    }
}
