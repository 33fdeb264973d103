//! The epochs of one run: what is handed out, with what inputs, and what comes back.

use crate::keeper::Keeper;
use crate::room::Room;
use archipelago::LeftBehind;
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{EpochOutcome, EpochTask, Standing};
use experiment::CheckpointEvery;
use proto::convert::{Piece, body, digest_bytes};
use proto::v1;
use run::WriteBatch;
use run::WriteError;
use run::epochs;
use run::record::Labour;
use run::schedule::{CommitSchedule, Due};
use run::{Assignment, RunError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How many delivered epochs of an island are remembered by their inputs, so that repeated deliveries can be compared.
const REMEMBERED: usize = 8;

/// Under whom islands stand that nobody has at hand.
const NOBODY: &str = "";

/// A run whose epochs are handed out.
pub(crate) struct Epochs {
    keeper: Keeper,
    text: String,
    plan: Digest,
    open: BTreeMap<u32, Open>,
    islands: Vec<Island>,
    /// The islands that are not handed out, by their next epoch, under who has them at hand.
    shelves: BTreeMap<String, BTreeSet<(u64, u32)>>,
    /// For how long somebody has worked on it since it was opened.
    worked: Duration,
    due: CommitSchedule,
}

/// An epoch that is handed out.
struct Open {
    task: EpochTask,
    inputs: Digest,
    before: Option<LeftBehind>,
    checkpoint: Option<(u64, Bytes)>,
}

/// What is known of an island beside the archipelago.
struct Island {
    standing: Standing,
    /// Who delivered its last state, and so has it at hand.
    holder: Option<String>,
    delivered: VecDeque<(u64, Digest)>,
}

/// What became of something that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    Repeated,
    Unneeded,
}

impl Epochs {
    pub(crate) fn new(keeper: Keeper) -> Self {
        let text = keeper.experiment().to_toml();
        let plan = Digest::of(text.as_bytes());
        let unborn = Standing { generation: 0, evaluations: 0, best: f64::NEG_INFINITY };
        let count = keeper.experiment().setting().islands.len() as u32;
        let island = |island: u32| Island {
            standing: keeper.archipelago().standing(island).unwrap_or(unborn),
            holder: None,
            delivered: VecDeque::new(),
        };
        let islands = (0..count).map(island).collect();
        let unclaimed = (0..count).map(|island| (keeper.archipelago().done(island), island)).collect();
        let shelves = BTreeMap::from([(NOBODY.to_owned(), unclaimed)]);
        let due = CommitSchedule::new(keeper.experiment().checkpoint_every());
        Self { keeper, text, plan, open: BTreeMap::new(), islands, shelves, worked: Duration::ZERO, due }
    }

    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(crate) fn keeper_mut(&mut self) -> &mut Keeper {
        &mut self.keeper
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
        self.keeper.elapsed_before() + self.worked.as_millis() as u64
    }

    /// Where the run stands as far as its workers have told.
    pub(crate) fn standing(&self) -> Standing {
        epochs::total(self.islands.iter().map(|island| island.standing))
    }

    /// The next epoch for a worker: rather of an island that it has at hand, or that nobody has.
    pub(crate) fn next(&mut self, worker: &str) -> Option<Piece> {
        let first = self.keeper.archipelago().next_ready()?;
        let epoch = self.keeper.archipelago().done(first);
        let at_hand = self.ready_on_shelf(worker, epoch);
        let island = at_hand.or_else(|| self.ready_on_shelf(NOBODY, epoch)).unwrap_or(first);
        let assignment = self.keeper.assign_ready(island);
        Some(self.hand_out(assignment))
    }

    /// The first island of a shelf whose next epoch is this one and may begin.
    fn ready_on_shelf(&self, holder: &str, epoch: u64) -> Option<u32> {
        let of_epoch = self.shelves.get(holder)?.range((epoch, 0)..=(epoch, u32::MAX));
        of_epoch.map(|&(_, island)| island).find(|&island| self.keeper.archipelago().is_ready(island))
    }

    /// Whether something could be handed out.
    pub(crate) fn has_work(&self) -> bool {
        self.keeper.archipelago().next_ready().is_some()
    }

    fn hand_out(&mut self, Assignment { task, checkpoint }: Assignment) -> Piece {
        let EpochTask { island, epoch, .. } = task;
        let archipelago = self.keeper.archipelago();
        let (inputs, before) = (archipelago.inputs(&task), archipelago.left_behind(island));
        let checkpoint = checkpoint.map(|bytes| (0, bytes));
        let holder = self.islands[island as usize].holder.as_deref().unwrap_or(NOBODY);
        if let Some(shelf) = self.shelves.get_mut(holder) {
            shelf.remove(&(epoch, island));
            if shelf.is_empty() {
                self.shelves.remove(holder);
            }
        }
        self.open.insert(island, Open { task, inputs, before, checkpoint });
        Piece::Epoch { island, epoch }
    }

    /// Takes up an epoch that somebody is working on, or has done, since before this coordinator came to be.
    pub(crate) fn adopt(&mut self, island: u32, epoch: u64, inputs: &Digest) -> bool {
        if let Some(open) = self.open_at(island, epoch) {
            return open.inputs == *inputs;
        }
        if island as usize >= self.islands.len() {
            return false;
        }
        let assignment = self.keeper.assign_known(island, epoch, inputs);
        assignment.map(|assignment| self.hand_out(assignment)).is_some()
    }

    fn open_at(&self, island: u32, epoch: u64) -> Option<&Open> {
        self.open.get(&island).filter(|open| open.task.epoch == epoch)
    }

    /// An epoch that is handed out, as a worker is told of it.
    pub(crate) fn grant(&self, island: u32, epoch: u64, worker: &str, room: &mut Room) -> Option<v1::Task> {
        let Open { task, inputs, before, checkpoint } = self.open_at(island, epoch)?;
        let at_hand = self.islands[island as usize].holder.as_deref() == Some(worker);
        let resumed = checkpoint.is_some();
        let packets = task.packets.iter().map(|packet| v1::Packet {
            from: packet.from,
            epoch: packet.epoch,
            departure: Some(body(&packet.departure, !resumed && room.takes(packet.departure.len()))),
        });
        let packets = packets.collect();
        // Whoever begins at a checkpoint needs no state.
        let before = before.as_ref().map(|LeftBehind { state, departure, digest }| v1::Remains {
            digest: digest_bytes(digest),
            state_length: state.len() as u64,
            departure_length: departure.len() as u64,
            inline: (!at_hand && !resumed && room.takes(state.len() + departure.len()))
                .then(|| joined(state, departure)),
        });
        let checkpoint = checkpoint.as_ref().map(|(_, bytes)| body(bytes, room.takes(bytes.len())));
        Some(v1::Task { inputs: digest_bytes(inputs), until: task.until, before, packets, checkpoint })
    }

    /// A body that a grant only named.
    pub(crate) fn body(&self, island: u32, epoch: u64, digest: &Digest) -> Option<Bytes> {
        let Open { task, before, checkpoint, .. } = self.open_at(island, epoch)?;
        if let Some(before) = before.as_ref().filter(|before| before.digest == *digest) {
            return Some(joined(&before.state, &before.departure));
        }
        let checkpoint = checkpoint.as_ref().map(|(_, bytes)| bytes);
        let mut bodies = task.packets.iter().map(|packet| &packet.departure).chain(checkpoint);
        bodies.find(|body| Digest::of(body) == *digest).cloned()
    }

    /// Notes where an island stands.
    pub(crate) fn progress(&mut self, island: u32, standing: Standing) {
        if let Some(island) = self.islands.get_mut(island as usize)
            && standing.generation > island.standing.generation
        {
            island.standing = standing;
        }
    }

    /// Takes the outcome of an epoch, from anybody who had the right inputs.
    pub(crate) fn complete(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        outcome: &EpochOutcome,
        worker: &str,
        labour: Labour,
    ) -> Result<Fate, RunError> {
        if !self.adopt(island, epoch, inputs) {
            return self.compare((island, epoch), inputs, outcome, labour);
        }
        let standing = outcome.standing;
        let task = &self.open.get(&island).expect("it was just adopted").task;
        self.keeper.complete(task, outcome, labour)?;
        self.open.remove(&island);
        self.progress(island, standing);
        self.due.note(island, self.keeper.commit().at_stake(island), self.worked);
        self.put_on_shelf(island, epoch + 1, worker);
        let delivered = &mut self.islands[island as usize].delivered;
        delivered.push_back((epoch, *inputs));
        if delivered.len() > REMEMBERED {
            delivered.pop_front();
        }
        Ok(Fate::Accepted)
    }

    /// Notes who has an island's state at hand.
    fn put_on_shelf(&mut self, island: u32, next: u64, worker: &str) {
        self.shelves.entry(worker.to_owned()).or_default().insert((next, island));
        self.islands[island as usize].holder = Some(worker.to_owned());
    }

    /// Compares the outcome of an epoch that was delivered before, if its inputs were the same.
    fn compare(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        outcome: &EpochOutcome,
        labour: Labour,
    ) -> Result<Fate, RunError> {
        let known = self.islands.get(island as usize);
        if known.is_none_or(|island| !island.delivered.contains(&(epoch, *inputs))) {
            return Ok(Fate::Unneeded);
        }
        let task = EpochTask { island, epoch, until: 0, state: None, packets: vec![] };
        self.keeper.complete(&task, outcome, labour)?;
        Ok(Fate::Repeated)
    }

    /// Takes a checkpoint inside an epoch that is handed out, to be written at once. Answers whether it is further than
    /// the one before.
    pub(crate) fn checkpoint(
        &mut self,
        (island, epoch): (u32, u64),
        inputs: &Digest,
        standing: Standing,
        bytes: Bytes,
    ) -> bool {
        if self.keeper.archipelago().end().is_some() || !self.adopt(island, epoch, inputs) {
            return false;
        }
        let elapsed = self.elapsed();
        let open = self.open.get_mut(&island).expect("it was just adopted");
        if open.checkpoint.as_ref().is_some_and(|(generation, _)| *generation >= standing.generation) {
            return false;
        }
        self.keeper.note_checkpoint(&open.task, standing, &bytes, elapsed);
        open.checkpoint = Some((standing.generation, bytes));
        self.progress(island, standing);
        self.due.add([island]);
        true
    }

    /// Whether a delivered epoch, or a checkpoint in one, is still to be written at once.
    pub(crate) fn is_urgent(&self, island: u32, epoch: u64) -> bool {
        let commit = self.keeper.commit();
        let every = self.keeper.experiment().checkpoint_every();
        let too_much = |limit| commit.written(island) <= epoch && commit.at_stake(island) >= limit;
        commit.has_checkpoint_waiting(island)
            || matches!(every, CheckpointEvery::Generations(limit) if too_much(limit))
    }

    /// Has everything written at once, and all deleted that nobody needs any more.
    pub(crate) fn hurry(&mut self) {
        self.due.add_everything();
        self.keeper.prune_everything();
    }

    /// What is to be written now, if there is something.
    pub(crate) fn write_batch(&mut self) -> Option<WriteBatch> {
        let writing = match self.due.take(self.worked) {
            Due::Everything => self.keeper.take_everything(),
            Due::Islands(islands) => {
                let islands = self.with_senders(islands);
                self.keeper.take_batch(islands)
            }
        };
        (!writing.is_empty()).then_some(writing)
    }

    /// Islands, and all from which something has come to them: without that, what is written of them could not be taken
    /// up again.
    fn with_senders(&self, islands: Vec<u32>) -> BTreeSet<u32> {
        let mut all: BTreeSet<u32> = islands.iter().copied().collect();
        let mut added = islands;
        while let Some(island) = added.pop() {
            for &sender in self.keeper.archipelago().senders(island) {
                if self.keeper.commit().is_unwritten(sender) && all.insert(sender) {
                    added.push(sender);
                }
            }
        }
        all
    }

    /// Notes what became of pages. What a store could not write for now is tried again.
    pub(crate) fn settle(&mut self, writing: &WriteBatch, written: &Result<(), WriteError>) {
        match written {
            Ok(()) => self.keeper.settle(writing),
            Err(error) if error.may_pass() => self.due.add(writing.islands()),
            Err(_) => {}
        }
    }

    /// Notes that time has passed while somebody worked on it: time to end, perhaps.
    pub(crate) async fn pass(&mut self, time: Duration, now: u64) -> Result<(), RunError> {
        self.worked += time;
        let limit = self.keeper.archipelago().budget().wall_time;
        if limit.is_some_and(|limit| Duration::from_millis(self.elapsed()) >= limit) {
            self.keeper.end_now(now).await?;
        }
        Ok(())
    }
}

/// What an epoch left behind, as it travels.
fn joined(state: &Bytes, departure: &Bytes) -> Bytes {
    [&state[..], departure].concat().into()
}
