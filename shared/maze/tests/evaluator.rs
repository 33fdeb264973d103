//! The evaluator against a slow checker that shares nothing with it but the board.

use crate::checker::walk;
use crate::random_boards::boards;
use maze::{Board, Direction, Evaluator};
use proptest::prelude::*;

fn nearest(gene: u8, possible: &[u8]) -> Option<u8> {
    possible.iter().copied().min_by_key(|way| (way.abs_diff(gene), *way))
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
