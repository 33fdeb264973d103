//! One island: its population, and the steps of a generation.

use crate::algorithm::cma::Adaptation;
use crate::algorithm::{Algorithm, Coming, Spare, Tally};
use crate::gene::Gene;
use crate::migration::{self, Departure, Immigrants, Policy, Shares, Transfer};
use crate::population::{MisfitError, PackedPopulation, Population};
use crate::problem::{Founder, Judging, Problem};
use crate::random::{Key, Purpose};
use crate::statistics::{Arrival, GenerationRow};
use crate::topology::Edge;
use bincode::{Decode, Encode};
use codec::Standing;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What all islands of a run have in common, and what each has of its own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The run's seed.
    pub seed: u64,
    /// Each island's own way.
    pub islands: Vec<IslandSetting>,
    /// Who sends migrants to whom.
    pub edges: Vec<Edge>,
    /// Who sends opponents to whom: migrants of a second kind, which are played against and never bred.
    pub opponents: Vec<Edge>,
}

/// How one island evolves and migrates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IslandSetting {
    /// How it evolves.
    pub algorithm: Algorithm,
    /// How it migrates.
    pub policy: Policy,
    /// Whether its individuals are judged by the opponents of other islands alone, once there are any.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exploits: bool,
}

impl Setting {
    /// The neighbours that an island sends migrants to at the end of an epoch.
    pub fn receivers(&self, island: u32, epoch: u64) -> Vec<u32> {
        self.ends(&self.edges, island, epoch)
    }

    /// The neighbours that an island sends opponents to at the end of an epoch.
    pub fn opponent_receivers(&self, island: u32, epoch: u64) -> Vec<u32> {
        self.ends(&self.opponents, island, epoch)
    }

    fn ends(&self, edges: &[Edge], island: u32, epoch: u64) -> Vec<u32> {
        let carrying = edges.iter().filter(|edge| edge.from == island && edge.carries(self.seed, epoch));
        carrying.map(|edge| edge.to).collect()
    }

    /// The islands that may send migrants or opponents to an island, in ascending order.
    pub fn senders(&self, island: u32) -> Vec<u32> {
        let arriving = self.all_edges().filter(|edge| edge.to == island);
        arriving.map(|edge| edge.from).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// How many islands may send opponents to an island.
    pub fn opponents_senders(&self, island: u32) -> usize {
        self.opponents.iter().filter(|edge| edge.to == island).count()
    }

    /// The islands that an island may send migrants or opponents to, in ascending order.
    pub fn neighbours(&self, island: u32) -> Vec<u32> {
        let leaving = self.all_edges().filter(|edge| edge.from == island);
        leaving.map(|edge| edge.to).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn all_edges(&self) -> impl Iterator<Item = &Edge> {
        self.edges.iter().chain(&self.opponents)
    }
}

/// The best individual an island has seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Champion<G: Gene> {
    /// Its genes.
    pub genome: Vec<G>,
    /// Its fitness.
    pub fitness: f64,
    /// The generation in which it first appeared.
    pub generation: u64,
}

/// The most bytes that an island remembers beside its individuals.
pub const MAX_PRIVATE: usize = 64 << 20;

/// All that an island remembers between two generations.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub struct IslandState<G: Gene> {
    /// Where it stands. It comes first, so that it can be read without the rest ([`Standing::of_state`]), and is the
    /// only copy of these numbers.
    pub standing: Standing,
    /// How many evaluations gave no number.
    pub unjudgeable: u64,
    /// Its individuals, and behind them the former champions of its hall of fame.
    pub population: PackedPopulation<G>,
    /// The generation in which the best it has seen first appeared, and its genes.
    pub champion: (u64, Vec<G>),
    /// The places of those who moved away, until immigrants take them.
    pub departed: Vec<u32>,
    /// The opponents that arrived last.
    pub opponents: PackedPopulation<G>,
    /// What its algorithm remembers beside the population ([`Algorithm::private_bytes`]), and behind that what its problem
    /// remembers of learning; at most [`MAX_PRIVATE`] bytes.
    pub private: Vec<u8>,
}

impl<G: Gene> IslandState<G> {
    /// The best the island has seen.
    pub fn champion(self) -> Champion<G> {
        let (generation, genome) = self.champion;
        Champion { genome, fitness: self.standing.best, generation }
    }
}

/// Who stands by when individuals are judged: the former champions of the island, and behind them those of others; or those
/// of others alone.
fn past<'a, G: Gene>(
    hall: &'a Population<G>,
    opponents: &'a Population<G>,
    exploits: bool,
) -> Cow<'a, Population<G>> {
    if exploits {
        return Cow::Borrowed(opponents);
    }
    let mut past = Cow::Borrowed(hall);
    if !opponents.is_empty() {
        past.to_mut().append(opponents);
    }
    past
}

/// How many individuals of a state are residents; those behind them are in the hall of fame.
pub(crate) fn residents<P: Problem>(problem: &P, algorithm: &Algorithm, count: usize) -> usize {
    if problem.hall() > 0 { count.min(algorithm.founders() as usize) } else { count }
}

/// An island at work.
pub struct Island<'a, P: Problem> {
    problem: &'a P,
    setting: &'a Setting,
    number: u32,
    generation: u64,
    tally: Tally,
    population: Population<P::Gene>,
    champion: Champion<P::Gene>,
    /// Former champions, the oldest first.
    hall: Population<P::Gene>,
    departed: Vec<u32>,
    opponents: Population<P::Gene>,
    /// What its problem remembers of learning.
    private: Vec<u8>,
    /// What its algorithm remembers, if it adapts the distribution of its children.
    adaptation: Option<Adaptation>,
    spare: Spare<P>,
}

impl<'a, P: Problem> Island<'a, P> {
    /// A new island with its founding population.
    pub fn found(problem: &'a P, setting: &'a Setting, number: u32) -> Self {
        let algorithm = &setting.islands[number as usize].algorithm;
        let (shape, axes) = (problem.shape(), problem.axes());
        let mut population = match algorithm {
            Algorithm::Es(_) => Population::with_steps(shape, axes.len()),
            _ => Population::new(shape, axes.len()),
        };
        let key = Key::new(setting.seed, number, 0);
        population.resize(algorithm.founders() as usize);
        for index in 0..population.len() {
            let (genome, steps) = population.genome_and_steps_mut(index);
            let founder = Founder { index, count: algorithm.founders() as usize };
            problem.found(founder, genome, &mut key.stream(index, Purpose::Founding));
            if let Some(steps) = steps {
                steps.fill(algorithm.default_step());
            }
        }
        let mut tally = Tally::default();
        let everybody = 0..population.len();
        let mut private = vec![];
        tally.judge(problem, &mut population, Judging::new(everybody, key), Some(&mut private));
        if let Algorithm::MapElites(archive) = algorithm {
            population = archive.settle(&axes, &population);
        }
        let spare = Spare::new(&population);
        let champion = Champion { genome: vec![], fitness: f64::NEG_INFINITY, generation: 0 };
        let (hall, departed) = (Population::empty_like(&population), vec![]);
        let opponents = Population::empty_like(&population);
        let adaptation = algorithm.adapting().map(|(cma, model)| Adaptation::new(model, cma, shape.length));
        let mut island = Self {
            problem,
            setting,
            number,
            generation: 0,
            tally,
            population,
            champion,
            hall,
            departed,
            opponents,
            private,
            adaptation,
            spare,
        };
        island.crown();
        island
    }

    /// The island as it was left.
    pub fn resume(
        problem: &'a P,
        setting: &'a Setting,
        number: u32,
        state: IslandState<P::Gene>,
    ) -> Result<Self, MisfitError> {
        let (shape, axes) = (problem.shape(), problem.axes().len());
        let mut population = Population::unpack(state.population, shape, axes)?;
        let opponents = Population::unpack(state.opponents, shape, axes)?;
        let algorithm = &setting.islands[number as usize].algorithm;
        let length = problem.shape().length;
        let expected = usize::from(matches!(algorithm, Algorithm::Es(_)));
        if usize::from(population.has_steps()) != expected {
            let (what, found) = ("sets of step sizes", usize::from(population.has_steps()));
            return Err(MisfitError::Count { what, expected, found });
        }
        let most =
            (problem.memory_bytes() + algorithm.private_bytes(length)).min(MAX_PRIVATE as u64) as usize;
        let misfit = MisfitError::Count {
            what: "bytes of what it has learnt",
            expected: most,
            found: state.private.len(),
        };
        let mut private = state.private;
        let own = (algorithm.private_bytes(length) as usize).min(private.len());
        let learnt = private.split_off(own);
        let adaptation = match algorithm.adapting() {
            None => None,
            Some((cma, model)) => match Adaptation::read(model, cma, length, &private) {
                None => return Err(misfit),
                read => read,
            },
        };
        if own + learnt.len() > most || !problem.is_memory(&learnt) {
            return Err(misfit);
        }
        let residents = residents(problem, algorithm, population.len());
        let hall = population.split_off(residents);
        let everybody = 0..population.len() as u32;
        if population.is_empty() || !state.departed.iter().all(|place| everybody.contains(place)) {
            return Err(MisfitError::Count { what: "individuals", expected: 1, found: population.len() });
        }
        let spare = Spare::new(&population);
        Ok(Self {
            problem,
            setting,
            number,
            generation: state.standing.generation,
            tally: Tally { evaluations: state.standing.evaluations, unjudgeable: state.unjudgeable },
            population,
            champion: Champion {
                genome: state.champion.1,
                fitness: state.standing.best,
                generation: state.champion.0,
            },
            hall,
            departed: state.departed,
            opponents,
            private: learnt,
            adaptation,
            spare,
        })
    }

    /// All that has to be remembered.
    pub fn state(&self) -> IslandState<P::Gene> {
        IslandState {
            standing: self.standing(),
            unjudgeable: self.tally.unjudgeable,
            population: self.with_hall().pack(),
            champion: (self.champion.generation, self.champion.genome.clone()),
            departed: self.departed.clone(),
            opponents: self.opponents.pack(),
            private: self.private_state(),
        }
    }

    /// What its algorithm and its problem remember beside the individuals.
    pub(crate) fn private_state(&self) -> Vec<u8> {
        let mut private = vec![];
        if let Some(adaptation) = &self.adaptation {
            adaptation.write(&mut private);
        }
        private.extend(&self.private);
        private
    }

    /// The places of those who have left at the end of its last epoch, and are no longer here.
    pub(crate) fn departed(&self) -> &[u32] {
        &self.departed
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        let (generation, evaluations) = (self.generation, self.tally.evaluations);
        Standing { generation, evaluations, best: self.champion.fitness }
    }

    /// What its problem remembers of learning beside the population.
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// The opponents that arrived last.
    pub fn opponents(&self) -> &Population<P::Gene> {
        &self.opponents
    }

    /// Takes opponents, in the order of the islands they come from, in place of those it had. If none arrive, those
    /// it had stay.
    pub fn meet(&mut self, opponents: &[Immigrants<P::Gene>]) {
        if let Some(arrived) = self.gather(opponents) {
            self.opponents = arrived;
        }
    }

    /// The opponents that arrive, in the order of the islands they come from; nothing if none do.
    pub(crate) fn gather(&self, opponents: &[Immigrants<P::Gene>]) -> Option<Population<P::Gene>> {
        if opponents.iter().all(|group| group.individuals.is_empty()) {
            return None;
        }
        let mut arrived = Population::empty_like(&self.opponents);
        let step = self.own().algorithm.default_step();
        for group in opponents {
            for index in 0..group.individuals.len() {
                arrived.push_copy(&group.individuals, index, step);
            }
        }
        Some(arrived)
    }

    /// Whether its individuals are judged by opponents of other islands alone.
    fn exploits(&self) -> bool {
        self.own().exploits && !self.opponents.is_empty()
    }

    fn with_hall(&self) -> Cow<'_, Population<P::Gene>> {
        let mut everybody = Cow::Borrowed(&self.population);
        if !self.hall.is_empty() {
            everybody.to_mut().append(&self.hall);
        }
        everybody
    }

    /// Its own way of evolving and migrating.
    fn own(&self) -> &'a IslandSetting {
        &self.setting.islands[self.number as usize]
    }

    /// The key of its present generation.
    fn key(&self) -> Key {
        Key::new(self.setting.seed, self.number, self.generation)
    }

    /// One generation.
    pub fn generation(&mut self) {
        self.generation += 1;
        self.evolve();
        self.crown();
    }

    fn evolve(&mut self) {
        let (key, own) = (self.key(), self.own());
        let exploits = self.exploits();
        let Self { problem, generation, tally, population, spare, private, adaptation, .. } = self;
        let hall = &past(&self.hall, &self.opponents, exploits);
        let generation = *generation;
        let coming = Coming { problem: *problem, generation, key, hall, exploits, tally, memory: private };
        match &own.algorithm {
            Algorithm::Ga(ga) => ga.generation(coming, population, spare),
            Algorithm::Es(es) => es.generation(coming, population, spare),
            Algorithm::Crowding(crowding) => crowding.generation(coming, population, spare),
            Algorithm::MapElites(archive) => archive.generation(coming, population, spare),
            Algorithm::SepCma(cma) | Algorithm::LmMa(cma) => {
                let adaptation = adaptation.as_mut().expect("islands that adapt remember how far they came");
                cma.generation(coming, population, spare, adaptation);
            }
        }
    }

    /// Remembers the best individual ever seen. Where fitness is relative, that of another generation says nothing
    /// about this one, and the champion is the best of the present.
    fn crown(&mut self) {
        let fitness = self.population.best_fitness();
        if fitness > self.champion.fitness || self.champion.genome.is_empty() || !self.problem.absolute() {
            self.crown_one(self.population.best().expect("an island is never empty"));
        }
    }

    fn crown_one(&mut self, best: usize) {
        self.champion.fitness = self.population.fitness()[best];
        self.champion.generation = self.generation;
        self.champion.genome.clear();
        self.champion.genome.extend_from_slice(self.population.genome(best));
    }

    /// The end of an epoch: its champion is confirmed, and enters the hall of fame.
    pub fn conclude(&mut self) {
        // Between the key of this generation and that of the judgement of immigrants.
        let key = Key::new(self.setting.seed, self.number, self.generation | 1 << 62);
        let judging = Judging::new(0..self.population.len(), key);
        let confirmed = self.problem.confirm(&self.population, &judging);
        if let Some((best, evaluations)) = confirmed {
            self.tally.evaluations = self.tally.evaluations.saturating_add(evaluations);
            self.crown_one(best);
        }
        if self.problem.hall() > 0 {
            let champion = confirmed.map(|(best, _)| best).or_else(|| self.population.best());
            self.hall.push_copy(&self.population, champion.expect("an island is never empty"), 0.0);
            let too_many = self.hall.len().saturating_sub(self.problem.hall());
            self.hall = self.hall.split_off(too_many);
        }
    }

    /// Lets immigrants in, in the order of the islands they come from. Where fitness is relative they are judged
    /// again, together with the population; no individual learns from that.
    pub fn receive(&mut self, mut immigrants: Vec<Immigrants<P::Gene>>) -> Vec<Arrival> {
        if !self.problem.absolute() && !immigrants.is_empty() {
            self.judge_anew(&mut immigrants);
        }
        let mut stream = self.key().stream(0, Purpose::Immigration);
        let departed = std::mem::take(&mut self.departed);
        let IslandSetting { algorithm, policy, .. } = self.own();
        let (problem, population) = (self.problem, &mut self.population);
        let arrivals =
            migration::settle(problem, algorithm, policy, population, &departed, &immigrants, &mut stream);
        self.crown();
        arrivals
    }

    fn judge_anew(&mut self, immigrants: &mut [Immigrants<P::Gene>]) {
        let residents = self.population.len();
        let step = self.own().algorithm.default_step();
        for group in immigrants.iter() {
            for index in 0..group.individuals.len() {
                self.population.push_copy(&group.individuals, index, step);
            }
        }
        // A generation is judged with its own key; this judgement stands between two of them.
        let key = Key::new(self.setting.seed, self.number, self.generation | 1 << 63);
        let everybody = 0..self.population.len();
        let exploits = self.exploits();
        let judging = Judging::new(everybody, key).exploiting(exploits);
        let past = past(&self.hall, &self.opponents, exploits);
        self.tally.judge_beside(&past, self.problem, &mut self.population, judging, None);
        let mut judged = residents;
        for group in immigrants {
            for index in 0..group.individuals.len() {
                group.individuals.fitness_mut()[index] = self.population.fitness()[judged];
                judged += 1;
            }
        }
        self.population.resize(residents);
    }

    /// Chooses who leaves at the end of an epoch.
    pub fn depart(&mut self, epoch: u64) -> Departure<P::Gene> {
        let policy = &self.own().policy;
        let receivers = self.setting.receivers(self.number, epoch);
        let mut emigrants = Population::empty_like(&self.population);
        let (opponents, opponent_shares) = self.leaving_opponents(epoch);
        if receivers.is_empty() {
            return Departure { emigrants: emigrants.pack(), shares: vec![], opponents, opponent_shares };
        }
        let mut stream = self.key().stream(0, Purpose::Emigration);
        let chosen = migration::choose_emigrants(self.problem, &self.population, policy, &mut stream);
        for &index in &chosen {
            emigrants.push_copy(&self.population, index as usize, 0.0);
        }
        let shares = migration::deal(chosen.len(), &receivers, policy.transfer);
        if policy.transfer == Transfer::Move {
            self.departed = chosen;
        }
        Departure { emigrants: emigrants.pack(), shares, opponents, opponent_shares }
    }

    /// Who has left at the end of an epoch, chosen again from the state that it left behind.
    pub(crate) fn depart_again(&mut self, epoch: u64) -> Departure<P::Gene> {
        self.departed.clear();
        self.depart(epoch)
    }

    /// How many former champions it has.
    pub(crate) fn hall_len(&self) -> usize {
        self.hall.len()
    }

    /// The opponents that leave at the end of an epoch, copies for each that gets any: the hall of fame, or the champion
    /// where there is none.
    fn leaving_opponents(&self, epoch: u64) -> (PackedPopulation<P::Gene>, Shares) {
        let receivers = self.setting.opponent_receivers(self.number, epoch);
        let mut opponents = Population::empty_like(&self.population);
        if receivers.is_empty() {
            return (opponents.pack(), vec![]);
        }
        if self.hall.is_empty() {
            opponents.resize(1);
            opponents.genome_mut(0).copy_from_slice(&self.champion.genome);
            opponents.fitness_mut()[0] = self.champion.fitness;
        } else {
            opponents.append(&self.hall);
        }
        let shares = migration::deal(opponents.len(), &receivers, Transfer::Copy);
        (opponents.pack(), shares)
    }

    /// Its statistics now.
    pub fn row(&self) -> GenerationRow {
        GenerationRow::new(&self.population, self.generation, self.tally.evaluations)
    }

    /// The generations it has lived through.
    pub fn age(&self) -> u64 {
        self.generation
    }

    /// The evaluations it has spent.
    pub fn evaluations(&self) -> u64 {
        self.tally.evaluations
    }

    /// The evaluations that gave no number.
    pub fn unjudgeable(&self) -> u64 {
        self.tally.unjudgeable
    }

    /// Its individuals.
    pub fn population(&self) -> &Population<P::Gene> {
        &self.population
    }

    /// The best it has seen.
    pub fn champion(&self) -> &Champion<P::Gene> {
        &self.champion
    }
}
