//! The `atoll` command: arguments, printing and exit codes. Everything else lives in the crates below it.

mod bench;
mod maze;

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
    /// Print and solve boards of the number-collecting maze
    Maze(maze::Arguments),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Maze(arguments) => maze::run(&arguments),
    }
}
