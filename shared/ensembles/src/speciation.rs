//! The species of a population.

use crate::round_robin::{Count, RoundRobinStanding, counted_round_robin};
use crate::settings::{Distance, SpeciationSettings};
use checkers::{Architecture, Ensemble, EnsembleError, Network, behaviour, sample_positions};
use rayon::prelude::*;
use species::{Clustering, Dbscan, DistanceError, Distances, Picture, Projection, Species};
use std::sync::Arc;

/// Why networks have no species.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SpeciationError {
    /// There are none.
    #[error("expected a population of at least one network, found `0`")]
    Empty,
    /// There are too many.
    #[error(transparent)]
    Distance(#[from] DistanceError),
    /// They have different nodes or shapes, and so no common weights.
    #[error(
        "expected networks of {expected}, as network 0 has, found {found} at network {network}: \
         compare them by behaviour"
    )]
    Kinds {
        /// The nodes of the first.
        expected: Architecture,
        /// Other ones.
        found: Architecture,
        /// Whose they are.
        network: usize,
    },
    /// An invalid epsilon.
    #[error("expected an epsilon of 0 or more, found `{0}`")]
    Epsilon(f64),
}

/// The species of a population, and the scores of their round robins.
#[derive(Clone, PartialEq, Debug)]
pub struct Speciation {
    distance: Distance,
    dbscan: Dbscan,
    clustering: Clustering,
    species: Species,
    standings: Vec<Vec<RoundRobinStanding>>,
    projection: Projection,
}

impl Speciation {
    /// The species of these networks.
    ///
    /// # Errors
    /// If there are none or too many, if they cannot be compared by the distance that is asked for, or if a given
    /// epsilon is no distance.
    pub fn of(networks: &[Arc<Network>], settings: &SpeciationSettings) -> Result<Self, SpeciationError> {
        Self::counted(networks, settings, &|_| ())
    }

    /// The same, counting what is done: it may take long.
    ///
    /// # Errors
    /// As for [`Speciation::of`].
    pub fn counted(
        networks: &[Arc<Network>],
        settings: &SpeciationSettings,
        count: Count<'_>,
    ) -> Result<Self, SpeciationError> {
        let distances = distances(networks, settings, count)?;
        count(1);
        let min_points = settings.min_points;
        let epsilon = settings.epsilon.unwrap_or_else(|| species::epsilon(&distances, min_points));
        if epsilon.is_nan() || epsilon < 0.0 {
            return Err(SpeciationError::Epsilon(epsilon));
        }
        let dbscan = Dbscan { epsilon, min_points };
        let clustering = dbscan.cluster(&distances);
        let species = clustering.species(settings.noise, &distances);
        let standings =
            species.members().iter().map(|members| contest(networks, members, settings, count)).collect();
        let projection = Projection::new(&distances);
        Ok(Self { distance: settings.distance, dbscan, clustering, species, standings, projection })
    }

    /// The distance by which networks were compared.
    pub fn distance(&self) -> Distance {
        self.distance
    }

    /// The density that was used.
    pub fn dbscan(&self) -> Dbscan {
        self.dbscan
    }

    /// The dense regions.
    pub fn clustering(&self) -> &Clustering {
        &self.clustering
    }

    /// The species.
    pub fn species(&self) -> &Species {
        &self.species
    }

    /// What the members of each species scored against each other, the best first.
    pub fn standings(&self) -> &[Vec<RoundRobinStanding>] {
        &self.standings
    }

    /// The networks as points in a plane.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// The best of each species.
    pub fn representatives(&self) -> Vec<usize> {
        self.standings.iter().filter_map(|standings| standings.first()).map(|best| best.player).collect()
    }

    /// The representatives as one player; `networks` are those whose species these are.
    ///
    /// # Errors
    /// If there are too many species for an ensemble.
    pub fn ensemble(&self, networks: &[Arc<Network>]) -> Result<Ensemble, EnsembleError> {
        Ensemble::new(self.representatives().into_iter().map(|best| networks[best].clone()).collect())
    }

    /// The population in two dimensions, as SVG; individuals without a name go by their number.
    pub fn picture(&self, title: &str, names: &[String]) -> String {
        let (projection, species) = (&self.projection, &self.species);
        Picture { title, projection, species, representatives: &self.representatives(), names }.to_svg()
    }
}

fn distances(
    networks: &[Arc<Network>],
    settings: &SpeciationSettings,
    count: Count<'_>,
) -> Result<Distances, SpeciationError> {
    let first = networks.first().ok_or(SpeciationError::Empty)?;
    match settings.distance {
        Distance::Weights => {
            let expected = first.architecture();
            if let Some(network) = networks.iter().position(|network| network.architecture() != expected) {
                let found = networks[network].architecture();
                return Err(SpeciationError::Kinds { expected, found, network });
            }
            let weights: Vec<&[f32]> = networks.iter().map(|network| network.weights()).collect();
            Ok(Distances::euclidean(&weights)?)
        }
        Distance::Behaviour { positions } => {
            let positions = sample_positions(settings.seed, positions.min(Distance::MOST_POSITIONS));
            let look = |network: &Arc<Network>| {
                let said = behaviour(network, &positions);
                count(1);
                said
            };
            let said: Vec<Vec<f32>> = networks.par_iter().map(look).collect();
            Ok(Distances::euclidean(&said)?)
        }
    }
}

/// The round robin of a species, its players as numbers of the population.
fn contest(
    networks: &[Arc<Network>],
    members: &[usize],
    settings: &SpeciationSettings,
    count: Count<'_>,
) -> Vec<RoundRobinStanding> {
    let players: Vec<Arc<Network>> = members.iter().map(|member| networks[*member].clone()).collect();
    let standings = counted_round_robin(&players, settings, count).into_iter();
    standings.map(|standing| RoundRobinStanding { player: members[standing.player], ..standing }).collect()
}
