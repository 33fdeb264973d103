//! The hybrid, through the engine: what it reaches, which is the same everywhere.
//!
//! `ATOLL_MAZE_BOARDS` says how many other boards of each size are tried. Then every run is repeated ten times, goes to
//! its end, and must be done within the CPU time that it is allowed: see `tests/long maze-hybrid`, which also prints what
//! was found as tables in Markdown (`--nocapture`). Without it there is one other board and three repeats, runs after the
//! first stop when they have what they look for, and no time is judged: other tests run beside it.

use archipelago::solo;
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan};
use maze::{Board, Exact, Turns};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;

/// The hybrid as it stands in the examples, on one board.
fn hybrid(side: usize, board: u32, turns: usize, seed: u64) -> Experiment {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/maze-hybrid.toml");
    let mut text = std::fs::read_to_string(file).unwrap();
    for (key, value) in [
        ("width", side),
        ("height", side),
        ("board_seed", board as usize),
        ("turns", turns),
        ("population", 2 * turns),
        ("generations", 2 * turns),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).expect(key).to_owned();
        text = text.replace(&line, &format!("{key} = {value}"));
    }
    match experiment::parse("maze-hybrid.toml", &text, Some(seed)).unwrap() {
        Plan::Single(experiment) => *experiment,
        _ => unreachable!("it is one experiment"),
    }
}

/// What is allowed, in seconds for each turn squared.
const ALLOWED: f64 = 0.6e-3;

/// How many other boards are asked for.
fn boards() -> Option<u32> {
    std::env::var("ATOLL_MAZE_BOARDS").ok().map(|count| count.parse().unwrap())
}

fn thread_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The best of the founders, the best at the end, and the CPU time from nothing to the end.
struct Evolved {
    first: u32,
    last: u32,
    seconds: f64,
}

fn best(experiment: &Experiment) -> u32 {
    let islands = solo::evolve(experiment, || false).unwrap().unwrap().islands;
    islands.iter().map(|(_, standing)| standing.best).fold(0.0, f64::max) as u32
}

fn evolve(side: usize, board: u32, turns: usize, seed: u64, wanted: u32) -> Evolved {
    let whole = hybrid(side, board, turns, seed);
    let budget = |generations| BudgetKeys { generations: Some(generations), ..BudgetKeys::default() };
    let sought = BudgetKeys { target_fitness: Some(f64::from(wanted)), ..budget(2 * turns as u64) };
    let is_whole = seed == 0 || boards().is_some();
    let experiment = if is_whole { whole.clone() } else { whole.with_budget(sought).unwrap() };
    let start = thread_cpu_seconds();
    let last = best(&experiment);
    let seconds = thread_cpu_seconds() - start;
    Evolved { first: best(&whole.with_budget(budget(0)).unwrap()), last, seconds }
}

/// One length of game on one board, evolved with several seeds.
struct Cell {
    side: usize,
    turns: usize,
    wanted: u32,
    evolved: Vec<Evolved>,
}

impl Cell {
    fn new(side: usize, board: u32, turns: usize, wanted: u32, repeats: u64) -> Self {
        let evolved = (0..repeats).map(|seed| evolve(side, board, turns, seed, wanted)).collect();
        Self { side, turns, wanted, evolved }
    }

    /// Repeats that reached what was wanted, within the time if it is judged.
    fn successes(&self) -> usize {
        let allowed =
            if boards().is_some() { ALLOWED * (self.turns * self.turns) as f64 } else { f64::INFINITY };
        self.evolved.iter().filter(|one| one.last >= self.wanted && one.seconds <= allowed).count()
    }

    fn print(&self) {
        let count = self.evolved.len() as f64;
        let mean = |value: fn(&Evolved) -> f64| self.evolved.iter().map(value).sum::<f64>() / count;
        let slowest = self.evolved.iter().map(|one| one.seconds).fold(0.0, f64::max);
        println!(
            "| {0} x {0} | {1} | {2:.1} | {3:.1} | {4} | {5}/{6} | {7:.3} |",
            self.side,
            self.turns,
            mean(|one| f64::from(one.first)),
            mean(|one| f64::from(one.last)),
            self.wanted,
            self.successes(),
            self.evolved.len(),
            1e3 * slowest / (self.turns * self.turns) as f64
        );
    }
}

fn head(title: &str) {
    println!(
        "\n## {title}\n\n| board | turns | founders | final | wanted | reached | ms / turns², slowest |"
    );
    println!("|---|---|---|---|---|---|---|");
}

/// Everything on one thread, so that its CPU time is all there is.
fn on_one_thread(test: impl FnOnce() + Send) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(test);
}

/// Size, turns, and the least that is known to be possible; the optimum but for two.
fn published() -> Vec<(usize, usize, u32, bool)> {
    let table = include_str!("../../shared/maze/tests/data/maze_seed0_boards.csv");
    let lines = table.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let numbers = |line: &str| line.split(',').map(|value| value.parse().unwrap()).collect::<Vec<u32>>();
    lines.map(numbers).map(|row| (row[0] as usize, row[1] as usize, row[5], row[5] == row[6])).collect()
}

#[test]
fn the_optimum_of_the_published_boards() {
    on_one_thread(|| {
        head("Published boards");
        let mut sure = 0;
        let repeats = if boards().is_some() { 10 } else { 3 };
        for (side, turns, wanted, is_optimum) in published() {
            let cell = Cell::new(side, 0, turns, wanted, repeats);
            cell.print();
            let is_reached = cell.successes() as u64 * 10 >= repeats * 9;
            assert!(is_optimum || is_reached, "{side} at {turns}: the known bound is not reached");
            sure += usize::from(is_optimum && is_reached);
        }
        assert!(sure >= 27, "only {sure} of 28 cells");
    });
}

#[test]
fn the_optimum_of_other_boards() {
    on_one_thread(|| {
        head("Other boards");
        let (mut reached, mut all, mut improved, mut first_was_best) = (0, 0, 0, 0);
        for seed in 1..=boards().unwrap_or(1) {
            for (side, turns, ..) in published() {
                let board = Board::generate(side, side, seed).unwrap();
                let optimum = Exact::default().solve(&board, Turns::new(turns).unwrap()).unwrap();
                if !optimum.is_proved() {
                    continue;
                }
                let cell = Cell::new(side, seed, turns, optimum.score, 2);
                if cell.successes() < cell.evolved.len() {
                    cell.print();
                }
                reached += cell.successes();
                all += cell.evolved.len();
                improved += cell.evolved.iter().filter(|one| one.last > one.first).count();
                first_was_best += cell.evolved.iter().filter(|one| one.first == cell.wanted).count();
            }
        }
        println!(
            "\nReached {reached} of {all}; {first_was_best} began with the optimum, {improved} improved on their founders."
        );
        assert!(reached * 100 >= all * 97, "{reached} of {all}");
        assert!(improved * 2 > all, "{improved} of {all}: evolution closes the gap");
    });
}
