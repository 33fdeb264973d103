//! A stored run of any kind, and whether it is damaged: the one place that decides it.
//!
//! [`StoredRun::read`] reads the journal, the records and the results of jobs, and lists the states: that is what lists
//! of a folder show. [`check`] also reads the states that a resumed run would begin with. [`look`] is what a coordinator
//! does at its start with a run that has ended: it reads no records, because the summary has what they come to.

use crate::damage::Damage;
use crate::epochs::is_continued;
use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::{RunError, RunHead};
use crate::jobs::StoredJobs;
use crate::journal::{self, JournalError};
use crate::layout::{Place, RunId, StateName};
use crate::reader::Reader;
use crate::study::{self, StoredStudy};
use crate::summary::{RunKind, Summary};
use archipelago::cell::CellPlan;
use codec::Digest;
use experiment::Plan;
use experiment::document::MAX_STORED;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use store::{Kind, Store, StoreError};

/// What could be read of a run.
pub enum StoredRun {
    /// One evolution.
    Evolution(Box<Reader>),
    /// A sweep or a tournament.
    Jobs(Box<StoredJobs>),
    /// A study.
    Study(Box<StoredStudy>),
}

impl StoredRun {
    /// Reads a run. Only one without a readable plan is an error.
    ///
    /// # Errors
    /// If there is no such run, its plan cannot be read, it was begun with other semantics, or the store fails.
    pub async fn read(store: &Store, run: &RunId) -> Result<Self, RunError> {
        Ok(match read_plan(store, run).await?.0 {
            Plan::Single(_) => Self::Evolution(Box::new(Reader::read(store, run).await?)),
            Plan::Study(study) => Self::Study(Box::new(StoredStudy::read(store, run, *study).await?)),
            Plan::Sweep(sweep) => {
                Self::Jobs(Box::new(StoredJobs::read(store, run, CellPlan::Sweep(sweep)).await?))
            }
            Plan::Tournament(games) => {
                Self::Jobs(Box::new(StoredJobs::read(store, run, CellPlan::Tournament(games)).await?))
            }
        })
    }

    /// What it consists of.
    pub fn kind(&self) -> RunKind {
        match self {
            Self::Evolution(_) => RunKind::Evolution,
            Self::Jobs(jobs) => match jobs.progress.plan() {
                CellPlan::Sweep(_) => RunKind::Sweep,
                CellPlan::Tournament(_) => RunKind::Tournament,
            },
            Self::Study(_) => RunKind::Study,
        }
    }

    /// What its journal adds up to.
    pub fn recorded(&self) -> &Recorded {
        match self {
            Self::Evolution(reader) => &reader.recorded,
            Self::Jobs(jobs) => &jobs.recorded,
            Self::Study(study) => &study.recorded,
        }
    }

    /// What is wrong with it. A run is whole if there is nothing, and also if its process ended before the first event.
    pub fn damage(&self) -> &[Damage] {
        match self {
            Self::Evolution(reader) if reader.is_unbegun() => &[],
            Self::Evolution(reader) => &reader.damage,
            Self::Jobs(jobs) => &jobs.damage,
            Self::Study(study) => &study.damage,
        }
    }

    /// Whether nothing is wrong with it.
    fn sound(&self, run: &RunId) -> Result<(), RunError> {
        if let Self::Evolution(reader) = self
            && reader.is_unbegun()
        {
            return Err(RunError::Unknown { run: run.clone() });
        }
        match self.damage().first() {
            Some(damage) => Err(RunError::Damaged { run: run.clone(), damage: damage.clone() }),
            None => Ok(()),
        }
    }
}

/// The plan of a run, and the digest of the text that its journal names.
///
/// # Errors
/// If there is no such run, or its plan is missing or cannot be read.
pub async fn read_plan(store: &Store, run: &RunId) -> Result<(Plan, Digest), RunError> {
    let path = Place::Experiment.in_run(run);
    let text = match store.read_text(&path, MAX_STORED).await {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Err(without_plan(store, run).await?),
        Err(error) => return Err(error.into()),
    };
    let wrong = |report| RunError::Experiment { run: run.clone(), report: Box::new(report) };
    let plan = experiment::parse(path.as_ref(), &text, None).map_err(wrong)?;
    let text = match &plan {
        Plan::Single(_) => Digest::of(text.as_bytes()),
        Plan::Sweep(sweep) => Digest::of(sweep.text.as_bytes()),
        Plan::Tournament(games) => Digest::of(games.text().as_bytes()),
        Plan::Study(study) => Digest::of(study.text.as_bytes()),
    };
    Ok((plan, text))
}

/// A folder without a plan: no run, unless it has a journal.
async fn without_plan(store: &Store, run: &RunId) -> Result<RunError, StoreError> {
    let has_journal = !store.list(&run.events()).await?.is_empty();
    let run = run.clone();
    Ok(if has_journal {
        RunError::Damaged { run, damage: Damage::NoExperiment }
    } else {
        RunError::Unknown { run }
    })
}

/// Whether a folder holds a run, damaged or not.
///
/// # Errors
/// If the store fails.
pub async fn is_run(store: &Store, run: &RunId) -> Result<bool, StoreError> {
    match store.size(&Place::Experiment.in_run(run)).await {
        Err(error) if error.is_missing() => Ok(!store.list(&run.events()).await?.is_empty()),
        _ => Ok(true),
    }
}

/// Whether a run can be built upon: everything that resuming it would read is there and fits.
///
/// # Errors
/// [`RunError::Damaged`], or why it cannot be read.
pub async fn check(store: &Store, run: &RunId) -> Result<(), RunError> {
    let stored = StoredRun::read(store, run).await?;
    stored.sound(run)?;
    let parts = match &stored {
        StoredRun::Evolution(_) => vec![run.clone()],
        StoredRun::Jobs(_) => vec![],
        StoredRun::Study(study) => study.evolved.clone(),
    };
    for part in parts {
        RunHead::read(store, &part).await?.restore(store, &part).await?;
    }
    Ok(())
}

/// What is wrong with a run that has ended, without its records: its plan, its journal, the names of the states that it
/// ended with, the results of its jobs, and its parts.
///
/// # Errors
/// If the store fails.
pub fn look<'a>(
    store: &'a Store,
    run: &'a RunId,
    summary: &'a Summary,
) -> BoxFuture<'a, Result<(), RunError>> {
    async move {
        let damaged = |damage: Damage| RunError::Damaged { run: run.clone(), damage };
        if let Some(damage) = summary.damage(store, run).await? {
            return Err(damaged(damage));
        }
        match summary.outline.kind {
            RunKind::Evolution => match look_at_evolution(store, run, summary).await? {
                Some(damage) => Err(damaged(damage)),
                None => Ok(()),
            },
            RunKind::Sweep | RunKind::Tournament => StoredRun::read(store, run).await?.sound(run),
            RunKind::Study => {
                let (Plan::Study(study), _) = read_plan(store, run).await? else {
                    return Err(damaged(Damage::NoExperiment));
                };
                let own = StoredStudy::read_own(store, run, *study).await?;
                if let Some(damage) = own.damage.first() {
                    return Err(damaged(damage.clone()));
                }
                for part in study::parts(run, &own.study)? {
                    let looked = match Summary::read(store, &part).await {
                        Ok(Some(summary)) => look(store, &part, &summary).await,
                        _ => StoredRun::read(store, &part).await.and_then(|stored| stored.sound(&part)),
                    };
                    match looked {
                        Ok(()) => {}
                        // A part begins when what it needs is there.
                        Err(RunError::Unknown { .. }) if own.recorded.finished.is_none() => {}
                        Err(error) => return Err(damaged(Damage::of_part(part, error)?)),
                    }
                }
                Ok(())
            }
        }
    }
    .boxed()
}

async fn look_at_evolution(
    store: &Store,
    run: &RunId,
    summary: &Summary,
) -> Result<Option<Damage>, RunError> {
    let path = Place::Experiment.in_run(run);
    let text = match store.read_text(&path, MAX_STORED).await {
        Ok(text) => Digest::of(text.as_bytes()),
        Err(error) if error.is_missing() => return Ok(Some(Damage::NoExperiment)),
        Err(error) if error.is_damage() => return Ok(Some(error.into())),
        Err(error) => return Err(error.into()),
    };
    let events = match journal::read_all::<RunEvent>(store, run).await {
        Ok(events) => events,
        Err(JournalError::Store(error)) if !error.is_damage() => return Err(error.into()),
        Err(error) => return Ok(Some(error.into())),
    };
    let digests: Vec<Digest> = events.iter().map(|event| event.digest).collect();
    // The summary was read before the journal, which only grows.
    if !is_continued(&summary.journal, &digests) {
        return Ok(Some(Damage::Journal { expected: summary.journal.events }));
    }
    let recorded = Recorded::of(events.iter().map(|event| &event.body));
    if let Some(created) = recorded.created.as_ref().filter(|created| created.text != text) {
        return Ok(Some(Damage::Experiment { expected: created.text, found: text }));
    }
    let Some(end) = recorded.finished.and_then(|finished| finished.end) else { return Ok(None) };
    let states = store.list(&run.states()).await?;
    let there: BTreeSet<u32> = states
        .iter()
        .filter_map(|path| match Place::of(path)?.1 {
            Place::State(StateName { island, epoch, .. }) if epoch == end.epoch => Some(island),
            _ => None,
        })
        .collect();
    let missing = (0..summary.outline.islands).find(|island| !there.contains(island));
    Ok(missing.map(|island| Damage::State { island, epoch: end.epoch }))
}

/// Whether a store was written in a format that this program reads. A store is of one format, so its first run is
/// looked at: a single event of another version is damage.
///
/// # Errors
/// [`StoreError::Format`] if it was not, or the store fails.
pub async fn check_format(store: &Store) -> Result<(), StoreError> {
    for folder in store.folders(&crate::layout::runs()).await? {
        let mut other = None;
        for path in store.list(&folder.join("events")).await? {
            match store.read(&path, Kind::Event).await {
                Err(StoreError::Damaged {
                    damage: store::ObjectDamage::UnknownVersion { found }, ..
                }) => {
                    other = Some(found);
                }
                _ => return Ok(()),
            }
        }
        if let Some(found) = other {
            return Err(StoreError::Format { found });
        }
    }
    Ok(())
}
