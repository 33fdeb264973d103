//! Published perft counts.

use checkers::{Position, perft, perft_merged};

#[test]
fn initial_position() {
    const LEAVES: [u64; 10] = [7, 49, 302, 1_469, 7_361, 36_768, 179_740, 845_931, 3_963_680, 18_391_564];
    for (depth, leaves) in (1..).zip(LEAVES) {
        assert_eq!(perft(&Position::START, depth), leaves, "depth {depth}");
        assert_eq!(perft_merged(&Position::START, depth), leaves, "depth {depth}, merged");
    }
}

#[test]
fn kings() {
    const LEAVES: [u64; 8] = [8, 50, 438, 2_948, 24_037, 168_965, 1_370_194, 9_758_218];
    let position: Position = "W:WK18,K22,K23:BK1,K2,K32,12".parse().unwrap();
    for (depth, leaves) in (1..).zip(LEAVES) {
        assert_eq!(perft(&position, depth), leaves, "depth {depth}");
    }
}
