//! The two solvers that look no further than the next move.

use crate::board::{Board, Cell, Turns};
use crate::direction::Direction;
use crate::goal::Objective;
use crate::solution::Solution;

/// Moves at random, every possible direction being equally likely.
pub fn random(board: &Board, turns: Turns, mut random: impl FnMut() -> u64) -> Solution {
    move_by_move(board, turns, |choices| pick(choices.len(), random()))
}

/// As [`random`] for any objective: every possible direction, also one that ends the walk.
pub fn random_for(board: &Board, objective: &Objective, mut random: impl FnMut() -> u64) -> Solution {
    pursue(board, objective, |choices| Some(pick(choices.len(), random())))
}

/// As [`greedy`] for any objective: never takes a number that ends the walk, but stops where nothing else is left.
pub fn greedy_for(board: &Board, objective: &Objective) -> Solution {
    pursue(board, objective, |gains| best_gains(gains).next())
}

/// As [`greedy_for`], but a random one among equals.
pub fn greedy_for_with_random_ties(
    board: &Board,
    objective: &Objective,
    mut random: impl FnMut() -> u64,
) -> Solution {
    pursue(board, objective, |gains| {
        let best: Vec<usize> = best_gains(gains).collect();
        best.get(pick(best.len(), random())).copied()
    })
}

/// The moves that add most, of those that do not end the walk.
fn best_gains(gains: &[Option<u8>]) -> impl Iterator<Item = usize> {
    let most = gains.iter().copied().max().flatten();
    gains.iter().enumerate().filter(move |(_, gain)| most.is_some() && **gain == most).map(|(index, _)| index)
}

/// Always takes the move that gives most at once; among equals the first in [`Direction::SEARCH_ORDER`].
pub fn greedy(board: &Board, turns: Turns) -> Solution {
    move_by_move(board, turns, first_best)
}

/// As [`greedy`], but a random one among equals: what seeds a population with more than copies of one path.
pub fn greedy_with_random_ties(board: &Board, turns: Turns, mut random: impl FnMut() -> u64) -> Solution {
    move_by_move(board, turns, |choices| random_best(choices, random()))
}

/// A possible move and the points it would give.
struct Choice {
    way: Direction,
    cell: Cell,
    gain: u8,
}

fn move_by_move(board: &Board, turns: Turns, mut choose: impl FnMut(&[Choice]) -> usize) -> Solution {
    let mut left: Vec<u8> = (0..board.cells() as Cell).map(|cell| board.points(cell).unwrap_or(0)).collect();
    let mut solution = Solution { path: Vec::new(), score: 0, bound: None, evaluations: 0 };
    let mut cell = board.start();
    let mut choices = Vec::with_capacity(4);
    for _ in 0..turns.count() {
        choices.clear();
        choices.extend(Direction::SEARCH_ORDER.into_iter().filter_map(|way| {
            let cell = board.step(cell, way)?;
            Some(Choice { way, cell, gain: left[usize::from(cell)] })
        }));
        let chosen = &choices[choose(&choices)];
        cell = chosen.cell;
        left[usize::from(cell)] = 0;
        solution.score += u32::from(chosen.gain);
        solution.evaluations += choices.len() as u64;
        solution.path.push(chosen.way);
    }
    solution
}

/// Continues until the objective is reached, the walk has ended, or the game is over. `choose` is given what each possible
/// move adds, in search order, and `None` for one that ends the walk.
fn pursue(
    board: &Board,
    objective: &Objective,
    mut choose: impl FnMut(&[Option<u8>]) -> Option<usize>,
) -> Solution {
    let mut left: Vec<u8> = (0..board.cells() as Cell).map(|cell| board.points(cell).unwrap_or(0)).collect();
    let (mut cell, mut progress, mut evaluations) = (board.start(), 0, 0);
    let mut path = Vec::new();
    while path.len() < objective.turns() && !objective.is_reached(progress) {
        let steps: Vec<(Direction, Cell)> = Direction::SEARCH_ORDER
            .into_iter()
            .filter_map(|way| board.step(cell, way).map(|next| (way, next)))
            .collect();
        let gain = |&(_, next): &(Direction, Cell)| {
            let points = left[usize::from(next)];
            objective.allows(progress, points).then(|| objective.worth(points))
        };
        let gains: Vec<Option<u8>> = steps.iter().map(gain).collect();
        evaluations += gains.len() as u64;
        let Some(chosen) = choose(&gains) else { break };
        path.push(steps[chosen].0);
        cell = steps[chosen].1;
        let Some(gain) = gains[chosen] else { break };
        progress += u32::from(gain);
        left[usize::from(cell)] = 0;
    }
    objective.solution(board, path, evaluations)
}

fn first_best(choices: &[Choice]) -> usize {
    let best =
        |best: usize, index: usize| if choices[index].gain > choices[best].gain { index } else { best };
    (1..choices.len()).fold(0, best)
}

fn random_best(choices: &[Choice], random: u64) -> usize {
    let most = choices[first_best(choices)].gain;
    let is_best = |index: &usize| choices[*index].gain == most;
    let best = (0..choices.len()).filter(is_best);
    let chosen = pick(best.clone().count(), random);
    best.clone().nth(chosen).expect("the pick is below their number")
}

/// One of `count` equally likely indices.
fn pick(count: usize, random: u64) -> usize {
    ((u128::from(random) * count as u128) >> 64) as usize
}
