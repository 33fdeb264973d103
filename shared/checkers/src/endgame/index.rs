//! A number for every placement of some material, without gaps: combinations, ranked one kind of piece after the other.

use super::Board;
use super::piece_counts::PieceCounts;
use std::sync::LazyLock;

/// Pieces of one kind that are ranked at most.
const MOST: usize = 7;

/// `CHOOSE[k][n]`: ways of choosing k of n squares.
static CHOOSE: LazyLock<[[u32; 33]; MOST + 1]> = LazyLock::new(|| {
    let mut choose = [[0; 33]; MOST + 1];
    choose[0] = [1; 33];
    for k in 1..=MOST {
        for n in 1..33 {
            choose[k][n] = choose[k][n - 1] + choose[k - 1][n - 1];
        }
    }
    choose
});

/// Where men can stand: all but the row on which they are crowned.
const BLACK_MEN: u32 = 0x0fff_ffff;
const WHITE_MEN: u32 = 0xffff_fff0;

/// Numbers the positions of one slice.
#[derive(Debug)]
pub(super) struct Index {
    material: PieceCounts,
    /// By the rank of Black's men: how many placements of all men come before. White's men have less room where
    /// Black's stand in their way, so these steps differ.
    men_before: Vec<u32>,
    black_kings: u32,
    white_kings: u32,
    choose: &'static [[u32; 33]; MOST + 1],
}

impl Index {
    pub(super) fn new(material: PieceCounts) -> Self {
        let choose = LazyLock::force(&CHOOSE);
        let ways = |count: u8, squares: u8| choose[usize::from(count)][usize::from(squares)];
        let men = material.black_men + material.white_men;
        let mut index = Self {
            material,
            men_before: vec![0],
            black_kings: ways(material.black_kings, 32 - men),
            white_kings: ways(material.white_kings, 32 - men - material.black_kings),
            choose,
        };
        let mut before = 0;
        for rank in 0..ways(material.black_men, BLACK_MEN.count_ones() as u8) {
            let black = index.unrank(rank, material.black_men, BLACK_MEN);
            before += ways(material.white_men, (WHITE_MEN & !black).count_ones() as u8);
            index.men_before.push(before);
        }
        index
    }

    pub(super) fn material(&self) -> PieceCounts {
        self.material
    }

    /// How many positions there are.
    pub(super) fn len(&self) -> u32 {
        self.men_before.last().copied().unwrap_or(0) * self.black_kings * self.white_kings
    }

    /// The number of a board, which must have this slice's material.
    #[inline]
    pub(super) fn number(&self, board: &Board) -> u32 {
        let Board { black, white, kings } = *board;
        let men = (black | white) & !kings;
        let black_men = self.rank(black & !kings, BLACK_MEN);
        let white_men = self.rank(white & !kings, WHITE_MEN & !(black & !kings));
        let black_kings = self.rank(black & kings, !men);
        let white_kings = self.rank(white & kings, !(men | black));
        let placed_men = self.men_before[black_men as usize] + white_men;
        (placed_men * self.black_kings + black_kings) * self.white_kings + white_kings
    }

    /// The board of a number below [`Index::len`].
    #[inline]
    pub(super) fn board(&self, number: u32) -> Board {
        let (rest, white_kings) = (number / self.white_kings, number % self.white_kings);
        let (placed_men, black_kings) = (rest / self.black_kings, rest % self.black_kings);
        let rank = self.men_before.partition_point(|before| *before <= placed_men) - 1;
        let black_men = self.unrank(rank as u32, self.material.black_men, BLACK_MEN);
        let white_men =
            self.unrank(placed_men - self.men_before[rank], self.material.white_men, WHITE_MEN & !black_men);
        let men = black_men | white_men;
        let black_kings = self.unrank(black_kings, self.material.black_kings, !men);
        let white_kings = self.unrank(white_kings, self.material.white_kings, !(men | black_kings));
        Board {
            black: black_men | black_kings,
            white: white_men | white_kings,
            kings: black_kings | white_kings,
        }
    }

    /// The place of a set among those of its size within `room`.
    #[inline]
    fn rank(&self, mut set: u32, room: u32) -> u32 {
        let mut rank = 0;
        let mut count = 1;
        while set != 0 {
            let below = set.wrapping_neg() & set;
            rank += self.choose[count][(room & (below - 1)).count_ones() as usize];
            set ^= below;
            count += 1;
        }
        rank
    }

    /// The set of `count` squares within `room` that has this rank.
    #[inline]
    fn unrank(&self, mut rank: u32, count: u8, room: u32) -> u32 {
        let mut set = 0;
        let mut free = room;
        let mut place = free.count_ones() as usize;
        for count in (1..=usize::from(count)).rev() {
            let square = loop {
                place -= 1;
                let highest = 1 << free.ilog2();
                free ^= highest;
                if self.choose[count][place] <= rank {
                    break highest;
                }
            };
            rank -= self.choose[count][place];
            set |= square;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_boards_are_one_to_one() {
        for material in PieceCounts::up_to(3) {
            let index = Index::new(material);
            for number in 0..index.len() {
                let board = index.board(number);
                assert_eq!(index.number(&board), number, "{material}");
                assert_eq!(board.material(), Some(material));
                assert_eq!(board.position().validate(), Ok(()));
            }
        }
    }

    #[test]
    fn numbers_and_boards_are_one_to_one_in_samples_of_large_slices() {
        for material in PieceCounts::up_to(6).filter(|material| material.pieces() >= 4) {
            let index = Index::new(material);
            for sample in 0..500_u64 {
                let number = (u64::from(index.len() - 1) * sample / 499) as u32;
                let board = index.board(number);
                assert_eq!(index.number(&board), number, "{material}");
                assert_eq!(board.position().validate(), Ok(()));
            }
        }
    }

    /// Published: all placements of n pieces, those of one side alone among them.
    #[test]
    fn there_are_as_many_positions_as_published() {
        let published: [u64; 6] = [120, 6_972, 261_224, 7_092_774, 148_688_232, 2_503_611_964];
        for (pieces, expected) in (1..).zip(published) {
            let both = PieceCounts::up_to(pieces).filter(|material| material.pieces() == pieces);
            let both: u64 = both.map(|material| u64::from(Index::new(material).len())).sum();
            let choose =
                |n: u32, k: u32| (0..k).fold(1, |ways, i| ways * u64::from(n - i) / u64::from(i + 1));
            let alone: u64 = (0..=pieces).map(|men| choose(28, men) * choose(32 - men, pieces - men)).sum();
            assert_eq!(both + 2 * alone, expected, "{pieces} pieces");
        }
    }
}
