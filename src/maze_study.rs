//! What is made of the maze study: its tables, each mean beside the published one and the proved optimum, and a plot.

mod plot;
mod published;
mod tables;
mod verdicts;

use archipelago::cell::Evolved;
use evolution::statistics;
use experiment::{Cell, Sweep};
use maze::{Exact, Objective, Solution, Turns};
use problems::{Maze, ProblemSpec};
use rayon::prelude::*;
use report::chart::Picture;
use report::{Block, Gallery};

/// The files of the report, by name; the first is for people.
pub(crate) fn files(plan: &Sweep, results: &[Evolved]) -> Vec<(&'static str, String)> {
    let boards = boards(plan, results);
    vec![
        ("tables.md", tables::markdown(&boards)),
        ("tables.csv", tables::csv(&boards)),
        ("gap.svg", plot::svg(&boards)),
    ]
}

/// The study as a part of a report.
pub(crate) fn blocks(plan: &Sweep, results: &[Evolved]) -> Vec<Block> {
    let boards = boards(plan, results);
    let title = "The gap to the optimum, in percent, against the turns of a game";
    let picture = Picture::sealed("gap", title, &plot::svg(&boards), 1200.0);
    let plot = Gallery {
        title: title.to_owned(),
        caption: "A panel for each board, a line for each variant.".to_owned(),
        legend: vec![],
        pictures: vec![(picture, String::new())],
        numbers: None,
        folded: false,
    };
    let tables = tables::tables(&boards).into_iter().map(Block::Table);
    let texts =
        [tables::INTRODUCTION.to_owned()].into_iter().chain(verdicts::sentences(&boards)).map(Block::Text);
    [Block::Gallery(plot)].into_iter().chain(texts).chain(tables).collect()
}

/// Cells in a row, and rows.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
}

/// One board, and what was reached on it in games of each length.
struct Board {
    size: Size,
    games: Vec<Game>,
}

/// One length of game on a board.
struct Game {
    turns: u32,
    /// The proved optimum, or as far as it is known; nothing for games too long for bounds.
    optimum: Option<Solution>,
    /// What each variant reached, in the order of their names.
    outcomes: Vec<Outcome>,
}

/// What the repeats of one variant reached.
struct Outcome {
    variant: String,
    scores: Vec<f64>,
}

impl Outcome {
    fn mean(&self) -> f64 {
        statistics::sum(self.scores.iter().copied()) / self.scores.len() as f64
    }

    fn worst(&self) -> f64 {
        self.scores.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn best(&self) -> f64 {
        self.scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Game {
    fn outcome(&self, variant: &str) -> Option<&Outcome> {
        self.outcomes.iter().find(|outcome| outcome.variant == variant)
    }

    fn mean(&self, variant: &str) -> Option<f64> {
        self.outcome(variant).map(Outcome::mean)
    }

    /// By how much a score falls short of the optimum, in percent of it.
    fn gap(&self, score: f64) -> Option<f64> {
        let optimum = f64::from(self.optimum.as_ref()?.score);
        Some(100.0 * (optimum - score) / optimum)
    }
}

fn boards(plan: &Sweep, results: &[Evolved]) -> Vec<Board> {
    let mut boards: Vec<(Maze, Board)> = vec![];
    for (combination, repeats) in results.chunks(plan.repeats as usize).enumerate() {
        let Cell { experiment, values, .. } = plan.cell(combination as u32 * plan.repeats);
        let ProblemSpec::Maze(maze) = &experiment.file().problem else { continue };
        let Some(variant) = values.last().and_then(|name| name.as_str()) else { continue };
        let scores = repeats.iter().map(|result| result.best).collect();
        game(&mut boards, maze).outcomes.push(Outcome { variant: variant.to_owned(), scores });
    }
    let games = boards.iter_mut().flat_map(|(maze, board)| board.games.iter_mut().map(|game| (&*maze, game)));
    let games: Vec<(&Maze, &mut Game)> = games.collect();
    games.into_par_iter().for_each(|(maze, game)| game.optimum = optimum(maze, game.turns));
    boards.into_iter().map(|(_, board)| board).collect()
}

/// The game that a cell belongs to.
fn game<'a>(boards: &'a mut Vec<(Maze, Board)>, maze: &Maze) -> &'a mut Game {
    let is_same = |other: &Maze| {
        let sides = |maze: &Maze| (maze.width, maze.height, maze.board_seed, maze.walls);
        let texts = |maze: &Maze| (maze.board.clone(), maze.goal.clone());
        sides(other) == sides(maze) && texts(other) == texts(maze)
    };
    let at = boards.iter().position(|(other, _)| is_same(other)).unwrap_or(boards.len());
    if at == boards.len() {
        boards.push((maze.clone(), Board { size: size(maze), games: vec![] }));
    }
    let games = &mut boards[at].1.games;
    let place = games.iter().position(|game| game.turns == maze.turns).unwrap_or(games.len());
    if place == games.len() {
        games.push(Game { turns: maze.turns, optimum: None, outcomes: vec![] });
    }
    &mut games[place]
}

fn size(maze: &Maze) -> Size {
    let sides = |board: maze::Board| (board.width() as u32, board.height() as u32);
    let (width, height) = maze.board().map_or((maze.width, maze.height), sides);
    Size { width, height }
}

fn optimum(maze: &Maze, turns: u32) -> Option<Solution> {
    let board = maze.board().ok()?;
    let turns = Turns::new(turns as usize).ok()?;
    let objective = Objective::new(&maze.goal, &board, turns).ok()?;
    Exact::default().solve_for(&board, turns, &objective).ok()
}
