//! `atoll level study`: the logs of people who played levels, replayed and evaluated.
//!
//! No claim of a log is trusted: every game is replayed by the rules, and difficulties are measured again.

mod log;
mod tables;

use crate::failure::Failure;
use crate::terminal;
use experiment::document::explain;
use lockkey::Method;
use log::Log;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Logs that the page of a ladder saved
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Number of plays of each Match-3 board by the simulated player
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    plays: u32,
    #[command(flatten)]
    search: super::SearchArguments,
    /// Lock-and-key levels: the nodes that make E: plain (each leg searched afresh) or optimised (with what earlier legs
    /// found)
    #[arg(long, default_value = "plain", value_parser = super::word::<Method>)]
    count: Method,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The most logs that are read.
const MOST_LOGS: usize = 10_000;

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.logs.len() > MOST_LOGS {
        let message = format!("expected at most {MOST_LOGS} logs, found `{}`", arguments.logs.len());
        return Err(Failure::Usage(message));
    }
    let mut logs: Vec<Log> = vec![];
    for path in &arguments.logs {
        std::fs::metadata(path).map_err(|error| Failure::Config(explain(path, error)))?;
        let log =
            Log::read(path).map_err(|reason| Failure::Config(format!("{}: {reason}", path.display())))?;
        if logs.iter().any(|other| other.code == log.code) {
            let message =
                format!("{}: expected each session once, found `{}` again", path.display(), log.code);
            return Err(Failure::Config(message));
        }
        logs.push(log);
    }
    // In whatever order they are named, the tables are the same.
    logs.sort_by(|one, other| one.code.cmp(&other.code));
    let measure = tables::Measure { astar: arguments.search.astar(), count: arguments.count };
    let study = tables::Study::of(&logs, arguments.plays, measure).map_err(Failure::Config)?;
    if arguments.json {
        let mut found = study.json();
        let unfinished: Vec<&str> =
            logs.iter().filter(|log| log.is_unfinished).map(|log| log.code.as_str()).collect();
        found["unfinished"] = unfinished.into();
        found["different_settings"] = differing(&logs).into_iter().map(|(name, _)| name).collect();
        terminal::write(format_args!("{found}\n"));
    } else {
        terminal::write(format_args!("{}", markdown(&logs, &study)));
    }
    Ok(ExitCode::SUCCESS)
}

fn markdown(logs: &[Log], study: &tables::Study) -> String {
    let simulated = logs.iter().filter(|log| log.simulated).count();
    let plural =
        |count: usize, noun: &str| if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") };
    let games = logs.iter().map(|log| log.games.len()).sum();
    let mut text = format!("# Play study: {}, {}\n\n", plural(logs.len(), "session"), plural(games, "game"));
    let who = match simulated {
        0 => "All sessions are of people.".to_owned(),
        all if all == logs.len() => "All sessions are of simulated players, not of people.".to_owned(),
        some => format!("{} of simulated players, not of people.", plural(some, "session")),
    };
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{who} Every game was replayed by the rules.");
    let codes = |is: fn(&Log) -> bool| -> Vec<&str> {
        logs.iter().filter(|log| is(log)).map(|log| log.code.as_str()).collect()
    };
    for (codes, what) in [
        (codes(|log| log.is_unfinished), "not finished; its games count as far as they were played"),
        (codes(|log| log.is_resumed), "interrupted and resumed; one game was started again"),
    ] {
        if !codes.is_empty() {
            let _ = writeln!(text, "\nSessions, {what}: {}.", codes.join(", "));
        }
    }
    for (name, values) in differing(logs) {
        let _ = writeln!(text, "\nSessions with different settings are pooled: `{name}` is {values}.");
    }
    text + &study.markdown()
}

/// The settings that are not the same in all sessions, with their values.
fn differing(logs: &[Log]) -> Vec<(&str, String)> {
    let names: BTreeSet<&str> = logs.iter().flat_map(|log| log.settings.keys()).map(String::as_str).collect();
    let values = |name: &str| -> BTreeSet<String> {
        logs.iter()
            .map(|log| log.settings.get(name).map_or_else(|| "not given".to_owned(), ToString::to_string))
            .collect()
    };
    let all = names.into_iter().map(|name| (name, values(name)));
    all.filter(|(_, values)| values.len() > 1)
        .map(|(name, values)| (name, values.into_iter().collect::<Vec<_>>().join(" or ")))
        .collect()
}
