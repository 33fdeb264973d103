//! Runs killed at any moment lose no more than they may, and nothing in the store is ever half-written.

use crate::support::{Place, Seeded, pause, until};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const KILLS: u32 = 50;

fn experiment(checkpoint: &str, interval: u64, generations: u64, work: u64) -> String {
    format!(
        r#"
        name = "crashes"
        seed = 3
        problem = {{ kind = "onemax", length = 200, work = {work} }}
        algorithm = {{ kind = "ga", population = 10 }}
        islands = {{ count = 4 }}
        migration = {{ interval = {interval}, count = 1 }}
        budget = {{ generations = {generations} }}
        checkpoint = {{ every = {checkpoint} }}
        "#
    )
}

/// Lets a process run for a while.
fn go_on_for(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        pause();
    }
}

/// Kills a run again and again at moments drawn from a seed, and finishes it.
fn survive(checkpoint: &str, interval: u64, generations: u64, kills: u32, seed: u64) {
    let text = experiment(checkpoint, interval, generations, 90_000);
    let calm = Place::new();
    calm.write("experiment.toml", &text);
    let expected = calm.json(&["run", "experiment.toml", "--json"])["digest"].clone();

    let place = Place::new();
    place.write("experiment.toml", &text);
    let mut moments = Seeded::new(seed);
    let mut kept = BTreeMap::new();
    let mut killed = 0;
    for _ in 0..kills {
        let run = place.start(&["run", "experiment.toml", "--threads", "2"]);
        go_on_for(Duration::from_millis(moments.below(40)));
        killed += u32::from(run.kill().was_killed());
        let now = place.kept();
        assert!(kept.iter().all(|(island, before)| now[island] >= *before), "{kept:?}, then {now:?}");
        kept = now;
    }
    assert_eq!(killed, kills, "it was under way every time");
    // It may have come to its end just before the last kill.
    let resumed = place.json(&["run", "experiment.toml", "--json"]);
    assert_eq!(resumed["digest"], expected);
    let run = place.only_run();
    let verified = place.json(&["verify", &run, "--json"]);
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(verified["epochs"], 4 * generations.div_ceil(interval), "{verified}");
    assert_eq!(verified["recomputed"], verified["epochs"], "{verified}");
}

#[test]
fn a_run_survives_fifty_kills() {
    survive("5", 12, 600, KILLS, 1);
}

#[test]
fn a_run_with_checkpoints_by_time_survives_kills() {
    survive("\"20ms\"", 40, 200, 12, 2);
}

/// Four islands of players, whose generations take some tenths of a second.
const SELF_PLAY: &str = r#"
    name = "crashes"
    seed = 3
    problem = { kind = "checkers", depth = 3, games = 3, colours = "swapped", openings = "deck" }
    algorithm = { kind = "es", parents = 4, offspring = 4 }
    islands = { count = 4 }
    migration = { interval = 5, count = 1 }
    budget = { generations = 1000000 }
    checkpoint = { every = 1 }
"#;

/// The process is frozen; what is kept then is what a crash would leave. Then it is let go and asked to stop, and what
/// it keeps at the next generation is how far it was. Answers with the most that an island would have lost.
fn lost_most(experiment: &str, rounds: u32) -> u64 {
    let place = Place::new();
    place.write("experiment.toml", experiment);
    let mut moments = Seeded::new(9);
    let mut lost_most = 0;
    for _ in 0..rounds {
        let mut run = place.start(&["run", "experiment.toml", "--threads", "2"]);
        run.wait_for("run crashes");
        let before = place.kept();
        until("more is kept", || place.kept() != before);
        go_on_for(Duration::from_millis(moments.below(600)));
        run.signal("STOP");
        let frozen = place.kept();
        run.signal("INT");
        run.signal("CONT");
        run.finish().expect(130);
        let reached = place.kept();
        let lost = |(island, reached): (&u64, &u64)| reached - frozen.get(island).copied().unwrap_or(0);
        lost_most = reached.iter().map(lost).max().unwrap_or(0).max(lost_most);
    }
    assert!(lost_most > 0, "it was never caught between two checkpoints");
    lost_most
}

#[test]
fn a_crash_costs_no_more_than_checkpoint_every() {
    // Epochs are shorter than checkpoints are apart, so that both share what may be lost.
    let lost = lost_most(&experiment("20", 19, 1_000_000, 4_000_000), 6);
    // Some generations pass while the signal is on its way; they are long, because a busy machine lets it wait.
    assert!(lost <= 20 + 6, "an island would have lost {lost} generations");
}

#[test]
fn a_crash_of_self_play_costs_one_generation_and_the_one_under_way() {
    let lost = lost_most(SELF_PLAY, 8);
    assert!(lost <= 1 + 1, "an island would have lost {lost} generations");
}
