//! The archipelago: which epoch may run next, what it is given, and when the run has ended.
//!
//! A pure state machine. It reads no clock and does no input or output; its driver hands out its tasks, brings
//! back their outcomes in any order, and may do so on one thread or on a thousand machines.

use crate::end::{End, Reason};
use crate::schedule::EpochSchedule;
use bincode::{Decode, Encode};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, EpochTask, Packet, Standing, left_digest};
use evolution::island::Setting;
use experiment::file::Mode;
use experiment::{Budget, Experiment};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many epochs an island may be ahead of the slowest one. What lies beyond the epoch that is complete everywhere
/// has to be remembered, in case the run turns out to end there.
const LEAD: u64 = 4;

/// All islands of a run.
#[derive(Clone, Debug)]
pub struct Archipelago {
    mode: Mode,
    schedule: EpochSchedule,
    budget: Budget,
    experiment: Digest,
    guests: Option<Packet>,
    islands: Vec<IslandProgress>,
    /// Epochs that are complete on all islands.
    complete: u64,
    /// The best fitness of the complete epochs, and the generation in which it was reached.
    best: (f64, u64),
    /// The epochs that were complete when the budget was given: it does not undo them.
    budget_after: u64,
    /// Where the run is to end if that can be written down. Until then nothing beyond it is begun or taken.
    proposed: Option<End>,
    /// The generations of budgets that are being written down, in order. Until then no epoch is judged, and none is begun
    /// or taken that lies beyond them.
    budgets: VecDeque<Option<u64>>,
    /// Where the run is to end by decision, and where it has ended.
    decided: Option<End>,
    end: Option<End>,
    /// The islands whose next epoch may begin, by that epoch. There may be ten thousand islands, and this is read after
    /// every epoch of each.
    ready: BTreeSet<(u64, u32)>,
    /// The number of islands by their number of completed epochs.
    tally: BTreeMap<u64, usize>,
}

/// How far one island has come.
#[derive(Clone, Debug)]
struct IslandProgress {
    senders: Vec<u32>,
    receivers: Vec<u32>,
    /// Epochs that are done.
    done: u64,
    /// Whether its next epoch is being run.
    running: bool,
    /// The latest epochs, oldest first: all that are not complete everywhere, and those whose emigrants are awaited.
    recent: VecDeque<Finished>,
    /// For each sender, how many of its epochs' emigrants have been taken: only what arrives out of step needs it.
    taken: Vec<u64>,
}

/// An epoch that is done.
#[derive(Clone, Debug)]
struct Finished {
    epoch: u64,
    state: Bytes,
    departure: Bytes,
    /// The digest of state and departure, and that of the whole outcome.
    left: Digest,
    digest: Digest,
    chain: Digest,
    standing: Standing,
}

/// What is remembered for good of an epoch, beside what it left behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Mark {
    /// The epoch.
    pub epoch: u64,
    /// The digest of the epoch's outcome: state, emigrants and statistics.
    pub digest: Digest,
    /// The digest of all of the island's epochs up to this one.
    pub chain: Digest,
    /// Where the island stood.
    pub standing: Standing,
    /// The emigrants that it began with: from which island and epoch.
    pub took: Vec<(u32, u64)>,
}

impl Mark {
    /// The chain of digests that this epoch's makes with those before it.
    pub fn chained_to(&self, before: &Digest) -> Digest {
        Digest::of_parts("atoll island", [&before.0[..], &self.digest.0])
    }
}

/// What became of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum Completion {
    /// It is the island's next epoch, and is to be kept.
    New(Mark),
    /// It was known already, and is the same.
    Repeated,
    /// It belongs to an epoch that is too long ago to compare.
    Late,
}

/// An outcome that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// It differs from one that was accepted before: one of the two was computed wrongly.
    #[error("island {island}, epoch {epoch}: expected the digest {expected}, found {found}: corruption")]
    Differs {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// What was accepted.
        expected: Digest,
        /// What came now.
        found: Digest,
    },
    /// It cannot have been run yet.
    #[error("island {island}: expected epoch {expected} or earlier, found `{epoch}`")]
    Early {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// The island's next epoch.
        expected: u64,
    },
    /// There is no such island.
    #[error("expected an island from 0 to {last}, found `{island}`")]
    Unknown {
        /// The island.
        island: u32,
        /// The last one.
        last: u32,
    },
    /// It was run with another state or other immigrants than the island has: those of a past that was lost.
    #[error(
        "island {island}, epoch {epoch}: expected the island's own state and immigrants as its inputs, found others"
    )]
    Inputs {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// It did not go as far as it should have.
    #[error("island {island}, epoch {epoch}: expected generation {expected} at its end, found `{found}`")]
    Misfit {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// Where it should have ended.
        expected: u64,
        /// Where it did.
        found: u64,
    },
}

/// An island's history, read back from a store.
#[derive(Clone, Debug, Default)]
pub struct IslandHistory {
    /// All of its epochs, in order.
    pub marks: Vec<Mark>,
    /// What the latest of them left behind: at least those since the last that is complete on all islands.
    pub recent: Vec<Remains>,
}

/// What an epoch left behind.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Remains {
    /// The epoch.
    pub epoch: u64,
    /// The island's state.
    pub state: Vec<u8>,
    /// Its emigrants.
    pub departure: Vec<u8>,
}

/// What an epoch left behind, and the digest of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeftBehind {
    /// The island's state.
    pub state: Bytes,
    /// Its emigrants.
    pub departure: Bytes,
    /// The digest of both.
    pub digest: Digest,
}

impl Archipelago {
    /// The islands of an experiment before their founding.
    pub fn new(experiment: &Experiment, guests: Option<Bytes>) -> Self {
        let setting = experiment.setting();
        let count = setting.islands.len() as u32;
        let mut archipelago = Self {
            mode: experiment.mode(),
            schedule: EpochSchedule::new(experiment.interval(), experiment.budget().generations),
            budget: *experiment.budget(),
            experiment: experiment.digest(),
            guests: guests.map(|departure| Packet { from: u32::MAX, epoch: 0, departure }),
            islands: (0..count).map(|island| IslandProgress::new(setting, island)).collect(),
            complete: 0,
            best: (f64::NEG_INFINITY, 0),
            budget_after: 0,
            proposed: None,
            budgets: VecDeque::new(),
            decided: None,
            end: None,
            ready: BTreeSet::new(),
            tally: BTreeMap::new(),
        };
        archipelago.look_everywhere();
        archipelago
    }

    /// Takes up the histories of all islands, in their order, and judges again when the run ends.
    pub fn restore(&mut self, histories: Vec<IslandHistory>) {
        let shortest = histories.iter().map(|history| history.marks.len() as u64).min().unwrap_or(0);
        let standings = |epoch: u64| histories.iter().map(move |h| h.marks[epoch as usize].standing);
        for epoch in 0..shortest {
            let standings: Vec<Standing> = standings(epoch).collect();
            self.judge(epoch, &standings);
        }
        self.complete = shortest;
        for (island, history) in self.islands.iter_mut().zip(histories) {
            island.restore(history);
        }
        self.look_everywhere();
    }

    /// The last epoch that counts, if the epochs that are complete on all islands end the run.
    pub fn end_of_marks<'a>(&self, marks: impl Fn(usize, u64) -> Option<&'a Mark>) -> Option<End> {
        let mut judged = Self { islands: vec![], complete: 0, end: None, ..self.clone() };
        for epoch in 0.. {
            let standings: Option<Vec<Standing>> = (0..self.islands.len())
                .map(|island| marks(island, epoch).map(|mark| mark.standing))
                .collect();
            judged.judge(epoch, &standings?);
            if judged.end.is_some() {
                return judged.end;
            }
        }
        None
    }

    /// Continues with another budget, given when this number of epochs was complete. The run may have ended by then, or not.
    pub fn extend(&mut self, complete: u64, budget: Budget) {
        self.schedule.extend(budget.generations);
        self.budget = budget;
        self.budget_after = complete;
        self.budgets.pop_front();
        self.decided = None;
        self.end = None;
        self.look_everywhere();
    }

    /// Judges the last complete epoch by the current budget, and those that have become complete since it was proposed.
    pub fn judge_again(&mut self) {
        if let Some(epoch) = self.complete.checked_sub(1) {
            let standings: Vec<Standing> =
                self.islands.iter().map(|island| island.finished(epoch).standing).collect();
            self.judge(epoch, &standings);
        }
        self.judge_complete();
        self.look_everywhere();
    }

    /// Announces another budget, which is to be written down. From now on no epoch is judged, and nothing beyond its
    /// generations is begun or taken, until it is [given](Self::extend) or [withdrawn](Self::withdraw_budget): the epochs
    /// that are complete now are those that it is given after.
    pub fn propose_budget(&mut self, generations: Option<u64>) {
        self.budgets.push_back(generations);
        self.look_everywhere();
    }

    /// Continues: the first of the budgets that were proposed could not be written down.
    pub fn withdraw_budget(&mut self) {
        self.budgets.pop_front();
        self.judge_complete();
        self.look_everywhere();
    }

    /// Whether a budget is being written down that an epoch lies beyond.
    fn is_beyond_proposed(&self, epoch: u64) -> bool {
        let end = self.schedule.end_of(epoch);
        self.budgets.iter().flatten().any(|generations| end.is_none_or(|end| end > *generations))
    }

    /// The islands whose next epoch may begin, lowest epoch first.
    pub fn ready(&self) -> Vec<u32> {
        let ready: Vec<u32> = self.ready.iter().map(|&(_, island)| island).collect();
        debug_assert!(
            (0..self.islands.len() as u32).all(|island| self.may_begin(island) == ready.contains(&island)),
            "islands are looked at whenever something changes for them"
        );
        ready
    }

    /// How many islands may begin their next epoch.
    pub fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// The first of the islands whose next epoch may begin.
    pub fn next_ready(&self) -> Option<u32> {
        self.ready.first().map(|&(_, island)| island)
    }

    /// Whether the next epoch of an island may begin.
    pub fn is_ready(&self, island: u32) -> bool {
        self.islands
            .get(island as usize)
            .is_some_and(|progress| self.ready.contains(&(progress.done, island)))
    }

    fn may_begin(&self, island: u32) -> bool {
        let progress = &self.islands[island as usize];
        self.end.is_none()
            && !progress.running
            && progress.done < self.complete + LEAD
            && self.schedule.end_of(progress.done).is_some()
            && !self.is_beyond_proposed(progress.done)
            && [&self.proposed, &self.decided].into_iter().flatten().all(|end| progress.done <= end.epoch)
            && (self.mode == Mode::Asynchronous || self.has_all_immigrants(progress))
    }

    /// Finds out whether an island's next epoch may begin now.
    fn look_at(&mut self, island: u32) {
        let next = (self.islands[island as usize].done, island);
        if self.may_begin(island) {
            self.ready.insert(next);
        } else {
            self.ready.remove(&next);
        }
    }

    /// Finds out how far all islands are, and whether they may continue.
    fn look_everywhere(&mut self) {
        self.ready.clear();
        self.tally.clear();
        for island in 0..self.islands.len() as u32 {
            *self.tally.entry(self.islands[island as usize].done).or_default() += 1;
            self.look_at(island);
        }
    }

    fn has_all_immigrants(&self, progress: &IslandProgress) -> bool {
        progress.senders.iter().all(|&sender| self.islands[sender as usize].done >= progress.done)
    }

    /// The next epoch of an island that is ready, which from now on is running.
    pub fn begin(&mut self, island: u32) -> EpochTask {
        self.islands[island as usize].running = true;
        self.look_at(island);
        self.task(island)
    }

    /// The next epoch of an island, if it is ready, without beginning it.
    pub fn peek(&self, island: u32) -> Option<EpochTask> {
        self.is_ready(island).then(|| self.task(island))
    }

    /// The next epoch of an island.
    fn task(&self, island: u32) -> EpochTask {
        let progress = &self.islands[island as usize];
        let epoch = progress.done;
        let until = self.schedule.end_of(epoch).expect("the epoch of a ready island is scheduled");
        if epoch == 0 {
            let packets = self.guests.iter().cloned().collect();
            return EpochTask { island, epoch, until, state: None, packets };
        }
        let state = progress.recent.back().map(|last| last.state.clone());
        EpochTask { island, epoch, until, state, packets: self.packets(progress) }
    }

    /// What arrives for an island's next epoch, in the order of the senders.
    fn packets(&self, progress: &IslandProgress) -> Vec<Packet> {
        let mut packets = vec![];
        for (&from, &taken) in progress.senders.iter().zip(&progress.taken) {
            let recent = &self.islands[from as usize].recent;
            let arrived = recent.iter().filter(|finished| match self.mode {
                Mode::Synchronous => finished.epoch + 1 == progress.done,
                Mode::Asynchronous => finished.epoch >= taken,
            });
            packets.extend(arrived.map(|finished| Packet {
                from,
                epoch: finished.epoch,
                departure: finished.departure.clone(),
            }));
        }
        packets
    }

    /// Gives up an island's epoch, so that it may be run again.
    pub fn release(&mut self, island: u32) {
        self.islands[island as usize].running = false;
        self.look_at(island);
    }

    /// Takes the outcome of an epoch, from any worker, in any order, any number of times.
    pub fn complete(
        &mut self,
        task: &EpochTask,
        outcome: &EpochOutcome,
    ) -> Result<Completion, CompletionError> {
        let EpochTask { island, epoch, .. } = *task;
        let last = self.islands.len() as u32 - 1;
        let progress = self.islands.get(island as usize).ok_or(CompletionError::Unknown { island, last })?;
        if epoch < progress.done {
            return progress.compare(island, epoch, outcome.digest);
        }
        // An epoch beyond the end may still arrive, from before a crash, while the end is being written down, or while slower
        // islands still go there. Were it accepted, the last epoch might be forgotten, or take from what is no part of the run.
        let is_beyond =
            [&self.proposed, &self.decided, &self.end].into_iter().flatten().any(|end| end.epoch < epoch);
        if is_beyond || self.is_beyond_proposed(epoch) {
            self.release(island);
            return Ok(Completion::Late);
        }
        let expected = progress.done;
        if epoch > expected {
            return Err(CompletionError::Early { island, epoch, expected });
        }
        let until = self.schedule.end_of(epoch).unwrap_or(0);
        if outcome.standing.generation != until {
            let found = outcome.standing.generation;
            return Err(CompletionError::Misfit { island, epoch, expected: until, found });
        }
        if !self.knows_inputs(task) {
            return Err(CompletionError::Inputs { island, epoch });
        }
        self.ready.remove(&(epoch, island));
        let progress = &mut self.islands[island as usize];
        let took = task.packets.iter().map(|packet| (packet.from, packet.epoch)).collect();
        let mark = progress.accept(&self.experiment, epoch, outcome, took);
        self.count(epoch);
        self.advance(island);
        Ok(Completion::New(mark))
    }

    /// Notes that an island has done one epoch more than this number.
    fn count(&mut self, done: u64) {
        *self.tally.entry(done + 1).or_default() += 1;
        if let Some(left) = self.tally.get_mut(&done) {
            *left -= 1;
        }
        self.tally.retain(|_, islands| *islands > 0);
    }

    /// Whether an island's next epoch was run with the state that it has, and with emigrants that are remembered.
    fn knows_inputs(&self, task: &EpochTask) -> bool {
        let recent = &self.islands[task.island as usize].recent;
        let remembered = |packet: &Packet| match self.islands.get(packet.from as usize) {
            Some(sender) => sender
                .recent
                .iter()
                .any(|finished| finished.epoch == packet.epoch && finished.departure == packet.departure),
            None => self.guests.as_ref() == Some(packet),
        };
        let has_it = match (recent.back(), &task.state) {
            (Some(last), Some(state)) => is_same(&last.state, state),
            (None, None) => true,
            _ => false,
        };
        has_it && task.packets.iter().all(remembered)
    }

    /// Judges the epochs that have become complete with one of an island, forgets what is no longer needed, and finds
    /// out which islands may continue.
    fn advance(&mut self, island: u32) {
        if self.judge_complete() {
            self.look_everywhere();
            return;
        }
        let IslandProgress { senders, receivers, .. } = &self.islands[island as usize];
        let (senders, receivers) = (senders.clone(), receivers.clone());
        senders.into_iter().chain([island]).for_each(|island| self.forget(island));
        receivers.into_iter().chain([island]).for_each(|island| self.look_at(island));
    }

    /// Judges the epochs that have become complete, unless another budget is about to count; returns whether there were any.
    fn judge_complete(&mut self) -> bool {
        let slowest = self.tally.first_key_value().map_or(0, |(&done, _)| done);
        let before = self.complete;
        while self.complete < slowest && self.end.is_none() && self.budgets.is_empty() {
            let standings: Vec<Standing> =
                self.islands.iter().map(|island| island.finished(self.complete).standing).collect();
            self.judge(self.complete, &standings);
            self.complete += 1;
        }
        if self.complete > before {
            (0..self.islands.len() as u32).for_each(|island| self.forget(island));
        }
        self.complete > before
    }

    /// Forgets the epochs of an island that are no longer needed.
    fn forget(&mut self, island: u32) {
        let needed = self.oldest_needed(island as usize);
        let recent = &mut self.islands[island as usize].recent;
        while recent.len() > 1 && recent[0].epoch < needed {
            recent.pop_front();
        }
    }

    /// The oldest epoch of an island that is still needed: the last that is complete everywhere, because the run may
    /// end there, and those whose emigrants have not been taken.
    fn oldest_needed(&self, island: usize) -> u64 {
        let awaited = self.islands[island].receivers.iter().map(|&receiver| {
            let receiver = &self.islands[receiver as usize];
            match self.mode {
                Mode::Synchronous => receiver.done.saturating_sub(1),
                Mode::Asynchronous => {
                    let at = receiver.senders.iter().position(|&sender| sender as usize == island);
                    receiver.taken[at.expect("a receiver names its sender")]
                }
            }
        });
        awaited.fold(self.complete.saturating_sub(1), u64::min)
    }

    /// Whether the run ends with an epoch that is complete on all islands.
    fn judge(&mut self, epoch: u64, standings: &[Standing]) {
        if self.end.is_some() {
            return;
        }
        let generation = self.schedule.end_of(epoch).unwrap_or(0);
        let best = standings.iter().map(|standing| standing.best).fold(f64::NEG_INFINITY, f64::max);
        let evaluations = standings.iter().map(|standing| standing.evaluations);
        let evaluations = evaluations.fold(0, u64::saturating_add);
        if best > self.best.0 {
            self.best = (best, generation);
        }
        if epoch + 1 < self.budget_after {
            return;
        }
        let Budget { evaluations: limit, target_fitness, stagnation, .. } = self.budget;
        let reason = if target_fitness.is_some_and(|target| best >= target) {
            Reason::Target
        } else if self.schedule.is_last(epoch) {
            Reason::Generations
        } else if limit.is_some_and(|limit| evaluations >= limit) {
            Reason::Evaluations
        } else if stagnation.is_some_and(|limit| generation.saturating_sub(self.best.1) >= limit) {
            Reason::Stagnation
        } else if let Some(end) = self.decided.as_ref().filter(|end| end.epoch == epoch) {
            end.reason
        } else {
            return;
        };
        self.end = Some(End { epoch, reason });
    }

    /// Where the run is to end because its time is up: at the last epoch that is complete everywhere. What arrives out of
    /// step may come from any epoch that is done, so that asynchronous runs end with the furthest of them. Nothing if no
    /// epoch is complete, if the end is known already, or if another budget is being written down. From now on nothing beyond is begun or taken, until the end is
    /// written down and [decided](Self::decide), or [withdrawn](Self::withdraw).
    pub fn propose_end(&mut self) -> Option<End> {
        let is_open = self.end.is_none() && self.decided.is_none() && self.proposed.is_none();
        let is_open = is_open && self.budgets.is_empty();
        let complete = Some(self.complete).filter(|&complete| complete > 0 && is_open)?;
        let epoch = match self.mode {
            Mode::Synchronous => complete - 1,
            Mode::Asynchronous => self.tally.last_key_value().map_or(complete, |(&done, _)| done) - 1,
        };
        self.proposed = Some(End { epoch, reason: Reason::WallTime });
        self.look_everywhere();
        self.proposed.clone()
    }

    /// Whether an end is being written down.
    pub fn is_end_proposed(&self) -> bool {
        self.proposed.is_some()
    }

    /// Continues: the end that was proposed could not be written down.
    pub fn withdraw(&mut self) {
        self.proposed = None;
        self.look_everywhere();
    }

    /// Ends the run as it was decided, and written down. Islands that have not come so far still go there.
    pub fn decide(&mut self, end: End) {
        self.proposed = None;
        if self.end.is_none() && end.epoch < self.complete {
            self.end = Some(end.clone());
        }
        self.decided = Some(end);
        self.look_everywhere();
    }

    /// Where and why the run ended, if it has.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The digest of the run: the experiment, and every island's epochs up to the end.
    pub fn digest(&self) -> Option<Digest> {
        let end = self.end.as_ref()?;
        let chains: Vec<[u8; 32]> =
            self.islands.iter().map(|island| island.finished(end.epoch).chain.0).collect();
        let parts = std::iter::once(&self.experiment.0[..]).chain(chains.iter().map(|chain| &chain[..]));
        Some(Digest::of_parts("atoll run digest", parts))
    }

    /// The islands' states at the end of the run, and where they stood.
    pub fn final_states(&self) -> Option<Vec<(Bytes, Standing)>> {
        let end = self.end.as_ref()?;
        let finished = self.islands.iter().map(|island| island.finished(end.epoch));
        Some(finished.map(|finished| (finished.state.clone(), finished.standing)).collect())
    }

    /// The digest of all that an epoch's outcome depends on, beside the experiment's own. What earlier epochs left
    /// behind is named by their digests, because large states take a while to digest again.
    pub fn inputs(&self, task: &EpochTask) -> Digest {
        let numbers = [u64::from(task.island), task.epoch, task.until].map(u64::to_le_bytes).concat();
        let before = self.left_behind(task.island).map_or_else(|| Digest::of(&[]), |last| last.digest);
        let mut packets = vec![];
        for Packet { from, epoch, departure } in &task.packets {
            packets.extend([u64::from(*from), *epoch].map(u64::to_le_bytes).concat());
            let sender = self.islands.get(*from as usize);
            let sent = sender.and_then(|sender| sender.recent.iter().find(|sent| sent.epoch == *epoch));
            packets.extend(sent.map_or_else(|| Digest::of(departure), |sent| sent.left).0);
        }
        Digest::of_parts("atoll epoch inputs", [&self.experiment.0[..], &numbers, &before.0, &packets])
    }

    /// What an island's last epoch left behind.
    pub fn left_behind(&self, island: u32) -> Option<LeftBehind> {
        let Finished { state, departure, left, .. } = self.islands[island as usize].recent.back()?.clone();
        Some(LeftBehind { state, departure, digest: left })
    }

    /// The islands whose emigrants arrive at an island.
    pub fn senders(&self, island: u32) -> &[u32] {
        &self.islands[island as usize].senders
    }

    /// What an epoch left behind, while it is remembered.
    pub fn left_by(&self, island: u32, epoch: u64) -> Option<LeftBehind> {
        let found = self.islands[island as usize].recent.iter().find(|finished| finished.epoch == epoch)?;
        let Finished { state, departure, left, .. } = found.clone();
        Some(LeftBehind { state, departure, digest: left })
    }

    /// A copy of what an epoch left behind, while it is remembered.
    pub fn remains(&self, island: u32, epoch: u64) -> Option<Remains> {
        let found = self.islands[island as usize].recent.iter().find(|finished| finished.epoch == epoch)?;
        Some(Remains { epoch, state: found.state.to_vec(), departure: found.departure.to_vec() })
    }

    /// Epochs that are complete on all islands.
    pub fn complete_epochs(&self) -> u64 {
        self.complete
    }

    /// The furthest generation that any island has come to.
    pub fn generation(&self) -> u64 {
        (0..self.islands.len() as u32)
            .filter_map(|i| self.standing(i))
            .map(|s| s.generation)
            .max()
            .unwrap_or(0)
    }

    /// Where an island stood at the end of its last epoch.
    pub fn standing(&self, island: u32) -> Option<Standing> {
        self.islands[island as usize].recent.back().map(|finished| finished.standing)
    }

    /// Epochs that an island has done.
    pub fn done(&self, island: u32) -> u64 {
        self.islands[island as usize].done
    }

    /// The generations of the whole run, if they are known.
    pub fn generations(&self) -> Option<u64> {
        self.schedule.generations()
    }

    /// The evaluations of all epochs that are done.
    pub fn evaluations(&self) -> u64 {
        let last = self.islands.iter().filter_map(|island| island.recent.back());
        last.map(|finished| finished.standing.evaluations).fold(0, u64::saturating_add)
    }

    /// The guests that arrive at the founding.
    pub fn guests(&self) -> Option<Bytes> {
        self.guests.as_ref().map(|packet| packet.departure.clone())
    }

    /// When the run ends.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// When epochs end.
    pub fn schedule(&self) -> &EpochSchedule {
        &self.schedule
    }
}

impl IslandProgress {
    fn new(setting: &Setting, island: u32) -> Self {
        let senders = setting.senders(island);
        let receivers = setting.neighbours(island);
        let taken = vec![0; senders.len()];
        Self { senders, receivers, done: 0, running: false, recent: VecDeque::new(), taken }
    }

    fn restore(&mut self, history: IslandHistory) {
        let IslandHistory { marks, recent } = history;
        self.done = marks.len() as u64;
        for mark in &marks {
            self.take(&mark.took);
        }
        let finished = |remains: Remains| {
            let Remains { epoch, state, departure } = remains;
            let Mark { digest, chain, standing, .. } = marks[epoch as usize].clone();
            let left = left_digest(&state, &departure);
            Finished {
                epoch,
                state: state.into(),
                departure: departure.into(),
                left,
                digest,
                chain,
                standing,
            }
        };
        self.recent = recent.into_iter().map(finished).collect();
    }

    /// Notes whose emigrants have been taken.
    fn take(&mut self, took: &[(u32, u64)]) {
        for &(from, epoch) in took {
            if let Some(at) = self.senders.iter().position(|&sender| sender == from) {
                self.taken[at] = self.taken[at].max(epoch + 1);
            }
        }
    }

    fn finished(&self, epoch: u64) -> &Finished {
        let found = self.recent.iter().find(|finished| finished.epoch == epoch);
        found.expect("epochs are remembered until they are complete everywhere")
    }

    fn compare(&self, island: u32, epoch: u64, found: Digest) -> Result<Completion, CompletionError> {
        match self.recent.iter().find(|finished| finished.epoch == epoch) {
            None => Ok(Completion::Late),
            Some(finished) if finished.digest == found => Ok(Completion::Repeated),
            Some(finished) => {
                Err(CompletionError::Differs { island, epoch, expected: finished.digest, found })
            }
        }
    }

    fn accept(
        &mut self,
        experiment: &Digest,
        epoch: u64,
        outcome: &EpochOutcome,
        took: Vec<(u32, u64)>,
    ) -> Mark {
        let before = self.recent.back().map_or(*experiment, |last| last.chain);
        let EpochOutcome { state, departure, left, digest, standing, .. } = outcome.clone();
        let mut mark = Mark { epoch, digest, chain: before, standing, took };
        mark.chain = mark.chained_to(&before);
        let chain = mark.chain;
        self.recent.push_back(Finished { epoch, state, departure, left, digest, chain, standing });
        self.done += 1;
        self.running = false;
        self.take(&mark.took);
        mark
    }
}

/// Whether bytes are equal. A state is mostly the very one that was handed out, and need not be read for that.
fn is_same(one: &Bytes, other: &Bytes) -> bool {
    (one.as_ptr(), one.len()) == (other.as_ptr(), other.len()) || one == other
}
