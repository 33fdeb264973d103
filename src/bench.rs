//! `atoll bench`: what this machine can do, as rates and as ratios to a reference measured in the same run.

mod cluster;
mod load;

use crate::terminal::out;
use ::bench::{Bench, Figure};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only the benches whose key contains this
    name: Option<String>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Every bench there is: of one core, and of a cluster.
fn all() -> Vec<Bench> {
    [::bench::benches(), cluster::benches(), load::benches()].concat()
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
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
