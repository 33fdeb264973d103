//! The `atoll` command: arguments, printing and exit codes. Everything else lives in the crates below it.

mod bench;
mod checkers_command;

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
    /// Checkers: count moves, ask a player for one
    #[command(subcommand)]
    Checkers(checkers_command::Command),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Checkers(command) => checkers_command::run(&command),
    }
}
