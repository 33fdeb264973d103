//! Who computed what, how long it took, and what was lost.

use super::{Epoch, Run, Strip};
use crate::document::{Block, Data, Figure, Section, Table};
use crate::text::{code, count, percent, shortened, time, times};
use std::collections::BTreeMap;

/// Workers and losses that are listed.
const LISTED: usize = 50;

/// What one worker did.
struct Worker<'a> {
    name: &'a str,
    epochs: u64,
    milliseconds: u64,
    /// When it delivered its first and its last epoch, in milliseconds of the run.
    between: (u64, u64),
}

/// The workers of the run, the one with the most work first.
fn workers(run: &Run) -> Vec<Worker<'_>> {
    let mut workers: BTreeMap<&str, Worker<'_>> = BTreeMap::new();
    for Epoch { worker: name, milliseconds, elapsed, .. } in epochs(run) {
        let new = Worker { name, epochs: 0, milliseconds: 0, between: (*elapsed, *elapsed) };
        let worker = workers.entry(name).or_insert(new);
        worker.epochs += 1;
        worker.milliseconds += milliseconds;
        worker.between = (worker.between.0.min(*elapsed), worker.between.1.max(*elapsed));
    }
    let mut workers: Vec<Worker<'_>> = workers.into_values().collect();
    workers.sort_by_key(|worker| (std::cmp::Reverse(worker.epochs), worker.name));
    workers
}

/// Their names, in this order.
pub(super) fn names(run: &Run) -> Vec<&str> {
    workers(run).into_iter().map(|worker| worker.name).collect()
}

fn epochs(run: &Run) -> impl Iterator<Item = &Epoch> {
    run.islands.iter().flat_map(|island| &island.epochs)
}

/// What stands below the time at the head of a page.
pub(super) fn remark(run: &Run) -> String {
    match (lost(run), run.restarts) {
        (0, 0) => "nothing was lost".to_owned(),
        (0, restarts) => format!("resumed {}", times(restarts)),
        (lost, _) => format!("{} lost to failures", time(lost)),
    }
}

fn lost(run: &Run) -> u64 {
    run.losses.iter().map(|loss| loss.milliseconds).sum()
}

pub(super) fn section(run: &Run) -> Option<Section> {
    let workers = workers(run);
    if workers.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Facts(vec![
        ("worked on for".to_owned(), time(run.elapsed)),
        ("computing, all workers together".to_owned(), time(computing(run))),
        (
            "islands ready, waiting for a worker".to_owned(),
            format!(
                "{} in all, on the way to {} epochs",
                time(waiting(run)),
                count(epochs(run).count() as u64)
            ),
        ),
        ("resumed".to_owned(), times(run.restarts)),
        (
            "lost to failures".to_owned(),
            match run.losses.len() {
                0 => "nothing".to_owned(),
                pieces => format!("{} in {} pieces of work", time(lost(run)), count(pieces as u64)),
            },
        ),
    ])];
    // With one machine the strip has one colour; gaps of a damaged run still show on it.
    if workers.len() > 1 || !run.damage.is_empty() {
        blocks.push(Block::Figure(strip(run, &workers)));
    } else {
        blocks.push(Block::Table(workers_table(&workers)));
    }
    if !run.losses.is_empty() {
        blocks.push(Block::Table(losses(run)));
    }
    Some(Section::new("work", "Work", blocks))
}

/// The time of all workers together.
pub(super) fn computing(run: &Run) -> u64 {
    epochs(run).map(|epoch| epoch.milliseconds).sum()
}

/// The time in which islands were ready but not computed: from when an epoch's inputs were there until it
/// was delivered, less the time it took.
pub(super) fn waiting(run: &Run) -> u64 {
    let mut waited = 0;
    for island in &run.islands {
        for epoch in &island.epochs {
            let own = epoch.number.checked_sub(1).map(|before| island.at(before));
            let senders = epoch.statistics.arrivals.iter();
            let senders = senders.map(|arrival| run.islands.get(arrival.from as usize)?.at(arrival.epoch));
            // Where an input is not known, neither is the time at which it was there.
            let ready = own.into_iter().chain(senders).map(|input| input.map(|input| input.elapsed));
            let ready = ready.collect::<Option<Vec<u64>>>().map(|times| times.into_iter().max().unwrap_or(0));
            let begun = epoch.elapsed.saturating_sub(epoch.milliseconds);
            waited += ready.map_or(0, |ready| begun.saturating_sub(ready));
        }
    }
    waited
}

fn strip(run: &Run, workers: &[Worker<'_>]) -> Figure {
    let caption = "A colour for each worker. Where it changes in a row, another worker continued the island, as after a \
                   crash. Every worker computes the same result."
        .to_owned();
    let picture = Strip::of(run).draw(&[]).expect("a worker has computed an epoch");
    Figure { picture, caption, numbers: Some(workers_table(workers)) }
}

fn workers_table(workers: &[Worker<'_>]) -> Table {
    let all: u64 = workers.iter().map(|worker| worker.epochs).sum();
    let rest = if workers.len() > LISTED { format!("; the first {LISTED}") } else { String::new() };
    let caption =
        format!("Workers, with the times of their first and last delivery since the start of the run{rest}");
    let columns = ["worker", "epochs", "share", "computing", "first delivery", "last delivery"];
    let mut table = Table::new(caption, &columns);
    for Worker { name, epochs, milliseconds, between } in workers.iter().take(LISTED) {
        table.push(vec![
            code(name),
            count(*epochs),
            percent(*epochs, all),
            time(*milliseconds),
            time(between.0),
            time(between.1),
        ]);
    }
    table
}

fn losses(run: &Run) -> Table {
    let rest = if run.losses.len() > LISTED { format!("; the last {LISTED}") } else { String::new() };
    let columns = ["when (UTC)", "work", "worker", "held for", "why"];
    let mut table = Table::new(format!("Lost work, which was recomputed{rest}"), &columns);
    for loss in run.losses.iter().skip(run.losses.len().saturating_sub(LISTED)) {
        let (worker, reason) = (code(&loss.worker), shortened(&loss.reason, 200));
        table.push(vec![loss.at.clone(), loss.work.clone(), worker, time(loss.milliseconds), reason]);
    }
    table
}

pub(super) fn data(run: &Run) -> Data {
    let columns = ["worker", "epochs", "milliseconds", "first_elapsed", "last_elapsed"];
    let mut table = Table::new("", &columns);
    for Worker { name, epochs, milliseconds, between } in workers(run) {
        let numbers = [epochs, milliseconds, between.0, between.1].map(|number| number.to_string());
        table.push([name.to_owned()].into_iter().chain(numbers).collect());
    }
    Data { name: "workers", table }
}
