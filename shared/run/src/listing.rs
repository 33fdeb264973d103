//! The runs of a store as lists show them: what is cheap to read, and never an error.

use crate::damage::Damage;
use crate::epochs::total;
use crate::event::RunEvent;
use crate::fold::{Recorded, Status};
use crate::head::RunHead;
use crate::jobs::{self, StoredJobs};
use crate::journal::{self, JournalHead};
use crate::labels;
use crate::layout::{self, Place, RunId};
use crate::lock::Lock;
use crate::record::Commit;
use crate::removal::{self, RemovedRun};
use crate::stored::{self, StoredRun};
use crate::study;
use crate::summary::{Ended, Outline, RunKind, Summary};
use crate::yardstick::Strengths;
use archipelago::Mark;
use archipelago::cell::CellPlan;
use codec::Standing;
use experiment::document::MAX_STORED;
use experiment::{Plan, Study};
use futures::{StreamExt, stream};
use report::dashboard::{EventView, IslandState, IslandView, Phase, RunRow};
use std::collections::BTreeMap;
use store::{Kind, Store, StoreError};

/// Commits that are read back at most to find where an unfinished run stands.
const COMMITS: usize = 32;
/// Points of the curve in a list, and the largest commit that is read for one.
const POINTS: usize = 16;
const LARGEST: u64 = 4 << 20;
/// How many objects are read at once.
const READ_AHEAD: usize = 16;

/// All runs of a store, by name.
///
/// # Errors
/// If the store cannot be listed.
pub async fn names(store: &Store) -> Result<Vec<RunId>, StoreError> {
    let folders = store.folders(&layout::runs()).await?;
    Ok(folders.iter().filter_map(layout::run_of_folder).collect())
}

/// One run; a run that cannot be read is listed as damaged. Nothing if there is no such run.
pub async fn row(store: &Store, run: &RunId) -> Option<RunRow> {
    let row = row_without_labels(store, run).await?;
    // A list is no place for errors of labels.
    let labels = labels::read(store, run).await.unwrap_or_default();
    Some(RunRow { labels: labels.to_strings(), ..row })
}

async fn row_without_labels(store: &Store, run: &RunId) -> Option<RunRow> {
    match Summary::read(store, run).await {
        Ok(Some(summary)) => {
            return Some(match stored::look(store, run, &summary).await {
                Ok(()) => of_summary(run, &summary),
                Err(error) => {
                    let RunRow { kind, unit, created, priority, .. } = of_summary(run, &summary);
                    RunRow { kind, unit, created, priority, ..damaged(run, &error.to_string()) }
                }
            });
        }
        Err(error) => return Some(damaged(run, &error.to_string())),
        Ok(None) => {}
    }
    let path = Place::Experiment.in_run(run);
    let text = match store.read_text(&path, MAX_STORED).await {
        Ok(text) => text,
        Err(error) if error.is_missing() => return without_experiment(store, run).await,
        Err(error) => return Some(damaged(run, &error.to_string())),
    };
    let parsed = experiment::parse(path.as_ref(), &text, None);
    let kind = match &parsed {
        Ok(Plan::Single(_)) => RunKind::Evolution,
        Ok(Plan::Study(_)) => RunKind::Study,
        Ok(Plan::Tournament(_)) => RunKind::Tournament,
        Ok(Plan::Sweep(_)) => RunKind::Sweep,
        Err(report) => return Some(damaged(run, &report.to_string())),
    };
    let row = match parsed {
        Ok(Plan::Single(_)) => evolution(store, run).await,
        Ok(Plan::Study(study)) => study_row(store, run, &study).await,
        Ok(plan) => match CellPlan::of(plan) {
            Some(plan) => cells(store, run, plan).await,
            None => Err("its plan has no cells".to_owned()),
        },
        Err(report) => Err(report.to_string()),
    };
    Some(row.unwrap_or_else(|reason| {
        let (kind, unit) = words(kind);
        RunRow { kind: kind.to_owned(), unit: unit.to_owned(), ..damaged(run, &reason) }
    }))
}

/// The same, with the damage of a finished run that only its records show, as `atoll runs` lists it.
pub async fn whole_row(store: &Store, run: &RunId) -> Option<RunRow> {
    let row = row(store, run).await?;
    if row.state != "finished" {
        return Some(row);
    }
    Some(match check(store, run).await {
        Ok(()) => row,
        Err(reason) => {
            let RunRow { kind, unit, created, priority, labels, .. } = row;
            RunRow { kind, unit, created, priority, labels, ..damaged(run, &reason) }
        }
    })
}

/// Whether a run is whole, as far as its records and results show it.
async fn check(store: &Store, run: &RunId) -> Result<(), String> {
    let stored = StoredRun::read(store, run).await.map_err(|error| error.to_string())?;
    stored.damage().first().map_or(Ok(()), |damage| Err(damage.to_string()))
}

/// A run that has lost its experiment, unless it is being removed; nothing where there are no events either.
async fn without_experiment(store: &Store, run: &RunId) -> Option<RunRow> {
    if store.list(&run.events()).await.is_ok_and(|events| events.is_empty()) {
        return None;
    }
    let pending = removal::pending(store).await.unwrap_or_default();
    let is_removed = |removed: &RemovedRun| removed.run == run.as_str();
    let is_pending = pending.iter().any(|(_, removal)| removal.runs.iter().any(is_removed));
    (!is_pending).then(|| damaged(run, &Damage::NoExperiment.to_string()))
}

/// The word for a kind of run, and for what its progress is counted in.
fn words(kind: RunKind) -> (&'static str, &'static str) {
    match kind {
        RunKind::Evolution => ("evolution", "generations"),
        RunKind::Sweep => ("sweep", "cells"),
        RunKind::Tournament => ("tournament", "batches"),
        RunKind::Study => ("study", "parts"),
    }
}

/// The first line of a reason, and the next one with it if that is what the first one announces.
fn in_a_line(reason: &str) -> String {
    let mut lines = reason.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    match lines.next() {
        Some(next) if first.ends_with(':') => format!("{first} {next}"),
        _ => first.to_owned(),
    }
}

fn damaged(run: &RunId, reason: &str) -> RunRow {
    let reason = in_a_line(reason);
    RunRow { run: run.to_string(), state: "damaged".to_owned(), reason, ..RunRow::default() }
}

fn of_summary(run: &RunId, summary: &Summary) -> RunRow {
    let (state, reason) = match &summary.ended {
        Ended::Finished(reason, _) => ("finished", reason.clone()),
        Ended::Cancelled => ("cancelled", String::new()),
        Ended::Failed(reason) => ("failed", reason.clone()),
    };
    let digest = summary.digest().map(|digest| digest.to_string());
    let row = RunRow { created: summary.created, priority: summary.priority, digest, ..RunRow::default() };
    of_outline(run, summary.outline, (state.to_owned(), reason), row)
}

fn of_outline(run: &RunId, outline: Outline, (state, reason): (String, String), row: RunRow) -> RunRow {
    let Outline { kind, standing, goal, islands, elapsed } = outline;
    let (kind, unit) = words(kind);
    let standing = standing.unwrap_or(Standing { generation: 0, evaluations: 0, best: f64::NEG_INFINITY });
    let mut row = RunRow {
        run: run.to_string(),
        kind: kind.to_owned(),
        unit: unit.to_owned(),
        state,
        reason,
        best: Some(standing.best).filter(|best| best.is_finite()),
        done: standing.generation,
        evaluations: standing.evaluations,
        goal,
        islands,
        elapsed_milliseconds: elapsed,
        ..row
    };
    row.estimate();
    row
}

fn of_journal(recorded: &Recorded) -> RunRow {
    RunRow {
        created: recorded.created.as_ref().map_or(0, |created| created.at),
        priority: recorded.priority,
        digest: recorded.finished.as_ref().map(|finished| finished.digest.to_string()),
        ..RunRow::default()
    }
}

/// How a run stands as far as a store shows it.
pub fn phase(store: &Store, run: &RunId, status: &Status) -> Phase {
    match status {
        Status::Finished => Phase::Finished("its end is recorded".to_owned()),
        Status::Cancelled => Phase::Cancelled,
        Status::Failed(reason) => Phase::Failed(reason.clone()),
        // Who serves a bucket cannot be seen from here: there may be a coordinator.
        Status::Paused if store.folder_on_disk().is_none() || is_held(&Lock::server(store)) => Phase::Paused,
        Status::Paused if is_held(&Lock::holder(store, run)) => Phase::PausedHere,
        Status::Paused => Phase::PausedAlone,
        // Who serves a bucket cannot be seen from here.
        Status::Open if store.folder_on_disk().is_none() => {
            Phase::Elsewhere("unknown, if there is one: a bucket does not show it".to_owned())
        }
        Status::Open => {
            let own = Lock::holder(store, run).ok().flatten();
            let holder = own.or_else(|| Lock::server(store).ok().flatten());
            holder.map_or(Phase::Stopped, |holder| Phase::Elsewhere(holder.to_string()))
        }
    }
}

fn is_held<T, E>(holder: &Result<Option<T>, E>) -> bool {
    matches!(holder, Ok(Some(_)))
}

/// The same in a word, and why. A run that is open is running if a process has it, and stopped otherwise.
pub fn state(store: &Store, run: &RunId, status: &Status) -> (String, String) {
    match phase(store, run, status) {
        Phase::Failed(reason) => ("failed".to_owned(), reason),
        Phase::Damaged(reason) => ("damaged".to_owned(), reason),
        Phase::Finished(_) => ("finished".to_owned(), String::new()),
        Phase::Cancelled => ("cancelled".to_owned(), String::new()),
        Phase::Paused | Phase::PausedHere | Phase::PausedAlone => ("paused".to_owned(), String::new()),
        Phase::Stopped => ("stopped".to_owned(), String::new()),
        Phase::Elsewhere(_) if store.folder_on_disk().is_none() => ("unfinished".to_owned(), String::new()),
        Phase::Elsewhere(_) | Phase::Active => ("running".to_owned(), String::new()),
    }
}

async fn evolution(store: &Store, run: &RunId) -> Result<RunRow, String> {
    let head = RunHead::read(store, run).await.map_err(|error| error.to_string())?;
    let recorded = head.recorded();
    if recorded.status == Status::Finished {
        // Without a summary, which has what its records come to.
        check(store, run).await?;
    }
    let islands = head.experiment.setting().islands.len();
    let (marks, elapsed) = last_marks(store, run, islands).await;
    let standing = total(marks.values().map(|mark| mark.standing), islands);
    let budget = head.budget();
    let done = marks.values().map(|mark| mark.standing.generation).max().unwrap_or(0);
    let outline = Outline {
        kind: RunKind::Evolution,
        standing: Some(standing),
        goal: budget.generations,
        islands: islands as u32,
        elapsed,
    };
    let row = RunRow {
        strength: Strengths::read_newest(store, run, &head.experiment, done).await,
        goal_evaluations: budget.evaluations,
        goal_milliseconds: budget.wall_time.map(|time| time.as_millis() as u64),
        ..of_journal(&recorded)
    };
    Ok(of_outline(run, outline, state(store, run, &recorded.status), row))
}

/// The islands of a run that evolves, as far as its newest commits show them. What they do now is not stored.
pub async fn islands(store: &Store, run: &RunId, islands: u32) -> Vec<IslandView> {
    let (marks, _) = last_marks(store, run, islands as usize).await;
    let view = |(island, mark): (u32, Mark)| IslandView {
        island,
        epochs: mark.epoch + 1,
        generation: mark.standing.generation,
        best: Some(mark.standing.best).filter(|best| best.is_finite()),
        state: IslandState::Idle,
        worker: None,
    };
    marks.into_iter().map(view).collect()
}

/// The last epochs of the islands by the newest commits, and for how long the run was worked on.
async fn last_marks(store: &Store, run: &RunId, islands: usize) -> (BTreeMap<u32, Mark>, u64) {
    let (mut marks, mut elapsed) = (BTreeMap::new(), 0);
    let commits = store.list(&run.commits()).await.unwrap_or_default();
    for path in commits.iter().rev().take(COMMITS) {
        let Ok(commit) = store.read_value::<Commit>(path, Kind::Commit).await else { continue };
        for (island, records) in commit.islands {
            if let Some(last) = records.last() {
                marks.entry(island).or_insert_with(|| last.mark.clone());
                elapsed = last.labour.elapsed.max(elapsed);
            }
        }
        if marks.len() >= islands {
            break;
        }
    }
    (marks, elapsed)
}

async fn cells(store: &Store, run: &RunId, plan: CellPlan) -> Result<RunRow, String> {
    let stored = StoredJobs::read(store, run, plan).await.map_err(|error| error.to_string())?;
    if let Some(damage) = stored.damage.first() {
        return Err(damage.to_string());
    }
    let elapsed = stored.recorded.finished.as_ref().map_or(0, |finished| finished.elapsed);
    let outline = jobs::outline(&stored.progress, elapsed);
    Ok(of_outline(run, outline, state(store, run, &stored.recorded.status), of_journal(&stored.recorded)))
}

async fn study_row(store: &Store, run: &RunId, study: &Study) -> Result<RunRow, String> {
    let own = recorded(store, run).await?;
    let parts = study::parts(run, study).map_err(|error| error.to_string())?;
    let mut generation = 0;
    for part in &parts {
        // A part that was not begun has no journal.
        let is_finished = recorded(store, part).await.is_ok_and(|part| part.finished.is_some());
        generation += u64::from(is_finished);
    }
    let standing = Some(Standing { generation, evaluations: 0, best: f64::NEG_INFINITY });
    let (kind, goal, islands) = (RunKind::Study, Some(parts.len() as u64), parts.len() as u32);
    let (outline, recorded) = (Outline { kind, standing, goal, islands, elapsed: 0 }, own);
    Ok(of_outline(run, outline, state(store, run, &recorded.status), of_journal(&recorded)))
}

/// What the journal of a run adds up to.
///
/// # Errors
/// If it cannot be read: why, in a sentence.
pub async fn recorded(store: &Store, run: &RunId) -> Result<Recorded, String> {
    let events = journal::read_all::<RunEvent>(store, run).await.map_err(|error| error.to_string())?;
    Ok(Recorded::of(events.iter().map(|event| &event.body)))
}

/// What happened to a run, in order, and the end of the journal that it was read from.
#[derive(Clone, Debug)]
pub struct RunLog {
    /// What happened.
    pub events: Vec<EventView>,
    head: JournalHead,
}

impl RunLog {
    /// Nothing yet.
    pub fn empty(run: &RunId) -> Self {
        Self { events: vec![], head: JournalHead::empty(run) }
    }

    /// The current log: only events after this one are read, unless the journal is another one.
    ///
    /// # Errors
    /// If the journal cannot be read: why, in a sentence.
    pub async fn read_on(&self, store: &Store, run: &RunId) -> Result<Self, String> {
        let new = journal::read_on::<RunEvent>(store, run, self.head).await;
        let (mut log, new) = if let Some(new) = new.map_err(|error| error.to_string())? {
            (self.clone(), new)
        } else {
            let all = journal::read_all::<RunEvent>(store, run).await;
            (Self::empty(run), all.map_err(|error| error.to_string())?)
        };
        log.events.extend(new.iter().map(|event| crate::history::view(event.number, &event.body)));
        if let Some(last) = new.last() {
            log.head = JournalHead { events: last.number + 1, last: last.digest };
        }
        Ok(log)
    }
}

/// The best fitness of a run over time, in a few points; nothing where that cannot be read quickly.
pub async fn spark(store: &Store, run: &RunId) -> Vec<f64> {
    let commits = store.list(&run.commits()).await.unwrap_or_default();
    let chosen = report::chart::thinned(commits.len(), POINTS);
    let read = |at: usize| {
        let path = commits[at].clone();
        async move {
            if store.size(&path).await.ok()? > LARGEST {
                return None;
            }
            let commit = store.read_value::<Commit>(&path, Kind::Commit).await.ok()?;
            Some(bests(&commit))
        }
    };
    let mut found = stream::iter(chosen).map(read).buffered(READ_AHEAD);
    let (mut points, mut best) = (vec![], f64::NEG_INFINITY);
    while let Some(bests) = found.next().await {
        for value in bests.unwrap_or_default() {
            best = best.max(value);
            points.push(best);
        }
    }
    let points: Vec<f64> = points.into_iter().filter(|point| point.is_finite()).collect();
    report::chart::thinned(points.len(), POINTS).into_iter().map(|at| points[at]).collect()
}

/// The best of all islands for each epoch of a commit.
fn bests(commit: &Commit) -> Vec<f64> {
    let mut bests: BTreeMap<u64, f64> = BTreeMap::new();
    for record in commit.islands.iter().flat_map(|(_, records)| records) {
        let best = bests.entry(record.mark.epoch).or_insert(f64::NEG_INFINITY);
        *best = best.max(record.mark.standing.best);
    }
    bests.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_in_a_line_says_what_is_wrong() {
        assert_eq!(
            in_a_line("it is wrong:\n  a.toml:1:8: no value\n  garbage"),
            "it is wrong: a.toml:1:8: no value"
        );
        assert_eq!(in_a_line("cut short\nand more"), "cut short");
        assert_eq!(in_a_line(""), "");
    }
}
