//! The report of a sweep: a table of all combinations, and small multiples over its axes.

use crate::chart::{Lines, Range, Ranges, Series, Size, Stretch};
use crate::document::{Block, Data, Document, Figure, Gallery, Section, Step, Table, Tile};
use crate::ranks::{holm, rank_sum_chance, ranks};
use crate::text::{code, count, number, rounded, shortened, times};

/// The data of a report of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Its name.
    pub id: String,
    /// What is evolved, in a word.
    pub problem: String,
    /// Its digest, if all cells are done.
    pub digest: Option<String>,
    /// How often each combination is run.
    pub repeats: u32,
    /// Its axes; the values of the last change fastest.
    pub axes: Vec<Axis>,
    /// The results of the repeats of each combination; some may be missing.
    pub points: Vec<Vec<Cell>>,
    /// The sweep as it can be run again.
    pub config: String,
    /// How to run it again, and what to do next.
    pub next: Vec<Step>,
    /// What could not be read.
    pub damage: Vec<String>,
}

/// One axis of a sweep.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The keys that change along it.
    pub keys: Vec<String>,
    /// What is written at each of its places.
    pub labels: Vec<String>,
    /// The value of each key at each of its places.
    pub values: Vec<Vec<String>>,
}

/// The result of one cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Which repeat it is.
    pub repeat: u32,
    /// Its seed.
    pub seed: u64,
    /// Its best fitness.
    pub best: f64,
    /// Its generations.
    pub generations: u64,
    /// Its evaluations.
    pub evaluations: u64,
}

/// Panels that are shown, curves of each, and rows of the table.
const PANELS: usize = 60;
const CURVES: usize = 16;
const ROWS: usize = 1000;
/// Boxes that are drawn.
const BOXES: usize = 30;
/// Lines of what is missing.
const LINES: usize = 20;

/// The mean and the standard deviation of what the repeats of a combination reached.
fn mean(cells: &[Cell]) -> (f64, f64) {
    let values: Vec<f64> = cells.iter().map(|cell| cell.best).filter(|best| best.is_finite()).collect();
    let size = values.len() as f64;
    let mean = values.iter().sum::<f64>() / size;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (size - 1.0).max(1.0)).sqrt())
}

impl Sweep {
    /// The place on each axis of a combination.
    fn places(&self, mut point: usize) -> Vec<usize> {
        let mut places = vec![0; self.axes.len()];
        for (place, axis) in places.iter_mut().zip(&self.axes).rev() {
            *place = point % axis.labels.len().max(1);
            point /= axis.labels.len().max(1);
        }
        places
    }

    fn point(&self, places: &[usize]) -> &[Cell] {
        let at = places.iter().zip(&self.axes).fold(0, |at, (place, axis)| at * axis.labels.len() + place);
        self.points.get(at).map_or(&[], Vec::as_slice)
    }

    /// All cells there will be.
    fn size(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.repeats)
    }

    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.points.iter().flatten()
    }
}

/// The report of a sweep; what its problem has to show comes first.
pub fn document(sweep: &Sweep, shown: Vec<Section>, made: String) -> Document {
    let mut sections = vec![];
    if !sweep.damage.is_empty() {
        let lines = sweep.damage.iter().take(LINES).cloned().collect();
        sections.push(Section::new("missing", "What is missing", vec![Block::Notice(lines)]));
    }
    sections.extend(shown);
    sections.extend(ranking(sweep));
    sections.extend(multiples(sweep));
    sections.push(Section::new("table", "All combinations", vec![Block::Table(table(sweep))]));
    sections.push(what_was_run(sweep));
    sections.push(Section::new("next", "Reproduce and continue", vec![Block::Commands(sweep.next.clone())]));
    let facts = sweep.digest.iter().map(|digest| ("sweep".to_owned(), code(digest))).collect::<Vec<_>>();
    if !facts.is_empty() {
        sections.push(Section::new("digests", "Digests", vec![Block::Facts(facts)]));
    }
    Document {
        title: format!("{} · {}", sweep.id, sweep.problem),
        headline: headline(sweep),
        tiles: tiles(sweep),
        sections,
        data: vec![data(sweep)],
        made,
        refresh: None,
    }
}

/// The best combination first, then how far the sweep is.
fn headline(sweep: &Sweep) -> String {
    let (done, all) = (sweep.cells().count() as u64, sweep.size());
    let state = if done == all {
        "The sweep is finished".to_owned()
    } else {
        format!("{} of {} cells are done", count(done), count(all))
    };
    let combinations = count(sweep.points.len() as u64);
    let size = format!("{state}: {combinations} combinations, {} each.", times(u64::from(sweep.repeats)));
    let order = order(sweep);
    let Some(&best) = order.first() else { return size };
    let named = |point: usize| {
        let keys = sweep.axes.iter().flat_map(|axis| &axis.keys);
        let parts: Vec<String> = keys
            .zip(key_values(sweep, point))
            .map(|(key, value)| code(&format!("{key} = {value}")))
            .collect();
        parts.join(", ")
    };
    let reached = |point: usize| mean(&sweep.points[point]).0;
    let equal =
        order.iter().filter(|&&point| reached(point).total_cmp(&reached(best)).is_eq()).count() as u64;
    let others = match (equal - 1, order.get(1)) {
        (0, Some(&second)) => format!("; the next best combination reaches {}", rounded(reached(second), 6)),
        (0, None) => String::new(),
        (1, _) => "; 1 other combination reaches the same".to_owned(),
        (more, _) => format!("; {} other combinations reach the same", count(more)),
    };
    let posing: Vec<String> = sweep
        .axes
        .iter()
        .flat_map(|axis| &axis.keys)
        .filter(|key| key.starts_with("problem."))
        .map(|key| code(key))
        .collect();
    let caution = if posing.is_empty() {
        String::new()
    } else {
        format!(" Compare fitness only between combinations with the same {}.", posing.join(", "))
    };
    format!(
        "The highest mean fitness is {}, with {}{others}. {size}{caution}",
        rounded(reached(best), 6),
        named(best)
    )
}

fn tiles(sweep: &Sweep) -> Vec<Tile> {
    let best = sweep.cells().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max);
    let evaluations = sweep.cells().map(|cell| cell.evaluations).sum();
    vec![
        Tile::new("Cells", count(sweep.cells().count() as u64), format!("of {}", count(sweep.size()))),
        Tile::new("Best fitness", number(best), "of all cells"),
        Tile::new("Evaluations", count(evaluations), ""),
    ]
}

fn what_was_run(sweep: &Sweep) -> Section {
    let config = Block::Code { title: "The sweep, as it was run".to_owned(), text: sweep.config.clone() };
    let facts = vec![("run".to_owned(), code(&sweep.id))];
    Section::new("experiment", "What was run", vec![Block::Facts(facts), config])
}

/// The keys of all axes, a column each.
fn key_columns(sweep: &Sweep) -> impl Iterator<Item = String> {
    sweep.axes.iter().flat_map(|axis| axis.keys.iter().map(|key| code(key)))
}

/// The values of these keys at a combination.
fn key_values(sweep: &Sweep, point: usize) -> impl Iterator<Item = String> {
    let places = sweep.places(point).into_iter().zip(&sweep.axes);
    places.flat_map(|(place, axis)| axis.values[place].iter().cloned())
}

fn table(sweep: &Sweep) -> Table {
    let columns =
        key_columns(sweep).chain(["mean", "deviation", "best", "repeats"].map(str::to_owned)).collect();
    let rest = if sweep.points.len() > ROWS {
        format!("; the first {ROWS}, all are in cells.csv")
    } else {
        String::new()
    };
    let row = |(at, cells): (usize, &Vec<Cell>)| {
        let (mean, deviation) = mean(cells);
        let best = cells.iter().map(|cell| cell.best).fold(f64::NEG_INFINITY, f64::max);
        let results = [rounded(mean, 6), rounded(deviation, 3), number(best), cells.len().to_string()];
        key_values(sweep, at).chain(results).collect()
    };
    let rows = sweep.points.iter().enumerate().take(ROWS).map(row).collect();
    Table { caption: format!("Best fitness of each combination over its repeats{rest}"), columns, rows }
}

/// Combinations from the best to the worst, with a test of each against the best.
fn ranking(sweep: &Sweep) -> Option<Section> {
    let order = order(sweep);
    let &best = order.first()?;
    if order.len() < 2 {
        return None;
    }
    let finite = |point: usize| {
        let values = sweep.points[point].iter().map(|cell| cell.best);
        values.filter(|value| value.is_finite()).collect::<Vec<f64>>()
    };
    let chances: Vec<f64> =
        order[1..].iter().map(|&point| rank_sum_chance(&finite(best), &finite(point))).collect();
    let adjusted = holm(&chances);
    let ranks = mean_ranks(sweep);
    let mut table = Table {
        caption: "From the highest mean to the lowest. Mean rank: over the repeats, 1 is the best. p: chance of such a \
                  difference from the first row if both were alike (Mann-Whitney, two-sided, adjusted by Holm)"
            .to_owned(),
        columns: ["rank".to_owned()]
            .into_iter()
            .chain(key_columns(sweep))
            .chain(["mean", "mean rank", "p against the first"].map(str::to_owned))
            .collect(),
        rows: vec![],
    };
    for (at, &point) in order.iter().enumerate().take(ROWS) {
        let chance = at.checked_sub(1).map_or("–".to_owned(), |before| match adjusted[before] {
            small if small < 0.0005 => "< 0.001".to_owned(),
            chance => format!("{chance:.3}"),
        });
        let results = [rounded(mean(&sweep.points[point]).0, 6), format!("{:.2}", ranks[point]), chance];
        table.push(
            [(at + 1).to_string()].into_iter().chain(key_values(sweep, point)).chain(results).collect(),
        );
    }
    let boxes = order.iter().take(BOXES).filter_map(|&point| {
        let label =
            sweep.places(point).into_iter().zip(&sweep.axes).map(|(place, axis)| axis.labels[place].clone());
        Range::of_values(
            label.collect::<Vec<_>>().join(", "),
            sweep.points[point].iter().map(|cell| cell.best),
        )
    });
    let chart = Ranges {
        name: "boxes",
        title: "Best fitness of the repeats",
        description: "A box for each combination, the best above: the middle half of its repeats, with the median.",
        across: "best fitness",
        rows: boxes.collect(),
    };
    let rest = if order.len() > BOXES { format!(" The first {BOXES} are shown.") } else { String::new() };
    let keys: Vec<String> = key_columns(sweep).collect();
    let caption = format!(
        "A row for each combination of {}. Boxes hold the middle half of the repeats, lines reach from the lowest to the highest; the mark is the median.{rest}",
        keys.join(", ")
    );
    let figure = Figure { picture: chart.draw(), caption, numbers: None };
    Some(Section::new("ranking", "Ranking", vec![Block::Figure(figure), Block::Table(table)]))
}

/// The combinations that have results, the highest mean first.
fn order(sweep: &Sweep) -> Vec<usize> {
    let means: Vec<f64> = sweep.points.iter().map(|cells| mean(cells).0).collect();
    let mut order: Vec<usize> = (0..means.len()).filter(|&point| means[point].is_finite()).collect();
    order.sort_by(|&one, &other| means[other].total_cmp(&means[one]));
    order
}

/// The mean rank of each combination: those of one repeat have the same seed and are ranked together.
fn mean_ranks(sweep: &Sweep) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); sweep.points.len()];
    for repeat in 0..sweep.repeats {
        let found = sweep.points.iter().enumerate().filter_map(|(point, cells)| {
            let cell = cells.iter().find(|cell| cell.repeat == repeat)?;
            cell.best.is_finite().then_some((-cell.best, point))
        });
        let found: Vec<(f64, usize)> = found.collect();
        let ranks = ranks(&found.iter().map(|(value, _)| *value).collect::<Vec<f64>>());
        for ((_, point), rank) in found.iter().zip(ranks) {
            sums[*point] = (sums[*point].0 + rank, sums[*point].1 + 1.0);
        }
    }
    sums.into_iter().map(|(sum, count)| sum / count).collect()
}

/// What each axis is drawn as: the last goes to the right, the one before it becomes curves, the others panels. With a
/// single axis there is a single curve.
struct Roles {
    across: usize,
    curves: Option<usize>,
    panels: Vec<usize>,
}

impl Roles {
    /// Names are shown as curves, numbers as positions on an axis.
    fn of(sweep: &Sweep) -> Option<Self> {
        let long: Vec<usize> =
            (0..sweep.axes.len()).filter(|&axis| sweep.axes[axis].labels.len() > 1).collect();
        let is_number = |axis: &&usize| values(&sweep.axes[**axis]).is_some();
        let across = *long.iter().rev().find(is_number).or(long.last())?;
        let rest: Vec<usize> = long.into_iter().filter(|&axis| axis != across).collect();
        let curves = rest.last().copied();
        let panels = rest.into_iter().filter(|&axis| Some(axis) != curves).collect();
        Some(Self { across, curves, panels })
    }
}

/// The numbers at an axis, if they are numbers; of several keys the first counts.
fn values(axis: &Axis) -> Option<Vec<f64>> {
    let first = |label: &String| label.split([',', ' ']).next().and_then(|text| text.parse::<f64>().ok());
    axis.labels.iter().map(first).collect()
}

fn multiples(sweep: &Sweep) -> Option<Section> {
    let roles = Roles::of(sweep)?;
    let across = &sweep.axes[roles.across];
    let numbers = values(across).unwrap_or_else(|| (0..across.labels.len()).map(|at| at as f64).collect());
    let reach = [numbers.clone(), spread(sweep)];
    let panels = combinations(sweep, &roles.panels);
    let is_single = panels.len() == 1;
    let picture = |fixed: &Vec<(usize, usize)>| {
        let name = fixed.iter().map(|&(axis, place)| {
            let (key, label) = (sweep.axes[axis].keys.join(", "), &sweep.axes[axis].labels[place]);
            format!("{} = {label}", key.rsplit('.').next().unwrap_or(&key))
        });
        let name: Vec<String> = name.collect();
        let title = if is_single { title(across) } else { shortened(&name.join(", "), 34) };
        let chart = Lines {
            name: "multiples",
            title: &title,
            description: "the mean best fitness, with one standard deviation to both sides",
            across: &shortened(&across.keys[0], 40),
            up: "best fitness",
            stretch: Stretch::Linear,
            size: if is_single { Size::Wide } else { Size::Small },
            series: curves(sweep, &roles, fixed, &numbers),
            reach: reach.clone(),
        };
        chart.draw()
    };
    let caption = caption(sweep, &roles);
    let block = if is_single {
        Block::Figure(Figure { picture: picture(&panels[0]), caption, numbers: None })
    } else {
        let pictures = panels.iter().take(PANELS).map(|fixed| (picture(fixed), String::new())).collect();
        let legend = (0..).zip(curve_names(sweep, &roles)).collect();
        Block::Gallery(Gallery {
            title: title(across),
            caption,
            legend,
            pictures,
            numbers: None,
            folded: false,
        })
    };
    Some(Section::new("multiples", "Over the axes", vec![block]))
}

fn title(across: &Axis) -> String {
    format!("Best fitness over {}", across.keys.join(", "))
}

/// Both ends of every mean's deviation: what all panels must reach.
fn spread(sweep: &Sweep) -> Vec<f64> {
    let ends = sweep.points.iter().map(|cells| mean(cells)).flat_map(|(mean, by)| [mean - by, mean + by]);
    ends.filter(|value| value.is_finite()).collect()
}

/// What each curve is called; a single one has no name.
fn curve_names(sweep: &Sweep, roles: &Roles) -> Vec<String> {
    let labels = roles.curves.map_or(&[][..], |axis| &sweep.axes[axis].labels);
    labels.iter().take(CURVES).map(|label| shortened(label, 40)).collect()
}

fn caption(sweep: &Sweep, roles: &Roles) -> String {
    let keys = |axes: &[usize]| {
        let keys: Vec<String> = axes.iter().map(|&axis| code(&sweep.axes[axis].keys.join(", "))).collect();
        keys.join(" and ")
    };
    let panels = if roles.panels.is_empty() {
        String::new()
    } else {
        format!(" A panel for each {}.", keys(&roles.panels))
    };
    let curves = roles.curves.map_or(String::new(), |axis| format!(" A curve for each {}.", keys(&[axis])));
    format!(
        "Means over the repeats, with one standard deviation to both sides; all on the same scales.{panels}{curves}"
    )
}

/// Every combination of places on some axes.
fn combinations(sweep: &Sweep, axes: &[usize]) -> Vec<Vec<(usize, usize)>> {
    axes.iter().fold(vec![vec![]], |found, &axis| {
        let places = 0..sweep.axes[axis].labels.len();
        let longer = |one: Vec<(usize, usize)>| {
            places.clone().map(move |place| [one.clone(), vec![(axis, place)]].concat())
        };
        found.into_iter().flat_map(longer).take(PANELS).collect()
    })
}

fn curves(sweep: &Sweep, roles: &Roles, fixed: &[(usize, usize)], numbers: &[f64]) -> Vec<Series> {
    let names = curve_names(sweep, roles);
    let curve = |at: usize| {
        let mut places = vec![0; sweep.axes.len()];
        for &(axis, place) in fixed {
            places[axis] = place;
        }
        if let Some(axis) = roles.curves {
            places[axis] = at;
        }
        let mut points: Vec<(f64, (f64, f64))> = vec![];
        for (place, &number) in numbers.iter().enumerate() {
            places[roles.across] = place;
            points.push((number, mean(sweep.point(&places))));
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let band = points.iter().map(|(_, (mean, deviation))| (mean - deviation, mean + deviation)).collect();
        let curve = points.into_iter().map(|(x, (mean, _))| (x, mean)).collect();
        Series { band, ..Series::curve(names.get(at).map_or("", String::as_str), at, curve) }
    };
    (0..names.len().max(1)).map(curve).collect()
}

fn data(sweep: &Sweep) -> Data {
    let keys = sweep.axes.iter().map(|axis| axis.keys.join(" "));
    let more = ["repeat", "seed", "best", "generations", "evaluations"].map(str::to_owned);
    let mut table = Table { columns: keys.chain(more).collect(), ..Table::default() };
    for (at, cells) in sweep.points.iter().enumerate() {
        let places = sweep.places(at);
        for cell in cells {
            let labels = places.iter().zip(&sweep.axes).map(|(&place, axis)| axis.labels[place].clone());
            let numbers = [
                cell.repeat.to_string(),
                cell.seed.to_string(),
                cell.best.to_string(),
                cell.generations.to_string(),
                cell.evaluations.to_string(),
            ];
            table.push(labels.chain(numbers).collect());
        }
    }
    Data { name: "cells", table }
}
