//! The operators that know what a path is: what they keep, what they improve, and what a small population
//! reaches with them.

use crate::checker::walk;
use crate::random_boards::boards;
use maze::{Board, Evaluator, Exact, Guide, Planning, Router, Turns, greedy_with_random_ties, random};
use proptest::prelude::*;
use std::sync::Arc;

/// A source that is random enough for tests.
fn source(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

fn random_path(board: &Board, turns: usize, source: &mut impl FnMut() -> u64) -> Vec<u8> {
    let solution = random(board, Turns::new(turns).unwrap(), source);
    solution.path.iter().map(|way| way.gene()).collect()
}

/// Points of a path if all its moves are possible.
fn points(board: &Board, genes: &[u8]) -> u32 {
    walk(board, genes, |_, _| None).expect("every move is possible").1
}

/// The cells of a path, the start first.
fn cells(board: &Board, genes: &[u8]) -> Vec<u16> {
    let mut cells = vec![board.start()];
    for &gene in genes {
        let here = cells[cells.len() - 1];
        cells.push(board.step(here, maze::Direction::from_gene(gene)).unwrap());
    }
    cells
}

/// Wide enough for every state of a few moves.
const WIDE: Planning = Planning { width: Planning::MAX_WIDTH, noise: 0 };

fn planning() -> impl Strategy<Value = Planning> {
    (0usize..40, 0u32..6).prop_map(|(width, noise)| Planning { width, noise })
}

proptest! {
    #[test]
    fn a_new_tail_leaves_the_head_alone(
        board in boards(), turns in 1usize..40, from in 0.0..1.0, planning in planning(), guided: bool, seed: u64
    ) {
        let mut source = source(seed);
        let before = random_path(&board, turns, &mut source);
        let from = (from * turns as f64) as usize;
        let guide = Guide::new(&board, Turns::new(turns).unwrap()).unwrap();
        let mut genes = before.clone();
        Router::new(&board, Some(Arc::new(guide))).replan_tail(&mut genes, from, planning, guided, &mut source);
        prop_assert_eq!(&genes[..from], &before[..from]);
        points(&board, &genes);
    }

    #[test]
    fn a_wide_beam_finds_the_best_tail(board in boards(), head in 0usize..20, tail in 1usize..6, seed: u64) {
        let mut source = source(seed);
        let mut genes = random_path(&board, head + tail, &mut source);
        let best = (0..1u32 << (2 * tail))
            .filter_map(|code| {
                let ways = (0..tail).map(|digit| (code >> (2 * digit)) as u8 & 3);
                let trial: Vec<u8> = genes[..head].iter().copied().chain(ways).collect();
                walk(&board, &trial, |_, _| None).map(|(_, score)| score)
            })
            .max();
        Router::new(&board, None).replan_tail(&mut genes, head, WIDE, false, &mut source);
        prop_assert_eq!(Some(points(&board, &genes)), best);
    }

    #[test]
    fn a_detour_changes_nothing_but_its_own_moves(
        board in boards(), turns in 1usize..40, ends in (0.0..1.0, 0.0..1.0), planning in planning(), seed: u64
    ) {
        let mut source = source(seed);
        let before = random_path(&board, turns, &mut source);
        let [a, b] = [ends.0, ends.1].map(|end: f64| (end * (turns + 1) as f64) as usize);
        let (from, to) = (a.min(b), a.max(b));
        let mut genes = before.clone();
        Router::new(&board, None).reroute(&mut genes, from, to, planning, &mut source);
        let (old, new) = (cells(&board, &before), cells(&board, &genes));
        prop_assert_eq!(&new[..=from], &old[..=from]);
        prop_assert_eq!(&new[to..], &old[to..]);
    }

    #[test]
    fn a_wide_beam_never_makes_a_path_worse(board in boards(), turns in 1usize..30, from in 0.0..1.0, seed: u64) {
        let mut source = source(seed);
        let mut genes = random_path(&board, turns, &mut source);
        let before = points(&board, &genes);
        let from = (from * turns as f64) as usize;
        Router::new(&board, None).reroute(&mut genes, from, turns.min(from + 5), WIDE, &mut source);
        prop_assert!(points(&board, &genes) >= before);
    }

    #[test]
    fn a_child_follows_one_parent_and_then_the_other(
        board in boards(), turns in 1usize..40, planning in planning(), seed: u64
    ) {
        let mut source = source(seed);
        let [first, second] = [(); 2].map(|()| random_path(&board, turns, &mut source));
        let mut child = vec![0; turns];
        let meeting = Router::new(&board, None).cross(&first, &second, &mut child, planning, &mut source);
        if let Some(meeting) = meeting {
            let [first_cells, second_cells, child_cells] = [&first, &second, &child].map(|genes| cells(&board, genes));
            prop_assert_eq!(&child_cells[..=meeting.turn], &first_cells[..=meeting.turn]);
            let copied = child_cells[meeting.turn..].iter().zip(&second_cells[meeting.other_turn..]);
            prop_assert!(copied.clone().all(|(child, second)| child == second));
            prop_assert!(child != first && child != second);
        }
    }
}

#[test]
fn a_guide_never_promises_less_than_there_is() {
    for seed in 1..30 {
        let board = Board::generate_walled(8, 8, seed, 10).unwrap();
        let turns = Turns::new(24).unwrap();
        let optimum = Exact::default().solve(&board, turns).unwrap();
        let bound = Guide::new(&board, turns).unwrap().bound();
        assert!(optimum.is_proved() && optimum.score <= bound, "seed {seed}: {} of {bound}", optimum.score);
    }
}

/// A population under crowding: a child takes the place of the more similar parent, unless it is worse.
struct Population<'a> {
    board: &'a Board,
    router: Router,
    evaluator: Evaluator,
    members: Vec<(Vec<u8>, u32)>,
}

impl<'a> Population<'a> {
    const SIZE: usize = 64;

    fn new(board: &'a Board, turns: usize, source: &mut impl FnMut() -> u64) -> Self {
        let turns = Turns::new(turns).unwrap();
        let guide = Guide::new(board, turns).unwrap();
        let members = (0..Self::SIZE)
            .map(|index| match index % 2 {
                0 => greedy_with_random_ties(board, turns, &mut *source),
                _ => random(board, turns, &mut *source),
            })
            .map(|solution| (solution.path.iter().map(|way| way.gene()).collect(), solution.score))
            .collect();
        let router = Router::new(board, Some(Arc::new(guide)));
        Self { board, router, evaluator: Evaluator::new(board), members }
    }

    fn best(&self) -> u32 {
        self.members.iter().map(|(_, score)| *score).max().unwrap()
    }

    fn step(&mut self, source: &mut impl FnMut() -> u64) {
        let a = below(Self::SIZE, source);
        let b = (a + 1 + below(Self::SIZE - 1, source)) % Self::SIZE;
        let mut child = self.offspring(a, b, source);
        let score = self.evaluator.score(&mut child);
        let difference =
            |parent: usize| self.members[parent].0.iter().zip(&child).filter(|(x, y)| x != y).count();
        let rival = if difference(a) <= difference(b) { a } else { b };
        let is_known = self.members.iter().any(|(genes, _)| *genes == child);
        if score >= self.members[rival].1 && !is_known {
            assert_eq!(points(self.board, &child), score);
            self.members[rival] = (child, score);
        }
    }

    fn offspring(&mut self, a: usize, b: usize, source: &mut impl FnMut() -> u64) -> Vec<u8> {
        let (first, second) = (&self.members[a].0, &self.members[b].0);
        let mut child = first.clone();
        let narrow = Planning { width: 8, noise: 1 };
        if below(5, source) < 2
            && self.router.cross(first, second, &mut child, narrow, &mut *source).is_none()
        {
            child.clone_from(first);
        }
        if below(2, source) == 0 {
            let noise = below(8, source) as u32;
            let (from, guided) = (below(child.len(), source), below(2, source) == 0);
            self.router.replan_tail(&mut child, from, Planning { width: 8, noise }, guided, &mut *source);
        }
        for _ in 0..2 {
            let length = child.len().min(2 + below(12, source));
            let from = below(child.len() - length + 1, source);
            match from + length {
                end if end == child.len() => {
                    self.router.replan_tail(&mut child, from, Planning::default(), false, &mut *source);
                }
                end => self.router.reroute(&mut child, from, end, Planning::default(), &mut *source),
            }
        }
        child
    }
}

fn below(limit: usize, source: &mut impl FnMut() -> u64) -> usize {
    ((u128::from(source()) * limit as u128) >> 64) as usize
}

#[test]
fn a_small_population_evolves_to_the_optimum_of_every_published_board() {
    const STEPS: usize = 20_000;
    for side in [10, 20, 30] {
        let board = Board::generate(side, side, 0).unwrap();
        for turns in (5..=50).step_by(5) {
            let optimum = Exact::default().solve(&board, Turns::new(turns).unwrap()).unwrap().score;
            let mut source = source((side * turns) as u64);
            let mut population = Population::new(&board, turns, &mut source);
            let mut steps = 0;
            while population.best() < optimum && steps < STEPS {
                population.step(&mut source);
                steps += 1;
            }
            assert_eq!(population.best(), optimum, "side {side}, {turns} turns");
        }
    }
}
