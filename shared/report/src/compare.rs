//! Several runs side by side.

use crate::chart::{Lines, Series, Size, Stretch};
use crate::document::{Block, Data, Document, Figure, Section, Table, Tile};
use crate::run::{Run, at_generations};
use crate::text::{code, count, counted, number, shortened, time};
use std::ops::Deref;

/// Points of a curve, and rows of its table.
const POINTS: usize = 240;
const ROWS: usize = 25;

/// The report of several runs.
pub fn document(runs: &[Run], made: String) -> Document {
    let (study, runs) = named(runs);
    let runs = runs.as_slice();
    let names: Vec<&str> = runs.iter().map(|run| run.name).collect();
    let names = names.join(" · ");
    let mut sections = vec![];
    let damaged: Vec<String> = runs
        .iter()
        .filter(|run| !run.damage.is_empty())
        .map(|run| {
            let objects = counted(run.damage.len() as u64, "object");
            format!("{objects} of {} could not be read.", code(run.name))
        })
        .collect();
    if !damaged.is_empty() {
        sections.push(Section::new("missing", "What is missing", vec![Block::Notice(damaged)]));
    }
    sections.push(curves(runs));
    sections.push(Section::new("figures", "Side by side", vec![Block::Table(figures(runs))]));
    sections.push(Section::new("differences", "Different settings", vec![differences(runs)]));
    Document {
        title: study.map_or(names.clone(), |study| format!("{study}: {names}")),
        headline: headline(runs),
        tiles: runs.iter().map(tile).collect(),
        sections,
        data: vec![data(runs)],
        made,
        refresh: None,
    }
}

/// A run with its name on the page.
#[derive(Clone, Copy)]
struct Named<'a> {
    name: &'a str,
    run: &'a Run,
}

impl Deref for Named<'_> {
    type Target = Run;

    fn deref(&self) -> &Run {
        self.run
    }
}

/// Runs by their ids; experiments of one study (`STUDY.PART`) by the names of the parts, beside the id of the study.
fn named(runs: &[Run]) -> (Option<&str>, Vec<Named<'_>>) {
    let split: Option<Vec<(&str, &str)>> = runs.iter().map(|run| run.id.split_once('.')).collect();
    match split {
        Some(parts) if parts.windows(2).all(|pair| pair[0].0 == pair[1].0) => {
            let named = runs.iter().zip(&parts).map(|(run, &(_, name))| Named { name, run });
            (parts.first().map(|part| part.0), named.collect())
        }
        _ => (None, runs.iter().map(|run| Named { name: &run.id, run }).collect()),
    }
}

fn headline(runs: &[Named<'_>]) -> String {
    let is_same =
        |pair: &[Named<'_>]| pair[0].problem == pair[1].problem && posed(pair[0].run).eq(posed(pair[1].run));
    if !runs.windows(2).all(is_same) {
        return "These runs solve different problems: their fitness cannot be compared.".to_owned();
    }
    if runs.iter().any(|run| !run.absolute) {
        return "Fitness is relative in these runs: let their champions play each other to compare them."
            .to_owned();
    }
    let mut order: Vec<&Named<'_>> = runs.iter().filter(|run| run.best().is_some()).collect();
    order.sort_by(|one, other| best(other).total_cmp(&best(one)));
    match order.as_slice() {
        [first, second, ..] if best(first) > best(second) => {
            format!(
                "{} is ahead: {} against {}.",
                code(first.name),
                number(best(first)),
                number(best(second))
            )
        }
        [only] => format!("{} has the best fitness {}.", code(only.name), number(best(only))),
        [first, ..] => {
            let level = order.iter().take_while(|run| best(run) >= best(first));
            let names: Vec<String> = level.map(|run| code(run.name)).collect();
            format!("{} have the same best fitness, {}.", names.join(" and "), number(best(first)))
        }
        [] => "Nothing is stored of them yet.".to_owned(),
    }
}

/// The keys that pose a run's problem.
fn posed(run: &Run) -> impl Iterator<Item = &(String, String)> {
    run.keys.iter().filter(|(key, _)| key.starts_with("problem."))
}

fn best(run: &Run) -> f64 {
    run.best().map_or(f64::NEG_INFINITY, |(_, fitness)| fitness)
}

fn tile(run: &Named<'_>) -> Tile {
    let note = format!("{}, {}", counted(run.generations(), "generation"), run.state);
    Tile::new(run.name, number(best(run)), note)
}

/// The best and the mean fitness of a run at some generation, and its evaluations until then.
struct Moment {
    generation: u64,
    evaluations: f64,
    best: f64,
    mean: f64,
}

fn history(run: &Run, most: usize) -> Vec<Moment> {
    at_generations(run, most)
        .into_iter()
        .filter(|(_, rows)| !rows.is_empty())
        .map(|(generation, rows)| Moment {
            generation,
            evaluations: rows.iter().map(|row| row.evaluations as f64).sum(),
            best: rows.iter().map(|row| row.best).fold(f64::NEG_INFINITY, f64::max),
            mean: rows.iter().map(|row| row.mean).sum::<f64>() / rows.len() as f64,
        })
        .collect()
}

/// Where a run found its best: generation, evaluations of all islands until then, fitness.
fn found(run: &Run) -> Option<Moment> {
    let (island, _) = run.best()?;
    let champion = run.islands.get(island)?.champion.as_ref()?;
    let moment =
        history(run, usize::MAX).into_iter().find(|moment| moment.generation >= champion.generation)?;
    Some(Moment { generation: champion.generation, best: champion.fitness, ..moment })
}

fn curves(runs: &[Named<'_>]) -> Section {
    let histories: Vec<Vec<Moment>> = runs.iter().map(|run| history(run, POINTS)).collect();
    let bests: Vec<Option<Moment>> = runs.iter().map(|run| found(run)).collect();
    let chart = |name, title, across, up, has_best, point: fn(&Moment) -> (f64, f64)| {
        let series = runs.iter().zip(&histories).zip(&bests).enumerate();
        let series = series.map(|(at, ((run, history), best))| Series {
            ends: true,
            found: best.as_ref().filter(|_| has_best).map(point),
            ..Series::curve(shortened(run.name, 50), at, history.iter().map(point).collect())
        });
        let chart = Lines {
            name,
            title,
            description: "A curve for each run.",
            across,
            up,
            stretch: Stretch::Linear,
            size: Size::Wide,
            series: series.collect(),
            reach: [vec![], vec![]],
        };
        chart.draw()
    };
    let figure = |picture, caption: &str, numbers| {
        Block::Figure(Figure { picture, caption: caption.to_owned(), numbers })
    };
    let best = chart("best", "Best fitness over the generations", "generation", "fitness", true, |moment| {
        (moment.generation as f64, moment.best)
    });
    let cost =
        chart("cost", "Best fitness for the evaluations spent", "evaluations", "fitness", true, |moment| {
            (moment.evaluations, moment.best)
        });
    let mean = chart("mean", "Mean fitness over the generations", "generation", "fitness", false, |moment| {
        (moment.generation as f64, moment.mean)
    });
    Section::new(
        "curves",
        "Curves",
        vec![
            figure(
                best,
                "The best of all islands' populations. The number is the last value.",
                Some(table(runs)),
            ),
            figure(cost, "The same by evaluations, which are the cost of a search.", None),
            figure(mean, "The mean of all islands.", None),
        ],
    )
}

fn table(runs: &[Named<'_>]) -> Table {
    let names = runs.iter().map(|run| code(run.name));
    let columns = std::iter::once("generation".to_owned()).chain(names).collect();
    let histories: Vec<Vec<Moment>> = runs.iter().map(|run| history(run, ROWS)).collect();
    let mut generations: Vec<u64> = histories.iter().flatten().map(|moment| moment.generation).collect();
    generations.sort_unstable();
    generations.dedup();
    let at = |history: &Vec<Moment>, generation: u64| {
        history
            .iter()
            .find(|moment| moment.generation == generation)
            .map_or("–".to_owned(), |m| number(m.best))
    };
    let row = |&generation: &u64| {
        std::iter::once(count(generation))
            .chain(histories.iter().map(|history| at(history, generation)))
            .collect()
    };
    Table { caption: "Best fitness".to_owned(), columns, rows: generations.iter().map(row).collect() }
}

fn figures(runs: &[Named<'_>]) -> Table {
    type Fact = (&'static str, fn(&Run) -> String);
    let facts: [Fact; 12] = [
        ("run", |run| code(&run.id)),
        ("problem", |run| run.problem.clone()),
        ("state", |run| run.state.clone()),
        ("reason of the end", |run| run.reason.clone().unwrap_or("–".to_owned())),
        ("best fitness", |run| number(best(run))),
        ("island of the best", |run| run.best().map_or("–".to_owned(), |(island, _)| island.to_string())),
        ("generations", |run| count(run.generations())),
        ("evaluations", |run| count(run.evaluations())),
        ("time", |run| time(run.elapsed)),
        ("islands", |run| format!("{}, {}", run.islands.len(), run.topology.0)),
        ("seed", |run| run.seed.to_string()),
        ("digest", |run| run.digest.as_ref().map_or("–".to_owned(), |digest| code(&shortened(digest, 16)))),
    ];
    let names = runs.iter().map(|run| code(run.name));
    let columns = std::iter::once("figure".to_owned()).chain(names).collect();
    let row = |(name, fact): &Fact| {
        std::iter::once((*name).to_owned()).chain(runs.iter().map(|run| fact(run))).collect()
    };
    Table { caption: "Results".to_owned(), columns, rows: facts.iter().map(row).collect() }
}

/// The keys whose values are not the same in all runs.
fn differences(runs: &[Named<'_>]) -> Block {
    let mut keys: Vec<&str> =
        runs.iter().flat_map(|run| &run.run.keys).map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    let value = |run: &Run, key: &str| {
        run.keys
            .iter()
            .find(|(name, _)| name == key)
            .map_or("–".to_owned(), |(_, value)| code(&shortened(value, 60)))
    };
    let mut rows = vec![];
    for key in keys {
        let values: Vec<String> = runs.iter().map(|run| value(run, key)).collect();
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            rows.push(std::iter::once(code(key)).chain(values).collect());
        }
    }
    if rows.is_empty() {
        return Block::Text("Nothing: all keys have the same values.".to_owned());
    }
    let names = runs.iter().map(|run| code(run.name));
    let columns = std::iter::once("key".to_owned()).chain(names).collect();
    Block::Table(Table { caption: "Keys with different values".to_owned(), columns, rows })
}

fn data(runs: &[Named<'_>]) -> Data {
    let mut table = Table::new("", &["run", "generation", "evaluations", "best", "mean"]);
    for run in runs {
        for moment in history(run, usize::MAX) {
            table.push(vec![
                run.id.clone(),
                moment.generation.to_string(),
                moment.evaluations.to_string(),
                moment.best.to_string(),
                moment.mean.to_string(),
            ]);
        }
    }
    Data { name: "curves", table }
}
