//! The evaluator against a slow checker that shares nothing with it but the board.

#![allow(clippy::unwrap_used)]

use maze::{Board, Direction, Evaluator};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Walks `genes` on coordinates, letting `repair` choose among the possible directions where one leads nowhere.
/// Gives the genes walked and the points collected.
fn walk(
    board: &Board,
    genes: &[u8],
    mut repair: impl FnMut(u8, &[u8]) -> Option<u8>,
) -> Option<(Vec<u8>, u32)> {
    let start = board.place(board.start());
    let (mut x, mut y) = (start.x as i64, start.y as i64);
    let mut taken = BTreeSet::new();
    let (mut walked, mut score) = (Vec::new(), 0);
    for &gene in genes {
        let possible: Vec<u8> = (0..4).filter(|&way| worth(board, target(x, y, way)).is_some()).collect();
        let gene = if possible.contains(&gene) { gene } else { repair(gene, &possible)? };
        (x, y) = target(x, y, gene);
        if taken.insert((x, y)) {
            score += u32::from(worth(board, (x, y)).unwrap());
        }
        walked.push(gene);
    }
    Some((walked, score))
}

fn target(x: i64, y: i64, gene: u8) -> (i64, i64) {
    [(x, y - 1), (x, y + 1), (x - 1, y), (x + 1, y)][usize::from(gene)]
}

fn worth(board: &Board, (x, y): (i64, i64)) -> Option<u8> {
    let inside = x >= 0 && y >= 0 && x < board.width() as i64 && y < board.height() as i64;
    if inside { board.points((y * board.width() as i64 + x) as u16) } else { None }
}

fn nearest(gene: u8, possible: &[u8]) -> Option<u8> {
    possible.iter().copied().min_by_key(|way| (way.abs_diff(gene), *way))
}

fn boards() -> impl Strategy<Value = Board> {
    (1usize..12, 1usize..12, any::<u32>(), 0u8..40)
        .prop_filter("a board has two cells or more", |(width, height, ..)| width * height > 1)
        .prop_map(|(width, height, seed, walls)| Board::generate_walled(width, height, seed, walls).unwrap())
}

proptest! {
    #[test]
    fn r1_takes_the_nearest_direction(board in boards(), genes in prop::collection::vec(0u8..4, 0..80)) {
        let (walked, score) = walk(&board, &genes, nearest).unwrap();
        let mut repaired = genes;
        prop_assert_eq!(Evaluator::new(&board).score(&mut repaired), score);
        prop_assert_eq!(repaired, walked);
    }

    #[test]
    fn r2_refuses_what_leads_nowhere(board in boards(), genes in prop::collection::vec(0u8..4, 0..12)) {
        let expected = walk(&board, &genes, |_, _| None).map(|(_, score)| score);
        prop_assert_eq!(Evaluator::new(&board).score_strictly(&genes), expected);
    }

    #[test]
    fn r3_replaces_only_what_leads_nowhere_by_what_is_possible(
        board in boards(), genes in prop::collection::vec(0u8..4, 0..80), draws in prop::collection::vec(any::<u64>(), 80)
    ) {
        let evaluator = Evaluator::new(&board);
        let mut repaired = genes.clone();
        let mut source = draws.iter().copied();
        evaluator.repair_randomly(&mut repaired, || source.next().unwrap());
        let mut source = draws.iter().copied();
        let choose = |_, possible: &[u8]| {
            Some(possible[((u128::from(source.next().unwrap()) * possible.len() as u128) >> 64) as usize])
        };
        prop_assert_eq!(&repaired, &walk(&board, &genes, choose).unwrap().0);
        prop_assert!(evaluator.clone().score_strictly(&repaired).is_some());
    }

    #[test]
    fn rows_score_as_if_each_came_alone(
        board in boards(), turns in 0usize..30, padding in 1usize..9, count in 0usize..12, fill in any::<u64>()
    ) {
        let stride = turns + padding;
        let mut rows: Vec<u8> = (0..stride * count).map(|i| (fill.rotate_left(i as u32 * 7) & 3) as u8).collect();
        let before = rows.clone();
        let mut scores = vec![0; count];
        let mut evaluator = Evaluator::new(&board);
        evaluator.score_rows(&mut rows, stride, turns, &mut scores);
        for ((row, old), score) in rows.chunks(stride).zip(before.chunks(stride)).zip(scores) {
            let (walked, expected) = walk(&board, &old[..turns], nearest).unwrap();
            prop_assert_eq!((&row[..turns], score), (&walked[..], expected));
            prop_assert_eq!(&row[turns..], &old[turns..], "what lies behind the genes stays");
        }
    }
}

#[test]
fn only_the_two_lowest_bits_of_a_gene_count() {
    let board = Board::generate(8, 8, 3).unwrap();
    let mut evaluator = Evaluator::new(&board);
    let (mut plain, mut dirty) = ([2, 1, 0, 3, 2, 2], [0xf2, 0x11, 0x84, 0x7, 0x2, 0xfe]);
    assert_eq!(evaluator.score(&mut plain), evaluator.score(&mut dirty));
    assert_eq!(plain, dirty);
}

#[test]
fn a_board_of_the_largest_size_is_walked_to_its_corners() {
    let board = Board::generate(128, 128, 5).unwrap();
    let mut genes: Vec<u8> = [Direction::Right, Direction::Down, Direction::Left, Direction::Up]
        .iter()
        .flat_map(|way| [way.gene(); 130])
        .collect();
    let (walked, score) = walk(&board, &genes, nearest).unwrap();
    assert_eq!(Evaluator::new(&board).score(&mut genes), score);
    assert_eq!(genes, walked);
}
