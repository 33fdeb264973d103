//! What an island remembers of learning: positions of earlier generations, and the optimiser's moments.
//!
//! As bytes, all numbers little-endian: the rounds of learning so far (8), then, where the mean of all learns, what is left
//! of the moments' start (2 x 8) and the moments of each weight (2 x 4), then 16 bytes for each position, the oldest first.

use checkers::{Lesson, Moments, Position};

/// Bytes of a position and its worth.
pub(super) const LESSON: usize = 16;
/// Where the worth stands among the bits that a position leaves free.
const TARGET_SHIFT: u32 = 48;
/// The worth 1.
const ONE: f32 = 32_767.0;

/// What has been learnt from so far.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Memory {
    /// Generations that have learnt.
    pub(super) rounds: u64,
    /// Where there is one learner from generation to generation.
    pub(super) moments: Option<Moments>,
    lessons: Vec<[u8; LESSON]>,
}

impl Memory {
    /// Of an island that has learnt nothing yet; with moments for this number of weights.
    pub(super) fn new(weights: Option<usize>) -> Self {
        Self { rounds: 0, moments: weights.map(Moments::new), lessons: vec![] }
    }

    /// Bytes of a memory with room for this number of positions.
    pub(super) fn bytes(weights: Option<usize>, positions: u32) -> u64 {
        let moments = weights.map_or(0, |weights| 16 + 8 * weights as u64);
        8 + moments + LESSON as u64 * u64::from(positions)
    }

    /// Reads a memory; nothing if the bytes hold none. No bytes are a new one.
    pub(super) fn decode(bytes: &[u8], weights: Option<usize>) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::new(weights));
        }
        let (rounds, mut rest) = bytes.split_first_chunk()?;
        let mut moments = None;
        if let Some(weights) = weights {
            let (decayed, after) = rest.split_at_checked(16)?;
            let (mean, after) = after.split_at_checked(4 * weights)?;
            let (square, after) = after.split_at_checked(4 * weights)?;
            let [one, other] = decayed.as_chunks().0 else { return None };
            let decayed = [f64::from_le_bytes(*one), f64::from_le_bytes(*other)];
            let (mean, square) = (numbers(mean), numbers(square));
            let numeric = mean.iter().chain(&square).all(|moment| moment.is_finite())
                && square.iter().all(|square| *square >= 0.0);
            if !numeric || !decayed.iter().all(|left| (0.0..=1.0).contains(left)) {
                return None;
            }
            moments = Some(Moments { mean, square, decayed });
            rest = after;
        }
        let (lessons, left) = rest.as_chunks();
        let sound = |lesson: &[u8; LESSON]| unpack(lesson).is_some();
        (left.is_empty() && lessons.iter().all(sound)).then(|| Self {
            rounds: u64::from_le_bytes(*rounds),
            moments,
            lessons: lessons.to_vec(),
        })
    }

    /// The bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.rounds.to_le_bytes().to_vec();
        if let Some(Moments { mean, square, decayed }) = &self.moments {
            bytes.extend(decayed.iter().flat_map(|left| left.to_le_bytes()));
            bytes.extend(mean.iter().chain(square).flat_map(|moment| moment.to_le_bytes()));
        }
        bytes.extend_from_slice(self.lessons.as_flattened());
        bytes
    }

    /// Adds lessons, and forgets the oldest that there is no room for.
    pub(super) fn add(&mut self, lessons: &[Lesson], room: usize) {
        self.lessons.extend(lessons.iter().map(pack));
        let too_many = self.lessons.len().saturating_sub(room);
        self.lessons.drain(..too_many);
    }

    /// How many lessons there are.
    pub(super) fn len(&self) -> usize {
        self.lessons.len()
    }

    /// A lesson.
    pub(super) fn lesson(&self, at: usize) -> Lesson {
        unpack(&self.lessons[at]).expect("what is remembered was packed here, or tested when it was read")
    }
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// The worth is rounded to 1/32767.
fn pack(lesson: &Lesson) -> [u8; LESSON] {
    let (pieces, rest) = lesson.position.bits();
    let target = (lesson.target.clamp(-1.0, 1.0) * ONE).round_ties_even() as i16;
    let rest = rest | u64::from(target.cast_unsigned()) << TARGET_SHIFT;
    let mut packed = [0; LESSON];
    packed[..8].copy_from_slice(&pieces.to_le_bytes());
    packed[8..].copy_from_slice(&rest.to_le_bytes());
    packed
}

/// Nothing if it holds no position.
fn unpack(packed: &[u8; LESSON]) -> Option<Lesson> {
    let (pieces, rest) = packed.split_first_chunk()?;
    let (pieces, rest) = (u64::from_le_bytes(*pieces), u64::from_le_bytes(rest.try_into().ok()?));
    let target = f32::from(((rest >> TARGET_SHIFT) as u16).cast_signed()) / ONE;
    let position = Position::from_bits(pieces, rest & ((1 << TARGET_SHIFT) - 1))?;
    (target >= -1.0).then_some(Lesson { position, target })
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::sample_positions;

    fn lessons(count: usize) -> Vec<Lesson> {
        let positions = sample_positions(1, count).into_iter().enumerate();
        positions.map(|(at, position)| Lesson { position, target: at as f32 / 20.0 - 1.0 }).collect()
    }

    #[test]
    fn what_is_remembered_comes_back() {
        let all = lessons(40);
        for weights in [None, Some(7)] {
            let mut memory = Memory::new(weights);
            memory.rounds = 3;
            if let Some(moments) = &mut memory.moments {
                moments.mean[2] = 0.5;
                moments.decayed = [0.25, 0.75];
            }
            memory.add(&all[..30], 35);
            memory.add(&all[30..], 35);
            assert_eq!(memory.len(), 35);
            let bytes = memory.encode();
            assert_eq!(bytes.len() as u64, Memory::bytes(weights, 35));
            assert_eq!(Memory::decode(&bytes, weights), Some(memory.clone()));
            for (at, lesson) in all[5..].iter().enumerate() {
                let kept = memory.lesson(at);
                assert_eq!(kept.position, lesson.position);
                assert!((kept.target - lesson.target).abs() < 1e-4);
            }
            assert_eq!(Memory::decode(&[], weights), Some(Memory::new(weights)));
        }
    }

    #[test]
    fn bytes_that_are_no_memory_are_refused() {
        let mut memory = Memory::new(Some(3));
        memory.add(&lessons(2), 9);
        let bytes = memory.encode();
        assert_eq!(Memory::decode(&bytes[..bytes.len() - 1], Some(3)), None, "half a lesson");
        assert_eq!(Memory::decode(&bytes[..20], Some(3)), None, "no moments");
        for (place, byte) in [(bytes.len() - 16, 0xff), (12, 0xff), (bytes.len() - 3, 0xff), (26, 0xff)] {
            let mut wrong = bytes.clone();
            wrong[place..place + 2].fill(byte);
            assert_eq!(Memory::decode(&wrong, Some(3)), None, "at {place}");
        }
    }
}
