//! How E depends on size, pairs, the kind of maze, the method and what A* chooses by: medians of random levels as
//! Markdown. `./tests/long lockkey-difficulty` keeps them as evidence.

use lockkey::{AStar, Blueprint, Builder, Difficulty, Heuristic, Level, Maze, Rater, Ties};

/// Levels of each size: seeds from 0 on.
const LEVELS: u64 = 500;
/// Side, pairs, and what was published.
const PUBLISHED: [(u8, u8, u32); 5] = [(6, 2, 46), (8, 2, 53), (10, 2, 101), (10, 3, 112), (10, 4, 124)];

/// Random levels of a size, and a checksum (FNV-1a) of their texts.
fn levels(side: u8, pairs: u8, maze: Maze) -> (Vec<Level>, u64) {
    let blueprint = Blueprint { width: side, height: side, pairs, maze, ..Blueprint::default() };
    let mut builder = Builder::new(blueprint).expect("these sizes are possible");
    let levels: Vec<Level> = (0..LEVELS).map(|seed| builder.random(seed).clone()).collect();
    let sum = levels.iter().flat_map(|level| level.to_string().into_bytes());
    let sum = sum
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (levels, sum)
}

fn figures(levels: &[Level], astar: AStar) -> Vec<Difficulty> {
    let mut rater = Rater::new(astar);
    levels.iter().map(|level| rater.difficulty(level).expect("random levels can be solved")).collect()
}

/// The lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        let place = quarter * (values.len() - 1);
        f64::midpoint(values[place / 4], values[place.div_ceil(4)])
    })
}

fn main() {
    println!("## Size and pairs\n");
    println!(
        "Medians of {LEVELS} random trees (quartiles in brackets); plain and optimised are the two methods of the paper.\n"
    );
    println!(
        "| size | pairs | published | depth-first: plain | optimised | saved by reusing | Prim: plain | optimised | checksums of the levels |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (side, pairs, published) in PUBLISHED {
        let mut cells = vec![];
        let mut sums = vec![];
        for maze in [Maze::DepthFirst, Maze::Prim] {
            let (levels, sum) = levels(side, pairs, maze);
            let found = figures(&levels, AStar::default());
            let of = |figure: fn(&Difficulty) -> f64| quartiles(found.iter().map(figure).collect());
            for [low, median, high] in [of(|one| f64::from(one.plain)), of(|one| f64::from(one.optimised))] {
                cells.push(format!("{median} ({low} to {high})"));
            }
            if maze == Maze::DepthFirst {
                let [low, median, high] =
                    of(|one| 100.0 * (1.0 - f64::from(one.optimised) / f64::from(one.plain)));
                cells.push(format!("{median:.0} % ({low:.0} to {high:.0})"));
            }
            sums.push(format!("`{sum:016x}`"));
        }
        println!("| {side}x{side} | {pairs} | {published} | {} | {} |", cells.join(" | "), sums.join(" "));
    }
    println!("\n## What A* chooses by\n");
    println!(
        "The same depth-first trees: medians of E, plain, and of its relative difference to the default on the same level.\n"
    );
    println!(
        "| heuristic | ties | 6x6, 2 | 8x8, 2 | 10x10, 2 | 10x10, 3 | 10x10, 4 | difference to the default: median | largest |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let all: Vec<Vec<Level>> =
        PUBLISHED.iter().map(|&(side, pairs, _)| levels(side, pairs, Maze::DepthFirst).0).collect();
    let default: Vec<Vec<Difficulty>> = all.iter().map(|levels| figures(levels, AStar::default())).collect();
    for heuristic in [Heuristic::Manhattan, Heuristic::Euclidean, Heuristic::Chebyshev, Heuristic::None] {
        for ties in [Ties::LowCell, Ties::HighCell, Ties::Oldest, Ties::Newest] {
            let mut medians = vec![];
            let mut away = vec![];
            for (levels, default) in all.iter().zip(&default) {
                let found = figures(levels, AStar { heuristic, ties });
                medians
                    .push(quartiles(found.iter().map(|one| f64::from(one.plain)).collect())[1].to_string());
                away.extend(
                    found
                        .iter()
                        .zip(default)
                        .map(|(one, other)| 100.0 * (f64::from(one.plain) / f64::from(other.plain) - 1.0)),
                );
            }
            let largest =
                away.iter().fold(0.0_f64, |most, one| if one.abs() > most.abs() { *one } else { most });
            let median = quartiles(away)[1];
            println!(
                "| {heuristic:?} | {ties:?} | {} | {median:+.0} % | {largest:+.0} % |",
                medians.join(" | ")
            );
        }
    }
}
