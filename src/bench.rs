//! `atoll bench`: what this machine can do, as rates and as ratios to a reference measured in the same run.

mod cluster;
mod load;
mod strength;

use crate::failure::Failure;
use crate::terminal::out;
use ::bench::{Bench, Figure};
use experiment::document::nearest;
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Run only the bench of this key, or those whose keys contain it
    name: Option<String>,
    /// List the keys of all benches
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Measure how strong a checkers player is, against a frozen ladder of opponents
    Strength(strength::Arguments),
    /// Serve the bench of many workers
    #[command(hide = true)]
    Coordinator(load::CoordinatorArguments),
}

/// Every bench there is: of one core, and of a cluster.
fn all() -> Vec<Bench> {
    [::bench::benches(), cluster::benches(), load::benches()].concat()
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Some(Command::Strength(strength)) => strength::run(&strength).await,
        Some(Command::Coordinator(coordinator)) => load::coordinate(coordinator),
        None if arguments.list => {
            list(arguments.json);
            Ok(ExitCode::SUCCESS)
        }
        None => measure(&arguments),
    }
}

/// The benches that a name means: the one that is called so, or all that contain it.
fn wanted(name: &str) -> Vec<Bench> {
    let all = all();
    let is_named = all.iter().any(|(key, _)| *key == name);
    let is_wanted = |key: &str| {
        if is_named { key == name } else { key.contains(name) && !load::LONG_KEYS.contains(&key) }
    };
    all.into_iter().filter(|(key, _)| is_wanted(key)).collect()
}

fn list(json: bool) {
    let keys: Vec<&str> = all().into_iter().map(|(key, _)| key).collect();
    if json {
        out!("{}", serde_json::json!(keys));
        return;
    }
    for key in keys {
        out!("{key}");
    }
}

fn measure(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut figures = serde_json::Map::new();
    let name = arguments.name.as_deref().unwrap_or("");
    let wanted = wanted(name);
    if wanted.is_empty() {
        let keys: Vec<&str> = all().into_iter().map(|(key, _)| key).collect();
        let meant = nearest(name, &keys).map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let message =
            format!("there is no bench `{name}`; {meant}`atoll bench --list` lists those there are");
        return Err(Failure::Usage(message));
    }
    for (key, measure) in wanted {
        let figure = measure();
        if !arguments.json {
            out!("{key:<28} {:>14.0} {} ({:.1} x the reference)", figure.rate, figure.unit, figure.ratio);
            for (name, value) in &figure.details {
                out!("  {name:<26} {value:>14.1}");
            }
        }
        figures.insert(key.to_owned(), serde_json::json!(figure));
    }
    if arguments.json {
        out!("{}", serde_json::Value::Object(figures));
    }
    Ok(ExitCode::SUCCESS)
}
