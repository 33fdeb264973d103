//! From a population of checkers networks to its species, their representatives, and the ensemble of these.
//!
//! [`Speciation::of`] measures how far apart the networks are (by weights or by [`Distance::Behaviour`]), finds the
//! dense regions among them, and lets the members of each species play each other; the best of each represents it.
//! The representatives make an [`Ensemble`](checkers::Ensemble), the whole makes a picture and a summary.
//!
//! A crate beside the problems that can be evolved, because this happens to what they leave behind: it needs no
//! island, no fitness and no experiment. It deliberately reads and writes no files, and its answer depends on the
//! networks and settings alone, never on the number of threads.
//!
//! ```
//! use checkers::{Network, NodeKind};
//! use ensembles::{SpeciationSettings, Speciation};
//! use std::sync::Arc;
//!
//! let weights = |i: usize| vec![0.01 * (i / 2) as f32 + 0.0001 * i as f32; NodeKind::Sum.weight_count()];
//! let networks: Vec<Arc<Network>> = (0..6)
//!     .map(|i| Network::new(NodeKind::Sum, &weights(i)).map(Arc::new))
//!     .collect::<Result<_, _>>()?;
//! let settings = SpeciationSettings { min_points: 2, depth: 2, ..SpeciationSettings::default() };
//! let speciation = Speciation::of(&networks, &settings)?;
//! assert_eq!(speciation.species().count(), 3);
//! assert_eq!(speciation.ensemble(&networks)?.members().len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod round_robin;
mod settings;
mod speciation;
mod summary;

pub use round_robin::{Count, RoundRobinStanding, round_robin};
pub use settings::{Distance, SpeciationSettings};
pub use speciation::{Speciation, SpeciationError};
pub use summary::{SpeciationSummary, SpeciesSummary, StandingSummary};
