//! Vectors of f32: the same few operations on whatever the processor has, each rounded as IEEE says, so that
//! every implementation gives the same bits.
#![allow(unsafe_code)]

/// Several f32 that are worked on together.
pub(super) trait Lanes: Copy {
    /// How many.
    const WIDTH: usize;
    fn splat(value: f32) -> Self;
    /// The first `WIDTH` values of `from`.
    fn load(from: &[f32]) -> Self;
    /// The first `WIDTH` values of `from`, converted.
    fn load_integers(from: &[i32]) -> Self;
    /// Into the first `WIDTH` values of `to`.
    fn store(self, to: &mut [f32]);
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    /// Cut to `-limit` to `limit`; no lane is NaN.
    fn clamp(self, limit: f32) -> Self;

    /// tanh within 2e-6, as an odd rational function; flat beyond 7, where tanh is 1 within 2e-6.
    #[inline(always)]
    fn tanh(self) -> Self {
        let (above, below) = self.tanh_ratio();
        above.div(below)
    }

    /// tanh of two vectors with one division, which takes longer than the products that replace the other.
    #[inline(always)]
    fn tanh_pair(self, other: Self) -> (Self, Self) {
        let (above, below) = self.tanh_ratio();
        let (other_above, other_below) = other.tanh_ratio();
        let inverse = Self::splat(1.0).div(below.mul(other_below));
        (above.mul(other_below).mul(inverse), other_above.mul(below).mul(inverse))
    }

    /// tanh as a fraction whose denominator is between 1 and 100.
    #[inline(always)]
    fn tanh_ratio(self) -> (Self, Self) {
        const LIMIT: f32 = 7.0;
        const ABOVE: [f32; 4] = [3.930_010_7e-6, 0.002_276_988_5, 0.123_021_826, 0.999_995_7];
        const BELOW: [f32; 4] = [0.000_142_350_8, 0.021_072_177, 0.456_340_3, 1.0];
        let x = self.clamp(LIMIT);
        let square = x.mul(x);
        (x.mul(square.cubic(ABOVE)), square.cubic(BELOW))
    }

    /// A polynomial at this point, by Horner's rule.
    #[inline(always)]
    fn cubic(self, [a, b, c, d]: [f32; 4]) -> Self {
        let [a, b, c, d] = [Self::splat(a), Self::splat(b), Self::splat(c), Self::splat(d)];
        a.mul_add(self, b).mul_add(self, c).mul_add(self, d)
    }
}

/// The vectors of a path: full ones, and those of eight lanes for what fills no full one. Half vectors are
/// loaded by a port that full ones leave idle.
pub(super) trait Vectors {
    type Full: Lanes;
    type Half: Eight;
}

/// Eight lanes.
pub(super) trait Eight: Lanes {
    /// The sum of all lanes: of those four apart, then two, then one.
    fn sum(self) -> f32;
    /// The integer parts.
    fn truncate(self) -> [i32; 8];
}

/// Eight lanes without any vector instruction; on processors whose basic set has fused multiply-add the
/// compiler makes vectors of them.
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; 8]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

impl Lanes for Plain {
    const WIDTH: usize = 8;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; 8])
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        Self(std::array::from_fn(|i| from[i]))
    }
    #[inline(always)]
    fn load_integers(from: &[i32]) -> Self {
        Self(std::array::from_fn(|i| from[i] as f32))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[..8].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i].mul_add(factor.0[i], addend.0[i])))
    }
    #[inline(always)]
    fn clamp(self, limit: f32) -> Self {
        Self(self.0.map(|lane| lane.clamp(-limit, limit)))
    }
}

impl Eight for Plain {
    #[inline(always)]
    fn sum(self) -> f32 {
        let lanes: [f32; 4] = std::array::from_fn(|i| self.0[i] + self.0[i + 4]);
        (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])
    }
    #[inline(always)]
    fn truncate(self) -> [i32; 8] {
        self.0.map(|lane| lane as i32)
    }
}

impl Vectors for Plain {
    type Full = Self;
    type Half = Self;
}

/// A single lane.
impl Lanes for f32 {
    const WIDTH: usize = 1;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        from[0]
    }
    #[inline(always)]
    fn load_integers(from: &[i32]) -> Self {
        from[0] as f32
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[0] = self;
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self * other
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self / other
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, addend: Self) -> Self {
        f32::mul_add(self, factor, addend)
    }
    #[inline(always)]
    fn clamp(self, limit: f32) -> Self {
        f32::clamp(self, -limit, limit)
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86_lanes {
    ($name:ident, $doc:literal, $vector:ty, $width:literal, $splat:ident, $load:ident, $load_integers:ident,
     $convert:ident, $store:ident, $add:ident, $mul:ident, $div:ident, $mul_add:ident,
     $min:ident, $max:ident) => {
        #[doc = $doc]
        #[derive(Clone, Copy)]
        pub(in crate::network) struct $name($vector);

        // SAFETY, for every block: the type is only used in functions compiled for the instructions it needs,
        // which run only after they were detected; the slices bound what is read and written.
        impl Lanes for $name {
            const WIDTH: usize = $width;

            #[inline(always)]
            fn splat(value: f32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            fn load(from: &[f32]) -> Self {
                // SAFETY: see above.
                Self(unsafe { $load(from[..$width].as_ptr()) })
            }
            #[inline(always)]
            fn load_integers(from: &[i32]) -> Self {
                // SAFETY: see above.
                Self(unsafe { $convert($load_integers(from[..$width].as_ptr().cast())) })
            }
            #[inline(always)]
            fn store(self, to: &mut [f32]) {
                // SAFETY: see above.
                unsafe { $store(to[..$width].as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $div(self.0, other.0) })
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul_add(self.0, factor.0, addend.0) })
            }
            #[inline(always)]
            fn clamp(self, limit: f32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $max($min(self.0, $splat(limit)), $splat(-limit)) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Eight, Lanes};
    use std::arch::x86_64::{
        __m256, __m512, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehdup_ps, _mm_movehl_ps, _mm256_add_ps,
        _mm256_castps256_ps128, _mm256_cvtepi32_ps, _mm256_cvttps_epi32, _mm256_div_ps,
        _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_max_ps,
        _mm256_min_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps, _mm256_storeu_si256, _mm512_add_ps,
        _mm512_cvtepi32_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
        _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_set1_ps, _mm512_storeu_ps,
    };

    x86_lanes!(
        Avx2,
        "Eight lanes of AVX2 and FMA.",
        __m256,
        8,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_loadu_si256,
        _mm256_cvtepi32_ps,
        _mm256_storeu_ps,
        _mm256_add_ps,
        _mm256_mul_ps,
        _mm256_div_ps,
        _mm256_fmadd_ps,
        _mm256_min_ps,
        _mm256_max_ps
    );
    x86_lanes!(
        Avx512,
        "Sixteen lanes of AVX-512.",
        __m512,
        16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_loadu_si512,
        _mm512_cvtepi32_ps,
        _mm512_storeu_ps,
        _mm512_add_ps,
        _mm512_mul_ps,
        _mm512_div_ps,
        _mm512_fmadd_ps,
        _mm512_min_ps,
        _mm512_max_ps
    );

    impl Eight for Avx2 {
        #[inline(always)]
        fn sum(self) -> f32 {
            // SAFETY: as for the operations above.
            unsafe {
                let four = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
                let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
                _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
            }
        }
        #[inline(always)]
        fn truncate(self) -> [i32; 8] {
            let mut lanes = [0; 8];
            // SAFETY: as for the operations above; as many integers are written as there are.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), _mm256_cvttps_epi32(self.0)) }
            lanes
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
impl Vectors for Avx512 {
    type Full = Self;
    type Half = Avx2;
}

#[cfg(target_arch = "x86_64")]
impl Vectors for Avx2 {
    type Full = Self;
    type Half = Self;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tanh(x: f32) -> f32 {
        Lanes::tanh(x)
    }

    #[test]
    fn tanh_is_close_odd_and_at_most_one() {
        for step in 0..2_000_000 {
            let x = step as f32 * 1e-5;
            assert!((tanh(x) - libm::tanhf(x)).abs() < 2e-6, "tanh {x} is {}", tanh(x));
            assert!(tanh(x) <= 1.0 && tanh(-x).to_bits() == (-tanh(x)).to_bits());
        }
    }

    #[test]
    fn pairs_are_close_too() {
        for step in 0..1_000_000 {
            let (x, y) = (step as f32 * 1e-5, step as f32 * 7e-5 - 35.0);
            let (first, second) = x.tanh_pair(y);
            assert!((first - libm::tanhf(x)).abs() < 2e-6, "tanh {x} is {first}");
            assert!((second - libm::tanhf(y)).abs() < 2e-6, "tanh {y} is {second}");
            assert!(first.abs() <= 1.0 && second.abs() <= 1.0);
        }
    }
}
