//! Sweeps: one experiment over all combinations of some keys' values, several times each.

use crate::document::{Document, KeyPath, MAX_PROBLEMS, Problem, Report};
use crate::experiment::Experiment;
use crate::file::{AxisKeys, SweepKeys};
use evolution::digest::Digest;
use serde_json::Value as Json;

/// The most cells a sweep may have.
pub const MAX_CELLS: u64 = 1_000_000;

/// A checked sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What it is called.
    pub name: String,
    /// The keys that change, in the order of the file.
    pub keys: Vec<String>,
    /// How often each combination is run.
    pub repeats: u32,
    /// The file it was made from, from which it can be read again.
    pub text: String,
    points: Vec<Point>,
}

/// One combination of values.
#[derive(Clone, Debug)]
struct Point {
    values: Vec<Json>,
    experiment: Experiment,
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
    pub(crate) fn check(document: &Document, keys: &SweepKeys) -> Result<Self, Report> {
        check_axes(document, keys)?;
        let names: Vec<String> = keys.axis.iter().flat_map(|axis| axis.keys.clone()).collect();
        let mut documents = vec![(vec![], document.clone())];
        for (number, axis) in keys.axis.iter().enumerate() {
            documents = along(&documents, number, axis)?;
        }
        let mut points = Vec::with_capacity(documents.len());
        let mut problems: Vec<Problem> = vec![];
        for (values, document) in documents {
            match check_point(&document) {
                Ok(experiment) => points.push(Point { values, experiment }),
                Err(report) => {
                    for problem in report.problems {
                        if problems.len() < MAX_PROBLEMS && !problems.contains(&problem) {
                            problems.push(problem);
                        }
                    }
                }
            }
        }
        document.conclude(problems)?;
        let name = points.first().map_or(String::new(), |point| point.experiment.name().to_owned());
        let text = document.to_toml();
        Ok(Self { name, keys: names, repeats: keys.repeats, text, points })
    }

    /// How many cells there are.
    pub fn len(&self) -> u32 {
        self.points.len() as u32 * self.repeats
    }

    /// Whether there are no cells; there always is one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A cell by its number: repeats of one combination follow each other.
    pub fn cell(&self, number: u32) -> Cell {
        let Point { values, experiment } = &self.points[(number / self.repeats) as usize];
        let repeat = number % self.repeats;
        let seed = experiment.seed().wrapping_add(u64::from(repeat)) & i64::MAX as u64;
        Cell { number, values: values.clone(), repeat, experiment: experiment.with_seed(seed) }
    }

    /// The digest of all cells' experiments and budgets.
    pub fn digest(&self) -> Digest {
        let names: Vec<String> = self.points.iter().map(|point| point.experiment.run_id()).collect();
        let repeats = self.repeats.to_string();
        let parts = names.iter().chain([&repeats]).map(String::as_bytes);
        Digest::of_parts("atoll sweep", parts)
    }

    /// The name of its run.
    pub fn run_id(&self) -> String {
        format!("{}-{}", self.name, &self.digest().to_string()[..8])
    }
}

/// A cell ends by what it has computed: by the clock it would end differently every time.
fn check_point(document: &Document) -> Result<Experiment, Report> {
    let experiment = crate::single(document)?;
    if experiment.budget().wall_time.is_some() {
        let message = "expected a budget by which every repetition ends alike, found `wall_time`";
        let help = Some("use `generations`, `evaluations`, `target_fitness` or `stagnation`");
        document.conclude(vec![document.problem("budget.wall_time", message, help)])?;
    }
    Ok(experiment)
}

/// The documents with each value of one more axis set in them.
fn along(
    documents: &[(Vec<Json>, Document)],
    number: usize,
    axis: &AxisKeys,
) -> Result<Vec<(Vec<Json>, Document)>, Report> {
    let mut longer = Vec::with_capacity(documents.len() * axis.values.len());
    for (values, document) in documents {
        for (place, row) in axis.values.iter().enumerate() {
            let (mut values, mut document) = (values.clone(), document.clone());
            for (at, key) in axis.keys.iter().enumerate() {
                let row_of = format!("sweep.axis[{number}].values[{place}]");
                let source = if axis.keys.len() > 1 { format!("{row_of}[{at}]") } else { row_of };
                let path = |text: &str| text.parse::<KeyPath>().expect("keys were checked before");
                document.graft(&path(key), &path(&source))?;
                values.push(if axis.keys.len() > 1 { row[at].clone() } else { row.clone() });
            }
            longer.push((values, document));
        }
    }
    Ok(longer)
}

fn check_axes(document: &Document, keys: &SweepKeys) -> Result<(), Report> {
    let mut problems = vec![];
    let mut seen: Vec<&str> = vec![];
    for (number, axis) in keys.axis.iter().enumerate() {
        for (at, key) in axis.keys.iter().enumerate() {
            let place = format!("sweep.axis[{number}].keys[{at}]");
            if let Err(error) = key.parse::<KeyPath>() {
                problems.push(document.problem(&place, error.to_string(), None));
            } else if key.is_empty() || ["sweep", "study", "seed", "name"].contains(&top(key)) {
                let message = format!("expected a key of the experiment, found `{key}`");
                problems.push(document.problem(&place, message, Some("seeds are swept by `repeats`")));
            } else if seen.contains(&key.as_str()) {
                let message = format!("expected each key on one axis, found `{key}` again");
                problems.push(document.problem(&place, message, None));
            }
            seen.push(key);
        }
        for (place, row) in axis.values.iter().enumerate() {
            if axis.keys.len() > 1 && row.as_array().is_none_or(|row| row.len() != axis.keys.len()) {
                let message = format!("expected a row of {} values, found `{row}`", axis.keys.len());
                problems.push(document.problem(
                    &format!("sweep.axis[{number}].values[{place}]"),
                    message,
                    None,
                ));
            }
        }
    }
    let lengths = keys.axis.iter().map(|axis| axis.values.len() as u64);
    let cells = lengths.fold(u64::from(keys.repeats), u64::saturating_mul);
    if cells > MAX_CELLS {
        let message = format!("expected at most {MAX_CELLS} cells, found {cells}");
        problems.push(document.problem("sweep", message, None));
    }
    document.conclude(problems)
}

fn top(key: &str) -> &str {
    key.split(['.', '[']).next().unwrap_or(key)
}
