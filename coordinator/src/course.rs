//! The course of a study: one experiment after the other, some with the champions of others as guests.

use crate::keeper::Keeper;
use crate::office::{Moment, Office, Refusal};
use crate::plan::RunState;
use crate::runs::Activity;
use bytes::Bytes;
use evolution::digest::Digest;
use experiment::{Part, Study};
use run::RunId;
use run::{Opening, RunError};
use store::Store;

/// A study, and the runs of it that have begun.
pub(crate) struct Course {
    pub(crate) study: Study,
    /// The runs of its parts, as far as they have begun; all but the last are finished.
    pub(crate) runs: Vec<String>,
    digests: Vec<Digest>,
}

impl Course {
    pub(crate) fn new(study: Study) -> Self {
        Self { study, runs: vec![], digests: vec![] }
    }

    /// How many parts are finished.
    pub(crate) fn finished(&self) -> usize {
        self.digests.len()
    }
}

/// What a study should do next.
enum Step {
    Wait,
    Begin(Box<Part>, Option<String>),
    Finish(Digest),
    Fail(String),
}

impl Office {
    /// Begins the next part of every study whose last one is finished.
    pub(crate) async fn advance_studies(&mut self, now: Moment) {
        for study in self.plan.active() {
            loop {
                match self.next_step(&study) {
                    Step::Wait => break,
                    Step::Finish(digest) => {
                        self.close(&study, digest, "all experiments are done".to_owned());
                        break;
                    }
                    Step::Fail(reason) => {
                        self.fail(&study, &reason, now).await;
                        break;
                    }
                    Step::Begin(part, guests) => {
                        if let Err(error) = self.begin_part(&study, &part, guests, now).await {
                            self.fail(&study, &format!("{}: {error}", part.name), now).await;
                            break;
                        }
                    }
                }
            }
        }
    }

    fn next_step(&mut self, study: &str) -> Step {
        let last = match self.runs.get(study).map(|run| &run.activity) {
            Some(Activity::Study(course)) => course.runs.last().cloned(),
            _ => return Step::Wait,
        };
        let ended = last.as_ref().map(|last| {
            let digest = self.runs.get(last).and_then(|run| run.digest);
            (self.plan.state(last).cloned(), digest)
        });
        let Some(Activity::Study(course)) = self.runs.get_mut(study).map(|run| &mut run.activity) else {
            return Step::Wait;
        };
        match ended {
            None => {}
            Some((Some(RunState::Finished(_)), Some(digest))) if course.digests.len() < course.runs.len() => {
                course.digests.push(digest);
            }
            Some((Some(RunState::Failed(reason)), _)) => return Step::Fail(reason),
            Some((Some(RunState::Cancelled), _)) => {
                return Step::Fail("an experiment was cancelled".to_owned());
            }
            Some(_) => return Step::Wait,
        }
        let Course { study: Study { parts, .. }, runs, digests } = &**course;
        let Some(part) = parts.get(runs.len()) else {
            let digests = digests.iter().map(|digest| &digest.0[..]);
            return Step::Finish(Digest::of_parts("atoll study digest", digests));
        };
        let host = part.guests.as_ref().and_then(|from| parts.iter().position(|part| part.name == *from));
        Step::Begin(Box::new(part.clone()), host.map(|at| runs[at].clone()))
    }

    async fn begin_part(
        &mut self,
        study: &str,
        part: &Part,
        guests: Option<String>,
        now: Moment,
    ) -> Result<(), Refusal> {
        let guests = match guests {
            None => None,
            Some(run) => Some(champions(&self.store, &RunId::new(&run)?, part, self.opening(now)).await?),
        };
        let experiment = match &guests {
            None => part.experiment.clone(),
            Some(guests) => part.experiment.with_guests(Digest::of(guests)),
        };
        let id = RunId::new(experiment.run_id())?;
        if !self.runs.contains_key(id.as_str()) {
            let priority = self.plan.priority(study);
            self.create(&id, &experiment, guests, priority, now).await?;
        }
        if let Some(Activity::Study(course)) = self.runs.get_mut(study).map(|run| &mut run.activity) {
            course.runs.push(id.to_string());
        }
        Ok(())
    }
}

/// The champions of a finished run, as guests for a part.
async fn champions(store: &Store, run: &RunId, part: &Part, opening: Opening) -> Result<Bytes, Refusal> {
    let keeper = Keeper::open(store, run, opening).await?;
    let states = keeper.archipelago().final_states();
    let states = states.ok_or_else(|| RunError::Unknown { run: run.clone() })?;
    let states: Vec<Bytes> = states.into_iter().map(|(state, _)| state).collect();
    let guests = part.experiment.evolver().guests(&states);
    guests.map_err(|error| Refusal::Corrupt(format!("the guests from {run}: {error}")))
}
