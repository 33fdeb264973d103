//! The experiment file as it is written: names, defaults and ranges. What belongs together across keys is checked
//! when it becomes an [`Experiment`](crate::Experiment).

use crate::tournament::TournamentKeys;
use crate::yardstick::YardstickKeys;
use evolution::algorithm::Algorithm;
use evolution::migration::{Emigrants, Policy, Replacement, Transfer};
use evolution::topology::Topology;
use problems::ProblemSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An experiment: the problem, the algorithm, the islands, their migration and the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// What the experiment is called: lowercase letters, digits, `-`, `_` and `.`.
    #[schemars(length(min = 1, max = 60))]
    pub name: String,
    /// The seed of all random numbers.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807u64))]
    pub seed: u64,
    /// The problem to solve.
    pub problem: ProblemSpec,
    /// The algorithm of each island.
    pub algorithm: Algorithm,
    /// The number of islands and their topology.
    #[serde(default)]
    pub islands: Islands,
    /// Which individuals migrate, and when.
    #[serde(default)]
    pub migration: Migration,
    /// When the run ends: at the limit that is reached first.
    pub budget: BudgetKeys,
    /// How often work is saved: the most that a crash can cost.
    #[serde(default)]
    pub checkpoint: Checkpoint,
    /// Which states are kept.
    #[serde(default)]
    pub retention: Retention,
    /// Measures the champions of milestones during the run, against checkers players that never change. Results do not
    /// depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yardstick: Option<YardstickKeys>,
    /// The digest of the guests that join the founders; written by studies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guests: Option<String>,
    /// Runs all combinations of the values of some keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepKeys>,
    /// Several experiments by name: the keys that each of them overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<BTreeMap<String, serde_json::Value>>,
    /// A tournament of checkers players: alone, or after the experiments of a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tournament: Option<TournamentKeys>,
}

/// The cells of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepKeys {
    /// How often each cell is run: with the seed of the experiment, the next seed, and so on.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeats: u32,
    /// The axes; every value of one is combined with every value of the others.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub axis: Vec<AxisKeys>,
    /// Variants by name, as another axis: the keys that each of them overrides. A number may be a multiple of another
    /// key, such as `"40 * problem.turns"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(length(max = 1000))]
    pub variants: BTreeMap<String, serde_json::Value>,
    /// The report to write when all cells are done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<SweepReport>,
}

/// The report of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SweepReport {
    /// The tables of the maze study, each variant beside the published figures and the proved optimum, and a plot.
    MazeStudy,
}

fn once() -> u32 {
    1
}

/// One axis of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisKeys {
    /// The keys that change along it, such as `["problem.turns"]`.
    #[schemars(length(min = 1, max = 16))]
    pub keys: Vec<String>,
    /// Their values: a plain list for one key, a list of rows for several that change together. A number may be a
    /// multiple of another key, such as `"40 * problem.turns"`.
    #[schemars(length(min = 1, max = 100_000))]
    pub values: Vec<serde_json::Value>,
}

/// The islands of the archipelago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Islands {
    /// The number of islands.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
    /// Who sends migrants to whom.
    pub topology: TopologyKey,
    /// Who sends its former champions to whom, as opponents: a league.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub league: Option<TopologyKey>,
    /// Islands with other settings.
    #[serde(rename = "override", skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
}

impl Default for Islands {
    fn default() -> Self {
        Self { count: 8, topology: TopologyKey::Named(TopologyName::Ring), league: None, overrides: vec![] }
    }
}

/// A topology by its name, or with parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TopologyKey {
    /// One that needs no parameters.
    Named(TopologyName),
    /// One with parameters.
    Detailed(Topology),
}

/// The topologies that need no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyName {
    /// No migration.
    Isolated,
    /// Each island sends to the next one.
    Ring,
    /// Each island sends to the next and to the one before.
    TwoWayRing,
    /// Each island sends to those whose number differs in one bit.
    Hypercube,
    /// Island 0 sends to all others, and they to it.
    Star,
    /// Each island sends to all others.
    FullyConnected,
}

impl TopologyKey {
    /// The topology.
    pub fn topology(&self) -> Topology {
        match self {
            Self::Detailed(topology) => topology.clone(),
            Self::Named(TopologyName::Isolated) => Topology::Isolated,
            Self::Named(TopologyName::Ring) => Topology::Ring,
            Self::Named(TopologyName::TwoWayRing) => Topology::TwoWayRing,
            Self::Named(TopologyName::Hypercube) => Topology::Hypercube,
            Self::Named(TopologyName::Star) => Topology::Star,
            Self::Named(TopologyName::FullyConnected) => Topology::FullyConnected,
        }
    }
}

/// The settings of some islands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// Which islands, counted from 0.
    #[schemars(length(min = 1))]
    pub islands: Vec<u32>,
    /// Their algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Their migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<PolicyOverride>,
    /// Whether their individuals are judged by the opponents of the league alone: they look for weaknesses of the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub exploits: bool,
}

/// The parts of migration that an island may do differently: everything but the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyOverride {
    /// The number of emigrants at the end of an epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub count: Option<u32>,
    /// How emigrants are chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emigrants: Option<Emigrants>,
    /// Which individuals immigrants replace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replacement: Option<Replacement>,
    /// Whether emigrants are copied or leave their island.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

impl PolicyOverride {
    /// The policy with these parts of it changed.
    pub fn over(&self, policy: &Policy) -> Policy {
        Policy {
            count: self.count.unwrap_or(policy.count),
            emigrants: self.emigrants.unwrap_or(policy.emigrants),
            replacement: self.replacement.unwrap_or(policy.replacement),
            transfer: self.transfer.unwrap_or(policy.transfer),
        }
    }
}

/// Which individuals migrate, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Migration {
    /// Generations between two migrations: the length of an epoch.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub interval: u64,
    /// Whether an island waits for the migrants of its neighbours.
    pub mode: Mode,
    /// The number of emigrants at the end of an epoch.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub count: u32,
    /// How emigrants are chosen.
    pub emigrants: Emigrants,
    /// Which individuals immigrants replace.
    pub replacement: Replacement,
    /// Whether emigrants are copied or leave their island.
    pub transfer: Transfer,
}

impl Default for Migration {
    fn default() -> Self {
        let Policy { count, emigrants, replacement, transfer } = Policy::default();
        Self { interval: 10, mode: Mode::Synchronous, count, emigrants, replacement, transfer }
    }
}

impl Migration {
    /// The policy of islands that do not override it.
    pub fn policy(&self) -> Policy {
        Policy {
            count: self.count,
            emigrants: self.emigrants,
            replacement: self.replacement,
            transfer: self.transfer,
        }
    }
}

/// Whether an island waits for its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// An epoch starts when the neighbours have finished theirs: the result depends on experiment and seed alone.
    Synchronous,
    /// An epoch starts with the migrants that have arrived, and records them.
    Asynchronous,
}

/// When a run ends: at the limit that is reached first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetKeys {
    /// Number of generations; 0 only creates the founders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000_000u64))]
    pub generations: Option<u64>,
    /// Number of evaluations of all islands together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000_000_000u64))]
    pub evaluations: Option<u64>,
    /// Fitness of a champion at which to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_fitness: Option<f64>,
    /// Generations without a better champion after which to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000_000u64))]
    pub stagnation: Option<u64>,
    /// Total time, such as `"8h"` or `"1h 30m"`, without pauses and restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<String>,
}

/// How often work is saved: the most that a crash can cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Checkpoint {
    /// A number of generations, or a time such as `"30s"`.
    pub every: Every,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self { every: Every::Time("30s".to_owned()) }
    }
}

/// An amount of work or of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Every {
    /// A number of generations of an island.
    Generations(#[schemars(range(min = 1, max = 1_000_000_000))] u64),
    /// A time, but at least one generation.
    Time(String),
}

/// Which states are kept. Digests and statistics always are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Number of newest states to keep of each island.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub keep: u32,
    /// Keep the state of every n-th epoch permanently.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub milestones: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { keep: 2, milestones: None }
    }
}
