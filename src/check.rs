//! `atoll check` and `atoll schema`: experiments before they are run.

use crate::failure::Failure;
use crate::progress::{counted, short};
use crate::reference;
use crate::terminal::{out, write_out};
use crate::trial::Trials;
use experiment::{Estimate, Experiment, Plan, duration};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Bytes that are stored of a cell of a sweep, which is its result alone; and beside its plan, of all of them.
const CELL: u64 = 220;
const RESULTS: u64 = 1 << 10;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The experiment, sweep, study or tournament to check
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Skip the trial of about 2 seconds that measures this machine
    #[arg(long)]
    no_trial: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = match experiment::load(&arguments.file, None) {
        Err(experiment::LoadError::Diagnostics(report)) if arguments.json => {
            out!("{}", serde_json::json!({ "ok": false, "report": report }));
            return Ok(ExitCode::from(78));
        }
        plan => plan?,
    };
    let threads = worker::available_threads();
    let trials = if arguments.no_trial { Trials::none() } else { Trials::new() };
    let (what, run, estimate) = described(&plan, &trials, threads);
    if arguments.json {
        let object = serde_json::json!({
            "ok": true, "run": run, "evaluations": estimate.evaluations,
            "seconds": estimate.time.map(|time| time.as_secs_f64()),
            "disk_bytes": estimate.disk, "memory_bytes": estimate.memory, "threads": threads,
            "yardstick": measuring(&plan).map(|(champions, time)| {
                serde_json::json!({ "champions": champions, "cpu_seconds": time.as_secs_f64() })
            }),
        });
        out!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    out!("{}: {what}", arguments.file.display());
    out!("  run          {run}");
    out!("  evaluations  {}", estimate.evaluations.map_or("not bounded".to_owned(), |n| short(n as f64)));
    let most = if may_end_early(&plan) { "at most " } else { "" };
    let time = estimate.time.map_or("not bounded".to_owned(), |time| shown(time, most));
    out!("  time         {time} on {threads} threads");
    out!("  disk         about {}", bytes(estimate.disk));
    out!("  memory       about {}", bytes(estimate.memory));
    if let Some((champions, time)) = measuring(&plan) {
        let time = duration::show(time);
        out!("  yardstick    {champions} champions, about {time} on 1 thread, beside the time above");
    }
    Ok(ExitCode::SUCCESS)
}

/// What a plan is, what its run is called, and its estimate.
fn described(plan: &Plan, trials: &Trials, threads: usize) -> (String, String, Estimate) {
    match plan {
        Plan::Single(experiment) => {
            (describe(experiment), experiment.run_id(), trials.calibrated(experiment, threads))
        }
        Plan::Sweep(sweep) => {
            let what = format!("a sweep of {} cells over {}", sweep.len(), sweep.keys.join(", "));
            let cells = shared(together(trials.calibrated_cells(sweep)), threads);
            (
                what,
                sweep.run_id(),
                Estimate { disk: sweep.text.len() as u64 + RESULTS + CELL * u64::from(sweep.len()), ..cells },
            )
        }
        Plan::Study(study) => {
            let parts: Vec<&Experiment> = study.parts.iter().map(|part| &part.experiment).collect();
            let parts = trials.calibrated_parts(&parts, threads).into_iter();
            let games = study.tournament.iter().map(|games| games.estimate(threads));
            let what = format!("a study of {} experiments", study.parts.len());
            (what, study.run_id(), together(parts.chain(games)))
        }
        Plan::Tournament(games) => {
            let (players, schedule) = (games.players().len(), games.schedule());
            let (pairings, count) = (schedule.pairings().len(), schedule.games());
            let what = format!("a tournament of {players} players, {pairings} pairings and {count} games");
            // The players that are looked up are part of the run's name.
            let run = if games.is_resolved() { games.run_id() } else { games.name().to_owned() };
            (what, run, trials.calibrated_games(games, threads))
        }
    }
}

/// How many champions the yardsticks of a plan measure, and about how long that takes on one thread.
fn measuring(plan: &Plan) -> Option<(u64, Duration)> {
    let parts: Vec<&Experiment> = match plan {
        Plan::Single(experiment) => vec![experiment],
        Plan::Study(study) => study.parts.iter().map(|part| &part.experiment).collect(),
        Plan::Sweep(_) | Plan::Tournament(_) => vec![],
    };
    let measured = parts.into_iter().filter_map(Experiment::measuring);
    measured.reduce(|(champions, time), (more, longer)| (champions + more, time.saturating_add(longer)))
}

/// Whether a target or stagnation may end something of a plan before its budget does.
fn may_end_early(plan: &Plan) -> bool {
    let early = |experiment: &Experiment| {
        experiment.budget().target_fitness.is_some() || experiment.budget().stagnation.is_some()
    };
    match plan {
        Plan::Single(experiment) => early(experiment),
        Plan::Sweep(sweep) => early(&sweep.cell(0).experiment),
        Plan::Study(study) => study.parts.iter().any(|part| early(&part.experiment)),
        Plan::Tournament(_) => false,
    }
}

/// About how long it takes; `most` says that it may take less.
fn shown(time: Duration, most: &str) -> String {
    if time < Duration::from_millis(100) {
        return "less than 0.1s".to_owned();
    }
    format!("{most}about {}", duration::show(time))
}

#[derive(clap::Args)]
pub(crate) struct SchemaArguments {
    /// Print the keys as Markdown tables
    #[arg(long)]
    markdown: bool,
}

pub(crate) fn schema(arguments: &SchemaArguments) -> ExitCode {
    let schema = experiment::schema();
    if arguments.markdown {
        write_out!("{}", reference::markdown(&schema));
    } else {
        out!("{}", serde_json::to_string_pretty(&schema).expect("a schema is JSON"));
    }
    ExitCode::SUCCESS
}

fn describe(experiment: &Experiment) -> String {
    let setting = experiment.setting();
    let individuals: u64 = setting.islands.iter().map(|island| island.algorithm.capacity()).sum();
    let islands = counted(setting.islands.len() as u64, "island", "islands");
    let individuals = counted(individuals, "individual", "individuals");
    format!("{islands} with {individuals}, {}", counted(setting.edges.len() as u64, "edge", "edges"))
}

fn together(estimates: impl Iterator<Item = Estimate>) -> Estimate {
    let nothing =
        Estimate { evaluations: Some(0), time: Some(std::time::Duration::ZERO), disk: 0, memory: 0 };
    estimates.fold(nothing, |sum, next| Estimate {
        evaluations: sum.evaluations.zip(next.evaluations).map(|(a, b)| a.saturating_add(b)),
        time: sum.time.zip(next.time).map(|(a, b)| a.saturating_add(b)),
        disk: sum.disk.saturating_add(next.disk),
        memory: sum.memory.max(next.memory),
    })
}

fn shared(estimate: Estimate, threads: usize) -> Estimate {
    Estimate { time: estimate.time.map(|time| time / threads as u32), ..estimate }
}

/// A size in few characters.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..0xf_fe00 => format!("{} KiB", (count + (1 << 9)) >> 10),
        0xf_fe00..0x3ff8_0000 => format!("{} MiB", (count + (1 << 19)) >> 20),
        _ => format!("{:.1} GiB", count as f64 / (1u64 << 30) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded() {
        let shown = [1023, 1024, 1535, 1536, 0xf_fdff, 0xf_fe00, 3 << 19, 0x3ff8_0000].map(bytes);
        assert_eq!(shown, ["1023 B", "1 KiB", "1 KiB", "2 KiB", "1023 KiB", "1 MiB", "2 MiB", "1.0 GiB"]);
    }

    /// Databases that are built during a trial, searches that are one evaluation, and evaluations that were not counted were
    /// off by factors of hundreds.
    #[test]
    fn a_trial_changes_no_estimate_beyond_reason() {
        for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let plan = experiment::load(&path, None).unwrap();
            let seconds = |trials| {
                let (_, _, estimate) = described(&plan, &trials, 2);
                estimate.time.unwrap().as_secs_f64()
            };
            let (tried, untried) = (seconds(Trials::new()), seconds(Trials::none()));
            // Without a trial, what ends early on most evaluations counts in full: a level of Match-3 may take a million plays.
            assert!(tried < 15.0 * untried, "{}: {tried} s, without a trial {untried} s", path.display());
            assert!(tried > 0.001 * untried, "{}: {tried} s, without a trial {untried} s", path.display());
        }
    }
}
