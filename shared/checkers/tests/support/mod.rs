//! Random positions, networks and the numbers they are made of, for the tests.
#![allow(dead_code, reason = "no test uses all of it")]

use checkers::{Architecture, Network, Position, Side, Square, Squares};

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Between -range and range.
    pub(crate) fn weight(&mut self, range: f32) -> f32 {
        ((self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0) * range
    }
}

/// Weights as evolution starts with them, or a few times larger.
pub(crate) fn random_network(architecture: impl Into<Architecture>, random: &mut Random) -> Network {
    let architecture = architecture.into();
    let range = [0.2, 0.2, 0.5][random.below(3)];
    let mut weights: Vec<f32> = (0..architecture.weight_count()).map(|_| random.weight(range)).collect();
    *weights.last_mut().unwrap() = 2.0 + random.weight(1.0);
    Network::new(architecture, &weights).unwrap()
}

/// The position after up to `plies` random moves from the start, or from a random handful of pieces.
pub(crate) fn random_position(random: &mut Random, plies: usize) -> Position {
    let mut position = if random.below(4) == 0 { scattered(random) } else { Position::START };
    for _ in 0..random.below(plies) {
        let moves = position.legal_moves();
        if moves.is_empty() {
            break;
        }
        position = position.play(&moves[random.below(moves.len())]);
        position.validate().unwrap();
    }
    position
}

/// Up to 16 pieces anywhere, half of them kings.
fn scattered(random: &mut Random) -> Position {
    let (mut black, mut white, mut kings) = (Squares::NONE, Squares::NONE, Squares::NONE);
    for i in 0..2 + random.below(15) {
        let square = Squares::from(Square::new(1 + random.below(32) as u8).unwrap());
        if (black | white).meets(square) {
            continue;
        }
        if i % 2 == 0 {
            black |= square;
        } else {
            white |= square;
        }
        let crowned = if i % 2 == 0 { Squares::BOTTOM_ROW } else { Squares::TOP_ROW };
        if random.below(2) == 0 || square.meets(crowned) {
            kings |= square;
        }
    }
    Position::new(black, white, kings, if random.below(2) == 0 { Side::Black } else { Side::White }).unwrap()
}

/// The same game seen from the other side of the table.
pub(crate) fn turned(position: &Position) -> Position {
    let turn = |squares: Squares| -> Squares {
        squares.into_iter().map(|s| Square::new(33 - s.number()).unwrap()).collect()
    };
    let kings = position.kings(Side::Black) | position.kings(Side::White);
    let (black, white) = (turn(position.pieces(Side::White)), turn(position.pieces(Side::Black)));
    Position::new(black, white, turn(kings), !position.side_to_move()).unwrap()
}

/// A player file whose checksum fits again after it was altered.
pub(crate) fn resealed(mut bytes: Vec<u8>, at: usize, replacement: &[u8]) -> Vec<u8> {
    let end = bytes.len() - 8;
    bytes[at..at + replacement.len()].copy_from_slice(replacement);
    let sum = bytes[..end].iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}
