//! Sweeps: one experiment over all combinations of some keys' values, several times each.

use crate::document::{Document, KeyPath, MAX_PROBLEMS, Problem, Report};
use crate::experiment::Experiment;
use crate::file::{AxisKeys, SweepKeys};
use evolution::digest::Digest;
use serde_json::Value as Json;

/// The most cells a sweep may have.
pub const MAX_CELLS: u64 = 1_000_000;

/// A checked sweep. Its cells are made when they are asked for: there may be more than fit into memory.
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
    combinations: Combinations,
    digest: Digest,
}

/// All combinations of the axes' values.
#[derive(Clone, Debug)]
struct Combinations {
    /// The whole document, and what every combination has in common.
    document: Document,
    common: Document,
    axes: Vec<AxisKeys>,
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
        let common = document.without("sweep");
        let combinations = Combinations { document: document.clone(), common, axes: keys.axis.clone() };
        let mut names = vec![];
        let mut problems: Vec<Problem> = vec![];
        for number in 0..combinations.len() {
            match combinations.experiment(number) {
                Ok(experiment) => names.push(experiment.run_id()),
                Err(report) => add_new(&mut problems, report.problems),
            }
            if problems.len() >= MAX_PROBLEMS {
                break;
            }
        }
        document.conclude(problems)?;
        names.push(keys.repeats.to_string());
        Ok(Self {
            name: combinations.experiment(0)?.name().to_owned(),
            keys: keys.axis.iter().flat_map(|axis| axis.keys.clone()).collect(),
            repeats: keys.repeats,
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
        let values = self.combinations.values(combination);
        Cell { number, values, repeat, experiment: experiment.with_seed(seed) }
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
    fn len(&self) -> u32 {
        self.axes.iter().map(|axis| axis.values.len() as u32).product()
    }

    /// The place on each axis of a combination; those of the last axis change fastest.
    fn places(&self, number: u32) -> Vec<usize> {
        let mut rest = number as usize;
        let place = |axis: &AxisKeys| {
            let place = rest % axis.values.len();
            rest /= axis.values.len();
            place
        };
        let mut places: Vec<usize> = self.axes.iter().rev().map(place).collect();
        places.reverse();
        places
    }

    /// The values of a combination, key by key.
    fn values(&self, number: u32) -> Vec<Json> {
        let axes = self.axes.iter().zip(self.places(number));
        let row = |(axis, place): (&AxisKeys, usize)| match &axis.values[place] {
            Json::Array(row) if axis.keys.len() > 1 => row.clone(),
            value => vec![value.clone()],
        };
        axes.flat_map(row).collect()
    }

    /// The experiment of a combination. It ends by what it has computed: by the clock it would end differently every
    /// time.
    fn experiment(&self, number: u32) -> Result<Experiment, Report> {
        let mut document = self.common.clone();
        for (at, (axis, place)) in self.axes.iter().zip(self.places(number)).enumerate() {
            for (column, key) in axis.keys.iter().enumerate() {
                let row = format!("sweep.axis[{at}].values[{place}]");
                let source = if axis.keys.len() > 1 { format!("{row}[{column}]") } else { row };
                let path = |text: &str| text.parse::<KeyPath>().expect("keys were checked before");
                document.graft_from(&path(key), &self.document, &path(&source))?;
            }
        }
        let experiment = crate::single(&document)?;
        if experiment.budget().wall_time.is_some() {
            let message = "expected a budget by which every repetition ends alike, found `wall_time`";
            let help = Some("use `generations`, `evaluations`, `target_fitness` or `stagnation`");
            document.conclude(vec![document.problem("budget.wall_time", message, help)])?;
        }
        Ok(experiment)
    }
}

/// Adds problems that are not among them yet: what all combinations have in common is told once.
fn add_new(problems: &mut Vec<Problem>, more: Vec<Problem>) {
    for problem in more {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
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
