//! The archives of MAP-Elites: a map of the best fitness in each cell, how many cells are filled, and the QD score.

use evolution::algorithm::{Algorithm, MapElites};
use evolution::problem::Axis;
use report::chart::{Grid, NOTHING, level, levels};
use report::text::{count, number};
use report::{Block, Figure, Section, Table};
use run::reader::Reader;
use std::collections::BTreeMap;

/// Cells in a direction of a map; finer grids are drawn coarser.
const MOST: usize = 100;

/// The best fitness in each filled cell.
type Elites = BTreeMap<u64, f64>;

/// The section on archives, if an island has one.
pub(super) async fn section(reader: &mut Reader) -> Option<Section> {
    let evolver = reader.experiment.evolver();
    let axes = evolver.axes();
    let islands: Vec<(u32, MapElites)> = (0..)
        .zip(&evolver.setting().islands)
        .filter_map(|(island, own)| match &own.algorithm {
            Algorithm::MapElites(own) => Some((island, own.clone())),
            _ => None,
        })
        .collect();
    let (_, first) = islands.first()?.clone();
    let columns = ["island", "filled cells", "coverage", "QD score", "best fitness"];
    let caption = "Coverage: share of the cells that are filled. QD score: sum over them of the fitness above the lowest \
                   fitness in any archive";
    let mut table = Table::new(caption, &columns);
    let mut archives = vec![];
    for (island, own) in islands.iter().filter(|(_, own)| own.bins == first.bins) {
        let Some(state) = reader.newest_state(*island).await else { continue };
        let residents = state.residents.iter().filter(|one| one.fitness.is_finite());
        archives
            .push((*island, elites(residents.map(|one| (own.cell(&axes, &one.descriptors), one.fitness)))));
    }
    let together =
        elites(archives.iter().flat_map(|(_, archive)| archive.iter().map(|(cell, best)| (*cell, *best))));
    let lowest = together.values().chain(archives.iter().flat_map(|(_, one)| one.values())).copied();
    let lowest = lowest.fold(f64::INFINITY, f64::min);
    let mut add = |name: String, archive: &Elites| {
        let score: f64 = archive.values().map(|best| best - lowest).sum();
        let best = archive.values().copied().fold(f64::NEG_INFINITY, f64::max);
        let coverage = 100.0 * archive.len() as f64 / first.cells() as f64;
        table.push(vec![
            name,
            count(archive.len() as u64),
            format!("{coverage:.1} %"),
            number(score),
            number(best),
        ]);
    };
    if archives.len() > 1 {
        add("all together".to_owned(), &together);
    }
    for (island, archive) in &archives {
        add(island.to_string(), archive);
    }
    if together.is_empty() {
        return None;
    }
    let mut blocks: Vec<Block> = map(&first, &axes, &together).into_iter().collect();
    blocks.push(Block::Table(table));
    Some(Section::new("archive", "The archive", blocks))
}

/// The best of each cell.
fn elites(found: impl Iterator<Item = (u64, f64)>) -> Elites {
    let mut elites = Elites::new();
    for (cell, fitness) in found {
        let best = elites.entry(cell).or_insert(f64::NEG_INFINITY);
        *best = best.max(fitness);
    }
    elites
}

/// A heat map of two axes; of more axes the first two, each cell with the best over the others.
fn map(own: &MapElites, axes: &[Axis], elites: &Elites) -> Option<Block> {
    let [rows, columns] = [*own.bins.first()? as usize, own.bins.get(1).map_or(1, |bins| *bins as usize)];
    let rest: u64 = own.bins.iter().skip(2).map(|bins| u64::from(*bins)).product();
    let (tall, wide) = (rows.div_ceil(MOST), columns.div_ceil(MOST));
    let mut best = vec![vec![f64::NAN; columns.div_ceil(wide)]; rows.div_ceil(tall)];
    for (&cell, &fitness) in elites {
        let place = (cell / rest.max(1)) as usize;
        let cell = best.get_mut(place / columns / tall)?.get_mut(place % columns / wide)?;
        *cell = cell.max(fitness);
    }
    let low = elites.values().copied().fold(f64::INFINITY, f64::min);
    let high = elites.values().copied().fold(f64::NEG_INFINITY, f64::max);
    let cells = best.iter().map(|row| {
        row.iter()
            .map(|&fitness| if fitness.is_nan() { NOTHING } else { level(fitness, low, high) })
            .collect()
    });
    let name = |at: usize| axes.get(at).map_or("cell", |axis| axis.name);
    let grid = Grid {
        name: "archive",
        title: "Best fitness in each cell",
        description: &format!("{} of {} cells are filled.", elites.len(), own.cells()),
        across: (name(1), (0, columns as u64)),
        down: (name(0), rows as u64),
        kinds: levels(low, high),
        cells: cells.collect(),
    };
    let span = |at: usize| {
        axes.get(at).map_or(String::new(), |axis| format!("{} from {} to {}", axis.name, axis.low, axis.high))
    };
    let caption = format!(
        "Rows: {}; columns: {}. Bright is high fitness; empty cells were never reached.",
        span(0),
        span(1)
    );
    Some(Block::Figure(Figure { picture: grid.draw(), caption, numbers: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_has_the_best_of_each_cell() {
        let own = MapElites { bins: vec![3, 2], ..MapElites::default() };
        let axes = ["a", "b"].map(|name| Axis { name, low: 0.0, high: 1.0 });
        let cell = |a: f32, b: f32| own.cell(&axes, &[a, b]);
        let found = elites([(cell(0.1, 0.9), 2.0), (cell(0.2, 0.8), 5.0), (cell(0.9, 0.1), 1.0)].into_iter());
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 5.0), (4, 1.0)]);
        let Some(Block::Figure(figure)) = map(&own, &axes, &elites([(1, 5.0), (4, 1.0)].into_iter())) else {
            panic!("a figure");
        };
        assert!(figure.picture.svg.contains("2 of 6 cells are filled"), "{}", figure.picture.svg);
        assert!(figure.caption.contains("a from 0 to 1"), "{}", figure.caption);
    }
}
