//! `atoll bench`: what this machine can do, as rates and as ratios to a reference measured in the same run.

mod cluster;
mod load;
mod strength;

use crate::failure::Failure;
use crate::terminal::out;
use ::bench::{Bench, Figure};
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Run only benches whose key contains this
    name: Option<String>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Measure how strong a checkers player is, against a frozen ladder of opponents
    Strength(strength::Arguments),
}

/// Every bench there is: of one core, and of a cluster.
fn all() -> Vec<Bench> {
    [::bench::benches(), cluster::benches(), load::benches()].concat()
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(Command::Strength(strength)) => strength::run(strength).await,
        None => Ok(measure(arguments)),
    }
}

fn measure(arguments: &Arguments) -> ExitCode {
    let wanted = arguments.name.as_deref().unwrap_or("");
    let mut figures = serde_json::Map::new();
    for (key, measure) in all().into_iter().filter(|(key, _)| key.contains(wanted)) {
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
    ExitCode::SUCCESS
}
