//! Experiment, sweep and study files: parsed, checked and expanded.
//!
//! One TOML file is one experiment, or a sweep over some of its keys, or a study of several experiments, or a tournament of
//! players. All checking happens here, and all errors are reported at once, each with its line and column; what comes out
//! needs no further check. The crate deliberately runs nothing and stores nothing.
//!
//! ```
//! let text = r#"
//!     name = "hello"
//!     problem = { kind = "onemax", length = 30 }
//!     algorithm = { kind = "ga", population = 100 }
//!     budget = { generations = 20 }
//! "#;
//! let experiment::Plan::Single(experiment) = experiment::parse("hello.toml", text, None)? else {
//!     unreachable!("there is neither a sweep nor a study in it")
//! };
//! assert_eq!(experiment.setting().islands.len(), 8);
//! # Ok::<(), experiment::document::Diagnostics>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod document;
pub mod duration;
mod estimate;
mod experiment;
pub mod file;
mod multiple;
mod overlay;
mod study;
mod sweep;
pub mod tournament;
pub mod yardstick;

pub use estimate::Estimate;
pub use experiment::{Budget, CheckpointEvery, Experiment, SEMANTICS};
pub use study::{GAMES, Part, Study};
pub use sweep::{Cell, MAX_CELLS, Sweep, VARIANT};
pub use tournament::Tournament;

use document::{Diagnostics, Document, KeyPath, ReadError};
use file::ExperimentFile;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::LazyLock;

/// What a file asks for.
#[derive(Clone, Debug)]
pub enum Plan {
    /// One experiment.
    Single(Box<Experiment>),
    /// One experiment over the values of some keys.
    Sweep(Box<Sweep>),
    /// Several experiments.
    Study(Box<Study>),
    /// Games between players.
    Tournament(Box<Tournament>),
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is wrong.
    #[error(transparent)]
    Diagnostics(#[from] Diagnostics),
}

/// Reads and checks a file; a seed takes the place of the file's own.
pub fn load(path: &Path, seed: Option<u64>) -> Result<Plan, LoadError> {
    let text = document::read_limited(path)?;
    Ok(parse(&path.display().to_string(), &text, seed)?)
}

/// Checks the text of a file; a seed takes the place of the file's own.
pub fn parse(file: &str, text: &str, seed: Option<u64>) -> Result<Plan, Diagnostics> {
    let mut document = document::parse(file, text)?;
    if let Some(seed) = seed {
        document.set(&key("seed"), Json::from(seed))?;
    }
    if let Some(tables) = document.get(&key("study")) {
        let tables = serde_json::from_value(tables)
            .ok()
            .filter(|tables: &std::collections::BTreeMap<_, _>| !tables.is_empty());
        let Some(tables) = tables else {
            let message = "expected a table of experiments by their names, found none";
            return Err(document
                .conclude(vec![document.problem("study", message, None)])
                .expect_err("it is a problem"));
        };
        return Ok(Plan::Study(Box::new(Study::check(&document, &tables)?)));
    }
    if document.get(&key("tournament")).is_some() {
        return Ok(Plan::Tournament(Box::new(Tournament::check(&document)?)));
    }
    let file = decode(&document)?;
    Ok(match &file.sweep {
        Some(keys) => Plan::Sweep(Box::new(Sweep::check(&document, keys)?)),
        None => Plan::Single(Box::new(Experiment::check(&document, file)?)),
    })
}

/// The one experiment of a document, whatever sweep or study it is part of.
fn single(document: &Document) -> Result<Experiment, Diagnostics> {
    let file = decode(document)?;
    Experiment::check(document, ExperimentFile { sweep: None, study: None, tournament: None, ..file })
}

/// The file of a document. Beside what its schema finds wrong, the report has what can be known without the rest of the file.
fn decode(document: &Document) -> Result<ExperimentFile, Diagnostics> {
    let mut problems = document.check(&SCHEMA);
    if !problems.is_empty() {
        problems.extend(experiment::problems_of_single_keys(document, &problems));
    }
    document.conclude(problems)?;
    document.decode(&SCHEMA)
}

fn key(text: &str) -> KeyPath {
    text.parse().expect("a plain word is a key")
}

static SCHEMA: LazyLock<Json> = LazyLock::new(|| schemars::schema_for!(ExperimentFile).to_value());

/// The JSON schema of experiment files, for editors. A study may leave the keys that its experiments have in common
/// to them, and a tournament has none, so there only the name is required.
pub fn schema() -> Json {
    let mut schema = SCHEMA.clone();
    let required = schema["required"].take();
    schema["required"] = serde_json::json!(["name"]);
    schema["if"] = serde_json::json!({
        "not": { "anyOf": [{ "required": ["study"] }, { "required": ["tournament"] }] }
    });
    schema["then"] = serde_json::json!({ "required": required });
    schema["title"] = Json::from("Atoll experiment");
    schema
}
