//! `atoll init`: an experiment to begin with.

use crate::failure::Failure;
use crate::terminal::{message, out};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The file to write; an existing file is never overwritten
    #[arg(default_value = "experiment.toml")]
    file: PathBuf,
}

/// The experiment, with a comment for each key.
const STARTER: &str = include_str!("init/starter.toml");
/// The schema beside it, by which editors check it.
const SCHEMA: &str = "atoll.schema.json";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let schema = serde_json::to_string_pretty(&experiment::schema()).expect("a schema is JSON");
    create(&arguments.file, STARTER)?;
    let file = arguments.file.display();
    out!("{file}");
    let beside = arguments.file.with_file_name(SCHEMA);
    if !beside.exists() {
        create(&beside, &schema)?;
        out!("{}", beside.display());
    }
    message!("next:");
    message!("  check it and estimate its time  atoll check {file}");
    message!("  run it                          atoll run {file}");
    Ok(ExitCode::SUCCESS)
}

fn create(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let path = path.display();
        Failure::Other(match error.kind() {
            ErrorKind::AlreadyExists => {
                format!("{path} exists: name another file, such as `atoll init my.toml`")
            }
            _ => format!("cannot write {path}: {error}"),
        })
    })
}
