//! Copies of runs, which may be worked on meanwhile.
//!
//! Objects are only ever created, so each can be copied at any time, and a copy of all of them would be the run. What makes
//! a copy of a live run difficult is that it takes a while:
//!
//! - New objects appear. An event may promise commits (`finished`), and a commit relies on events (the end of the journal
//!   that it holds). Therefore the journal is read first and the commits are listed after it: everything that an event
//!   promises was durable before the event, so it is among them. A commit that relies on a later event is not explained
//!   by the journal that was read; then the copy begins again with the longer journal.
//! - Old states are deleted. The states that the copy needs are those from the last epoch that all islands have recorded
//!   on. Retention keeps them until newer ones are recorded. They are copied first, the newest before the others. If one
//!   is gone, newer commits are there, and the copy begins again with them: what has been copied is not copied again.
//! - The copy may be interrupted. `experiment.toml` is written last, and a folder without it counts as damaged.
//!
//! So a copy holds at least what was durable when it began: what is lost with the original is what was done since, and what
//! `checkpoint.every` allows to be lost. Every object is checked while it is copied, and states are compared with their
//! records. A run that does not fit together is refused with what is wrong.

use crate::damage::Damage;
use crate::epochs::StoredEpochs;
use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::{RunError, RunHead};
use crate::jobs::StoredJobs;
use crate::journal::{self, Event};
use crate::layout::{Place, RunId};
use crate::stored::read_plan;
use archipelago::Remains;
use archipelago::cell::CellPlan;
use codec::Digest;
use experiment::{Experiment, Plan};
use std::collections::BTreeSet;
use store::{Kind, Path, Store, StoreError};

/// How often a copy begins again before the run counts as damaged: what changes meanwhile is a moment's work.
const TRIES: usize = 10;

/// What was copied of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// How many objects.
    pub objects: u64,
    /// How many bytes they hold.
    pub bytes: u64,
}

/// Copies one run to another store.
///
/// # Errors
/// If it does not fit together, or a store fails.
pub async fn copy_run(from: &Store, to: &Store, run: &RunId) -> Result<Copied, RunError> {
    let mut copy = Copy { from, to, run, done: BTreeSet::new(), copied: Copied::default() };
    let mut tries = 0;
    loop {
        match copy.attempt().await {
            Ok(()) => return Ok(copy.copied),
            Err(error) if tries < TRIES && may_pass(&error) => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether another try may find that the run has moved on.
fn may_pass(error: &RunError) -> bool {
    use crate::commit::WriteError;
    match error {
        RunError::Damaged { damage, .. } => {
            !matches!(damage, Damage::Experiment { .. } | Damage::NoExperiment)
        }
        RunError::Write(WriteError::Store(error)) => error.is_missing(),
        _ => false,
    }
}

/// A copy under way.
struct Copy<'a> {
    from: &'a Store,
    to: &'a Store,
    run: &'a RunId,
    done: BTreeSet<Path>,
    copied: Copied,
}

impl Copy<'_> {
    async fn attempt(&mut self) -> Result<(), RunError> {
        let (plan, text) = read_plan(self.from, self.run).await?;
        let events =
            journal::read_all::<RunEvent>(self.from, self.run).await.map_err(|error| match error {
                journal::JournalError::Store(error) if !error.is_damage() => error.into(),
                error => self.damaged(error.into()),
            })?;
        match plan {
            Plan::Single(experiment) => self.copy_epochs(*experiment, text, &events).await?,
            Plan::Study(_) => {}
            plan => {
                if let Some(plan) = CellPlan::of(plan) {
                    self.copy_jobs(plan, &events).await?;
                }
            }
        }
        self.copy_all(&self.run.artifacts()).await?;
        self.copy_all(&self.run.labels()).await?;
        for event in &events {
            self.copy(&Place::Event(event.number)).await?;
        }
        for path in self.from.list(&self.run.summaries()).await? {
            if let Some((_, place @ Place::Summary(number))) = Place::of(&path)
                && number <= events.len() as u64
            {
                self.copy(&place).await?;
            }
        }
        self.copy(&Place::Experiment).await?;
        Ok(())
    }

    fn damaged(&self, damage: Damage) -> RunError {
        RunError::Damaged { run: self.run.clone(), damage }
    }

    async fn copy_epochs(
        &mut self,
        experiment: Experiment,
        text: Digest,
        events: &[Event<RunEvent>],
    ) -> Result<(), RunError> {
        let head = RunHead::new(experiment, text, events.to_vec());
        head.check(self.run)?;
        let epochs = StoredEpochs::read_explained(self.from, self.run, &head).await?;
        if let Some((place, reason)) = epochs.passed_over.first() {
            let text = format!("object `{}`: {reason}", place.in_run(self.run));
            return Err(self.damaged(Damage::Unreadable(text)));
        }
        if let Some(damage) = epochs.damage.first() {
            return Err(self.damaged(damage.clone()));
        }
        let complete = epochs.records.iter().map(Vec::len).min().unwrap_or(0) as u64;
        let mut states: Vec<(u64, u32)> = (0..)
            .zip(&epochs.states)
            .flat_map(|(island, states)| states.keys().map(move |&epoch| (epoch, island)))
            .collect();
        states.sort_unstable_by(|one, other| other.cmp(one));
        for (epoch, island) in states {
            let place = Place::State(epochs.states[island as usize][&epoch]);
            let body = match self.copy(&place).await {
                // Retention no longer keeps it.
                Err(error) if error.is_missing() && epoch + 1 < complete => continue,
                body => body?,
            };
            let Some(body) = body else { continue };
            let remains: Remains = codec::decode(&body)
                .map_err(|problem| StoreError::Body { path: place.in_run(self.run), problem })?;
            if !epochs.is_of_record(island, epoch, &remains) {
                return Err(RunError::Altered { run: self.run.clone(), island, epoch });
            }
        }
        for checkpoints in &epochs.checkpoints {
            let Some((&generation, &of)) = checkpoints.last_key_value() else { continue };
            match self.copy(&Place::Checkpoint { generation, of }).await {
                // A newer one replaced it: the epoch starts again.
                Err(error) if error.is_missing() => {}
                copied => drop(copied?),
            }
        }
        for place in &epochs.commits {
            self.copy(place).await?;
        }
        Ok(())
    }

    async fn copy_jobs(&mut self, plan: CellPlan, events: &[Event<RunEvent>]) -> Result<(), RunError> {
        let batches = self.from.list(&self.run.jobs()).await?;
        let stored = StoredJobs::read(self.from, self.run, plan).await?;
        if let Some(damage) = stored.damage.first() {
            return Err(self.damaged(damage.clone()));
        }
        // Results that were retracted since the journal was read are copied as they were before that.
        let known = Recorded::of(events.iter().map(|event| &event.body)).retracted_jobs.len();
        let retracted = stored.recorded.retracted_jobs.get(known).map(|one| (one.term, one.batches));
        for path in batches {
            let Some((_, place @ Place::Jobs { term, number })) = Place::of(&path) else { continue };
            if term >= events.len() as u64 {
                return Err(self.damaged(Damage::Unexplained { term }));
            }
            if retracted.is_some_and(|end| (term, number) >= end) {
                continue;
            }
            self.copy(&place).await?;
        }
        Ok(())
    }

    /// Copies all objects of a folder.
    async fn copy_all(&mut self, folder: &Path) -> Result<(), RunError> {
        for path in self.from.list(folder).await? {
            if let Some((_, place)) = Place::of(&path) {
                self.copy(&place).await?;
            }
        }
        Ok(())
    }

    /// Copies an object, and returns what it holds; nothing if it was copied before.
    async fn copy(&mut self, place: &Place) -> Result<Option<bytes::Bytes>, StoreError> {
        let path = place.in_run(self.run);
        if self.done.contains(&path) {
            return Ok(None);
        }
        let kind = match place {
            // Reports are plain files.
            Place::Artifact(name) if !name.as_str().contains('.') => Some(Kind::Artifact),
            place => place.kind(),
        };
        let body = self.from.copy_to(&path, kind, self.to).await?;
        self.copied.objects += 1;
        self.copied.bytes += body.len() as u64;
        self.done.insert(path);
        Ok(Some(body))
    }
}
