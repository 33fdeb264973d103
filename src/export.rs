//! `atoll export`: champions and statistics as JSON and CSV.

use crate::failure::Failure;
use crate::store_argument::{StoreArgument, run_id};
use crate::summary::finite;
use coordinator::history::Past;
use coordinator::keeper::RunHead;
use evolution::epoch::ChampionView;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to export
    run: String,
    #[command(flatten)]
    store: StoreArgument,
    /// The folder to write to; `RUN-export` unless given
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// One JSON object on stdout, and no files
    #[arg(long)]
    json: bool,
}

/// The champion of one island, at the newest state that is stored.
struct Champion {
    island: usize,
    view: ChampionView,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let run = run_id(&arguments.run)?;
    let head = RunHead::read(&store, &run).await?;
    let (archipelago, past, _) = head.restore(&store, &run).await?;
    let evolver = head.experiment.evolver();
    let mut champions = vec![];
    let last = archipelago.complete_epochs().checked_sub(1);
    for island in 0..past.records.len() {
        let remains = last.and_then(|epoch| archipelago.remains(island as u32, epoch));
        let Some(remains) = remains else { continue };
        let view =
            evolver.champion(&remains.state).map_err(|error| Failure::Other(format!("a state {error}")))?;
        champions.push(Champion { island, view });
    }
    let object = describe(&head, &run, &champions);
    if arguments.json {
        println!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.to.unwrap_or_else(|| PathBuf::from(format!("{run}-export")));
    let json = serde_json::to_string_pretty(&object).expect("it is JSON");
    let files = [
        ("run.json", json + "\n"),
        ("champions.csv", champions_csv(&champions)),
        ("statistics.csv", statistics_csv(&past)),
        ("migrations.csv", migrations_csv(&past)),
    ];
    write_all(&folder, &files)?;
    for (name, _) in files {
        println!("{}", folder.join(name).display());
    }
    Ok(ExitCode::SUCCESS)
}

fn write_all(folder: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Other(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn describe(head: &RunHead, run: &store::RunId, champions: &[Champion]) -> serde_json::Value {
    let finished = head.finished();
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
        "reason": finished.map(|(end, _)| end.reason.to_string()),
        "digest": finished.map(|(_, digest)| digest.to_string()),
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

fn statistics_csv(past: &Past) -> String {
    let mut csv =
        "island,epoch,generation,evaluations,best,mean,deviation,diversity,unjudgeable\n".to_owned();
    for (island, record) in past.records.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |r| (i, r))) {
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

fn migrations_csv(past: &Past) -> String {
    let mut csv = "island,epoch,from,left_after_epoch,offered,accepted,better_than_best\n".to_owned();
    for (island, record) in past.records.iter().enumerate().flat_map(|(i, r)| r.iter().map(move |r| (i, r))) {
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
