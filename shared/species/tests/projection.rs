//! The plane: what lies in a plane is drawn as it lies, and nothing spreads wider than what was found.

use proptest::prelude::*;
use species::{Distances, Projection};

fn project(points: &[Vec<f32>]) -> (Distances, Projection) {
    let distances = Distances::euclidean(points).expect("finite points of one dimension");
    let projection = Projection::new(&distances);
    (distances, projection)
}

fn apart(a: [f64; 2], b: [f64; 2]) -> f64 {
    ((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])).sqrt()
}

/// The spreads along the main axes of points around their centre, largest first, by Jacobi's rotations.
fn spreads(points: &[Vec<f32>]) -> Vec<f64> {
    let dimensions = points[0].len();
    let mean =
        |axis: usize| points.iter().map(|point| f64::from(point[axis])).sum::<f64>() / points.len() as f64;
    let centred: Vec<Vec<f64>> = points
        .iter()
        .map(|p| (0..dimensions).map(|axis| f64::from(p[axis]) - mean(axis)).collect())
        .collect();
    let entry = |a: usize, b: usize| centred.iter().map(|point| point[a] * point[b]).sum::<f64>();
    let mut matrix: Vec<Vec<f64>> =
        (0..dimensions).map(|a| (0..dimensions).map(|b| entry(a, b)).collect()).collect();
    for _ in 0..30 {
        for a in 0..dimensions {
            for b in a + 1..dimensions {
                rotate(&mut matrix, a, b);
            }
        }
    }
    let mut spreads: Vec<f64> = (0..dimensions).map(|axis| matrix[axis][axis]).collect();
    spreads.sort_by(|a, b| b.total_cmp(a));
    spreads
}

/// Makes the entry (a, b) of a symmetric matrix zero.
fn rotate(matrix: &mut [Vec<f64>], a: usize, b: usize) {
    let angle = 0.5 * (2.0 * matrix[a][b]).atan2(matrix[a][a] - matrix[b][b]);
    let (sine, cosine) = angle.sin_cos();
    for row in matrix.iter_mut() {
        (row[a], row[b]) = (cosine * row[a] + sine * row[b], cosine * row[b] - sine * row[a]);
    }
    let (above, below) = matrix.split_at_mut(b);
    for (x, y) in above[a].iter_mut().zip(&mut below[0]) {
        (*x, *y) = (cosine * *x + sine * *y, cosine * *y - sine * *x);
    }
}

#[test]
fn few_points_have_their_place() {
    assert_eq!(project(&[]).1, Projection { points: vec![], kept: 1.0 });
    assert_eq!(project(&[vec![7.0, 8.0, 9.0]]).1, Projection { points: vec![[0.0; 2]], kept: 1.0 });
    let (_, pair) = project(&[vec![1.0, 1.0], vec![4.0, 5.0]]);
    assert!((apart(pair.points[0], pair.points[1]) - 5.0).abs() < 1e-9, "{pair:?}");
    let (_, same) = project(&vec![vec![3.0; 4]; 6]);
    assert_eq!(same, Projection { points: vec![[0.0; 2]; 6], kept: 1.0 });
}

#[test]
fn a_line_stays_a_line() {
    let (distances, line) = project(&[0.0, 1.0, 2.0, 5.0].map(|t| vec![t, 2.0 * t, -t]));
    for point in 0..4 {
        let drawn = apart(line.points[0], line.points[point]);
        assert!((drawn - distances.between(0, point)).abs() < 1e-6, "{line:?}");
    }
    assert!(line.points.iter().all(|point| point[1].abs() < 1e-6), "{line:?}");
    assert!(line.points[3][0] > 0.0, "the farthest point is positive");
}

proptest! {
    #[test]
    fn a_plane_in_space_is_drawn_as_it_is(
        flat in prop::collection::vec((-50_i8..50, -50_i8..50), 2..30),
    ) {
        // Two directions at right angles in five dimensions, each of length 5.
        let place = |(x, y): &(i8, i8)| -> Vec<f32> {
            [3.0 * f32::from(*x), 4.0 * f32::from(*x), 0.0, 4.0 * f32::from(*y), -3.0 * f32::from(*y)].to_vec()
        };
        let (distances, drawn) = project(&flat.iter().map(place).collect::<Vec<_>>());
        let size = (0..flat.len()).map(|point| distances.between(0, point)).fold(1.0, f64::max);
        for a in 0..flat.len() {
            for b in 0..a {
                let difference = apart(drawn.points[a], drawn.points[b]) - distances.between(a, b);
                prop_assert!(difference.abs() < 1e-5 * size, "{} and {}: {}", a, b, difference);
            }
        }
        prop_assert!(drawn.kept > 1.0 - 1e-9);
    }

    #[test]
    fn the_plane_is_the_widest(
        points in prop::collection::vec(prop::collection::vec((-9_i8..9).prop_map(f32::from), 5), 3..25),
    ) {
        let (_, drawn) = project(&points);
        let spreads = spreads(&points);
        let all: f64 = spreads.iter().sum();
        prop_assume!(all > 0.0);
        let expected = (spreads[0] + spreads[1]) / all;
        prop_assert!((drawn.kept - expected).abs() < 1e-4, "{} instead of {}", drawn.kept, expected);
        let along = |axis: usize| drawn.points.iter().map(|point| point[axis] * point[axis]).sum::<f64>();
        prop_assert!(along(0) >= along(1) * (1.0 - 1e-9));
        for axis in 0..2 {
            let centre: f64 = drawn.points.iter().map(|point| point[axis]).sum();
            prop_assert!(centre.abs() < 1e-5 * all.sqrt());
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let points: Vec<Vec<f32>> =
        (0..120_u32).map(|i| (0..40).map(|j| ((i * 37 + j * j * 11) % 101) as f32 / 7.0).collect()).collect();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| project(&points))
    };
    assert_eq!(with(1), with(3));
}
