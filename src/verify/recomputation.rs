//! Epochs computed again from the founding on, and compared with what is stored of them.

use super::Findings;
use crate::failure::Failure;
use crate::progress::Counter;
use archipelago::{Archipelago, Mark};
use bytes::Bytes;
use evolution::digest::Digest;
use evolution::epoch::{self, EpochOutcome, EpochTask, Evolver, Packet};
use experiment::file::Mode;
use run::epochs::StoredEpochs;
use run::record::{EpochRecord, StoredCheckpoint};
use run::{Place, RunHead, RunId};
use std::collections::BTreeMap;
use store::{Kind, Store};

/// How many epochs behind the slowest island are remembered, in case an island imported them late.
const REMEMBERED: u64 = 64;

/// Epochs computed again from the founding on.
pub(super) struct Recomputation<'a> {
    pub(super) store: &'a Store,
    pub(super) run: &'a RunId,
    pub(super) head: &'a RunHead,
    pub(super) past: &'a StoredEpochs,
    pub(super) archipelago: &'a Archipelago,
}

/// What is known of an epoch: read from the store, or computed again.
struct Known {
    state: Bytes,
    departure: Bytes,
}

impl Recomputation<'_> {
    /// Computes every island's epochs in their order, each as soon as everything that it took is known: asynchronously
    /// that may be another island's later epoch.
    pub(super) async fn run(&self, pool: &worker::Pool, findings: &mut Findings) -> Result<(), Failure> {
        let evolver = self.head.experiment.evolver();
        let mut known: BTreeMap<(u64, usize), Known> = BTreeMap::new();
        let mut next = vec![0; self.past.records.len()];
        let all = self.past.records.iter().map(|records| records.len() as u64).sum();
        let progress = Counter::new("epochs", all);
        loop {
            let tasks: Vec<(usize, &EpochRecord, EpochTask)> = next
                .iter()
                .enumerate()
                .filter_map(|(island, &epoch)| self.task(island, epoch, &known))
                .collect();
            if tasks.is_empty() {
                break;
            }
            let outcomes = pool.install(|| compute(&*evolver, &tasks, &progress));
            for ((island, record, _), outcome) in tasks.iter().zip(outcomes) {
                self.check_taken(*island, &record.mark, findings);
                compare(*island, record, outcome, &mut known, findings);
                self.read_state(*island, &record.mark, &mut known, findings).await?;
                next[*island] += 1;
            }
            let oldest = next.iter().min().copied().unwrap_or(0).saturating_sub(REMEMBERED);
            known.retain(|&(epoch, _), _| epoch >= oldest);
        }
        let lost = |(island, epoch): (usize, &u64)| *epoch < self.archipelago.done(island as u32);
        for (island, epoch) in next.iter().enumerate().filter(|&stuck| lost(stuck)) {
            findings
                .problems
                .push(format!("island {island}, epoch {epoch}: what it took is not in the records"));
        }
        for (island, &epoch) in next.iter().enumerate() {
            self.check_checkpoints(&*evolver, island, epoch, &known, findings).await?;
        }
        Ok(())
    }

    /// Compares what an epoch took with what its place among the others says.
    fn check_taken(&self, island: usize, mark: &Mark, findings: &mut Findings) {
        let senders = self.archipelago.senders(island as u32);
        let is_right = match (mark.epoch, self.head.experiment.mode()) {
            (0, _) => {
                mark.took == self.archipelago.guests().map(|_| (u32::MAX, 0)).into_iter().collect::<Vec<_>>()
            }
            (epoch, Mode::Synchronous) => {
                mark.took.iter().eq(&senders.iter().map(|&sender| (sender, epoch - 1)).collect::<Vec<_>>())
            }
            (_, Mode::Asynchronous) => mark.took.iter().all(|(from, _)| senders.contains(from)),
        };
        if !is_right {
            let epoch = mark.epoch;
            findings
                .problems
                .push(format!("island {island}, epoch {epoch}: it cannot have taken {:?}", mark.took));
        }
    }

    /// Computes the checkpoints inside an island's next epoch again.
    async fn check_checkpoints(
        &self,
        evolver: &dyn Evolver,
        island: usize,
        epoch: u64,
        known: &BTreeMap<(u64, usize), Known>,
        findings: &mut Findings,
    ) -> Result<(), Failure> {
        for (&generation, &of) in &self.past.checkpoints[island] {
            let path = Place::Checkpoint { generation, of }.in_run(self.run);
            let stored: StoredCheckpoint = self.store.read_value(&path, Kind::Checkpoint).await?;
            let again = self.epoch_task(island, epoch, &stored.took, known).map(|task| {
                let mut again = evolver.begin(&task)?;
                while again.standing().generation < generation && again.generation() {}
                Ok::<_, epoch::EpochError>((again.checkpoint().ok(), task))
            });
            match again {
                Some(Ok((Some(bytes), task)))
                    if *bytes == stored.bytes
                        && self.inputs(&task).is_none_or(|own| own == stored.inputs) => {}
                Some(Err(error)) => findings.problems.push(format!("object `{path}`: {error}")),
                _ => findings.problems.push(format!("object `{path}` is not what its epoch comes to")),
            }
        }
        Ok(())
    }

    /// The digest of an epoch's inputs, if what it depends on was not cut off or forgotten.
    fn inputs(&self, task: &EpochTask) -> Option<Digest> {
        let EpochTask { island, epoch, packets, .. } = task;
        let is_known = |packet: &Packet| {
            packet.from == u32::MAX || self.archipelago.left_by(packet.from, packet.epoch).is_some()
        };
        let is_next = self.archipelago.done(*island) == *epoch && packets.iter().all(is_known);
        is_next.then(|| self.archipelago.inputs(task))
    }

    /// The epoch as it was run, if everything that it took is known.
    fn task(
        &self,
        island: usize,
        epoch: u64,
        known: &BTreeMap<(u64, usize), Known>,
    ) -> Option<(usize, &EpochRecord, EpochTask)> {
        let record = self.past.records[island].get(epoch as usize)?;
        Some((island, record, self.epoch_task(island, epoch, &record.mark.took, known)?))
    }

    /// An epoch that took this, if it is known.
    fn epoch_task(
        &self,
        island: usize,
        epoch: u64,
        took: &[(u32, u64)],
        known: &BTreeMap<(u64, usize), Known>,
    ) -> Option<EpochTask> {
        let until = self.archipelago.schedule().end_of(epoch)?;
        let state = match epoch {
            0 => None,
            _ => Some(known.get(&(epoch - 1, island))?.state.clone()),
        };
        let mut packets = vec![];
        for &(from, left) in took {
            let departure = match from {
                u32::MAX => self.archipelago.guests()?,
                _ => known.get(&(left, from as usize))?.departure.clone(),
            };
            packets.push(Packet { from, epoch: left, departure });
        }
        Some(EpochTask { island: island as u32, epoch, until, state, packets })
    }

    /// Compares the stored state of an epoch, if there is one, with its record.
    async fn read_state(
        &self,
        island: usize,
        mark: &Mark,
        known: &mut BTreeMap<(u64, usize), Known>,
        findings: &mut Findings,
    ) -> Result<(), Failure> {
        let epoch = mark.epoch;
        if !self.past.states[island].contains_key(&epoch) {
            return Ok(());
        }
        let remains = match self.past.remains(self.store, self.run, island as u32, epoch).await {
            Ok(remains) => remains,
            Err(error) => {
                findings.problems.push(error.to_string());
                return Ok(());
            }
        };
        let kept = Known { state: remains.state.into(), departure: remains.departure.into() };
        known.entry((epoch, island)).or_insert(kept);
        Ok(())
    }
}

/// Compares an epoch with its record, and keeps it for those that come after.
fn compare(
    island: usize,
    EpochRecord { mark, statistics, .. }: &EpochRecord,
    outcome: Result<(EpochOutcome, Known), String>,
    known: &mut BTreeMap<(u64, usize), Known>,
    findings: &mut Findings,
) {
    findings.recomputed += 1;
    let Mark { epoch, digest: expected, .. } = mark;
    match outcome {
        Ok((EpochOutcome { digest, standing, statistics: computed, .. }, kept)) => {
            if codec::encode(&computed).ok() != codec::encode(statistics).ok() {
                findings.problems.push(format!(
                    "island {island}, epoch {epoch}: its statistics are not those of the epoch"
                ));
            }
            if standing != mark.standing {
                findings.problems.push(format!(
                    "island {island}, epoch {epoch}: expected the standing {standing:?}, found {:?}",
                    mark.standing
                ));
            }
            if digest != *expected {
                findings.problems.push(format!(
                    "island {island}, epoch {epoch}: expected the digest {expected}, computed {digest}"
                ));
            }
            known.insert((*epoch, island), kept);
        }
        Err(reason) => findings.problems.push(reason),
    }
}

fn compute(
    evolver: &dyn Evolver,
    tasks: &[(usize, &EpochRecord, EpochTask)],
    progress: &Counter,
) -> Vec<Result<(EpochOutcome, Known), String>> {
    use rayon::prelude::*;
    let compute = |(_, _, task): &(usize, &EpochRecord, EpochTask)| {
        let outcome = epoch::run(evolver, task).map_err(|error| error.to_string());
        progress.add(1);
        let outcome = outcome?;
        let known = Known { state: outcome.state.clone(), departure: outcome.departure.clone() };
        Ok((outcome, known))
    };
    tasks.par_iter().map(compute).collect()
}
