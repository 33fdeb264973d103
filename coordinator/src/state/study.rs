//! A study: experiments that may take each other's champions as guests, and then the tournament of what they evolved.
//!
//! It is a graph of jobs and runs. A part begins when what it needs is there; parts that need nothing of each other run
//! side by side. The guests of a part and the players of the tournament are made by jobs from what other parts have
//! evolved. The study owns its parts: their names follow from its own.

use super::queue::RunState;
use super::ready_job::ReadyJob;
use super::reply_budget::ReplyBudget;
use super::{Author, Body, ClusterState, Effect, Moment, OpenRequest, Part, Receipt, Source, Step};
use archipelago::job::{self, Job, JobResult, LookUp};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use experiment::{Plan, Study};
use proto::convert::Piece;
use proto::v1;
use run::players::PlayerFiles;
use run::study::{job_name, part_run};
use run::summary::{Outline, RunKind};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use store::StoreError;

/// A study whose parts run.
pub(crate) struct StudyRun {
    study: Study,
    /// The runs of the parts that have begun.
    runs: BTreeMap<Part, String>,
    digests: BTreeMap<Part, Digest>,
    /// Parts that are being opened.
    opening: BTreeSet<Part>,
    /// What the tournament has to look up, in the order of its jobs.
    look_ups: Vec<LookUp>,
    jobs: BTreeMap<u32, JobSlot>,
    /// Results of jobs that are stored.
    results: BTreeMap<u32, JobResult>,
    /// The player files that came along with it.
    files: PlayerFiles,
}

/// How far a job is.
enum JobSlot {
    /// Its inputs are being read.
    Reading,
    Ready(ReadyJob),
    Leased(ReadyJob),
    Storing,
}

impl StudyRun {
    pub(crate) fn new(study: Study, results: BTreeMap<u32, JobResult>, files: PlayerFiles) -> Self {
        let look_ups = study.tournament.as_ref().map(job::look_ups).unwrap_or_default();
        Self {
            study,
            runs: BTreeMap::new(),
            digests: BTreeMap::new(),
            opening: BTreeSet::new(),
            look_ups,
            jobs: BTreeMap::new(),
            results,
            files,
        }
    }

    /// All parts, in the order of the study's digest.
    fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let games = self.study.tournament.is_some().then_some(Part::Tournament);
        (0..self.study.parts.len()).map(Part::Experiment).chain(games)
    }

    pub(crate) fn outline(&self) -> Outline {
        let parts = self.parts().count();
        let standing =
            Standing { generation: self.digests.len() as u64, evaluations: 0, best: f64::NEG_INFINITY };
        Outline {
            kind: RunKind::Study,
            standing: Some(standing),
            goal: Some(parts as u64),
            islands: parts as u32,
            elapsed: 0,
        }
    }

    /// The digest of all parts, once they are finished.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let digests: Option<Vec<Digest>> =
            self.parts().map(|part| self.digests.get(&part).copied()).collect();
        let digests = digests?;
        Some(Digest::of_parts("atoll study digest", digests.iter().map(|digest| &digest.0[..])))
    }

    fn name_of(&self, part: Part) -> &str {
        match part {
            Part::Experiment(number) => &self.study.parts[number].name,
            Part::Tournament => experiment::GAMES,
        }
    }

    /// The number of the job that makes the guests of a part; those of look-ups follow.
    fn look_up_number(&self, at: usize) -> u32 {
        (self.study.parts.len() + at) as u32
    }

    /// The part whose champions another one takes.
    fn host(&self, number: usize) -> Option<Part> {
        let from = self.study.parts[number].guests.as_ref()?;
        self.study.parts.iter().position(|part| part.name == *from).map(Part::Experiment)
    }

    /// The next job to be computed, which is handed out from now on.
    pub(crate) fn next_job(&mut self) -> Option<Piece> {
        let (&number, slot) = self.jobs.iter_mut().find(|(_, slot)| matches!(slot, JobSlot::Ready(_)))?;
        if let JobSlot::Ready(ready) = std::mem::replace(slot, JobSlot::Storing) {
            *slot = JobSlot::Leased(ready);
        }
        Some(Piece::Job { number })
    }

    pub(crate) fn jobs_ready(&self) -> usize {
        self.jobs.values().filter(|slot| matches!(slot, JobSlot::Ready(_))).count()
    }

    fn ready(&self, number: u32) -> Option<&ReadyJob> {
        match self.jobs.get(&number)? {
            JobSlot::Ready(ready) | JobSlot::Leased(ready) => Some(ready),
            JobSlot::Reading | JobSlot::Storing => None,
        }
    }

    /// Whether a job with these inputs is wanted.
    pub(crate) fn wants(&self, number: u32, inputs: Option<&Digest>) -> bool {
        self.ready(number).is_some_and(|ready| ready.is_of(inputs))
    }

    /// A job as it is granted to a worker.
    pub(crate) fn grant(&self, number: u32, budget: &mut ReplyBudget) -> Option<v1::JobTask> {
        self.ready(number)?.task(budget)
    }

    /// An input of a job that a grant only named.
    pub(crate) fn input(&self, number: u32, digest: &Digest) -> Option<Bytes> {
        self.ready(number)?.input(digest)
    }

    /// Whether no result of a job is being stored.
    pub(crate) fn is_written(&self) -> bool {
        !self.jobs.values().any(|slot| matches!(slot, JobSlot::Storing))
    }

    /// Takes a job whose result has come, and is checked and stored from now on, with its inputs.
    pub(crate) fn take(&mut self, number: u32) -> Option<(Job, Vec<Bytes>)> {
        match self.jobs.insert(number, JobSlot::Storing)? {
            JobSlot::Ready(ready) | JobSlot::Leased(ready) => Some(ready.into_parts()),
            JobSlot::Reading | JobSlot::Storing => None,
        }
    }
}

/// What a study needs next.
enum Need {
    Read(u32, Source),
    Open(Part, Box<Plan>, PlayerFiles, Option<Bytes>),
    Fail(String),
}

impl ClusterState {
    /// The runs of the parts of a study.
    pub(super) fn parts_of(&self, run: &str) -> Vec<String> {
        match self.runs.get(run).map(|run| &run.body) {
            Some(Body::Study(study)) => study.runs.values().cloned().collect(),
            _ => vec![],
        }
    }

    fn study(&mut self, run: &str) -> Option<&mut StudyRun> {
        match &mut self.runs.get_mut(run)?.body {
            Body::Study(study) => Some(study),
            _ => None,
        }
    }

    pub(super) fn part_name(&self, study: &str, part: Part) -> String {
        match self.runs.get(study).map(|run| &run.body) {
            Some(Body::Study(run)) => run.name_of(part).to_owned(),
            _ => study.to_owned(),
        }
    }

    /// Notes that a part runs.
    pub(super) fn begin_part(&mut self, name: &str, part: Part, run: &str, now: Moment) {
        self.adopt_part(run, name);
        if let Some(study) = self.study(name) {
            study.opening.remove(&part);
            study.runs.insert(part, run.to_owned());
        }
        // The study may have another one by now.
        self.prioritise_as(run, name, now);
    }

    /// Looks at the study that a run is, or is a part of.
    pub(super) fn advance_study_of(&mut self, run: &str, now: Moment) {
        let study = self.study_of(run).unwrap_or_else(|| run.to_owned());
        self.advance_study(&study, now);
    }

    /// Begins whatever a study can begin now, and finishes it when all is done.
    fn advance_study(&mut self, name: &str, now: Moment) {
        if !self.is_open(name) || self.study(name).is_none() {
            return;
        }
        if self.is_ending(name) {
            return self.advance(name, now);
        }
        let runs: Vec<(Part, String)> =
            self.study(name).map(|study| study.runs.clone().into_iter().collect()).unwrap_or_default();
        for (part, run) in runs {
            match self.queue.state(&run) {
                Some(RunState::Finished(_)) => {
                    let digest = self.digest_of(&run);
                    if let (Some(study), Some(digest)) = (self.study(name), digest) {
                        study.digests.insert(part, digest);
                    }
                }
                Some(RunState::Failed(reason)) => {
                    let reason = format!("{}: {reason}", self.part_name(name, part));
                    return self.fail(name, &reason, now);
                }
                Some(RunState::Cancelled) => {
                    let reason = format!("{} was cancelled", self.part_name(name, part));
                    return self.fail(name, &reason, now);
                }
                _ => {}
            }
        }
        for need in self.needs(name) {
            match need {
                Need::Fail(reason) => return self.fail(name, &reason, now),
                Need::Read(number, source) => {
                    self.effects.push(Effect::ReadInputs { run: name.to_owned(), number, source });
                }
                Need::Open(part, plan, files, guests) => self.open_part(name, part, plan, files, guests, now),
            }
        }
        self.advance(name, now);
    }

    fn open_part(
        &mut self,
        name: &str,
        part: Part,
        plan: Box<Plan>,
        files: PlayerFiles,
        guests: Option<Bytes>,
        now: Moment,
    ) {
        let priority = self.queue.priority(name);
        let id = self.runs.get(name).map(|run| run.id.clone());
        let Some((study, id)) = self.study(name).zip(id) else { return };
        if study.runs.contains_key(&part) || study.opening.contains(&part) {
            return;
        }
        let number = match part {
            Part::Experiment(number) => number + 1,
            Part::Tournament => 0,
        };
        match part_run(&id, study.name_of(part), number) {
            Err(error) => self.fail(name, &error.to_string(), now),
            // It ends first, and then the study is looked at again.
            Ok(id) if self.is_ending(id.as_str()) => self.adopt_part(id.as_str(), name),
            Ok(id) if self.is_going_or_done(id.as_str()) => {
                // It was there before the study was opened.
                self.begin_part(name, part, id.as_str(), now);
                self.advance_study(name, now);
            }
            Ok(id) => {
                let Some(study) = self.study(name) else { return };
                study.opening.insert(part);
                let study = name.to_owned();
                let opening = self.opening.entry(id.to_string());
                let is_asked_for = matches!(opening, Entry::Occupied(_));
                opening.or_default().part = Some((study.clone(), part));
                if is_asked_for {
                    return;
                }
                let request = OpenRequest::Part { study, part, id, plan, files, guests, priority };
                self.ask_to_open(request, None);
            }
        }
    }

    fn is_going_or_done(&self, run: &str) -> bool {
        matches!(self.queue.state(run), Some(RunState::Active | RunState::Paused | RunState::Finished(_)))
    }

    /// What a study can begin now; what it begins is noted.
    fn needs(&mut self, name: &str) -> Vec<Need> {
        let Some(study) = self.study(name) else { return vec![] };
        let mut needs = vec![];
        for number in 0..study.study.parts.len() {
            let part = Part::Experiment(number);
            if study.runs.contains_key(&part) || study.opening.contains(&part) {
                continue;
            }
            let own = study.study.parts[number].experiment.clone();
            let Some(host) = study.host(number) else {
                needs.push(Need::Open(part, Box::new(Plan::Single(Box::new(own))), BTreeMap::new(), None));
                continue;
            };
            match study.results.get(&(number as u32)) {
                Some(result) => {
                    let guests = Bytes::from(result.first().cloned().unwrap_or_default());
                    let own = own.with_guests(Digest::of(&guests));
                    let plan = Box::new(Plan::Single(Box::new(own)));
                    needs.push(Need::Open(part, plan, BTreeMap::new(), Some(guests)));
                }
                None if study.digests.contains_key(&host) && !study.jobs.contains_key(&(number as u32)) => {
                    study.jobs.insert(number as u32, JobSlot::Reading);
                    let (experiment, run) = (own.to_toml(), study.runs[&host].clone());
                    needs.push(Need::Read(number as u32, Source::Guests { run, experiment }));
                }
                None => {}
            }
        }
        needs.extend(study.games());
        needs
    }

    /// Takes the inputs of a job: from now on it can be computed.
    pub(super) fn inputs(&mut self, run: &str, number: u32, inputs: Result<ReadyJob, String>, now: Moment) {
        if let Some(yardstick) = self.yardstick(run) {
            yardstick.inputs(number, inputs);
            return self.advance(run, now);
        }
        match inputs {
            Err(reason) => self.fail(run, &reason, now),
            Ok(ready) => {
                if let Some(study) = self.study(run) {
                    study.jobs.insert(number, JobSlot::Ready(ready));
                }
            }
        }
    }

    /// Takes what the coordinator has computed of a job, and whether a worker had delivered the same.
    pub(super) fn checked_job(
        &mut self,
        run: &str,
        (number, is_right): (u32, bool),
        (author, receipt): (Author, Receipt),
        result: Result<JobResult, String>,
        now: Moment,
    ) {
        let is_measured = self.yardstick(run).is_some();
        if !self.is_open(run) || !is_measured && self.study(run).is_none() {
            return self.workers.settle(&receipt.worker, receipt.number);
        }
        match result {
            Err(reason) if is_measured => {
                self.workers.settle(&receipt.worker, receipt.number);
                self.leave_unmeasured(run, number, &reason);
                self.advance(run, now);
            }
            // No other worker will come to a result either.
            Err(reason) => {
                self.workers.settle(&receipt.worker, receipt.number);
                self.fail(run, &format!("job {number} cannot be computed: {reason}"), now);
            }
            Ok(result) => {
                if !is_right {
                    let reason = format!("run {run}, job {number}: it delivered a wrong result");
                    drop(self.blame(&author, &reason, now));
                }
                self.keep_job(run, number, receipt, result);
            }
        }
    }

    /// Takes the result of a job as it was delivered, because the coordinator has no memory for computing it.
    pub(super) fn unchecked_job(
        &mut self,
        run: &str,
        number: u32,
        receipt: Receipt,
        delivered: JobResult,
        reason: &str,
    ) {
        if !self.is_open(run) {
            return self.workers.settle(&receipt.worker, receipt.number);
        }
        self.note_unaudited(run, &Piece::Job { number }, reason);
        self.keep_job(run, number, receipt, delivered);
    }

    /// Has the result of a job stored.
    pub(super) fn keep_job(&mut self, run: &str, number: u32, receipt: Receipt, result: JobResult) {
        let name = match self.yardstick(run) {
            Some(yardstick) => yardstick.artifact(number),
            None => Some(job_name(number)),
        };
        match name {
            Some(name) => self.step(run, Step::KeepJob { number, name, receipt, result }),
            None => self.workers.settle(&receipt.worker, receipt.number),
        }
    }

    /// Takes the result of a job that is stored, or could not be.
    pub(super) fn kept_job(
        &mut self,
        run: &str,
        number: u32,
        receipt: Receipt,
        stored: Result<JobResult, (JobResult, StoreError)>,
        now: Moment,
    ) {
        if self.yardstick(run).is_some() {
            return self.kept_measurement(run, number, receipt, stored, now);
        }
        let Some(study) = self.study(run) else {
            return self.workers.settle(&receipt.worker, receipt.number);
        };
        match stored {
            Ok(result) => {
                study.jobs.remove(&number);
                study.results.insert(number, result);
                self.workers.settle(&receipt.worker, receipt.number);
            }
            // What is stored was not made of these inputs: nothing is built upon it.
            Err((_, error @ StoreError::Differs { .. })) => {
                self.workers.settle(&receipt.worker, receipt.number);
                self.fail(run, &error.to_string(), now);
            }
            Err((result, error)) => {
                self.note_trouble(run, Err(error.into()), now);
                // It may have taken hours to compute: it is offered to the store until that takes it.
                if self.is_open(run) {
                    self.keep_job(run, number, receipt, result);
                }
            }
        }
        self.advance_study(run, now);
    }
}

impl StudyRun {
    /// What the tournament needs, once all experiments are done.
    fn games(&mut self) -> Vec<Need> {
        let experiments = (0..self.study.parts.len()).map(Part::Experiment);
        let are_done = experiments.into_iter().all(|part| self.digests.contains_key(&part));
        let is_begun = self.runs.contains_key(&Part::Tournament) || self.opening.contains(&Part::Tournament);
        let Some(tournament) = self.study.tournament.clone().filter(|_| are_done && !is_begun) else {
            return vec![];
        };
        let mut needs = vec![];
        let mut found = BTreeMap::new();
        for (at, look_up) in self.look_ups.clone().into_iter().enumerate() {
            let number = self.look_up_number(at);
            if let Some(result) = self.results.get(&number) {
                found.insert(look_up, result.clone());
            } else if let Entry::Vacant(slot) = self.jobs.entry(number) {
                slot.insert(JobSlot::Reading);
                let source = Source::of(&tournament, &look_up, self.renamed(&look_up.reference));
                needs.push(Need::Read(number, source));
            }
        }
        if found.len() == self.look_ups.len() {
            needs.push(match job::resolve(&tournament, &found) {
                Ok((games, mut files)) => {
                    files.extend(self.files.clone());
                    Need::Open(Part::Tournament, Box::new(Plan::Tournament(Box::new(games))), files, None)
                }
                Err(report) => Need::Fail(format!("the tournament: {report}")),
            });
        }
        needs
    }

    /// A reference to one of the study's parts, by the name of its run.
    fn renamed(&self, text: &str) -> String {
        let end = text.find(['/', '@']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let part = self.study.parts.iter().position(|part| part.name == name).map(Part::Experiment);
        let run = part.and_then(|part| self.runs.get(&part)).map_or(name, String::as_str);
        format!("{run}{rest}")
    }
}
