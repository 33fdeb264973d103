//! The `atoll` command: arguments, printing and exit codes. Everything else lives in the crates below it.

mod bench;
mod level;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "atoll", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what this machine can do
    Bench(bench::Arguments),
    /// Look at, rate or export a single lock-and-key or Match-3 level
    Level(level::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Level(arguments) => level::run(&arguments),
    }
}
