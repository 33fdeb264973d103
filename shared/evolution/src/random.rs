//! Random numbers that depend on nothing but what they are for.
//!
//! A strong hash makes one [`Key`] for each (run seed, island, generation); from it follow cheap streams for each
//! individual and purpose. No generator's state is ever saved, and no two threads ever share one.
//!
//! The streams are `SplitMix64` (Steele, Lea and Flood, 2014): a counter with the key's own odd step, and a mixing
//! function. Streams of different keys have different steps, so they do not run into each other.

mod gaussian;

use rand_core::{Infallible, TryRng};

/// What a stream is drawn for. The numbers are part of every result: never reuse or renumber them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// The first population.
    Founding = 0,
    /// Selection, crossover and mutation.
    Variation = 1,
    /// Whatever a problem draws while it judges.
    Judging = 2,
    /// Who emigrates.
    Emigration = 3,
    /// Whom immigrants replace.
    Immigration = 4,
    /// Which weighted edges carry migrants.
    Edges = 5,
    /// The order in which parents are paired.
    Pairing = 6,
    /// The wiring of a random topology.
    Wiring = 7,
}

/// The key of one generation of one island.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    start: u64,
    step: u64,
}

impl Key {
    /// The key for a generation of an island in a run with this seed.
    pub fn new(seed: u64, island: u32, generation: u64) -> Self {
        let mut input = [0; 20];
        input[..8].copy_from_slice(&seed.to_le_bytes());
        input[8..12].copy_from_slice(&island.to_le_bytes());
        input[12..].copy_from_slice(&generation.to_le_bytes());
        Self::derived("atoll generation key", &input)
    }

    /// The key for what belongs to the run as a whole, such as its topology.
    pub fn of_run(seed: u64, number: u64) -> Self {
        let mut input = [0; 16];
        input[..8].copy_from_slice(&seed.to_le_bytes());
        input[8..].copy_from_slice(&number.to_le_bytes());
        Self::derived("atoll run key", &input)
    }

    fn derived(context: &str, input: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(context.as_bytes()).update(input);
        let mut words = hasher.finalize_xof();
        let mut bytes = [0; 16];
        words.fill(&mut bytes);
        let word =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight of sixteen bytes"));
        Self { start: word(0), step: sound_step(word(8)) }
    }

    /// The stream of one individual for one purpose.
    #[inline]
    pub fn stream(&self, individual: usize, purpose: Purpose) -> Stream {
        let label = (individual as u64) << 8 | purpose as u64;
        Stream { state: mix(self.start ^ label.wrapping_mul(0x9e37_79b9_7f4a_7c15)), step: self.step }
    }
}

/// An odd step whose bits alternate often enough: a step with long runs of equal bits makes weak sequences.
fn sound_step(word: u64) -> u64 {
    let step = mix(word) | 1;
    if (step ^ (step >> 1)).count_ones() < 24 { step ^ 0xaaaa_aaaa_aaaa_aaaa } else { step }
}

/// Mixes 64 bits thoroughly, each word into another.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    state: u64,
    step: u64,
}

impl Stream {
    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(self.step);
        mix(self.state)
    }

    /// A number below `bound`, from 32 bits: for counts of individuals, genes and symbols. Uneven by less than
    /// `bound` in 2³².
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        scale(self.bits() >> 32, bound)
    }

    /// A number in [0, 1) with 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with the given probability.
    #[inline]
    pub fn chance(&mut self, chance: Chance) -> bool {
        chance.holds(self.bits() >> 32)
    }

    /// A number of the standard normal distribution.
    #[inline]
    pub fn gaussian(&mut self) -> f64 {
        gaussian::sample(self)
    }

    /// Puts a slice into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Scales 32 random bits to a number below `bound`.
#[inline]
pub(crate) fn scale(bits: u64, bound: usize) -> usize {
    ((bits * bound as u64) >> 32) as usize
}

/// A probability as a threshold over 32 bits, so that a draw is one integer comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// The nearest chance to a probability, which is clamped to 0 to 1.
    pub fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * (1u64 << 32) as f64 + 0.5) as u64)
    }

    /// Whether the chance holds for these 32 random bits.
    #[inline]
    pub fn holds(self, bits: u64) -> bool {
        bits < self.0
    }
}

/// So that code written for the `rand` crates can draw from a stream.
impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.bits() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.bits())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.bits().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_known_answers() {
        // The published first outputs of SplitMix64 with seed 1234567 and the golden-ratio step.
        let mut stream = Stream { state: 1_234_567, step: 0x9e37_79b9_7f4a_7c15 };
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| stream.bits()), expected);
    }

    #[test]
    fn keys_and_streams_are_pinned() {
        // Golden: every stored result depends on these values.
        let draw = |seed, island, generation, individual, purpose| {
            Key::new(seed, island, generation).stream(individual, purpose).bits()
        };
        assert_eq!(draw(0, 0, 0, 0, Purpose::Founding), GOLDEN[0]);
        assert_eq!(draw(1, 2, 3, 4, Purpose::Variation), GOLDEN[1]);
        assert_eq!(draw(u64::MAX, u32::MAX, u64::MAX, 1 << 40, Purpose::Wiring), GOLDEN[2]);
        assert_eq!(Key::of_run(7, 1).stream(0, Purpose::Edges).bits(), GOLDEN[3]);
    }

    const GOLDEN: [u64; 4] = [
        9_340_047_758_949_253_350,
        10_896_586_917_179_778_144,
        16_097_682_627_843_863_128,
        13_989_887_265_132_716_399,
    ];

    #[test]
    fn everything_in_the_key_matters() {
        let base = Key::new(1, 1, 1).stream(1, Purpose::Variation).bits();
        for other in [
            Key::new(2, 1, 1).stream(1, Purpose::Variation),
            Key::new(1, 2, 1).stream(1, Purpose::Variation),
            Key::new(1, 1, 2).stream(1, Purpose::Variation),
            Key::new(1, 1, 1).stream(2, Purpose::Variation),
            Key::new(1, 1, 1).stream(1, Purpose::Judging),
        ] {
            assert_ne!(base, other.clone().bits());
        }
    }

    #[test]
    fn below_is_even() {
        let mut stream = Key::new(3, 0, 0).stream(0, Purpose::Judging);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[stream.below(10)] += 1;
        }
        // Chi-squared with 9 degrees of freedom: 27.9 is the 99.9th percentile.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 27.9, "{chi}");
    }

    #[test]
    fn first_draws_of_neighbouring_streams_are_even() {
        let key = Key::new(4, 0, 0);
        let mut counts = [0u32; 16];
        for individual in 0..160_000 {
            counts[(key.stream(individual, Purpose::Variation).bits() >> 60) as usize] += 1;
        }
        // Chi-squared with 15 degrees of freedom: 37.7 is the 99.9th percentile.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 37.7, "{chi}");
    }

    #[test]
    fn chances_hold_at_their_ends() {
        let mut stream = Key::new(5, 0, 0).stream(0, Purpose::Judging);
        assert!((0..1000).all(|_| stream.chance(Chance::new(1.0))));
        assert!((0..1000).all(|_| !stream.chance(Chance::new(0.0))));
    }
}
