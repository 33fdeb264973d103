//! `atoll label`: short words by which people find runs again.

use crate::clock;
use crate::failure::Failure;
use crate::look::Source;
use crate::remote::{self, Remote};
use crate::run_name;
use crate::served;
use crate::terminal::{message, out};
use experiment::document::nearest;
use run::{Label, LabelChange, LabelError, labels};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to label
    run: String,
    /// Labels to add: up to 40 lowercase letters, digits, `-`, `_` and `.`; a run has at most 16
    #[arg(value_name = "LABEL", required_unless_present = "remove")]
    add: Vec<Label>,
    /// Remove a label; may be repeated
    #[arg(long, value_name = "LABEL")]
    remove: Vec<Label>,
    #[command(flatten)]
    source: Source,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { run, add, remove, source, json } = arguments;
    let change = LabelChange { add: add.into_iter().collect(), remove: remove.into_iter().collect() };
    let (run, labels) = if let Some(url) = remote::chosen(source.coordinator.as_ref(), &source.store) {
        let mut remote = Remote::connect(&url, &source.credentials).await?;
        let run = remote.find(&run).await?;
        tell_missing(&run, &change, &remote.look(&run).await?.labels);
        let labels = remote.label(&run, &change).await?;
        (run, labels)
    } else {
        let store = source.store.open().await?;
        let run = run_name::find(&store, &run).await?;
        served::check_unserved(&store).await?;
        tell_missing(run.as_str(), &change, &labels::read(&store, &run).await?.to_strings());
        let labels = labels::change(&store, &run, &change, clock::now()).await?;
        (run.to_string(), labels.to_strings())
    };
    if json {
        out!("{}", serde_json::json!({ "run": run, "labels": labels }));
    } else if labels.is_empty() {
        out!("{run}: no labels");
    } else {
        out!("{run}: {}", labels.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says which labels cannot be removed, because the run does not have them.
fn tell_missing(run: &str, change: &LabelChange, labels: &[String]) {
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    for label in change.remove.iter().map(Label::as_str).filter(|label| !labels.contains(label)) {
        let meant = nearest(label, &labels).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        message!("{run} has no label `{label}`{meant}");
    }
}

impl From<LabelError> for Failure {
    fn from(error: LabelError) -> Self {
        match error {
            LabelError::Store(error) => Self::Store(error),
            error @ LabelError::TooMany { .. } => Self::Usage(error.to_string()),
        }
    }
}
