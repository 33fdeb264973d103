//! Other people's libraries as referees: Python scripts, each in an environment with what it needs.

use serde_json::Value;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A script of `tests/referees` in an environment, which is made first if need be.
pub(crate) fn script(environment: &str, script: &str) -> Command {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new(root.join("tests/referees/setup")).arg(environment).status();
    assert!(made.is_ok_and(|status| status.success()), "the environment of {environment} can't be made");
    let mut python = Command::new(root.join(format!("target/referees/{environment}/bin/python")));
    // Without -I the script's own folder, with files of the libraries' names, would come first.
    python.arg("-I").arg(root.join(format!("tests/referees/{script}.py")));
    python
}

/// How much of what it was given a referee has judged; it stops the test where it disagrees.
#[allow(dead_code, reason = "some referees are asked in other ways")]
pub(crate) fn judge(environment: &str, name: &str, given: &Value) -> usize {
    let mut referee = script(environment, name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the referee's interpreter runs");
    let mut input = referee.stdin.take().expect("its input is piped");
    input.write_all(given.to_string().as_bytes()).expect("the referee reads to the end");
    drop(input);
    let output = referee.wait_with_output().expect("the referee ends");
    assert!(output.status.success(), "{name} disagrees, see above");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("the number of what it judged")
}
