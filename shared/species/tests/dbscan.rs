//! DBSCAN and its epsilon: cases that one can draw, a slow reference, and laws.

use proptest::prelude::*;
use species::{Clustering, Dbscan, DistanceError, Distances, Noise, epsilon, k_distances, knee};

fn distances(points: &[Vec<f32>]) -> Distances {
    Distances::euclidean(points).expect("finite points of one dimension")
}

/// Points on a line.
fn line(places: &[f32]) -> Distances {
    distances(&places.iter().map(|place| vec![*place]).collect::<Vec<_>>())
}

fn labels(places: &[f32], epsilon: f64, min_points: usize) -> Vec<Option<usize>> {
    Dbscan { epsilon, min_points }.cluster(&line(places)).labels().to_vec()
}

#[test]
fn distances_are_those_of_pythagoras() {
    let triangle = distances(&[vec![0.0, 0.0], vec![3.0, 0.0], vec![0.0, 4.0]]);
    assert_eq!([triangle.between(0, 1), triangle.between(2, 0), triangle.between(1, 2)], [3.0, 4.0, 5.0]);
    assert_eq!(triangle.between(1, 1), 0.0);
    let long = distances(&[vec![1.0; 101], vec![3.0; 101]]);
    assert_eq!(long.between(0, 1), 404_f64.sqrt());
}

#[test]
fn points_without_distances_are_refused() {
    let refusal = |points: &[Vec<f32>]| Distances::euclidean(points).expect_err("no distances");
    let uneven = refusal(&[vec![1.0, 2.0], vec![1.0]]);
    assert_eq!(uneven, DistanceError::Dimension { expected: 2, found: 1, point: 1 });
    let infinite = refusal(&[vec![1.0, 2.0], vec![1.0, f32::INFINITY]]);
    assert_eq!(infinite, DistanceError::NotFinite { value: f32::INFINITY, point: 1, index: 1 });
    assert_eq!(refusal(&vec![vec![]; 4097]), DistanceError::TooMany(4097));
}

#[test]
fn clusters_are_numbered_by_their_first_core_point() {
    // The first point borders on the cluster of 4 and 5, which is found after that of the second and third.
    assert_eq!(labels(&[3.0, 10.0, 10.5, 11.0, 4.0, 5.0], 1.0, 3), [1, 0, 0, 0, 1, 1].map(Some));
}

#[test]
fn a_border_point_belongs_to_the_first_cluster_that_reaches_it() {
    // 2 is a neighbour of the core points at 1 and 3, but is none itself.
    let mut places = [3.0, 3.2, 3.4, 3.6, 2.0, 1.0, 0.8, 0.6, 0.4];
    let found = Dbscan { epsilon: 1.0, min_points: 4 }.cluster(&line(&places));
    assert_eq!(found.labels(), [0, 0, 0, 0, 0, 1, 1, 1, 1].map(Some));
    assert!(found.is_core(0) && !found.is_core(4) && found.is_core(5));
    places.reverse();
    assert_eq!(labels(&places, 1.0, 4), [0, 0, 0, 0, 0, 1, 1, 1, 1].map(Some));
}

#[test]
fn noise_is_in_no_cluster() {
    let found = Dbscan { epsilon: 1.0, min_points: 3 }.cluster(&line(&[0.0, 9.0, 0.5, 1.0, 5.0, 5.5]));
    assert_eq!(found.labels(), [Some(0), None, Some(0), Some(0), None, None]);
    assert_eq!(found.noise().collect::<Vec<_>>(), [1, 4, 5]);
}

#[test]
fn neighbours_may_be_exactly_epsilon_apart() {
    assert_eq!(labels(&[0.0, 1.0, 2.0], 1.0, 3), [0; 3].map(Some));
    assert_eq!(labels(&[0.0, 1.0, 2.0], 0.999, 3), [None; 3]);
}

#[test]
fn every_population_has_a_defined_answer() {
    assert_eq!(labels(&[], 1.0, 4), []);
    assert_eq!(labels(&[1.0], 1.0, 4), [None]);
    assert_eq!(labels(&[1.0], 1.0, 0), [Some(0)]);
    assert_eq!(labels(&[7.0; 5], 0.0, 4), [Some(0); 5]);
    for nothing in [f64::NAN, -1.0] {
        assert_eq!(labels(&[7.0; 5], nothing, 1), [None; 5]);
    }
    assert_eq!(labels(&[1.0, 2.0, 3.0, 4.0], f64::INFINITY, 4), [Some(0); 4]);
}

fn species(places: &[f32], noise: Noise) -> Vec<Vec<usize>> {
    let distances = line(places);
    let found = Dbscan { epsilon: 1.0, min_points: 3 }.cluster(&distances);
    found.species(noise, &distances).members().to_vec()
}

#[test]
fn noise_becomes_what_one_wants() {
    let places = [0.0, 30.0, 1.0, 2.0, 20.0, 21.0, 22.0, 11.0, 10.0];
    assert_eq!(species(&places, Noise::Drop), [vec![0, 2, 3], vec![4, 5, 6]]);
    assert_eq!(species(&places, Noise::Own), [vec![0, 2, 3], vec![4, 5, 6], vec![1], vec![7], vec![8]]);
    // 11 is as far from 2 as from 20, which comes later.
    assert_eq!(species(&places, Noise::Nearest), [vec![0, 2, 3, 7, 8], vec![1, 4, 5, 6]]);
}

#[test]
fn where_no_species_can_be_told_apart_all_are_one() {
    for noise in [Noise::Drop, Noise::Nearest] {
        assert_eq!(species(&[0.0, 5.0, 10.0], noise), [vec![0, 1, 2]]);
        assert_eq!(species(&[0.0], noise), [vec![0]]);
        assert!(species(&[], noise).is_empty());
    }
    assert_eq!(species(&[0.0, 5.0, 10.0], Noise::Own), [vec![0], vec![1], vec![2]]);
    assert!(species(&[], Noise::Own).is_empty());
}

#[test]
fn the_knee_is_where_the_curve_turns_upwards() {
    assert_eq!(knee(&[1.0, 1.1, 1.2, 1.3, 6.0, 9.0]), Some(3));
    assert_eq!(knee(&[0.0, 0.0, 0.0, 5.0]), Some(2));
    assert_eq!(knee(&[1.0, 1.0, 3.0, 3.0]), Some(1), "the first of the deepest");
}

#[test]
fn a_curve_without_a_knee_has_none() {
    for curve in [&[][..], &[1.0], &[0.0; 4], &[1.0, 1.1, 1.2, 1.4], &[1.0, 2.0, 3.0, 4.0], &[1.0, 5.0, 6.0]]
    {
        assert_eq!(knee(curve), None, "{curve:?}");
    }
}

#[test]
fn k_distances_count_the_point_itself() {
    assert_eq!(k_distances(&line(&[0.0, 1.0, 3.0, 7.0]), 3), [2.0, 3.0, 3.0, 6.0]);
    assert_eq!(k_distances(&line(&[0.0, 1.0, 3.0]), 1), [0.0; 3]);
    assert_eq!(k_distances(&line(&[0.0, 1.0, 3.0]), 9), [2.0, 3.0, 3.0]);
    assert!(k_distances(&line(&[]), 4).is_empty());
}

#[test]
fn epsilon_is_defined_for_every_population() {
    for places in [&[][..], &[3.0], &[3.0; 6]] {
        assert_eq!(epsilon(&line(places), 4), 0.0, "{places:?}");
    }
    assert_eq!(epsilon(&line(&[0.0, 1.0, 2.0, 3.0]), 2), 1.0, "evenly spread: all are core points");
    let clusters = [0.0, 0.1, 0.2, 0.3, 5.0, 5.1, 5.2, 5.3, 20.0];
    let epsilon = epsilon(&line(&clusters), 3);
    assert!((0.1..1.0).contains(&epsilon), "{epsilon}");
}

/// By the definitions alone: which core points are connected is found by Warshall's closure.
fn reference(distances: &Distances, dbscan: &Dbscan) -> Vec<Option<usize>> {
    let points = distances.points();
    let near = |a: usize, b: usize| distances.between(a, b) <= dbscan.epsilon;
    let core: Vec<bool> =
        (0..points).map(|a| (0..points).filter(|b| near(a, *b)).count() >= dbscan.min_points).collect();
    let mut joined: Vec<Vec<bool>> =
        (0..points).map(|a| (0..points).map(|b| core[a] && core[b] && near(a, b)).collect()).collect();
    for via in 0..points {
        for a in 0..points {
            for b in 0..points {
                joined[a][b] |= joined[a][via] && joined[via][b];
            }
        }
    }
    let first_of = |a: usize| (0..points).find(|b| joined[a][*b]);
    let mut firsts: Vec<usize> = (0..points).filter_map(first_of).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let cluster = |a: usize| firsts.iter().position(|first| Some(*first) == first_of(a));
    let label =
        |a: usize| cluster(a).or_else(|| (0..points).filter(|b| near(a, *b)).filter_map(cluster).min());
    (0..points).map(label).collect()
}

/// Points in a few dimensions on a coarse grid, where many distances are equal.
fn populations() -> impl Strategy<Value = Vec<Vec<f32>>> {
    (1..4_usize).prop_flat_map(|dimensions| {
        let point = prop::collection::vec((0..12_u8).prop_map(f32::from), dimensions);
        prop::collection::vec(point, 0..40)
    })
}

fn settings() -> impl Strategy<Value = Dbscan> {
    (0..5_u8, 1..6_usize)
        .prop_map(|(epsilon, min_points)| Dbscan { epsilon: f64::from(epsilon) * 0.75, min_points })
}

/// Every core point's neighbours are in its cluster, but for border points that another cluster reached first.
fn neighbours_are_together(found: &Clustering, distances: &Distances, dbscan: &Dbscan) -> bool {
    let points = 0..distances.points();
    let fits = |(a, b): (usize, usize)| match (found.labels()[a], found.labels()[b]) {
        (Some(a), Some(other)) if found.is_core(b) => a == other,
        (Some(a), Some(other)) => other <= a,
        _ => false,
    };
    let pairs = points.clone().flat_map(|a| points.clone().map(move |b| (a, b)));
    pairs.filter(|(a, b)| found.is_core(*a) && distances.between(*a, *b) <= dbscan.epsilon).all(fits)
}

proptest! {
    #[test]
    fn labels_are_those_of_the_definition(points in populations(), dbscan in settings()) {
        let distances = distances(&points);
        let found = dbscan.cluster(&distances);
        prop_assert_eq!(found.labels(), reference(&distances, &dbscan));
        prop_assert_eq!(found.clusters(), found.labels().iter().flatten().max().map_or(0, |last| last + 1));
    }

    #[test]
    fn neighbours_of_core_points_are_in_their_cluster(points in populations(), dbscan in settings()) {
        let distances = distances(&points);
        let found = dbscan.cluster(&distances);
        prop_assert!(neighbours_are_together(&found, &distances, &dbscan));
        for noise in found.noise() {
            let near = |point: &usize| distances.between(noise, *point) <= dbscan.epsilon;
            prop_assert!(!(0..points.len()).filter(near).any(|point| found.is_core(point)));
        }
    }

    #[test]
    fn another_order_gives_the_same_clusters(
        (points, order) in populations().prop_flat_map(|points| {
            let order: Vec<usize> = (0..points.len()).collect();
            (Just(points), Just(order).prop_shuffle())
        }),
        dbscan in settings(),
    ) {
        let one = dbscan.cluster(&distances(&points));
        let shuffled: Vec<Vec<f32>> = order.iter().map(|point| points[*point].clone()).collect();
        let other = dbscan.cluster(&distances(&shuffled));
        prop_assert_eq!(one.clusters(), other.clusters());
        let mut names = vec![None; one.clusters()];
        for (place, point) in order.iter().enumerate() {
            prop_assert_eq!(other.is_core(place), one.is_core(*point));
            prop_assert_eq!(other.labels()[place].is_some(), one.labels()[*point].is_some());
            if let (true, Some(label)) = (one.is_core(*point), one.labels()[*point]) {
                let name = *names[label].get_or_insert(other.labels()[place]);
                prop_assert_eq!(name, other.labels()[place]);
            }
        }
    }

    #[test]
    fn everybody_is_in_one_species_or_outside(points in populations(), dbscan in settings(), kind in 0..3_usize) {
        let distances = distances(&points);
        let noise = [Noise::Drop, Noise::Own, Noise::Nearest][kind];
        let species = dbscan.cluster(&distances).species(noise, &distances);
        let mut all: Vec<usize> = species.members().concat();
        all.extend(species.outsiders());
        all.sort_unstable();
        prop_assert_eq!(all, (0..points.len()).collect::<Vec<_>>());
        prop_assert!(species.members().iter().all(|members| !members.is_empty()));
        prop_assert!(noise == Noise::Drop || species.outsiders().count() == 0);
        prop_assert!(points.is_empty() || species.count() > 0);
    }

    #[test]
    fn at_its_epsilon_core_points_are_those_up_to_the_knee(points in populations(), min_points in 1..6_usize) {
        let distances = distances(&points);
        let epsilon = epsilon(&distances, min_points);
        let found = Dbscan { epsilon, min_points }.cluster(&distances);
        let expected = k_distances(&distances, min_points).iter().filter(|k| **k <= epsilon).count();
        let core = (0..points.len()).filter(|point| found.is_core(*point)).count();
        prop_assert_eq!(core, if points.len() < min_points { 0 } else { expected });
    }
}
