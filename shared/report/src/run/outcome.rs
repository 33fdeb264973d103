//! What came out, what was asked, and what to do next.

use super::advice::advice;
use super::{Run, named};
use crate::document::{Block, Data, Section, Table};
use crate::text::{code, count, number, shortened};

/// Champions that are listed, and characters of their genomes.
const LISTED: usize = 100;
const GENOME: usize = 64;

pub(super) fn champions(run: &Run) -> Section {
    let mut order: Vec<(usize, &super::Champion)> = run
        .islands
        .iter()
        .enumerate()
        .filter_map(|(at, island)| Some((at, island.champion.as_ref()?)))
        .collect();
    // The sort is stable: what is equal in both stays in the order of islands.
    order.sort_by(|(_, a), (_, b)| b.fitness.total_cmp(&a.fitness).then(a.generation.cmp(&b.generation)));
    if order.is_empty() {
        let text = "No state of an island is stored yet, so there is no champion to show.";
        return Section::new("champions", "Champions", vec![Block::Text(text.to_owned())]);
    }
    let rest = if order.len() > LISTED {
        format!("; the first {LISTED}, all are in champions.csv")
    } else {
        String::new()
    };
    let caption = format!("The best that each island has seen, the fittest first{rest}");
    let mut table = Table::new(caption, &["island", "fitness", "found in generation", "genome"]);
    for (island, champion) in order.into_iter().take(LISTED) {
        table.push(vec![
            island.to_string(),
            number(champion.fitness),
            count(champion.generation),
            code(&shortened(champion.genome.trim_end(), GENOME)),
        ]);
    }
    Section::new("champions", "Champions", vec![Block::Table(table)])
}

pub(super) fn what_was_run(run: &Run) -> Section {
    let mut facts = vec![
        ("run".to_owned(), code(&run.id)),
        ("problem".to_owned(), run.problem.clone()),
        ("seed".to_owned(), run.seed.to_string()),
        ("islands".to_owned(), format!("{}, {}", count(run.islands.len() as u64), run.topology.0)),
        ("algorithms".to_owned(), algorithms(run)),
        ("state".to_owned(), run.state.clone()),
        ("versions".to_owned(), named(&run.versions)),
    ];
    facts.extend(run.reason.iter().map(|reason| ("end".to_owned(), reason.clone())));
    let mut journal = Table::new("Events", &["when (UTC)", "what"]);
    run.events.iter().for_each(|(at, what)| journal.push(vec![at.clone(), what.clone()]));
    let config =
        Block::Code { title: "The experiment, every key of it".to_owned(), text: run.config.clone() };
    Section::new("experiment", "What was run", vec![Block::Facts(facts), config, Block::Table(journal)])
}

/// What identifies the run bit by bit: last, because few readers need it.
pub(super) fn digests(run: &Run) -> Section {
    let mut facts = vec![("experiment".to_owned(), code(&run.experiment_digest))];
    facts.extend(run.digest.iter().map(|digest| ("run".to_owned(), code(digest))));
    let text = "Two runs with the same run digest have the same results, bit by bit.".to_owned();
    Section::new("digests", "Digests", vec![Block::Text(text), Block::Facts(facts)])
}

fn algorithms(run: &Run) -> String {
    let mut counts: Vec<(&str, u64)> = vec![];
    for island in &run.islands {
        match counts.iter_mut().find(|(name, _)| *name == island.algorithm) {
            Some((_, count)) => *count += 1,
            None => counts.push((&island.algorithm, 1)),
        }
    }
    let texts: Vec<String> =
        counts.iter().map(|(name, islands)| format!("{name} ({})", count(*islands))).collect();
    texts.join(", ")
}

pub(super) fn next(run: &Run) -> Section {
    let again = "The same experiment and seed give the same run, with the same digest:".to_owned();
    let mut blocks = vec![Block::Text(again), Block::Commands(run.reproduce.clone())];
    if !run.next.is_empty() {
        blocks.push(Block::Text("What to do next:".to_owned()));
        blocks.extend(advice(run).into_iter().map(Block::Text));
        blocks.push(Block::Commands(run.next.clone()));
    }
    Section::new("next", "Reproduce and continue", blocks)
}

pub(super) fn epochs_data(run: &Run) -> Data {
    let columns = [
        "island",
        "epoch",
        "generation",
        "evaluations",
        "champion",
        "best",
        "mean",
        "deviation",
        "diversity",
        "unjudgeable",
        "worker",
        "milliseconds",
        "elapsed",
    ];
    let mut table = Table::new("", &columns);
    for (island, epoch) in
        run.islands.iter().enumerate().flat_map(|(at, i)| i.epochs.iter().map(move |e| (at, e)))
    {
        let row = epoch.statistics.rows.last();
        let of = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        table.push(vec![
            island.to_string(),
            epoch.number.to_string(),
            epoch.standing.generation.to_string(),
            epoch.standing.evaluations.to_string(),
            epoch.standing.best.to_string(),
            of(row.map(|row| row.best)),
            of(row.map(|row| row.mean)),
            of(row.map(|row| row.deviation)),
            epoch.statistics.diversity.to_string(),
            epoch.statistics.unjudgeable.to_string(),
            epoch.worker.clone(),
            epoch.milliseconds.to_string(),
            epoch.elapsed.to_string(),
        ]);
    }
    Data { name: "epochs", table }
}

pub(super) fn champions_data(run: &Run) -> Data {
    let mut table = Table::new("", &["island", "fitness", "generation", "genome"]);
    for (at, champion) in
        run.islands.iter().enumerate().filter_map(|(at, i)| Some((at, i.champion.as_ref()?)))
    {
        let genome = champion.genome.trim_end().to_owned();
        table.push(vec![
            at.to_string(),
            champion.fitness.to_string(),
            champion.generation.to_string(),
            genome,
        ]);
    }
    Data { name: "champions", table }
}
