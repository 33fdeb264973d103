//! Species: groups of similar individuals of a population.
//!
//! [`Distances`] between individuals, who are points of any dimension; [`Dbscan`], which finds the regions where they
//! lie densely, with an epsilon from the [`knee`](epsilon) of the curve of their distances unless one is given; what
//! becomes of those in no such region ([`Noise`]); and a [`Picture`] of all of them in two dimensions
//! ([`Projection`]).
//!
//! Everything follows from the points alone, to the last bit, on any number of threads. The crate deliberately knows
//! nothing of what is evolved or how good it is, and it is no general library of cluster analysis: each answer is
//! defined, and made for populations of up to [`Distances::MOST`].
//!
//! ```
//! use species::{Dbscan, Distances, Noise};
//!
//! let population = [[0.0, 0.1], [0.1, 0.0], [0.0, 0.0], [5.0, 5.1], [5.1, 5.0], [5.0, 5.0], [9.0, 0.0]];
//! let distances = Distances::euclidean(&population)?;
//! let min_points = 3;
//! let epsilon = species::epsilon(&distances, min_points);
//! let clustering = Dbscan { epsilon, min_points }.cluster(&distances);
//! let species = clustering.species(Noise::Drop, &distances);
//! assert_eq!(species.members(), [vec![0, 1, 2], vec![3, 4, 5]]);
//! assert_eq!(species.of(6), None);
//! # Ok::<(), species::DistanceError>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod dbscan;
mod distances;
mod epsilon;
mod kinds;
mod picture;
mod projection;

pub use dbscan::{Clustering, Dbscan};
pub use distances::{DistanceError, Distances};
pub use epsilon::{epsilon, k_distances, knee};
pub use kinds::{Noise, Species};
pub use picture::Picture;
pub use projection::Projection;
