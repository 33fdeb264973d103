//! `atoll verify`: every object checked, and every epoch computed again whose inputs are still kept.

mod recomputation;
mod study;
mod summaries;

use crate::cells;
use crate::failure::Failure;
use crate::run::How;
use crate::run_name;
use crate::terminal::out;
use archipelago::cell::CellPlan;
use archipelago::{Archipelago, Progress};
use evolution::digest::Digest;
use experiment::Plan;
use experiment::document::MAX_STORED;
use recomputation::Recomputation;
use run::epochs::total;
use run::fold::{Created, Finished};
use run::head::Restored;
use run::jobs::StoredJobs;
use run::journal;
use run::reader::Reader;
use run::summary::RunKind;
use run::{Place, RunEvent, RunHead, RunId};
use std::process::ExitCode;
use store::{Damage, Kind, Store, StoreError};
use summaries::Facts;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to verify
    run: String,
    #[command(flatten)]
    how: How,
}

/// What was found.
#[derive(Default)]
struct Findings {
    objects: u64,
    epochs: u64,
    recomputed: u64,
    /// How the run stands by its journal.
    state: String,
    problems: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.how.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    if let Err(error) = store.size(&Place::Experiment.in_run(&run)).await
        && error.is_missing()
    {
        return Err(run::RunError::Unknown { run }.into());
    }
    let mut findings = Findings::default();
    check_objects(&store, &run, &mut findings).await?;
    if findings.problems.is_empty() {
        let pool = arguments.how.pool()?;
        match cells::stored(&store, &run).await {
            Ok(Some(plan)) => check_cells(&store, &run, plan, &arguments.how, &mut findings).await?,
            Ok(None) if let Some(study) = stored_study(&store, &run).await => {
                study::check(&store, &run, &study, &mut findings).await?;
            }
            Ok(None) => match Reader::read(&store, &run).await {
                Ok(reader) => check_history(&store, &run, reader, &pool, &mut findings).await?,
                Err(error) => findings.problems.push(error.to_string()),
            },
            Err(error) => findings.problems.push(error.to_string()),
        }
    }
    findings.print(&run, arguments.how.json);
    Ok(if findings.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads every object of the run: each has a checksum over all of its bits.
async fn check_objects(store: &Store, run: &RunId, findings: &mut Findings) -> Result<(), Failure> {
    let dropped = run.dropped();
    for path in store.list(&run.folder()).await? {
        // What a repair has moved out of the way is kept for people.
        if path.prefix_matches(&dropped) {
            continue;
        }
        let read = match Place::of(&path) {
            Some((_, Place::Experiment)) => store.read_text(&path, MAX_STORED).await.map(drop),
            Some((_, Place::Artifact(name))) if name.as_str().contains('.') => continue,
            Some((_, Place::Artifact(_))) => store.read(&path, Kind::Artifact).await.map(drop),
            Some((_, place)) => match place.kind() {
                Some(kind) => store.read(&path, kind).await.map(drop),
                None => continue,
            },
            None => {
                let unknown = format!("{path}: expected an object of a run, found an unknown name");
                // What another version wrote is named otherwise, but it says so.
                let found = match store.read(&path, Kind::Event).await {
                    Err(error @ StoreError::Damaged { damage: Damage::UnknownVersion { .. }, .. }) => {
                        error.to_string()
                    }
                    _ => unknown,
                };
                findings.problems.push(found);
                continue;
            }
        };
        findings.objects += 1;
        if let Err(error) = read {
            findings.problems.push(error.to_string());
        }
    }
    Ok(())
}

/// Computes the cells of a sweep or a tournament again.
async fn check_cells(
    store: &Store,
    run: &RunId,
    plan: CellPlan,
    how: &How,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let name = plan.run_id();
    // The tournament of a study is named by the study.
    if !run.as_str().starts_with(&name) && !run.as_str().ends_with(".tournament") {
        findings
            .problems
            .push(format!("experiment.toml: expected the plan of `{run}`, found that of `{name}`"));
    }
    let stored = StoredJobs::read(store, run, plan).await?;
    findings.state = stored.state();
    let StoredJobs { progress, recorded, damage, .. } = stored;
    findings.problems.extend(damage.iter().map(ToString::to_string));
    if !damage.is_empty() {
        return Ok(());
    }
    check_created(recorded.created.as_ref(), &progress.plan().digest(), findings);
    check_cell_summaries(store, run, &progress, findings).await?;
    if let Some(found) = recorded.finished.map(|finished| finished.digest)
        && let Some(expected) = progress.digest().filter(|expected| *expected != found)
    {
        findings.problems.push(format!("the run's digest: expected {expected}, found {found}"));
    }
    for (number, result) in progress.done() {
        if !progress.plan().is_sound(*number, result) {
            findings.problems.push(format!("cell {number}: its games cannot have been played"));
        }
    }
    findings.epochs += progress.done().len() as u64;
    for (number, again) in cells::compute_again(store, run, &progress, how).await? {
        findings.recomputed += 1;
        let stored = &progress.done()[&number];
        if again.as_ref() != Ok(stored) {
            let found = again.map_or_else(|reason| reason, |again| again.digest().to_string());
            let expected = stored.digest();
            findings
                .problems
                .push(format!("cell {number}: expected the digest {expected}, computed {found}"));
        }
    }
    Ok(())
}

/// The event that created a run names what is run.
fn check_created(created: Option<&Created>, experiment: &Digest, findings: &mut Findings) {
    if let Some(Created { experiment: found, .. }) =
        created.filter(|created| created.experiment != *experiment)
    {
        findings.problems.push(format!("event 0: expected the digest {experiment}, found {found}"));
    }
}

async fn check_cell_summaries(
    store: &Store,
    run: &RunId,
    progress: &Progress,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let events = journal::read_all::<RunEvent>(store, run).await.map_err(run::RunError::from)?;
    let outline = run::jobs::outline(progress, 0);
    let facts = Facts {
        kind: outline.kind,
        islands: outline.islands,
        goal: outline.goal,
        standing: &|_| outline.standing,
    };
    summaries::check(store, run, &events, &facts, findings).await
}

/// Checks the chain of digests from the founding on, and computes epochs again.
async fn check_history(
    store: &Store,
    run: &RunId,
    reader: Reader,
    pool: &worker::Pool,
    findings: &mut Findings,
) -> Result<(), Failure> {
    findings.problems.extend(reader.damage.iter().map(ToString::to_string));
    findings.state = reader.state();
    check_created(reader.recorded.created.as_ref(), &reader.experiment.digest(), findings);
    findings.epochs += reader.stored().records.iter().map(|records| records.len() as u64).sum::<u64>();
    if !reader.damage.is_empty() {
        return Ok(());
    }
    let head = RunHead::read(store, run).await?;
    let Some(archipelago) = check_digest(store, run, &head, findings).await else { return Ok(()) };
    let past = reader.stored();
    let events = journal::read_all::<RunEvent>(store, run).await.map_err(run::RunError::from)?;
    let standing = |end: Option<&archipelago::End>| {
        let at = |records: &Vec<run::record::EpochRecord>| {
            records.get(end?.epoch as usize).map(|record| record.mark.standing)
        };
        let standings: Option<Vec<_>> = past.records.iter().map(at).collect();
        standings.map(|standings| total(standings.iter().copied()))
    };
    let facts = Facts {
        kind: RunKind::Evolution,
        islands: past.records.len() as u32,
        goal: archipelago.generations(),
        standing: &standing,
    };
    summaries::check(store, run, &events, &facts, findings).await?;
    let recomputation = Recomputation { store, run, head: &head, past, archipelago: &archipelago };
    recomputation.run(pool, findings).await
}

/// The study that a run is, if it is one.
async fn stored_study(store: &Store, run: &RunId) -> Option<Box<experiment::Study>> {
    let path = Place::Experiment.in_run(run);
    let text = store.read_text(&path, MAX_STORED).await.ok()?;
    match experiment::parse(path.as_ref(), &text, None) {
        Ok(Plan::Study(study)) => Some(study),
        _ => None,
    }
}

/// Whether the finished run has the digest that its journal says.
async fn check_digest(
    store: &Store,
    run: &RunId,
    head: &RunHead,
    findings: &mut Findings,
) -> Option<Archipelago> {
    let archipelago = match head.restore(store, run).await {
        Ok(Restored { archipelago, .. }) => archipelago,
        Err(error) => {
            findings.problems.push(error.to_string());
            return None;
        }
    };
    if let Some(Finished { end: Some(end), digest, .. }) = head.recorded().finished {
        let found = archipelago.digest();
        if let Some(judged) = archipelago.end().filter(|judged| **judged != end) {
            findings.problems.push(format!("the run's end: expected {judged:?}, found {end:?}"));
        }
        if found != Some(digest) {
            let found = found.map_or("an unfinished run".to_owned(), |digest| digest.to_string());
            findings
                .problems
                .push(format!("the run's digest: expected {digest} at epoch {}, found {found}", end.epoch));
        }
    }
    Some(archipelago)
}

impl Findings {
    fn print(&self, run: &RunId, json: bool) {
        let Self { objects, epochs, recomputed, state, problems } = self;
        if json {
            let object = serde_json::json!({
                "run": run.as_str(), "ok": problems.is_empty(), "state": state, "objects": objects, "epochs": epochs,
                "recomputed": recomputed, "problems": problems,
            });
            out!("{object}");
            return;
        }
        let state = if state.is_empty() { "damaged" } else { state };
        out!(
            "{run}: {state}, {objects} objects read, {epochs} epochs in the records, {recomputed} computed again"
        );
        for problem in problems {
            out!("  {problem}");
        }
        out!("{}", if problems.is_empty() { "everything agrees" } else { "not everything agrees" });
    }
}
