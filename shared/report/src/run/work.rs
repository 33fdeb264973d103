//! Who computed what, how long it took, and what was lost.

use super::{Epoch, Run, course};
use crate::chart::{COLOURS, Grid, NOTHING};
use crate::document::{Block, Data, Figure, Section, Table};
use crate::text::{code, count, percent, shortened, time, times};
use std::collections::BTreeMap;

/// Workers with a colour of their own.
const COLOURED: usize = 2 * COLOURS;
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

/// Those who worked on the run, whoever did most first.
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

/// For how long islands could have gone on, but nobody computed them: from when an epoch's inputs were there until it
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
    let numbers: BTreeMap<&str, u8> =
        workers.iter().enumerate().map(|(at, worker)| (worker.name, at.min(COLOURED) as u8)).collect();
    let missing = workers.len().min(COLOURED + 1) as u8;
    let epochs = run.epochs();
    let columns = epochs.min(course::COLUMNS);
    let last_of = |column: u64| (column + 1) * epochs / columns.max(1) - 1;
    let mut has_gaps = false;
    let mut cells = vec![];
    for island in &run.islands {
        let known = island.last().map_or(0, |epoch| epoch.number);
        let mut cell = |column: u64| match island.at(last_of(column)) {
            Some(epoch) => numbers[epoch.worker.as_str()],
            None if last_of(column) < known => {
                has_gaps = true;
                missing
            }
            None => NOTHING,
        };
        cells.push((0..columns).map(&mut cell).collect());
    }
    let mut kinds: Vec<(String, String)> = workers.iter().take(COLOURED).enumerate().map(kind).collect();
    if workers.len() > COLOURED {
        kinds.push(("f7 faint".to_owned(), format!("{} others", workers.len() - COLOURED)));
    }
    if has_gaps {
        kinds.push(("gone".to_owned(), "missing".to_owned()));
    }
    let grid = Grid {
        name: "workers",
        title: "Worker of each epoch",
        description: &format!(
            "A row for each of {} islands, a column for each epoch, a colour for each of {} workers.",
            run.islands.len(),
            workers.len()
        ),
        across: ("epoch", (0, epochs)),
        down: "island",
        kinds,
        cells,
    };
    let caption = "A colour for each worker. Where it changes in a row, another worker continued the island, as after a \
                   crash. Every worker computes the same result."
        .to_owned();
    Figure { picture: grid.draw(), caption, numbers: Some(workers_table(workers)) }
}

fn kind((at, worker): (usize, &Worker<'_>)) -> (String, String) {
    let pale = if at < COLOURS { "" } else { " pale" };
    (format!("f{}{pale}", at % COLOURS), shortened(worker.name, 40))
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
