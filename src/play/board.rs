//! The board on the screen.

use checkers::{Move, Piece, Position, Side, Square, Squares};

/// How the board is drawn.
pub(super) struct Board {
    /// Whose back row is at the bottom.
    pub(super) bottom: Side,
    /// With the colours of a terminal; letters otherwise.
    pub(super) colours: bool,
}

const RESET: &str = "\x1b[0m";
const LIGHT: &str = "\x1b[48;5;223m";
const DARK: &str = "\x1b[48;5;65m";
/// Dark squares that the last move touched.
const TOUCHED: &str = "\x1b[48;5;136m";
const NUMBER: &str = "\x1b[38;5;151m";
const BLACK_PIECE: &str = "\x1b[1;38;5;16m";
const WHITE_PIECE: &str = "\x1b[1;38;5;231m";

impl Board {
    /// The position, with the squares of the last move marked.
    pub(super) fn draw(&self, position: &Position, last: Option<&Move>) -> String {
        let touched: Squares = last.map_or(Squares::NONE, |mv| mv.squares().collect());
        let rows = (0..8).map(|row| {
            let cells = (0..8).map(|column| self.cell(position, touched, self.square(row, column)));
            cells.collect::<String>().trim_end().to_owned()
        });
        let side = position.side_to_move();
        format!("\n{}\n{side} to move\n", rows.collect::<Vec<_>>().join("\n"))
    }

    /// The playable square at a place of the screen.
    fn square(&self, row: usize, column: usize) -> Option<Square> {
        let (row, column) = match self.bottom {
            Side::White => (row, column),
            Side::Black => (7 - row, 7 - column),
        };
        Squares::ALL.into_iter().find(|square| (square.row(), square.column()) == (row, column))
    }

    fn cell(&self, position: &Position, touched: Squares, square: Option<Square>) -> String {
        match (square, self.colours) {
            (None, false) => "     ".to_owned(),
            (None, true) => format!("{LIGHT}     {RESET}"),
            (Some(square), false) => format!("{:>2}{}  ", square.number(), letter(position.piece(square))),
            (Some(square), true) => {
                let ground = if touched.contains(square) { TOUCHED } else { DARK };
                let piece = figure(position.piece(square));
                format!("{ground}{NUMBER}{:>2}{piece}  {RESET}", square.number())
            }
        }
    }
}

/// A piece in plain text: `b` and `w` are men, `B` and `W` kings.
fn letter(piece: Option<Piece>) -> char {
    match piece {
        None => '.',
        Some(Piece::Man(Side::Black)) => 'b',
        Some(Piece::Man(Side::White)) => 'w',
        Some(Piece::King(Side::Black)) => 'B',
        Some(Piece::King(Side::White)) => 'W',
    }
}

/// A piece in colours.
fn figure(piece: Option<Piece>) -> String {
    match piece {
        None => " ".to_owned(),
        Some(Piece::Man(side)) => format!("{}●", colour(side)),
        Some(Piece::King(side)) => format!("{}♛", colour(side)),
    }
}

fn colour(side: Side) -> &'static str {
    match side {
        Side::Black => BLACK_PIECE,
        Side::White => WHITE_PIECE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stands_where_players_expect_it() {
        let position: Position = "W:W18,K30:B1,K12".parse().unwrap();
        let white = Board { bottom: Side::White, colours: false }.draw(&position, None);
        let rows: Vec<&str> = white.lines().collect();
        assert_eq!(rows[1], "      1b        2.        3.        4.");
        assert_eq!(rows[8], "29.       30W       31.       32.");
        let black = Board { bottom: Side::Black, colours: false }.draw(&position, None);
        let rows: Vec<&str> = black.lines().collect();
        assert_eq!(rows[1], "     32.       31.       30W       29.");
        assert_eq!(rows[8], " 4.        3.        2.        1b");
    }

    #[test]
    fn colours_tell_sides_apart_and_mark_the_last_move() {
        let board = Board { bottom: Side::White, colours: true };
        let mv = Position::START.parse_move("11-15").unwrap();
        let after = Position::START.play(&mv);
        let drawn = board.draw(&after, Some(&mv));
        assert_eq!(drawn.matches(BLACK_PIECE).count(), 12);
        assert_eq!(drawn.matches(WHITE_PIECE).count(), 12);
        assert_eq!(drawn.matches(TOUCHED).count(), 2);
        assert_eq!(board.draw(&after, None).matches(TOUCHED).count(), 0);
    }
}
