//! Clusters whose state is in a bucket.

use crate::process::{DIGEST, EXPERIMENT, Folder, Variables, atoll, digest, json, text};
use crate::s3::Server;
use std::process::Output;

const STORE: &str = "s3://clusters/faults";

fn command(folder: &Folder, variables: &Variables, arguments: &[&str]) -> Output {
    atoll().args(arguments).envs(variables.clone()).current_dir(folder.path()).output().unwrap()
}

#[test]
fn a_run_in_s3_survives_its_coordinator() {
    let (server, folder) = (Server::start(), Folder::new());
    let coordinator = folder.coordinator_with(&["--store", STORE, "--lease", "2s"], server.variables());
    let run = coordinator.submit(EXPERIMENT);
    let _workers = [coordinator.worker(&[]), coordinator.worker(&[])];
    coordinator.wait_for("atoll_checkpoints_total", 2.0);
    let coordinator = coordinator.restart();
    coordinator.wait_for("atoll_results_accepted_total", 1.0);
    let coordinator = coordinator.restart();
    assert_eq!(coordinator.digest(&run), *DIGEST);

    let variables = server.variables();
    let listed = json(&command(&folder, &variables, &["runs", "--store", STORE, "--json"]));
    assert_eq!((&listed[0]["run"], &listed[0]["state"]), (&run.as_str().into(), &"finished".into()));
    let verified = command(&folder, &variables, &["verify", &run, "--store", STORE]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    assert!(!folder.path().join("atoll-store").exists(), "nothing is kept on the disk");

    let restored = "s3://clusters/restored";
    for arguments in [["backup", "copy", "--store", STORE], ["restore", "copy", "--store", restored]] {
        assert_eq!(json(&command(&folder, &variables, &[&arguments[..], &["--json"]].concat()))["ok"], true);
    }
    let listed = json(&command(&folder, &variables, &["runs", "--store", restored, "--json"]));
    assert_eq!(listed[0]["digest"], *DIGEST);
}

#[test]
fn a_run_on_one_machine_keeps_its_state_in_s3() {
    let (server, folder) = (Server::start(), Folder::new());
    let file = folder.file("faults.toml", EXPERIMENT);
    let output = command(&folder, &server.variables(), &["run", &file, "--json", "--store", "s3://clusters"]);
    assert_eq!(digest(&output), *DIGEST);
}

#[test]
fn a_service_that_breaks_its_promises_is_refused() {
    for (way, said) in
        [("races", "expected exactly one to win"), ("ignores", "expected exactly one to win, found 8")]
    {
        let (server, folder) = (Server::careless(way), Folder::new());
        let arguments = ["--store", "s3://careless", "--listen", "127.0.0.1:0", "--http", "off"];
        let begun = command(&folder, &server.variables(), &[&["coordinator"], &arguments[..]].concat());
        assert_eq!(begun.status.code(), Some(78), "{way}");
        assert!(text(&begun.stderr).contains(said), "{way}: {}", text(&begun.stderr));
        let looked = command(&folder, &server.variables(), &[&["doctor", "--json"], &arguments[..]].concat());
        assert_eq!(looked.status.code(), Some(1), "{way}");
        let findings: serde_json::Value = serde_json::from_slice(&looked.stdout).unwrap();
        assert_eq!(findings["ok"], false);
        let store =
            findings["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == "store");
        assert_eq!(store.unwrap()["health"], "bad", "{way}: {findings}");
        assert_eq!(store.unwrap()["advice"], "use another store: a coordinator rejects this one");
    }
}

#[test]
fn a_store_that_cannot_be_is_told() {
    let folder = Folder::new();
    for (store, code, said) in [
        (
            "gs://bucket",
            78,
            "expected a folder or `s3://BUCKET/PREFIX`, found another scheme in `gs://bucket`",
        ),
        ("s3://x", 78, "found a bucket whose name is not one of"),
    ] {
        let begun = command(&folder, &vec![], &["coordinator", "--store", store, "--listen", "127.0.0.1:0"]);
        assert_eq!(begun.status.code(), Some(code), "{}", text(&begun.stderr));
        assert!(text(&begun.stderr).contains(said), "{}", text(&begun.stderr));
    }
    let plain = vec![("AWS_ENDPOINT_URL".to_owned(), "http://127.0.0.1:9".to_owned())];
    let refused = command(&folder, &plain, &["runs", "--store", "s3://bucket"]);
    assert_eq!(refused.status.code(), Some(78));
    assert!(text(&refused.stderr).contains("set AWS_ALLOW_HTTP=true"), "{}", text(&refused.stderr));
}
