//! `atoll verify`: every object checked, and every epoch computed again whose inputs are still kept.

mod recomputation;
mod study;
mod summaries;
mod yardstick;

use crate::cells;
use crate::failure::Failure;
use crate::progress::counted;
use crate::run::pool;
use crate::run_name;
use crate::store_argument::StoreArgument;
use crate::terminal::out;
use archipelago::cell::CellPlan;
use archipelago::{Archipelago, CellProgress};
use evolution::digest::Digest;
use experiment::Plan;
use experiment::document::MAX_STORED;
use recomputation::Recomputation;
use run::epochs::total;
use run::fold::{Finished, RunCreation};
use run::head::Restored;
use run::jobs::StoredJobs;
use run::journal;
use run::reader::Reader;
use run::summary::RunKind;
use run::{Lock, Place, RunEvent, RunHead, RunId, listing};
use std::process::ExitCode;
use store::{Kind, ObjectDamage, Store, StoreError};
use summaries::Facts;
use worker::Pool;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run to verify
    run: String,
    #[command(flatten)]
    store: StoreArgument,
    /// Number of threads [default: all cores that this process may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print the result as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Default)]
struct Findings {
    objects: u64,
    /// Epochs, cells, batches of games or, of a study, all of them.
    results: u64,
    recomputed: u64,
    /// Measurements that were played again.
    measured: u64,
    kind: Option<RunKind>,
    /// How the run stands by its journal.
    state: String,
    problems: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    if !run::stored::is_run(&store, &run).await? {
        return Err(run::RunError::Unknown { run }.into());
    }
    let mut findings = Findings::default();
    let mut parts = vec![];
    let pool = pool(arguments.threads)?;
    check_run(&store, &run, &pool, &mut findings).await?;
    if findings.kind == Some(RunKind::Study) {
        for part in run::study::stored_parts(&store, &run).await? {
            // A part starts when its inputs exist. In a finished study, the digest shows that a part is missing.
            if !run::stored::is_run(&store, &part).await? {
                continue;
            }
            let mut found = Findings::default();
            check_run(&store, &part, &pool, &mut found).await?;
            findings.add_part(&part, &found);
            parts.push((part, found));
        }
    }
    findings.print(&run, &parts, arguments.json);
    Ok(if findings.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks one run; of a study only its own objects. A run that is worked on changes while it is read: what does not fit
/// together then is no damage.
async fn check_run(store: &Store, run: &RunId, pool: &Pool, findings: &mut Findings) -> Result<(), Failure> {
    // In a folder that cannot be written, locks cannot be read.
    if let Ok(Some(holder)) = Lock::holder(store, run) {
        return Err(Failure::InUse(format!("{holder} works on run `{run}`: verify it when it has stopped")));
    }
    // A bucket has no locks, and a coordinator has one for all of its runs. Objects are only created and deleted, so a run
    // changes exactly if its list of objects does.
    let before = store.list(&run.folder()).await?;
    let checked = check_unused(store, run, pool, findings).await;
    if (checked.is_err() || !findings.problems.is_empty()) && store.list(&run.folder()).await? != before {
        let message = format!("run `{run}` changed while it was read: verify it when no process works on it");
        return Err(Failure::InUse(message));
    }
    checked
}

/// The same of a run that does not change.
async fn check_unused(
    store: &Store,
    run: &RunId,
    pool: &Pool,
    findings: &mut Findings,
) -> Result<(), Failure> {
    check_objects(store, run, findings).await?;
    let plan = match run::stored::read_plan(store, run).await {
        Ok((plan, _)) => plan,
        Err(error) => {
            findings.kind = None;
            if findings.problems.is_empty() {
                findings.problems.push(error.to_string());
            }
            return Ok(());
        }
    };
    findings.kind = Some(RunKind::of(&plan));
    if !findings.problems.is_empty() {
        return Ok(());
    }
    match plan {
        Plan::Study(study) => study::check(store, run, *study, findings).await,
        Plan::Single(_) => match Reader::read(store, run).await {
            Ok(reader) => check_history(store, run, reader, pool, findings).await,
            Err(error) => {
                findings.problems.push(error.to_string());
                Ok(())
            }
        },
        plan => match CellPlan::of(plan) {
            Some(plan) => check_cells(store, run, plan, pool, findings).await,
            None => Ok(()),
        },
    }
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
                    Err(error @ StoreError::Damaged { damage: ObjectDamage::UnknownVersion { .. }, .. }) => {
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
    pool: &Pool,
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
    findings.state = listing::state(store, run, &stored.recorded.status).0;
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
    findings.results += progress.done().len() as u64;
    for (number, again) in cells::compute_again(store, run, &progress, pool).await? {
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
fn check_created(created: Option<&RunCreation>, experiment: &Digest, findings: &mut Findings) {
    if let Some(RunCreation { experiment: found, .. }) =
        created.filter(|created| created.experiment != *experiment)
    {
        findings.problems.push(format!("event 0: expected the digest {experiment}, found {found}"));
    }
}

async fn check_cell_summaries(
    store: &Store,
    run: &RunId,
    progress: &CellProgress,
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
    pool: &Pool,
    findings: &mut Findings,
) -> Result<(), Failure> {
    findings.problems.extend(reader.damage.iter().map(ToString::to_string));
    findings.state = listing::state(store, run, &reader.recorded.status).0;
    check_created(reader.recorded.created.as_ref(), &reader.experiment.digest(), findings);
    findings.results += reader.stored().records.iter().map(|records| records.len() as u64).sum::<u64>();
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
        standings.map(|standings| total(standings.iter().copied(), past.records.len()))
    };
    let facts = Facts {
        kind: RunKind::Evolution,
        islands: past.records.len() as u32,
        goal: archipelago.generations(),
        standing: &standing,
    };
    summaries::check(store, run, &events, &facts, findings).await?;
    let recomputation = Recomputation { store, run, head: &head, past, archipelago: &archipelago };
    recomputation.run(pool, findings).await?;
    yardstick::check(store, run, &reader, pool, findings).await
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
    /// Adds what was found of a part of a study.
    fn add_part(&mut self, part: &RunId, found: &Self) {
        self.objects += found.objects;
        self.results += found.results;
        self.recomputed += found.recomputed;
        self.measured += found.measured;
        self.problems.extend(found.problems.iter().map(|problem| format!("part `{part}`: {problem}")));
    }

    /// What a result and several are called, and the key of their number.
    fn what(&self) -> (&'static str, &'static str, &'static str) {
        match self.kind {
            None | Some(RunKind::Evolution) => ("epoch", "epochs", "epochs"),
            Some(RunKind::Sweep) => ("cell", "cells", "cells"),
            Some(RunKind::Tournament) => ("batch of games", "batches of games", "batches"),
            Some(RunKind::Study) => ("result of its parts", "results of its parts", "results"),
        }
    }

    fn state(&self) -> &str {
        if self.state.is_empty() || !self.problems.is_empty() { "damaged" } else { &self.state }
    }

    fn object(&self, run: &RunId) -> serde_json::Value {
        let Self { objects, results, recomputed, kind, problems, .. } = self;
        let mut object = serde_json::json!({
            "run": run.as_str(), "kind": kind.map(RunKind::name), "ok": problems.is_empty(), "state": self.state(),
            "objects": objects, "recomputed": recomputed, "problems": problems,
        });
        object[self.what().2] = (*results).into();
        if self.measured > 0 {
            object["measured"] = self.measured.into();
        }
        object
    }

    fn print(&self, run: &RunId, parts: &[(RunId, Self)], json: bool) {
        if json {
            let mut object = self.object(run);
            if !parts.is_empty() {
                object["parts"] = parts.iter().map(|(part, found)| found.object(part)).collect();
            }
            out!("{object}");
            return;
        }
        self.print_line(run);
        for (part, found) in parts {
            found.print_line(part);
        }
        for problem in &self.problems {
            out!("  {problem}");
        }
        out!("{}", if self.problems.is_empty() { "everything agrees" } else { "not everything agrees" });
    }

    fn print_line(&self, run: &RunId) {
        let Self { results, recomputed, .. } = self;
        let (state, (one, several, _)) = (self.state(), self.what());
        let (objects, results) =
            (counted(self.objects, "object", "objects"), counted(*results, one, several));
        let measured = match self.measured {
            0 => String::new(),
            1 => ", 1 measurement played again".to_owned(),
            count => format!(", {count} measurements played again"),
        };
        out!("{run}: {state}, {objects} read, {results} stored, {recomputed} computed again{measured}");
    }
}
