//! A configuration with every form that experiment files use, and the schema that is derived from it.

use proptest::prelude::{Just, any, prop, prop_compose, prop_oneof};
use proptest::strategy::Strategy as Generator;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// One archipelago.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where all randomness comes from.
    pub(crate) seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) islands: Islands,
    /// How each island evolves.
    pub(crate) algorithm: Algorithm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<Migration>,
    #[serde(default)]
    pub(crate) budget: Budget,
    /// Values to run with, by key path.
    #[serde(default)]
    pub(crate) axes: BTreeMap<String, Vec<Scalar>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) colours: Option<Palette>,
    #[serde(default)]
    pub(crate) weights: BTreeMap<u64, f64>,
    #[serde(default)]
    pub(crate) range: (u8, i16),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Output>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) levels: Option<BTreeMap<Level, bool>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Islands {
    /// How many islands there are.
    pub(crate) count: NonZeroU32,
    #[serde(rename = "override")]
    pub(crate) overrides: Vec<Override>,
    pub(crate) label: char,
}

impl Default for Islands {
    fn default() -> Self {
        Self { count: NonZeroU32::MIN, overrides: Vec::new(), label: 'i' }
    }
}

/// What differs on some islands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Override {
    pub(crate) islands: Vec<u32>,
    pub(crate) algorithm: Algorithm,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Algorithm {
    /// Tournaments, crossover and mutation.
    Genetic {
        /// How many individuals an island holds.
        population: Population,
        #[serde(default)]
        crossover: Crossover,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        elite: Option<f64>,
    },
    Strategy(Strategy),
    RandomSearch {},
}

/// A number that checks itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
#[schemars(!try_from, !into)]
pub(crate) struct Population(#[schemars(range(min = 1, max = 1000))] u32);

impl TryFrom<u32> for Population {
    type Error = String;

    fn try_from(size: u32) -> Result<Self, String> {
        if (1..=1000).contains(&size) { Ok(Self(size)) } else { Err(format!("no population of {size}")) }
    }
}

impl From<Population> for u32 {
    fn from(population: Population) -> Self {
        population.0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Crossover {
    /// One cut.
    #[default]
    OnePoint,
    TwoPoint,
    /// Every gene by itself.
    Uniform,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Strategy {
    pub(crate) mu: u16,
    pub(crate) lambda: u16,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Migration {
    pub(crate) interval: u32,
    #[serde(flatten)]
    pub(crate) topology: Topology,
    #[serde(flatten)]
    pub(crate) share: Share,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "topology", rename_all = "kebab-case")]
pub(crate) enum Topology {
    Ring { both_ways: bool },
    Torus { width: u32, height: u32 },
    Isolated,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Share {
    pub(crate) count: u8,
    #[serde(default)]
    pub(crate) copies: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Budget {
    Generations(u32),
    #[schemars(example = &"10 minutes")]
    Time(String),
    Both {
        generations: u32,
        time: String,
    },
}

impl Default for Budget {
    fn default() -> Self {
        Self::Generations(100)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Scalar {
    Flag(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Palette {
    Grey,
    Shades(u8),
    Mixed { red: f32, blue: f32 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "format", content = "options", rename_all = "kebab-case")]
pub(crate) enum Output {
    Csv { header: bool },
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Level {
    Debug,
    Quiet,
}

/// The schema of [`Config`].
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}

fn text() -> impl Generator<Value = String> {
    prop_oneof!["[a-z]{0,8}", any::<String>()]
}

fn float() -> impl Generator<Value = f64> {
    -1e12..1e12
}

fn algorithm() -> impl Generator<Value = Algorithm> {
    let crossover =
        prop_oneof![Just(Crossover::OnePoint), Just(Crossover::TwoPoint), Just(Crossover::Uniform)];
    prop_oneof![
        (1u32..=1000, crossover, prop::option::of(float())).prop_map(|(population, crossover, elite)| {
            Algorithm::Genetic { population: Population(population), crossover, elite }
        }),
        any::<(u16, u16)>().prop_map(|(mu, lambda)| Algorithm::Strategy(Strategy { mu, lambda })),
        Just(Algorithm::RandomSearch {}),
    ]
}

fn islands() -> impl Generator<Value = Islands> {
    let overridden = (prop::collection::vec(any::<u32>(), 0..3), algorithm())
        .prop_map(|(islands, algorithm)| Override { islands, algorithm });
    (1u32.., prop::collection::vec(overridden, 0..3), any::<char>()).prop_map(|(count, overrides, label)| {
        Islands { count: NonZeroU32::new(count).unwrap(), overrides, label }
    })
}

fn migration() -> impl Generator<Value = Migration> {
    let topology = prop_oneof![
        any::<bool>().prop_map(|both_ways| Topology::Ring { both_ways }),
        any::<(u32, u32)>().prop_map(|(width, height)| Topology::Torus { width, height }),
        Just(Topology::Isolated),
    ];
    let share = any::<(u8, bool)>().prop_map(|(count, copies)| Share { count, copies });
    (any::<u32>(), topology, share).prop_map(|(interval, topology, share)| Migration {
        interval,
        topology,
        share,
    })
}

fn budget() -> impl Generator<Value = Budget> {
    prop_oneof![
        any::<u32>().prop_map(Budget::Generations),
        text().prop_map(Budget::Time),
        (any::<u32>(), text()).prop_map(|(generations, time)| Budget::Both { generations, time }),
    ]
}

fn scalar() -> impl Generator<Value = Scalar> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Flag),
        any::<i64>().prop_map(Scalar::Integer),
        float().prop_map(Scalar::Float),
        text().prop_map(Scalar::Text),
    ]
}

fn palette() -> impl Generator<Value = Palette> {
    prop_oneof![
        Just(Palette::Grey),
        any::<u8>().prop_map(Palette::Shades),
        (-1e3f32..1e3, -1e3f32..1e3).prop_map(|(red, blue)| Palette::Mixed { red, blue }),
    ]
}

fn output() -> impl Generator<Value = Output> {
    prop_oneof![any::<bool>().prop_map(|header| Output::Csv { header }), Just(Output::Json)]
}

prop_compose! {
    /// Any configuration at all.
    pub(crate) fn config()(
        // TOML writes integers of 63 bits.
        seed in 0..=i64::MAX as u64,
        name in prop::option::of(text()),
        islands in islands(),
        algorithm in algorithm(),
        migration in prop::option::of(migration()),
        budget in budget(),
        axes in prop::collection::btree_map(text(), prop::collection::vec(scalar(), 0..3), 0..3),
        colours in prop::option::of(palette()),
        weights in prop::collection::btree_map(any::<u64>(), float(), 0..3),
        range in any::<(u8, i16)>(),
        output in prop::option::of(output()),
        levels in prop::option::of(prop::collection::btree_map(
            prop_oneof![Just(Level::Debug), Just(Level::Quiet)], any::<bool>(), 0..3)),
    ) -> Config {
        Config { seed, name, islands, algorithm, migration, budget, axes, colours, weights, range, output, levels }
    }
}
