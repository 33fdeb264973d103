//! How far apart the individuals of a population are.

use rayon::prelude::*;

/// The distances between all pairs of some points.
#[derive(Clone, PartialEq, Debug)]
pub struct Distances {
    points: usize,
    /// Row by row below the diagonal: 1-0, 2-0, 2-1, 3-0, …
    below: Vec<f64>,
}

/// Why points have no distances.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum DistanceError {
    /// There are too many for all their pairs.
    #[error("expected at most {most} points, found `{0}`", most = Distances::MOST)]
    TooMany(usize),
    /// They are not of one dimension.
    #[error("expected {expected} numbers, as point 0 has, found `{found}` at point {point}")]
    Dimension {
        /// That of the first point.
        expected: usize,
        /// Another one.
        found: usize,
        /// Whose it is.
        point: usize,
    },
    /// A number is none.
    #[error("expected finite numbers, found `{value}` at point {point}, index {index}")]
    NotFinite {
        /// What it is.
        value: f32,
        /// Whose it is.
        point: usize,
        /// Its place in the point.
        index: usize,
    },
}

impl Distances {
    /// Points whose pairs still fit into a modest memory: 64 MiB.
    pub const MOST: usize = 4096;

    /// Straight lines between points, calculated in double precision.
    ///
    /// # Errors
    /// If there are too many points, or they are not finite and of one dimension.
    pub fn euclidean<P: AsRef<[f32]> + Sync>(points: &[P]) -> Result<Self, DistanceError> {
        check(points)?;
        let row = |point: usize| -> Vec<f64> {
            points[..point].iter().map(|other| straight(points[point].as_ref(), other.as_ref())).collect()
        };
        let rows: Vec<Vec<f64>> = (0..points.len()).into_par_iter().map(row).collect();
        Ok(Self { points: points.len(), below: rows.concat() })
    }

    /// How many points there are.
    pub fn points(&self) -> usize {
        self.points
    }

    /// How far apart two points are.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn between(&self, a: usize, b: usize) -> f64 {
        let (low, high) = (a.min(b), a.max(b));
        assert!(high < self.points, "expected a point below {}, found `{high}`", self.points);
        if low == high { 0.0 } else { self.below[high * (high - 1) / 2 + low] }
    }

    /// From a point to each of all points, itself among them.
    pub fn from(&self, point: usize) -> impl Iterator<Item = f64> {
        (0..self.points).map(move |other| self.between(point, other))
    }
}

fn check<P: AsRef<[f32]>>(points: &[P]) -> Result<(), DistanceError> {
    if points.len() > Distances::MOST {
        return Err(DistanceError::TooMany(points.len()));
    }
    let expected = points.first().map_or(0, |first| first.as_ref().len());
    for (point, numbers) in points.iter().map(AsRef::as_ref).enumerate() {
        if numbers.len() != expected {
            return Err(DistanceError::Dimension { expected, found: numbers.len(), point });
        }
        if let Some(index) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(DistanceError::NotFinite { value: numbers[index], point, index });
        }
    }
    Ok(())
}

/// Eight sums side by side, as a vector unit adds, whatever the machine has.
fn straight(a: &[f32], b: &[f32]) -> f64 {
    const LANES: usize = 8;
    let square = |a: f32, b: f32| (f64::from(a) - f64::from(b)) * (f64::from(a) - f64::from(b));
    let (a, b) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.0.iter().zip(b.0) {
        for lane in 0..LANES {
            sums[lane] += square(a[lane], b[lane]);
        }
    }
    let rest: f64 = a.1.iter().zip(b.1).map(|(a, b)| square(*a, *b)).sum();
    (sums.iter().sum::<f64>() + rest).sqrt()
}
