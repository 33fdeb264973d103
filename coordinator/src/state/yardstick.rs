//! The yardstick of a run: champions of its milestones are measured by jobs of the lowest priority.
//!
//! A champion is measured once its epoch is durable. Workers without other work do that, and others for a small share of
//! their time, so that strength is known during the run. The newest milestones come first. When the run has ended, the
//! champions of its end are measured, and what is left of earlier milestones is left out. Results never depend on it: what
//! cannot be measured is logged, and the run continues.

use super::queue::RunState;
use super::ready_job::ReadyJob;
use super::reply_budget::ReplyBudget;
use super::{Body, ClusterState, Effect, Moment, Receipt, Source};
use archipelago::job::{Job, JobResult};
use bytes::Bytes;
use evolution::digest::Digest;
use proto::convert::{Piece, Work};
use proto::v1;
use run::yardstick::{self, Milestone, Strengths};
use run::{ArtifactName, OpenRun};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::StoreError;

/// How many jobs have their inputs at hand: each holds a state in memory.
const READY: usize = 8;
/// How many jobs wait at most, in milestones of all islands and in jobs: of a run whose champions come faster than they are
/// measured, the oldest are left out.
const MOST_MILESTONES: usize = 8;
const MOST_JOBS: usize = 1000;
/// How long the end of a run waits for a worker that measures.
const PATIENCE: Duration = Duration::from_secs(60);

/// A champion and an opponent: epoch, island and opponent, the newest epoch first.
type Place = (Reverse<u64>, u32, u32);

/// What is measured of a run.
pub(crate) struct Yardstick {
    run: String,
    experiment: String,
    strengths: Strengths,
    islands: u32,
    slots: BTreeMap<Place, Slot>,
    /// The slots that wait for their inputs, those whose inputs are being read, and those that are ready.
    waiting: BTreeSet<Place>,
    reading: usize,
    ready: BTreeSet<Place>,
    /// The first epoch of each island that was not looked at yet.
    next: Vec<u64>,
    /// The epoch that the run ended with, once its champions are to be measured.
    end: Option<u64>,
    /// The time for which workers had epochs, and for which they measured.
    worked: Duration,
    measured: Duration,
    /// Since when no worker measures what is left at the end.
    idle: Duration,
}

struct Slot {
    milestone: Milestone,
    stage: Stage,
}

/// How far a job is.
enum Stage {
    Waiting,
    /// Its inputs are being read.
    Reading,
    Ready(ReadyJob),
    Leased(ReadyJob, Duration),
    Storing,
}

impl Yardstick {
    /// Nothing for a run that is not measured.
    pub(crate) fn new(open_run: &OpenRun, text: &str) -> Option<Self> {
        let strengths = open_run.strengths()?.clone();
        let islands = open_run.experiment().setting().islands.len() as u32;
        let mut yardstick = Self {
            run: open_run.run().to_string(),
            experiment: text.to_owned(),
            strengths,
            islands,
            slots: BTreeMap::new(),
            waiting: BTreeSet::new(),
            reading: 0,
            ready: BTreeSet::new(),
            next: vec![0; islands as usize],
            end: None,
            worked: Duration::ZERO,
            measured: Duration::ZERO,
            idle: Duration::ZERO,
        };
        (0..islands).for_each(|island| yardstick.look_at(open_run, island));
        Some(yardstick)
    }

    pub(crate) fn strengths(&self) -> &Strengths {
        &self.strengths
    }

    fn opponents(&self) -> u32 {
        self.strengths.opponents().len() as u32
    }

    /// The number of a job; nothing for the epochs of a run longer than there are numbers.
    fn number(&self, (Reverse(epoch), island, opponent): Place) -> Option<u32> {
        let champion = epoch.checked_mul(u64::from(self.islands))?.checked_add(u64::from(island))?;
        let number = champion.checked_mul(u64::from(self.opponents()))?.checked_add(u64::from(opponent))?;
        u32::try_from(number).ok()
    }

    fn place(&self, number: u32) -> Place {
        let (champion, opponent) = (number / self.opponents(), number % self.opponents());
        (Reverse(u64::from(champion / self.islands)), champion % self.islands, opponent)
    }

    fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(&self.place(number))
    }

    /// Notes how far a job is, and returns how far it was; nothing if there is no such job.
    fn put(&mut self, place: Place, stage: Stage) -> Option<Stage> {
        let slot = self.slots.get_mut(&place)?;
        let before = std::mem::replace(&mut slot.stage, stage);
        match slot.stage {
            Stage::Waiting => _ = self.waiting.insert(place),
            Stage::Reading => self.reading += 1,
            Stage::Ready(_) => _ = self.ready.insert(place),
            Stage::Leased(..) | Stage::Storing => {}
        }
        self.forget(place, &before);
        Some(before)
    }

    /// Removes a job.
    fn remove(&mut self, place: Place) -> Option<Slot> {
        let slot = self.slots.remove(&place)?;
        self.forget(place, &slot.stage);
        Some(slot)
    }

    /// Forgets that a job is as far as that.
    fn forget(&mut self, place: Place, stage: &Stage) {
        match stage {
            Stage::Waiting => _ = self.waiting.remove(&place),
            Stage::Reading => self.reading -= 1,
            Stage::Ready(_) => _ = self.ready.remove(&place),
            Stage::Leased(..) | Stage::Storing => {}
        }
    }

    /// Notes the milestones of an island that have become durable.
    pub(crate) fn look_at(&mut self, open_run: &OpenRun, island: u32) {
        let from = self.next[island as usize];
        let epochs: Vec<u64> = open_run.commit().milestones(island, from).collect();
        for epoch in epochs {
            self.add(open_run, island, epoch);
            self.next[island as usize] = epoch + 1;
        }
        let most = MOST_JOBS.max(MOST_MILESTONES * (self.islands * self.opponents()) as usize);
        while self.waiting.len() > most
            && let Some(oldest) = self.waiting.last().copied()
        {
            self.remove(oldest);
        }
    }

    fn add(&mut self, open_run: &OpenRun, island: u32, epoch: u64) {
        let Some(milestone) = open_run.commit().milestone(island, epoch) else { return };
        for opponent in 0..self.opponents() {
            let place = (Reverse(epoch), island, opponent);
            let is_known = self.strengths.tally((epoch, island), opponent as usize).is_some();
            if !is_known && self.number(place).is_some() {
                let slot = Slot { milestone: milestone.clone(), stage: Stage::Waiting };
                if let Entry::Vacant(vacant) = self.slots.entry(place) {
                    vacant.insert(slot);
                    self.waiting.insert(place);
                }
            }
        }
    }

    /// Notes that the run has ended with this epoch, and everything of it is written: from now on only the champions of its
    /// end are measured. Returns whether they are.
    pub(crate) fn is_done_at(&mut self, open_run: &OpenRun, end: u64) -> bool {
        if self.end != Some(end) {
            (self.end, self.idle) = (Some(end), Duration::ZERO);
            let others: Vec<Place> = self.waiting.union(&self.ready).copied().collect();
            for place in others.into_iter().filter(|(Reverse(epoch), ..)| *epoch != end) {
                self.remove(place);
            }
            (0..self.islands).for_each(|island| self.add(open_run, island, end));
        }
        self.slots.is_empty()
    }

    /// Notes that the run continues after all: what was left out for its end is looked at again.
    pub(crate) fn continues(&mut self, open_run: &OpenRun) {
        self.end = None;
        self.next.fill(0);
        (0..self.islands).for_each(|island| self.look_at(open_run, island));
    }

    /// Notes for how long a worker had an epoch.
    pub(crate) fn note_work(&mut self, time: Duration) {
        self.worked = self.worked.saturating_add(time);
    }

    /// Lets time pass at the end of a run: what is not measured for long is left out.
    pub(crate) fn pass(&mut self, time: Duration, is_worked_on: bool) {
        if self.end.is_none() || self.slots.is_empty() || is_worked_on {
            self.idle = Duration::ZERO;
            return;
        }
        self.idle += time;
        if self.idle >= PATIENCE {
            tracing::warn!(run = self.run, champions = self.slots.len(), "not measured: no worker does it");
            let all: Vec<Place> = self.slots.keys().copied().collect();
            for place in all {
                self.remove(place);
            }
        }
    }

    /// The inputs to be read next: of the newest milestones, and not many at once.
    pub(crate) fn reads(&mut self) -> Vec<(u32, Source)> {
        let room = READY.saturating_sub(self.reading + self.ready.len());
        let wanted: Vec<Place> = self.waiting.iter().copied().take(room).collect();
        let mut reads = vec![];
        for place in wanted {
            let opponent = &self.strengths.opponents()[place.2 as usize];
            let job = yardstick::job(&self.experiment, self.strengths.keys(), opponent);
            let (Some(number), Some(slot)) = (self.number(place), self.slots.get(&place)) else {
                continue;
            };
            let milestone = Box::new(slot.milestone.clone());
            self.put(place, Stage::Reading);
            reads.push((number, Source::Milestone { run: self.run.clone(), milestone, job }));
        }
        reads
    }

    /// Takes the inputs of a job, or leaves it out.
    pub(crate) fn inputs(&mut self, number: u32, inputs: Result<ReadyJob, String>) {
        let place = self.place(number);
        match inputs {
            Ok(ready) => {
                if self.slots.get(&place).is_some_and(|slot| matches!(slot.stage, Stage::Reading)) {
                    self.put(place, Stage::Ready(ready));
                }
            }
            Err(reason) => self.leave(number, &reason),
        }
    }

    /// Leaves a job out.
    pub(crate) fn leave(&mut self, number: u32, reason: &str) {
        if let Some(Slot { milestone, .. }) = self.remove(self.place(number)) {
            let (island, epoch) = (milestone.name.island, milestone.name.epoch);
            tracing::warn!(run = self.run, island, epoch, reason, "not measured");
        }
    }

    /// The next job, which is handed out from now on.
    pub(crate) fn next(&mut self, now: Duration) -> Option<Piece> {
        let place = *self.ready.first()?;
        let number = self.number(place)?;
        if let Some(Stage::Ready(ready)) = self.put(place, Stage::Storing) {
            self.put(place, Stage::Leased(ready, now));
        }
        Some(Piece::Job { number })
    }

    /// Whether workers may measure although epochs are waiting.
    pub(crate) fn is_within_share(&self) -> bool {
        let share = self.worked.mul_f64(self.strengths.keys().share);
        !share.is_zero() && self.measured <= share
    }

    /// Notes that a job was returned or lost, and is handed out once more.
    fn note_leased_again(&mut self, number: u32, now: Duration) {
        if let Some(slot) = self.slots.get_mut(&self.place(number))
            && let Stage::Leased(_, since) = &mut slot.stage
        {
            *since = now;
        }
    }

    pub(crate) fn count_ready(&self) -> usize {
        self.ready.len()
    }

    fn ready(&self, number: u32) -> Option<&ReadyJob> {
        match &self.slot(number)?.stage {
            Stage::Ready(ready) | Stage::Leased(ready, _) => Some(ready),
            Stage::Waiting | Stage::Reading | Stage::Storing => None,
        }
    }

    /// Whether a job with these inputs is wanted.
    pub(crate) fn wants(&self, number: u32, inputs: Option<&Digest>) -> bool {
        self.ready(number).is_some_and(|ready| ready.is_of(inputs))
    }

    /// Whether this can be the result of a job.
    pub(crate) fn fits(&self, number: u32, result: &JobResult) -> bool {
        self.ready(number).is_some_and(|ready| ready.job().fits(result))
    }

    /// A job as it is granted to a worker.
    pub(crate) fn grant(&self, number: u32, budget: &mut ReplyBudget) -> Option<v1::JobTask> {
        self.ready(number)?.task(budget)
    }

    /// An input of a job that a grant only named.
    pub(crate) fn input(&self, number: u32, digest: &Digest) -> Option<Bytes> {
        self.ready(number)?.input(digest)
    }

    /// Takes a job whose result has come, and is stored from now on, with its inputs.
    pub(crate) fn take(&mut self, number: u32, now: Duration) -> Option<(Job, Vec<Bytes>)> {
        match self.put(self.place(number), Stage::Storing)? {
            Stage::Leased(ready, since) => {
                self.measured += now.saturating_sub(since);
                Some(ready.into_parts())
            }
            Stage::Ready(ready) => Some(ready.into_parts()),
            Stage::Waiting | Stage::Reading | Stage::Storing => None,
        }
    }

    /// Where the result of a job is stored.
    pub(crate) fn artifact(&self, number: u32) -> Option<ArtifactName> {
        let opponent = self.place(number).2 as usize;
        Some(self.slot(number)?.milestone.artifact(&self.strengths.opponents()[opponent]))
    }

    /// Takes the result of a job that is stored.
    fn kept(&mut self, number: u32, result: &JobResult) {
        let place @ (Reverse(epoch), island, opponent) = self.place(number);
        if let Some(Slot { milestone, .. }) = self.remove(place) {
            let generation = milestone.record.mark.standing.generation;
            self.strengths.add((epoch, island), generation, opponent as usize, result);
        }
    }
}

impl ClusterState {
    pub(super) fn yardstick(&mut self, run: &str) -> Option<&mut Yardstick> {
        match &mut self.runs.get_mut(run)?.body {
            Body::Evolution(evolution) => evolution.yardstick(),
            _ => None,
        }
    }

    /// Whether a piece only measures: it comes after everything else.
    pub(super) fn is_measurement(&self, work: &Work) -> bool {
        let is_evolution = |body: &Body| matches!(body, Body::Evolution(_));
        matches!(work.piece, Piece::Job { .. })
            && self.runs.get(&work.run).is_some_and(|run| is_evolution(&run.body))
    }

    /// A champion to be measured, for a worker that no other work waits for.
    pub(super) fn next_measurement(&mut self, worker: &str, now: Moment) -> Option<Work> {
        for run in self.queue.active() {
            if !self.is_active(&run) || self.leases.is_unfit(worker, &run, now.elapsed) {
                continue;
            }
            if let Some(work) = self.waiting_measurement(worker, &run, now) {
                return Some(work);
            }
            if let Some(piece) = self.yardstick(&run).and_then(|yardstick| yardstick.next(now.elapsed)) {
                return Some(Work { run, piece });
            }
        }
        None
    }

    /// A champion to be measured although epochs of its run are waiting: only as much as the share allows, and one at a time.
    /// What was returned, or lost with its worker, comes before what is new.
    pub(super) fn next_within_share(&mut self, worker: &str, run: &str, now: Moment) -> Option<Work> {
        if !self.yardstick(run)?.is_within_share() || self.leases.has_leased_job(run) {
            return None;
        }
        if let Some(work) = self.waiting_measurement(worker, run, now) {
            return Some(work);
        }
        let piece = self.yardstick(run)?.next(now.elapsed)?;
        Some(Work { run: run.to_owned(), piece })
    }

    /// A measurement that no worker has although it was handed out before.
    fn waiting_measurement(&mut self, worker: &str, run: &str, now: Moment) -> Option<Work> {
        let is_wanted =
            |work: &Work| self.is_measurement(work) && self.may_take(work, self.workers.identity(worker));
        let work = self.leases.waiting_for(worker, run, now.elapsed, is_wanted)?;
        if let (Piece::Job { number }, Some(yardstick)) = (work.piece, self.yardstick(run)) {
            yardstick.note_leased_again(number, now.elapsed);
        }
        Some(work)
    }

    /// Has the inputs read of what is measured next.
    pub(super) fn read_milestones(&mut self, run: &str) {
        if self.queue.state(run) != Some(&RunState::Active) || self.is_ending(run) {
            return;
        }
        let reads = self.yardstick(run).map(Yardstick::reads).unwrap_or_default();
        for (number, source) in reads {
            self.effects.push(Effect::ReadInputs { run: run.to_owned(), number, source });
        }
    }

    /// Leaves a champion unmeasured.
    pub(super) fn leave_unmeasured(&mut self, run: &str, number: u32, reason: &str) {
        if let Some(yardstick) = self.yardstick(run) {
            yardstick.leave(number, reason);
        }
        self.leases.remove(&Work { run: run.to_owned(), piece: Piece::Job { number } });
    }

    /// Takes a measurement that is stored, or could not be.
    pub(super) fn kept_measurement(
        &mut self,
        run: &str,
        number: u32,
        receipt: Receipt,
        stored: Result<JobResult, (JobResult, StoreError)>,
        now: Moment,
    ) {
        match stored {
            Ok(result) => {
                if let Some(yardstick) = self.yardstick(run) {
                    yardstick.kept(number, &result);
                }
            }
            Err((_, error)) if error.is_damage() || matches!(error, StoreError::Differs { .. }) => {
                self.leave_unmeasured(run, number, &error.to_string());
            }
            Err((result, error)) => {
                self.note_trouble(run, Err(error.into()), now);
                if self.is_open(run) {
                    return self.keep_job(run, number, receipt, result);
                }
            }
        }
        self.workers.settle(&receipt.worker, receipt.number);
        self.advance(run, now);
    }
}
