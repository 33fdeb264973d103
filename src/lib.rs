//! The `atoll` command: arguments, printing and exit codes. Everything else lives in the crates below it.
#![warn(clippy::print_stdout, clippy::print_stderr)] // `terminal::out!` and `message!` handle a closed pipe.

mod analyse;
mod backup;
mod batch;
mod bench;
mod cells;
mod certs;
mod check;
mod checkers;
mod clock;
mod cluster;
mod contender;
mod coordinator;
mod dashboard;
mod doctor;
mod drive;
mod duel;
mod endgame;
mod engine;
mod engines;
mod examples;
mod export;
mod failure;
mod init;
mod label;
mod level;
mod log;
mod look;
mod maze;
mod maze_study;
mod notify;
mod play;
mod player;
mod progress;
mod protection;
mod ratings;
mod reference;
mod remote;
mod removal;
mod repair;
mod report;
mod results;
mod run;
mod run_name;
mod runs;
mod served;
mod settings;
mod shell;
mod signals;
mod sources;
mod store_argument;
mod study;
mod summary;
mod sweep;
mod terminal;
mod termination;
mod tournament;
mod trial;
mod verify;
mod worker;
mod worker_metrics;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "atoll", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an experiment, sweep, study or tournament; resume it if it was already started
    Run(run::RunArguments),
    /// Resume a run that was stopped or crashed
    Resume(run::ResumeArguments),
    /// Replace the budget of a run, and continue it; limits that are not given no longer apply
    Extend(run::ExtendArguments),
    /// Show all mistakes in an experiment file; estimate time, disk and memory
    Check(check::Arguments),
    /// Print the JSON schema of experiment files, for editors
    Schema(check::SchemaArguments),
    /// List the runs of a store
    Runs(runs::Arguments),
    /// Add labels to a run, or remove them; `atoll runs --label` finds the run by them
    Label(label::Arguments),
    /// Verify the stored data of a run, and recompute its epochs
    Verify(verify::Arguments),
    /// Repair a damaged run; shows what would be dropped, and asks
    Repair(repair::Arguments),
    /// Remove runs; shows what would be removed, and asks
    Rm(removal::RmArguments),
    /// Complete interrupted removals
    Gc(removal::GcArguments),
    /// Copy the runs of a store, also while they are computed
    Backup(backup::BackupArguments),
    /// Copy the runs of a backup to an empty store
    Restore(backup::RestoreArguments),
    /// Write a run's champions and statistics as JSON and CSV
    Export(export::Arguments),
    /// Write the report of a run, or compare several runs
    Report(report::Arguments),
    /// Start a coordinator: it stores runs and leases their work to workers
    Coordinator(coordinator::Arguments),
    /// Start a worker: it evolves islands for a coordinator
    Worker(worker::Arguments),
    /// Start one pod of a Kubernetes Job: the coordinator at index 0, otherwise a worker
    Batch(batch::Arguments),
    /// Submit an experiment, sweep, study or tournament to a coordinator
    Submit(remote::SubmitArguments),
    /// Watch a run until it ends
    Watch(remote::WatchArguments),
    /// Serve the dashboard of a store: its runs, their progress and their results
    Dashboard(dashboard::Arguments),
    /// Explain why a run makes no progress
    Explain(look::ExplainArguments),
    /// Print the events of a run
    Logs(look::LogsArguments),
    /// List the workers of a coordinator
    Workers(look::WorkersArguments),
    /// Stop giving work to a worker
    Drain(look::DrainArguments),
    /// Pause or resume a run on a coordinator
    Pause(remote::PauseArguments),
    /// Cancel a run on a coordinator
    Cancel(remote::CancelArguments),
    /// Check whether a coordinator can run here: store, clock, ports, certificates
    Doctor(doctor::Arguments),
    /// Create a certificate authority, certificates and tokens
    Certs(certs::Arguments),
    /// Measure the speed of this machine
    Bench(bench::Arguments),
    /// Checkers: count positions, find moves, play matches, find species
    #[command(subcommand)]
    Checkers(checkers::Command),
    /// Show the results of a tournament: table, games, page
    #[command(subcommand)]
    Tournament(tournament::Command),
    /// Rate the champions stored during a run: did evolution progress, and when did it stop?
    Ratings(ratings::Arguments),
    /// Build and query the checkers endgame database
    #[command(subcommand)]
    Endgame(endgame::Command),
    /// Serve a checkers player to draughts programs, by the Hub protocol
    Engine(engine::Arguments),
    /// Comment recorded games: what each move lost, and what was better
    Analyse(analyse::Arguments),
    /// Play checkers against a player, in the terminal or in a browser
    Play(play::Arguments),
    /// Print and solve boards of the number-collecting maze
    Maze(maze::Arguments),
    /// Show, rate, convert and collect lock-and-key and Match-3 levels
    Level(level::Arguments),
    /// Write a commented experiment file to start from
    Init(init::Arguments),
    /// Print the script that completes commands in a shell
    Completions(shell::CompletionsArguments),
    /// Write manual pages
    Man(shell::ManArguments),
}

/// Once a block of this many bytes was freed, the allocator of glibc keeps up to twice as much free memory at the end of a heap.
/// Before that it returns everything beyond 128 KiB to the system, and fetches it again for the next population.
const FREED_ONCE: usize = 2 << 20;

/// Runs the command that the arguments of this process name, and returns its exit code.
pub fn main() -> ExitCode {
    let mut block = Vec::<u8>::new();
    // Without the memory for it, there is nothing to be kept.
    let _ = block.try_reserve_exact(FREED_ONCE);
    drop(std::hint::black_box(block));
    let matches = examples::added(Arguments::command()).try_get_matches();
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    let Arguments { mut command } = arguments.unwrap_or_else(|error| misused(&error));
    // A worker's own settings name the folder, which the same variable may do.
    if let Some(folder) = std::env::var_os("ATOLL_ENDGAME")
        && !matches!(command, Command::Worker(_) | Command::Batch(_))
    {
        ::checkers::Database::look_in(folder.as_ref());
    }
    if let Command::Batch(batch) = command {
        Arguments { command } =
            Arguments::try_parse_from(batch.command_line()).unwrap_or_else(|error| misused(&error));
    }
    let runtime = match &command {
        // Many callers: hashing what one delivers must not keep another from renewing.
        Command::Coordinator(_) => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        // Few threads for files: each of them takes addresses for its allocations, which may be limited.
        _ => tokio::runtime::Builder::new_current_thread().max_blocking_threads(4).enable_all().build(),
    };
    let runtime = runtime.expect("a runtime needs no more than a few file descriptors");
    let result = runtime.block_on(execute(command));
    // A stuck generation must not keep the process from ending.
    runtime.shutdown_background();
    result.unwrap_or_else(|failure| {
        log::fail(&failure);
        termination::write(&failure.to_string());
        ExitCode::from(failure.exit() as u8)
    })
}

/// Shows help, or what is wrong with the command line: to the supervisor as well.
fn misused(error: &clap::Error) -> ! {
    if error.use_stderr() {
        termination::salvage(std::env::args_os());
        termination::write(error.to_string().trim_end());
    }
    error.exit()
}

async fn execute(command: Command) -> Result<ExitCode, Failure> {
    let _listening = signals::outlive_file_size_limits()?;
    match command {
        Command::Run(arguments) => run::run(arguments).await,
        Command::Resume(arguments) => run::resume(arguments).await,
        Command::Extend(arguments) => run::extend(arguments).await,
        Command::Check(arguments) => check::run(&arguments),
        Command::Schema(arguments) => Ok(check::schema(&arguments)),
        Command::Runs(arguments) => runs::run(arguments).await,
        Command::Label(arguments) => label::run(arguments).await,
        Command::Verify(arguments) => verify::run(arguments).await,
        Command::Repair(arguments) => repair::run(arguments).await,
        Command::Rm(arguments) => removal::rm(arguments).await,
        Command::Gc(arguments) => removal::gc(arguments).await,
        Command::Backup(arguments) => backup::backup(arguments).await,
        Command::Restore(arguments) => backup::restore(arguments).await,
        Command::Export(arguments) => export::run(arguments).await,
        Command::Report(arguments) => report::run(arguments).await,
        Command::Coordinator(arguments) => coordinator::run(arguments).await,
        Command::Worker(arguments) => worker::run(arguments).await,
        Command::Batch(_) => unreachable!("it is a coordinator or a worker"),
        Command::Submit(arguments) => remote::submit(arguments).await,
        Command::Watch(arguments) => remote::watch(arguments).await,
        Command::Dashboard(arguments) => dashboard::run(arguments).await,
        Command::Explain(arguments) => look::explain(arguments).await,
        Command::Logs(arguments) => look::logs(arguments).await,
        Command::Workers(arguments) => look::workers(arguments).await,
        Command::Drain(arguments) => look::drain(arguments).await,
        Command::Pause(arguments) => remote::pause(arguments).await,
        Command::Cancel(arguments) => remote::cancel(arguments).await,
        Command::Doctor(arguments) => doctor::run(arguments).await,
        Command::Certs(arguments) => certs::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments).await,
        Command::Level(arguments) => level::run(&arguments).await,
        Command::Maze(arguments) => Ok(maze::run(&arguments)),
        Command::Checkers(command) => checkers::run(&command).await,
        Command::Tournament(command) => tournament::execute(command).await,
        Command::Ratings(arguments) => ratings::run(&arguments).await,
        Command::Endgame(command) => endgame::run(&command),
        Command::Engine(arguments) => engine::run(&arguments).await,
        Command::Analyse(arguments) => analyse::run(&arguments).await,
        Command::Play(arguments) => play::run(arguments).await,
        Command::Init(arguments) => init::run(&arguments),
        Command::Completions(arguments) => Ok(shell::completions(&arguments, Arguments::command())),
        Command::Man(arguments) => shell::man(&arguments, examples::added(Arguments::command())),
    }
}
