//! What operators do to runs, in any order: a run that was cancelled, failed or extended always gets to its end.

use crate::process::{EXPERIMENT, Folder, digest, json, text, wait_until};

/// Cells of about two seconds each.
const SLOW_SWEEP: &str = r#"
name = "slow-sweep"
problem = { kind = "onemax", length = 100, work = 2000000 }
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
