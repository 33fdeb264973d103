//! `atoll verify`: every object checked, and every epoch computed again whose inputs are still kept.

use crate::cells;
use crate::failure::Failure;
use crate::run::How;
use crate::run_name;
use crate::terminal::out;
use archipelago::cell::CellPlan;
use archipelago::{Archipelago, Mark};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{self, EpochTask, Evolver, Packet, Standing};
use experiment::document::MAX_STORED;
use run::epochs::StoredEpochs;
use run::fold::{Created, Finished};
use run::head::Restored;
use run::jobs::StoredJobs;
use run::reader::Reader;
use run::{Place, RunEvent, RunHead, RunId};
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::{Damage, Kind, Store, StoreError};

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
    problems: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.how.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    if store.size(&Place::Experiment.in_run(&run)).await.is_err() {
        return Err(run::RunError::Unknown { run }.into());
    }
    let mut findings = Findings::default();
    check_objects(&store, &run, &mut findings).await?;
    if findings.problems.is_empty() {
        let pool = arguments.how.pool()?;
        match cells::stored(&store, &run).await {
            Ok(Some(plan)) => check_cells(&store, &run, plan, &arguments.how, &mut findings).await?,
            Ok(None) if is_study(&store, &run).await => check_study(&store, &run, &mut findings).await,
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
    for path in store.list(&run.folder()).await? {
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
    let StoredJobs { progress, recorded, damage, .. } = StoredJobs::read(store, run, plan).await?;
    findings.problems.extend(damage.iter().map(ToString::to_string));
    if let Some(found) = recorded.finished.map(|finished| finished.digest)
        && let Some(expected) = progress.digest().filter(|expected| *expected != found)
    {
        findings.problems.push(format!("the run's digest: expected {expected}, found {found}"));
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

/// Checks the chain of digests from the founding on, and computes epochs again.
async fn check_history(
    store: &Store,
    run: &RunId,
    reader: Reader,
    pool: &worker::Pool,
    findings: &mut Findings,
) -> Result<(), Failure> {
    findings.problems.extend(reader.damage.iter().map(ToString::to_string));
    let experiment = reader.experiment.digest();
    if let Some(Created { experiment: created, text, .. }) = &reader.recorded.created {
        if *created != experiment {
            findings
                .problems
                .push(format!("experiment.toml: expected the digest {created}, found {experiment}"));
            return Ok(());
        }
        if *text != reader.text {
            let found = reader.text;
            findings
                .problems
                .push(format!("experiment.toml was altered: expected the checksum {text}, found {found}"));
        }
    }
    for (island, records) in reader.stored().records.iter().enumerate() {
        findings.epochs += records.len() as u64;
        check_chain(island, &experiment, records.iter().map(|record| &record.mark), findings);
    }
    if !reader.damage.is_empty() {
        return Ok(());
    }
    let head = RunHead::read(store, run).await?;
    let Some(archipelago) = check_digest(store, run, &head, findings).await else { return Ok(()) };
    let past = reader.stored();
    let recomputation = Recomputation { store, run, head: &head, past, archipelago: &archipelago };
    recomputation.run(pool, findings).await
}

/// Whether a run is a study, of which nothing is stored but its text and its journal.
async fn is_study(store: &Store, run: &RunId) -> bool {
    let path = Place::Experiment.in_run(run);
    let Ok(text) = store.read_text(&path, MAX_STORED).await else { return false };
    matches!(experiment::parse(path.as_ref(), &text, None), Ok(experiment::Plan::Study(_)))
}

/// Reads the journal of a study; its parts are runs of their own.
async fn check_study(store: &Store, run: &RunId, findings: &mut Findings) {
    if let Err(error) = run::journal::read_all::<RunEvent>(store, run).await {
        findings.problems.push(error.to_string());
    }
}

fn check_chain<'a>(
    island: usize,
    experiment: &Digest,
    marks: impl Iterator<Item = &'a Mark>,
    findings: &mut Findings,
) {
    let mut before = *experiment;
    for mark in marks {
        let expected = mark.chained_to(&before);
        if mark.chain != expected {
            findings
                .problems
                .push(format!("island {island}, epoch {}: its chain of digests is broken", mark.epoch));
            return;
        }
        before = mark.chain;
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
        if found != Some(digest) {
            let found = found.map_or("an unfinished run".to_owned(), |digest| digest.to_string());
            findings
                .problems
                .push(format!("the run's digest: expected {digest} at epoch {}, found {found}", end.epoch));
        }
    }
    Some(archipelago)
}

/// How many epochs behind the slowest island are remembered, in case somebody took them late.
const REMEMBERED: u64 = 64;

/// Epochs computed again from the founding on.
struct Recomputation<'a> {
    store: &'a Store,
    run: &'a RunId,
    head: &'a RunHead,
    past: &'a StoredEpochs,
    archipelago: &'a Archipelago,
}

/// What is known of an epoch: read from the store, or computed again.
struct Known {
    state: Bytes,
    departure: Bytes,
}

impl Recomputation<'_> {
    /// Computes every island's epochs in their order, each as soon as everything that it took is known: asynchronously
    /// that may be another island's later epoch.
    async fn run(&self, pool: &worker::Pool, findings: &mut Findings) -> Result<(), Failure> {
        let evolver = self.head.experiment.evolver();
        let mut known: BTreeMap<(u64, usize), Known> = BTreeMap::new();
        let mut next = vec![0; self.past.records.len()];
        loop {
            let tasks: Vec<(usize, &Mark, EpochTask)> = next
                .iter()
                .enumerate()
                .filter_map(|(island, &epoch)| self.task(island, epoch, &known))
                .collect();
            if tasks.is_empty() {
                break;
            }
            let outcomes = pool.install(|| compute(&*evolver, &tasks));
            for ((island, mark, _), outcome) in tasks.iter().zip(outcomes) {
                compare(*island, mark, outcome, &mut known, findings);
                self.read_state(*island, mark, &mut known, findings).await?;
                next[*island] += 1;
            }
            let oldest = next.iter().min().copied().unwrap_or(0).saturating_sub(REMEMBERED);
            known.retain(|&(epoch, _), _| epoch >= oldest);
        }
        let lost = |(island, epoch): (usize, &u64)| *epoch < self.archipelago.done(island as u32);
        for (island, epoch) in next.iter().enumerate().filter(|&stuck| lost(stuck)) {
            findings
                .problems
                .push(format!("island {island}, epoch {epoch}: what it took is not in the records"));
        }
        Ok(())
    }

    /// The epoch as it was run, if everything that it took is known.
    fn task(
        &self,
        island: usize,
        epoch: u64,
        known: &BTreeMap<(u64, usize), Known>,
    ) -> Option<(usize, &Mark, EpochTask)> {
        let mark = &self.past.records[island].get(epoch as usize)?.mark;
        let until = self.archipelago.schedule().end_of(epoch)?;
        let state = match epoch {
            0 => None,
            _ => Some(known.get(&(epoch - 1, island))?.state.clone()),
        };
        let mut packets = vec![];
        for &(from, left) in &mark.took {
            let departure = match from {
                u32::MAX => self.archipelago.guests()?,
                _ => known.get(&(left, from as usize))?.departure.clone(),
            };
            packets.push(Packet { from, epoch: left, departure });
        }
        Some((island, mark, EpochTask { island: island as u32, epoch, until, state, packets }))
    }

    /// Compares the stored state of an epoch, if there is one, with its record.
    async fn read_state(
        &self,
        island: usize,
        mark: &Mark,
        known: &mut BTreeMap<(u64, usize), Known>,
        findings: &mut Findings,
    ) -> Result<(), Failure> {
        let epoch = mark.epoch;
        if !self.past.states[island].contains_key(&epoch) {
            return Ok(());
        }
        let remains = match self.past.remains(self.store, self.run, island as u32, epoch).await {
            Ok(remains) => remains,
            Err(error) => {
                findings.problems.push(error.to_string());
                return Ok(());
            }
        };
        let kept = Known { state: remains.state.into(), departure: remains.departure.into() };
        known.entry((epoch, island)).or_insert(kept);
        Ok(())
    }
}

/// Compares an epoch with its record, and keeps it for those that come after.
fn compare(
    island: usize,
    mark: &Mark,
    outcome: Result<(Digest, Standing, Known), String>,
    known: &mut BTreeMap<(u64, usize), Known>,
    findings: &mut Findings,
) {
    findings.recomputed += 1;
    let Mark { epoch, digest: expected, .. } = mark;
    match outcome {
        Ok((digest, standing, kept)) => {
            if standing != mark.standing {
                findings.problems.push(format!(
                    "island {island}, epoch {epoch}: expected the standing {standing:?}, found {:?}",
                    mark.standing
                ));
            }
            if digest != *expected {
                findings.problems.push(format!(
                    "island {island}, epoch {epoch}: expected the digest {expected}, computed {digest}"
                ));
            }
            known.insert((*epoch, island), kept);
        }
        Err(reason) => findings.problems.push(reason),
    }
}

fn compute(
    evolver: &dyn Evolver,
    tasks: &[(usize, &Mark, EpochTask)],
) -> Vec<Result<(Digest, Standing, Known), String>> {
    use rayon::prelude::*;
    let compute = |(_, _, task): &(usize, &Mark, EpochTask)| {
        let outcome = epoch::run(evolver, task).map_err(|error| error.to_string())?;
        let known = Known { state: outcome.state, departure: outcome.departure };
        Ok((outcome.digest, outcome.standing, known))
    };
    tasks.par_iter().map(compute).collect()
}

impl Findings {
    fn print(&self, run: &RunId, json: bool) {
        let Self { objects, epochs, recomputed, problems } = self;
        if json {
            let object = serde_json::json!({
                "run": run.as_str(), "ok": problems.is_empty(), "objects": objects, "epochs": epochs,
                "recomputed": recomputed, "problems": problems,
            });
            out!("{object}");
            return;
        }
        out!("{run}: {objects} objects read, {epochs} epochs in the records, {recomputed} computed again");
        for problem in problems {
            out!("  {problem}");
        }
        out!("{}", if problems.is_empty() { "everything agrees" } else { "not everything agrees" });
    }
}
