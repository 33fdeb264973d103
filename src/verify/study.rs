//! A study: its journal, what it made of its parts, and the digest of all of them. The parts are runs of their own.

use super::summaries::{self, Facts};
use super::{Findings, check_created};
use crate::failure::Failure;
use archipelago::job::{self, Job, JobResult};
use bytes::Bytes;
use codec::Digest;
use evolution::epoch::Standing;
use experiment::Study;
use run::players;
use run::summary::RunKind;
use run::{FinishedRun, Recorded, RunError, RunEvent, RunId, StoredStudy, journal, listing};
use std::collections::BTreeMap;
use store::Store;

/// What a study has made of its parts.
type Jobs = BTreeMap<u32, JobResult>;

pub(super) async fn check(
    store: &Store,
    run: &RunId,
    study: Study,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let StoredStudy { study, recorded, damage, jobs, .. } = StoredStudy::read_own(store, run, study).await?;
    findings.state = listing::state(store, run, &recorded.status).0;
    findings.problems.extend(damage.iter().map(ToString::to_string));
    let Some(created) = &recorded.created else {
        let damage = run::Damage::Journal { expected: 1 }.to_string();
        findings.problems.push(damage);
        return Ok(());
    };
    if !damage.is_empty() {
        return Ok(());
    }
    findings.results += jobs.len() as u64;
    let study = &study;
    check_created(Some(created), &study.digest(), findings);
    let events = journal::read_all::<RunEvent>(store, run).await.map_err(RunError::from)?;
    let parts = study.parts.len() + usize::from(study.tournament.is_some());
    let standing = Standing { generation: parts as u64, evaluations: 0, best: f64::NEG_INFINITY };
    let facts = Facts {
        kind: RunKind::Study,
        islands: parts as u32,
        goal: Some(parts as u64),
        standing: &|_| Some(standing),
    };
    summaries::check(store, run, &events, &facts, findings).await?;
    if let Some(finished) = &recorded.finished {
        let expected = finished.digest;
        match digest(store, run, study).await {
            Ok(found) if found == expected => {}
            Ok(found) => findings
                .problems
                .push(format!("the study's digest: expected {expected}, found {found} of its parts")),
            Err(error) => findings.problems.push(error.to_string()),
        }
    }
    check_budgets(store, run, study, findings).await?;
    check_guests(store, run, (study, &jobs), findings).await?;
    if let Some(games) = &study.tournament {
        // What the study was given itself is named by its digest.
        if let Err(error) = players::read(store, run, games).await {
            findings.problems.push(error.to_string());
        }
        check_players(store, run, (study, &jobs), findings).await?;
    }
    Ok(())
}

fn part_run(run: &RunId, study: &Study, at: usize) -> Result<RunId, Failure> {
    Ok(run::study::part_run(run, &study.parts[at].name, at + 1)?)
}

/// The parts have the budgets of the study's file: with another one its result would not follow from the file.
async fn check_budgets(
    store: &Store,
    run: &RunId,
    study: &Study,
    findings: &mut Findings,
) -> Result<(), Failure> {
    for part in run::study::parts(run, study)? {
        // What is wrong with a part's journal is found where the part is checked.
        let Ok(events) = journal::read_all::<RunEvent>(store, &part).await else { continue };
        if events.iter().any(|event| matches!(event.body, RunEvent::Extended { .. })) {
            findings.problems.push(format!("`{part}` was given another budget than the study's file has"));
        }
    }
    Ok(())
}

/// The digest of all parts as their journals have it.
async fn digest(store: &Store, run: &RunId, study: &Study) -> Result<Digest, RunError> {
    let mut digests = vec![];
    for part in run::study::parts(run, study)? {
        let events = journal::read_all::<RunEvent>(store, &part).await?;
        let finished = Recorded::of(events.iter().map(|event| &event.body)).finished;
        digests.push(finished.ok_or(RunError::Unfinished { run: part })?.digest);
    }
    Ok(Digest::of_parts("atoll study digest", digests.iter().map(|digest| &digest.0[..])))
}

fn compare(number: usize, stored: &JobResult, job: &Job, inputs: &[Bytes], findings: &mut Findings) {
    findings.recomputed += 1;
    if job.compute(inputs).as_ref() != Ok(stored) {
        findings.problems.push(format!("job {number}: it is not what the states of its run come to"));
    }
}

async fn check_guests(
    store: &Store,
    run: &RunId,
    (study, jobs): (&Study, &Jobs),
    findings: &mut Findings,
) -> Result<(), Failure> {
    for (number, part) in study.parts.iter().enumerate() {
        let host = study.parts.iter().position(|host| part.guests.as_ref() == Some(&host.name));
        let Some((host, stored)) = host.zip(jobs.get(&(number as u32))) else { continue };
        let states = match FinishedRun::read(store, &part_run(run, study, host)?).await {
            Ok(finished) => finished.islands,
            Err(error) => {
                findings.problems.push(format!("job {number}: {error}"));
                continue;
            }
        };
        let states: Vec<Bytes> = states.into_iter().map(|(state, _)| state).collect();
        let job = Job::Guests { experiment: part.experiment.to_toml() };
        compare(number, stored, &job, &states, findings);
    }
    Ok(())
}

async fn check_players(
    store: &Store,
    run: &RunId,
    (study, jobs): (&Study, &Jobs),
    findings: &mut Findings,
) -> Result<(), Failure> {
    let Some(games) = &study.tournament else { return Ok(()) };
    for (at, look_up) in job::look_ups(games).into_iter().enumerate() {
        let number = study.parts.len() + at;
        let Some(stored) = jobs.get(&(number as u32)) else { continue };
        let end = look_up.reference.find(['/', '@']).unwrap_or(look_up.reference.len());
        let (name, rest) = look_up.reference.split_at(end);
        let part = study.parts.iter().position(|part| part.name == name);
        let source = part
            .map_or_else(|| Ok(name.to_owned()), |at| part_run(run, study, at).map(|run| run.to_string()))?;
        let reference = format!("{source}{rest}");
        match coordinator::read_player_inputs(store, games, &look_up, reference.clone()).await {
            Ok((job, states)) => compare(number, stored, &job, &states, findings),
            Err(reason) => findings.problems.push(format!("job {number}: {reference}: {reason}")),
        }
    }
    Ok(())
}
