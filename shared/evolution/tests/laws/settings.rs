//! Any algorithm and any way to migrate.

use evolution::algorithm::{
    Algorithm, Cma, Crossover, CrossoverKind, Crowding, Es, FallingRate, Ga, MapElites, Mutation,
    MutationUnit, Rate, Recombination, Survival, Weighting,
};
use evolution::island::{IslandSetting, Setting};
use evolution::migration::{Emigrants, Policy, Replacement, Transfer};
use evolution::topology::Topology;
use proptest::option;
use proptest::prelude::*;

pub(crate) fn crossovers() -> impl Strategy<Value = Crossover> {
    let kinds = prop_oneof![
        Just(CrossoverKind::OnePoint),
        Just(CrossoverKind::TwoPoint),
        Just(CrossoverKind::Uniform)
    ];
    (kinds, prop_oneof![Just(0.0), Just(1.0), 0.0..1.0]).prop_map(|(kind, rate)| Crossover { kind, rate })
}

pub(crate) fn mutations() -> impl Strategy<Value = Mutation> {
    let constant = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0].prop_map(Rate::Constant);
    let falling = (0.0..1.0, 0.0..1.0, 1u64..9)
        .prop_map(|(from, to, over)| Rate::Falling(FallingRate { from, to, over: Some(over) }));
    let units = prop_oneof![Just(MutationUnit::Individual), Just(MutationUnit::Gene)];
    (prop_oneof![constant, falling], units, option::of(0.0..5.0)).prop_map(|(rate, per, step)| Mutation {
        rate,
        per,
        step,
    })
}

pub(crate) fn gas() -> impl Strategy<Value = Ga> {
    (2u32..40, 1u32..6, crossovers(), mutations(), 0.0..0.9).prop_map(
        |(population, tournament, crossover, mutation, elite)| Ga {
            population,
            tournament,
            crossover,
            mutation,
            elite,
        },
    )
}

pub(crate) fn crowdings() -> impl Strategy<Value = Crowding> {
    (2u32..40, crossovers(), mutations(), 1u32..9, any::<bool>(), any::<bool>()).prop_map(
        |(population, crossover, mutation, mates, distinct, strict)| Crowding {
            population,
            crossover,
            mutation,
            mates,
            distinct,
            strict,
        },
    )
}

pub(crate) fn strategies() -> impl Strategy<Value = Es> {
    let recombinations = [Recombination::None, Recombination::Discrete, Recombination::Intermediate];
    let manner = (
        prop::sample::select(recombinations.to_vec()),
        prop::sample::select(vec![Survival::Plus, Survival::Comma]),
        any::<bool>(),
        prop::sample::select(vec![Weighting::Equal, Weighting::Rank]),
    );
    (1u32..20, 1u32..40, 0.0..9.0, option::of(0.0..3.0), 0.0..3.0, manner).prop_map(
        |(parents, offspring, sigma, tau, tau_common, (recombination, survival, mirrored, weighting))| Es {
            parents,
            offspring: if survival == Survival::Comma { offspring.max(parents) } else { offspring },
            sigma,
            tau,
            tau_common,
            recombination,
            survival,
            mirrored,
            weighting,
            ..Es::default()
        },
    )
}

/// Strategies that adapt their distribution.
pub(crate) fn adapting() -> impl Strategy<Value = Cma> {
    (1u32..12, 2u32..24, 0.0..3.0).prop_map(|(parents, offspring, sigma)| Cma {
        parents,
        offspring: offspring.max(parents),
        sigma,
    })
}

pub(crate) fn archives() -> impl Strategy<Value = MapElites> {
    (prop::collection::vec(1u32..8, 2), 1u32..40, 1u32..40, crossovers(), mutations()).prop_map(
        |(bins, founders, batch, crossover, mutation)| MapElites {
            bins,
            founders,
            batch,
            crossover,
            mutation,
        },
    )
}

/// Any algorithm for problems of symbols without axes.
pub(crate) fn for_symbols() -> impl Strategy<Value = Algorithm> {
    prop_oneof![gas().prop_map(Algorithm::Ga), crowdings().prop_map(Algorithm::Crowding)]
}

/// Any algorithm for real problems with two axes.
pub(crate) fn for_reals() -> impl Strategy<Value = Algorithm> {
    prop_oneof![
        gas().prop_map(Algorithm::Ga),
        crowdings().prop_map(Algorithm::Crowding),
        strategies().prop_map(Algorithm::Es),
        archives().prop_map(Algorithm::MapElites),
        adapting().prop_map(Algorithm::SepCma),
        adapting().prop_map(Algorithm::LmMa),
    ]
}

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let emigrants = prop_oneof![
        Just(Emigrants::Best),
        Just(Emigrants::Tournament),
        Just(Emigrants::Random),
        Just(Emigrants::MostDiverse)
    ];
    let replacement = prop_oneof![
        Just(Replacement::Worst),
        Just(Replacement::WorstIfBetter),
        Just(Replacement::Random),
        Just(Replacement::MostSimilar)
    ];
    let transfer = prop_oneof![Just(Transfer::Copy), Just(Transfer::Move)];
    (0u32..6, emigrants, replacement, transfer).prop_map(|(count, emigrants, replacement, transfer)| Policy {
        count,
        emigrants,
        replacement,
        transfer,
    })
}

/// Islands that are all alike.
pub(crate) fn alike(
    seed: u64,
    count: u32,
    topology: &Topology,
    algorithm: &Algorithm,
    policy: &Policy,
) -> Setting {
    let own = IslandSetting { algorithm: algorithm.clone(), policy: policy.clone(), exploits: false };
    let edges = topology.edges(count, seed).expect("the topology fits");
    Setting { seed, islands: vec![own; count as usize], edges, opponents: vec![] }
}

/// One island alone.
pub(crate) fn alone(seed: u64, algorithm: &Algorithm) -> Setting {
    alike(seed, 1, &Topology::Isolated, algorithm, &Policy::default())
}
