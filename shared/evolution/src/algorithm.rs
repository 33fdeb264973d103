//! The algorithms that make one generation out of another, with their parameters as they stand in an experiment.

mod breeding;
pub(crate) mod cma;
mod crowding;
mod es;
mod ga;
mod map_elites;

pub use cma::Cma;
pub use crowding::Crowding;
pub use es::{Es, Recombination, Survival, Weighting};
pub use ga::Ga;
pub use map_elites::MapElites;

use crate::population::Population;
use crate::problem::{Judging, Problem};
use crate::random::{Chance, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an island evolves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Algorithm {
    /// A generational genetic algorithm.
    Ga(Ga),
    /// An evolution strategy with self-adaptive mutation, for real genes.
    Es(Es),
    /// Deterministic crowding: a child competes with the more similar parent.
    Crowding(Crowding),
    /// MAP-Elites: an archive of the best individual for each cell of a grid.
    MapElites(MapElites),
    /// Separable covariance matrix adaptation, for many real genes: a variance for each of them (sep-CMA-ES).
    SepCma(Cma),
    /// Matrix adaptation of limited memory, for many real genes that depend on each other (LM-MA-ES).
    LmMa(Cma),
}

impl Algorithm {
    /// What experiments call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ga(_) => "ga",
            Self::Es(_) => "es",
            Self::Crowding(_) => "crowding",
            Self::MapElites(_) => "map-elites",
            Self::SepCma(_) => "sep-cma",
            Self::LmMa(_) => "lm-ma",
        }
    }

    /// How many individuals found an island.
    pub fn founders(&self) -> u32 {
        match self {
            Self::Ga(ga) => ga.population,
            Self::Es(es) => es.parents,
            Self::Crowding(crowding) => crowding.population,
            Self::MapElites(archive) => archive.founders,
            Self::SepCma(cma) | Self::LmMa(cma) => cma.parents,
        }
    }

    /// How many new individuals a generation brings.
    pub fn births(&self) -> u32 {
        match self {
            Self::Ga(ga) => ga.population - ga.elite_count(),
            Self::Es(es) => es.offspring,
            Self::Crowding(crowding) => crowding.population & !1,
            Self::MapElites(archive) => archive.batch,
            Self::SepCma(cma) | Self::LmMa(cma) => cma.offspring,
        }
    }

    /// The most individuals an island holds between generations.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::MapElites(archive) => archive.cells(),
            other => u64::from(other.founders()),
        }
    }

    /// Whether the number of its individuals depends on what was found so far.
    pub(crate) fn is_archive(&self) -> bool {
        matches!(self, Self::MapElites(_))
    }

    /// The most individuals there are in one place at any time: founders, residents, or the children of a generation.
    pub fn crowd(&self) -> u64 {
        self.capacity().max(u64::from(self.founders())).max(u64::from(self.births()))
    }

    /// The step size of individuals that come without one.
    pub(crate) fn default_step(&self) -> f32 {
        match self {
            Self::Es(es) => es.sigma as f32,
            _ => 0.0,
        }
    }

    /// The strategy that adapts its distribution, and the model of that, if it is one.
    pub(crate) fn adapting(&self) -> Option<(&Cma, cma::Model)> {
        match self {
            Self::SepCma(cma) => Some((cma, cma::Model::Separable)),
            Self::LmMa(cma) => Some((cma, cma::Model::LimitedMemory)),
            _ => None,
        }
    }

    /// Whether it needs genes that are numbers.
    pub fn needs_numbers(&self) -> bool {
        matches!(self, Self::Es(_) | Self::SepCma(_) | Self::LmMa(_))
    }

    /// The bytes that an island remembers beside its population for the algorithm, of genomes of this length.
    pub fn private_bytes(&self, length: usize) -> u64 {
        self.adapting().map_or(0, |(cma, model)| model.bytes(length, cma.parents))
    }

    /// Gives every falling rate that does not say over how many generations it falls the length of the run.
    pub fn resolve_rates(&mut self, generations: Option<u64>) {
        let mutation = match self {
            Self::Ga(ga) => &mut ga.mutation,
            Self::Crowding(crowding) => &mut crowding.mutation,
            Self::MapElites(archive) => &mut archive.mutation,
            Self::Es(_) | Self::SepCma(_) | Self::LmMa(_) => return,
        };
        if let Rate::Falling(falling) = &mut mutation.rate {
            falling.over = falling.over.or(generations);
        }
    }

    /// Its crossover and mutation; strategies have others.
    pub fn variation(&self) -> Option<(&Crossover, &Mutation)> {
        match self {
            Self::Ga(ga) => Some((&ga.crossover, &ga.mutation)),
            Self::Crowding(crowding) => Some((&crowding.crossover, &crowding.mutation)),
            Self::MapElites(archive) => Some((&archive.crossover, &archive.mutation)),
            Self::Es(_) | Self::SepCma(_) | Self::LmMa(_) => None,
        }
    }

    /// The same kind of algorithm with nothing said about it.
    pub fn plain(&self) -> Self {
        match self {
            Self::Ga(_) => Self::Ga(Ga::default()),
            Self::Es(_) => Self::Es(Es::default()),
            Self::Crowding(_) => Self::Crowding(Crowding::default()),
            Self::MapElites(_) => Self::MapElites(MapElites::default()),
            Self::SepCma(_) => Self::SepCma(Cma::default()),
            Self::LmMa(_) => Self::LmMa(Cma::default()),
        }
    }

    /// The mutation rate that falls without saying over how many generations, if there is one.
    pub fn has_open_rate(&self) -> bool {
        let is_open = |rate: &Rate| matches!(rate, Rate::Falling(falling) if falling.over.is_none());
        self.variation().is_some_and(|(_, mutation)| is_open(&mutation.rate))
    }
}

/// How two parents' genes are mixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Crossover {
    /// Where the genes of one parent give way to those of the other.
    pub kind: CrossoverKind,
    /// The share of pairs that are crossed; children of other pairs are copies.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rate: f64,
}

impl Default for Crossover {
    fn default() -> Self {
        Self { kind: CrossoverKind::OnePoint, rate: 0.7 }
    }
}

/// Where the genes of one parent give way to those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrossoverKind {
    /// After one random gene.
    OnePoint,
    /// Between two random genes.
    TwoPoint,
    /// At each gene with probability 0.5.
    Uniform,
}

/// Mutation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mutation {
    /// How likely a mutation is.
    pub rate: Rate,
    /// What the rate refers to.
    pub per: MutationUnit,
    /// The deviation of a Gaussian step from the old value; without it the new value is any of the domain's.
    #[schemars(range(min = 0.0))]
    pub step: Option<f64>,
}

impl Default for Mutation {
    fn default() -> Self {
        Self { rate: Rate::Constant(0.1), per: MutationUnit::Individual, step: None }
    }
}

/// What a mutation rate refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MutationUnit {
    /// With this probability one random gene of an individual changes.
    Individual,
    /// Each gene changes with this probability.
    Gene,
}

/// A rate that is constant, or falls linearly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Rate {
    /// The same in every generation.
    Constant(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// From one value in the first generation to another in the last.
    Falling(FallingRate),
}

/// A rate that changes linearly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FallingRate {
    /// The rate in the first generation.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub from: f64,
    /// The rate in the last generation and after it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub to: f64,
    /// Number of generations over which it changes; by default those of the budget.
    #[schemars(range(min = 1))]
    pub over: Option<u64>,
}

impl Rate {
    /// The rate in a generation; the first is number 1.
    pub fn at(&self, generation: u64) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Falling(FallingRate { from, to, over }) => {
                let steps = over.unwrap_or(1).saturating_sub(1);
                let done = generation.saturating_sub(1).min(steps);
                if steps == 0 { *to } else { from + (to - from) * (done as f64 / steps as f64) }
            }
        }
    }
}

/// One generation about to be made.
pub(crate) struct Coming<'a, P: Problem> {
    pub(crate) problem: &'a P,
    pub(crate) generation: u64,
    pub(crate) key: Key,
    /// Former champions of this island and of others, as opponents.
    pub(crate) hall: &'a Population<P::Gene>,
    /// Whether these are the only opponents.
    pub(crate) exploits: bool,
    /// Evaluations spent on it so far, and how many of them gave no number.
    pub(crate) tally: &'a mut Tally,
    /// What the island remembers of learning.
    pub(crate) memory: &'a mut Vec<u8>,
}

/// What judging has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) evaluations: u64,
    pub(crate) unjudgeable: u64,
}

impl<P: Problem> Coming<'_, P> {
    /// Lets the problem judge the fresh individuals (all of them, where fitness is relative).
    pub(crate) fn judge(&mut self, population: &mut Population<P::Gene>, fresh: std::ops::Range<usize>) {
        let fresh = if self.problem.absolute() { fresh } else { 0..population.len() };
        let judging = Judging::new(fresh, self.key).exploiting(self.exploits);
        self.tally.judge_beside(self.hall, self.problem, population, judging, Some(self.memory));
    }
}

impl Tally {
    /// Judges while the members of a hall of fame stand behind the population.
    pub(crate) fn judge_beside<P: Problem>(
        &mut self,
        hall: &Population<P::Gene>,
        problem: &P,
        population: &mut Population<P::Gene>,
        judging: Judging,
        memory: Option<&mut Vec<u8>>,
    ) {
        let count = population.len();
        population.append(hall);
        self.judge(problem, population, judging.with_hall(count..count + hall.len()), memory);
        population.resize(count);
    }

    /// Judges, and lets those learn who have a memory for it. Fitness is never NaN: what a problem could not judge becomes
    /// the worst there is, and is counted.
    pub(crate) fn judge<P: Problem>(
        &mut self,
        problem: &P,
        population: &mut Population<P::Gene>,
        judging: Judging,
        memory: Option<&mut Vec<u8>>,
    ) {
        let spent = match memory {
            None => problem.judge(population, &judging),
            Some(memory) => problem.judge_and_learn(population, &judging, memory),
        };
        self.evaluations = self.evaluations.saturating_add(spent);
        for fitness in &mut population.fitness_mut()[judging.fresh] {
            if fitness.is_nan() {
                *fitness = f64::NEG_INFINITY;
                self.unjudgeable = self.unjudgeable.saturating_add(1);
            }
        }
    }
}

/// Room that generations use again and again.
pub(crate) struct Spare<P: Problem> {
    next: Population<P::Gene>,
    windows: breeding::Windows,
}

impl<P: Problem> Spare<P> {
    pub(crate) fn new(population: &Population<P::Gene>) -> Self {
        Self {
            next: Population::empty_like(population),
            windows: breeding::Windows::new(population.shape().length, population.stride()),
        }
    }
}

/// Mutation with its rate in this generation.
pub(crate) struct Mutating {
    chance: Chance,
    per: MutationUnit,
    step: Option<f64>,
    /// For rates by gene: 1 / ln(1 - rate), to jump from one mutated gene to the next.
    gap: f64,
}

impl Mutation {
    pub(crate) fn at(&self, generation: u64) -> Mutating {
        let rate = self.rate.at(generation);
        Mutating {
            chance: Chance::new(rate),
            per: self.per,
            step: self.step,
            gap: if rate > 0.0 { 1.0 / libm::log1p(-rate) } else { f64::NEG_INFINITY },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_linearly_and_stay() {
        let rate = Rate::Falling(FallingRate { from: 0.3, to: 0.1, over: Some(11) });
        let close = |generation, expected: f64| assert!((rate.at(generation) - expected).abs() < 1e-12);
        close(1, 0.3);
        close(6, 0.2);
        close(11, 0.1);
        close(1000, 0.1);
    }
}
