//! A slow judge of paths that shares nothing with the crate but the board.

use maze::Board;
use std::collections::BTreeSet;

/// Walks `genes` on coordinates, letting `repair` choose among the possible directions where one leads nowhere.
/// Gives the genes walked and the points collected.
pub(crate) fn walk(
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
