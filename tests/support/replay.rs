//! A finished evolution, computed again from what is recorded of it.

use evolution::digest::Digest;
use evolution::epoch::{self, EpochOutcome, EpochTask, Packet};
use run::head::Restored;
use run::{RunHead, RunId};
use std::collections::BTreeMap;
use std::error::Error;
use store::Store;

/// Computes each epoch again with what it took, up to where it was decided to end. Returns the digest of the run.
///
/// # Errors
/// If the run is not finished, or an epoch does not come out as its record says.
pub(crate) async fn replay(store: &Store, run: &RunId) -> Result<Digest, Box<dyn Error>> {
    let head = RunHead::read(store, run).await?;
    let Restored { archipelago, stored, .. } = head.restore(store, run).await?;
    let evolver = head.experiment.evolver();
    let mut known: BTreeMap<(u32, u64), EpochOutcome> = BTreeMap::new();
    let mut next = vec![0; stored.records.len()];
    let mut is_over = false;
    while !is_over {
        is_over = true;
        for (island, records) in (0..).zip(&stored.records) {
            let epoch: u64 = next[island as usize];
            let Some(record) = records.get(epoch as usize) else { continue };
            let packet = |&(from, epoch): &(u32, u64)| {
                let departure = match known.get(&(from, epoch)) {
                    Some(outcome) => outcome.departure.clone(),
                    // Guests come from no island.
                    None if from as usize >= stored.records.len() => archipelago.guests()?,
                    None => return None,
                };
                Some(Packet { from, epoch, departure })
            };
            let packets: Option<Vec<Packet>> = record.mark.took.iter().map(packet).collect();
            let (Some(packets), Some(until)) = (packets, archipelago.schedule().end_of(epoch)) else {
                continue;
            };
            let before = epoch.checked_sub(1).map(|before| known[&(island, before)].state.clone());
            let task = EpochTask { island, epoch, until, state: before, packets };
            let outcome = epoch::run(&*evolver, &task)?;
            if outcome.digest != record.mark.digest {
                return Err(format!("island {island}, epoch {epoch} comes out otherwise").into());
            }
            known.insert((island, epoch), outcome);
            next[island as usize] += 1;
            is_over = false;
        }
    }
    if let Some(island) = (0..next.len()).find(|&island| next[island] < archipelago.done(island as u32)) {
        return Err(format!("what island {island} took for epoch {} is not recorded", next[island]).into());
    }
    archipelago.digest().ok_or_else(|| "the run is not finished".into())
}
