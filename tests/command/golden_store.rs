//! A stored run of format version 2 is read, verified and exported by every later version, and by a reader that was
//! written from `docs/format.md` alone. A store of version 1 is refused by name.

use crate::referee;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const RUN: &str = "golden-aa062d6d";
const DIGEST: &str = "66562b67bf514c7db1e873336dc59b2f1d585a382f64afe432f16e8c6d6ff4eb";
const SWEEP: &str = "golden-sweep-802584f1";
const TOURNAMENT: &str = "golden-games-50a88128";
/// An asynchronous run of 4 generations that was extended to 6.
const EXTENDED: (&str, &str) =
    ("golden-async-be3ab68d", "3d290c514b3666a356ac8ec900dcdebaa59e0ecf44fcddc3792489b9d813c435");
/// A study of two experiments, the second with guests of the first, and a tournament.
const STUDY: (&str, &str) =
    ("golden-study-48ac7fe6", "f815c2cc26b615b9fbf64a4a6187846f58ee351d28d24e4199cd81362182ffc9");

fn store(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(version)
}

fn atoll(arguments: &[&str], version: &str) -> Output {
    let command = env!("CARGO_BIN_EXE_atoll");
    Command::new(command).args(arguments).arg("--store").arg(store(version)).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_stored_run_of_version_2_is_verified() {
    let found = json(&atoll(&["verify", RUN, "--json"], "store-v2"));
    assert_eq!(found["ok"], true, "{found}");
    assert!(found["recomputed"].as_u64().unwrap() >= 4, "{found}");
}

#[test]
fn a_stored_run_of_version_2_is_exported() {
    let found = json(&atoll(&["export", RUN, "--json"], "store-v2"));
    assert_eq!(found["digest"], DIGEST);
    assert_eq!(found["champions"].as_array().unwrap().len(), 2);
}

#[test]
fn every_kind_of_stored_run_of_version_2_is_verified() {
    for run in [SWEEP, TOURNAMENT, EXTENDED.0, STUDY.0] {
        let found = json(&atoll(&["verify", run, "--json"], "store-v2"));
        assert_eq!(found["ok"], true, "{found}");
    }
}

/// What a reader that was written from the format's page finds of a run.
fn read(run: &str) -> serde_json::Value {
    let read = referee::script("blake3", "read_store").arg(store("store-v2")).output().unwrap();
    assert!(read.status.success(), "{read:?}");
    let lines = String::from_utf8(read.stdout).unwrap();
    let mut runs = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    runs.find(|found| found["run"] == run).expect("the run is found")
}

#[test]
fn a_reader_of_the_formats_page_finds_the_same() {
    let found = read(RUN);
    assert_eq!(found["state"], "finished");
    assert_eq!((&found["digest"], &found["records"]), (&DIGEST.into(), &DIGEST.into()));
    assert_eq!(found["labels"], serde_json::json!(["golden"]));
    let listed = json(&atoll(&["runs", "--label", "golden", "--json"], "store-v2"));
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!((&listed[0]["run"], &listed[0]["labels"]), (&RUN.into(), &found["labels"]));
    let exported = json(&atoll(&["export", RUN, "--json"], "store-v2"));
    for (island, champion) in
        found["islands"].as_array().unwrap().iter().zip(exported["champions"].as_array().unwrap())
    {
        assert_eq!(island["standing"]["best"], champion["fitness"]);
        let genome = |value: &serde_json::Value| -> Vec<f64> {
            value["genome"].as_array().unwrap().iter().map(|gene| gene.as_f64().unwrap()).collect()
        };
        assert_eq!(genome(island), genome(champion));
    }
}

#[test]
fn a_reader_of_the_formats_page_finds_the_results_of_jobs() {
    for (run, jobs) in [(SWEEP, 4), (TOURNAMENT, 1)] {
        let found = read(run);
        assert_eq!((&found["state"], &found["jobs"]), (&"finished".into(), &jobs.into()));
        assert_eq!(found["digest"], found["records"], "{found}");
    }
}

#[test]
fn a_reader_of_the_formats_page_finds_an_extended_run_and_what_arrived_out_of_step() {
    let (run, digest) = EXTENDED;
    let found = read(run);
    assert_eq!((&found["state"], &found["digest"]), (&"finished".into(), &digest.into()));
    assert_eq!(found["digest"], found["records"], "the records of both terms add up to it");
    assert_eq!(found["generations"], serde_json::json!([6]));
    for island in found["islands"].as_array().unwrap() {
        assert_eq!(island["standing"]["generation"], 6);
    }
    let exported = json(&atoll(&["export", run, "--json"], "store-v2"));
    assert_eq!(exported["digest"], digest);
    let took = |island: &str| found["took"][island].as_array().unwrap().len();
    assert_eq!([took("0"), took("1")], [3, 3], "each of the three epochs lists what it took");
}

#[test]
fn a_reader_of_the_formats_page_finds_the_parts_of_a_study() {
    let (run, digest) = STUDY;
    let found = read(run);
    assert_eq!((&found["state"], &found["digest"]), (&"finished".into(), &digest.into()));
    assert_eq!(found["digest"], found["records"], "the digests of the parts add up to it");
    assert_eq!(found["parts"], serde_json::json!(["first", "second", "tournament"]));
    assert_eq!(found["guests"], serde_json::json!(["second"]));
}

#[test]
fn a_store_of_version_1_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = store("store-v2").join("runs").join(RUN).join("experiment.toml");
    let to = folder.path().join("copy");
    let [file, to] = [file.to_str().unwrap(), to.to_str().unwrap()];
    let before = std::fs::read_dir(store("store-v1").join("runs")).unwrap().count();
    for arguments in [
        &["verify", "golden-3d4e7144"][..],
        &["runs"],
        &["run", file],
        &["resume"],
        &["report", "golden-3d4e7144"],
        &["backup", to],
        &["coordinator", "--listen", "127.0.0.1:0", "--http", "off"],
    ] {
        let refused = atoll(arguments, "store-v1");
        assert_eq!(refused.status.code(), Some(78), "{arguments:?}: {refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("format version `1`, expected `2`"), "{arguments:?}: {said}");
    }
    assert_eq!(
        std::fs::read_dir(store("store-v1").join("runs")).unwrap().count(),
        before,
        "nothing is written"
    );
}
