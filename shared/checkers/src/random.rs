//! Seeded pseudo-random numbers, the same on every machine and in every release.

/// Mixes 64 bits so that every output bit depends on every input bit (the finaliser of SplitMix64).
#[inline]
pub(crate) const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A stream of random numbers: SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Stream(u64);

impl Stream {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which must not be 0; uneven by less than one part in 2^32 for small bounds.
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        ((self.next() as u128 * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_gives_the_published_values() {
        let mut stream = Stream::new(1_234_567);
        let values = [stream.next(), stream.next(), stream.next()];
        assert_eq!(values, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn below_stays_below() {
        let mut stream = Stream::new(7);
        let mut seen = [false; 5];
        (0..200).for_each(|_| seen[stream.below(5)] = true);
        assert_eq!(seen, [true; 5]);
    }
}
