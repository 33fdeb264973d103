//! The published boards and scores: every row must come out.

use maze::{Board, Chokudai, Exact, Turns, greedy};

/// One row of the table of seed-0 boards.
struct Row {
    side: usize,
    turns: Turns,
    greedy: u32,
    beam: u32,
    chokudai: u32,
    low: u32,
    high: u32,
}

impl Row {
    fn board(&self) -> Board {
        Board::generate(self.side, self.side, 0).unwrap()
    }
}

fn rows() -> Vec<Row> {
    let table = include_str!("data/maze_seed0_boards.csv");
    let lines = table.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let rows: Vec<Row> = lines
        .map(|line| {
            let values: Vec<u32> = line.split(',').map(|value| value.parse().unwrap()).collect();
            let [side, turns, greedy, beam, chokudai, low, high] = values[..] else { panic!("{line}") };
            let turns = Turns::new(turns as usize).unwrap();
            Row { side: side as usize, turns, greedy, beam, chokudai, low, high }
        })
        .collect();
    assert_eq!(rows.len(), 30);
    rows
}

#[test]
fn greedy_scores_are_the_published_ones() {
    for row in rows() {
        assert_eq!(greedy(&row.board(), row.turns).score, row.greedy, "{} at {:?}", row.side, row.turns);
    }
}

#[test]
fn beam_scores_are_the_published_ones() {
    for row in rows() {
        let found = Chokudai::beam(2).solve(&row.board(), row.turns).unwrap();
        assert_eq!(found.score, row.beam, "{} at {:?}", row.side, row.turns);
    }
}

#[test]
fn chokudai_scores_are_the_published_ones() {
    for row in rows() {
        let found = Chokudai::default().solve(&row.board(), row.turns).unwrap();
        assert_eq!(found.score, row.chokudai, "{} at {:?}", row.side, row.turns);
    }
}

#[test]
fn the_exact_solver_proves_every_optimum_also_the_two_left_open() {
    for row in rows() {
        let board = row.board();
        let found = Exact::default().solve(&board, row.turns).unwrap();
        assert!(found.is_proved(), "{} at {:?}: {} of {:?}", row.side, row.turns, found.score, found.bound);
        assert_eq!(board.collect(&found.path), Ok(found.score));
        assert!(
            (row.low..=row.high).contains(&found.score),
            "{} at {:?}: {}",
            row.side,
            row.turns,
            found.score
        );
    }
}

/// The paper's greedy, beam and Chokudai columns, in the order of [`rows`].
fn printed() -> Vec<[u32; 3]> {
    let table = include_str!("data/maze_paper_tables.csv");
    let lines = table.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    lines.map(|line| [6, 7, 8].map(|column| line.split(',').nth(column).unwrap().parse().unwrap())).collect()
}

#[test]
fn the_inferred_boards_reproduce_the_printed_columns_but_for_one_greedy_score() {
    let different: Vec<[u32; 6]> = rows()
        .iter()
        .zip(printed())
        .map(|(row, [greedy, beam, chokudai])| [row.greedy, greedy, row.beam, beam, row.chokudai, chokudai])
        .filter(|[greedy, g, beam, b, chokudai, c]| greedy != g || beam != b || chokudai != c)
        .collect();
    assert_eq!(different, [[314, 313, 334, 334, 338, 338]], "20x20 at 50 turns");
}
