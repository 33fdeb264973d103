//! Points of many dimensions in a plane, as far apart as a plane allows (classical multidimensional scaling).

use crate::distances::Distances;
use rayon::prelude::*;

/// Where each point lies in the plane.
#[derive(Clone, PartialEq, Debug)]
pub struct Projection {
    /// In the order of the points, around the origin.
    pub points: Vec<[f64; 2]>,
    /// How much of the points' spread (the sum of squares of their distances) the plane keeps, 0 to 1.
    pub kept: f64,
}

/// Two directions, which span a plane.
type Plane = [Vec<f64>; 2];

impl Projection {
    /// The plane in which points with these distances spread most. Of the two ways to draw each axis it takes that
    /// in which the point farthest out is positive.
    pub fn new(distances: &Distances) -> Self {
        let products = inner_products(distances);
        let (plane, spreads) = widest_plane(&products);
        let axes = [0, 1].map(|axis| scaled(&plane[axis], spreads[axis]));
        let points = (0..distances.points()).map(|point| [axes[0][point], axes[1][point]]).collect();
        let all: f64 = products.iter().enumerate().map(|(point, row)| row[point]).sum();
        let kept = if all > 0.0 { ((spreads[0] + spreads[1]) / all).clamp(0.0, 1.0) } else { 1.0 };
        Self { points, kept }
    }
}

/// The inner products of the points' positions around their common centre.
fn inner_products(distances: &Distances) -> Vec<Vec<f64>> {
    let points = distances.points();
    let squares: Vec<Vec<f64>> =
        (0..points).into_par_iter().map(|point| distances.from(point).map(|d| d * d).collect()).collect();
    let means: Vec<f64> = squares.iter().map(|row| row.iter().sum::<f64>() / points as f64).collect();
    let mean = means.iter().sum::<f64>() / points.max(1) as f64;
    let centred = |(row, row_mean): (Vec<f64>, &f64)| -> Vec<f64> {
        row.iter()
            .zip(&means)
            .map(|(square, column_mean)| (row_mean + column_mean - mean - square) / 2.0)
            .collect()
    };
    squares.into_par_iter().zip(&means).map(centred).collect()
}

/// The two directions of greatest spread, at right angles, and their spreads: power iteration of a plane at once,
/// which does not slow down where the two are equal.
fn widest_plane(products: &[Vec<f64>]) -> (Plane, [f64; 2]) {
    /// A plane that has not settled by then lies in a cloud without preferred directions: any will do.
    const ROUNDS: usize = 3000;
    const SETTLED: f64 = 1e-13;
    let mut plane = straightened([1, 2].map(|seed| scattered(products.len(), seed)));
    let mut spread = 0.0;
    for _ in 0..ROUNDS {
        let image = plane.each_ref().map(|direction| times(products, direction));
        let now = dot(&plane[0], &image[0]) + dot(&plane[1], &image[1]);
        plane = straightened(image);
        if (now - spread).abs() <= SETTLED * now {
            break;
        }
        spread = now;
    }
    turned_to_axes(&plane, products)
}

/// Numbers between -1 and 1 without any order, always the same (SplitMix64).
fn scattered(length: usize, seed: u64) -> Vec<f64> {
    let number = |place: u64| {
        let mut bits = (seed << 32 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 12) as f64 / (1_u64 << 51) as f64 - 1.0
    };
    (0..length as u64).map(number).collect()
}

/// The same plane, spanned by directions of length 1 at right angles. Where it is but a line, the second is zero.
fn straightened([first, second]: Plane) -> Plane {
    /// What is left of a direction along the other one is rounding.
    const NOTHING: f64 = 1e-12;
    let first = normal(first);
    let once = without(normal(second), &first);
    if length(&once) < NOTHING {
        return [first, vec![0.0; once.len()]];
    }
    // Where little is left, its angle is still off by rounding: the second time it is not.
    let twice = normal(without(normal(once), &first));
    [first, twice]
}

/// What of a vector is at right angles to a direction of length 1.
fn without(mut vector: Vec<f64>, direction: &[f64]) -> Vec<f64> {
    let along = dot(&vector, direction);
    for (number, part) in vector.iter_mut().zip(direction) {
        *number -= along * part;
    }
    vector
}

fn normal(mut vector: Vec<f64>) -> Vec<f64> {
    let length = length(&vector);
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

fn length(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

/// Turns a plane's directions to those in which it spreads most and least.
fn turned_to_axes(plane: &Plane, products: &[Vec<f64>]) -> (Plane, [f64; 2]) {
    let image = plane.each_ref().map(|direction| times(products, direction));
    let (a, b, c) = (dot(&plane[0], &image[0]), dot(&plane[0], &image[1]), dot(&plane[1], &image[1]));
    let (middle, half) = (f64::midpoint(a, c), (a - c) / 2.0);
    let radius = (half * half + b * b).sqrt();
    // The eigenvector of the greater value, by whichever of its two forms does not cancel.
    let (x, y) = if half >= 0.0 { (half + radius, b) } else { (b, radius - half) };
    let length = (x * x + y * y).sqrt();
    let (x, y) = if length > 0.0 { (x / length, y / length) } else { (1.0, 0.0) };
    let mix = |x: f64, y: f64| plane[0].iter().zip(&plane[1]).map(|(p, q)| x * p + y * q).collect();
    ([mix(x, y), mix(-y, x)], [middle + radius, middle - radius].map(|spread| spread.max(0.0)))
}

/// A direction as coordinates of the points along it.
fn scaled(direction: &[f64], spread: f64) -> Vec<f64> {
    let farthest =
        direction.iter().fold(0.0_f64, |far, number| if number.abs() > far.abs() { *number } else { far });
    let scale = if farthest < 0.0 { -spread.sqrt() } else { spread.sqrt() };
    direction.iter().map(|number| number * scale).collect()
}

fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.par_iter().map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
