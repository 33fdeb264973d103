//! Who sends migrants to whom.

use crate::random::{Key, Purpose};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of the archipelago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// No migration.
    Isolated,
    /// Each island sends to the next one.
    Ring,
    /// Each island sends to the next and to the one before.
    TwoWayRing,
    /// A grid whose edges are joined; each island sends to its four neighbours.
    Torus {
        /// Rows of the grid; its columns follow from the number of islands.
        #[schemars(range(min = 1))]
        rows: u32,
    },
    /// Each island sends to those whose number differs in one bit. Needs a power of two of islands.
    Hypercube,
    /// Island 0 sends to all others, and they to it.
    Star,
    /// Each island sends to all others.
    FullyConnected,
    /// Each island sends to `degree` others and receives from as many, wired at random by the run's seed.
    RandomRegular {
        /// Number of islands that each one sends to.
        #[schemars(range(min = 1))]
        degree: u32,
    },
    /// As listed.
    Custom {
        /// The edges.
        edges: Vec<Edge>,
    },
}

/// The most edges that an archipelago may have.
pub const MAX_EDGES: u64 = 1 << 22;

/// A way from one island to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// The island that sends.
    pub from: u32,
    /// The island that receives.
    pub to: u32,
    /// The chance that the edge carries migrants at the end of an epoch.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub weight: f64,
}

fn certain() -> f64 {
    1.0
}

/// A topology that is impossible with this number of islands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Rows that do not divide the islands.
    #[error("expected rows that divide the {islands} islands evenly, found `{rows}`")]
    Rows {
        /// How many islands there are.
        islands: u32,
        /// The rows asked for.
        rows: u32,
    },
    /// A hypercube of a number that is no power of two.
    #[error("expected a power of two of islands for a hypercube, found `{islands}`")]
    Hypercube {
        /// How many islands there are.
        islands: u32,
    },
    /// More neighbours than there are others.
    #[error("expected a degree below the number of islands ({islands}), found `{degree}`")]
    Degree {
        /// How many islands there are.
        islands: u32,
        /// The degree asked for.
        degree: u32,
    },
    /// More edges than can be kept in mind.
    #[error("expected at most {MAX_EDGES} edges between {islands} islands, found `{edges}`")]
    Edges {
        /// How many islands there are.
        islands: u32,
        /// The edges asked for.
        edges: u64,
    },
    /// An edge to or from an island that does not exist.
    #[error("expected islands from 0 to {last}, found the edge `{from} -> {to}`")]
    Edge {
        /// The last island.
        last: u32,
        /// Where the edge begins.
        from: u32,
        /// Where it ends.
        to: u32,
    },
    /// An edge that begins where it ends, or is listed twice.
    #[error("expected each edge once and between different islands, found `{from} -> {to}`")]
    Repeated {
        /// Where the edge begins.
        from: u32,
        /// Where it ends.
        to: u32,
    },
}

impl Topology {
    /// The edges over this number of islands, ordered by sender and receiver.
    pub fn edges(&self, islands: u32, seed: u64) -> Result<Vec<Edge>, TopologyError> {
        let n = islands;
        let all = 0..n;
        let degree = match self {
            Self::FullyConnected => n.saturating_sub(1),
            Self::RandomRegular { degree } => (*degree).min(n),
            _ => 0,
        };
        let count = u64::from(n) * u64::from(degree);
        if count > MAX_EDGES {
            return Err(TopologyError::Edges { islands, edges: count });
        }
        let mut edges: Vec<(u32, u32)> = match self {
            Self::Isolated => vec![],
            Self::Ring => all.map(|i| (i, (i + 1) % n)).collect(),
            Self::TwoWayRing => all.flat_map(|i| [(i, (i + 1) % n), (i, (i + n - 1) % n)]).collect(),
            Self::Torus { rows } => torus(n, *rows)?,
            Self::Hypercube if n.is_power_of_two() => {
                all.flat_map(|i| (0..n.trailing_zeros()).map(move |bit| (i, i ^ 1 << bit))).collect()
            }
            Self::Hypercube => return Err(TopologyError::Hypercube { islands }),
            Self::Star => (1..n).flat_map(|i| [(0, i), (i, 0)]).collect(),
            Self::FullyConnected => all.flat_map(|i| (0..n).map(move |j| (i, j))).collect(),
            Self::RandomRegular { degree } => random_regular(n, *degree, seed)?,
            Self::Custom { edges } => return custom(n, edges),
        };
        // Small rings and tori name a neighbour twice or the island itself.
        edges.retain(|(from, to)| from != to);
        edges.sort_unstable();
        edges.dedup();
        Ok(edges.into_iter().map(|(from, to)| Edge { from, to, weight: 1.0 }).collect())
    }
}

fn torus(islands: u32, rows: u32) -> Result<Vec<(u32, u32)>, TopologyError> {
    if !islands.is_multiple_of(rows) {
        return Err(TopologyError::Rows { islands, rows });
    }
    let columns = islands / rows;
    Ok((0..islands)
        .flat_map(|island| {
            let (row, column) = (island / columns, island % columns);
            let at = move |row: u32, column: u32| row % rows * columns + column % columns;
            [
                (island, at(row + 1, column)),
                (island, at(row + rows - 1, column)),
                (island, at(row, column + 1)),
                (island, at(row, column + columns - 1)),
            ]
        })
        .collect())
}

/// A union of `degree` circles through all islands in random order would repeat edges; instead a circulant graph
/// (each sends to the next `degree`) has its islands renamed at random and its edges swapped pairwise many times,
/// which keeps every degree.
fn random_regular(islands: u32, degree: u32, seed: u64) -> Result<Vec<(u32, u32)>, TopologyError> {
    if degree >= islands {
        return Err(TopologyError::Degree { islands, degree });
    }
    let mut stream = Key::of_run(seed, 0).stream(0, Purpose::Wiring);
    let mut names: Vec<u32> = (0..islands).collect();
    stream.shuffle(&mut names);
    let name = |island: u32| names[(island % islands) as usize];
    let mut edges: Vec<(u32, u32)> = (0..islands)
        .flat_map(|i| (1..=degree).map(move |d| (i, i + d)))
        .map(|(i, j)| (name(i), name(j)))
        .collect();
    let mut present: std::collections::BTreeSet<(u32, u32)> = edges.iter().copied().collect();
    for _ in 0..10 * edges.len() {
        let (a, b) = (stream.below(edges.len()), stream.below(edges.len()));
        let ((from_a, to_a), (from_b, to_b)) = (edges[a], edges[b]);
        let swapped = [(from_a, to_b), (from_b, to_a)];
        if swapped.iter().any(|edge| edge.0 == edge.1 || present.contains(edge)) {
            continue;
        }
        present.remove(&edges[a]);
        present.remove(&edges[b]);
        (edges[a], edges[b]) = (swapped[0], swapped[1]);
        present.extend(swapped);
    }
    Ok(edges)
}

fn custom(islands: u32, edges: &[Edge]) -> Result<Vec<Edge>, TopologyError> {
    let mut sorted = edges.to_vec();
    sorted.sort_unstable_by_key(|edge| (edge.from, edge.to));
    for &Edge { from, to, .. } in &sorted {
        if from.max(to) >= islands {
            return Err(TopologyError::Edge { last: islands - 1, from, to });
        }
        if from == to {
            return Err(TopologyError::Repeated { from, to });
        }
    }
    if let Some(pair) =
        sorted.windows(2).find(|pair| (pair[0].from, pair[0].to) == (pair[1].from, pair[1].to))
    {
        return Err(TopologyError::Repeated { from: pair[0].from, to: pair[0].to });
    }
    Ok(sorted)
}

impl Edge {
    /// Whether the edge carries migrants at the end of an epoch: both ends know, without asking each other.
    pub fn carries(&self, seed: u64, epoch: u64) -> bool {
        if self.weight >= 1.0 {
            return true;
        }
        let edge = (self.from as usize) << 32 | self.to as usize;
        Key::of_run(seed, 1 + epoch).stream(edge, Purpose::Edges).unit() < self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn degrees(edges: &[Edge], islands: u32) -> Vec<(usize, usize)> {
        let count = |f: fn(&Edge) -> u32, island| edges.iter().filter(|edge| f(edge) == island).count();
        (0..islands).map(|island| (count(|e| e.from, island), count(|e| e.to, island))).collect()
    }

    fn all_degrees(topology: &Topology, islands: u32) -> Vec<(usize, usize)> {
        degrees(&topology.edges(islands, 1).unwrap(), islands)
    }

    #[test]
    fn degrees_are_those_of_the_names() {
        assert_eq!(all_degrees(&Topology::Isolated, 5), [(0, 0); 5]);
        assert_eq!(all_degrees(&Topology::Ring, 5), [(1, 1); 5]);
        assert_eq!(all_degrees(&Topology::TwoWayRing, 5), [(2, 2); 5]);
        assert_eq!(all_degrees(&Topology::Torus { rows: 3 }, 12), [(4, 4); 12]);
        assert_eq!(all_degrees(&Topology::Hypercube, 16), [(4, 4); 16]);
        assert_eq!(all_degrees(&Topology::FullyConnected, 6), [(5, 5); 6]);
        assert_eq!(all_degrees(&Topology::Star, 4), [(3, 3), (1, 1), (1, 1), (1, 1)]);
    }

    #[test]
    fn one_island_has_no_edges() {
        for topology in [
            Topology::Ring,
            Topology::TwoWayRing,
            Topology::Torus { rows: 1 },
            Topology::Hypercube,
            Topology::Star,
            Topology::FullyConnected,
        ] {
            assert_eq!(topology.edges(1, 0), Ok(vec![]), "{topology:?}");
        }
    }

    #[test]
    fn impossible_ones_are_refused() {
        assert_eq!(
            Topology::Torus { rows: 5 }.edges(12, 0),
            Err(TopologyError::Rows { islands: 12, rows: 5 })
        );
        assert_eq!(Topology::Hypercube.edges(12, 0), Err(TopologyError::Hypercube { islands: 12 }));
        let random = Topology::RandomRegular { degree: 3 };
        assert_eq!(random.edges(3, 0), Err(TopologyError::Degree { islands: 3, degree: 3 }));
        let edge = |from, to| Edge { from, to, weight: 1.0 };
        let custom = |edges: &[Edge]| Topology::Custom { edges: edges.to_vec() }.edges(3, 0);
        assert_eq!(custom(&[edge(0, 3)]), Err(TopologyError::Edge { last: 2, from: 0, to: 3 }));
        assert_eq!(custom(&[edge(1, 1)]), Err(TopologyError::Repeated { from: 1, to: 1 }));
        assert_eq!(custom(&[edge(0, 1), edge(0, 1)]), Err(TopologyError::Repeated { from: 0, to: 1 }));
    }

    #[test]
    fn weighted_edges_carry_their_share() {
        let edge = Edge { from: 1, to: 2, weight: 0.25 };
        let carried = (0..4000).filter(|&epoch| edge.carries(9, epoch)).count();
        assert!((900..1100).contains(&carried), "{carried}");
    }

    proptest! {
        #[test]
        fn random_topologies_are_regular(islands in 2u32..40, degree in 1u32..8, seed: u64) {
            prop_assume!(degree < islands);
            let edges = Topology::RandomRegular { degree }.edges(islands, seed).unwrap();
            prop_assert_eq!(degrees(&edges, islands), vec![(degree as usize, degree as usize); islands as usize]);
        }
    }
}
