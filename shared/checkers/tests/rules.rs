//! The rules against a slow generator that knows rows, columns and pieces, not bits.

use checkers::{Move, Piece, Position, Side, Square, perft, perft_merged};
use proptest::prelude::*;
use std::collections::BTreeSet;

use crate::support::{Random, random_position, turned};

/// A board as a person sees it.
struct Board {
    pieces: [[Option<Piece>; 8]; 8],
    side: Side,
}

impl Board {
    fn new(position: &Position) -> Self {
        let mut pieces = [[None; 8]; 8];
        for number in 1..=32 {
            let square = Square::new(number).unwrap();
            pieces[square.row()][square.column()] = position.piece(square);
        }
        Self { pieces, side: position.side_to_move() }
    }

    fn is_inside((row, column): (i32, i32)) -> bool {
        (0..8).contains(&row) && (0..8).contains(&column)
    }

    fn at(&self, (row, column): (i32, i32)) -> Option<Piece> {
        Self::is_inside((row, column)).then(|| self.pieces[row as usize][column as usize]).flatten()
    }

    fn is_empty(&self, at: (i32, i32)) -> bool {
        Self::is_inside(at) && self.at(at).is_none()
    }

    fn is_enemy(&self, at: (i32, i32)) -> bool {
        matches!(self.at(at), Some(Piece::Man(side) | Piece::King(side)) if side != self.side)
    }

    /// The directions in which a piece of the side to move may go.
    fn directions(&self, piece: Piece) -> Vec<(i32, i32)> {
        let forward = if self.side == Side::Black { 1 } else { -1 };
        let rows = match piece {
            Piece::Man(_) => vec![forward],
            Piece::King(_) => vec![1, -1],
        };
        rows.into_iter().flat_map(|row| [(row, -1), (row, 1)]).collect()
    }

    /// All continuations of a jump from `way`'s last square; the way itself if there is none.
    fn jumps(&mut self, piece: Piece, way: &[(i32, i32)]) -> Vec<Vec<(i32, i32)>> {
        let (row, column) = way[way.len() - 1];
        let mut all = Vec::new();
        for (down, right) in self.directions(piece) {
            let (over, to) = ((row + down, column + right), (row + 2 * down, column + 2 * right));
            if self.is_enemy(over) && self.is_empty(to) {
                let victim = self.pieces[over.0 as usize][over.1 as usize].take();
                all.extend(self.jumps(piece, &[way, &[to]].concat()));
                self.pieces[over.0 as usize][over.1 as usize] = victim;
            }
        }
        if all.is_empty() { vec![way.to_vec()] } else { all }
    }

    /// The squares of every legal move.
    fn legal_moves(&mut self) -> BTreeSet<Vec<u8>> {
        let (mut captures, mut steps) = (Vec::new(), Vec::new());
        for at in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let Some(piece @ (Piece::Man(side) | Piece::King(side))) = self.at(at) else { continue };
            if side != self.side {
                continue;
            }
            self.pieces[at.0 as usize][at.1 as usize] = None;
            captures.extend(self.jumps(piece, &[at]).into_iter().filter(|way| way.len() > 1));
            self.pieces[at.0 as usize][at.1 as usize] = Some(piece);
            let steps_of =
                self.directions(piece).into_iter().map(|(down, right)| (at.0 + down, at.1 + right));
            steps.extend(steps_of.filter(|to| self.is_empty(*to)).map(|to| vec![at, to]));
        }
        let ways = if captures.is_empty() { steps } else { captures };
        ways.into_iter().map(|way| way.into_iter().map(number).collect()).collect()
    }
}

/// The number of the playable square at a row and column.
fn number((row, column): (i32, i32)) -> u8 {
    (row * 4 + column / 2 + 1) as u8
}

fn squares(mv: &Move) -> Vec<u8> {
    mv.squares().map(Square::number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn legal_moves_are_those_of_the_slow_generator(seed: u64) {
        let position = random_position(&mut Random::new(seed), 120);
        let moves = position.legal_moves();
        let ours: BTreeSet<Vec<u8>> = moves.iter().map(squares).collect();
        prop_assert_eq!(ours.len(), moves.len(), "a move twice in {:?}", position);
        prop_assert_eq!(&ours, &Board::new(&position).legal_moves(), "{:?}", position);
        prop_assert_eq!(position.count_moves(), moves.len() as u64);
        prop_assert_eq!(position.is_lost(), moves.is_empty());
        prop_assert_eq!(position.must_capture(), moves.iter().any(Move::is_capture));
    }

    #[test]
    fn a_move_moves_one_piece_and_takes_what_it_jumps(seed: u64) {
        let position = random_position(&mut Random::new(seed), 120);
        let side = position.side_to_move();
        for mv in position.legal_moves() {
            let next = position.play(&mv);
            next.validate().unwrap();
            prop_assert_eq!(next.side_to_move(), !side);
            prop_assert_eq!(next.pieces(side).count(), position.pieces(side).count());
            let taken = position.pieces(!side).count() - next.pieces(!side).count();
            prop_assert_eq!(taken, mv.captured().count());
            prop_assert!(next.kings(side).count() >= position.kings(side).count());
            let moved = position.piece(mv.from()).unwrap();
            let crowned = side.crown_row().contains(mv.to()) || matches!(moved, Piece::King(_));
            prop_assert_eq!(next.piece(mv.to()), Some(if crowned { Piece::King(side) } else { moved }));
        }
    }

    #[test]
    fn both_sides_play_by_the_same_rules(seed: u64) {
        let position = random_position(&mut Random::new(seed), 120);
        let other = turned(&position);
        let turn = |mv: &Move| squares(mv).into_iter().map(|number| 33 - number).collect();
        let moves: BTreeSet<Vec<u8>> = position.legal_moves().iter().map(squares).collect();
        let others: BTreeSet<Vec<u8>> = other.legal_moves().iter().map(turn).collect();
        prop_assert_eq!(moves, others);
    }
}

#[test]
fn merging_counts_two_ways_round_once() {
    let round: Position = "B:W6,7,14,15:BK2".parse().unwrap();
    assert_eq!(
        round.legal_moves().iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["2x9x18x11x2", "2x11x18x9x2"]
    );
    assert_eq!((perft(&round, 1), perft_merged(&round, 1)), (2, 1));
    let before: Position = "W:W6,7,14,15,32:BK2".parse().unwrap();
    let ends = before.legal_moves().iter().map(|mv| before.play(mv)).map(|next| perft(&next, 1)).sum();
    assert_eq!(perft(&before, 2), ends);
    assert!(perft_merged(&before, 2) < perft(&before, 2));
}

#[test]
fn a_man_that_is_crowned_stops() {
    let position: Position = "B:W26,27:B22".parse().unwrap();
    let moves = position.legal_moves();
    assert_eq!(moves.iter().map(ToString::to_string).collect::<Vec<_>>(), ["22x31"]);
    assert_eq!(position.play(&moves[0]).to_string(), "W:W27:BK31");
}

#[test]
fn a_king_may_end_where_it_began() {
    let position: Position = "B:W6,7,14,15:BK2".parse().unwrap();
    let after = position.play(&position.legal_moves()[0]);
    assert_eq!(after.to_string(), "W:W:BK2");
}

#[test]
fn openings_are_legal_and_lead_where_the_list_says() {
    let lines = include_str!("data/openings_3move.csv")
        .lines()
        .filter(|line| !line.starts_with(['#', 's']) || line.starts_with("standard"));
    let mut count = 0;
    for line in lines {
        let mut fields = line.splitn(3, ',');
        let (moves, fen) = (fields.nth(1).unwrap(), fields.next().unwrap().trim_matches('"'));
        let end = moves
            .split(' ')
            .fold(Position::START, |position, text| position.play(&position.parse_move(text).unwrap()));
        assert_eq!(end.to_string(), fen, "{moves}");
        count += 1;
    }
    assert_eq!(count, 174);
}
