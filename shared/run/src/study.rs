//! A stored study: its own journal and what it made of its parts, and the parts, which are runs of their own.

use crate::damage::Damage;
use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::RunError;
use crate::jobs::StoredJobs;
use crate::journal::{self, JournalError};
use crate::layout::{ArtifactName, NameError, Place, RunId};
use crate::reader::Reader;
use crate::stored::read_plan;
use crate::summary::journal_damage;
use archipelago::cell::CellPlan;
use archipelago::job::{self, JobResult};
use codec::Digest;
use experiment::{Plan, Study};
use std::collections::BTreeMap;
use store::{Kind, Path, Store};

/// What could be read of a study.
pub struct StoredStudy {
    /// What was run.
    pub study: Study,
    /// What its journal adds up to.
    pub recorded: Recorded,
    /// What was made of its parts: guests and players, by the numbers of the jobs.
    pub jobs: BTreeMap<u32, JobResult>,
    /// How many of its parts are finished.
    pub finished: u64,
    /// The parts that are there and are evolutions.
    pub evolved: Vec<RunId>,
    /// What is missing, cannot be read, or does not fit, in its parts too. A study is whole if there is none.
    pub damage: Vec<Damage>,
}

impl StoredStudy {
    /// Reads a study and its parts.
    ///
    /// # Errors
    /// If the store fails, or the study was begun with other semantics.
    pub async fn read(store: &Store, run: &RunId, study: Study) -> Result<Self, RunError> {
        let mut stored = Self::read_own(store, run, study).await?;
        for part in parts(run, &stored.study)? {
            let damage = match stored.read_part(store, &part).await {
                Ok(damage) => {
                    damage.into_iter().map(|damage| Damage::in_part(part.clone(), &damage)).collect()
                }
                // A part begins when what it needs is there.
                Err(RunError::Unknown { .. }) if stored.recorded.finished.is_none() => vec![],
                Err(error) => vec![Damage::of_part(part, error)?],
            };
            stored.damage.extend(damage);
        }
        Ok(stored)
    }

    async fn read_part(&mut self, store: &Store, part: &RunId) -> Result<Vec<Damage>, RunError> {
        let (recorded, damage) = if let Some(plan) = CellPlan::of(read_plan(store, part).await?.0) {
            let jobs = StoredJobs::read(store, part, plan).await?;
            (jobs.recorded, jobs.damage)
        } else {
            let reader = Reader::read(store, part).await?;
            if reader.is_unbegun() {
                return Err(RunError::Unknown { run: part.clone() });
            }
            self.evolved.push(part.clone());
            (reader.recorded, reader.damage)
        };
        self.finished += u64::from(recorded.finished.is_some());
        Ok(damage)
    }

    /// Reads a study without its parts.
    ///
    /// # Errors
    /// If the store fails, or the study was begun with other semantics.
    pub async fn read_own(store: &Store, run: &RunId, study: Study) -> Result<Self, RunError> {
        let mut damage = vec![];
        let events = match journal::read_all::<RunEvent>(store, run).await {
            Ok(events) => events,
            Err(JournalError::Store(error)) if !error.is_damage() => return Err(error.into()),
            Err(error) => {
                damage.push(error.into());
                vec![]
            }
        };
        let recorded = Recorded::of(events.iter().map(|event| &event.body));
        recorded.check_semantics(run)?;
        let digests: Vec<Digest> = events.iter().map(|event| event.digest).collect();
        if damage.is_empty() {
            damage.extend(journal_damage(store, run, &digests).await?);
        }
        let text = Digest::of(study.text.as_bytes());
        if let Some(created) = recorded.created.as_ref().filter(|created| created.text != text) {
            damage.push(Damage::Experiment { expected: created.text, found: text });
        }
        let mut jobs = BTreeMap::new();
        for number in job_numbers(&study) {
            match store.read_value::<JobResult>(&job_path(run, number), Kind::Artifact).await {
                Ok(result) if job_fits(&study, number, &result) => drop(jobs.insert(number, result)),
                Ok(_) => damage.push(Damage::Unfit { number }),
                Err(error) if error.is_missing() && recorded.finished.is_none() => {}
                Err(error) if error.is_damage() => damage.push(error.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { study, recorded, jobs, finished: 0, evolved: vec![], damage })
    }
}

/// The name of the run of a study's part: it follows from the study's own. Parts are numbered from 1.
///
/// # Errors
/// If there is no such name.
pub fn part_run(study: &RunId, part: &str, number: usize) -> Result<RunId, NameError> {
    RunId::new(format!("{study}.{part}")).or_else(|_| RunId::new(format!("{study}.{number}")))
}

/// The runs of all parts, in the order of the study's digest.
///
/// # Errors
/// If a part can have no name.
pub fn parts(run: &RunId, study: &Study) -> Result<Vec<RunId>, NameError> {
    let names = study.parts.iter().map(|part| part.name.as_str()).zip(1..);
    let tournament = study.tournament.as_ref().map(|_| (experiment::GAMES, 0));
    names.chain(tournament).map(|(name, number)| part_run(run, name, number)).collect()
}

/// The runs of all parts of a run: none unless it is a study.
///
/// # Errors
/// If the plan cannot be read.
pub async fn stored_parts(store: &Store, run: &RunId) -> Result<Vec<RunId>, RunError> {
    match read_plan(store, run).await?.0 {
        Plan::Study(study) => Ok(parts(run, &study)?),
        _ => Ok(vec![]),
    }
}

/// The artifact that holds what a job of a study has made.
pub fn job_name(number: u32) -> ArtifactName {
    ArtifactName::new(format!("job-{number:010}")).expect("a number is plain")
}

/// Where that lies.
pub fn job_path(run: &RunId, number: u32) -> Path {
    Place::Artifact(job_name(number)).in_run(run)
}

/// Whether a stored result can be that of a job of a study.
pub(crate) fn job_fits(study: &Study, number: u32, result: &JobResult) -> bool {
    let Some(look_up) = (number as usize).checked_sub(study.parts.len()) else {
        return job::are_guests(result);
    };
    let Some(games) = &study.tournament else { return false };
    job::look_ups(games).get(look_up).is_some_and(|look_up| job::is_found(games, look_up, result))
}

/// The jobs of a study: the guests of parts by the numbers of the parts, then the look-ups of its tournament.
fn job_numbers(study: &Study) -> Vec<u32> {
    let guests = (0..).zip(&study.parts).filter(|(_, part)| part.guests.is_some()).map(|(number, _)| number);
    let look_ups = study.tournament.as_ref().map(job::look_ups).unwrap_or_default().len();
    let first = study.parts.len() as u32;
    guests.chain(first..first + look_ups as u32).collect()
}
