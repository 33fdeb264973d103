//! Seeded streams of random numbers whose values never change between releases.

/// A SplitMix64 stream: a counter and a mixing function, so that the n-th number follows from the seed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    counter: u64,
}

pub(crate) const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

impl Stream {
    /// The stream of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { counter: seed }
    }

    /// The `index`-th of the independent streams of `seed`.
    pub const fn nth(seed: u64, index: u64) -> Self {
        Self { counter: mix(mix(seed.wrapping_add(GAMMA)) ^ index.wrapping_mul(GAMMA)) }
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(GAMMA);
        mix(self.counter)
    }

    /// A number below `limit`; each comes with equal probability to within `limit` / 2^32.
    pub const fn below(&mut self, limit: u32) -> u32 {
        (((self.next_u64() >> 32) * limit as u64) >> 32) as u32
    }

    pub(crate) const fn counter(&self) -> u64 {
        self.counter
    }
}

pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut stream = Stream::new(1_234_567);
        let numbers: Vec<u64> = (0..5).map(|_| stream.next_u64()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn below_stays_below_and_reaches_every_number() {
        let mut stream = Stream::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[stream.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn neighbouring_streams_differ_from_each_other_and_from_their_seed() {
        let first: Vec<u64> = (0..100).map(|index| Stream::nth(3, index).next_u64()).collect();
        let mut distinct = first.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 100);
        assert!(!first.contains(&Stream::new(3).next_u64()));
    }
}
