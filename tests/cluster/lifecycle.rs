//! What operators do to runs, in any order: a run that was cancelled, failed or extended always gets to its end.

use crate::process::{Coordinator, EXPERIMENT, Folder, digest, json, text, wait_until};

/// Cells of about a second each.
const SLOW_SWEEP: &str = r#"
name = "slow-sweep"
problem = { kind = "onemax", length = 100, work = 700000 }
algorithm = { kind = "ga", population = 20 }
islands = { count = 1 }
budget = { generations = 40 }
sweep = { repeats = 2, axis = [{ keys = ["problem.length"], values = [20, 30] }] }
"#;

#[test]
fn a_run_that_was_cancelled_with_its_epochs_leased_finishes_when_it_is_submitted_again() {
    let folder = Folder::new();
    let plan = EXPERIMENT.replace("3000", "1500");
    let expected =
        digest(&folder.atoll(&["run", &folder.file("here.toml", &plan), "--json", "--store", "here"]));
    let coordinator = folder.coordinator(&["--lease", "500ms"]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&plan);
    coordinator.wait_for("atoll_run_generation", 100.0);
    assert!(coordinator.command(&["cancel", &run]).status.success());
    // The worker hears of it with its next renewal, and asks for other work.
    let status = || json(&coordinator.command(&["runs", "--json"])).as_array().unwrap()[0].clone();
    wait_until("the worker to leave the run", || status()["leases"] == 0);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(coordinator.submit(&plan), run);
    assert_eq!(coordinator.digest(&run), expected);
}

#[test]
fn a_sweep_that_was_cancelled_computes_the_cells_that_were_handed_out() {
    let folder = Folder::new();
    let expected =
        digest(&folder.atoll(&["run", &folder.file("here.toml", SLOW_SWEEP), "--json", "--store", "here"]));
    let coordinator = folder.coordinator(&["--lease", "500ms"]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(SLOW_SWEEP);
    coordinator.wait_for("atoll_run_leases", 1.0);
    assert!(coordinator.command(&["cancel", &run]).status.success());
    assert_eq!(coordinator.submit(SLOW_SWEEP), run);
    assert_eq!(coordinator.digest(&run), expected);
}

#[test]
fn a_cell_that_takes_longer_than_a_stall_is_not_begun_again() {
    let folder = Folder::new();
    let settings = [("ATOLL_STALL", "100ms"), ("ATOLL_HEDGE_AFTER", "1h")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let coordinator = folder.coordinator_with(&["--lease", "5s"], settings.to_vec());
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(SLOW_SWEEP);
    coordinator.digest(&run);
    assert_eq!(coordinator.metric("atoll_grants_total"), 4.0, "each cell is computed once");
    assert_eq!(coordinator.metric("atoll_leases_expired_total"), 0.0);
}

#[test]
fn an_early_end_may_be_followed_by_an_earlier_limit() {
    let folder = Folder::new();
    let plan = r#"
        name = "early"
        problem = { kind = "onemax", length = 20 }
        algorithm = { kind = "ga", population = 50 }
        islands = { count = 2 }
        migration = { interval = 10 }
        budget = { generations = 3000, target_fitness = 15 }
    "#;
    let ended = json(&folder.atoll(&["run", &folder.file("early.toml", plan), "--json"]));
    let (run, reached) = (ended["run"].as_str().unwrap(), ended["generations"].as_u64().unwrap());
    assert!(reached < 60, "{ended}");
    let output = folder.atoll(&["extend", run, "--generations", "60", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(json(&output)["generations"], 60);
    let verified = folder.atoll(&["verify", run]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

/// Two experiments of checkers players, and the tournament of their champions and species.
const STUDY: &str = r#"
name = "school"
budget = { generations = 3 }
migration = { interval = 1 }

[problem]
kind = "checkers"
depth = 1
games = 2
draw = { moves = 20 }

[algorithm]
kind = "es"
parents = 4
offspring = 4

[islands]
count = 2

[study]
first = {}
second = { guests = "first", seed = 5 }

[tournament]
openings = 2
species = { min_points = 2, noise = "nearest", depth = 1 }
players = [
    { name = "champion", player = "second/0" },
    { name = "vote", ensemble = "first" },
    { name = "counter", player = "material" },
]
"#;

/// A study of two experiments without a tournament.
const PLAIN_STUDY: &str = r#"
name = "small"
problem = { kind = "onemax", length = 40 }
algorithm = { kind = "ga", population = 30 }
islands = { count = 2 }
budget = { generations = 20 }
study = { first = {}, second = { guests = "first" } }
"#;

const TOURNAMENT: &str = r#"
name = "games"
tournament = { openings = 1, players = [{ name = "a", player = "random" }, { name = "b", player = "random" }] }
"#;

#[test]
fn every_kind_of_plan_has_one_digest_wherever_it_runs() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&["--store", "other"]);
    let _worker = coordinator.worker(&[]);
    let evolution = EXPERIMENT.replace("3000", "300");
    let sweep = SLOW_SWEEP.replace("work = 700000", "work = 1");
    let compare = |plan: &str| {
        let file = folder.file("plan.toml", plan);
        let here = json(&folder.atoll(&["run", &file, "--json", "--store", "here"]));
        let (run, expected) = (here["run"].as_str().unwrap(), here["digest"].as_str().unwrap());
        let workers = folder.atoll(&["run", &file, "--json", "--store", "there", "--workers", "2"]);
        assert_eq!(digest(&workers), expected, "{run} with workers");
        assert_eq!(coordinator.submit(plan), run);
        assert_eq!(coordinator.digest(run), expected, "{run} submitted");
        for store in ["here", "there", "other"] {
            let verified = folder.atoll(&["verify", run, "--store", store]);
            assert!(verified.status.success(), "{run} in {store}: {}", text(&verified.stdout));
        }
        run.to_owned()
    };
    for plan in [evolution.as_str(), &sweep, TOURNAMENT, PLAIN_STUDY] {
        compare(plan);
    }
    let study = compare(STUDY);
    compare(&format!(
        "name = \"evolved\"\n[tournament]\nopenings = 1\nspecies = {{ min_points = 2, noise = \"nearest\", depth = 1 }}\n\
         players = [{{ name = \"champion\", player = \"{study}.second/0\" }}, {{ name = \"vote\", ensemble = \"{study}.first\" }}, \
         {{ name = \"best\", representatives = \"{study}.first\" }}]"
    ));
}

#[test]
fn players_of_other_runs_are_looked_up_before_a_study_begins() {
    let folder = Folder::new();
    let (elder, _) = STUDY.split_once("[study]").unwrap();
    let elder = elder.replace("school", "elder");
    let run = json(&folder.atoll(&["run", &folder.file("elder.toml", &elder), "--json"]))["run"].clone();
    let run = run.as_str().unwrap();
    let study = |name: &str| STUDY.replace("player = \"material\"", &format!("player = \"{name}/0\""));
    // As a tournament of its own names runs.
    let plan = study("elder");
    let file = folder.file("school.toml", &plan);
    let here = json(&folder.atoll(&["run", &file, "--json"]));
    assert!(here["digest"].is_string(), "{here}");

    // A name that stands for no run is an error before anything is computed.
    let wrong = folder.file("wrong.toml", &study("younger"));
    let listed = || json(&folder.atoll(&["runs", "--json"])).as_array().unwrap().len();
    let before = listed();
    let refused = folder.atoll(&["run", &wrong]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("no run `younger`"), "{refused:?}");
    assert_eq!(listed(), before);

    let coordinator = folder.coordinator(&["--store", "other"]);
    let _worker = coordinator.worker(&[]);
    assert_eq!(coordinator.submit(&elder), run);
    coordinator.digest(run);
    let refused = coordinator.command(&["submit", &wrong]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("no run `younger`"), "{refused:?}");
    let submitted = coordinator.submit(&plan);
    assert_eq!(here["run"], submitted.as_str());
    assert_eq!(here["digest"], coordinator.digest(&submitted).as_str());

    // They are part of the study from then on, whatever becomes of that run.
    let verify = || folder.atoll(&["verify", &submitted]);
    for change in [&["extend", run, "--generations", "6"][..], &["rm", run, "--yes"]] {
        let changed = folder.atoll(change);
        assert!(changed.status.success(), "{}", text(&changed.stderr));
        assert!(verify().status.success(), "after {change:?}: {}", text(&verify().stdout));
    }
}

/// The time that is shown of it is that since it was opened last.
#[test]
fn no_rate_is_made_up_of_a_sweep_that_was_resumed() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let cells = |coordinator: &Coordinator| {
        json(&coordinator.command(&["runs", "--json"]))[0]["cells"].as_u64().unwrap_or(0)
    };
    let run = {
        let _worker = coordinator.worker(&[]);
        let run = coordinator.submit(SLOW_SWEEP);
        wait_until("a cell", || cells(&coordinator) > 0);
        run
    };
    let coordinator = coordinator.restart();
    let _worker = coordinator.worker(&[]);
    coordinator.digest(&run);
    let status = json(&coordinator.command(&["runs", "--json"]))[0].clone();
    assert!(status["evaluations_per_second"].is_null() && status["seconds"].as_f64() > Some(0.0), "{status}");
}

#[test]
fn a_fresh_study_has_the_same_digest_and_fresh_parts() {
    let folder = Folder::new();
    let file = folder.file("school.toml", STUDY);
    let first = json(&folder.atoll(&["run", &file, "--json"]));
    assert!(first["tournament"]["digest"].is_string(), "{first}");
    let fresh = json(&folder.atoll(&["run", &file, "--json", "--fresh"]));
    assert_eq!(fresh["digest"], first["digest"]);
    for (fresh, part) in fresh["parts"].as_array().unwrap().iter().zip(first["parts"].as_array().unwrap()) {
        assert_ne!(fresh["run"], part["run"], "a fresh study has fresh parts");
    }
}

#[test]
fn a_study_that_was_cancelled_finishes_when_it_is_submitted_again() {
    let folder = Folder::new();
    let plan =
        format!("{}\nstudy = {{ one = {{}}, two = {{ seed = 9 }} }}", EXPERIMENT.replace("3000", "1500"));
    let expected =
        digest(&folder.atoll(&["run", &folder.file("here.toml", &plan), "--json", "--store", "here"]));
    let coordinator = folder.coordinator(&["--lease", "500ms"]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&plan);
    let is_far = |line: &str| {
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).is_some_and(|value: f64| value >= 100.0)
    };
    wait_until("100 generations of a part", || {
        let page = coordinator.page("/metrics");
        page.lines().filter(|line| line.starts_with("atoll_run_generation{")).any(is_far)
    });
    assert!(coordinator.command(&["cancel", &run]).status.success());
    let states = || {
        let runs = json(&coordinator.command(&["runs", "--json"]));
        runs.as_array()
            .unwrap()
            .iter()
            .map(|run| run["state"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(states(), ["cancelled", "cancelled", "cancelled"], "the study, and its parts with it");
    assert_eq!(coordinator.submit(&plan), run);
    assert_eq!(coordinator.digest(&run), expected);
}

#[test]
fn a_single_command_computes_its_run_and_no_other_of_the_store() {
    let folder = Folder::new();
    let plan = EXPERIMENT.replace("3000", "300");
    let here = folder.file("here.toml", &plan);
    let expected = digest(&folder.atoll(&["run", &here, "--json", "--store", "here"]));
    let mut coordinator = folder.coordinator(&[]);
    let [run, study] = [plan.as_str(), PLAIN_STUDY].map(|plan| {
        let run = coordinator.submit(plan);
        assert!(coordinator.command(&["pause", &run]).status.success());
        run
    });
    coordinator.process.signal(rustix::process::Signal::TERM);
    coordinator.process.ended();
    // Nobody works on the paused ones: another command ends as if they were not there.
    let other = folder.file("other.toml", TOURNAMENT);
    digest(&folder.atoll(&["run", &other, "--workers", "1", "--json"]));
    let states = json(&folder.atoll(&["runs", "--json"]));
    let state = |name: &str| {
        let mut runs = states.as_array().unwrap().iter();
        runs.find(|run| run["run"] == name).unwrap()["state"].clone()
    };
    assert_eq!([state(&run), state(&study)], ["paused", "paused"]);
    // As `atoll watch` advises.
    assert_eq!(digest(&folder.atoll(&["resume", &run, "--json"])), expected);
    let file = folder.file("study.toml", PLAIN_STUDY);
    let whole = digest(&folder.atoll(&["run", &file, "--workers", "1", "--json"]));
    assert_eq!(digest(&folder.atoll(&["run", &file, "--json", "--store", "here"])), whole);
}

/// How many objects a store holds.
fn objects(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { objects(&path) } else { 1 }).sum()
}

#[test]
fn starting_a_coordinator_writes_nothing_to_finished_runs() {
    let folder = Folder::new();
    let sweep = SLOW_SWEEP.replace("work = 700000", "work = 1");
    let mut coordinator = folder.coordinator(&[]);
    {
        let _worker = coordinator.worker(&[]);
        for plan in [sweep.as_str(), PLAIN_STUDY, TOURNAMENT] {
            let run = coordinator.submit(plan);
            coordinator.digest(&run);
        }
    }
    let runs = folder.path().join("atoll-store").join("runs");
    let before = objects(&runs);
    for _ in 0..3 {
        coordinator = coordinator.restart();
        wait_until("readiness", || coordinator.page("/readyz").ends_with("ready\n"));
        let listed = json(&coordinator.command(&["runs", "--json"]));
        assert!(listed.as_array().unwrap().iter().all(|run| run["state"] == "finished"), "{listed}");
    }
    assert_eq!(objects(&runs), before);
}

#[test]
fn a_store_and_its_coordinator_agree_that_runs_were_cancelled() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    for plan in [EXPERIMENT, SLOW_SWEEP] {
        let run = coordinator.submit(plan);
        assert!(coordinator.command(&["cancel", &run]).status.success());
    }
    let listed = json(&coordinator.command(&["runs", "--json"]));
    let stored = json(&folder.atoll(&["runs", "--json"]));
    for runs in [&listed, &stored] {
        let states: Vec<&str> =
            runs.as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["cancelled", "cancelled"], "{runs}");
    }
}

#[test]
fn an_experiment_that_is_longer_once_it_is_written_in_full_runs_everywhere() {
    let folder = Folder::new();
    let edges: Vec<String> = (0..20_000).map(|edge| (edge % 200, edge / 200)).map(edge).collect();
    let plan = format!(
        r#"
        name = "woven"
        problem = {{ kind = "onemax", length = 8 }}
        algorithm = {{ kind = "ga", population = 2 }}
        islands = {{ count = 400, topology = {{ kind = "custom", edges = [{}] }} }}
        migration = {{ interval = 1, count = 1 }}
        budget = {{ generations = 1 }}
        "#,
        edges.join(",")
    );
    let file = folder.file("woven.toml", &plan);
    assert!(folder.atoll(&["check", &file]).status.success());
    let here = digest(&folder.atoll(&["run", &file, "--json", "--store", "here"]));
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&plan);
    assert_eq!(coordinator.digest(&run), here);
    assert!(folder.atoll(&["verify", &run]).status.success());
}

/// A way to another island.
fn edge((from, to): (u32, u32)) -> String {
    format!("{{from={from},to={}}}", 200 + to)
}

#[test]
fn a_run_of_a_coordinator_is_extended_up_and_down() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let _worker = coordinator.worker(&[]);
    let run = coordinator.submit(&EXPERIMENT.replace("3000", "200"));
    coordinator.digest(&run);
    for generations in ["1000000", "2000"] {
        let extended = coordinator.command(&["extend", &run, "--generations", generations, "--json"]);
        assert_eq!(json(&extended)["run"], run.as_str(), "{}", text(&extended.stderr));
    }
    coordinator.digest(&run);
    assert_eq!(json(&coordinator.command(&["watch", &run, "--json"]))["generations"], 2000);
}
