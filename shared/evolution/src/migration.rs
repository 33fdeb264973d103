//! Which individuals leave an island at the end of an epoch, and which ones immigrants replace.

use crate::algorithm::Algorithm;
use crate::gene::Gene;
use crate::population::{PackedPopulation, Population};
use crate::problem::Problem;
use crate::random::Stream;
use crate::statistics::Arrival;
use bincode::{Decode, Encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an island migrates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Number of emigrants at the end of an epoch.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub count: u32,
    /// Which individuals leave.
    pub emigrants: Emigrants,
    /// Whom immigrants replace.
    pub replacement: Replacement,
    /// Whether emigrants stay at home as well.
    pub transfer: Transfer,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            count: 2,
            emigrants: Emigrants::Best,
            replacement: Replacement::WorstIfBetter,
            transfer: Transfer::Copy,
        }
    }
}

/// Who leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Emigrants {
    /// The fittest.
    Best,
    /// Winners of tournaments of two among those that have not been chosen yet.
    Tournament,
    /// A random individual.
    Random,
    /// The fittest, then always the one farthest from all that were chosen before.
    MostDiverse,
}

/// Whom immigrants replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least fit.
    Worst,
    /// The least fit, if the immigrant is better.
    WorstIfBetter,
    /// A random individual.
    Random,
    /// The most similar individual, if the immigrant is at least as good.
    MostSimilar,
}

/// Whether emigrants stay at home as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// Every neighbour gets a copy of every emigrant.
    Copy,
    /// Emigrants are dealt out among the neighbours, and the first immigrants take their places.
    Move,
}

/// The positions of the emigrants for each neighbour that gets any.
pub type Shares = Vec<(u32, Vec<u32>)>;

/// The emigrants of an island at the end of an epoch.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct Departure<G: Gene> {
    /// The emigrants, in the order in which they were chosen.
    pub emigrants: PackedPopulation<G>,
    /// The positions of the emigrants for each neighbour that gets any.
    pub shares: Shares,
    /// Opponents for other islands, which play against them and do not breed them.
    pub opponents: PackedPopulation<G>,
    /// The positions of the opponents for each neighbour that gets any.
    pub opponent_shares: Shares,
}

impl<G: Gene> Departure<G> {
    /// The positions of the emigrants that go to an island.
    pub fn share_of(&self, island: u32) -> &[u32] {
        share_of(&self.shares, island)
    }

    /// The positions of the opponents that go to an island.
    pub fn opponent_share_of(&self, island: u32) -> &[u32] {
        share_of(&self.opponent_shares, island)
    }
}

fn share_of(shares: &[(u32, Vec<u32>)], island: u32) -> &[u32] {
    shares.iter().find(|(to, _)| *to == island).map_or(&[], |(_, share)| share)
}

/// Chooses `count` different individuals to leave.
pub fn choose_emigrants<P: Problem>(
    problem: &P,
    population: &Population<P::Gene>,
    policy: &Policy,
    stream: &mut Stream,
) -> Vec<u32> {
    let count = (policy.count as usize).min(population.len());
    match policy.emigrants {
        Emigrants::Best => population.leaders(count),
        Emigrants::Tournament => by_tournament(population, count, stream),
        Emigrants::Random => {
            let mut order: Vec<u32> = (0..population.len() as u32).collect();
            stream.shuffle(&mut order);
            order.truncate(count);
            order
        }
        Emigrants::MostDiverse => most_diverse(problem, population, count),
    }
}

fn by_tournament<G: Gene>(population: &Population<G>, count: usize, stream: &mut Stream) -> Vec<u32> {
    let mut left: Vec<u32> = (0..population.len() as u32).collect();
    (0..count)
        .map(|_| {
            let (one, other) = (stream.below(left.len()), stream.below(left.len()));
            let first = population.rank(left[one], left[other]).is_le();
            left.swap_remove(if first { one } else { other })
        })
        .collect()
}

fn most_diverse<P: Problem>(problem: &P, population: &Population<P::Gene>, count: usize) -> Vec<u32> {
    let mut chosen = population.leaders(count.min(1));
    let mut nearest = vec![f64::INFINITY; population.len()];
    while chosen.len() < count {
        let last = *chosen.last().expect("the leader was chosen first") as usize;
        nearest[last] = f64::NEG_INFINITY;
        for (index, nearest) in nearest.iter_mut().enumerate() {
            *nearest = nearest.min(problem.distance(population.genome(index), population.genome(last)));
        }
        let farthest = (0..population.len())
            .reduce(|best, index| if nearest[index] > nearest[best] { index } else { best })
            .expect("the population is not empty");
        chosen.push(farthest as u32);
    }
    chosen
}

/// Deals `count` emigrants out to the neighbours.
pub fn deal(count: usize, neighbours: &[u32], transfer: Transfer) -> Vec<(u32, Vec<u32>)> {
    let everybody = || (0..count as u32).collect();
    let turn = |at: usize| (at as u32..count as u32).step_by(neighbours.len()).collect();
    neighbours
        .iter()
        .enumerate()
        .map(|(at, &to)| (to, if transfer == Transfer::Copy { everybody() } else { turn(at) }))
        .filter(|(_, share): &(u32, Vec<u32>)| !share.is_empty())
        .collect()
}

/// Immigrants from one island, unpacked and judged.
pub struct Immigrants<G: Gene> {
    /// The island that they come from.
    pub from: u32,
    /// The epoch at whose end they left.
    pub epoch: u64,
    /// The individuals, by their rank at home.
    pub individuals: Population<G>,
}

/// Admits immigrants, island by island, each in order; `vacant` lists the places of individuals that moved away.
pub fn settle<P: Problem>(
    problem: &P,
    algorithm: &Algorithm,
    policy: &Policy,
    population: &mut Population<P::Gene>,
    vacant: &[u32],
    immigrants: &[Immigrants<P::Gene>],
    stream: &mut Stream,
) -> Vec<Arrival> {
    let best_before = population.best().map_or(f64::NEG_INFINITY, |best| population.fitness()[best]);
    let mut places = Places::new(population, vacant);
    immigrants
        .iter()
        .map(|group| {
            let taken = if let Algorithm::MapElites(archive) = algorithm {
                archive.enter(&problem.axes(), population, &group.individuals)
            } else {
                let step = algorithm.default_step();
                (0..group.individuals.len())
                    .map(|index| {
                        let place = places.for_one(problem, policy, population, group, index, stream);
                        place.inspect(|&at| population.copy(at, &group.individuals, index, step)).is_some()
                    })
                    .collect()
            };
            let fitness = group.individuals.fitness();
            Arrival {
                from: group.from,
                epoch: group.epoch,
                offered: taken.len() as u32,
                accepted: taken.iter().filter(|taken| **taken).count() as u32,
                better_than_best: fitness.iter().filter(|fitness| **fitness > best_before).count() as u32,
            }
        })
        .collect()
}

/// The places that immigrants may take.
struct Places {
    /// Left by those who moved away, to be taken first.
    vacant: Vec<u32>,
    /// All individuals, best first; places are taken from the end.
    ranked: Vec<u32>,
    taken: Vec<bool>,
}

impl Places {
    fn new<G: Gene>(population: &Population<G>, vacant: &[u32]) -> Self {
        Self {
            vacant: vacant.iter().rev().copied().collect(),
            ranked: population.leaders(population.len()),
            taken: vec![false; population.len()],
        }
    }

    /// The place of one immigrant, if it gets any.
    fn for_one<P: Problem>(
        &mut self,
        problem: &P,
        policy: &Policy,
        population: &Population<P::Gene>,
        group: &Immigrants<P::Gene>,
        index: usize,
        stream: &mut Stream,
    ) -> Option<usize> {
        let newcomer = group.individuals.fitness()[index];
        let at = match self.vacant.pop() {
            Some(place) => place as usize,
            None => match policy.replacement {
                Replacement::Worst => self.worst()?,
                Replacement::WorstIfBetter => {
                    let worst = self.worst()?;
                    if newcomer <= population.fitness()[worst] {
                        return None;
                    }
                    worst
                }
                Replacement::Random => self.any(stream)?,
                Replacement::MostSimilar => {
                    let genome = group.individuals.genome(index);
                    let similar = self.most_similar(problem, population, genome)?;
                    if newcomer < population.fitness()[similar] {
                        return None;
                    }
                    similar
                }
            },
        };
        self.taken[at] = true;
        Some(at)
    }

    fn worst(&mut self) -> Option<usize> {
        while self.ranked.last().is_some_and(|&last| self.taken[last as usize]) {
            self.ranked.pop();
        }
        self.ranked.last().map(|&last| last as usize)
    }

    fn any(&self, stream: &mut Stream) -> Option<usize> {
        let free: Vec<usize> = (0..self.taken.len()).filter(|&at| !self.taken[at]).collect();
        if free.is_empty() { None } else { Some(free[stream.below(free.len())]) }
    }

    fn most_similar<P: Problem>(
        &self,
        problem: &P,
        population: &Population<P::Gene>,
        genome: &[P::Gene],
    ) -> Option<usize> {
        (0..self.taken.len())
            .filter(|&at| !self.taken[at])
            .map(|at| (problem.distance(population.genome(at), genome), at))
            .reduce(|best, other| if other.0 < best.0 { other } else { best })
            .map(|(_, at)| at)
    }
}
