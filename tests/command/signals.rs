//! Ctrl-C and SIGTERM: what was done is kept, the exit code says which it was, and no command waits ten seconds.

use crate::support::Place;
use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long a process may take to go.
const GONE: Duration = Duration::from_secs(10);

/// Islands whose generations take this number of nanoseconds each.
fn experiment(nanoseconds: u64) -> String {
    format!(
        r#"
        name = "signals"
        problem = {{ kind = "onemax", length = 100, work = {} }}
        algorithm = {{ kind = "ga", population = 10 }}
        islands = {{ count = 4 }}
        migration = {{ interval = 1000 }}
        budget = {{ generations = 1000000 }}
        "#,
        nanoseconds / 10
    )
}

const MILLISECOND: u64 = 1_000_000;
const MINUTE: u64 = 60_000 * MILLISECOND;

fn stops(signal: &str, code: i32) {
    let place = Place::new();
    place.write("experiment.toml", experiment(MILLISECOND));
    let mut run = place.start(&["run", "experiment.toml", "--json", "--threads", "2"]);
    run.wait_for("run signals");
    let asked = Instant::now();
    run.signal(signal);
    let finished = run.finish();
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
    finished.expect_error(code, &["stopped; all completed work is kept", "atoll resume signals-"]);

    // It continues from there, and can be stopped again.
    let mut resumed = place.start(&["resume", "--json"]);
    resumed.wait_for("run signals");
    resumed.signal(signal);
    resumed.finish().expect_error(code, &[]);
    let run = place.only_run();
    assert_eq!(place.json(&["verify", &run, "--json"])["ok"], true);
}

#[test]
fn an_interrupted_run_exits_with_130() {
    stops("INT", 130);
}

#[test]
fn a_terminated_run_exits_with_143() {
    stops("TERM", 143);
}

#[test]
fn what_was_done_between_checkpoints_is_kept() {
    let place = Place::new();
    place.write("experiment.toml", experiment(MILLISECOND));
    let mut run = place.start(&["run", "experiment.toml", "--threads", "1"]);
    run.wait_for("run signals");
    // The first plain progress line comes after five seconds, long before the first checkpoint is due.
    run.wait_for("generation ");
    run.signal("TERM");
    run.finish().expect(143);
    let kept = place.kept();
    assert!(kept.values().any(|&generation| generation > 0), "{kept:?}");
}

#[test]
fn a_generation_that_takes_minutes_is_abandoned() {
    let place = Place::new();
    place.write("experiment.toml", experiment(MINUTE));
    let mut run = place.start(&["run", "experiment.toml", "--json", "--threads", "1"]);
    run.wait_for("run signals");
    let asked = Instant::now();
    run.signal("TERM");
    run.finish().expect_error(143, &["stopping at the next generation"]);
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
}

#[test]
fn a_second_signal_is_obeyed_at_once() {
    let place = Place::new();
    place.write("experiment.toml", experiment(MINUTE));
    let mut run = place.start(&["run", "experiment.toml", "--json", "--threads", "1"]);
    run.wait_for("run signals");
    run.signal("INT");
    run.wait_for("stopping at the next generation");
    let asked_again = Instant::now();
    run.signal("INT");
    run.finish().expect_error(130, &[]);
    assert!(asked_again.elapsed() < Duration::from_secs(6), "{:?}", asked_again.elapsed());
}

#[test]
fn a_sweep_stops_and_goes_on() {
    let place = Place::new();
    let axis = "[[sweep.axis]]\nkeys = [\"algorithm.population\"]\nvalues = [10, 12, 14]\n";
    let slow = experiment(MILLISECOND).replace("name = \"signals\"", "name = \"sweep\"");
    place.write("sweep.toml", format!("{slow}\n{axis}"));
    let mut sweep = place.start(&["run", "sweep.toml", "--json", "--threads", "2"]);
    sweep.wait_for("sweep sweep");
    let asked = Instant::now();
    sweep.signal("INT");
    // Its cells have one epoch of a thousand generations, so it must stop between generations.
    sweep.finish().expect_error(130, &["stopped; all completed work is kept"]);
    assert!(asked.elapsed() < GONE, "{:?}", asked.elapsed());
}

/// `atoll run FILE 2>&1 | head`, and a log on a full disk: messages are lost, and nothing else.
#[test]
fn a_command_whose_messages_cannot_be_written_finishes_its_work() {
    let place = Place::new();
    let quick = experiment(10).replace("generations = 1000000", "generations = 20");
    place.write("experiment.toml", &quick);
    let pipe = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for (stderr, seed) in [(pipe(), "1"), (full(), "2")] {
        let arguments = ["run", "experiment.toml", "--json", "--seed", seed];
        let output = place.command(&arguments).stdout(Stdio::piped()).stderr(stderr).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["generations"], 20);
    }
    for stderr in [pipe(), full()] {
        let status = place.command(&["run", "missing.toml"]).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(78));
    }
}
