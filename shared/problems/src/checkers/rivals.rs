//! How an island fared against former champions, its own and others': those that it lost to are met more often.
//!
//! As bytes, little-endian: how many there are (4), then for each its fingerprint (8), games (8) and points lost (8), in the
//! order in which they stood when they were met last.

use evolution::population::Population;
use std::ops::Range;

/// The maximum number of former champions that are distinguished; further ones are met as if they were new.
const MOST: usize = 1024;
/// What remains of a result after a generation: the latest twenty or so count.
const FADES: f64 = 0.95;

/// Results against one former champion.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rival {
    fingerprint: u64,
    games: f64,
    lost: f64,
}

/// Results against all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rivals(Vec<Rival>);

impl Rivals {
    /// The most bytes.
    pub(super) const BYTES: u64 = 4 + 24 * MOST as u64;

    /// Reads them from the beginning of some bytes; returns what follows. No bytes hold none.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        if bytes.is_empty() {
            return Some((Self::default(), bytes));
        }
        let (count, rest) = bytes.split_first_chunk()?;
        let count = u32::from_le_bytes(*count) as usize;
        let (all, rest) = rest.split_at_checked(24 * count.min(MOST + 1))?;
        let (words, _) = all.as_chunks::<8>();
        let (rivals, _) = words.as_chunks::<3>();
        let rival = |words: &[[u8; 8]; 3]| {
            let [fingerprint, games, lost] = *words;
            let (games, lost) = (f64::from_le_bytes(games), f64::from_le_bytes(lost));
            let is_sound = (0.0..1e9).contains(&games) && (0.0..=games).contains(&lost);
            is_sound.then_some(Rival { fingerprint: u64::from_le_bytes(fingerprint), games, lost })
        };
        let rivals = rivals.iter().map(rival).collect::<Option<Vec<_>>>()?;
        (count <= MOST).then_some((Self(rivals), rest))
    }

    /// Appends the bytes.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.0.len() as u32).to_le_bytes());
        for Rival { fingerprint, games, lost } in &self.0 {
            bytes.extend(fingerprint.to_le_bytes());
            bytes.extend(games.to_le_bytes());
            bytes.extend(lost.to_le_bytes());
        }
    }

    /// Continues with the current opponents; what is known of others is forgotten.
    pub(super) fn stand_by(&mut self, population: &Population<f32>, hall: Range<usize>) {
        let known = std::mem::take(&mut self.0);
        let meet = |place: usize| {
            let fingerprint = fingerprint(population.genome(place));
            let before = known.iter().find(|rival| rival.fingerprint == fingerprint);
            before.map_or(Rival { fingerprint, games: 0.0, lost: 0.0 }, |rival| Rival {
                games: FADES * rival.games,
                lost: FADES * rival.lost,
                ..*rival
            })
        };
        self.0 = hall.take(MOST).map(meet).collect();
    }

    /// How often each opponent is met: in proportion to the share of points that it wins. One that was never met counts
    /// as an equal, and one that always lost is still met now and then.
    pub(super) fn weights(&self, count: usize) -> Vec<f64> {
        let weight =
            |place| self.0.get(place).map_or(0.5, |rival: &Rival| (rival.lost + 1.0) / (rival.games + 2.0));
        (0..count).map(weight).collect()
    }

    /// Adds a game against the one at this place, and the share of its point that was lost.
    pub(super) fn add(&mut self, place: usize, lost: f64) {
        if let Some(rival) = self.0.get_mut(place) {
            rival.games += 1.0;
            rival.lost += lost;
        }
    }
}

/// A fingerprint of a network.
fn fingerprint(genome: &[f32]) -> u64 {
    let mix = |hash: u64, gene: &f32| {
        (hash ^ u64::from(gene.to_bits())).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    };
    genome.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evolution::gene::{Interval, Shape};

    fn three() -> Population<f32> {
        let mut population =
            Population::new(Shape { length: 4, domain: Interval { low: -1.0, high: 1.0 } }, 0);
        population.resize(3);
        for place in 0..3 {
            population.genome_mut(place).fill(place as f32 / 4.0);
        }
        population
    }

    #[test]
    fn those_that_win_are_met_more_often_and_the_past_fades() {
        let population = three();
        let mut rivals = Rivals::default();
        rivals.stand_by(&population, 0..3);
        assert_eq!(rivals.weights(3), [0.5; 3], "nothing is known yet");
        for _ in 0..8 {
            rivals.add(0, 1.0);
            rivals.add(1, 0.0);
        }
        assert_eq!(rivals.weights(4), [0.9, 0.1, 0.5, 0.5]);
        // The first has left, the others have moved up.
        rivals.stand_by(&population, 1..3);
        let weights = rivals.weights(2);
        assert!(weights[0] > 0.1 && weights[0] < 0.11 && weights[1] == 0.5, "{weights:?}");
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut rivals = Rivals::default();
        rivals.stand_by(&three(), 0..3);
        rivals.add(2, 0.5);
        let mut bytes = vec![];
        rivals.encode(&mut bytes);
        bytes.extend(b"more");
        assert_eq!(Rivals::decode(&bytes), Some((rivals, &b"more"[..])));
        assert_eq!(Rivals::decode(&[]), Some((Rivals::default(), &[][..])));
        assert_eq!(Rivals::decode(&bytes[..40]), None);
        let mut wrong = bytes.clone();
        wrong[..4].copy_from_slice(&2000u32.to_le_bytes());
        assert_eq!(Rivals::decode(&wrong), None, "more than there may be");
        wrong.clone_from(&bytes);
        wrong[12..20].copy_from_slice(&f64::NAN.to_le_bytes());
        assert_eq!(Rivals::decode(&wrong), None, "no number of games");
    }
}
