//! A run's champions and statistics, as JSON and CSV; and what a coordinator sends of a run to commands elsewhere.

use crate::epochs::StoredEpochs;
use crate::head::{Restored, RunError, RunHead};
use crate::jobs::StoredJobs;
use crate::layout::RunId;
use crate::stored;
use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult};
use bytes::Bytes;
use evolution::codec;
use evolution::epoch::ChampionView;
use std::collections::BTreeMap;
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

/// The epochs of each island whose states are stored, as JSON.
const EPOCHS: &str = "epochs.json";
/// The plan of a sweep or a tournament, and the results of its cells.
const PLAN: &str = "plan.toml";
const RESULTS: &str = "results";

/// Everything that a coordinator sends of a run: of an evolution the files of its export and the epochs whose champions can
/// be had, of a sweep or a tournament its plan and results.
///
/// # Errors
/// If it cannot be read, or is a study.
pub async fn parts(store: &Store, run: &RunId) -> Result<Vec<(&'static str, Bytes)>, RunError> {
    let plan = stored::read_plan(store, run).await?.0;
    if let Some(plan) = CellPlan::of(plan) {
        let StoredJobs { progress, .. } = StoredJobs::read(store, run, plan).await?.sound(run)?;
        let results: Vec<_> = progress.done().iter().collect();
        let results = codec::encode(&results).expect("what was stored can be stored again");
        return Ok(vec![(PLAN, progress.plan().text().to_owned().into()), (RESULTS, results)]);
    }
    let export = read(store, run).await?;
    let epochs: Vec<Vec<u64>> =
        export.epochs.states.iter().map(|states| states.keys().copied().collect()).collect();
    let epochs = serde_json::to_vec(&epochs).expect("it is JSON");
    let files = export.files().into_iter().map(|(name, text)| (name, text.into()));
    Ok(files.chain([(EPOCHS, epochs.into())]).collect())
}

/// What was sent of a run, by name.
pub type Parts = BTreeMap<String, Vec<u8>>;

/// The epochs of each island whose states were stored when this was sent.
pub fn epochs(parts: &Parts) -> Option<Vec<Vec<u64>>> {
    serde_json::from_slice(parts.get(EPOCHS)?).ok()
}

/// How far a sweep or a tournament was when this was sent. Nothing if it is something else, or does not fit together.
pub fn progress(run: &str, parts: &Parts) -> Option<CellProgress> {
    let text = std::str::from_utf8(parts.get(PLAN)?).ok()?;
    let plan = CellPlan::of(experiment::parse(run, text, None).ok()?)?;
    let results: Vec<(u32, CellResult)> = codec::decode(parts.get(RESULTS)?).ok()?;
    let mut progress = CellProgress::new(plan);
    for (number, result) in results {
        if !progress.plan().fits(number, &result) {
            return None;
        }
        progress.add(number, result);
    }
    Some(progress)
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
