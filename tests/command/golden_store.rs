//! A run that was stored with format version 1 is read, verified and exported by every later version.

use std::path::Path;
use std::process::{Command, Output};

const RUN: &str = "golden-3d4e7144";
const DIGEST: &str = "a0a8d350103cdc81450c51189bb51cc57ca1e485734e3dee58e663f07e785b98";

fn atoll(arguments: &[&str]) -> Output {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/store-v1");
    Command::new(env!("CARGO_BIN_EXE_atoll")).args(arguments).arg("--store").arg(store).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_stored_run_of_version_1_is_verified() {
    let found = json(&atoll(&["verify", RUN, "--json"]));
    assert_eq!(found["ok"], true, "{found}");
    assert!(found["recomputed"].as_u64().unwrap() >= 4, "{found}");
}

#[test]
fn a_stored_run_of_version_1_is_exported() {
    let found = json(&atoll(&["export", RUN, "--json"]));
    assert_eq!(found["digest"], DIGEST);
    assert_eq!(found["champions"].as_array().unwrap().len(), 2);
}
