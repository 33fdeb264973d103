//! How fitness and diversity went, from generation to generation.

use super::{Island, Run};
use crate::chart::{Grid, Lines, NOTHING, Series, Size, Stretch, level, levels, rows_together, thinned};
use crate::document::{Block, Figure, Gallery, Section, Table};
use crate::text::{count, number, rounded};
use evolution::statistics::GenerationRow;

/// Up to this many islands each has a curve of its own: 8 colours, whole and dashed. Beyond, ranges of islands are drawn.
const CURVES: usize = 16;
/// Maximum numbers of islands that have panels with axes, and that all have panels. Of more islands those with the highest and
/// with the lowest fitness have panels, this number of each.
const LARGE_PANELS: usize = 12;
const PANELS: usize = 300;
const EXTREMES: usize = 50;
/// Points of a curve, of a panel's and of a tiny panel's; columns of a strip; rows of a table.
const POINTS: usize = 240;
const PANEL_POINTS: usize = 80;
const TINY_POINTS: usize = 40;
pub(super) const COLUMNS: u64 = 240;
const ROWS: usize = 25;

/// What all islands had at one moment: its place on the axis, and a value for each island that has one.
struct Moment {
    at: f64,
    values: Vec<f64>,
}

impl Moment {
    /// The value that a share of the islands does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.values.len().saturating_sub(1);
        self.values.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// The rows of some generations, the same for all islands, thinned out.
pub(crate) fn at_generations(run: &Run, most: usize) -> Vec<(u64, Vec<&GenerationRow>)> {
    let rows: Vec<Vec<&GenerationRow>> = run.islands.iter().map(|island| island.rows().collect()).collect();
    let longest = rows.iter().max_by_key(|rows| rows.len()).map_or(&[][..], Vec::as_slice);
    let generations = thinned(longest.len(), most).into_iter().map(|at| longest[at].generation);
    let find = |rows: &Vec<&'_ GenerationRow>, generation: u64| {
        rows.binary_search_by_key(&generation, |row| row.generation).ok()
    };
    generations
        .map(|generation| {
            let found = rows.iter().filter_map(|rows| find(rows, generation).map(|at| rows[at]));
            (generation, found.collect())
        })
        .collect()
}

fn moments(run: &Run, most: usize, value: impl Fn(&GenerationRow) -> f64) -> Vec<Moment> {
    let moment = |(generation, rows): (u64, Vec<&GenerationRow>)| Moment {
        at: generation as f64,
        values: sorted(rows.into_iter().map(&value)),
    };
    at_generations(run, most).into_iter().map(moment).collect()
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The best fitness over the generations, to stand beside a picture of what was found.
pub(super) fn fitness_beside(run: &Run) -> Option<Block> {
    run.best()?;
    Some(Block::Figure(best_figure(run, Size::Half)))
}

/// How fitness went; `is_drawn` if its curve stands elsewhere already.
pub(super) fn fitness(run: &Run, is_drawn: bool) -> Option<Section> {
    run.best()?;
    let mut blocks = vec![];
    if !run.absolute {
        blocks.push(Block::Text(
            "In self-play fitness is what an individual scores against the others of its island: when all become \
             better, it stays where it is. The curves show how far the best stands out, not how strong it is."
                .to_owned(),
        ));
    }
    if !is_drawn {
        blocks.push(Block::Figure(best_figure(run, Size::Wide)));
    }
    if run.islands.len() > CURVES {
        blocks.extend(strip(
            run,
            "fitness-strip",
            "The best fitness of each island, epoch by epoch",
            |epoch| epoch.standing.best,
        ));
    }
    blocks.push(Block::Gallery(panels(run)));
    Some(Section::new("fitness", "Fitness", blocks))
}

fn best_figure(run: &Run, size: Size) -> Figure {
    let best = moments(run, POINTS, |row| row.best);
    let series = if run.islands.len() <= CURVES {
        run.islands.iter().enumerate().map(|(at, island)| curve(at, island, |row| row.best)).collect()
    } else {
        ranges(&best, "leading island")
    };
    let series = with_found(run, series);
    let caption = if run.islands.len() <= CURVES {
        "The best of each island's population. The number is its last value.".to_owned()
    } else {
        format!(
            "The best of each population, over all {} islands: the leading one, the one in the middle, the middle half \
             (dark) and all of them (light).",
            count(run.islands.len() as u64)
        )
    };
    let chart = Lines {
        name: "fitness",
        title: "Best fitness over the generations",
        description: &words(&best, "best fitness"),
        across: "generation",
        up: "fitness",
        stretch: Stretch::Linear,
        size,
        series,
        reach: [vec![], vec![]],
    };
    Figure { picture: chart.draw(), caption, numbers: Some(fitness_table(run)) }
}

/// The curves with their last values, and a ring where the run's best was found.
fn with_found(run: &Run, mut series: Vec<Series>) -> Vec<Series> {
    let is_single = run.islands.len() <= CURVES;
    let best = run.best().filter(|(_, fitness)| fitness.is_finite());
    let champion = best.and_then(|(island, _)| Some((island, run.islands.get(island)?.champion.as_ref()?)));
    if let Some((island, champion)) = champion {
        // Of many islands the curve of the leading one is the last.
        let at = if is_single { island } else { series.len().saturating_sub(1) };
        if let Some(curve) = series.get_mut(at) {
            curve.found = Some((champion.generation as f64, champion.fitness));
        }
    }
    for curve in series.iter_mut().filter(|curve| !curve.label.is_empty()) {
        curve.ends = true;
    }
    series
}

/// What a picture of ranges shows, for those who do not see it.
fn words(moments: &[Moment], what: &str) -> String {
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else { return String::new() };
    format!(
        "From generation {} to {} the {what} of the leading island goes from {} to {}, that of the middle one from {} \
         to {}.",
        first.at,
        last.at,
        number(first.quantile(1.0)),
        number(last.quantile(1.0)),
        number(first.quantile(0.5)),
        number(last.quantile(0.5))
    )
}

fn curve(at: usize, island: &Island, value: impl Fn(&GenerationRow) -> f64) -> Series {
    let rows: Vec<&GenerationRow> = island.rows().collect();
    let points = thinned(rows.len(), POINTS).into_iter();
    let points = points.map(|place| (rows[place].generation as f64, value(rows[place]))).collect();
    Series::curve(format!("island {at}"), at, points)
}

fn ranges(moments: &[Moment], highest: &str) -> Vec<Series> {
    let points = |share: f64| moments.iter().map(|moment| (moment.at, moment.quantile(share))).collect();
    let band = |low: f64, high: f64| {
        moments.iter().map(|moment| (moment.quantile(low), moment.quantile(high))).collect()
    };
    let all = Series { band: band(0.0, 1.0), faint: true, ..Series::curve("", 0, points(0.5)) };
    let half = Series { band: band(0.25, 0.75), ..Series::curve("middle island", 0, points(0.5)) };
    vec![all, half, Series::curve(highest, 1, points(1.0))]
}

fn fitness_table(run: &Run) -> Table {
    let caption =
        "The best fitness of the leading, the middle and the last island, and the mean of all individuals";
    let mut table = Table::new(caption, &["generation", "leading", "middle", "last", "mean"]);
    for (generation, rows) in at_generations(run, ROWS) {
        let best = Moment { at: 0.0, values: sorted(rows.iter().map(|row| row.best)) };
        let means = sorted(rows.iter().map(|row| row.mean));
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let quantiles = [1.0, 0.5, 0.0].map(|share| number(best.quantile(share)));
        table.push([vec![count(generation)], quantiles.to_vec(), vec![rounded(mean, 6)]].concat());
    }
    table
}

/// A panel for each island: the best, the mean, and one standard deviation to both sides of it.
fn panels(run: &Run) -> Gallery {
    let shown = shown(run);
    let size = if run.islands.len() <= LARGE_PANELS { Size::Small } else { Size::Tiny };
    let most = if size == Size::Small { PANEL_POINTS } else { TINY_POINTS };
    let series: Vec<Vec<Series>> = shown.iter().map(|&at| panel(&run.islands[at], most)).collect();
    let all = || series.iter().flatten();
    let across = all().flat_map(|series| series.points.iter().map(|point| point.0));
    let up = all()
        .flat_map(|each| each.band.iter().flat_map(|&(a, b)| [a, b]).chain(each.points.iter().map(|p| p.1)));
    let reach = [ends(across), ends(up)];
    let pictures = shown.iter().zip(&series).map(|(at, series)| {
        let chart = Lines {
            name: "island",
            title: &format!("island {at}"),
            description: "the best and the mean fitness of its population over the generations",
            across: "generation",
            up: "fitness",
            stretch: Stretch::Linear,
            size,
            series: series.clone(),
            reach: reach.clone(),
        };
        (chart.draw(), String::new())
    });
    let is_part = shown.len() < run.islands.len();
    let rest = if is_part {
        format!(
            " The {EXTREMES} islands with the highest and the {EXTREMES} with the lowest fitness are shown."
        )
    } else {
        String::new()
    };
    Gallery {
        title: if is_part { "The best and the last islands" } else { "Each island" }.to_owned(),
        caption: format!(
            "With one standard deviation to both sides of the mean; all on the same scales.{rest}"
        ),
        legend: vec![(1, "best of its population".to_owned()), (0, "mean".to_owned())],
        pictures: pictures.collect(),
        numbers: Some(islands_table(run, &shown)),
        folded: run.islands.len() > 4 * LARGE_PANELS,
    }
}

/// The islands that are shown one by one, by their numbers.
fn shown(run: &Run) -> Vec<usize> {
    if run.islands.len() <= PANELS {
        return (0..run.islands.len()).collect();
    }
    let best = |at: usize| run.islands[at].last().map_or(f64::NEG_INFINITY, |epoch| epoch.standing.best);
    let mut order: Vec<usize> = (0..run.islands.len()).collect();
    order.sort_by(|&one, &other| best(other).total_cmp(&best(one)));
    let mut shown = order.split_off(order.len() - EXTREMES);
    shown.extend(order.into_iter().take(EXTREMES));
    shown.sort_unstable();
    shown
}

fn panel(island: &Island, most: usize) -> Vec<Series> {
    let rows: Vec<&GenerationRow> = island.rows().collect();
    let rows: Vec<&GenerationRow> = thinned(rows.len(), most).into_iter().map(|at| rows[at]).collect();
    let points = |value: fn(&GenerationRow) -> f64| {
        rows.iter().map(|row| (row.generation as f64, value(row))).collect::<Vec<_>>()
    };
    let band = rows.iter().map(|row| (row.mean - row.deviation, row.mean + row.deviation)).collect();
    vec![
        Series { band, ..Series::curve("", 0, points(|row| row.mean)) },
        Series::curve("", 1, points(|row| row.best)),
    ]
}

/// The smallest and the largest of some values.
fn ends(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (value.min(low), value.max(high)));
    vec![low, high]
}

fn islands_table(run: &Run, shown: &[usize]) -> Table {
    let columns =
        ["island", "algorithm", "generations", "best", "mean", "deviation", "diversity", "evaluations"];
    let mut table = Table::new("Each island at its last epoch", &columns);
    for (at, island) in shown.iter().map(|&at| (at, &run.islands[at])) {
        let Some(epoch) = island.last() else { continue };
        let row = epoch.statistics.rows.last();
        let of =
            |value: fn(&GenerationRow) -> f64| row.map_or("–".to_owned(), |row| rounded(value(row), 6));
        let deviation = row.map_or("–".to_owned(), |row| rounded(row.deviation, 3));
        table.push(vec![
            at.to_string(),
            island.algorithm.clone(),
            count(epoch.standing.generation),
            number(epoch.standing.best),
            of(|row| row.mean),
            deviation,
            rounded(epoch.statistics.diversity, 3),
            count(epoch.standing.evaluations),
        ]);
    }
    table
}

/// A cell for each island and epoch, or for several epochs where there are many.
fn strip(run: &Run, name: &str, title: &str, value: fn(&super::Epoch) -> f64) -> Option<Block> {
    let epochs = run.epochs();
    let columns = epochs.min(COLUMNS);
    let last_of = |column: u64| (column + 1) * epochs / columns.max(1) - 1;
    // Of thousands of islands only some are drawn. The others cost nothing.
    let together = rows_together(run.islands.len());
    let row = |(at, island): (usize, &Island)| -> Vec<Option<f64>> {
        let shown = if at.is_multiple_of(together) { columns } else { 0 };
        let first_of = |column: u64| column.checked_sub(1).map_or(0, |before| last_of(before) + 1);
        let epoch_of = |column| run.standing_for(island, first_of(column), last_of(column));
        (0..shown).map(|column| epoch_of(column).map(value)).collect()
    };
    let values: Vec<Vec<Option<f64>>> = run.islands.iter().enumerate().map(row).collect();
    let all = sorted(values.iter().flatten().filter_map(|value| *value));
    // A few founders that were far worse than all others would leave no colours for the rest.
    let (low, high) = (*all.get(all.len() / 100)?, *all.last()?);
    let cells = values
        .iter()
        .map(|row| row.iter().map(|value| value.map_or(NOTHING, |value| level(value, low, high))).collect());
    let grid = Grid {
        name,
        title,
        description: &match together {
            1 => format!("A row for each of {} islands, a column for each epoch.", run.islands.len()),
            _ => format!(
                "A row for every {together} of {} islands, which shows the first of them, a column for each epoch.",
                run.islands.len()
            ),
        },
        across: ("epoch", (0, epochs)),
        down: ("island", run.islands.len() as u64),
        edges: None,
        kinds: levels(low, high),
        cells: cells.collect(),
    };
    let caption = "Brighter: higher. Gaps: missing epochs.".to_owned();
    Some(Block::Figure(Figure { picture: grid.draw(), caption, numbers: None }))
}

pub(super) fn diversity(run: &Run) -> Option<Section> {
    run.best()?;
    let moments = diversity_moments(run);
    let series = if run.islands.len() <= CURVES {
        run.islands.iter().enumerate().map(|(at, island)| diversity_curve(at, island)).collect()
    } else {
        ranges(&moments, "most diverse island")
    };
    let chart = Lines {
        name: "diversity",
        title: "Diversity over the generations",
        description: &words(&moments, "diversity"),
        across: "generation",
        up: "mean distance for each gene",
        stretch: Stretch::Linear,
        size: Size::Wide,
        series,
        reach: [vec![], vec![0.0]],
    };
    let caption = "How different the individuals of an island are, gene by gene: at 0 all are alike, and only mutation \
                   and migrants bring anything new."
        .to_owned();
    let mut table = Table::new(
        "The most diverse, the middle and the least diverse island",
        &["generation", "most", "middle", "least"],
    );
    for at in thinned(moments.len(), ROWS) {
        let quantiles = [1.0, 0.5, 0.0].map(|share| rounded(moments[at].quantile(share), 3));
        table.push([vec![count(moments[at].at as u64)], quantiles.to_vec()].concat());
    }
    let mut blocks = vec![Block::Figure(Figure { picture: chart.draw(), caption, numbers: Some(table) })];
    if run.islands.len() > CURVES {
        blocks.extend(strip(
            run,
            "diversity-strip",
            "The diversity of each island, epoch by epoch",
            |epoch| epoch.statistics.diversity,
        ));
    }
    Some(Section::new("diversity", "Diversity", blocks))
}

fn diversity_moments(run: &Run) -> Vec<Moment> {
    let epochs = run.epochs();
    let moment = |at: usize| {
        let found: Vec<&super::Epoch> =
            run.islands.iter().filter_map(|island| island.at(at as u64)).collect();
        let generation = found.first()?.standing.generation;
        let values = sorted(found.iter().map(|epoch| epoch.statistics.diversity));
        Some(Moment { at: generation as f64, values })
    };
    thinned(epochs as usize, POINTS).into_iter().filter_map(moment).collect()
}

/// The diversity of the middle island at the first and the last epoch.
pub(super) fn diversity_ends(run: &Run) -> Option<(f64, f64)> {
    let moments = diversity_moments(run);
    Some((moments.first()?.quantile(0.5), moments.last()?.quantile(0.5)))
}

fn diversity_curve(at: usize, island: &Island) -> Series {
    let places = thinned(island.epochs.len(), POINTS).into_iter().map(|place| &island.epochs[place]);
    let points = places.map(|epoch| (epoch.standing.generation as f64, epoch.statistics.diversity)).collect();
    Series::curve(format!("island {at}"), at, points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Epoch;
    use evolution::epoch::Standing;
    use evolution::statistics::EpochStatistics;

    fn run_of(islands: u32) -> Run {
        let island = |at: u32| {
            let best = f64::from((at * 7) % islands);
            let row = GenerationRow { generation: 1, evaluations: 1, best, mean: best, deviation: 0.0 };
            let epoch = Epoch {
                number: 0,
                standing: Standing { generation: 1, evaluations: 1, best },
                statistics: EpochStatistics { rows: vec![row], ..EpochStatistics::default() },
                worker: "one".to_owned(),
                milliseconds: 1,
                elapsed: 1,
            };
            Island { epochs: vec![epoch], ..Island::default() }
        };
        Run { absolute: true, islands: (0..islands).map(island).collect(), ..Run::default() }
    }

    #[test]
    fn of_very_many_islands_the_best_and_the_last_have_panels() {
        assert_eq!(panels(&run_of(300)).pictures.len(), 300);
        let run = run_of(1000);
        let Gallery { pictures, caption, numbers, .. } = panels(&run);
        assert_eq!((pictures.len(), numbers.unwrap().rows.len()), (2 * EXTREMES, 2 * EXTREMES));
        assert!(caption.contains("50 islands with the highest and the 50 with the lowest"), "{caption}");
        let best = |at: &usize| run.islands[*at].epochs[0].standing.best;
        let mut shown: Vec<f64> = shown(&run).iter().map(best).collect();
        shown.sort_by(f64::total_cmp);
        assert_eq!([shown[0], shown[49], shown[50], shown[99]], [0.0, 49.0, 950.0, 999.0]);
    }

    #[test]
    fn of_very_many_islands_some_share_a_row_of_the_strip() {
        let drawn = |islands| match strip(&run_of(islands), "s", "t", |epoch| epoch.standing.best) {
            Some(Block::Figure(figure)) => figure.picture.svg,
            other => panic!("{other:?}"),
        };
        assert!(drawn(400).contains("A row for each of 400 islands"));
        let many = drawn(1000);
        assert!(many.contains("A row for every 3 of 1000 islands"), "{many}");
        assert_eq!(many.matches('z').count(), 334);
    }
}
