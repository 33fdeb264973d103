//! Which worker computed which epoch: a strip of islands by epochs, as a report shows it, and as it is now.

use super::{Island, Run, fitness_curves, work};
use crate::chart::{COLOURS, Grid, NOTHING, Picture, rows_together};
use crate::dashboard::IslandView;
use crate::text::shortened;
use std::collections::{BTreeMap, BTreeSet};

/// Workers with a colour of their own.
const COLOURED: usize = 2 * COLOURS;
/// An epoch that is missing among others.
const GONE: u8 = NOTHING - 1;

/// The strip of a run before it is drawn, in as few columns as it is drawn with.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    /// The workers that have computed epochs of the run, by how many.
    workers: Vec<String>,
    /// Epochs of the island that has most.
    epochs: u64,
    /// Of each island its last epoch, and for each column, if it is drawn, a worker: its place in the list, [`GONE`] or
    /// [`NOTHING`].
    rows: Vec<(u64, Vec<u8>)>,
}

/// The last epoch of a column.
fn last_of(column: u64, columns: u64, epochs: u64) -> u64 {
    (column + 1) * epochs / columns.max(1) - 1
}

impl Strip {
    /// That of a run.
    pub fn of(run: &Run) -> Self {
        let workers = work::names(run);
        let numbers: BTreeMap<&str, u8> =
            workers.iter().enumerate().map(|(at, worker)| (*worker, at.min(COLOURED) as u8)).collect();
        let epochs = run.epochs();
        let columns = epochs.min(fitness_curves::COLUMNS);
        // Of thousands of islands only some are drawn. The others cost nothing.
        let together = rows_together(run.islands.len());
        let row = |(at, island): (usize, &Island)| {
            let known = island.last().map_or(0, |epoch| epoch.number);
            let shown = if at.is_multiple_of(together) { columns } else { 0 };
            let first_of =
                |column: u64| column.checked_sub(1).map_or(0, |before| last_of(before, columns, epochs) + 1);
            let cell =
                |column| match run.standing_for(island, first_of(column), last_of(column, columns, epochs)) {
                    Some(epoch) => numbers[epoch.worker.as_str()],
                    None if last_of(column, columns, epochs) < known => GONE,
                    None => NOTHING,
                };
            (known, (0..shown).map(cell).collect())
        };
        let rows = run.islands.iter().enumerate().map(row).collect();
        Self { workers: workers.into_iter().map(str::to_owned).collect(), epochs, rows }
    }

    /// The place of each worker among the colours: those of the strip first, then others by their names.
    pub fn places<'a>(&'a self, others: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
        let mut places: BTreeMap<&str, usize> = self.workers.iter().map(String::as_str).zip(0..).collect();
        for other in others.into_iter().collect::<BTreeSet<&str>>() {
            let next = places.len();
            places.entry(other).or_insert(next);
        }
        places
    }

    /// The strip with the epochs that workers compute now. Nothing where there is no epoch at all.
    pub fn draw(&self, islands: &[IslandView]) -> Option<Picture> {
        let now = islands
            .iter()
            .filter_map(|island| Some((island.island as usize, (island.worker.as_deref()?, island.epochs))));
        let now: BTreeMap<usize, (&str, u64)> = now.collect();
        let places = self.places(now.values().map(|(worker, _)| *worker));
        let newest = now.values().map(|(_, epoch)| epoch + 1).max().unwrap_or(0);
        let epochs = self.epochs.max(newest);
        let columns = epochs.min(fitness_curves::COLUMNS);
        let count = self.rows.len().max(islands.len());
        // Of thousands of islands each row stands for several, and shows the first of them. The others cost nothing.
        let together = rows_together(count);
        let row = |island: usize| -> Vec<u8> {
            let shown = if island.is_multiple_of(together) { columns } else { 0 };
            (0..shown).map(|column| self.cell(island, (column, columns), epochs)).collect()
        };
        let mut cells: Vec<Vec<u8>> = (0..count).map(row).collect();
        for (island, (worker, epoch)) in now {
            let column = (epoch * columns / epochs) as usize;
            if let Some(cell) = cells.get_mut(island - island % together).and_then(|row| row.get_mut(column))
            {
                *cell = places[worker].min(COLOURED) as u8;
            }
        }
        let all = places.len();
        let mut named: Vec<(&str, usize)> = places.into_iter().filter(|(_, at)| *at < COLOURED).collect();
        named.sort_by_key(|(_, at)| *at);
        let mut kinds: Vec<(String, String)> = named.into_iter().map(kind).collect();
        if all > COLOURED {
            kinds.push(("f7 faint".to_owned(), format!("{} others", all - COLOURED)));
        }
        let missing = kinds.len() as u8;
        let mut has_gaps = false;
        for cell in cells.iter_mut().flatten().filter(|cell| **cell == GONE) {
            has_gaps = true;
            *cell = missing;
        }
        if has_gaps {
            kinds.push(("gone".to_owned(), "missing".to_owned()));
        }
        let grid = Grid {
            name: "workers",
            title: "Worker of each epoch",
            description: &format!(
                "{}, a column for each epoch, a colour for each of {all} workers.",
                match together {
                    1 => format!("A row for each of {count} islands"),
                    _ => format!(
                        "A row for every {together} of {count} islands, which shows the first of them"
                    ),
                }
            ),
            across: ("epoch", (0, epochs)),
            down: ("island", cells.len() as u64),
            edges: None,
            kinds,
            cells,
        };
        (columns > 0).then(|| grid.draw())
    }

    /// A cell of a strip with this number of columns and epochs, which may be more than are known here.
    fn cell(&self, island: usize, (column, columns): (u64, u64), epochs: u64) -> u8 {
        let Some((known, row)) = self.rows.get(island) else { return NOTHING };
        let own = if epochs == self.epochs {
            Some(column)
        } else {
            let epoch = last_of(column, columns, epochs);
            (epoch <= *known).then(|| epoch * row.len() as u64 / self.epochs.max(1))
        };
        own.and_then(|own| row.get(own as usize)).copied().unwrap_or(NOTHING)
    }
}

fn kind((worker, at): (&str, usize)) -> (String, String) {
    let pale = if at < COLOURS { "" } else { " pale" };
    (format!("f{}{pale}", at % COLOURS), shortened(worker, 40))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::IslandState;
    use crate::run::Epoch;
    use evolution::epoch::Standing;
    use evolution::statistics::EpochStatistics;

    fn epoch(number: u64, worker: &str) -> Epoch {
        Epoch {
            number,
            standing: Standing { generation: number, evaluations: number, best: 1.0 },
            statistics: EpochStatistics::default(),
            worker: worker.to_owned(),
            milliseconds: 1,
            elapsed: number,
        }
    }

    fn computing(island: u32, epochs: u64, worker: &str) -> IslandView {
        let worker = Some(worker.to_owned());
        IslandView { island, epochs, generation: 0, best: None, state: IslandState::Computing, worker }
    }

    #[test]
    fn a_worker_enters_the_strip_with_its_first_lease() {
        let epochs = vec![epoch(0, "old"), epoch(1, "old"), epoch(2, "other")];
        let run = Run { islands: vec![Island { epochs, ..Island::default() }], ..Run::default() };
        let strip = Strip::of(&run);
        let known = strip.draw(&[]).unwrap().svg;
        assert!(!known.contains("newcomer"), "{known}");
        let now = strip.draw(&[computing(0, 5, "newcomer")]).unwrap().svg;
        assert!(now.contains("newcomer"), "{now}");
        let places = strip.places(["newcomer"]);
        assert_eq!(
            [places["old"], places["other"], places["newcomer"]],
            [0, 1, 2],
            "those before keep their colours"
        );
        // Nothing was read yet: the strip begins with what is computed.
        assert!(Strip::default().draw(&[computing(1, 0, "first")]).unwrap().svg.contains("first"));
        assert!(Strip::default().draw(&[]).is_none());
    }

    #[test]
    fn of_a_part_of_a_run_the_epochs_that_were_read_stand_for_the_others() {
        let read: Vec<Epoch> =
            (0..1000).filter(|number| number % 3 == 1).map(|number| epoch(number, "one")).collect();
        let run = Run { islands: vec![Island { epochs: read, ..Island::default() }], ..Run::default() };
        let gaps = |run: &Run| Strip::of(run).draw(&[]).unwrap().svg.contains("missing");
        assert!(gaps(&run) && !gaps(&Run { part: Some((1, 3)), ..run }));
    }

    #[test]
    fn of_many_islands_some_share_a_row_and_what_is_computed_is_seen() {
        let islands: Vec<IslandView> = (0..1000).map(|island| computing(island, 3, "one")).collect();
        let svg = |islands: &[IslandView]| Strip::default().draw(islands).unwrap().svg;
        let drawn = svg(&islands);
        assert!(drawn.contains("A row for every 3 of 1000 islands"), "{}", &drawn[..500]);
        assert_eq!(drawn.matches('z').count(), 334);
        // An island that is not the first of its row.
        let mut idle: Vec<IslandView> =
            islands.into_iter().map(|one| IslandView { worker: None, ..one }).collect();
        idle[998].worker = Some("last".to_owned());
        assert_eq!(svg(&idle).matches('z').count(), 1);
    }

    #[test]
    fn epochs_beyond_those_that_were_read_stay_open() {
        let strip = Strip {
            workers: vec!["one".to_owned()],
            epochs: 2,
            rows: vec![(1, vec![0, 0]), (0, vec![0, NOTHING])],
        };
        let cells = |island, epochs| -> Vec<u8> {
            (0..epochs).map(|column| strip.cell(island, (column, epochs), epochs)).collect()
        };
        assert_eq!(cells(0, 4), [0, 0, NOTHING, NOTHING]);
        assert_eq!(cells(1, 4), [0, NOTHING, NOTHING, NOTHING]);
        assert_eq!(cells(2, 4), [NOTHING; 4], "an island without epochs");
    }
}
