//! The other goals against trying every walk, judged on coordinates by the rules as they are written down.

use crate::random_boards::boards;
use maze::{Board, Chokudai, Direction, Evaluator, Exact, Goal, Horizon, Objective, Solution, Turns};
use maze::{greedy_for, greedy_for_with_random_ties, random_for};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn turns(count: usize) -> Turns {
    Turns::new(count).unwrap()
}

fn reached_cells(board: &Board) -> BTreeSet<u16> {
    let mut found = BTreeSet::from([board.start()]);
    loop {
        let more: BTreeSet<u16> =
            found.iter().flat_map(|&cell| board.moves(cell).map(|(_, next)| next)).collect();
        let before = found.len();
        found.extend(more);
        if found.len() == before {
            return found;
        }
    }
}

/// The score of the numbers taken by a walk, in the order in which it takes them, each with its move. It knows whole
/// walks only, and so shares nothing with solvers that go move by move.
fn score(board: &Board, goal: &Goal, count: usize, taken: &[(usize, u8)]) -> u32 {
    let numbers: Vec<u8> = taken.iter().map(|&(_, number)| number).collect();
    let saved = |last: usize| (count - taken[..last].last().map_or(0, |&(turn, _)| turn)) as u32;
    match goal {
        Goal::Points => numbers.iter().map(|&number| u32::from(number)).sum(),
        Goal::Order { numbers: order } => {
            let right = order.iter().zip(&numbers).take_while(|(wanted, found)| wanted == found).count();
            right as u32 + if right == order.len() { saved(right) } else { 0 }
        }
        Goal::Sum { sum } => {
            let sums = (0..=numbers.len()).map(|many| numbers[..many].iter().map(|&n| u32::from(n)).sum());
            let kept = sums.take_while(|total: &u32| total <= sum).enumerate().last().unwrap();
            kept.1 + if kept.1 == *sum { saved(kept.0) } else { 0 }
        }
        Goal::All => {
            let all = reached_cells(board).iter().filter(|&&cell| board.points(cell) != Some(0)).count();
            numbers.len() as u32 + if numbers.len() == all { saved(all) } else { 0 }
        }
    }
}

/// The numbers that a walk takes, each with the moves made up to it.
fn takes(board: &Board, path: &[Direction]) -> Vec<(usize, u8)> {
    let (mut cell, mut seen, mut taken) = (board.start(), BTreeSet::new(), vec![]);
    for (turn, &way) in path.iter().enumerate() {
        cell = board.step(cell, way).unwrap();
        let points = board.points(cell).unwrap();
        if seen.insert(cell) && points > 0 {
            taken.push((turn + 1, points));
        }
    }
    taken
}

/// The best score by walking every path of the whole length.
fn best_of_all(board: &Board, goal: &Goal, count: usize) -> u32 {
    fn extend(board: &Board, goal: &Goal, count: usize, cell: u16, path: &mut Vec<Direction>) -> u32 {
        if path.len() == count {
            return score(board, goal, count, &takes(board, path));
        }
        let mut best = 0;
        for (way, next) in board.moves(cell) {
            path.push(way);
            best = best.max(extend(board, goal, count, next, path));
            path.pop();
        }
        best
    }
    extend(board, goal, count, board.start(), &mut vec![])
}

fn goals() -> impl Strategy<Value = Goal> {
    prop_oneof![
        prop::collection::vec(1u8..=9, 1..4).prop_map(|numbers| Goal::Order { numbers }),
        (1u32..40).prop_map(|sum| Goal::Sum { sum }),
        Just(Goal::All),
    ]
}

/// Boards of few numbers, so that orders are possible and all numbers can be taken.
fn sparse_boards() -> impl Strategy<Value = Board> {
    (2usize..5, 2usize..5, prop::collection::vec(0u8..14, 25)).prop_map(|(width, height, values)| {
        let numbers = values.iter().map(|&value| if value < 10 { value / 3 } else { 0 });
        let mut cells: Vec<Option<u8>> = numbers.take(width * height).map(Some).collect();
        cells[0] = Some(0);
        if width * height > 6 {
            cells[width + 1] = None;
        }
        Board::new(width, height, maze::Place { x: 0, y: 0 }, &cells).unwrap()
    })
}

fn source(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    }
}

fn is_honest(
    board: &Board,
    objective: &Objective,
    count: usize,
    solution: &Solution,
) -> Result<(), TestCaseError> {
    prop_assert!(solution.path.len() <= count);
    let truth = score(board, objective.goal(), count, &takes(board, &solution.path));
    prop_assert_eq!(truth, solution.score, "{}", solution.letters());
    prop_assert_eq!(objective.judge(board, &solution.path).unwrap().score, solution.score);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_exact_solver_finds_what_trying_every_walk_finds(
        board in prop_oneof![sparse_boards(), boards().prop_filter("small", |board| board.cells() <= 16)],
        goal in goals(),
        count in 1usize..8,
    ) {
        let objective = Objective::new(&goal, &board, turns(count)).unwrap();
        let exact = Exact::default().solve_for(&board, turns(count), &objective).unwrap();
        prop_assert_eq!(exact.score, best_of_all(&board, &goal, count));
        prop_assert!(exact.is_proved());
        is_honest(&board, &objective, count, &exact)?;
    }

    #[test]
    fn every_solver_is_honest_and_never_better_than_the_exact_one(
        board in prop_oneof![sparse_boards(), boards()],
        goal in goals(),
        count in 1usize..12,
        seed in any::<u64>(),
        (width, beams, replan, distinct, full) in
            (1usize..6, 1usize..4, any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        let objective = Objective::new(&goal, &board, turns(count)).unwrap();
        let limits = Exact { max_states: 100_000, ..Exact::default() };
        let exact = limits.solve_for(&board, turns(count), &objective).unwrap();
        let horizon = if full { Horizon::Full } else { Horizon::Remaining };
        let search = Chokudai { width, beams, replan, distinct, horizon };
        let answers = [
            random_for(&board, &objective, source(seed)),
            greedy_for(&board, &objective),
            greedy_for_with_random_ties(&board, &objective, source(seed)),
            search.solve_for(&board, turns(count), &objective).unwrap(),
        ];
        for answer in answers {
            is_honest(&board, &objective, count, &answer)?;
            prop_assert!(answer.score <= exact.bound.unwrap());
        }
    }

    #[test]
    fn a_wide_beam_that_forgets_nothing_is_exact(board in sparse_boards(), goal in goals(), count in 1usize..7) {
        let objective = Objective::new(&goal, &board, turns(count)).unwrap();
        let exact = Exact::default().solve_for(&board, turns(count), &objective).unwrap();
        let wide = Chokudai {
            width: 20_000, beams: 1, replan: false, horizon: Horizon::Remaining, distinct: true,
        };
        prop_assert_eq!(wide.solve_for(&board, turns(count), &objective).unwrap().score, exact.score);
    }

    #[test]
    fn genomes_are_judged_as_the_walks_that_they_are(
        board in prop_oneof![sparse_boards(), boards()],
        goal in prop_oneof![goals(), Just(Goal::Points)],
        genes in prop::collection::vec(0u8..4, 1..12),
    ) {
        let objective = Objective::new(&goal, &board, turns(genes.len())).unwrap();
        let mut evaluator = Evaluator::new(&board);
        let mut repaired = genes.clone();
        let by_repair = evaluator.score_for(&mut repaired, &objective);
        let path: Vec<Direction> = repaired.iter().map(|&gene| Direction::from_gene(gene)).collect();
        prop_assert_eq!(by_repair, score(&board, &goal, genes.len(), &takes(&board, &path)));
        let as_it_stands: Vec<Direction> = genes.iter().map(|&gene| Direction::from_gene(gene)).collect();
        let strict = objective.judge(&board, &as_it_stands).ok().map(|outcome| outcome.score);
        prop_assert_eq!(evaluator.score_strictly_for(&genes, &objective), strict);
        let mut points = genes.clone();
        let plain = Objective::new(&Goal::Points, &board, turns(genes.len())).unwrap();
        prop_assert_eq!(evaluator.score(&mut points), evaluator.score_for(&mut genes.clone(), &plain));
    }
}

#[test]
fn an_order_is_broken_by_any_other_number() {
    let board: Board = "@12\n#43\n".parse().unwrap();
    let judged = |goal: &str, path: &str| {
        let objective = Objective::new(&goal.parse().unwrap(), &board, turns(6)).unwrap();
        let ways = path.chars().map(|letter| {
            Direction::ALL.into_iter().find(|way| way.letter() == letter).expect("a letter of a direction")
        });
        objective.judge(&board, &ways.collect::<Vec<_>>()).unwrap()
    };
    let whole = judged("order:1,2,3,4", "RRDL");
    assert!(whole.reached && (whole.progress, whole.moves, whole.score) == (4, 4, 6), "{whole:?}");
    let broken = judged("order:1,2,3,4", "RDR");
    assert!(broken.failed && (broken.progress, broken.score) == (1, 1), "{broken:?}");
    let sum = judged("sum:6", "RRD");
    assert!(sum.reached && (sum.moves, sum.score) == (3, 9), "{sum:?}");
    let over = judged("sum:5", "RRD");
    assert!(over.failed && over.score == 3, "{over:?}");
    let all = judged("all", "RRDL");
    assert!(all.reached && (all.progress, all.moves, all.score) == (4, 4, 6), "{all:?}");
}

#[test]
fn goals_are_written_as_they_are_read_and_nonsense_is_refused() {
    for text in ["points", "all", "sum:30", "order:1,2,3,4"] {
        assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
    }
    for (text, reason) in [
        ("sum:0", "expected a sum from 1 to 90000, found `0`"),
        ("sum:90001", "expected a sum from 1 to 90000"),
        ("order:1,0", "expected numbers from 1 to 9 in the order, found `0`"),
        ("order:", "expected `points`, `all`, `sum:30` or `order:1,2,3,4`, found `order:`"),
        ("most", "expected `points`, `all`"),
    ] {
        let error = text.parse::<Goal>().unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn a_board_without_numbers_is_done_before_the_first_move() {
    let board: Board = "@0\n00\n".parse().unwrap();
    let objective = Objective::new(&Goal::All, &board, turns(5)).unwrap();
    let exact = Exact::default().solve_for(&board, turns(5), &objective).unwrap();
    assert!(exact.path.is_empty() && exact.score == 5 && exact.is_proved(), "{exact:?}");
    assert!(greedy_for(&board, &objective).path.is_empty());
}

#[test]
fn a_goal_out_of_reach_has_a_bound_within_the_limits() {
    let board = Board::generate(30, 30, 0).unwrap();
    let objective = Objective::new(&Goal::All, &board, turns(2000)).unwrap();
    let limits = Exact { max_states: 2_000, ..Exact::default() };
    let answer = limits.solve_for(&board, turns(2000), &objective).unwrap();
    let numbers = (0..900).filter(|&cell| board.points(cell) != Some(0)).count() as u32;
    assert!(answer.bound.unwrap() <= 2000 && answer.score <= answer.bound.unwrap(), "{answer:?}");
    assert!(answer.score > numbers / 2);
}
