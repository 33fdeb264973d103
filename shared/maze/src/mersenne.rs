//! The 32-bit Mersenne Twister, as C++ calls it `std::mt19937`: the boards of the study are drawn from it.

const STATE: usize = 624;
const SHIFT: usize = 397;
const UPPER: u32 = 0x8000_0000;
const LOWER: u32 = 0x7fff_ffff;
const TWIST: u32 = 0x9908_b0df;

/// A generator whose every value is fixed by its seed, on every platform and for ever.
///
/// It is here to reproduce published boards; it is not meant as the source of an algorithm's random choices.
#[derive(Clone, Debug)]
pub struct MersenneTwister {
    state: [u32; STATE],
    used: usize,
}

impl MersenneTwister {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u32) -> Self {
        let mut state = [0; STATE];
        state[0] = seed;
        for i in 1..STATE {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Self { state, used: STATE }
    }

    /// The next of the sequence, uniform over all 32-bit values.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == STATE {
            self.refill();
        }
        let raw = self.state[self.used];
        self.used += 1;
        temper(raw)
    }

    fn refill(&mut self) {
        for i in 0..STATE {
            let joined = (self.state[i] & UPPER) | (self.state[(i + 1) % STATE] & LOWER);
            let twist = if joined & 1 == 1 { TWIST } else { 0 };
            self.state[i] = self.state[(i + SHIFT) % STATE] ^ (joined >> 1) ^ twist;
        }
        self.used = 0;
    }
}

fn temper(mut word: u32) -> u32 {
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c_5680;
    word ^= (word << 15) & 0xefc6_0000;
    word ^ (word >> 18)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ten_thousandth_value_is_the_one_the_cpp_standard_demands() {
        let mut random = MersenneTwister::new(5489);
        let value = (0..10_000).map(|_| random.next_u32()).last();
        assert_eq!(value, Some(4_123_659_995));
    }

    #[test]
    fn the_first_values_of_seeds_zero_and_5489_are_the_published_ones() {
        let first = |seed| {
            let mut random = MersenneTwister::new(seed);
            [random.next_u32(), random.next_u32(), random.next_u32()]
        };
        assert_eq!(first(0), [2_357_136_044, 2_546_248_239, 3_071_714_933]);
        assert_eq!(first(5489), [3_499_211_612, 581_869_302, 3_890_346_734]);
    }
}
