//! Making a damaged run fit together again.
//!
//! A repair is planned first, and changes nothing by that. Carrying it out appends an event `retracted` to the journal,
//! which records how many epochs are left of each island and why, and then moves the objects that are in the way to
//! `runs/<run>/dropped`. Nothing is deleted. Whatever was dropped is computed again, under names of a new attempt, when
//! the run is resumed. Where nothing has to be computed again, because no result depends on what is moved, the journal stays as it
//! is: a finished run stays finished.
//!
//! Events that do not belong to the journal, and a file in the place of its folder, have to be moved before it can be appended to.
//! If a repair is interrupted, the next one continues it.

use crate::damage::Damage;
use crate::epochs::StoredEpochs;
use crate::event::RunEvent;
use crate::fold::Recorded;
use crate::head::{RunError, RunHead};
use crate::jobs::{Results, StoredJobs};
use crate::journal::{self, Event, Journal};
use crate::labels;
use crate::layout::{Place, RunId};
use crate::lock::Lock;
use crate::open::Opening;
use crate::record::StoredCheckpoint;
use crate::stored::read_plan;
use crate::study::{StoredStudy, job_fits};
use crate::summary::{Summary, journal_damage};
use archipelago::Mark;
use archipelago::cell::CellPlan;
use archipelago::job::JobResult;
use codec::Digest;
use experiment::{Experiment, Plan, SEMANTICS, Study};
use store::number::digits;
use store::{Kind, Path, Store, StoreError};

/// The most objects that the journal names of those that a repair has moved.
const NAMED: usize = 8;

/// What would make a run fit together again.
#[derive(Clone, Debug)]
pub struct Repair {
    /// The run.
    pub run: RunId,
    /// What is wrong.
    pub damage: Vec<String>,
    /// Objects that are moved to `runs/<run>/dropped`, and why.
    pub moved: Vec<(Path, String)>,
    /// Of each island: how many epochs are recorded, and how many are left. What is dropped is computed again.
    pub islands: Vec<(u64, u64)>,
    /// How many events of the journal belong together.
    events: usize,
    /// Numbers of events that do not.
    broken: Vec<u64>,
    recorded: Recorded,
    experiment: Digest,
    text: Digest,
}

impl Repair {
    /// Finds out what would have to be done.
    ///
    /// # Errors
    /// If there is no such run, the store fails, or something is damaged that cannot be computed again: the experiment,
    /// guests, or players.
    pub async fn plan(store: &Store, run: &RunId) -> Result<Self, RunError> {
        let (plan, text) = read_plan(store, run).await?;
        let (events, broken) = journal::read_prefix::<RunEvent>(store, run).await?;
        let recorded = Recorded::of(events.iter().map(|event| &event.body));
        let experiment = match &plan {
            Plan::Single(experiment) => experiment.digest(),
            Plan::Sweep(sweep) => sweep.digest(),
            Plan::Tournament(games) => games.digest(),
            Plan::Study(study) => study.digest(),
        };
        recorded.check_semantics(run)?;
        recorded.check_text(run, &text)?;
        let mut repair = Self {
            run: run.clone(),
            damage: vec![],
            moved: vec![],
            islands: vec![],
            events: events.len(),
            broken,
            recorded,
            experiment,
            text,
        };
        repair.look_at_journal(store, &events).await?;
        match plan {
            Plan::Single(experiment) => repair.look_at_epochs(store, *experiment, &events).await?,
            Plan::Study(study) => repair.look_at_study(store, *study).await?,
            plan => {
                if let Some(plan) = CellPlan::of(plan) {
                    repair.look_at_jobs(store, plan).await?;
                }
            }
        }
        repair.look_at_summaries(store, &events).await?;
        repair.look_at_labels(store).await?;
        repair.look_at_names(store).await?;
        Ok(repair)
    }

    /// Whether there is something to do.
    pub fn is_needed(&self) -> bool {
        !self.damage.is_empty() || !self.moved.is_empty()
    }

    /// Whether results are dropped, or may have been: then the journal says so, and the run is to be resumed. Labels, objects
    /// with names that nothing reads, and summaries of what the journal says are no part of any result.
    pub fn drops_results(&self) -> bool {
        let is_beside =
            |path: &Path| matches!(Place::of(path), None | Some((_, Place::Labels(_) | Place::Summary(_))));
        !self.damage.is_empty() || self.moved.iter().any(|(path, _)| !is_beside(path))
    }

    async fn look_at_journal(&mut self, store: &Store, events: &[Event<RunEvent>]) -> Result<(), RunError> {
        let digests: Vec<Digest> = events.iter().map(|event| event.digest).collect();
        match journal::read_all::<RunEvent>(store, &self.run).await {
            Ok(events) if events.is_empty() => self.damage.push(Damage::Journal { expected: 1 }.to_string()),
            Ok(_) => {
                let damage = journal_damage(store, &self.run, &digests).await?;
                self.damage.extend(damage.as_ref().map(ToString::to_string));
            }
            Err(journal::JournalError::Store(error)) if !error.is_damage() => return Err(error.into()),
            Err(error) => self.damage.push(Damage::from(error).to_string()),
        }
        for &number in &self.broken {
            let path = Place::Event(number).in_run(&self.run);
            self.moved.push((path, "it does not follow the events before it".to_owned()));
        }
        Ok(())
    }

    async fn look_at_epochs(
        &mut self,
        store: &Store,
        experiment: Experiment,
        events: &[Event<RunEvent>],
    ) -> Result<(), RunError> {
        let run = self.run.clone();
        let head = RunHead::new(experiment, self.text, events.to_vec());
        head.guests(store, &run).await?;
        let mut epochs = StoredEpochs::read_explained(store, &run, &head).await?;
        self.add_damage(&epochs.damage);
        for (place, reason) in std::mem::take(&mut epochs.passed_over) {
            self.moved.push((place.in_run(&run), reason));
        }
        for island in 0..epochs.states.len() as u32 {
            for (epoch, name) in epochs.states[island as usize].clone() {
                let reason = match epochs.remains(store, &run, island, epoch).await {
                    Ok(_) => continue,
                    Err(RunError::Altered { .. }) => "it is not the state that its record names".to_owned(),
                    Err(error) => damaged(error)?,
                };
                epochs.states[island as usize].remove(&epoch);
                self.moved.push((Place::State(name).in_run(&run), reason));
            }
            for (&generation, &of) in &epochs.checkpoints[island as usize] {
                let path = Place::Checkpoint { generation, of }.in_run(&run);
                if let Err(error) = store.read_value::<StoredCheckpoint>(&path, Kind::Checkpoint).await {
                    self.moved.push((path, damaged(error.into())?));
                }
            }
        }
        let archipelago = head.archipelago(None);
        let count = |at: usize| (epochs.records[at].len() + epochs.scattered[at].len()) as u64;
        let recorded: Vec<u64> = (0..epochs.records.len()).map(count).collect();
        epochs.limit_to_sound(&self.experiment, |epoch| archipelago.schedule().end_of(epoch));
        let mark = |island: usize, epoch: u64| -> Option<&Mark> {
            epochs.records[island].get(epoch as usize).map(|record| &record.mark)
        };
        if let Some(end) = archipelago.end_of_marks(mark) {
            epochs.limit(end.epoch + 1);
        }
        let (left, _) = epochs.cut();
        self.islands = recorded.into_iter().zip(left).collect();
        Ok(())
    }

    async fn look_at_jobs(&mut self, store: &Store, plan: CellPlan) -> Result<(), RunError> {
        if let CellPlan::Tournament(games) = &plan {
            let read = crate::players::read(store, &self.run, games).await;
            read.map_err(|error| match error {
                crate::players::LookUpError::Run(error) => error,
                error => {
                    let damage = Damage::Unreadable(format!("{error}: restore it from a copy"));
                    RunError::Damaged { run: self.run.clone(), damage }
                }
            })?;
        }
        for path in store.list(&self.run.jobs()).await? {
            let Some((_, Place::Jobs { term, .. })) = Place::of(&path) else { continue };
            let is_explained =
                self.recorded.terms.iter().any(|known| known.number == term && known.owner.is_some());
            let reason = match store.read_value::<Results>(&path, Kind::Jobs).await {
                Err(error) => damaged(error.into())?,
                Ok(_) if !is_explained => "the journal does not explain it".to_owned(),
                Ok(results) if results.iter().any(|(number, result)| !plan.fits(*number, result)) => {
                    "it holds a result that does not fit its job".to_owned()
                }
                Ok(_) => continue,
            };
            self.moved.push((path, reason));
        }
        let stored = StoredJobs::read(store, &self.run, plan).await?;
        self.add_damage(&stored.damage);
        Ok(())
    }

    async fn look_at_study(&mut self, store: &Store, study: Study) -> Result<(), RunError> {
        for path in store.list(&self.run.artifacts()).await? {
            let Some((_, Place::Artifact(name))) = Place::of(&path) else { continue };
            let Some(number) = name.as_str().strip_prefix("job-") else { continue };
            let reason = match store.read_value::<JobResult>(&path, Kind::Artifact).await {
                Err(error) => damaged(error.into())?,
                Ok(result) if number.parse().is_ok_and(|number| !job_fits(&study, number, &result)) => {
                    "it holds a result that does not fit its job".to_owned()
                }
                Ok(_) => continue,
            };
            self.moved.push((path, reason));
        }
        let stored = StoredStudy::read(store, &self.run, study).await?;
        self.add_damage(&stored.damage);
        Ok(())
    }

    /// Adds what is not known yet.
    fn add_damage(&mut self, found: &[Damage]) {
        for damage in found.iter().map(ToString::to_string) {
            if !self.damage.contains(&damage) {
                self.damage.push(damage);
            }
        }
    }

    async fn look_at_summaries(&mut self, store: &Store, events: &[Event<RunEvent>]) -> Result<(), RunError> {
        for path in store.list(&self.run.summaries()).await? {
            let Some((_, Place::Summary(number))) = Place::of(&path) else { continue };
            let reason = match store.read_value::<Summary>(&path, Kind::Summary).await {
                Err(error) => damaged(error.into())?,
                Ok(summary) => match summary.contradicts(number, events) {
                    None => continue,
                    Some("number" | "journal") => "the journal does not explain it".to_owned(),
                    Some(field) => format!("its {field} is not that of the run"),
                },
            };
            self.moved.push((path, reason));
        }
        Ok(())
    }

    async fn look_at_labels(&mut self, store: &Store) -> Result<(), RunError> {
        for path in store.list(&self.run.labels()).await? {
            if !matches!(Place::of(&path), Some((_, Place::Labels(_)))) {
                continue;
            }
            if let Err(error) = labels::read_object(store, &path).await {
                self.moved.push((path, damaged(error.into())?));
            }
        }
        Ok(())
    }

    /// Moves objects whose names no object of a run has: a store may have misdirected a write.
    async fn look_at_names(&mut self, store: &Store) -> Result<(), RunError> {
        let dropped = self.run.dropped();
        for path in store.list(&self.run.folder()).await? {
            if path.prefix_matches(&dropped) || Place::of(&path).is_some() {
                continue;
            }
            // What another version wrote is named otherwise: it stays where that version finds it.
            let is_of_another_version = matches!(
                store.read(&path, Kind::Event).await,
                Err(StoreError::Damaged { damage: store::ObjectDamage::UnknownVersion { .. }, .. })
            );
            if !is_of_another_version {
                self.moved.push((path, "no object of a run has such a name".to_owned()));
            }
        }
        Ok(())
    }

    /// Records the repair in the journal, and moves what is in the way.
    ///
    /// # Errors
    /// If another process works on the run, it was changed since, or the store fails: the next repair continues then.
    pub async fn carry_out(&self, store: &Store, opening: &Opening) -> Result<(), RunError> {
        let run = &self.run;
        let lock = Lock::take(store, run, &opening.owner)?;
        let server = Lock::server(store)?;
        if let Some(owner) = self.recorded.owner().filter(|_| self.recorded.status.is_open())
            && server.is_some_and(|server| server.is(owner))
        {
            return Err(RunError::Busy { run: run.clone(), owner: format!("the coordinator, {owner}") });
        }
        let aside = self.free_folder(store).await?;
        // What stands where events are written.
        let is_in_the_way =
            |path: &Path| *path == run.events() || matches!(Place::of(path), Some((_, Place::Event(_))));
        let (first, others): (Vec<_>, Vec<_>) = self.moved.iter().partition(|(path, _)| is_in_the_way(path));
        for (path, _) in first {
            self.move_object(store, path, &aside).await?;
        }
        let (journal, events) = Journal::open::<RunEvent>(store, run, opening.nonce).await?;
        let mut journal = journal.locked(Some(lock));
        if events.len() != self.events {
            let owner = "another process, which changed the run during the repair".to_owned();
            return Err(RunError::Busy { run: run.clone(), owner });
        }
        if self.drops_results() {
            self.append(&mut journal, opening, &aside).await?;
        }
        for (path, _) in others {
            self.move_object(store, path, &aside).await?;
        }
        Ok(())
    }

    /// Records in the journal what is dropped.
    async fn append(&self, journal: &mut Journal, opening: &Opening, aside: &Path) -> Result<(), RunError> {
        let at = opening.now;
        if self.events == 0 {
            let (experiment, text, version) = (self.experiment, self.text, opening.owner.version.clone());
            journal
                .append(&RunEvent::Created { experiment, text, semantics: SEMANTICS, version, at })
                .await?;
        }
        let cuts = self.islands.iter().map(|(_, left)| *left).collect();
        journal.append(&RunEvent::Retracted { cuts, reason: self.reason(aside), at }).await?;
        Ok(())
    }

    /// A folder below `dropped` that nothing is in.
    async fn free_folder(&self, store: &Store) -> Result<Path, StoreError> {
        let mut number = self.events as u64;
        loop {
            let folder = self.run.dropped().join(digits(number));
            if store.list(&folder).await?.is_empty() {
                return Ok(folder);
            }
            number += 1;
        }
    }

    async fn move_object(&self, store: &Store, path: &Path, aside: &Path) -> Result<(), StoreError> {
        let folder = format!("{}/", self.run.folder());
        let name = path.as_ref().strip_prefix(&folder).unwrap_or(path.as_ref());
        let to = name.split('/').fold(aside.clone(), store::Path::join);
        match store.set_aside(path, &to).await {
            Err(error) if error.is_missing() => Ok(()),
            moved => moved,
        }
    }

    fn reason(&self, aside: &Path) -> String {
        let first = self.damage.first().map_or("objects cannot be read", String::as_str);
        if self.moved.is_empty() {
            format!("repaired: {first}")
        } else {
            let names: Vec<&str> =
                self.moved.iter().take(NAMED).filter_map(|(path, _)| path.filename()).collect();
            let others = self.moved.len().saturating_sub(NAMED);
            let others = if others > 0 { format!(" and {others} more") } else { String::new() };
            format!("repaired: {first}; moved to {aside}: {}{others}", names.join(", "))
        }
    }
}

/// Why an object cannot be used, unless it is the store that failed.
fn damaged(error: RunError) -> Result<String, RunError> {
    use crate::commit::WriteError;
    match error {
        RunError::Write(WriteError::Store(error)) if error.is_damage() => Ok(error.fact()),
        error => Err(error),
    }
}
