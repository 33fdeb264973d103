//! Reads a sweep from a store for its report.

use super::{Report, found, made, maze};
use crate::failure::Failure;
use crate::maze_study;
use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult, Evolved};
use experiment::Sweep;
use experiment::file::SweepReport;
use problems::{Maze, ProblemSpec};
use report::chart::Picture;
use report::sweep::{Axis, Cell};
use report::text::number;
use report::{Block, Gallery, Section, Step};
use run::RunId;
use run::jobs::StoredJobs;
use run::{history, listing};
use serde_json::Value;
use std::collections::BTreeMap;
use store::Store;

/// Paths that are drawn.
const SHOWN: usize = 12;

pub(super) async fn report(store: &Store, run: &RunId, plan: &Sweep, flag: &str) -> Result<Report, Failure> {
    let (cells, damage, state) = read_cells(store, run, plan).await?;
    let is_final = cells.len() == plan.len() as usize;
    let digest = digest(plan, &cells);
    let sweep = report::sweep::Sweep {
        id: run.to_string(),
        problem: history::word(&serde_json::json!(plan.cell(0).experiment.file().problem)),
        digest,
        repeats: plan.repeats,
        axes: plan.axes().into_iter().map(axis).collect(),
        points: points(plan, &cells),
        config: plan.text.clone(),
        next: vec![
            Step::new(
                "In a new store, from `experiment.toml` next to this report:",
                "atoll run experiment.toml --store again",
            ),
            Step::new("Check every cell, and compute some again:", format!("atoll verify {run}{flag}")),
        ],
        damage,
    };
    let document = report::sweep::document(&sweep, shown(plan, &cells, is_final), made());
    let files = vec![("experiment.toml".to_owned(), sweep.config.clone())];
    Ok(Report { object: object(&sweep, &state), files, is_final, document })
}

/// The digest of a sweep whose cells are all there.
fn digest(plan: &Sweep, cells: &BTreeMap<u32, Evolved>) -> Option<String> {
    let mut progress = CellProgress::new(CellPlan::Sweep(Box::new(plan.clone())));
    for (number, cell) in cells {
        progress.add(*number, CellResult::Evolved(cell.clone()));
    }
    progress.digest().map(|digest| digest.to_string())
}

/// The cells that are done and whole, and what is wrong with the others.
async fn read_cells(
    store: &Store,
    run: &RunId,
    plan: &Sweep,
) -> Result<(BTreeMap<u32, Evolved>, Vec<String>, String), Failure> {
    let stored = StoredJobs::read(store, run, CellPlan::Sweep(Box::new(plan.clone()))).await?;
    let evolved = stored.progress.done().iter().filter_map(|(number, result)| match result {
        CellResult::Evolved(evolved) => Some((*number, evolved.clone())),
        CellResult::Played(_) => None,
    });
    let state = listing::state(store, run, &stored.recorded.status).0;
    Ok((evolved.collect(), stored.damage.iter().map(ToString::to_string).collect(), state))
}

fn axis((keys, values): (Vec<String>, Vec<Value>)) -> Axis {
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let label = |value: &Value| match value {
        Value::Array(row) => row.iter().map(text).collect::<Vec<_>>().join(", "),
        other => text(other),
    };
    let cells = |value: &Value| match value {
        Value::Array(row) if keys.len() > 1 => row.iter().map(text).collect(),
        other => vec![label(other)],
    };
    Axis { labels: values.iter().map(label).collect(), values: values.iter().map(cells).collect(), keys }
}

/// The results of the repeats of each combination: repeats differ by their seeds alone.
fn points(plan: &Sweep, cells: &BTreeMap<u32, Evolved>) -> Vec<Vec<Cell>> {
    let cells_of = |combination: u32| {
        let first = combination * plan.repeats;
        let numbers = first..first + plan.repeats;
        let mut done = cells.range(numbers).peekable();
        let seed = done.peek().map_or(0, |_| plan.cell(first).experiment.seed());
        let cell = |(number, result): (&u32, &Evolved)| {
            let Evolved { best, generations, evaluations, .. } = *result;
            let repeat = number - first;
            let seed = seed.wrapping_add(repeat.into()) & i64::MAX as u64;
            Cell { repeat, seed, best, generations, evaluations }
        };
        done.map(cell).collect()
    };
    (0..plan.len() / plan.repeats).map(cells_of).collect()
}

/// What the problem of a sweep has to show.
fn shown(plan: &Sweep, cells: &BTreeMap<u32, Evolved>, is_final: bool) -> Vec<Section> {
    let mut sections = vec![];
    if is_final && plan.report == Some(SweepReport::MazeStudy) {
        let results: Vec<Evolved> = cells.values().cloned().collect();
        sections.push(Section::new("study", "The study", maze_study::blocks(plan, &results)));
    }
    let paths = paths(plan, cells);
    if !paths.is_empty() {
        let gallery = Gallery {
            title: "The best paths".to_owned(),
            caption: "The best of all repeats and variants, on each board and for each number of turns."
                .to_owned(),
            legend: vec![],
            pictures: paths,
            numbers: None,
            folded: false,
        };
        sections.push(found("The best paths", Ok(vec![Block::Gallery(gallery)])));
    }
    sections
}

/// The best path on each board, the longest games first, up to the number that is shown.
fn paths(plan: &Sweep, cells: &BTreeMap<u32, Evolved>) -> Vec<(Picture, String)> {
    let mut best = best_paths(plan, cells);
    best.sort_by_key(|(spec, _)| std::cmp::Reverse(spec.turns));
    let draw = |(spec, cell): &(Maze, &Evolved)| {
        let svg = spec.board().ok()?.to_svg(&maze::walk(spec, &cell.genome)).ok()?;
        let title = format!("{} turns on {} × {}", spec.turns, spec.width, spec.height);
        let below = format!("{title}: {} {}", number(cell.best), maze::unit(&spec.goal));
        Some((Picture::sealed("walk", &title, &svg, 340.0), below))
    };
    best.iter().filter_map(draw).take(SHOWN).collect()
}

/// The best cell of each game: a board and a number of turns.
fn best_paths<'a>(plan: &Sweep, cells: &'a BTreeMap<u32, Evolved>) -> Vec<(Maze, &'a Evolved)> {
    let mut best: Vec<(Maze, &Evolved)> = vec![];
    for first in (0..plan.len()).step_by(plan.repeats as usize) {
        let repeats = cells.range(first..first + plan.repeats).map(|(_, cell)| cell);
        let Some(cell) = repeats.reduce(|best, cell| if cell.best > best.best { cell } else { best }) else {
            continue;
        };
        let experiment = plan.cell(first).experiment;
        let ProblemSpec::Maze(spec) = &experiment.file().problem else { continue };
        match best.iter_mut().find(|(other, _)| is_same_game(other, spec)) {
            Some((_, known)) if cell.best > known.best => *known = cell,
            Some(_) => {}
            None => best.push((spec.clone(), cell)),
        }
    }
    best
}

fn is_same_game(one: &Maze, other: &Maze) -> bool {
    let game =
        |maze: &Maze| (maze.width, maze.height, maze.turns, maze.board_seed, maze.walls, maze.board.clone());
    game(one) == game(other) && one.goal == other.goal
}

fn object(sweep: &report::sweep::Sweep, state: &str) -> Value {
    let cells = || sweep.points.iter().flatten();
    let best = cells().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max);
    let state = match &sweep.digest {
        _ if !sweep.damage.is_empty() => "damaged",
        Some(_) => "finished",
        None => state,
    };
    serde_json::json!({
        "run": sweep.id, "problem": sweep.problem, "digest": sweep.digest,
        "state": state,
        "combinations": sweep.points.len(), "repeats": sweep.repeats, "cells": cells().count(),
        "best_fitness": crate::summary::finite(best), "damage": sweep.damage,
    })
}
