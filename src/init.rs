//! `atoll init`: an experiment to begin with.

use crate::failure::Failure;
use crate::terminal::out;
use std::fs::OpenOptions;
use std::io::Write;
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
/// The schema that editors check it by.
const SCHEMA: &str = "atoll.schema.json";

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let schema = serde_json::to_string_pretty(&experiment::schema()).expect("a schema is JSON");
    create(&arguments.file, STARTER)?;
    let beside = arguments.file.with_file_name(SCHEMA);
    if !beside.exists() {
        create(&beside, &schema)?;
    }
    let file = arguments.file.display();
    out!("{file}");
    eprintln!("next:");
    eprintln!("  check it and estimate its time  atoll check {file}");
    eprintln!("  run it                          atoll run {file}");
    Ok(ExitCode::SUCCESS)
}

fn create(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let created = OpenOptions::new().write(true).create_new(true).open(path);
    let written = created.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))
}
