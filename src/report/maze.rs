//! What a run of the maze has to show: its best paths on their board, and what no path can exceed.

use super::Shown;
use crate::failure::Failure;
use evolution::epoch::ChampionView;
use maze::{Direction, Exact, Goal, Objective, Solution, Turns};
use problems::Maze;
use report::chart::Picture;
use report::text::number;
use report::{Block, Gallery};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Paths that are drawn.
const SHOWN: usize = 4;
/// States that the exact solver may look at: about a second.
const STATES: u64 = 2_000_000;

pub(super) fn blocks(spec: &Maze, fittest: &[(u32, &ChampionView)]) -> Result<Shown, Failure> {
    let board = spec.board().map_err(|error| Failure::Other(error.to_string()))?;
    let optimum = optimum(spec);
    let best = fittest.first().map(|(_, champion)| champion.fitness);
    let lead = best.zip(optimum.as_ref()).map(|(best, known)| gap(&spec.goal, best, known));
    let mut blocks: Vec<Block> = lead.iter().cloned().map(Block::Text).collect();
    let mut paths: Vec<&[f64]> = vec![];
    let mut pictures = vec![];
    for (island, champion) in fittest {
        if paths.contains(&champion.genome.as_slice()) || pictures.len() == SHOWN {
            continue;
        }
        let title = format!("the path of island {island}");
        if let Ok(svg) = board.to_svg(&walk(spec, &champion.genome)) {
            let below = format!("island {island}: {} {}", number(champion.fitness), unit(&spec.goal));
            pictures.push((Picture::sealed("walk", &title, &svg, 340.0), below));
            paths.push(&champion.genome);
        }
    }
    if pictures.is_empty() {
        blocks.push(Block::Text("There is no path to draw yet.".to_owned()));
        return Ok(Shown { lead, champion: None, blocks });
    }
    let others = pictures.split_off(1);
    let gallery = |title: &str, caption: &str, pictures| {
        let (title, caption) = (title.to_owned(), caption.to_owned());
        Block::Gallery(Gallery { title, caption, legend: vec![], pictures, numbers: None, folded: false })
    };
    // Alone, so that the curve of the fitness can stand beside it.
    let caption =
        "From the ring to the dot, a cell a turn; the stronger the colour of a cell, the more points.";
    blocks.push(gallery("The best path", caption, pictures));
    if !others.is_empty() {
        let caption = "The best of other islands; equal paths are drawn once.";
        blocks.push(gallery("Other paths", caption, others));
    }
    Ok(Shown { lead, champion: None, blocks })
}

/// The path of a genome, up to the last number that counts.
pub(super) fn walk(spec: &Maze, genome: &[f64]) -> Vec<Direction> {
    let mut path: Vec<Direction> = genome.iter().map(|&gene| Direction::from_gene(gene as u8)).collect();
    if let (false, Some(objective), Ok(board)) = (spec.goal.is_points(), objective(spec), spec.board()) {
        path.truncate(objective.judge(&board, &path).map_or(path.len(), |outcome| outcome.moves));
    }
    path
}

fn objective(spec: &Maze) -> Option<Objective> {
    Objective::new(&spec.goal, &spec.board().ok()?, Turns::new(spec.turns as usize).ok()?).ok()
}

/// What a path's score counts.
pub(super) fn unit(goal: &Goal) -> &'static str {
    match goal {
        Goal::Points => "points",
        Goal::Sum { .. } => "points and turns left",
        Goal::Order { .. } | Goal::All => "numbers and turns left",
    }
}

/// What is known of the optimum. A dashboard asks for it again and again, and finding it takes a second.
fn optimum(spec: &Maze) -> Option<Solution> {
    static KNOWN: Mutex<BTreeMap<String, Option<Solution>>> = Mutex::new(BTreeMap::new());
    const MOST: usize = 64;
    let name = serde_json::to_string(spec).ok()?;
    if let Some(known) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&name) {
        return known.clone();
    }
    let found = solved(spec);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(name, found.clone());
    found
}

fn solved(spec: &Maze) -> Option<Solution> {
    let exact = Exact { max_states: STATES, ..Exact::default() };
    exact.solve_for(&spec.board().ok()?, Turns::new(spec.turns as usize).ok()?, &objective(spec)?).ok()
}

/// How far the best is from what is known of the optimum.
fn gap(goal: &Goal, best: f64, known: &Solution) -> String {
    if !goal.is_points() {
        return goal_gap(goal, best, known);
    }
    let score = f64::from(known.score);
    let share = |optimum: f64| format!("{:.1} %", 100.0 * (optimum - best) / optimum.max(1.0));
    match known.bound.map(f64::from) {
        _ if known.is_proved() && best >= score => {
            format!(
                "The best path collects {} points, and that is proved: no path collects more.",
                number(best)
            )
        }
        _ if known.is_proved() => format!(
            "The best path collects {} points; the proved optimum is {}, a gap of {}.",
            number(best),
            number(score),
            share(score)
        ),
        Some(bound) => format!(
            "The best path collects {} points; no path collects more than {}, so the gap is at most {}.",
            number(best),
            number(bound),
            share(bound)
        ),
        None => format!("The best path collects {} points.", number(best)),
    }
}

/// How far the best is from the optimum of a goal whose score counts turns left as well.
fn goal_gap(goal: &Goal, best: f64, known: &Solution) -> String {
    let limit = known.bound.map_or(f64::INFINITY, f64::from);
    let standing = match limit {
        limit if best >= limit => "proved optimal".to_owned(),
        limit if limit.is_finite() => format!("no path exceeds {}", number(limit)),
        _ => "no bound known".to_owned(),
    };
    format!("Goal `{goal}`: the best path scores {} ({}; {standing}).", number(best), unit(goal))
}
