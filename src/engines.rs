//! The file that says how engines are started: only this machine decides which programs it runs.
//!
//! ```toml
//! [kingsrow]
//! command = ["engines/kingsrow", "hub"]
//! patience = "10s"
//! ```

use crate::failure::Failure;
use experiment::{LoadError, document, duration};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use tournament::EngineCommand;

/// One engine that speaks Hub.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EngineKeys {
    /// The program, and its arguments.
    #[schemars(length(min = 1, max = 100))]
    command: Vec<String>,
    /// How long it may take for an answer, beside the time that it is given for a move.
    #[serde(default = "five_seconds")]
    patience: String,
}

fn five_seconds() -> String {
    "5s".to_owned()
}

/// The engines of a file, by their names; none without a file.
pub(crate) fn read(path: Option<&Path>) -> Result<BTreeMap<String, EngineCommand>, Failure> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    let text = document::read_limited(path).map_err(LoadError::from)?;
    let document = document::parse(&path.display().to_string(), &text)?;
    let schema = schemars::schema_for!(BTreeMap<String, EngineKeys>).to_value();
    let keys: BTreeMap<String, EngineKeys> = document.decode(&schema)?;
    let mut engines = BTreeMap::new();
    for (name, EngineKeys { command, patience }) in keys {
        let patience = duration::parse(&patience).map_err(|error| {
            let problem = document.problem(&format!("{name}.patience"), error.to_string(), None);
            document.conclude(vec![problem]).expect_err("it is a problem")
        })?;
        engines.insert(name, EngineCommand { command, patience });
    }
    Ok(engines)
}
