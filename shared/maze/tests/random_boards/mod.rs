//! Random boards for property tests: any shape, with and without walls.

use maze::Board;
use proptest::prelude::*;

pub(crate) fn boards() -> impl Strategy<Value = Board> {
    (1usize..12, 1usize..12, any::<u32>(), 0u8..40)
        .prop_filter("a board has two cells or more", |(width, height, ..)| width * height > 1)
        .prop_map(|(width, height, seed, walls)| Board::generate_walled(width, height, seed, walls).unwrap())
}
