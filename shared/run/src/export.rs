//! A run's champions and statistics, as JSON and CSV.

use crate::epochs::StoredEpochs;
use crate::head::{Restored, RunError, RunHead};
use crate::layout::RunId;
use evolution::epoch::ChampionView;
use std::fmt::Write;
use store::Store;

/// What is exported of a run.
pub struct Export {
    head: RunHead,
    run: RunId,
    epochs: StoredEpochs,
    champions: Vec<Champion>,
}

/// The champion of one island, at the newest state that is stored.
struct Champion {
    island: usize,
    view: ChampionView,
}

/// Reads what is stored of a run.
pub async fn read(store: &Store, run: &RunId) -> Result<Export, RunError> {
    let head = RunHead::read(store, run).await?;
    let Restored { archipelago, stored: epochs, .. } = head.restore(store, run).await?;
    let evolver = head.experiment.evolver();
    let mut champions = vec![];
    let last = archipelago.complete_epochs().checked_sub(1);
    for island in 0..epochs.records.len() {
        let remains = last.and_then(|epoch| archipelago.remains(island as u32, epoch));
        let Some(remains) = remains else { continue };
        let view = evolver.champion(&remains.state).map_err(|error| RunError::State { island, error })?;
        champions.push(Champion { island, view });
    }
    Ok(Export { head, run: run.clone(), epochs, champions })
}

impl Export {
    /// The run and its champions as one object.
    pub fn object(&self) -> serde_json::Value {
        describe(&self.head, &self.run, &self.champions)
    }

    /// All files, by name.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let json = serde_json::to_string_pretty(&self.object()).expect("it is JSON");
        vec![
            ("run.json", json + "\n"),
            ("champions.csv", champions_csv(&self.champions)),
            ("statistics.csv", statistics_csv(&self.epochs)),
            ("migrations.csv", migrations_csv(&self.epochs)),
        ]
    }
}

/// JSON has no infinities.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

fn describe(head: &RunHead, run: &RunId, champions: &[Champion]) -> serde_json::Value {
    let finished = head.recorded().finished;
    let islands: Vec<serde_json::Value> = champions
        .iter()
        .map(|Champion { island, view }| {
            serde_json::json!({
                "island": island, "fitness": finite(view.fitness), "generation": view.generation,
                "genome": view.genome,
            })
        })
        .collect();
    serde_json::json!({
        "run": run.as_str(),
        "experiment": head.experiment.file(),
        "finished": finished.is_some(),
        "reason": finished.as_ref().and_then(|finished| finished.end.as_ref().map(|end| end.reason.to_string())),
        "digest": finished.as_ref().map(|finished| finished.digest.to_string()),
        "champions": islands,
    })
}

fn champions_csv(champions: &[Champion]) -> String {
    let mut csv = "island,fitness,generation,genome\n".to_owned();
    for Champion { island, view } in champions {
        let genes: Vec<String> = view.genome.iter().map(f64::to_string).collect();
        line(&mut csv, &format_args!("{island},{},{},{}", view.fitness, view.generation, genes.join(" ")));
    }
    csv
}

fn statistics_csv(epochs: &StoredEpochs) -> String {
    let mut csv =
        "island,epoch,generation,evaluations,best,mean,deviation,diversity,unjudgeable\n".to_owned();
    for (island, record) in epochs.records.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |r| (i, r)))
    {
        let statistics = &record.statistics;
        for row in &statistics.rows {
            line(
                &mut csv,
                &format_args!(
                    "{island},{},{},{},{},{},{},{},{}",
                    record.mark.epoch,
                    row.generation,
                    row.evaluations,
                    row.best,
                    row.mean,
                    row.deviation,
                    statistics.diversity,
                    statistics.unjudgeable
                ),
            );
        }
    }
    csv
}

fn migrations_csv(epochs: &StoredEpochs) -> String {
    let mut csv = "island,epoch,from,left_after_epoch,offered,accepted,better_than_best\n".to_owned();
    for (island, record) in epochs.records.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |r| (i, r)))
    {
        for arrival in &record.statistics.arrivals {
            let (epoch, from, left) = (record.mark.epoch, arrival.from, arrival.epoch);
            let (offered, accepted, better) = (arrival.offered, arrival.accepted, arrival.better_than_best);
            line(&mut csv, &format_args!("{island},{epoch},{from},{left},{offered},{accepted},{better}"));
        }
    }
    csv
}

fn line(csv: &mut String, row: &std::fmt::Arguments<'_>) {
    writeln!(csv, "{row}").expect("writing into a string does not fail");
}
