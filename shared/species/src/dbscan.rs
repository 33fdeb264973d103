//! DBSCAN: regions where points lie densely (Ester, Kriegel, Sander and Xu, 1996).

use crate::distances::Distances;
use crate::kinds::{Noise, Species};

/// What counts as dense.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dbscan {
    /// Points at most so far apart are neighbours. None are if this is negative or NaN.
    pub epsilon: f64,
    /// A point with this number of neighbours, including itself, is a core point.
    pub min_points: usize,
}

/// Points by the dense region they lie in.
///
/// Core points that are neighbours lie in one cluster, and clusters are numbered by their first core point. A border
/// point, which is none but has a core point for a neighbour, lies in the first cluster that has one. Every other
/// point is noise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clustering {
    labels: Vec<Option<usize>>,
    core: Vec<bool>,
    clusters: usize,
}

impl Dbscan {
    /// The default: the fewest points of a dense cluster, and of a species that can play a round robin.
    pub const MIN_POINTS: usize = 4;

    /// The clusters of these points.
    pub fn cluster(&self, distances: &Distances) -> Clustering {
        let points = distances.points();
        let is_core = |point| self.neighbours(distances, point).count() >= self.min_points.max(1);
        let core: Vec<bool> = (0..points).map(is_core).collect();
        let mut clustering = Clustering { labels: vec![None; points], core, clusters: 0 };
        for point in 0..points {
            if clustering.core[point] && clustering.labels[point].is_none() {
                self.spread(distances, point, &mut clustering);
            }
        }
        clustering
    }

    fn neighbours<'a>(
        &'a self,
        distances: &'a Distances,
        point: usize,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let near = |(other, distance)| (distance <= self.epsilon).then_some(other);
        distances.from(point).enumerate().filter_map(near)
    }

    /// A new cluster: whatever can be reached from a core point over core points.
    fn spread(&self, distances: &Distances, first: usize, clustering: &mut Clustering) {
        let cluster = Some(clustering.clusters);
        clustering.clusters += 1;
        clustering.labels[first] = cluster;
        let mut reached = vec![first];
        while let Some(point) = reached.pop() {
            for neighbour in self.neighbours(distances, point) {
                if clustering.labels[neighbour].is_none() {
                    clustering.labels[neighbour] = cluster;
                    reached.extend(Some(neighbour).filter(|point| clustering.core[*point]));
                }
            }
        }
    }
}

impl Clustering {
    /// The cluster of each point; nothing for noise.
    pub fn labels(&self) -> &[Option<usize>] {
        &self.labels
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> usize {
        self.clusters
    }

    /// Whether a point is a core point.
    pub fn is_core(&self, point: usize) -> bool {
        self.core[point]
    }

    /// The points of no cluster, in order.
    pub fn noise(&self) -> impl Iterator<Item = usize> {
        self.labels.iter().enumerate().filter_map(|(point, label)| label.is_none().then_some(point))
    }

    /// Clusters as species, and noise by the given rule. Without any cluster all points are equal, and form one species.
    pub fn species(&self, noise: Noise, distances: &Distances) -> Species {
        let labels = match noise {
            _ if self.clusters == 0 && noise != Noise::Own => vec![Some(0); self.labels.len()],
            Noise::Drop => self.labels.clone(),
            Noise::Own => self.alone(),
            Noise::Nearest => self.nearest(distances),
        };
        Species::new(labels)
    }

    fn alone(&self) -> Vec<Option<usize>> {
        let mut next = self.clusters..;
        self.labels.iter().map(|label| label.or_else(|| next.next())).collect()
    }

    fn nearest(&self, distances: &Distances) -> Vec<Option<usize>> {
        let core = |(point, distance)| Some((distance, self.labels[point]?)).filter(|_| self.core[point]);
        let nearest = |point| {
            let cores = distances.from(point).enumerate().filter_map(core);
            cores.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, label)| label)
        };
        self.labels.iter().enumerate().map(|(point, label)| label.or_else(|| nearest(point))).collect()
    }
}
