//! Runs as a coordinator has them: taken up from the store, submitted, finished, and told about.

use crate::cells::Cells;
use crate::course::Course;
use crate::epochs::Epochs;
use crate::keeper::Keeper;
use crate::office::{Moment, Office, Refusal};
use crate::plan::{PlanError, RunState};
use archipelago::cell::CellPlan;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use experiment::{Experiment, Plan, Study, Tournament};
use proto::convert::digest_bytes;
use proto::v1;
use proto::v1::run_status::{Kind, State};
use run::RunEvent;
use run::epochs;
use run::players::{self, PlayerFiles};
use run::{Journal, Place, RunId, layout};
use run::{Opening, Recorded, RunError, RunHead, Status};
use std::time::Duration;
use store::{Store, StoreError};

/// The largest experiment that is read back from a store.
const MAX_EXPERIMENT: u64 = 1 << 20;

/// How often a run is tried to be taken up that another coordinator still has, and how long to wait in between: it
/// notices within seconds.
const PATIENCE: usize = 10;
const AGAIN: Duration = Duration::from_millis(500);

/// One run.
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) activity: Activity,
    /// Where its events are written, unless its keeper does so.
    journal: Option<Journal>,
    created: u64,
    pub(crate) digest: Option<Digest>,
}

/// What a run consists of.
pub(crate) enum Activity {
    Epochs(Box<Epochs>),
    Cells(Box<Cells>),
    Study(Box<Course>),
    /// It has ended, and only this is remembered of it.
    Closed(Closed),
}

/// What is remembered of a run that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Closed {
    kind: Kind,
    standing: Option<Standing>,
    goal: Option<u64>,
    islands: u32,
    elapsed: u64,
}

impl Run {
    pub(crate) async fn log(&mut self, event: &RunEvent) -> Result<(), RunError> {
        match (&mut self.activity, &mut self.journal) {
            (Activity::Epochs(epochs), _) => epochs.keeper_mut().log(event).await,
            (_, Some(journal)) => Ok(journal.append(event).await.map(|_| ())?),
            (_, None) => Ok(()),
        }
    }

    /// What can be told of it now.
    pub(crate) fn outline(&self) -> Closed {
        match &self.activity {
            Activity::Closed(closed) => *closed,
            Activity::Epochs(epochs) => Closed {
                kind: Kind::Evolution,
                standing: Some(epochs.standing()),
                goal: epochs.keeper().archipelago().generations(),
                islands: epochs.keeper().experiment().setting().islands.len() as u32,
                elapsed: epochs.elapsed(),
            },
            Activity::Cells(cells) => {
                let (goal, islands) = (Some(u64::from(cells.len())), cells.len());
                Closed {
                    kind: if cells.is_tournament() { Kind::Tournament } else { Kind::Sweep },
                    standing: Some(cells.standing()),
                    goal,
                    islands,
                    elapsed: cells.elapsed(),
                }
            }
            Activity::Study(course) => Closed {
                kind: Kind::Study,
                standing: Some(Standing {
                    generation: course.finished() as u64,
                    evaluations: 0,
                    best: f64::NEG_INFINITY,
                }),
                goal: Some(course.study.parts.len() as u64),
                islands: course.study.parts.len() as u32,
                elapsed: 0,
            },
        }
    }
}

/// The state of a run as its journal says.
fn state_of(recorded: &Recorded) -> RunState {
    match &recorded.status {
        Status::Open => RunState::Active,
        Status::Paused => RunState::Paused,
        Status::Cancelled => RunState::Cancelled,
        Status::Failed(reason) => RunState::Failed(reason.clone()),
        Status::Finished => {
            let reason = recorded.finished.as_ref().map(|finished| finished.end.reason.to_string());
            RunState::Finished(reason.unwrap_or_default())
        }
    }
}

impl Office {
    pub(crate) fn opening(&self, now: Moment) -> Opening {
        Opening {
            nonce: self.settings.nonce,
            now: now.unix,
            version: self.settings.version.clone(),
            claim: Some(self.claim.clone()),
        }
    }

    /// Takes up every run of the store. One that cannot be read is listed as failed, and the others all the same.
    pub(crate) async fn take_up_all(&mut self, now: Moment) -> Result<(), Refusal> {
        let folders = self.store.folders(&layout::runs()).await?;
        for id in folders.iter().filter_map(layout::run_of_folder) {
            if let Err(error) = self.take_up_patiently(&id, now).await {
                tracing::error!(run = %id, %error, "cannot be taken up");
                let closed =
                    Closed { kind: Kind::Evolution, standing: None, goal: None, islands: 0, elapsed: 0 };
                self.plan.add(id.as_str(), 0, RunState::Failed(error.to_string()));
                let run = Run {
                    id: id.clone(),
                    activity: Activity::Closed(closed),
                    journal: None,
                    created: 0,
                    digest: None,
                };
                self.runs.insert(id.to_string(), run);
            }
        }
        self.advance_studies(now).await;
        Ok(())
    }

    /// Takes a run up, even while another coordinator that has not noticed yet still writes and deletes.
    async fn take_up_patiently(&mut self, id: &RunId, now: Moment) -> Result<(), Refusal> {
        for _ in 0..PATIENCE {
            match self.take_up(id, now).await {
                Err(Refusal::Keep(RunError::Write(error))) if error.is_of_another() => {
                    tracing::info!(run = %id, %error, "another coordinator is still at it; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
                taken => return taken,
            }
        }
        self.take_up(id, now).await
    }

    async fn take_up(&mut self, id: &RunId, now: Moment) -> Result<(), Refusal> {
        let path = Place::Experiment.in_run(id);
        let text = match self.store.read_text(&path, MAX_EXPERIMENT).await {
            Err(error) if error.is_missing() => return Ok(()),
            text => text?,
        };
        match experiment::parse(path.as_ref(), &text, None)? {
            Plan::Single(_) => self.take_up_evolution(id, now).await,
            Plan::Sweep(sweep) => {
                self.open_cells(id, CellPlan::Sweep(sweep), PlayerFiles::new(), None, now).await
            }
            Plan::Study(study) => self.open_study(id, *study, None, now).await,
            Plan::Tournament(games) => {
                let files = players::read(&self.store, id, &games).await?;
                self.open_cells(id, CellPlan::Tournament(games), files, None, now).await
            }
        }
    }

    async fn take_up_evolution(&mut self, id: &RunId, now: Moment) -> Result<(), Refusal> {
        let head = RunHead::read(&self.store, id).await?;
        let recorded = head.recorded();
        let (state, priority) = (state_of(&recorded), recorded.priority);
        let created = recorded.created.as_ref().map_or(0, |created| created.at);
        if state.is_open() {
            let keeper = Keeper::open(&self.store, id, self.opening(now)).await?;
            self.plan.add(id.as_str(), priority, state);
            self.insert_keeper(id, keeper, created);
            self.settle_one(id.as_str(), now).await;
            return Ok(());
        }
        self.plan.add(id.as_str(), priority, state);
        let end = recorded.finished.as_ref().map(|finished| finished.end.epoch);
        let standings = epochs::standings(&self.store, id, end).await.unwrap_or_else(|error| {
            tracing::warn!(run = %id, %error, "what it came to cannot be read");
            vec![]
        });
        let closed = Closed {
            kind: Kind::Evolution,
            standing: (!standings.is_empty()).then(|| epochs::total(standings.into_iter())),
            goal: head.experiment.budget().generations,
            islands: head.experiment.setting().islands.len() as u32,
            elapsed: recorded.finished.as_ref().map_or(0, |finished| finished.elapsed),
        };
        let digest = recorded.finished.map(|finished| finished.digest);
        let activity = Activity::Closed(closed);
        let run = Run { id: id.clone(), activity, journal: None, created, digest };
        self.runs.insert(id.to_string(), run);
        Ok(())
    }

    fn insert_keeper(&mut self, id: &RunId, keeper: Keeper, created: u64) {
        let activity = Activity::Epochs(Box::new(Epochs::new(keeper)));
        self.runs
            .insert(id.to_string(), Run { id: id.clone(), activity, journal: None, created, digest: None });
    }

    /// Opens a plan of cells that is in the store; a priority is given with a submission.
    async fn open_cells(
        &mut self,
        id: &RunId,
        plan: CellPlan,
        files: PlayerFiles,
        priority: Option<i32>,
        now: Moment,
    ) -> Result<(), Refusal> {
        let cells = Cells::open(&self.store, id, plan, files).await?;
        let activity = Activity::Cells(Box::new(cells));
        self.open_journalled(id, activity, priority, now).await
    }

    async fn open_study(
        &mut self,
        id: &RunId,
        study: Study,
        priority: Option<i32>,
        now: Moment,
    ) -> Result<(), Refusal> {
        let activity = Activity::Study(Box::new(Course::new(study)));
        self.open_journalled(id, activity, priority, now).await
    }

    /// Keeps the players of a tournament, and opens it.
    async fn create_tournament(
        &mut self,
        id: &RunId,
        games: Tournament,
        files: PlayerFiles,
        priority: i32,
        now: Moment,
    ) -> Result<(), Refusal> {
        players::keep(&self.store, id, &games, &files).await?;
        create_text(&self.store, id, games.text()).await?;
        let files = players::read(&self.store, id, &games).await?;
        self.open_cells(id, CellPlan::Tournament(Box::new(games)), files, Some(priority), now).await
    }

    /// Sweeps, tournaments and studies have a journal for what operators do to them.
    async fn open_journalled(
        &mut self,
        id: &RunId,
        activity: Activity,
        priority: Option<i32>,
        now: Moment,
    ) -> Result<(), Refusal> {
        let opened = Journal::open::<RunEvent>(&self.store, id, self.settings.nonce).await;
        let (mut journal, events) = opened.map_err(RunError::from)?;
        let events: Vec<RunEvent> = events.into_iter().map(|event| event.body).collect();
        let recorded = Recorded::of(&events);
        let state = state_of(&recorded);
        let priority = priority.unwrap_or(recorded.priority);
        let event = RunEvent::Prioritised { priority, at: now.unix };
        // Writing is what tells another coordinator that the run is ours now.
        journal.append(&event).await.map_err(RunError::from)?;
        self.plan.add(id.as_str(), priority, state);
        let run = Run { id: id.clone(), activity, journal: Some(journal), created: now.unix, digest: None };
        self.runs.insert(id.to_string(), run);
        self.settle_one(id.as_str(), now).await;
        Ok(())
    }

    /// Takes a run that somebody asks for: a new one, or one that is there and goes on if it had stopped. With a
    /// tournament come the player files that it names by their digests.
    pub(crate) async fn submit(
        &mut self,
        plan: Plan,
        players: Vec<Bytes>,
        priority: i32,
        fresh: bool,
        now: Moment,
    ) -> Result<String, Refusal> {
        let mut files: PlayerFiles = players.into_iter().map(|bytes| (Digest::of(&bytes), bytes)).collect();
        let plan = match plan {
            Plan::Tournament(games) => {
                Plan::Tournament(Box::new(players::look_up(&self.store, &games, &mut files).await?))
            }
            plan => plan,
        };
        let name = match &plan {
            Plan::Single(experiment) => experiment.run_id(),
            Plan::Sweep(sweep) => sweep.run_id(),
            Plan::Study(study) => study.run_id(),
            Plan::Tournament(games) => games.run_id(),
        };
        let id = free_id(&self.store, &name, fresh).await?;
        if self.runs.contains_key(id.as_str()) {
            self.submit_again(id.as_str(), priority, now).await?;
        } else {
            self.check_room()?;
            match plan {
                Plan::Single(experiment) => self.create(&id, &experiment, None, priority, now).await?,
                Plan::Sweep(sweep) => {
                    create_text(&self.store, &id, &sweep.text).await?;
                    let plan = CellPlan::Sweep(sweep);
                    self.open_cells(&id, plan, PlayerFiles::new(), Some(priority), now).await?;
                }
                Plan::Tournament(games) => {
                    self.create_tournament(&id, *games, files, priority, now).await?;
                }
                Plan::Study(study) => {
                    create_text(&self.store, &id, &study.text).await?;
                    self.open_study(&id, *study, Some(priority), now).await?;
                }
            }
        }
        // A successor claims the store before it reads the runs: if the claim stands now, it will find this one.
        if self.is_succeeded().await {
            return Err(Refusal::Succeeded);
        }
        tracing::info!(run = %id, priority, "submitted");
        self.begun = true;
        self.advance_studies(now).await;
        Ok(id.to_string())
    }

    fn check_room(&self) -> Result<(), Refusal> {
        let open = self.plan.all().filter(|(_, state)| state.is_open()).count();
        let most = self.settings.max_runs;
        if open < most { Ok(()) } else { Err(Refusal::TooMany { what: "unfinished runs", most }) }
    }

    /// Creates an evolution, or takes up what is in the store of it.
    pub(crate) async fn create(
        &mut self,
        id: &RunId,
        experiment: &Experiment,
        guests: Option<bytes::Bytes>,
        priority: i32,
        now: Moment,
    ) -> Result<(), Refusal> {
        let mut keeper = Keeper::create(&self.store, id, experiment, guests, self.opening(now)).await?;
        if !keeper.is_finished() {
            keeper.log(&RunEvent::Prioritised { priority, at: now.unix }).await?;
        }
        self.plan.add(id.as_str(), priority, RunState::Active);
        self.insert_keeper(id, keeper, now.unix);
        self.settle_one(id.as_str(), now).await;
        Ok(())
    }

    async fn submit_again(&mut self, name: &str, priority: i32, now: Moment) -> Result<(), Refusal> {
        let state = self.plan.state(name).cloned().unwrap_or(RunState::Active);
        if matches!(state, RunState::Cancelled | RunState::Failed(_)) {
            self.reopen(name, now).await?;
            self.log(name, &RunEvent::Continued { at: now.unix }).await?;
            self.failed = None;
            self.plan.add(name, priority, RunState::Active);
        } else if state.is_open() && priority != self.plan.priority(name) {
            self.log(name, &RunEvent::Prioritised { priority, at: now.unix }).await?;
            self.plan.add(name, priority, state);
        }
        Ok(())
    }

    /// Reads a run again that was cancelled or had failed: what was handed out of it then is nobody's.
    async fn reopen(&mut self, name: &str, now: Moment) -> Result<(), Refusal> {
        let opening = self.opening(now);
        let Some(run) = self.runs.get_mut(name) else { return Ok(()) };
        let (id, created) = (run.id.clone(), run.created);
        match &mut run.activity {
            Activity::Epochs(epochs) => {
                // What cannot be written is computed again.
                if let Err(error) = epochs.keeper_mut().flush().await {
                    tracing::warn!(run = name, %error, "not everything could be written before it was read again");
                }
            }
            Activity::Cells(cells) => {
                let (plan, players) = (cells.shared_plan(), cells.players().clone());
                let cells = Cells::open(&self.store, &id, (*plan).clone(), players).await?;
                run.activity = Activity::Cells(Box::new(cells));
                return Ok(());
            }
            Activity::Study(_) => return Ok(()),
            Activity::Closed(_) => {}
        }
        let keeper = Keeper::open(&self.store, &id, opening).await?;
        self.insert_keeper(&id, keeper, created);
        Ok(())
    }

    async fn log(&mut self, run: &str, event: &RunEvent) -> Result<(), Refusal> {
        let run = self.runs.get_mut(run).ok_or_else(|| PlanError::Unknown(run.to_owned()))?;
        Ok(run.log(event).await?)
    }

    /// Holds a run's work back, or goes on with it.
    pub(crate) async fn pause(&mut self, run: &str, paused: bool, now: Moment) -> Result<(), Refusal> {
        let wanted = if paused { RunState::Paused } else { RunState::Active };
        if *self.plan.open_state(run)? == wanted {
            return Ok(());
        }
        let at = now.unix;
        self.log(run, &if paused { RunEvent::Paused { at } } else { RunEvent::Continued { at } }).await?;
        self.plan.set(run, wanted.clone());
        for part in self.parts_of(run) {
            if self.plan.open_state(&part).is_ok() {
                self.plan.set(&part, wanted.clone());
            }
        }
        self.hurry(run);
        Ok(())
    }

    /// Ends a run without a result.
    pub(crate) async fn cancel(&mut self, run: &str, now: Moment) -> Result<(), Refusal> {
        self.plan.open_state(run)?;
        let mut runs = self.parts_of(run);
        runs.push(run.to_owned());
        for run in runs {
            if self.plan.open_state(&run).is_ok() {
                self.hurry(&run);
                self.log(&run, &RunEvent::Cancelled { at: now.unix }).await?;
                self.plan.set(&run, RunState::Cancelled);
                self.failed = Some(format!("run {run} was cancelled"));
                self.leases.remove_run(&run);
            }
        }
        Ok(())
    }

    fn parts_of(&self, run: &str) -> Vec<String> {
        match self.runs.get(run).map(|run| &run.activity) {
            Some(Activity::Study(course)) => course.runs.clone(),
            _ => vec![],
        }
    }

    /// Has everything of a run written in the next turn.
    fn hurry(&mut self, run: &str) {
        if let Some(epochs) = self.epochs(run) {
            epochs.hurry();
        }
    }

    /// Finishes a run if it has come to its end, and whatever waited for it.
    pub(crate) async fn settle(&mut self, run: &str, now: Moment) {
        if self.settle_one(run, now).await {
            self.advance_studies(now).await;
        }
    }

    /// Finishes a run if it has come to its end, and everything is written.
    pub(crate) async fn settle_one(&mut self, name: &str, now: Moment) -> bool {
        // What comes for a run that somebody has cancelled is kept, and does not finish it.
        if !matches!(self.plan.state(name), Some(RunState::Active | RunState::Paused)) {
            return false;
        }
        let Some(run) = self.runs.get_mut(name) else { return false };
        let (digest, reason) = match &mut run.activity {
            Activity::Epochs(epochs) => {
                let Some(end) = epochs.keeper().archipelago().end().cloned() else { return false };
                if !epochs.keeper().is_finished() && !epochs.keeper_mut().is_settled() {
                    epochs.hurry();
                    return false;
                }
                let elapsed = epochs.elapsed();
                match epochs.keeper_mut().finish(now.unix, elapsed).await {
                    Ok(digest) => (digest, end.reason.to_string()),
                    Err(error) => {
                        self.note_trouble(name, Err(error), now).await;
                        return false;
                    }
                }
            }
            Activity::Cells(cells) => {
                let what = if cells.is_tournament() { "all games are played" } else { "all cells are done" };
                (cells.digest(), what.to_owned())
            }
            Activity::Study(_) | Activity::Closed(_) => return false,
        };
        let Some(digest) = digest else { return false };
        self.close(name, digest, reason);
        true
    }

    /// Forgets a finished run's islands, and remembers how it ended.
    pub(crate) fn close(&mut self, name: &str, digest: Digest, reason: String) {
        tracing::info!(run = name, %digest, reason, "finished");
        if let Some(run) = self.runs.get_mut(name) {
            run.activity = Activity::Closed(run.outline());
            run.digest = Some(digest);
        }
        self.leases.remove_run(name);
        self.plan.set(name, RunState::Finished(reason));
    }

    /// All runs of which something can be told.
    pub(crate) fn statuses(&self) -> Vec<v1::RunStatus> {
        self.runs.keys().filter_map(|run| self.status(run).ok()).collect()
    }

    /// Where a run stands.
    pub(crate) fn status(&self, name: &str) -> Result<v1::RunStatus, Refusal> {
        let unknown = || PlanError::Unknown(name.to_owned());
        let run = self.runs.get(name).ok_or_else(unknown)?;
        let Closed { kind, standing, goal, islands, elapsed } = run.outline();
        let leases = self.leases.count(name) as u32;
        let (state, reason) = match self.plan.state(name).ok_or_else(unknown)? {
            RunState::Active if leases > 0 || kind == Kind::Study => {
                let stalled = self.leases.stalled(name).map(|(work, worker)| {
                    format!("{} makes no progress on worker {}", work.piece, self.members.name(worker))
                });
                (State::Running, stalled.unwrap_or_default())
            }
            RunState::Active if self.members.count() == 0 => {
                (State::Waiting, "no worker has joined".to_owned())
            }
            RunState::Active => (State::Waiting, "all workers are busy".to_owned()),
            RunState::Paused => (State::Paused, String::new()),
            RunState::Finished(reason) => (State::Finished, reason.clone()),
            RunState::Cancelled => (State::Cancelled, String::new()),
            RunState::Failed(reason) => (State::Failed, reason.clone()),
        };
        Ok(v1::RunStatus {
            run: name.to_owned(),
            kind: kind.into(),
            state: state.into(),
            priority: self.plan.priority(name),
            reason,
            standing: standing.as_ref().map(v1::Standing::from),
            goal,
            islands,
            leases,
            digest: run.digest.as_ref().map(digest_bytes),
            elapsed_milliseconds: elapsed,
            created: run.created,
        })
    }
}

async fn create_text(store: &Store, id: &RunId, text: &str) -> Result<(), Refusal> {
    match store.create_text(&Place::Experiment.in_run(id), text).await {
        // What differs in its words may be the same plan: its name says so.
        Ok(_) | Err(StoreError::Differs { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The run's name, or the first free one beside it.
async fn free_id(store: &Store, name: &str, fresh: bool) -> Result<RunId, Refusal> {
    let mut id = RunId::new(name)?;
    let mut number = 1;
    while fresh && !store.list(&id.folder()).await?.is_empty() {
        number += 1;
        id = RunId::new(format!("{name}.{number}"))?;
    }
    Ok(id)
}
