//! Benches of lock-and-key levels.

use crate::{Bench, Figure, rate};
use lockkey::{Blueprint, Builder, Cell, Level, Method, Rater};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub(crate) fn benches() -> Vec<Bench> {
    vec![("lockkey.level10", levels)]
}

/// Difficulties of ready 10x10 levels with two pairs, against a plain A* with a binary heap.
fn levels() -> Figure {
    let mut builder = Builder::new(Blueprint::default()).expect("the default blueprint can be built");
    let levels: Vec<Level> = (0..500).map(|seed| builder.random(seed).clone()).collect();
    let mut rater = Rater::default();
    let fast = rate(|| {
        let visited = levels.iter().map(|level| rater.visited(level, Method::Plain));
        assert!(visited.sum::<Option<u32>>().is_some(), "every level can be solved");
        levels.len() as u64
    });
    let slow = rate(|| {
        assert!(levels.iter().map(visited_with_heap).sum::<usize>() > 0, "every level has cells to visit");
        levels.len() as u64
    });
    Figure::new("levels/s", fast, slow)
}

fn visited_with_heap(level: &Level) -> usize {
    let mut from = level.entry();
    let goals = level.keys().iter().map(|key| key.cell).chain([level.exit()]);
    let legs = goals.enumerate().map(|(opened, goal)| {
        let closed: Vec<Cell> = level.locks()[opened..].iter().map(|lock| lock.cell).collect();
        visited_in_leg(level, &closed, std::mem::replace(&mut from, goal), goal)
    });
    legs.sum()
}

fn visited_in_leg(level: &Level, closed: &[Cell], start: Cell, goal: Cell) -> usize {
    let mut open = BinaryHeap::from([Reverse((start.distance(goal), start.distance(goal), start))]);
    let mut distances = BTreeMap::from([(start, 0)]);
    let mut visited = 0;
    while let Some(Reverse((_, _, cell))) = open.pop() {
        visited += 1;
        if cell == goal {
            break;
        }
        let g = distances[&cell] + 1;
        for next in level.grid().neighbours(cell).filter(|next| !closed.contains(next)) {
            if distances.get(&next).is_none_or(|&known| known > g) {
                distances.insert(next, g);
                open.push(Reverse((g + next.distance(goal), next.distance(goal), next)));
            }
        }
    }
    visited
}
