//! Boards: drawn as published, read, written, drawn, and refused with the reason.

use crate::random_boards::boards;
use maze::{Board, BoardError, Direction, MAX_BOARD_BYTES, Place};
use proptest::prelude::*;

const SMALL: &str = "31#4\n2@95\n";

#[test]
fn the_seed_zero_board_follows_from_the_first_values_of_its_generator() {
    let board = Board::generate(10, 10, 0).unwrap();
    // 2357136044 and 2546248239 place the character; 3071714933 and 3626093760 are the first two cells' draws.
    assert_eq!(board.place(board.start()), Place { x: 9, y: 4 });
    assert_eq!((board.points(0), board.points(1)), (Some(3), Some(0)));
    assert_eq!(board.points(board.start()), Some(0));
}

#[test]
fn width_and_height_are_not_mixed_up() {
    let board = Board::generate(7, 3, 0).unwrap();
    assert_eq!((board.width(), board.height()), (7, 3));
    // Row 2357136044 % 3, column 2546248239 % 7.
    assert_eq!(board.place(board.start()), Place { x: 3, y: 2 });
    assert_eq!(board.to_string().lines().map(str::len).collect::<Vec<_>>(), [7, 7, 7]);
}

#[test]
fn walls_leave_start_and_points_where_they_were() {
    let (open, walled) =
        (Board::generate(20, 20, 4).unwrap(), Board::generate_walled(20, 20, 4, 30).unwrap());
    assert_eq!(open.start(), walled.start());
    let kept: Vec<u16> = (0..400).filter(|&cell| walled.points(cell).is_some()).collect();
    assert!((240..320).contains(&kept.len()), "about 70 % of 400 cells are kept, not {}", kept.len());
    assert!(kept.iter().all(|&cell| walled.points(cell) == open.points(cell)));
}

#[test]
fn a_start_walled_in_completely_gets_one_way_out() {
    let board = Board::generate_walled(9, 9, 2, 100).unwrap();
    assert_eq!(board.moves(board.start()).count(), 1);
    assert_eq!((0..81).filter(|&cell| board.points(cell).is_some()).count(), 2);
}

#[test]
fn text_and_json_say_the_same() {
    let board: Board = SMALL.parse().unwrap();
    assert_eq!(board.to_string(), SMALL);
    let json = r#"{"start":{"x":1,"y":1},"rows":[[3,1,null,4],[2,0,9,5]]}"#;
    assert_eq!(board.to_json(), json);
    assert_eq!(Board::read(json).unwrap(), board);
    assert_eq!(Board::read("// a remark\r\n31#4\r\n2@95\r\n\r\n").unwrap(), board);
}

#[test]
fn a_wall_stops_a_move_and_the_edge_does_too() {
    let board: Board = SMALL.parse().unwrap();
    let path = [Direction::Up, Direction::Right];
    let blocked = board.collect(&path).unwrap_err();
    assert_eq!(blocked.to_string(), "expected a possible move, found `R` in turn 2 at column 2 of row 1");
    assert!(board.collect(&[Direction::Down]).is_err());
    assert_eq!(board.collect(&[Direction::Up, Direction::Left, Direction::Right]), Ok(4));
    assert!(board.draw(&path).is_err() && board.to_svg(&path).is_err());
}

#[test]
fn a_path_is_drawn_on_the_board() {
    let board: Board = SMALL.parse().unwrap();
    let path = [Direction::Up, Direction::Left];
    assert_eq!(board.draw(&[]).unwrap(), " 3  1 ### 4\n 2  @  9  5\n");
    assert_eq!(board.draw(&path).unwrap(), "<3>[1]### 4\n 2 [@] 9  5\n");
    let svg = board.to_svg(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("points=\"36,36 36,12 12,12\""), "{svg}");
    assert_eq!((svg.matches("<rect ").count(), svg.matches("<text ").count()), (8, 6));
}

#[test]
fn bad_boards_are_refused_with_the_reason() {
    let cases = [
        ("", "expected a board of 2 to 16384 cells, found width `0` and height `0`"),
        ("@", "expected a board of 2 to 16384 cells, found width `1` and height `1`"),
        ("12\n3@5", "expected rows of 2 cells, found `3` in row 2"),
        ("12\n3", "expected one start `@`, found `0`"),
        ("@2\n3@", "expected one start `@`, found `2`"),
        ("1x\n3@", "expected a digit, `#` or `@`, found `x` in column 2 of row 1"),
        ("1é\n3@", "expected a digit, `#` or `@`, found `é` in column 2 of row 1"),
        ("1#\n#@", "expected a cell to move to, found none next to the start in column `2` of row `2`"),
        (
            r#"{"start":{"x":2,"y":0},"rows":[[0,1]]}"#,
            "expected a start inside the board, found column `3` of row `1`",
        ),
        (
            r#"{"start":{"x":0,"y":0},"rows":[[0,10]]}"#,
            "expected 0 to 9 points, found `10` in column 2 of row 1",
        ),
        (
            r#"{"start":{"x":1,"y":0},"rows":[[0,7]]}"#,
            "expected the start to hold 0 points, found `7` in column 2 of row 1",
        ),
        (
            r#"{"start":{"x":1,"y":0},"rows":[[0,null]]}"#,
            "expected the start to hold 0 points, found a wall in column 2 of row 1",
        ),
        (
            r#"{"start":{"x":0,"y":0},"rows":[]}"#,
            "expected a board of 2 to 16384 cells, found width `0` and height `0`",
        ),
        (r#"{"start":{"x":0,"y":0},"rows":[[0],[1,2]]}"#, "expected rows of 1 cells, found `2` in row 2"),
        (
            r#"{"start":{"x":0,"y":0},"rows":[[0,1]],"walls":1}"#,
            "expected a board in JSON, found an error: unknown field `walls`",
        ),
        (
            r#"{"start":{"x":18446744073709551615,"y":0},"rows":[[0,1]]}"#,
            "expected a start inside the board, found column `18446744073709551615` of row `1`",
        ),
        ("{", "expected a board in JSON, found an error: EOF"),
    ];
    for (text, expected) in cases {
        let error = Board::read(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let long = "1".repeat(MAX_BOARD_BYTES + 1);
    assert!(
        Board::read(&long).unwrap_err().to_string().starts_with("expected a board of at most 262144 bytes")
    );
}

#[test]
fn bad_sizes_are_refused_before_anything_is_allocated() {
    for (width, height) in [(0, 5), (5, 0), (1, 1), (usize::MAX, usize::MAX), (129, 128)] {
        assert_eq!(Board::generate(width, height, 0), Err(BoardError::Size { width, height }));
    }
    assert_eq!(Board::generate_walled(5, 5, 0, 101), Err(BoardError::Walls { percent: 101 }));
    let cells = [Some(0); 5];
    let start = Place { x: 0, y: 0 };
    assert_eq!(Board::new(2, 3, start, &cells), Err(BoardError::Cells { expected: 6, found: 5 }));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(board in boards()) {
        prop_assert_eq!(&Board::read(&board.to_string()).unwrap(), &board);
        prop_assert_eq!(&Board::read(&board.to_json()).unwrap(), &board);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[@#0-9x\\n{}\\[\\], \"a-z:]{0,60}") {
        if let Ok(board) = Board::read(&text) {
            prop_assert_eq!(&Board::read(&board.to_string()).unwrap(), &board);
        }
    }
}
