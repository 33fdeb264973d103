//! The two solvers that look no further than the next move.

use crate::board::{Board, Cell, Turns};
use crate::direction::Direction;
use crate::solution::Solution;

/// Moves at random, every possible direction being equally likely.
pub fn random(board: &Board, turns: Turns, mut random: impl FnMut() -> u64) -> Solution {
    move_by_move(board, turns, |choices| pick(choices.len(), random()))
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
