//! Rastrigin's function: a bowl with regular dents that all look like the bottom from near by.

use evolution::gene::{Interval, Shape};
use evolution::population::{Cost, Population};
use evolution::problem::{Axis, Judging, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Minimise Rastrigin's function; fitness is its negative, so that 0 at the origin is the optimum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rastrigin {
    /// Dimensions.
    #[schemars(range(min = 1, max = 100_000))]
    pub dimensions: u32,
}

impl Default for Rastrigin {
    fn default() -> Self {
        Self { dimensions: 10 }
    }
}

/// Where the function is customarily searched.
const EDGE: f64 = 5.12;

impl Problem for Rastrigin {
    type Gene = f64;

    fn shape(&self) -> Shape<f64> {
        Shape { length: self.dimensions as usize, domain: Interval { low: -EDGE, high: EDGE } }
    }

    fn judge(&self, population: &mut Population<f64>, judging: &Judging) -> u64 {
        population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, descriptors| {
            for (descriptor, x) in descriptors.iter_mut().zip(genome.iter()) {
                *descriptor = *x as f32;
            }
            -value(genome)
        })
    }

    fn cost(&self) -> Cost {
        Cost { nanoseconds: 20 * u64::from(self.dimensions) }
    }

    fn axes(&self) -> Vec<Axis> {
        let axis = |name| Axis { name, low: -EDGE as f32, high: EDGE as f32 };
        ["x0", "x1"].into_iter().take(self.dimensions as usize).map(axis).collect()
    }
}

/// The function itself; one term after the other, because the order of a sum is part of its result.
fn value(point: &[f64]) -> f64 {
    point.iter().fold(0.0, |sum, x| sum + x * x + 10.0 * (1.0 - libm::cos(std::f64::consts::TAU * x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(value(&[0.0; 10]), 0.0);
        assert!((value(&[1.0, 1.0]) - 2.0).abs() < 1e-12);
        // The highest point of one dimension is near the edge: 4.52299366 with 40.35329019.
        assert!((value(&[4.522_993_66]) - 40.353_290_19).abs() < 1e-6);
    }
}
