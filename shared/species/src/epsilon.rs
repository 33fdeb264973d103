//! Which distance is near: the knee of the sorted curve of distances to the k-th neighbour.

use crate::distances::Distances;

/// A curve that does not rise to this many times its beginning has no knee: no point is set apart.
const RISE: f64 = 1.5;
/// How far below its chord a curve must sag, for it not to be straight.
const SAG: f64 = 1e-9;

/// A distance that most points, but not those apart from all others, have enough neighbours within for core points
/// of [`Dbscan`](crate::Dbscan): the value at the [`knee`] of their [`k_distances`], or the largest if there is no
/// knee, so that every point is a core point. 0 for fewer than two points.
pub fn epsilon(distances: &Distances, min_points: usize) -> f64 {
    let curve = k_distances(distances, min_points);
    knee(&curve).or(curve.len().checked_sub(1)).map_or(0.0, |place| curve[place])
}

/// For each point the least distance within which it has `min_points` points, itself counted; the smallest first.
/// Where there are fewer points, the distance to the farthest.
pub fn k_distances(distances: &Distances, min_points: usize) -> Vec<f64> {
    let points = distances.points();
    let place = min_points.clamp(1, points.max(1)) - 1;
    let k_distance = |point| {
        let mut from: Vec<f64> = distances.from(point).collect();
        *from.select_nth_unstable_by(place, f64::total_cmp).1
    };
    let mut curve: Vec<f64> = (0..points).map(k_distance).collect();
    curve.sort_by(f64::total_cmp);
    curve
}

/// Where a rising curve turns upwards: its place farthest below the straight line from its first to its last value;
/// of several as far below the first. Nothing for a curve that is flat (it rises by less than half), straight, or
/// bent the other way.
pub fn knee(curve: &[f64]) -> Option<usize> {
    let (first, last) = (*curve.first()?, *curve.last()?);
    if last < first * RISE || last <= first {
        return None;
    }
    let steps = (curve.len() - 1) as f64;
    let sag = |place: usize| place as f64 / steps - (curve[place] - first) / (last - first);
    let mut deepest = (SAG, None);
    for place in 0..curve.len() {
        if sag(place) > deepest.0 {
            deepest = (sag(place), Some(place));
        }
    }
    deepest.1
}
