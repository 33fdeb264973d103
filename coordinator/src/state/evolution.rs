//! The epochs of one run: what is handed out, with what inputs, what comes back, and what of it is written.

use super::deliveries::DeliveryStatus;
use super::reply_budget::ReplyBudget;
use super::yardstick::Yardstick;
use super::{Accepted, Audits, Author, EpochGrants, Examination, Examiner, GrantedCheckpoint};
use archipelago::{CompletionError, End, LeftBehind};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, EpochTask, Standing};
use experiment::file::BudgetKeys;
use proto::convert::{Piece, body, digest_bytes, named_body};
use proto::v1;
use run::Pruning;
use run::WriteBatch;
use run::WriteError;
use run::epochs;
use run::record::Labour;
use run::schedule::{CommitSchedule, Due};
use run::summary::Outline;
use run::{Assignment, JournalHead, OpenRun, RunError, RunEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How many delivered epochs of an island are remembered by their inputs, so that repeated deliveries can be compared.
const REMEMBERED: usize = 8;

/// The maximum number of checkpoints of one epoch that are granted: later workers start it from its beginning.
const MOST_CHECKPOINT_GRANTS: usize = 64;

/// The owner of islands that no worker has at hand.
const NO_HOLDER: &str = "";

/// No more epochs are handed out while this much waits to be written: a store that is full or silent must not fill the memory.
const TOO_HEAVY: usize = 2;

/// A run whose epochs are handed out.
pub(crate) struct Evolution {
    open_run: OpenRun,
    examiner: Arc<Examiner>,
    audits: Audits,
    text: String,
    plan: Digest,
    open: BTreeMap<u32, Open>,
    islands: Vec<Island>,
    /// The islands that are not handed out, by their next epoch, under who has them at hand.
    islands_by_holder: BTreeMap<String, BTreeSet<(u64, u32)>>,
    /// For how long it has been computed since it was opened.
    worked: Duration,
    due: CommitSchedule,
    /// Whether something is being written, and whether something is being deleted.
    writing: bool,
    pruning: bool,
    /// Why the store could not write the last time.
    trouble: Option<String>,
    yardstick: Option<Yardstick>,
}

/// An epoch that is handed out.
pub(crate) struct Open {
    pub(crate) task: EpochTask,
    pub(crate) inputs: Digest,
    before: Option<LeftBehind>,
    checkpoint: Option<Checkpoint>,
    /// What workers were given of it.
    pub(crate) grants: EpochGrants,
}

/// A checkpoint inside an epoch that is handed out.
struct Checkpoint {
    generation: u64,
    digest: Digest,
    bytes: Bytes,
    /// Who made it, if that is known.
    author: Option<Author>,
}

/// What is known of an island beside the archipelago.
struct Island {
    standing: Standing,
    /// Who delivered its last state, and so has it at hand.
    holder: Option<String>,
    /// The epochs that were delivered last, with the digests of their inputs and outcomes.
    delivered: VecDeque<(u64, Digest, Digest)>,
    /// Epochs that were delivered and are not known to be written, with who has a receipt for each.
    unwritten: VecDeque<(u64, Receipt)>,
}

/// What identifies a delivery until it is durable: the worker, and the number of the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub(crate) worker: String,
    pub(crate) number: u64,
}

impl Evolution {
    pub(crate) fn new(open_run: OpenRun) -> Self {
        let text = open_run.experiment().to_toml();
        let yardstick = Yardstick::new(&open_run, &text);
        let plan = Digest::of(text.as_bytes());
        let unborn = Standing { generation: 0, evaluations: 0, best: f64::NEG_INFINITY };
        let count = open_run.experiment().setting().islands.len() as u32;
        let island = |island: u32| Island {
            standing: open_run.archipelago().standing(island).unwrap_or(unborn),
            holder: None,
            delivered: VecDeque::new(),
            unwritten: VecDeque::new(),
        };
        let islands = (0..count).map(island).collect();
        let unclaimed = (0..count).map(|island| (open_run.archipelago().done(island), island)).collect();
        let islands_by_holder = BTreeMap::from([(NO_HOLDER.to_owned(), unclaimed)]);
        let due = CommitSchedule::new(open_run.experiment().checkpoint_every());
        Self {
            examiner: Arc::new(Examiner::new(open_run.shared_experiment())),
            open_run,
            audits: Audits::default(),
            text,
            plan,
            open: BTreeMap::new(),
            islands,
            islands_by_holder,
            worked: Duration::ZERO,
            due,
            writing: false,
            pruning: false,
            trouble: None,
            yardstick,
        }
    }

    /// What is measured of its champions, if they are measured.
    pub(crate) fn measuring(&self) -> Option<&Yardstick> {
        self.yardstick.as_ref()
    }

    /// The same, to be changed.
    pub(crate) fn yardstick(&mut self) -> Option<&mut Yardstick> {
        self.yardstick.as_mut()
    }

    /// How many champions could be measured now.
    pub(crate) fn measurable(&self) -> usize {
        self.yardstick.as_ref().map_or(0, Yardstick::count_ready)
    }

    /// Whether nothing is left to be measured of a run that has ended with this epoch, and is written.
    pub(crate) fn is_measured_at(&mut self, end: u64) -> bool {
        let Self { yardstick, open_run, .. } = self;
        yardstick.as_mut().is_none_or(|yardstick| yardstick.is_done_at(open_run, end))
    }

    pub(crate) fn open_run(&self) -> &OpenRun {
        &self.open_run
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The digest of the text.
    pub(crate) fn plan(&self) -> &Digest {
        &self.plan
    }

    /// For how long the run has been worked on, in milliseconds, restarts included.
    pub(crate) fn elapsed(&self) -> u64 {
        self.open_run.elapsed_before() + self.worked.as_millis() as u64
    }

    /// How many islands there are.
    pub(crate) fn count(&self) -> usize {
        self.islands.len()
    }

    /// Where an island stands by the last report of its worker.
    pub(crate) fn standing_of(&self, island: u32) -> Standing {
        self.islands[island as usize].standing
    }

    /// Whether the next epoch of an island was handed out.
    pub(crate) fn is_handed_out(&self, island: u32) -> bool {
        self.open.contains_key(&island)
    }

    /// Where the run stands by the last reports of its workers.
    pub(crate) fn standing(&self) -> Standing {
        epochs::total(self.islands.iter().map(|island| island.standing), self.islands.len())
    }

    /// How far it is: once it has ended, what it ended with.
    pub(crate) fn outline(&self) -> Outline {
        let outline = self.open_run.outline(self.elapsed());
        match self.open_run.archipelago().end() {
            Some(_) => outline,
            None => Outline { standing: Some(self.standing()), ..outline },
        }
    }

    /// Notes the end of the journal after an event was written.
    pub(crate) fn note_event(&mut self, journal: JournalHead) {
        self.open_run.note_event(journal);
    }

    /// The next epoch for a worker: rather of an island that it has at hand, or that no worker has.
    pub(crate) fn next(&mut self, worker: &str) -> Option<Piece> {
        if self.is_held_back() {
            return None;
        }
        let first = self.open_run.archipelago().next_ready()?;
        let epoch = self.open_run.archipelago().done(first);
        let at_hand = self.ready_of_holder(worker, epoch);
        let island = at_hand.or_else(|| self.ready_of_holder(NO_HOLDER, epoch)).unwrap_or(first);
        let assignment = self.open_run.assign_ready(island);
        Some(self.hand_out(assignment))
    }

    /// Whether nothing is handed out for now: too much waits to be audited or written.
    fn is_held_back(&self) -> bool {
        self.audits.is_full() || self.open_run.commit().weight() >= TOO_HEAVY
    }

    /// How many epochs could be handed out now.
    pub(crate) fn ready_count(&self) -> usize {
        if self.is_held_back() { 0 } else { self.open_run.archipelago().ready_count() }
    }

    /// The first island that a holder has at hand whose next epoch is this one and may begin.
    fn ready_of_holder(&self, holder: &str, epoch: u64) -> Option<u32> {
        let of_epoch = self.islands_by_holder.get(holder)?.range((epoch, 0)..=(epoch, u32::MAX));
        of_epoch.map(|&(_, island)| island).find(|&island| self.open_run.archipelago().is_ready(island))
    }

    fn hand_out(&mut self, Assignment { task, checkpoint }: Assignment) -> Piece {
        let EpochTask { island, epoch, .. } = task;
        let archipelago = self.open_run.archipelago();
        let (inputs, before) = (archipelago.inputs(&task), archipelago.left_behind(island));
        let grants = self.audits.take_grants((island, epoch), &inputs);
        let author = self.audits.checkpointer((island, epoch)).ok();
        let author = author.filter(|_| !self.audits.is_distrusted(&grants));
        let checkpoint = checkpoint.zip(author).map(|(bytes, author)| {
            let generation = Standing::of_state(&bytes).map_or(0, |standing| standing.generation);
            Checkpoint { generation, digest: Digest::of(&bytes), bytes, author }
        });
        let holder = self.islands[island as usize].holder.as_deref().unwrap_or(NO_HOLDER);
        if let Some(islands) = self.islands_by_holder.get_mut(holder) {
            islands.remove(&(epoch, island));
            if islands.is_empty() {
                self.islands_by_holder.remove(holder);
            }
        }
        self.open.insert(island, Open { task, inputs, before, checkpoint, grants });
        Piece::Epoch { island, epoch }
    }

    /// Re-adopts an epoch that a worker computes, or has done, since before this coordinator started.
    pub(crate) fn adopt(&mut self, island: u32, epoch: u64, inputs: &Digest) -> bool {
        if let Some(open) = self.open_at(island, epoch) {
            return open.inputs == *inputs;
        }
        if island as usize >= self.islands.len() {
            return false;
        }
        let assignment = self.open_run.assign_known(island, epoch, inputs);
        assignment.map(|assignment| self.hand_out(assignment)).is_some()
    }

    /// How to examine what is delivered of an epoch, if that is awaited.
    pub(crate) fn examination(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
    ) -> Option<Examination> {
        if !self.adopt(island, epoch, inputs) {
            return None;
        }
        let task = self.open_at(island, epoch)?.task.clone();
        Some(Examination { examiner: self.examiner.clone(), task })
    }

    /// Whether an epoch is computed again from these inputs.
    pub(crate) fn is_audited(&self, island: u32, epoch: u64, inputs: &Digest) -> bool {
        self.audits.open((island, epoch)).is_some_and(|open| open.inputs == *inputs)
    }

    pub(crate) fn audits(&mut self) -> &mut Audits {
        &mut self.audits
    }

    /// Takes the audits out of a run that is opened again, with what is known of the epochs that workers still compute.
    pub(crate) fn take_audits(&mut self) -> Audits {
        for (island, Open { task, inputs, grants, .. }) in std::mem::take(&mut self.open) {
            self.audits.keep_grants((island, task.epoch), inputs, grants);
        }
        std::mem::take(&mut self.audits)
    }

    /// How many epochs of each island are durable.
    pub(crate) fn written(&self) -> Vec<u64> {
        (0..self.islands.len() as u32).map(|island| self.open_run.commit().written(island)).collect()
    }

    /// How many epochs each island has done.
    pub(crate) fn done(&self) -> Vec<u64> {
        (0..self.islands.len() as u32).map(|island| self.open_run.archipelago().done(island)).collect()
    }

    pub(crate) fn examiner(&self) -> Arc<Examiner> {
        self.examiner.clone()
    }

    /// The audits that wait for a worker, who has computed them before, and since when.
    pub(crate) fn audits_waiting(&self) -> impl Iterator<Item = (Piece, &str, Duration)> {
        let piece = |(island, epoch)| Piece::Epoch { island, epoch };
        self.audits.waiting().map(move |(place, author, since)| (piece(place), author, since))
    }

    /// Whether an epoch is computed again.
    pub(crate) fn is_being_audited(&self, island: u32, epoch: u64) -> bool {
        self.audits.open((island, epoch)).is_some()
    }

    /// Whether nothing of it is being computed again.
    pub(crate) fn is_all_audited(&self) -> bool {
        self.audits.is_over()
    }

    /// Whether workers of a principal may be given an epoch.
    pub(crate) fn may_take(&self, island: u32, epoch: u64, principal: &str) -> bool {
        self.audits.may_take((island, epoch), principal)
    }

    /// Remembers what was accepted, so that it can be computed again; returns it, and the last deliveries of other workers
    /// for which there is no room any more.
    pub(crate) fn note_accepted(&mut self, accepted: Accepted) -> (Arc<Accepted>, Vec<Arc<Accepted>>) {
        let accepted = Arc::new(accepted);
        let complete = self.open_run.archipelago().complete_epochs();
        let forgotten = self.audits.note(accepted.clone(), complete);
        (accepted, forgotten)
    }

    fn handed_out(&self, island: u32, epoch: u64) -> Option<&Open> {
        self.open_at(island, epoch).or_else(|| self.audits.open((island, epoch)))
    }

    fn open_at(&self, island: u32, epoch: u64) -> Option<&Open> {
        self.open.get(&island).filter(|open| open.task.epoch == epoch)
    }

    /// An epoch as it is granted to a worker.
    pub(crate) fn grant(
        &self,
        island: u32,
        epoch: u64,
        worker: &str,
        budget: &mut ReplyBudget,
    ) -> Option<v1::Task> {
        let Open { task, inputs, before, .. } = self.handed_out(island, epoch)?;
        let checkpoint = self.checkpoint_for(island, epoch, worker);
        let is_next = self.open_at(island, epoch).is_some();
        let at_hand = is_next && self.islands[island as usize].holder.as_deref() == Some(worker);
        let resumed = checkpoint.is_some();
        let packets = task.packets.iter().map(|packet| v1::Packet {
            from: packet.from,
            epoch: packet.epoch,
            departure: Some(body(&packet.departure, !resumed && budget.takes(packet.departure.len()))),
        });
        let packets = packets.collect();
        // A worker that begins at a checkpoint needs no state.
        let before = before.as_ref().map(|LeftBehind { state, departure, digest }| v1::Remains {
            digest: digest_bytes(digest),
            state_length: state.len() as u64,
            departure_length: departure.len() as u64,
            inline: (!at_hand && !resumed && budget.takes(state.len() + departure.len()))
                .then(|| joined(state, departure)),
        });
        let named =
            |known: &Checkpoint| named_body(&known.bytes, &known.digest, budget.takes(known.bytes.len()));
        let checkpoint = checkpoint.map(named);
        Some(v1::Task { inputs: digest_bytes(inputs), until: task.until, before, packets, checkpoint })
    }

    /// The checkpoint that a worker begins an epoch with.
    fn checkpoint_for(&self, island: u32, epoch: u64, worker: &str) -> Option<&Checkpoint> {
        let Open { checkpoint, grants, .. } = self.handed_out(island, epoch)?;
        let is_left = grants.checkpoints.len() < MOST_CHECKPOINT_GRANTS;
        let may_have = |checkpoint: &&Checkpoint| is_left || checkpoint.is_by(worker);
        checkpoint.as_ref().filter(may_have)
    }

    /// Notes that a worker was given the checkpoint of another.
    pub(crate) fn note_checkpoint_grant(&mut self, island: u32, epoch: u64, worker: &str) {
        let Some(checkpoint) = self.checkpoint_for(island, epoch, worker) else { return };
        if checkpoint.is_by(worker) {
            return;
        }
        let Checkpoint { generation, digest, ref author, .. } = *checkpoint;
        let granted = GrantedCheckpoint { generation, digest, author: author.clone(), to: worker.to_owned() };
        if let Some(open) = self.open.get_mut(&island).filter(|open| open.task.epoch == epoch) {
            open.grants.checkpoints.push(granted);
        }
    }

    /// Notes that a worker was given an epoch, perhaps to compute it again.
    pub(crate) fn note_granted(&mut self, island: u32, epoch: u64, worker: &str) {
        match self.open.get_mut(&island).filter(|open| open.task.epoch == epoch) {
            Some(open) => open.grants.note_granted(worker),
            None => self.audits.note_granted_again((island, epoch), worker),
        }
    }

    /// Uses no checkpoint of a principal any more.
    pub(crate) fn distrust(&mut self, principal: &str) {
        self.audits.distrust(principal);
        let is_its = |author: Option<&Author>| author.is_some_and(|author| author.principal == principal);
        for open in self.open.values_mut() {
            let own = open.checkpoint.as_ref().and_then(|checkpoint| checkpoint.author.as_ref());
            // What others made of it is no better.
            if is_its(own) || open.grants.checkpoints.iter().any(|one| is_its(one.author.as_ref())) {
                open.checkpoint = None;
            }
        }
    }

    /// A body that a grant only named.
    pub(crate) fn body(&self, island: u32, epoch: u64, digest: &Digest) -> Option<Bytes> {
        let Open { task, before, checkpoint, .. } = self.handed_out(island, epoch)?;
        if let Some(before) = before.as_ref().filter(|before| before.digest == *digest) {
            return Some(joined(&before.state, &before.departure));
        }
        if let Some(checkpoint) = checkpoint.as_ref().filter(|checkpoint| checkpoint.digest == *digest) {
            return Some(checkpoint.bytes.clone());
        }
        let mut departures = task.packets.iter().map(|packet| &packet.departure);
        departures.find(|departure| Digest::of(departure) == *digest).cloned()
    }

    /// Notes where an island stands by the word of a worker that computes its next epoch: at the end of that at most. A worker
    /// that computes an earlier epoch again says nothing of where the island stands.
    pub(crate) fn progress(&mut self, island: u32, epoch: u64, standing: Standing) {
        let Some(Open { task, .. }) = self.open_at(island, epoch) else { return };
        let generation = standing.generation.min(task.until);
        let known = &mut self.islands[island as usize].standing;
        if generation > known.generation {
            *known = Standing { generation, ..standing };
        }
    }

    /// Takes the outcome of an epoch, from any worker that had the right inputs.
    pub(crate) fn complete(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        outcome: &EpochOutcome,
        worker: &str,
        labour: Labour,
    ) -> Result<(DeliveryStatus, Option<Open>), RunError> {
        if !self.adopt(island, epoch, inputs) {
            return Ok((self.compare((island, epoch), inputs, outcome)?, None));
        }
        let standing = outcome.standing;
        let task = &self.open.get(&island).expect("it was just adopted").task;
        let counts = self.open_run.complete(task, outcome, labour)?;
        // It is recomputed from its beginning, not from where a worker claims it was.
        let done = self.open.remove(&island).map(|open| Open { checkpoint: None, ..open });
        if !counts {
            self.put_back(island, epoch);
            return Ok((DeliveryStatus::Unneeded, None));
        }
        self.islands[island as usize].standing = standing;
        let at_stake = self.open_run.commit().at_stake(island) + self.ahead(epoch);
        self.due.note(island, at_stake, self.worked);
        self.note_holder(island, epoch + 1, worker);
        let delivered = &mut self.islands[island as usize].delivered;
        delivered.push_back((epoch, *inputs, outcome.digest));
        if delivered.len() > REMEMBERED {
            delivered.pop_front();
        }
        Ok((DeliveryStatus::Accepted, done))
    }

    /// How many generations the epoch after this one may do before anything of it is kept.
    fn ahead(&self, epoch: u64) -> u64 {
        let schedule = self.open_run.archipelago().schedule();
        let length =
            schedule.end_of(epoch + 1).zip(schedule.end_of(epoch)).map_or(0, |(next, end)| next - end);
        length.saturating_sub(1)
    }

    /// Notes who has an island's state at hand.
    fn note_holder(&mut self, island: u32, next: u64, worker: &str) {
        self.islands_by_holder.entry(worker.to_owned()).or_default().insert((next, island));
        self.islands[island as usize].holder = Some(worker.to_owned());
    }

    /// Notes that an epoch is not handed out any more.
    fn put_back(&mut self, island: u32, epoch: u64) {
        let holder = self.islands[island as usize].holder.clone().unwrap_or_else(|| NO_HOLDER.to_owned());
        self.islands_by_holder.entry(holder).or_default().insert((epoch, island));
    }

    /// Compares the outcome of an epoch that was delivered before, if its inputs were the same.
    fn compare(
        &self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        outcome: &EpochOutcome,
    ) -> Result<DeliveryStatus, RunError> {
        let delivered = self.islands.get(island as usize).map(|island| &island.delivered);
        let known = delivered.into_iter().flatten().find(|(of, with, _)| (of, with) == (&epoch, inputs));
        match known {
            None => Ok(DeliveryStatus::Unneeded),
            Some((_, _, expected)) if *expected == outcome.digest => Ok(DeliveryStatus::Repeated),
            Some(&(_, _, expected)) => {
                Err(CompletionError::Differs { island, epoch, expected, found: outcome.digest }.into())
            }
        }
    }

    /// Takes a checkpoint inside an epoch that is handed out, to be written at once. Answers whether it is further than
    /// the one before.
    pub(crate) fn checkpoint(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        (standing, digest, bytes): (Standing, Digest, Bytes),
        author: Author,
        worker: String,
    ) -> bool {
        if self.open_run.archipelago().end().is_some() || !self.adopt(island, epoch, inputs) {
            return false;
        }
        let labour = Labour { worker, milliseconds: 0, elapsed: self.elapsed() };
        let open = self.open.get_mut(&island).expect("it was just adopted");
        if open.checkpoint.as_ref().is_some_and(|known| known.generation >= standing.generation) {
            return false;
        }
        self.open_run.note_checkpoint(&open.task, standing, &bytes, labour);
        self.audits.note_checkpoint((island, epoch), author.clone());
        let (generation, author) = (standing.generation, Some(author));
        open.checkpoint = Some(Checkpoint { generation, digest, bytes, author });
        self.progress(island, epoch, standing);
        self.due.add([island]);
        true
    }

    /// Has everything written at once, and all deleted that is no longer needed.
    pub(crate) fn flush(&mut self) {
        self.due.add_everything();
        self.open_run.prune_everything();
    }

    /// Notes that a delivered epoch is not durable yet.
    pub(crate) fn expect_written(&mut self, island: u32, epoch: u64, receipt: Receipt) {
        self.islands[island as usize].unwritten.push_back((epoch, receipt));
    }

    /// Why nothing of it can be written for now, if that is so.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// What is to be written now, if there is something and nothing is being written.
    pub(crate) fn next_batch(&mut self) -> Option<WriteBatch> {
        if self.writing {
            return None;
        }
        let batch = self.due_batch();
        self.writing = batch.is_some();
        batch
    }

    /// What is to be deleted now, if there is something and nothing is being deleted.
    pub(crate) fn next_pruning(&mut self) -> Option<Pruning> {
        if self.pruning {
            return None;
        }
        let pruning = self.open_run.pruning();
        self.pruning = pruning.is_some();
        pruning
    }

    /// Whether everything is written and deleted, so that the run can be finished.
    pub(crate) fn is_settled(&mut self) -> bool {
        let is_decided = !self.open_run.archipelago().is_end_proposed();
        !self.writing && !self.pruning && is_decided && self.open_run.is_settled()
    }

    /// Whether nothing is on its way to the store, and nothing is left to be written.
    pub(crate) fn is_written(&self) -> bool {
        let commit = self.open_run.commit();
        !self.writing && (0..self.islands.len() as u32).all(|island| !commit.is_unwritten(island))
    }

    fn due_batch(&mut self) -> Option<WriteBatch> {
        if self.open_run.commit().weight() > 0 {
            self.due.add_everything();
        }
        // What could not be written comes before anything else becomes due.
        let writing = if self.open_run.commit().is_unsettled() {
            self.open_run.take_batch([])
        } else {
            match self.due.take(self.worked) {
                Due::Everything => self.open_run.take_everything(),
                Due::Islands(islands) => self.open_run.take_batch(islands),
            }
        };
        (!writing.is_empty()).then_some(writing)
    }

    /// Notes what became of a batch; returns the receipts of what is durable now. What a store could not write for now
    /// is tried again.
    pub(crate) fn settle(&mut self, writing: &WriteBatch, written: &Result<(), WriteError>) -> Vec<Receipt> {
        self.writing = false;
        self.trouble = written.as_ref().err().map(ToString::to_string);
        if written.is_ok() {
            self.open_run.settle(writing);
            if let Some(yardstick) = &mut self.yardstick {
                writing.islands().for_each(|island| yardstick.look_at(&self.open_run, island));
            }
        }
        let mut durable = vec![];
        for island in writing.islands() {
            let written = self.open_run.commit().written(island);
            let unwritten = &mut self.islands[island as usize].unwritten;
            while let Some((_, receipt)) = unwritten.pop_front_if(|(epoch, _)| *epoch < written) {
                durable.push(receipt);
            }
        }
        durable
    }

    /// The receipts of everything that was delivered and is not written.
    pub(crate) fn take_receipts(&mut self) -> Vec<Receipt> {
        self.islands
            .iter_mut()
            .flat_map(|island| island.unwritten.drain(..))
            .map(|(_, receipt)| receipt)
            .collect()
    }

    /// Notes what became of a deletion.
    pub(crate) fn pruned(&mut self, pruning: &Pruning, deleted: bool) {
        self.pruning = false;
        if deleted {
            self.open_run.settle_pruning(pruning);
        }
    }

    /// Notes that time has passed while it was computed.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.worked += time;
    }

    /// Where the run is to end because its time is up, which has to be written down first.
    pub(crate) fn end_in_time(&mut self) -> Option<End> {
        let limit = self.open_run.archipelago().budget().wall_time?;
        let is_up = Duration::from_millis(self.elapsed()) >= limit;
        if is_up { self.open_run.propose_end() } else { None }
    }

    /// The event that gives the run another budget, and the epochs that are complete by then. Nothing beyond it is begun
    /// or taken until it is written down.
    pub(crate) fn extension(&mut self, budget: &BudgetKeys, now: u64) -> Result<(RunEvent, u64), RunError> {
        let extension = self.open_run.extension(budget, now)?;
        self.open_run.propose_extension(budget);
        Ok(extension)
    }

    /// Continues with the budget of now: another one could not be written down.
    pub(crate) fn withdraw_extension(&mut self) {
        self.open_run.withdraw_extension();
    }

    /// Acts on another budget, now that it is written down. Returns the epochs that were handed out and end elsewhere now:
    /// they begin again.
    pub(crate) fn extended(&mut self, budget: &BudgetKeys, complete: u64) -> Vec<Piece> {
        self.open_run.extend(budget, complete);
        self.audits.continue_after_all();
        if let Some(yardstick) = &mut self.yardstick {
            yardstick.continues(&self.open_run);
        }
        let archipelago = self.open_run.archipelago();
        let is_stale = |open: &Open| archipelago.schedule().end_of(open.task.epoch) != Some(open.task.until);
        let stale: Vec<(u32, u64)> = self
            .open
            .iter()
            .filter(|(_, open)| is_stale(open))
            .map(|(&island, open)| (island, open.task.epoch))
            .collect();
        for &(island, epoch) in &stale {
            if let Some(Open { inputs, grants, .. }) = self.open.remove(&island) {
                self.audits.keep_grants((island, epoch), inputs, grants);
            }
            self.open_run.release(island);
            self.put_back(island, epoch);
        }
        stale.into_iter().map(|(island, epoch)| Piece::Epoch { island, epoch }).collect()
    }

    /// Ends the run where it was decided, now that this is written down; continues if it could not be.
    pub(crate) fn decide(&mut self, end: Option<End>) {
        match end {
            Some(end) => self.open_run.decide(end),
            None => self.open_run.withdraw(),
        }
    }
}

impl Checkpoint {
    /// Whether a worker made it itself.
    fn is_by(&self, worker: &str) -> bool {
        self.author.as_ref().is_some_and(|author| author.worker == worker)
    }
}

/// What an epoch left behind, as it travels.
fn joined(state: &Bytes, departure: &Bytes) -> Bytes {
    [&state[..], departure].concat().into()
}
