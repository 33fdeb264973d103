//! How a run went, as reports and the dashboard show it: plain data from what was read.

use crate::epochs::StoredEpochs;
use crate::event::RunEvent;
use crate::fold::{Recorded, Status};
use crate::layout::RunId;
use crate::reader::Reader;
use crate::record::EpochRecord;
use crate::yardstick::Strengths;
use evolution::epoch::ChampionView;
use experiment::Experiment;
use experiment::file::ExperimentFile;
use report::dashboard::EventView;
use report::run::{Champion, Epoch, Island, Loss, Run};
use report::text::moment;
use serde_json::Value;

/// A run as far as it was read, with the champions of its islands. What to do next is for the caller to say.
pub fn of(run: &RunId, reader: Reader, champions: Vec<Option<ChampionView>>) -> Run {
    let state = reader.state();
    let Reader {
        experiment, events, epochs, is_outline, mut damage, recorded, strengths, unmeasured, ..
    } = reader;
    let elapsed = elapsed(&recorded, &epochs);
    // A long run has millions of records: there is one copy of them at a time.
    let StoredEpochs { mut records, scattered, commits, left_out, .. } = epochs;
    records.iter_mut().zip(scattered).for_each(|(whole, rest)| whole.extend(rest));
    if is_outline {
        // All of them alike: moments are compared between islands.
        records.iter_mut().flatten().for_each(EpochRecord::outline);
    }
    damage.extend(unmeasured);
    let file: &ExperimentFile = experiment.file();
    let (reason, digest) = ending(&recorded);
    let islands = records.into_iter().zip(champions).zip(algorithms(&experiment));
    let islands = islands.map(|((records, champion), algorithm)| Island {
        algorithm,
        epochs: records.into_iter().map(epoch).collect(),
        champion: champion.map(|view| Champion {
            fitness: view.fitness,
            generation: view.generation,
            genome: file.problem.show(&view.genome),
        }),
    });
    let edges = experiment.setting().edges.iter().map(|edge| (edge.from, edge.to)).collect();
    Run {
        problem: word(&serde_json::json!(file.problem)),
        seed: experiment.seed(),
        state,
        reason,
        digest,
        experiment_digest: experiment.digest().to_string(),
        versions: versions(&events),
        absolute: experiment.traits().absolute,
        config: experiment.to_toml(),
        keys: keys(&serde_json::json!(file)),
        reproduce: vec![],
        next: vec![],
        lead: None,
        topology: (word(&serde_json::json!(file.islands.topology)), edges),
        islands: islands.collect(),
        elapsed,
        restarts: recorded.restarts(),
        losses: events.iter().flat_map(losses).collect(),
        events: events.iter().filter_map(told).collect(),
        strengths: strengths.as_ref().map(Strengths::shown),
        damage: damage.iter().map(ToString::to_string).collect(),
        part: (left_out > 0).then(|| (commits.len() as u64, (commits.len() + left_out) as u64)),
        id: run.to_string(),
    }
}

/// The algorithm of each island, in a word. Thousands of islands have few different ones.
fn algorithms(experiment: &Experiment) -> Vec<String> {
    let settings = &experiment.setting().islands;
    let alike = settings.chunk_by(|one, other| one.algorithm == other.algorithm);
    let words = alike.flat_map(|alike| {
        let word = word(&serde_json::json!(alike[0].algorithm));
        std::iter::repeat_n(word, alike.len())
    });
    words.collect()
}

fn epoch(record: EpochRecord) -> Epoch {
    let EpochRecord { mark, statistics, labour } = record;
    Epoch {
        number: mark.epoch,
        standing: mark.standing,
        statistics,
        worker: labour.worker,
        milliseconds: labour.milliseconds,
        elapsed: labour.elapsed,
    }
}

/// A key that is a word, or a table with a `kind`.
pub fn word(value: &Value) -> String {
    value.as_str().or(value["kind"].as_str()).unwrap_or("").to_owned()
}

/// Why a run ended, and its digest.
fn ending(recorded: &Recorded) -> (Option<String>, Option<String>) {
    let Recorded { status, finished, .. } = recorded;
    let end = finished.as_ref().and_then(|finished| finished.end.as_ref());
    let reason = match status {
        Status::Failed(reason) => Some(reason.clone()),
        _ => end.map(|end| end.reason.to_string()),
    };
    (reason, finished.as_ref().map(|finished| finished.digest.to_string()))
}

fn elapsed(recorded: &Recorded, epochs: &StoredEpochs) -> u64 {
    let records = epochs.records.iter().chain(&epochs.scattered).flatten();
    let last = records.map(|record| record.labour.elapsed).max().unwrap_or(0);
    recorded.finished.as_ref().map_or(0, |finished| finished.elapsed).max(last)
}

fn versions(events: &[RunEvent]) -> Vec<String> {
    let mut versions: Vec<String> = vec![];
    for event in events {
        let version = match event {
            RunEvent::Created { version, .. } => Some(version),
            RunEvent::Opened { owner, .. } => Some(&owner.version),
            _ => None,
        };
        if let Some(version) = version
            && !versions.contains(version)
        {
            versions.push(version.clone());
        }
    }
    versions
}

fn losses(event: &RunEvent) -> Vec<Loss> {
    let told = |island: u32, epoch: u64, worker: &str, held: u64, reason: &str, at: u64| Loss {
        at: moment(at),
        work: format!("island {island}, epoch {epoch}"),
        worker: worker.to_owned(),
        milliseconds: held,
        reason: reason.to_owned(),
    };
    match event {
        RunEvent::Lost { island, epoch, worker, held, reason, at } => {
            vec![told(*island, *epoch, worker, *held, reason, *at)]
        }
        RunEvent::Expired { losses, reason, at } => {
            let all = losses.iter();
            all.map(|loss| told(loss.island, loss.epoch, &loss.worker, loss.held, reason, *at)).collect()
        }
        _ => vec![],
    }
}

/// What happened, and when. Losses have a table of their own.
fn told(event: &RunEvent) -> Option<(String, String)> {
    match event {
        RunEvent::Lost { .. } | RunEvent::Expired { .. } => None,
        event => {
            let EventView { at, text, .. } = view(0, event);
            Some((moment(at), text))
        }
    }
}

/// A budget that is stored as JSON, in words: `600 generations`, `target fitness -0.5`.
fn budget_in_words(budget: &str) -> String {
    let keys: serde_json::Map<String, Value> = serde_json::from_str(budget).unwrap_or_default();
    let word = |(key, value): (&String, &Value)| {
        let key = key.replace('_', " ");
        match value {
            Value::Null => None,
            Value::Number(number) if key == "generations" || key == "evaluations" => {
                let count = number.as_u64().map_or(number.to_string(), report::text::count);
                Some(if count == "1" {
                    format!("1 {}", key.trim_end_matches('s'))
                } else {
                    format!("{count} {key}")
                })
            }
            Value::String(text) => Some(format!("{key} {text}")),
            other => Some(format!("{key} {other}")),
        }
    };
    let words: Vec<String> = keys.iter().filter_map(word).collect();
    if words.is_empty() { format!("`{budget}`") } else { words.join(", ") }
}

/// An event of a journal in words.
pub fn view(number: u64, event: &RunEvent) -> EventView {
    let (at, kind, text) = match event {
        RunEvent::Created { version, semantics, at, .. } => {
            (at, "created", format!("created by version {version}, semantics {semantics}"))
        }
        RunEvent::Opened { owner, at, .. } => {
            (at, "opened", format!("opened by {owner}, version {}", owner.version))
        }
        RunEvent::Retracted { reason, at, .. } => {
            (at, "retracted", format!("results were retracted: {reason}"))
        }
        RunEvent::RetractedJobs { jobs, reason, at, .. } => {
            let count = jobs.len();
            let what = if count == 1 { "1 job".to_owned() } else { format!("{count} jobs") };
            (at, "retracted", format!("results of {what} were retracted: {reason}"))
        }
        RunEvent::Extended { budget, at, .. } => {
            (at, "extended", format!("its budget became {}", budget_in_words(budget)))
        }
        RunEvent::Decided { end, at } => {
            (at, "decided", format!("decided to end after epoch {}: {}", end.epoch, end.reason))
        }
        RunEvent::Finished { end, at, .. } => {
            // What consists of jobs says only in its plan what they are.
            let reason = end.as_ref().map_or(String::new(), |end| format!(": {}", end.reason));
            (at, "finished", format!("finished{reason}"))
        }
        RunEvent::Prioritised { priority, at } => {
            (at, "prioritised", format!("its priority became {priority}"))
        }
        RunEvent::Paused { at } => (at, "paused", "paused".to_owned()),
        RunEvent::Continued { at } => (at, "continued", "resumed".to_owned()),
        RunEvent::Cancelled { at } => (at, "cancelled", "cancelled".to_owned()),
        RunEvent::Failed { reason, at } => (at, "failed", format!("failed: {reason}")),
        RunEvent::Lost { island, epoch, worker, reason, at, .. } => {
            (at, "lost", format!("worker `{worker}` lost island {island}, epoch {epoch}: {reason}"))
        }
        RunEvent::Expired { losses, reason, at } => {
            const NAMED: usize = 5;
            let named = losses.iter().take(NAMED).map(|loss| {
                format!("worker `{}` lost island {}, epoch {}", loss.worker, loss.island, loss.epoch)
            });
            let mut named: Vec<String> = named.collect();
            if losses.len() > NAMED {
                named.push(format!("and {} more", losses.len() - NAMED));
            }
            let text = named.join("; ");
            (at, "expired", format!("{text}: {reason}"))
        }
    };
    EventView { number, at: *at, kind: kind.to_owned(), text }
}

/// All keys of a table with their values, those of tables within it by their paths.
fn keys(value: &Value) -> Vec<(String, String)> {
    fn collect(path: &str, value: &Value, keys: &mut Vec<(String, String)>) {
        match value {
            Value::Object(table) => {
                for (key, value) in table {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    collect(&path, value, keys);
                }
            }
            Value::Null => {}
            other => keys.push((path.to_owned(), other.to_string())),
        }
    }
    let mut found = vec![];
    collect("", value, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_told_in_words() {
        let budget = r#"{"evaluations":1,"generations":6000,"target_fitness":-0.5,"wall_time":"8h"}"#;
        let event = RunEvent::Extended { budget: budget.to_owned(), complete: 3, at: 5 };
        let text = view(0, &event).text;
        assert_eq!(
            text,
            "its budget became 1 evaluation, 6\u{202f}000 generations, target fitness -0.5, wall time 8h"
        );
    }
}
