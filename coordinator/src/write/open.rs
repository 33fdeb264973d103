//! Opens runs: what is submitted is written down, and what is stored is read.

use super::{RunFiles, is_lost};
use crate::cluster::{Cluster, LARGE};
use crate::rejection::Rejection;
use crate::state::queue::RunState;
use crate::state::{Moment, OpenRequest, Opened, OpenedBody, Part, Source, Submission, run_name};
use archipelago::cell::CellPlan;
use archipelago::job::{self, Job, LookUp};
use bytes::Bytes;
use evolution::digest::Digest;
use experiment::file::BudgetKeys;
use experiment::{Plan, Study, Tournament};
use futures::{StreamExt, stream};
use run::RunEvent;
use run::jobs::{self, JobLog, StoredJobs};
use run::naming::{self, NamingError};
use run::plan::PlanJournal;
use run::players::{self, LookUpError, PlayerFiles, Reference};
use run::reader::Reader;
use run::states::States;
use run::stored;
use run::summary::{Ended, Outline, RunKind};
use run::{
    FinishedRun, Labels, Opening, Owner, Place, Recorded, RunError, RunHead, RunId, Status, StoredStudy,
    Summary,
};
use std::collections::BTreeMap;
use std::time::Duration;
use store::{Claim, Nonce, Store, StoreError};

/// How many runs are opened at a time when a coordinator starts.
const AT_A_TIME: usize = 16;
/// How often opening a run is tried that another coordinator still writes, or that the store cannot read for now, and how
/// long to wait in between.
const TRIES: usize = 10;
const AGAIN: Duration = Duration::from_millis(500);

/// How a run is listed that cannot be read.
const UNREADABLE: Outline =
    Outline { kind: RunKind::Evolution, standing: None, goal: None, islands: 0, elapsed: 0 };

/// A run and where it is written to, unless it has ended.
pub(crate) type OpenedRun = (Opened, Option<RunFiles>);

/// A run that cannot be read, and why not.
pub(crate) type Unread = (RunId, Rejection);

/// What runs are opened with.
pub(crate) struct Opener {
    pub(crate) store: Store,
    pub(crate) nonce: Nonce,
    pub(crate) owner: Owner,
    pub(crate) claim: Option<Claim>,
    /// Whether this is the coordinator of a single command, which computes what it is asked for, also if that is paused.
    pub(crate) only_submitted: bool,
}

impl OpenRequest {
    /// The name of the run, if it is known yet.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Submit(submission) if submission.fresh => None,
            _ => Some(self.base_name()),
        }
    }

    /// The name that its own follows from. Two requests with the same one are carried out one after the other.
    pub(crate) fn base_name(&self) -> String {
        match self {
            Self::Submit(submission) => run_name(&submission.plan),
            Self::Again { id, .. } | Self::Part { id, .. } | Self::List { id } => id.to_string(),
        }
    }

    pub(crate) fn part(&self) -> Option<(String, Part)> {
        match self {
            Self::Part { study, part, .. } => Some((study.clone(), *part)),
            Self::Submit(_) | Self::Again { .. } | Self::List { .. } => None,
        }
    }
}

/// What its journal is to know of a sweep, a tournament or a study.
#[derive(Clone, Copy)]
struct PlanFacts<'a> {
    digest: Digest,
    text: &'a str,
    outline: Outline,
    /// How many batches of results the term before has stored.
    batches: u64,
    /// Whether all results are there, or all parts are finished.
    is_whole: bool,
}

/// What a run of this kind is doing, by its journal.
fn state_of(recorded: &Recorded, kind: RunKind) -> RunState {
    match &recorded.status {
        Status::Open => RunState::Active,
        Status::Paused => RunState::Paused,
        Status::Cancelled => RunState::Cancelled,
        Status::Failed(reason) => RunState::Failed(reason.clone()),
        Status::Finished => {
            let end = recorded.finished.as_ref().and_then(|finished| finished.end.as_ref());
            RunState::Finished(end.map_or(kind.completion().to_owned(), |end| end.reason.to_string()))
        }
    }
}

/// A run that has ended, as its summary lists it.
fn listed(id: &RunId, summary: Summary) -> Opened {
    let digest = summary.digest();
    let Summary { outline, ended, created, priority, .. } = summary;
    let state = match ended {
        Ended::Finished(reason, _) => RunState::Finished(reason),
        Ended::Cancelled => RunState::Cancelled,
        Ended::Failed(reason) => RunState::Failed(reason),
    };
    let body = OpenedBody::Closed(outline, digest);
    Opened { id: id.clone(), body, state, priority, created, labels: Labels::default(), study: None }
}

/// Why a run is opened.
#[derive(Clone, Debug, PartialEq)]
enum Why {
    /// A coordinator starts.
    Start,
    /// An operator or a study asks for it: it continues if it had stopped, perhaps with another priority or budget.
    Asked { priority: Option<i32>, extend: Option<Box<BudgetKeys>> },
}

impl Opened {
    /// A run that cannot be read, as it is listed.
    pub(crate) fn unread(id: RunId, why: &Rejection) -> Self {
        let state = RunState::Failed(why.to_string());
        let body = OpenedBody::Closed(UNREADABLE, None);
        Self { id, body, state, priority: 0, created: 0, labels: Labels::default(), study: None }
    }
}

impl Opener {
    fn opening(&self, now: Moment) -> Opening {
        let (nonce, owner, claim) = (self.nonce, self.owner.clone(), self.claim.clone());
        Opening { nonce, now: now.unix, owner, claim }
    }

    /// Opens a run for an operator or a study.
    pub(crate) async fn open(&self, request: OpenRequest, now: Moment) -> Result<OpenedRun, Rejection> {
        if is_lost(self.claim.as_ref()).await {
            return Err(Rejection::Succeeded);
        }
        let opened = self.open_or_create(request, now).await;
        // A successor claims the store before it reads the runs: if the claim stands now, it will find this one.
        if is_lost(self.claim.as_ref()).await { Err(Rejection::Succeeded) } else { opened }
    }

    async fn open_or_create(&self, request: OpenRequest, now: Moment) -> Result<OpenedRun, Rejection> {
        match request {
            OpenRequest::Submit(Submission { plan, files, priority, fresh }) => {
                let id = self.free_id(&plan, fresh).await?;
                self.create(&id, &plan, &files, None).await?;
                self.read_after_predecessor(&id, self.asked(priority), now).await
            }
            OpenRequest::Part { id, plan, files, guests, priority, .. } => {
                self.create(&id, &plan, &files, guests).await?;
                self.read_after_predecessor(&id, self.asked(Some(priority)), now).await
            }
            OpenRequest::List { id } => self.read_after_predecessor(&id, Why::Start, now).await,
            OpenRequest::Again { id, priority, extend } => {
                if extend.is_some()
                    && let Some(study) = self.study_of(&id).await?
                {
                    return Err(Rejection::part_of(&id.to_string(), &study));
                }
                self.read_after_predecessor(&id, Why::Asked { priority, extend }, now).await
            }
        }
    }

    /// Reads a run that the coordinator before this one, which has not noticed yet that it was succeeded, may be opening too:
    /// it opens no other run after this one.
    async fn read_after_predecessor(
        &self,
        id: &RunId,
        why: Why,
        now: Moment,
    ) -> Result<OpenedRun, Rejection> {
        for _ in 0..TRIES {
            match self.read(id, why.clone(), now).await {
                Err(Rejection::Keep(RunError::Write(error)))
                    if error.is_fenced() && self.claim.is_some() && !is_lost(self.claim.as_ref()).await =>
                {
                    tracing::info!(run = %id, %error, "another coordinator was opening it; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
                read => return read,
            }
        }
        self.read(id, why, now).await
    }

    /// What an operator or a study asks for. A single command has no priorities, and changes none.
    fn asked(&self, priority: Option<i32>) -> Why {
        Why::Asked { priority: priority.filter(|_| !self.only_submitted), extend: None }
    }

    /// Whether a run that stands so continues because it is asked for.
    fn continues(&self, status: &Status) -> bool {
        match status {
            Status::Open | Status::Finished => false,
            // A coordinator that serves leaves it to its operators.
            Status::Paused => self.only_submitted,
            Status::Cancelled | Status::Failed(_) => true,
        }
    }

    /// Writes a plan down, unless it is there.
    async fn create(
        &self,
        id: &RunId,
        plan: &Plan,
        files: &PlayerFiles,
        guests: Option<Bytes>,
    ) -> Result<(), Rejection> {
        match plan {
            Plan::Single(experiment) => Ok(run::write_experiment(&self.store, id, experiment, guests).await?),
            Plan::Sweep(sweep) => self.create_text(id, &sweep.text).await,
            Plan::Study(study) => {
                if let Some(games) = &study.tournament {
                    players::keep(&self.store, id, games, files).await?;
                }
                self.create_text(id, &study.text).await
            }
            Plan::Tournament(games) => {
                // First those who play, then the plan that promises them.
                players::keep(&self.store, id, games, files).await?;
                self.create_text(id, games.text()).await
            }
        }
    }

    async fn create_text(&self, id: &RunId, text: &str) -> Result<(), Rejection> {
        match self.store.create_text(&Place::Experiment.in_run(id), text).await {
            // What differs in its words may be the same plan: its name says so.
            Ok(_) | Err(StoreError::Differs { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads every run of the store. Returns those that cannot be read as well, and the others all the same.
    pub(crate) async fn read_all(&self, now: Moment) -> Result<(Vec<OpenedRun>, Vec<Unread>), Rejection> {
        let folders = self.store.folders(&run::layout::runs()).await?;
        let ids: Vec<RunId> = folders.iter().filter_map(run::layout::run_of_folder).collect();
        let read = |id: RunId| async move {
            let read = self.read_patiently(&id, now).await;
            read.map_err(|error| {
                tracing::error!(run = %id, %error, "cannot be opened");
                (id, error)
            })
        };
        let mut reading = stream::iter(ids).map(read).buffered(AT_A_TIME);
        let (mut opened, mut unread) = (vec![], vec![]);
        while let Some(read) = reading.next().await {
            match read {
                Ok(run) => opened.extend(run),
                Err(run) => unread.push(run),
            }
        }
        Ok((opened, unread))
    }

    /// Reads a run, even while the store fails now and then, or another coordinator that has not noticed yet still writes
    /// and deletes.
    async fn read_patiently(&self, id: &RunId, now: Moment) -> Result<Option<OpenedRun>, Rejection> {
        for _ in 0..TRIES {
            match self.read_if_there(id, now).await {
                Err(Rejection::Keep(RunError::Write(error)))
                    if error.is_of_another() || error.is_outage() =>
                {
                    tracing::info!(run = %id, %error, "cannot be opened yet; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
                read => return read,
            }
        }
        self.read_if_there(id, now).await
    }

    async fn read_if_there(&self, id: &RunId, now: Moment) -> Result<Option<OpenedRun>, Rejection> {
        match self.read(id, Why::Start, now).await {
            Err(Rejection::Keep(RunError::Unknown { .. })) => Ok(None),
            read => read.map(Some),
        }
    }

    async fn read(&self, id: &RunId, why: Why, now: Moment) -> Result<OpenedRun, Rejection> {
        // First, because reading the run may begin a term: a store that fails then leaves none behind.
        let labels = run::labels::read(&self.store, id).await?;
        let (opened, files) = self.read_run(id, why, now).await?;
        Ok((Opened { labels, ..opened }, files))
    }

    async fn read_run(&self, id: &RunId, why: Why, now: Moment) -> Result<OpenedRun, Rejection> {
        // What has ended is listed without its records. A summary that cannot be read is not needed.
        if why == Why::Start
            && let Ok(Some(summary)) = Summary::read(&self.store, id).await
        {
            stored::look(&self.store, id, &summary).await?;
            return Ok((listed(id, summary), None));
        }
        let study = self.study_of(id).await?;
        let (opened, files) = match stored::read_plan(&self.store, id).await?.0 {
            Plan::Single(_) => self.read_evolution(id, why, now).await,
            Plan::Sweep(sweep) => {
                self.read_cells(id, CellPlan::Sweep(sweep), PlayerFiles::new(), why, now).await
            }
            Plan::Study(study) => self.read_study(id, *study, why, now).await,
            Plan::Tournament(games) => {
                let files = players::read(&self.store, id, &games).await?;
                self.read_cells(id, CellPlan::Tournament(games), files, why, now).await
            }
        }?;
        Ok((Opened { study, ..opened }, files))
    }

    async fn read_evolution(&self, id: &RunId, why: Why, now: Moment) -> Result<OpenedRun, Rejection> {
        let head = RunHead::read(&self.store, id).await?;
        let (asked_priority, extend, is_asked) = match why {
            Why::Start => (None, None, false),
            Why::Asked { priority, extend } => (priority, extend, true),
        };
        if !head.recorded().status.is_open() && !is_asked {
            return Ok((self.list_evolution(id, &head).await?, None));
        }
        let (mut open_run, mut journal) = run::open(&self.store, id, self.opening(now)).await?;
        // Another process may have ended or changed the run after its head was read: what counts is how it stood when it was
        // claimed.
        let status = open_run.status().clone();
        if open_run.is_finished() && extend.is_none() || !status.is_open() && !is_asked {
            let head = RunHead::read(&self.store, id).await?;
            return Ok((self.list_evolution(id, &head).await?, None));
        }
        let (known, created) = (open_run.priority(), open_run.created());
        let priority = asked_priority.unwrap_or(known);
        let continues = is_asked && self.continues(&status);
        let mut events = vec![];
        let mut extension = None;
        if let Some(budget) = &extend {
            let (event, complete) = open_run.extension(budget, now.unix)?;
            events.push(event);
            extension = Some((budget, complete));
        } else if continues {
            events.push(RunEvent::Continued { at: now.unix });
        }
        if priority != known {
            events.push(RunEvent::Prioritised { priority, at: now.unix });
        }
        for event in &events {
            journal.append(event).await.map_err(RunError::from)?;
        }
        if let Some((budget, complete)) = extension {
            if let Some(opening) = open_run.opening(now.unix) {
                let term = journal.append(&opening).await.map_err(RunError::from)?;
                open_run.begin_term(term);
            }
            open_run.extend(budget, complete);
        }
        open_run.note_event(journal.head());
        let is_paused = status == Status::Paused && !continues;
        let state = if is_paused { RunState::Paused } else { RunState::Active };
        let body = OpenedBody::Evolution(Box::new(open_run));
        let files = RunFiles { journal, jobs: None };
        Ok((
            Opened { id: id.clone(), body, state, priority, created, labels: Labels::default(), study: None },
            Some(files),
        ))
    }

    /// A run that has ended, as it is listed.
    async fn list_evolution(&self, id: &RunId, head: &RunHead) -> Result<Opened, Rejection> {
        let recorded = head.recorded();
        let (state, priority) = (state_of(&recorded, RunKind::Evolution), recorded.priority);
        let reader = Reader::read(&self.store, id).await?;
        if let Some(damage) = reader.damage.first() {
            return Err(RunError::Damaged { run: id.clone(), damage: damage.clone() }.into());
        }
        let is_begun = reader.stored().standings().next().is_some();
        let outline = Outline {
            kind: RunKind::Evolution,
            standing: is_begun.then(|| reader.stored().standing()),
            goal: head.experiment.budget().generations,
            islands: head.experiment.setting().islands.len() as u32,
            elapsed: recorded.finished.as_ref().map_or(0, |finished| finished.elapsed),
        };
        let digest = recorded.finished.as_ref().map(|finished| finished.digest);
        let created = recorded.created.as_ref().map_or(0, |created| created.at);
        let body = OpenedBody::Closed(outline, digest);
        Ok(Opened { id: id.clone(), body, state, priority, created, labels: Labels::default(), study: None })
    }

    async fn read_cells(
        &self,
        id: &RunId,
        plan: CellPlan,
        files: PlayerFiles,
        why: Why,
        now: Moment,
    ) -> Result<OpenedRun, Rejection> {
        let opening = self.opening(now);
        let mut journal = PlanJournal::open(&self.store, id, &opening).await?;
        let StoredJobs { progress, batches, .. } =
            StoredJobs::read(&self.store, id, plan).await?.sound(id)?;
        let plan = progress.plan();
        let facts = PlanFacts {
            digest: plan.digest(),
            text: plan.text(),
            outline: jobs::outline(&progress, 0),
            batches,
            is_whole: progress.is_complete(),
        };
        let (opened, term) = self.begin_plan(id, &mut journal, &facts, &why, &opening).await?;
        let Some(term) = term else { return Ok((opened, None)) };
        let log = JobLog::new(&self.store, id, term, &progress);
        let body = OpenedBody::Cells { progress: Box::new(progress), files };
        let files = RunFiles { journal: journal.into_journal(), jobs: Some(log) };
        Ok((Opened { body, ..opened }, Some(files)))
    }

    async fn read_study(
        &self,
        id: &RunId,
        study: Study,
        why: Why,
        now: Moment,
    ) -> Result<OpenedRun, Rejection> {
        let opening = self.opening(now);
        let mut journal = PlanJournal::open(&self.store, id, &opening).await?;
        let parts = study.parts.len() + usize::from(study.tournament.is_some());
        let outline = Outline {
            kind: RunKind::Study,
            standing: None,
            goal: Some(parts as u64),
            islands: parts as u32,
            elapsed: 0,
        };
        let stored = if journal.recorded().finished.is_some() {
            StoredStudy::read(&self.store, id, study).await?
        } else {
            // Its parts may be written to. They are opened one by one, and what is wrong with one of them is found then.
            StoredStudy::read_own(&self.store, id, study).await?
        };
        if let Some(damage) = stored.damage.first() {
            return Err(RunError::Damaged { run: id.clone(), damage: damage.clone() }.into());
        }
        let is_whole = stored.finished == parts as u64;
        let StoredStudy { study, jobs, .. } = stored;
        let (digest, text) = (study.digest(), study.text.as_str());
        let facts = PlanFacts { digest, text, outline, batches: 0, is_whole };
        let (opened, term) = self.begin_plan(id, &mut journal, &facts, &why, &opening).await?;
        if term.is_none() {
            return Ok((opened, None));
        }
        let players = match &study.tournament {
            Some(games) => players::read(&self.store, id, games).await?,
            None => PlayerFiles::new(),
        };
        let body = OpenedBody::Study { study: Box::new(study), jobs, files: players };
        let files = RunFiles { journal: journal.into_journal(), jobs: None };
        Ok((Opened { body, ..opened }, Some(files)))
    }

    /// The study that a run is a part of, by what is stored.
    async fn study_of(&self, id: &RunId) -> Result<Option<String>, Rejection> {
        Ok(run::removal::study_of(&self.store, id).await?.map(|study| study.to_string()))
    }

    /// Opens a term of a plan, unless it has ended and is not to continue. Returns how it is listed, and the term.
    async fn begin_plan(
        &self,
        id: &RunId,
        journal: &mut PlanJournal,
        facts: &PlanFacts<'_>,
        why: &Why,
        opening: &Opening,
    ) -> Result<(Opened, Option<u64>), Rejection> {
        let PlanFacts { digest, text, outline, batches, is_whole } = *facts;
        let recorded = journal.recorded();
        let (state, known) = (state_of(recorded, outline.kind), recorded.priority);
        let created = recorded.created.as_ref().map_or(opening.now, |created| created.at);
        let (priority, is_asked) = match why {
            Why::Start => (known, false),
            Why::Asked { extend: Some(_), .. } => {
                let reason = "expected a single experiment: only its budget can be changed".to_owned();
                return Err(Rejection::Unsuitable { run: id.to_string(), reason });
            }
            Why::Asked { priority, extend: None } => (priority.unwrap_or(known), true),
        };
        let is_revived = is_asked && self.continues(&recorded.status);
        let known_digest = recorded.finished.as_ref().map(|finished| finished.digest);
        let is_finished = known_digest.is_some();
        if !state.is_open() && (!is_asked || is_finished && is_whole) {
            let summary = Summary::read(&self.store, id).await.ok().flatten();
            let body = OpenedBody::Closed(summary.map_or(outline, |summary| summary.outline), known_digest);
            return Ok((
                Opened {
                    id: id.clone(),
                    body,
                    state,
                    priority: known,
                    created,
                    labels: Labels::default(),
                    study: None,
                },
                None,
            ));
        }
        let term = journal.begin(digest, text, opening, batches).await?;
        if is_revived {
            journal.log(&RunEvent::Continued { at: opening.now }).await?;
        }
        if priority != known {
            journal.log(&RunEvent::Prioritised { priority, at: opening.now }).await?;
        }
        let state = if is_revived || !state.is_open() { RunState::Active } else { state };
        let body = OpenedBody::Closed(outline, None);
        Ok((
            Opened { id: id.clone(), body, state, priority, created, labels: Labels::default(), study: None },
            Some(term),
        ))
    }

    /// The name of a plan's run, or the first free one beside it. The names of a study's parts are taken.
    async fn free_id(&self, plan: &Plan, fresh: bool) -> Result<RunId, Rejection> {
        let name = run_name(plan);
        let mut id = RunId::new(&name)?;
        let parts = match plan {
            Plan::Study(study) => run::study::parts(&id, study)?,
            _ => vec![],
        };
        let mut number = 1;
        while fresh && (parts.contains(&id) || !self.store.list(&id.folder()).await?.is_empty()) {
            number += 1;
            id = RunId::new(format!("{name}.{number}"))?;
        }
        Ok(id)
    }
}

/// A plan with its players looked up: champions, and the species and ensembles of populations. A study does that by jobs for
/// what it evolves itself; other players belong to what it is, and a tournament of its own has no name before its players are
/// known, so that is done here, apart from the calls.
pub(crate) async fn look_up(cluster: &Cluster, submission: Submission) -> Result<Submission, Rejection> {
    let Submission { plan, mut files, priority, fresh } = submission;
    let plan = match *plan {
        Plan::Tournament(games) => {
            let (games, found) = find_players(cluster, &games, job::look_ups(&games)).await?;
            files.extend(found);
            Plan::Tournament(Box::new(games))
        }
        Plan::Study(study) => {
            let look_ups = job::outside_look_ups(&study);
            match &study.tournament {
                Some(games) if !look_ups.is_empty() => {
                    let (games, found) = find_players(cluster, games, look_ups).await?;
                    files.extend(found);
                    Plan::Study(Box::new(study.with_tournament(games)))
                }
                _ => Plan::Study(study),
            }
        }
        plan => plan,
    };
    Ok(Submission { plan: Box::new(plan), files, priority, fresh })
}

/// A tournament for which these players were looked up, and their files.
async fn find_players(
    cluster: &Cluster,
    games: &Tournament,
    look_ups: Vec<LookUp>,
) -> Result<(Tournament, PlayerFiles), Rejection> {
    let mut found = BTreeMap::new();
    for look_up in look_ups {
        let text = &look_up.reference;
        let named = naming::complete(cluster.store(), text.parse()?).await;
        let run = named.map_err(|error| unnamed(text, error))?.run;
        let source = Source::of(games, &look_up, format!("{run}{}", &text[look_up.run().len()..]));
        let (job, inputs) = read_inputs(cluster.store(), &source).await?;
        let result = cluster.compute(LARGE, move || job.compute(&inputs)).await;
        let result = result.map_err(|status| status.message().to_owned());
        let result = result.and_then(|result| result.map_err(|error| error.to_string()));
        let refused = |reason| LookUpError::Job { reference: look_up.reference.clone(), reason };
        found.insert(look_up.clone(), result.map_err(refused)?);
    }
    Ok(job::resolve(games, &found).map_err(|report| *report)?)
}

/// Why a reference names no run.
fn unnamed(reference: &str, error: NamingError) -> Rejection {
    match error {
        NamingError::Run(error) => error.into(),
        NamingError::Several(reason) | NamingError::Missing(reason) => {
            LookUpError::Job { reference: reference.to_owned(), reason }.into()
        }
    }
}

impl Source {
    /// Where a look-up of a tournament comes from, whose reference may be called otherwise in the store.
    pub(crate) fn of(tournament: &Tournament, look_up: &LookUp, reference: String) -> Self {
        let species = look_up.species.then(|| {
            let settings = serde_json::json!(tournament.keys().species).to_string();
            (settings, job::wants_ensemble(tournament, look_up))
        });
        Self::Players { reference, species }
    }
}

/// The inputs of a job, and the job itself.
pub(crate) async fn read_inputs(store: &Store, source: &Source) -> Result<(Job, Vec<Bytes>), Rejection> {
    match source.clone() {
        Source::Guests { run, experiment } => {
            let finished = FinishedRun::read(store, &RunId::new(&run)?).await?;
            let states = finished.islands.into_iter().map(|(state, _)| state).collect();
            Ok((Job::Guests { experiment }, states))
        }
        Source::Players { reference, species } => {
            let (experiment, islands, states) = read_players(store, &reference, species.is_some()).await?;
            let job = match species {
                None => Job::Champion { experiment },
                Some((settings, ensemble)) => Job::Species { experiment, islands, settings, ensemble },
            };
            Ok((job, states))
        }
        Source::Milestone { run, milestone, job } => {
            Ok((job, vec![milestone.state(store, &RunId::new(&run)?).await?]))
        }
    }
}

/// Why the inputs of a job cannot be read.
pub(crate) fn why_unread(source: &Source, rejection: &Rejection) -> String {
    match source {
        Source::Guests { .. } | Source::Milestone { .. } => rejection.to_string(),
        Source::Players { reference, .. } => format!("{reference}: {rejection}"),
    }
}

/// The job of a tournament's look-up, and its inputs; the reference may be called otherwise in the store.
///
/// # Errors
/// If there are no such states.
pub async fn read_player_inputs(
    store: &Store,
    tournament: &Tournament,
    look_up: &LookUp,
    reference: String,
) -> Result<(Job, Vec<Bytes>), Rejection> {
    read_inputs(store, &Source::of(tournament, look_up, reference)).await
}

/// The states that a reference names: of one island, or of all where species are looked for.
async fn read_players(
    store: &Store,
    text: &str,
    all: bool,
) -> Result<(String, Vec<u32>, Vec<Bytes>), Rejection> {
    let reference: Reference = text.parse()?;
    let run = RunId::new(&reference.run)?;
    let states = States::open(store, &run).await?;
    let islands: Vec<u32> = match reference.island {
        None if all && reference.epoch.is_none() => (0..states.islands()).collect(),
        _ => vec![reference.island(&states).await?],
    };
    let mut bodies = vec![];
    for &island in &islands {
        let epoch = reference.epoch(&states, island)?;
        bodies.push(states.remains(island, epoch).await?.state.into());
    }
    Ok((states.experiment.to_toml(), islands, bodies))
}
