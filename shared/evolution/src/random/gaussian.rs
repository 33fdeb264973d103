//! The normal distribution by the ziggurat (Marsaglia and Tsang, 2000), in Doornik's form, whose layers are drawn
//! independently of the number itself.
//!
//! The layers are computed once with the pinned `libm`, so that they have the same bits on every platform.

use super::Stream;
use std::sync::LazyLock;

const LAYERS: usize = 128;
/// Where the tail begins, and the area of each layer, for 128 layers.
const TAIL: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

struct Ziggurat {
    /// Right edges of the layers, widest first; the last is 0.
    edge: [f64; LAYERS + 1],
    /// The share of each layer that lies wholly under the curve.
    inside: [f64; LAYERS],
}

static ZIGGURAT: LazyLock<Ziggurat> = LazyLock::new(|| {
    let mut edge = [0.0; LAYERS + 1];
    let mut height = libm::exp(-0.5 * TAIL * TAIL);
    edge[0] = AREA / height;
    edge[1] = TAIL;
    for layer in 2..LAYERS {
        edge[layer] = libm::sqrt(-2.0 * libm::log(AREA / edge[layer - 1] + height));
        height = libm::exp(-0.5 * edge[layer] * edge[layer]);
    }
    let mut inside = [0.0; LAYERS];
    for layer in 0..LAYERS {
        inside[layer] = edge[layer + 1] / edge[layer];
    }
    Ziggurat { edge, inside }
});

#[inline]
pub(super) fn sample(stream: &mut Stream) -> f64 {
    let ziggurat = &*ZIGGURAT;
    loop {
        // Seven low bits choose the layer, the high 53 the place in it: they do not overlap.
        let bits = stream.bits();
        let layer = (bits as usize) % LAYERS;
        let place = 2.0 * ((bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)) - 1.0;
        if place.abs() < ziggurat.inside[layer] {
            return place * ziggurat.edge[layer];
        }
        if layer == 0 {
            return tail(stream, place < 0.0);
        }
        if let Some(number) = wedge(ziggurat, stream, layer, place) {
            return number;
        }
    }
}

/// Between the layer's inner edge and the curve.
#[cold]
fn wedge(ziggurat: &Ziggurat, stream: &mut Stream, layer: usize, place: f64) -> Option<f64> {
    let density = |x: f64| libm::exp(-0.5 * x * x);
    let number = place * ziggurat.edge[layer];
    let low = density(ziggurat.edge[layer]);
    let high = density(ziggurat.edge[layer + 1]);
    (low + stream.unit() * (high - low) < density(number)).then_some(number)
}

#[cold]
fn tail(stream: &mut Stream, negative: bool) -> f64 {
    loop {
        let x = libm::log(1.0 - stream.unit()) / TAIL;
        let y = libm::log(1.0 - stream.unit());
        if -2.0 * y >= x * x {
            return if negative { x - TAIL } else { TAIL - x };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::random::{Key, Purpose};

    #[test]
    fn moments_and_quantiles_are_those_of_the_normal_distribution() {
        let mut stream = Key::new(1, 2, 3).stream(0, Purpose::Judging);
        let n = 1_000_000;
        let numbers: Vec<f64> = (0..n).map(|_| stream.gaussian()).collect();
        let moment = |power: i32| numbers.iter().map(|x| x.powi(power)).sum::<f64>() / f64::from(n);
        assert!(moment(1).abs() < 0.004);
        assert!((moment(2) - 1.0).abs() < 0.006);
        assert!(moment(3).abs() < 0.02);
        assert!((moment(4) - 3.0).abs() < 0.04);
        for (edge, share) in [(-2.0, 0.022_750), (-1.0, 0.158_655), (0.5, 0.691_462), (3.5, 0.999_767)] {
            let below = numbers.iter().filter(|x| **x < edge).count() as f64 / f64::from(n);
            assert!(
                (below - share).abs() < 5.0 * (share * (1.0 - share) / f64::from(n)).sqrt(),
                "{edge}: {below}"
            );
        }
        assert!(numbers.iter().any(|x| x.abs() > 4.0), "the tail is reached");
    }
}
