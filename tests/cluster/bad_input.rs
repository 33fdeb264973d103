//! Bad input from people: clear words and the right exit code.

use crate::process::{Folder, text, wait_until};

fn refused(folder: &Folder, arguments: &[&str], code: i32, words: &[&str]) {
    let output = folder.atoll(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} should say `{word}`, said: {said}");
    }
}

#[test]
fn a_port_in_use() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let arguments = ["coordinator", "--listen", &coordinator.address, "--store", "other"];
    refused(&folder, &arguments, 1, &["cannot listen on", &coordinator.address, "in use"]);
}

#[test]
fn an_address_that_others_can_reach() {
    let folder = Folder::new();
    let words = ["listen", "0.0.0.0", "insecure = true"];
    refused(&folder, &["coordinator", "--listen", "0.0.0.0:0"], 78, &words);
}

#[test]
fn settings_that_cannot_be() {
    let folder = Folder::new();
    let file = folder.file("coordinator.toml", "lisen = \"127.0.0.1:0\"\n");
    let words = ["coordinator.toml:1:1", "unknown key `lisen`", "did you mean `listen`?"];
    refused(&folder, &["coordinator", "--config", &file], 78, &words);
    let file = folder.file("worker.toml", "threads = \"many\"\n");
    refused(&folder, &["worker", "--config", &file], 78, &["worker.toml:1:", "threads"]);
    for key in ["max_connections", "max_connections_per_peer", "max_runs"] {
        let file = folder.file("none.toml", &format!("{key} = 0\n"));
        let words = [key, "none.toml", "of at least 1, found `0`"];
        refused(&folder, &["coordinator", "--config", &file, "--print-config"], 78, &words);
    }
    refused(&folder, &["coordinator", "--lease", "soon"], 78, &["lease (flag --lease)", "soon"]);
    refused(&folder, &["worker", "--coordinator", "not a url"], 78, &["coordinator (flag", "not a url"]);
}

#[test]
fn nobody_is_there() {
    let folder = Folder::new();
    let url = ["--coordinator", "http://127.0.0.1:9"];
    let file = folder.file("plan.toml", crate::process::EXPERIMENT);
    let arguments = [&["submit", &file][..], &url].concat();
    refused(&folder, &arguments, 1, &["does not respond", "atoll coordinator"]);
    let arguments = [&["worker", "--give-up-after", "200ms"][..], &url].concat();
    refused(&folder, &arguments, 6, &["has not responded"]);
}

#[test]
fn a_bad_experiment_is_told_with_its_place() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let file = folder.file("bad.toml", "name = \"bad\"\npopulation = 3\n");
    let output = coordinator.command(&["submit", &file]);
    assert_eq!(output.status.code(), Some(78));
    assert!(text(&output.stderr).contains("bad.toml:2:1"), "{}", text(&output.stderr));
    let output = coordinator.command(&["watch", "no-such-run"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no run `no-such-run`"));
    // Every name begins with an empty one.
    let run = coordinator.submit(crate::process::EXPERIMENT);
    let output = coordinator.command(&["cancel", ""]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("`atoll runs --coordinator http://"), "{}", text(&output.stderr));
    let paused = coordinator.command(&["pause", &run]);
    assert!(paused.status.success(), "it was not cancelled: {}", text(&paused.stderr));
    let again = coordinator.command(&["submit", &folder.file("again.toml", crate::process::EXPERIMENT)]);
    assert!(text(&again.stderr).contains(&format!("`atoll pause {run} --off`")), "{}", text(&again.stderr));
}

#[test]
fn work_that_never_fits_into_memory() {
    let folder = Folder::new();
    let coordinator = folder.coordinator(&[]);
    let plan = crate::process::EXPERIMENT.replace("population = 1000", "population = 500000");
    let run = coordinator.submit(&plan);
    let _worker = coordinator.worker(&["--memory-mib", "100"]);
    // That is no failure: another worker may have more.
    let reason =
        "no connected worker has enough memory: expected work for at most 100 MiB of memory (`memory_mib`";
    wait_until("the reason", || text(&coordinator.command(&["runs"]).stdout).contains(reason));
    let output = coordinator.command(&["cancel", &run]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn every_setting_says_where_it_came_from() {
    let folder = Folder::new();
    let file = folder.file("coordinator.toml", "lease = \"20s\"\nstall = \"5m\"\n");
    let output = crate::process::atoll()
        .args(["coordinator", "--config", &file, "--print-config", "--lease", "30s"])
        .env("ATOLL_STALL", "7m")
        .env("ATOLL_MAX_RUNS", "5")
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in [
        "lease = \"30s\" # flag --lease",
        "stall = \"7m\" # environment ATOLL_STALL",
        "max_runs = 5 # environment ATOLL_MAX_RUNS",
        "listen = \"127.0.0.1:7440\" # default",
    ] {
        assert!(said.lines().any(|found| found == line), "expected `{line}` in:\n{said}");
    }
}

#[test]
fn settings_that_were_printed_can_be_read_again() {
    let folder = Folder::new();
    for role in ["coordinator", "worker"] {
        let values = |printed: &str| -> Vec<String> {
            printed.lines().map(|line| line.split(" # ").next().unwrap().to_owned()).collect()
        };
        let printed = folder.atoll(&[role, "--print-config"]);
        let file = folder.file(&format!("{role}.toml"), &text(&printed.stdout));
        let again = folder.atoll(&[role, "--print-config", "--config", &file]);
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert!(values(&text(&printed.stdout)).len() > 5);
        assert_eq!(values(&text(&again.stdout)), values(&text(&printed.stdout)), "{role}");
    }
}
