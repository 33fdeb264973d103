//! The problem itself: fitness is what an individual scores against the others.

use super::arena::Arena;
use super::learning::{self, KING, Lessons};
use super::memory::Memory;
use super::rivals::Rivals;
use super::schedule::{Pairing, Schedule, Side};
use super::{Checkers, Colours, Distance, Learners, Learning};
use checkers::{DrawReason, Labels, Lesson, Moments, Network, Outcome, Position, Race};
use evolution::activity::Activity;
use evolution::gene::{Gene, Interval, Shape};
use evolution::population::{Cost, Population};
use evolution::problem::{Founder, Judging, Problem};
use evolution::random::Stream;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

#[cfg(test)]
mod draws;
#[cfg(test)]
mod endgames;
#[cfg(test)]
mod ranking;

/// Weights stay between minus this and this: far from where they evolve to, and from where numbers get coarse.
const WEIGHT_LIMIT: f64 = 64.0;
/// Positions on which players are compared by their behaviour.
const OPINIONS: usize = 64;
/// To find them takes many games, and few experiments need them.
static POSITIONS: LazyLock<Vec<Position>> = LazyLock::new(|| checkers::sample_positions(0, OPINIONS));

/// The streams of what individuals learn from: beyond those of all individuals and of luck.
const LEARNING: usize = 1 << 25;

/// Checkers as a problem to evolve.
pub(crate) struct SelfPlay {
    keys: Checkers,
    arena: Arena,
}

impl SelfPlay {
    pub(super) fn new(keys: Checkers) -> Self {
        Self { keys, arena: Arena::default() }
    }

    fn network(&self, genome: &[f32]) -> Network {
        Network::new(self.keys.architecture(), genome)
            .expect("genomes have the network's shape and stay in its limits")
    }

    fn networks(&self, population: &Population<f32>) -> Vec<Arc<Network>> {
        let make = |index| Arc::new(self.network(population.genome(index)));
        (0..population.len()).into_par_iter().map(make).collect()
    }

    /// Plays these games. They are spread over all cores one by one, and gathered in the order in which they were drawn.
    fn play(
        &self,
        networks: &[Arc<Network>],
        pairings: &[Pairing],
        labels: Option<&Labels>,
    ) -> (Vec<Outcome>, Vec<Vec<Lesson>>) {
        let activity = Activity::current();
        let play = |pairing: &Pairing| {
            if activity.as_ref().is_some_and(Activity::is_abandoned) {
                return (Outcome::Draw(DrawReason::TooLong), vec![]);
            }
            let played = self.arena.play(&self.keys, pairing, networks, labels);
            if let Some(activity) = &activity {
                activity.add(1);
            }
            played
        };
        pairings.par_iter().with_max_len(1).map(play).unzip()
    }

    /// What each individual scores in these games, added up in their order.
    fn scores(&self, individuals: usize, pairings: &[Pairing], outcomes: Vec<Outcome>) -> Vec<f64> {
        let mut scores = vec![0.0; individuals];
        for (pairing, outcome) in pairings.iter().zip(outcomes) {
            let sides = [checkers::Side::Black, checkers::Side::White];
            for (scorer, side) in pairing.scores.into_iter().zip(sides) {
                if let Some(scorer) = scorer {
                    scores[scorer] += self.points(outcome.points(side));
                }
            }
        }
        scores
    }

    /// Plays the games of a judgement and scores them; returns how many they were, with the networks that played and,
    /// where there are labels, their lessons. Rivals decide who is met, and learn how that went.
    fn tournament(
        &self,
        population: &mut Population<f32>,
        judging: &Judging,
        rivals: Option<&mut Rivals>,
        labels: Option<&Labels>,
    ) -> (u64, Vec<Arc<Network>>, Vec<Vec<Lesson>>) {
        // A worth that nothing moves stays what it was, whatever operators make of its gene.
        let is_fixed = self.keys.weights.king_step == 0.0 && !self.keys.learning.king;
        let fixed = is_fixed.then_some(self.keys.weights.king as f32);
        for index in judging.fresh.clone() {
            let king = population.genome_mut(index).last_mut().expect("a king's worth is the last gene");
            *king = fixed.unwrap_or(*king).clamp(KING.0, KING.1);
        }
        let weights = rivals.as_ref().map(|rivals| rivals.weights(judging.hall.len()));
        let pairings = Schedule::draw(&self.keys, judging, weights.as_deref());
        let networks = self.networks(population);
        let (outcomes, games) = self.play(&networks, &pairings, labels);
        if let Some(rivals) = rivals {
            for (pairing, outcome) in pairings.iter().zip(&outcomes) {
                let sides = [(pairing.black, checkers::Side::White), (pairing.white, checkers::Side::Black)];
                for (player, other) in sides {
                    if let Side::Network(place) = player
                        && judging.hall.contains(&place)
                    {
                        let lost = f64::from(1 - outcome.points(other)) / 2.0;
                        rivals.add(place - judging.hall.start, lost);
                    }
                }
            }
        }
        let scores = self.scores(population.len(), &pairings, outcomes);
        for index in judging.fresh.clone() {
            population.fitness_mut()[index] = scores[index];
        }
        (pairings.len() as u64, networks, games)
    }

    /// Lets all individuals learn, each from its own choice of the lessons.
    fn teach_each(
        &self,
        population: &mut Population<f32>,
        networks: &[Arc<Network>],
        (lessons, rounds): (Lessons<'_>, u64),
        judging: &Judging,
    ) {
        let teach = |one: usize| {
            let mut stream = judging.stream(LEARNING + one);
            self.keys.learning.teach(&networks[one], lessons, (rounds, None), &mut stream)
        };
        let learnt: Vec<_> = judging.fresh.clone().into_par_iter().map(teach).collect();
        for (one, learnt) in judging.fresh.clone().zip(learnt) {
            if let Some((weights, _)) = learnt {
                population.genome_mut(one).copy_from_slice(&weights);
            }
        }
    }

    /// Lets the mean of all learn, and moves all individuals as it does. The first becomes what the mean has become, and ranks
    /// first. Returns the moments.
    fn teach_mean(
        &self,
        population: &mut Population<f32>,
        lessons: Lessons<'_>,
        memory: &Memory,
        judging: &Judging,
    ) -> Option<Moments> {
        let mean = mean(population, judging.fresh.clone());
        let taught = (memory.rounds, memory.moments.clone());
        let (weights, moments) =
            self.keys.learning.teach(&self.network(&mean), lessons, taught, &mut judging.stream(LEARNING))?;
        let limit = WEIGHT_LIMIT as f32;
        for one in judging.fresh.clone() {
            let genome = population.genome_mut(one);
            for ((gene, before), after) in genome.iter_mut().zip(&mean).zip(&weights) {
                *gene = (*gene + (after - before)).clamp(-limit, limit);
            }
        }
        let first = judging.fresh.start;
        population.genome_mut(first).copy_from_slice(&weights);
        let best = population.fitness()[judging.fresh.clone()].iter().copied().fold(f64::MIN, f64::max);
        population.fitness_mut()[first] = best;
        Some(moments)
    }

    /// The weights whose moments are remembered.
    fn moments(&self) -> Option<usize> {
        self.keys.learning.moments(self.keys.architecture().weight_count())
    }

    /// Lets those learn who learn, from the lessons of these games, and appends what the island remembers of that.
    fn learn(
        &self,
        population: &mut Population<f32>,
        judging: &Judging,
        (networks, games): (&[Arc<Network>], Vec<Vec<Lesson>>),
        mut remembered: Memory,
        after: &mut Vec<u8>,
    ) {
        let learning = &self.keys.learning;
        let new = learning::collect(games);
        remembered.add(&new, learning.memory as usize);
        let lessons = if learning.memory > 0 { Lessons::Remembered(&remembered) } else { Lessons::New(&new) };
        match learning.learners {
            Learners::Each => {
                self.teach_each(population, networks, (lessons, remembered.rounds), judging);
            }
            Learners::Mean => {
                if let Some(moments) = self.teach_mean(population, lessons, &remembered, judging) {
                    remembered.moments = Some(moments);
                }
            }
        }
        remembered.rounds = remembered.rounds.saturating_add(1);
        if self.learnt_bytes() > 0 {
            after.extend(remembered.encode());
        }
    }

    /// The most bytes that an island remembers of learning.
    fn learnt_bytes(&self) -> u64 {
        let Learning { positions, memory, half_life, .. } = self.keys.learning;
        let needed = memory > 0 || half_life > 0 || self.moments().is_some();
        if positions > 0 && needed { Memory::bytes(self.moments(), memory) } else { 0 }
    }

    /// What an island remembers of former champions, and behind it what it remembers of learning, if the bytes hold that.
    fn rivals<'a>(&self, bytes: &'a [u8]) -> Option<(Rivals, &'a [u8])> {
        if self.keys.meets_the_hardest() { Rivals::decode(bytes) } else { Some((Rivals::default(), bytes)) }
    }

    /// The best of some contenders by a race, of equals the one that was fitter before; with the number of games.
    fn race(&self, population: &Population<f32>, contenders: &[u32], judging: &Judging) -> (usize, u64) {
        let networks = self.networks(population);
        let (mut race, mut games) = (Race::new(contenders.len()), 0);
        for round in 0..self.keys.champion.pairs {
            let left: Vec<u32> = race.left().iter().map(|&one| contenders[one]).collect();
            if left.len() < 2 {
                break;
            }
            let pairings = Schedule::race_round(&self.keys, &left, judging, round);
            let (outcomes, _) = self.play(&networks, &pairings, None);
            let scores = self.scores(population.len(), &pairings, outcomes);
            // A mean over games: fewer are left from round to round.
            let share = 1.0 / (2 * (left.len() - 1)) as f64;
            let scores: Vec<f64> = left.iter().map(|&one| scores[one as usize] * share).collect();
            race.add(&scores);
            games += pairings.len() as u64;
        }
        (contenders[race.best()] as usize, games)
    }

    fn points(&self, result: i32) -> f64 {
        let points = &self.keys.points;
        match result {
            1 => points.win,
            0 => points.draw,
            _ => points.loss,
        }
    }
}

/// The mean of some individuals, added up in their order.
fn mean(population: &Population<f32>, individuals: Range<usize>) -> Vec<f32> {
    let mut sums = vec![0.0_f64; population.shape().length];
    let share = 1.0 / individuals.len() as f64;
    for one in individuals {
        for (sum, gene) in sums.iter_mut().zip(population.genome(one)) {
            *sum += f64::from(*gene);
        }
    }
    sums.into_iter().map(|sum| (sum * share) as f32).collect()
}

impl Problem for SelfPlay {
    type Gene = f32;

    fn shape(&self) -> Shape<f32> {
        let domain = Interval { low: -WEIGHT_LIMIT, high: WEIGHT_LIMIT };
        Shape { length: self.keys.architecture().weight_count(), domain }
    }

    fn judge(&self, population: &mut Population<f32>, judging: &Judging) -> u64 {
        self.tournament(population, judging, None, None).0
    }

    fn judge_and_learn(
        &self,
        population: &mut Population<f32>,
        judging: &Judging,
        memory: &mut Vec<u8>,
    ) -> u64 {
        let learning = &self.keys.learning;
        let (mut rivals, learnt) = self.rivals(memory).unwrap_or_default();
        rivals.stand_by(population, judging.hall.clone());
        let met = self.keys.meets_the_hardest().then_some(&mut rivals);
        let labels = (learning.positions > 0).then(|| learning.labels());
        let (count, networks, games) = self.tournament(population, judging, met, labels.as_ref());
        let mut after = vec![];
        if self.keys.meets_the_hardest() {
            rivals.encode(&mut after);
        }
        let is_abandoned = Activity::current().is_some_and(|activity| activity.is_abandoned());
        if learning.positions > 0 && !is_abandoned {
            let learnt =
                Memory::decode(learnt, self.moments()).unwrap_or_else(|| Memory::new(self.moments()));
            self.learn(population, judging, (&networks, games), learnt, &mut after);
        }
        *memory = after;
        count
    }

    fn memory_bytes(&self) -> u64 {
        let rivals = if self.keys.meets_the_hardest() { Rivals::BYTES } else { 0 };
        rivals + self.learnt_bytes()
    }

    fn is_memory(&self, memory: &[u8]) -> bool {
        let is_learnt = |learnt: &[u8]| {
            learnt.is_empty() || self.learnt_bytes() > 0 && Memory::decode(learnt, self.moments()).is_some()
        };
        self.rivals(memory).is_some_and(|(_, learnt)| is_learnt(learnt))
    }

    fn evaluations(&self) -> u64 {
        let Checkers { games, hall_of_fame, benchmark, colours, .. } = &self.keys;
        let encounters = u64::from(*games) + u64::from(hall_of_fame.games) + u64::from(benchmark.games);
        encounters * if *colours == Colours::Swapped { 2 } else { 1 }
    }

    fn needs_step(&self) -> bool {
        true
    }

    fn cost(&self) -> Cost {
        // Each ply takes about three times as long as the one before.
        let width = self.keys.architecture().shape.width() as u64;
        Cost { nanoseconds: 70_000 * width * 3_u64.pow(self.keys.depth.min(20)) }
    }

    fn found(&self, _founder: Founder, genome: &mut [f32], stream: &mut Stream) {
        let range = self.keys.weights.range;
        genome.fill_with(|| f32::random(Interval { low: -range, high: range }, stream));
        if let Some(king) = genome.last_mut() {
            *king = self.keys.weights.king as f32;
        }
    }

    fn inherit(&self, parent: &[f32], child: &mut [f32], stream: &mut Stream) {
        if let (Some(theirs), Some(king)) = (parent.last(), child.last_mut()) {
            let step = self.keys.weights.king_step as f32 * (stream.below(3) as f32 - 1.0);
            *king = (theirs + step).clamp(KING.0, KING.1);
        }
    }

    fn absolute(&self) -> bool {
        false
    }

    fn missing(&self) -> Option<String> {
        self.keys.missing()
    }

    fn hall(&self) -> usize {
        self.keys.hall_of_fame.size as usize
    }

    fn confirm(&self, population: &Population<f32>, judging: &Judging) -> Option<(usize, u64)> {
        let contenders = population.leaders((self.keys.champion.contenders as usize).min(population.len()));
        if contenders.len() < 2 {
            return None;
        }
        if self.keys.champion.race {
            return Some(self.race(population, &contenders, judging));
        }
        let pairings = Schedule::round_robin(&self.keys, &contenders, judging);
        let (outcomes, _) = self.play(&self.networks(population), &pairings, None);
        let scores = self.scores(population.len(), &pairings, outcomes);
        // Of equals the one that was fitter before.
        let best = contenders.into_iter().map(|one| one as usize);
        let best = best.reduce(|best, one| if scores[one] > scores[best] { one } else { best })?;
        Some((best, pairings.len() as u64))
    }

    fn distance(&self, one: &[f32], other: &[f32]) -> f64 {
        match self.keys.distance {
            Distance::Weights => f32::distance(one, other),
            Distance::Behaviour => {
                let behaviour = |genome| checkers::behaviour(&Arc::new(self.network(genome)), &POSITIONS);
                f32::distance(&behaviour(one), &behaviour(other))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        BookKey, Choice, Confirmation, Consult, Endgame, HallOfFame, NamedBook, Openings, Opponents,
        ShapeKey, Ties,
    };
    use super::*;
    use crate::ProblemSpec;
    use evolution::algorithm::{Algorithm, Crowding, Es, Mutation, MutationUnit, Rate};
    use evolution::epoch::{EpochOutcome, EpochTask, Evolver, run};
    use evolution::island::{IslandSetting, Setting};
    use evolution::migration::Policy;
    use evolution::random::Key;

    fn quick() -> Checkers {
        let mut keys = Checkers { depth: 1, games: 2, openings: Openings::Deck, ..Checkers::default() };
        keys.draw.moves = 30;
        keys
    }

    fn es(parents: u32) -> Algorithm {
        Algorithm::Es(Es { parents, offspring: parents, ..Es::default() })
    }

    fn evolver(keys: &Checkers, algorithm: Algorithm) -> Arc<dyn Evolver> {
        let own = IslandSetting { algorithm, policy: Policy::default(), exploits: false };
        let setting = Setting { seed: 5, islands: vec![own], edges: vec![], opponents: vec![] };
        ProblemSpec::Checkers(keys.clone()).evolver(setting).unwrap()
    }

    /// Epochs of two generations.
    fn epochs(evolver: &dyn Evolver, count: u64) -> EpochOutcome {
        let mut state = None;
        for epoch in 0.. {
            let task = EpochTask { island: 0, epoch, until: 2 * (epoch + 1), state, packets: vec![] };
            let outcome = run(evolver, &task).unwrap();
            if epoch + 1 == count {
                return outcome;
            }
            state = Some(outcome.state);
        }
        unreachable!("the loop has no end of its own")
    }

    #[test]
    fn threads_do_not_show() {
        let crowd = Crowding {
            population: 6,
            mutation: Mutation { rate: Rate::Constant(0.01), per: MutationUnit::Gene, step: Some(0.1) },
            ..Crowding::default()
        };
        for algorithm in [es(4), Algorithm::Crowding(crowd)] {
            let evolver = evolver(&quick(), algorithm);
            let digests = [1, 3].map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| epochs(&*evolver, 2).digest)
            });
            assert_eq!(digests[0], digests[1]);
        }
    }

    #[test]
    fn what_players_know_of_endings_counts_alike_everywhere() {
        let digest = |endgame: Endgame, threads: usize| {
            let evolver = evolver(&Checkers { endgame, ..quick() }, es(4));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| epochs(&*evolver, 2).digest)
        };
        let always = Endgame { pieces: 3, consult: Consult::Always, ..Endgame::default() };
        let known = digest(always, 1);
        assert_eq!(digest(always, 3), known);
        assert_ne!(digest(Endgame::default(), 1), known, "no game came to three pieces");
    }

    #[test]
    fn learning_is_one_digest_and_changes_weights() {
        let mut keys = quick();
        keys.learning.positions = 300;
        let digest = |keys: &Checkers, threads: usize| {
            let evolver = evolver(keys, es(4));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| epochs(&*evolver, 2).digest)
        };
        let learnt = digest(&keys, 1);
        assert_eq!(digest(&keys, 3), learnt);
        keys.learning.rate = 0.0;
        let idle = digest(&keys, 1);
        assert_ne!(idle, learnt);
        assert_eq!(idle, digest(&quick(), 2), "steps of no length are no learning");
    }

    /// The mean learns with everything that there is to it.
    fn mean_learner() -> Checkers {
        let mut keys = quick();
        keys.random_plies = 4;
        keys.draw.quiet = 20;
        keys.learning = Learning {
            positions: 600,
            learners: Learners::Mean,
            memory: 900,
            half_life: 3,
            discount: 0.99,
            quiet: 6,
            king: true,
            ..Learning::default()
        };
        keys
    }

    fn comma() -> Algorithm {
        let recombination = evolution::algorithm::Recombination::Intermediate;
        let survival = evolution::algorithm::Survival::Comma;
        Algorithm::Es(Es { parents: 2, offspring: 4, recombination, survival, ..Es::default() })
    }

    #[test]
    fn a_mean_that_learns_is_one_digest_however_it_is_computed() {
        let keys = mean_learner();
        let evolver = evolver(&keys, comma());
        let outcome = epochs(&*evolver, 3);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| epochs(&*evolver, 3)).digest, outcome.digest);
        // Left after each generation, and taken up from a checkpoint.
        let first = epochs(&*evolver, 2);
        let task = EpochTask { island: 0, epoch: 2, until: 6, state: Some(first.state), packets: vec![] };
        let mut under_way = evolver.begin(&task).unwrap();
        assert!(under_way.generation());
        let checkpoint = under_way.checkpoint().unwrap();
        evolver.check_checkpoint(&task, &checkpoint).unwrap();
        let mut resumed = evolver.resume(&task, &checkpoint).unwrap();
        assert!(resumed.generation() && !resumed.generation());
        let resumed = resumed.finish().unwrap();
        assert_eq!(resumed.digest, outcome.digest);
        evolver.check(&task, &resumed).unwrap();
    }

    #[test]
    fn a_race_crowns_the_best_with_fewer_games() {
        let mut keys = quick();
        keys.champion = Confirmation { contenders: 4, pairs: 40, race: true };
        let problem = keys.problem().unwrap();
        let (mut population, direct) = (Population::new(problem.shape(), 1), problem.shape().length - 2);
        population.resize(4);
        // Three that know nothing, and one that counts pieces.
        for index in 0..4 {
            population.genome_mut(index)[direct] = if index == 2 { 0.1 } else { 0.0 };
            population.genome_mut(index)[direct + 1] = 1.5;
            population.fitness_mut()[index] = 0.0;
        }
        let judging = Judging::new(0..4, Key::new(1, 2, 3));
        let (best, games) = problem.confirm(&population, &judging).unwrap();
        assert_eq!(best, 2);
        let all = 40 * 2 * 6;
        assert!((8 * 2 * 6..all).contains(&games), "{games} games of {all}");
        let fixed = Checkers { champion: Confirmation { race: false, ..keys.champion }, ..keys.clone() };
        assert_eq!(fixed.problem().unwrap().confirm(&population, &judging), Some((2, all)));
        assert_eq!(problem.confirm(&population, &judging), Some((best, games)));
    }

    #[test]
    fn networks_of_every_shape_evolve_and_learn() {
        let digests = [ShapeKey::Paper, ShapeKey::Wide, ShapeKey::Phases].map(|shape| {
            let keys = Checkers { shape, ..mean_learner() };
            let evolver = evolver(&keys, comma());
            let [one, three] = [1, 3].map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| epochs(&*evolver, 2))
            });
            assert_eq!(one.digest, three.digest, "{shape:?}");
            let spec = ProblemSpec::Checkers(keys.clone());
            for resident in evolver.residents(0, &one.state).unwrap() {
                let file = spec.player_file(&resident.genome).expect("it plays");
                let player = Network::from_player_file(&file).unwrap();
                assert_eq!(player.architecture(), keys.architecture());
            }
            one.digest
        });
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_travels_with_the_island() {
        let keys = mean_learner();
        let problem = keys.problem().unwrap();
        let weights = keys.architecture().weight_count();
        assert_eq!(problem.memory_bytes(), 8 + 16 + 8 * weights as u64 + 16 * 900);
        assert_eq!(quick().problem().unwrap().memory_bytes(), 0);
        assert_eq!(ProblemSpec::Checkers(keys.clone()).traits().unwrap().memory, problem.memory_bytes());
        let outcome = epochs(&*evolver(&keys, comma()), 2);
        let state: evolution::island::IslandState<f32> = codec::decode(&outcome.state).unwrap();
        assert_eq!(state.private.len() as u64, problem.memory_bytes(), "it is full by now");
        let memory = Memory::decode(&state.private, problem.moments()).unwrap();
        assert_eq!(memory.rounds, 5, "founders learn as well");
        let mut wrong = state;
        wrong.private.pop();
        let task = EpochTask { island: 0, epoch: 2, until: 6, state: None, packets: vec![] };
        let task = EpochTask { state: Some(codec::encode(&wrong).unwrap()), ..task };
        assert!(evolver(&keys, comma()).begin(&task).is_err(), "half a lesson");
    }

    #[test]
    fn every_key_of_learning_counts() {
        let digest = |change: fn(&mut Checkers)| {
            let mut keys = mean_learner();
            // Kings that move to and fro, until a limit ends that.
            keys.draw.moves = 100;
            (keys.draw.quiet, keys.learning.quiet) = (6, 2);
            change(&mut keys);
            epochs(&*evolver(&keys, comma()), 1).digest
        };
        let all = digest(|_| {});
        let changes = [
            |keys: &mut Checkers| keys.learning.learners = Learners::Each,
            |keys: &mut Checkers| keys.learning.memory = 0,
            |keys: &mut Checkers| keys.learning.half_life = 0,
            |keys: &mut Checkers| keys.learning.discount = 1.0,
            |keys: &mut Checkers| keys.learning.quiet = 0,
            |keys: &mut Checkers| keys.learning.king = false,
            |keys: &mut Checkers| keys.draw.quiet = 0,
            |keys: &mut Checkers| keys.random_plies = 0,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_ne!(all, digest(change), "change {number}");
        }
    }

    #[test]
    fn new_keys_change_games_and_old_ones_stay() {
        let digest = |change: fn(&mut Checkers)| {
            let mut keys = Checkers { depth: 2, history: false, ..quick() };
            change(&mut keys);
            keys.problem().unwrap();
            epochs(&*evolver(&keys, es(4)), 2).digest
        };
        let plain = digest(|_| {});
        assert_eq!(plain, digest(|keys| keys.ties = Ties::Order));
        for change in [
            |keys: &mut Checkers| keys.quiescence = false,
            |keys: &mut Checkers| {
                keys.openings = Openings::Start;
                keys.book = Some(BookKey::Named(NamedBook::Deck));
            },
        ] {
            assert_ne!(plain, digest(change));
        }
        let swapped = digest(|keys| keys.colours = Colours::Swapped);
        let sharp = digest(|keys| (keys.colours, keys.openings) = (Colours::Swapped, Openings::Sharp));
        assert_ne!(swapped, sharp);
        let bad = Checkers { book: Some(BookKey::Lines(vec!["11-15 1-2".to_owned()])), ..quick() };
        assert!(bad.problem().is_err());
        assert!(Checkers { adjudicate: 1, ..quick() }.problem().is_err());
        // Sharp starts favour one side: played once, they would reward the colour.
        let uneven = Checkers { openings: Openings::Sharp, ..quick() };
        assert_eq!(uneven.colours, Colours::First);
        let Err(refusal) = uneven.problem() else { panic!("uneven starts are played once") };
        assert!(refusal.to_string().contains("swapped"), "{refusal}");
        assert!(Checkers { colours: Colours::Swapped, ..uneven }.problem().is_ok());
    }

    /// A cell of a sweep may learn nothing, and stored runs have such keys.
    #[test]
    fn keys_that_do_nothing_are_read_all_the_same() {
        let learning = Learning { memory: 1000, ..Learning::default() };
        assert!(Checkers { learning, ..quick() }.problem().is_ok(), "nobody learns");
        let hall_of_fame = HallOfFame { size: 2, games: 0, choice: Choice::Hardest };
        assert!(Checkers { hall_of_fame, ..quick() }.problem().is_ok(), "nobody is met");
        let learning = Learning { positions: 10, ..learning };
        assert!(Checkers { learning, ..quick() }.problem().is_ok());
    }

    #[test]
    fn kings_stay_between_one_and_three_and_move_by_steps() {
        let mut keys = quick();
        keys.weights.king = 2.9;
        let evolver = evolver(&keys, es(6));
        let residents = evolver.residents(0, &epochs(&*evolver, 3).state).unwrap();
        let kings: Vec<f64> = residents.iter().map(|one| *one.genome.last().unwrap()).collect();
        assert!(kings.iter().all(|king| (1.0..=3.0).contains(king)), "{kings:?}");
        assert!(kings.iter().any(|king| (king - 2.9).abs() > 0.05), "none moved: {kings:?}");
        for king in kings {
            let steps = (king - 2.9) / 0.1;
            let at_the_end = (king - 3.0).abs() < 1e-6 || (steps - steps.round()).abs() < 1e-3;
            assert!(at_the_end, "{king} is not some steps of 0.1 away from 2.9");
        }
    }

    #[test]
    fn a_king_without_a_step_is_worth_the_same_in_every_algorithm() {
        let mut keys = quick();
        keys.weights.king = 1.5;
        keys.weights.king_step = 0.0;
        let mutation = Mutation { rate: Rate::Constant(0.5), per: MutationUnit::Gene, step: Some(0.5) };
        let crowd = Crowding { population: 6, mutation, ..Crowding::default() };
        for algorithm in [es(4), Algorithm::Crowding(crowd)] {
            let evolver = evolver(&keys, algorithm);
            let residents = evolver.residents(0, &epochs(&*evolver, 2).state).unwrap();
            let kings: Vec<f64> = residents.iter().map(|one| *one.genome.last().unwrap()).collect();
            assert!(kings.iter().all(|king| (king - 1.5).abs() < 1e-9), "{kings:?}");
        }
    }

    #[test]
    fn random_ties_are_one_digest_on_any_number_of_threads() {
        let digest = |ties: Ties, threads: usize| {
            let evolver = evolver(&Checkers { ties, depth: 3, openings: Openings::Start, ..quick() }, es(4));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| epochs(&*evolver, 2).digest)
        };
        let random = digest(Ties::Random, 1);
        assert_eq!(digest(Ties::Random, 3), random);
        assert_ne!(digest(Ties::Order, 1), random, "no two moves were ever equal");
    }

    /// What the same individual scores must not depend on its place: that is what a panel is for.
    #[test]
    fn parents_and_children_meet_a_panel_in_the_same_games() {
        for keys in [
            Checkers { ties: Ties::Random, ..quick() },
            Checkers {
                openings: Openings::Start,
                book: Some(BookKey::Named(NamedBook::Deck)),
                ..Checkers { ties: Ties::Random, ..quick() }
            },
        ] {
            let keys = Checkers { opponents: Opponents::Panel, games: 6, ..keys };
            let problem = keys.problem().unwrap();
            let mut population = Population::new(problem.shape(), 0);
            population.resize(30);
            // Equal weights make many moves equal; each second individual is a copy of the one before it.
            for index in 0..30 {
                let genome = population.genome_mut(index);
                genome.fill(0.01 * (index / 2) as f32);
                *genome.last_mut().unwrap() = 2.0;
            }
            let judging = Judging::new(0..30, evolution::random::Key::new(1, 2, 3));
            problem.judge(&mut population, &judging);
            let panel: Vec<usize> = (0..30)
                .filter(|one| {
                    let sits = |game: &Pairing| game.white == super::super::schedule::Side::Network(*one);
                    Schedule::draw(&keys, &judging, None).iter().any(sits)
                })
                .collect();
            for pair in (0..30).step_by(2).filter(|one| !panel.contains(one) && !panel.contains(&(one + 1))) {
                let [one, copy] = [pair, pair + 1].map(|index| population.fitness()[index]);
                assert!((one - copy).abs() < 1e-9, "{pair}: {one} and its copy {copy}");
            }
        }
    }

    #[test]
    fn champions_enter_the_hall_of_fame_and_are_played_against() {
        let mut keys = quick();
        keys.hall_of_fame = HallOfFame { size: 2, games: 3, choice: Choice::Random };
        let with_hall = evolver(&keys, es(4));
        // 2 games of 8 individuals in a generation, and 4 contenders at its end.
        let confirming = 6 * 2 * u64::from(keys.champion.pairs);
        let first = epochs(&*with_hall, 1).standing.evaluations;
        assert_eq!(first, 4 * 2 + 2 * 8 * 2 + confirming, "in the first epoch nobody is famous");
        let second = epochs(&*with_hall, 2).standing.evaluations - first;
        assert_eq!(second, 2 * 8 * (2 + 3) + confirming);
        let outcome = epochs(&*with_hall, 5);
        assert_eq!(with_hall.residents(0, &outcome.state).unwrap().len(), 4, "the famous are no residents");
        let champion = with_hall.champion(&outcome.state).unwrap().genome;
        assert!(with_hall.residents(0, &outcome.state).unwrap().iter().any(|one| one.genome == champion));
    }

    #[test]
    fn one_alone_plays_against_itself() {
        for opponents in [Opponents::Random, Opponents::Panel] {
            let outcome = epochs(&*evolver(&Checkers { opponents, games: 9, ..quick() }, es(1)), 1);
            assert_eq!(outcome.standing.generation, 2);
        }
    }

    #[test]
    fn points_are_what_games_are_worth() {
        let mut keys = quick();
        keys.benchmark.games = 1;
        let problem = keys.problem().unwrap();
        assert_eq!([1, 0, -1].map(|result| problem.points(result)), [1.0, 0.0, -2.0]);
        keys.points.loss = 1.0;
        assert!(keys.problem().is_err());
    }
}
