//! Islands, populations and the algorithms that evolve them.
//!
//! The crate is pure: it reads no clock, no file and no ambient randomness. An epoch of an island is a function of
//! the experiment, the island's state and its immigrants ([`epoch::run`]), and gives the same bits on any machine
//! with any number of threads. What it deliberately is not: it does not decide which epoch runs where or when
//! (that is the coordinator's), does not store anything, and knows no problem of its own.
//!
//! ```
//! use evolution::algorithm::{Algorithm, Ga};
//! use evolution::gene::{Alphabet, Shape};
//! use evolution::island::{Island, IslandSetting, Setting};
//! use evolution::migration::Policy;
//! use evolution::population::{Cost, Population};
//! use evolution::problem::{Judging, Problem};
//!
//! /// Genomes of 20 bits; the more ones, the better.
//! struct Ones;
//!
//! impl Problem for Ones {
//!     type Gene = u8;
//!     fn shape(&self) -> Shape<u8> {
//!         Shape { length: 20, domain: Alphabet(2) }
//!     }
//!     fn judge(&self, population: &mut Population<u8>, judging: &Judging) -> u64 {
//!         population.judge_each(judging.fresh.clone(), self.cost(), |_, genome, _| {
//!             genome.iter().map(|&bit| f64::from(bit)).sum()
//!         })
//!     }
//!     fn cost(&self) -> Cost {
//!         Cost { nanoseconds: 10 }
//!     }
//! }
//!
//! let algorithm = Algorithm::Ga(Ga { population: 100, ..Ga::default() });
//! let own = IslandSetting { algorithm, policy: Policy::default(), exploits: false };
//! let setting = Setting { seed: 1, islands: vec![own], edges: vec![], opponents: vec![] };
//! let mut island = Island::found(&Ones, &setting, 0);
//! while island.champion().fitness < 20.0 {
//!     island.generation();
//! }
//! assert_eq!(island.champion().genome, [1; 20]);
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod activity;
pub mod algorithm;
pub mod epoch;
pub mod gene;
pub mod island;
pub mod migration;
pub mod population;
pub mod problem;
pub mod random;
pub mod statistics;
pub mod topology;

pub use codec::{self, digest};
