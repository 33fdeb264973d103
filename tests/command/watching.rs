//! What people see of a run in progress: the progress line, `watch`, `logs` and a worker, in a real terminal.

use crate::support::{Place, until};
use crate::terminal::{Screen, Terminal};

/// Continues until it is stopped.
const ENDLESS: &str = r#"
name = "endless"
problem = { kind = "onemax", length = 16, work = 200000 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 2 }
migration = { interval = 5 }
budget = { generations = 100000000, wall_time = "3m" }
"#;

const TINY: &str = r#"
name = "tiny"
problem = { kind = "onemax", length = 16 }
algorithm = { kind = "ga", population = 12 }
islands = { count = 3 }
migration = { interval = 5 }
budget = { generations = 20 }
"#;

/// What stands before ` left` on a line.
fn left(shown: &str) -> String {
    let (before, _) = shown.rsplit_once(" left").expect("the time that is left");
    before.rsplit(", ").next().expect("a part").to_owned()
}

#[test]
fn a_run_shows_when_its_budget_ends_and_takes_the_line_away() {
    let place = Place::new();
    place.write("endless.toml", ENDLESS);
    let mut terminal = Terminal::start(&place, &["run", "endless.toml"]);
    let shown = terminal.wait_for(&[" left"]);
    assert!(shown.contains("generation "), "{shown}");
    let left = left(&shown);
    assert!(left.starts_with("2m") || left.starts_with("3m"), "that of the time, not of generations: {left}");
    // Another process sees the same.
    let mut watching = Terminal::start(&place, &["watch", "endless"]);
    let seen = watching.wait_for(&[" left"]);
    let seen = self::left(&seen);
    assert!(seen.starts_with("2m") || seen.starts_with("3m"), "{seen}");
    watching.signal("INT");
    watching.wait_for(&["stopped watching; the run continues"]);
    assert_eq!(watching.ended(), Some(130));
    terminal.signal("INT");
    terminal.wait_for(&["stopping at the next generation"]);
    terminal.wait_for(&["stopped; all completed work is kept"]);
    assert_eq!(terminal.ended(), Some(130));
    let rest = terminal.rest();
    assert!(!rest.contains("generation "), "the line is gone: {rest:?}");
    // Now no process works on it.
    let mut watching = Terminal::start(&place, &["watch", "endless"]);
    watching.wait_for(&["no process works on endless-"]);
    assert_eq!(watching.ended(), Some(1));
    let logs = place.run(&["logs", "endless", "--follow"]);
    assert!(logs.expect(0).stderr.contains("no process works on"), "{logs:?}");
    let listed = place.json(&["runs", "--json"]);
    assert_eq!(listed[0]["state"], "stopped");
}

#[test]
fn a_narrow_terminal_shows_whole_numbers() {
    let place = Place::new();
    place.write("endless.toml", ENDLESS);
    let mut terminal = Terminal::of(place.command(&["run", "endless.toml"]), (24, 40));
    // At 40 columns the bar left room for `generation 0/10`.
    let mut screen = Screen::new((24, 40));
    terminal.wait_until(&mut screen, "the goal, whole, and the time that is left", |rows| {
        rows.iter().any(|row| row.contains("/100000000") && row.ends_with(" left"))
    });
    terminal.signal("INT");
    assert_eq!(terminal.ended(), Some(130));
}

/// One island has recorded epochs, and another one has not yet.
#[test]
fn a_stopped_run_stands_alike_wherever_it_is_shown() {
    let place = Place::new();
    let text = r#"
        name = "uneven"
        problem = { kind = "onemax", length = 16, work = 20000 }
        algorithm = { kind = "ga", population = 4 }
        migration = { interval = 5 }
        budget = { generations = 100000000 }
        checkpoint = { every = 1 }
        [islands]
        count = 2
        topology = "isolated"
        [[islands.override]]
        islands = [1]
        algorithm = { kind = "ga", population = 8000 }
        "#;
    place.write("uneven.toml", text);
    let running = place.start(&["run", "uneven.toml", "--threads", "2"]);
    until("an island has recorded an epoch", || {
        place.kept().first_key_value().is_some_and(|(_, &generation)| generation >= 10)
    });
    running.signal("INT");
    running.finish().expect(130);
    let listed = place.json(&["runs", "--json"])[0].clone();
    let watched = place.run(&["watch", "latest", "--json"]);
    let watched = watched.expect(1).json();
    let reported = place.json(&["report", "latest", "--json"]);
    for found in [&listed, &watched, &reported] {
        assert_eq!(found["generations"], 0, "{found}");
        assert_eq!(found["best_fitness"], listed["best_fitness"], "{found}");
    }
    assert!(listed["best_fitness"].is_number(), "{listed}");
    assert_eq!(watched["evaluations"], reported["evaluations"]);
    let verified = place.json(&["verify", "latest", "--json"]);
    for state in [&listed, &watched, &reported, &verified].map(|found| &found["state"]) {
        assert_eq!(state, "stopped");
    }
    let explained = place.run(&["explain", "latest"]);
    assert!(explained.expect(0).stdout.contains("is stopped"), "{explained:?}");
}

#[test]
fn a_run_of_this_machine_is_watched_on_the_whole_screen() {
    const SIZE: (u16, u16) = (24, 80);
    let place = Place::new();
    let many = ENDLESS
        .replace("count = 2", "count = 60")
        .replace("200000", "2000")
        .replace("budget", "checkpoint = { every = \"100ms\" }\nbudget");
    place.write("endless.toml", many);
    let mut running = Terminal::start(&place, &["run", "endless.toml"]);
    running.wait_for(&["generation "]);
    let mut watching = Terminal::of(place.command(&["watch", "endless"]), SIZE);
    let mut screen = Screen::new(SIZE);
    watching.wait_until(&mut screen, "islands below the headline", |rows| {
        rows[0].starts_with("endless-")
            && rows[0].contains("running")
            && rows.iter().any(|row| row.contains(" 47:"))
    });
    watching.signal("INT");
    watching.wait_for(&["stopped watching; the run continues"]);
    assert_eq!(watching.ended(), Some(130));
    running.signal("INT");
    assert_eq!(running.ended(), Some(130));
}

#[test]
fn watching_what_is_not_there_ends_and_names_what_is() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let run = place.json(&["run", "tiny.toml", "--json"])["run"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::start(&place, &["watch", "tinny"]);
    let shown = terminal.wait_for(&["there is no run `tinny`"]);
    assert_eq!(terminal.ended(), Some(1));
    let shown = shown + &terminal.rest();
    assert!(shown.contains(&format!("did you mean `{run}`?")), "{shown}");
    let mut terminal = Terminal::start(&place, &["watch", &run]);
    terminal.wait_for(&["finished: "]);
    assert_eq!(terminal.ended(), Some(0));
    place.json(&["run", "tiny.toml", "--seed", "5", "--json"]);
    place.run(&["watch", "tiny"]).expect_error(2, &["found 2 that begin with `tiny`"]);
}

/// Its coordinator serves the store at an address that no other command knows.
#[test]
fn a_run_in_worker_processes_is_watched_too() {
    let place = Place::new();
    let slow = ENDLESS.replace("wall_time = \"3m\"", "wall_time = \"2s\"");
    place.write("slow.toml", slow);
    let mut running = place.start(&["run", "slow.toml", "--workers", "1", "--json"]);
    running.wait_for("run endless-");
    let watched = place.json(&["watch", "endless", "--json"]);
    assert_eq!(watched["state"], "finished", "{watched}");
    assert_eq!(running.finish().expect(0).json()["digest"], watched["digest"]);
}

#[test]
fn a_worker_in_a_terminal_shows_what_it_waits_for() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &["worker", "--coordinator", "http://127.0.0.1:9"]);
    terminal.wait_for(&["the coordinator does not respond; trying again"]);
    terminal.signal("INT");
    terminal.wait_for(&["asked to stop before a coordinator had answered"]);
    assert_eq!(terminal.ended(), Some(130));
}
