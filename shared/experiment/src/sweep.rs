//! Sweeps: one experiment over all combinations of some keys' values, several times each.

use crate::document::{Diagnostic, Diagnostics, Document, KeyPath, MAX_DIAGNOSTICS, written};
use crate::experiment::Experiment;
use crate::file::{AxisKeys, SweepKeys, SweepReport};
use crate::multiple;
use crate::overlay::{lay_over, path};
use evolution::digest::Digest;
use problems::ProblemSpec;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The most cells a sweep may have.
pub const MAX_CELLS: u64 = 1_000_000;

/// A checked sweep. Its cells are made when they are asked for: there may be more than fit into memory.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What it is called.
    pub name: String,
    /// The keys that change, in the order of the file, and [`VARIANT`] if there are variants.
    pub keys: Vec<String>,
    /// How often each combination is run.
    pub repeats: u32,
    /// What is made of the results.
    pub report: Option<SweepReport>,
    /// The file it was made from, from which it can be read again.
    pub text: String,
    combinations: Combinations,
    digest: Digest,
}

/// What stands for the variants among a sweep's keys.
pub const VARIANT: &str = "variant";

/// All combinations of the axes' values and the variants.
#[derive(Clone, Debug)]
struct Combinations {
    /// The whole document, and what every combination has in common.
    document: Document,
    common: Document,
    axes: Vec<AxisKeys>,
    variants: BTreeMap<String, Json>,
}

/// One experiment of a sweep.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its place in the order of cells.
    pub number: u32,
    /// The values of the sweep's keys.
    pub values: Vec<Json>,
    /// Which repeat it is, counted from 0.
    pub repeat: u32,
    /// The experiment, with the seed of its repeat.
    pub experiment: Experiment,
}

impl Sweep {
    /// Checks every combination. The document's axes have been checked for their shape.
    pub(crate) fn check(document: &Document, keys: &SweepKeys) -> Result<Self, Diagnostics> {
        check_axes(document, keys)?;
        let common = document.without("sweep");
        let (axes, variants) = (keys.axis.clone(), keys.variants.clone());
        let combinations = Combinations { document: document.clone(), common, axes, variants };
        let mut names = vec![];
        let mut problems: Vec<Diagnostic> = vec![];
        for number in 0..combinations.len() {
            match combinations.experiment(number) {
                Ok(experiment) => {
                    add_new(&mut problems, check_report(document, keys, &experiment));
                    names.push(experiment.run_id());
                }
                Err(report) => add_new(&mut problems, report.problems),
            }
            if problems.len() >= MAX_DIAGNOSTICS {
                break;
            }
        }
        document.conclude(problems)?;
        names.push(keys.repeats.to_string());
        let variants = (!keys.variants.is_empty()).then(|| VARIANT.to_owned());
        Ok(Self {
            name: combinations.experiment(0)?.name().to_owned(),
            keys: keys.axis.iter().flat_map(|axis| axis.keys.clone()).chain(variants).collect(),
            repeats: keys.repeats,
            report: keys.report,
            text: document.to_toml(),
            combinations,
            digest: Digest::of_parts("atoll sweep", names.iter().map(String::as_bytes)),
        })
    }

    /// How many cells there are.
    pub fn len(&self) -> u32 {
        self.combinations.len() * self.repeats
    }

    /// Whether there are no cells; there always is one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cell by its number: repeats of one combination follow each other.
    pub fn cell(&self, number: u32) -> Cell {
        let (combination, repeat) = (number / self.repeats, number % self.repeats);
        let experiment = self.combinations.experiment(combination).expect("every combination was checked");
        let seed = experiment.seed().wrapping_add(u64::from(repeat)) & i64::MAX as u64;
        let values = self.values(number);
        Cell { number, values, repeat, experiment: experiment.with_seed(seed) }
    }

    /// The values of the sweep's keys in a cell.
    pub fn values(&self, number: u32) -> Vec<Json> {
        self.combinations.values(number / self.repeats)
    }

    /// The axes: the keys that change along each, and the values at each of its places. The variants are the last.
    pub fn axes(&self) -> Vec<(Vec<String>, Vec<Json>)> {
        let Combinations { axes, variants, .. } = &self.combinations;
        let axes = axes.iter().map(|axis| (axis.keys.clone(), axis.values.clone()));
        let names = variants.keys().map(|name| Json::from(name.as_str())).collect::<Vec<_>>();
        let variants = (!names.is_empty()).then(|| (vec![VARIANT.to_owned()], names));
        axes.chain(variants).collect()
    }

    /// The digest of all cells' experiments and budgets.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The name of its run.
    pub fn run_id(&self) -> String {
        format!("{}-{}", self.name, &self.digest.to_string()[..8])
    }
}

impl Combinations {
    /// How many values each axis has; the variants are the last axis.
    fn lengths(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.axes.iter().map(|axis| axis.values.len()).chain([self.variants.len().max(1)])
    }

    fn len(&self) -> u32 {
        self.lengths().map(|length| length as u32).product()
    }

    /// The place on each axis of a combination; those of the last axis change fastest.
    fn places(&self, number: u32) -> Vec<usize> {
        let mut rest = number as usize;
        let place = |length: usize| {
            let place = rest % length;
            rest /= length;
            place
        };
        let mut places: Vec<usize> = self.lengths().rev().map(place).collect();
        places.reverse();
        places
    }

    fn variant(&self, number: u32) -> Option<(&String, &Json)> {
        self.variants.iter().nth(self.places(number)[self.axes.len()])
    }

    /// The values of a combination, key by key.
    fn values(&self, number: u32) -> Vec<Json> {
        let axes = self.axes.iter().zip(self.places(number));
        let row = |(axis, place): (&AxisKeys, usize)| match &axis.values[place] {
            Json::Array(row) if axis.keys.len() > 1 => row.clone(),
            value => vec![value.clone()],
        };
        let variant = self.variant(number).map(|(name, _)| Json::from(name.as_str()));
        axes.flat_map(row).chain(variant).collect()
    }

    /// The experiment of a combination. It ends by what it has computed: by the clock it would end differently every
    /// time.
    fn experiment(&self, number: u32) -> Result<Experiment, Diagnostics> {
        let mut document = self.common.clone();
        for (at, (axis, place)) in self.axes.iter().zip(self.places(number)).enumerate() {
            for (column, key) in axis.keys.iter().enumerate() {
                let row = format!("sweep.axis[{at}].values[{place}]");
                let source = if axis.keys.len() > 1 { format!("{row}[{column}]") } else { row };
                document.graft_from(&path(key), &self.document, &path(&source))?;
            }
        }
        if let Some((name, keys)) = self.variant(number) {
            for (key, value) in keys.as_object().into_iter().flatten() {
                let (key, source) =
                    (written(key), format!("sweep.variants.{}.{}", written(name), written(key)));
                lay_over(&mut document, &self.document, &key, &source, value)?;
            }
        }
        multiple::work_out(&mut document)?;
        let experiment = crate::single(&document)?;
        if experiment.file().yardstick.is_some() {
            let message = "expected no yardstick in a sweep, whose cells keep no milestones; found one";
            document.conclude(vec![document.problem("yardstick", message, None)])?;
        }
        if experiment.budget().wall_time.is_some() {
            let message = "expected a budget by which every repetition ends alike, found `wall_time`";
            let help = Some("use `generations`, `evaluations`, `target_fitness` or `stagnation`");
            document.conclude(vec![document.problem("budget.wall_time", message, help)])?;
        }
        Ok(experiment)
    }
}

/// Adds problems that are not among them yet: what all combinations have in common is reported once.
fn add_new(problems: &mut Vec<Diagnostic>, more: Vec<Diagnostic>) {
    for problem in more {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

fn check_axes(document: &Document, keys: &SweepKeys) -> Result<(), Diagnostics> {
    let mut problems = vec![];
    let mut seen: Vec<&str> = vec![];
    for (number, axis) in keys.axis.iter().enumerate() {
        for (at, key) in axis.keys.iter().enumerate() {
            let place = format!("sweep.axis[{number}].keys[{at}]");
            if let Err(error) = key.parse::<KeyPath>() {
                problems.push(document.problem(&place, error.to_string(), None));
            } else if seen.contains(&key.as_str()) {
                let message = format!("expected each key on one axis, found `{key}` again");
                problems.push(document.problem(&place, message, None));
            }
            problems.extend(check_key(document, &place, key));
            seen.push(key);
        }
        for (place, row) in axis.values.iter().enumerate() {
            if axis.keys.len() > 1 && row.as_array().is_none_or(|row| row.len() != axis.keys.len()) {
                let message = format!("expected a row of {} values, found `{row}`", axis.keys.len());
                let place = format!("sweep.axis[{number}].values[{place}]");
                problems.push(document.problem(&place, message, None));
            }
        }
    }
    problems.extend(check_variants(document, &keys.variants));
    problems.extend(check_budget(document));
    let lengths =
        keys.axis.iter().map(|axis| axis.values.len() as u64).chain([keys.variants.len().max(1) as u64]);
    let cells = lengths.fold(u64::from(keys.repeats), u64::saturating_mul);
    if cells > MAX_CELLS {
        let message = format!("expected at most {MAX_CELLS} cells, found {cells}");
        problems.push(document.problem("sweep", message, None));
    }
    document.conclude(problems)
}

fn check_key(document: &Document, place: &str, key: &str) -> Option<Diagnostic> {
    let is_fixed = key.is_empty() || ["sweep", "study", "seed", "name"].contains(&top(key));
    let message = format!("expected a key of the experiment, found `{key}`");
    is_fixed.then(|| document.problem(place, message, Some("seeds are swept by `repeats`")))
}

fn check_variants(document: &Document, variants: &BTreeMap<String, Json>) -> Vec<Diagnostic> {
    let mut problems = vec![];
    for (name, keys) in variants {
        let place = format!("sweep.variants.{}", written(name));
        let Some(keys) = keys.as_object() else {
            let message = format!("expected a table with the keys of an experiment, found `{keys}`");
            problems.push(document.problem(&place, message, None));
            continue;
        };
        let check = |key: &String| check_key(document, &format!("{place}.{}", written(key)), key);
        problems.extend(keys.keys().filter_map(check));
    }
    problems
}

fn check_budget(document: &Document) -> Option<Diagnostic> {
    document.get(&path("budget.wall_time")).map(|_| {
        let message =
            "expected a budget that does not depend on the time for the cells of a sweep, found `wall_time`";
        document.problem("budget.wall_time", message, Some("use `generations` or `evaluations`"))
    })
}

/// What a report cannot be made of.
fn check_report(document: &Document, keys: &SweepKeys, experiment: &Experiment) -> Vec<Diagnostic> {
    let Some(SweepReport::MazeStudy) = keys.report else { return vec![] };
    let is_maze = matches!(experiment.file().problem, ProblemSpec::Maze(_));
    let message = "expected a sweep over `variants` of the problem `maze` for this report, found another";
    let is_right = is_maze && !keys.variants.is_empty();
    if is_right { vec![] } else { vec![document.problem("sweep.report", message, None)] }
}

fn top(key: &str) -> &str {
    key.split(['.', '[']).next().unwrap_or(key)
}
