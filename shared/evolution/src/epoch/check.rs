//! What can be seen of an outcome, or of a checkpoint, without computing its generations again.
//!
//! A worker may deliver anything. Here its bytes are decoded and compared with what they should follow from: the task,
//! the setting, and each other. What remains possible is a population that could have evolved and did not: only
//! computing the epoch again finds that.

use super::{Checkpoint, EpochError, EpochOutcome, EpochTask, World, decode};
use crate::algorithm::Algorithm;
use crate::gene::Gene;
use crate::island::{Island, IslandState};
use crate::population::Population;
use crate::problem::{Judging, Problem};
use crate::random::Key;
use crate::statistics::{EpochStatistics, GenerationRow, ROWS, diversity};
use bincode::Decode;
use codec::Standing;

/// What an epoch, or a part of it, began with and came to.
struct Stretch<'a> {
    task: &'a EpochTask,
    start: Standing,
    end: Standing,
}

impl Stretch<'_> {
    /// That something is not what it should be.
    fn wrong(&self, expected: &'static str) -> EpochError {
        let EpochTask { island, epoch, .. } = *self.task;
        EpochError::Wrong { island, epoch, expected }
    }

    fn expect(&self, holds: bool, expected: &'static str) -> Result<(), EpochError> {
        if holds { Ok(()) } else { Err(self.wrong(expected)) }
    }
}

impl<P: Problem> World<P> {
    pub(super) fn check_outcome(&self, task: &EpochTask, outcome: &EpochOutcome) -> Result<(), EpochError> {
        let state: IslandState<P::Gene> = decode_dense(task, &outcome.state)?;
        let stretch = Stretch { task, start: start_of(task)?, end: state.standing };
        stretch.expect(state.standing.generation == task.until, "the generation that it ends with")?;
        stretch.expect(state.standing == outcome.standing, "the standing of its state")?;
        self.check_champion(&stretch, &state)?;
        let statistics = &outcome.statistics;
        stretch.expect(statistics.unjudgeable == state.unjudgeable, "its own count of failed evaluations")?;
        let is_usual = codec::is_encoding(&state, &outcome.state);
        let (departed, private) = (state.departed.clone(), state.private.clone());
        let mut island = self.check_state(&stretch, state)?;
        let departure = island.depart_again(task.epoch);
        let is_same = codec::is_encoding(&departure, &outcome.departure);
        stretch.expect(is_same, "the emigrants of its population")?;
        // Everything else of an island is as its state says.
        let is_whole = island.departed() == departed && island.private_state() == private;
        stretch.expect(is_usual && is_whole, "a state in its usual encoding")?;
        self.check_rows(&stretch, statistics, island.population())?;
        let is_same = statistics.diversity.to_bits() == diversity(island.population()).to_bits();
        stretch.expect(is_same, "the diversity of its population")
    }

    pub(super) fn check_checkpoint(&self, task: &EpochTask, bytes: &[u8]) -> Result<Standing, EpochError> {
        let checkpoint: Checkpoint<P::Gene> = decode_dense(task, bytes)?;
        let is_usual = codec::is_encoding(&checkpoint, bytes);
        let Checkpoint { state, from, statistics } = checkpoint;
        let stretch = Stretch { task, start: start_of(task)?, end: state.standing };
        stretch.expect(is_usual, "a checkpoint in its usual encoding")?;
        stretch.expect(from == stretch.start.generation, "the generation that it begins with")?;
        let generations = from..=task.until;
        stretch.expect(generations.contains(&stretch.end.generation), "a generation inside it")?;
        // Those who moved away left at the end of the epoch before, and immigrants have taken their places.
        stretch.expect(state.departed.is_empty(), "nobody who has left inside it")?;
        self.check_champion(&stretch, &state)?;
        let island = self.check_state(&stretch, state)?;
        self.check_rows(&stretch, &statistics, island.population())?;
        Ok(stretch.end)
    }

    /// Whether a state has the sizes that its algorithm leaves, and has spent no fewer evaluations than before.
    fn check_state(
        &self,
        stretch: &Stretch<'_>,
        state: IslandState<P::Gene>,
    ) -> Result<Island<'_, P>, EpochError> {
        let Some(own) = self.setting.islands.get(stretch.task.island as usize) else {
            let last = self.setting.islands.len() - 1;
            return Err(EpochError::Island { island: stretch.task.island, last });
        };
        let end = stretch.end;
        let spends = end.evaluations >= stretch.start.evaluations && state.unjudgeable <= end.evaluations;
        stretch.expect(spends, "at least the evaluations of the epoch before")?;
        let private = state.private.len() as u64;
        let most = self.problem.memory_bytes() + own.algorithm.private_bytes(self.problem.shape().length);
        stretch.expect(private <= most, "what it has learnt from, within its bound")?;
        let island = self.island(stretch.task, state)?;
        let count = island.population().len() as u64;
        let founders = u64::from(own.algorithm.founders());
        let least = founders.min(own.algorithm.capacity());
        let sizes = if own.algorithm.is_archive() { 1 } else { least }..=own.algorithm.capacity();
        stretch.expect(sizes.contains(&count), "as many individuals as its algorithm keeps")?;
        let has_one_each = match &own.algorithm {
            // Others would enter the cells that are empty, until there are more than there can be.
            Algorithm::MapElites(archive) => archive.is_settled(&self.problem.axes(), island.population()),
            _ => true,
        };
        stretch.expect(has_one_each, "at most one individual in each cell of the archive")?;
        stretch.expect(island.hall_len() <= self.problem.hall(), "a hall of fame of the usual size")?;
        self.check_opponents(stretch, &island)?;
        Ok(island)
    }

    /// Whether the opponents are those that arrived with the task or, where none did, those of the state before.
    fn check_opponents(&self, stretch: &Stretch<'_>, island: &Island<'_, P>) -> Result<(), EpochError> {
        let task = stretch.task;
        let mut groups = vec![];
        for packet in &task.packets {
            let [_, opponents] = self.unpack(task, packet)?;
            groups.push(opponents);
        }
        let found = island.opponents().pack();
        let is_expected = match (island.gather(&groups), &task.state) {
            (Some(arrived), _) => found == arrived.pack(),
            // Where islands send each other no opponents, there have never been any: the state need not be decoded.
            (None, Some(state)) if !self.setting.opponents.is_empty() => {
                found == decode::<IslandState<P::Gene>>(task, state)?.opponents
            }
            (None, _) => island.opponents().is_empty(),
        };
        stretch.expect(is_expected, "the opponents that it was given")
    }

    /// Whether the champion has the fitness that stopping rules look at. Where fitness is absolute, a new one is judged
    /// again; where it is relative, the champion is one of the population.
    fn check_champion(&self, stretch: &Stretch<'_>, state: &IslandState<P::Gene>) -> Result<(), EpochError> {
        let (best, (appeared, genome)) = (stretch.end.best, &state.champion);
        stretch.expect(*appeared <= stretch.end.generation, "a champion that has appeared by then")?;
        let shape = self.problem.shape();
        let is_genome = genome.len() == shape.length && genome.iter().all(|gene| gene.belongs(shape.domain));
        stretch.expect(is_genome, "a champion of the problem's shape")?;
        let mut individuals = state.population.individuals();
        if !self.problem.absolute() {
            let is_there = individuals.any(|(fitness, genes)| fitness == best && genes == &genome[..]);
            return stretch.expect(is_there, "a champion of its population");
        }
        let fittest = individuals.map(|(fitness, _)| fitness).fold(f64::NEG_INFINITY, f64::max);
        let is_best = best >= stretch.start.best && best >= fittest;
        stretch.expect(is_best, "the best fitness that it has seen")?;
        if best == stretch.start.best {
            return Ok(());
        }
        let mut alone = Population::new(shape, self.problem.axes().len());
        alone.resize(1);
        alone.genome_mut(0).copy_from_slice(genome);
        let key = Key::new(self.setting.seed, stretch.task.island, stretch.end.generation);
        self.problem.judge(&mut alone, &Judging::new(0..1, key));
        // Of a genome that is repaired whenever it is judged, another judgement could say something else.
        let is_its_own = alone.fitness()[0] == best && alone.genome(0) == &genome[..];
        stretch.expect(is_its_own, "the fitness of its champion")
    }

    /// Whether there are rows of the right generations, the last of them of this population.
    fn check_rows(
        &self,
        stretch: &Stretch<'_>,
        statistics: &EpochStatistics,
        population: &Population<P::Gene>,
    ) -> Result<(), EpochError> {
        let Stretch { task, start, end } = stretch;
        let from = start.generation;
        let every = (task.until - from).div_ceil(ROWS).max(1);
        let kept = (from + 1..=end.generation).filter(|age| (task.until - age).is_multiple_of(every));
        let founding = task.state.is_none().then_some(0);
        let rows = statistics.rows.iter();
        let is_kept = founding.into_iter().chain(kept).eq(rows.clone().map(|row| row.generation));
        stretch.expect(is_kept, "statistics of its own generations")?;
        let spent = rows.clone().is_sorted_by_key(|row| row.evaluations)
            && rows.clone().all(|row| (start.evaluations..=end.evaluations).contains(&row.evaluations));
        stretch.expect(spent, "statistics of its own evaluations")?;
        if let Some(last) = rows.clone().next_back().filter(|row| row.generation == end.generation) {
            let own = GenerationRow::new(population, last.generation, last.evaluations);
            stretch.expect(*last == own, "statistics of its population")?;
        }
        let best = rows.map(|row| row.best).fold(f64::NEG_INFINITY, f64::max);
        let is_best = !self.problem.absolute() || best <= end.best;
        stretch.expect(is_best, "the best fitness of its statistics")?;
        let migrants = task.packets.iter().filter(|packet| self.sends_migrants(packet.from, task.island));
        let sent = migrants.map(|packet| (packet.from, packet.epoch));
        let arrived = statistics.arrivals.iter().map(|arrival| (arrival.from, arrival.epoch));
        stretch.expect(sent.eq(arrived), "the immigrants that it was given")
    }
}

/// Decodes what has been delivered.
fn decode_dense<T: Decode<()>>(task: &EpochTask, bytes: &[u8]) -> Result<T, EpochError> {
    let EpochTask { island, epoch, .. } = *task;
    codec::decode_dense(bytes).map_err(|error| EpochError::Codec { island, epoch, error })
}

/// Where an island stood before an epoch.
fn start_of(task: &EpochTask) -> Result<Standing, EpochError> {
    let EpochTask { island, epoch, .. } = *task;
    let codec = |error| EpochError::Codec { island, epoch, error };
    task.state.as_ref().map_or(Ok(Standing::UNFOUNDED), |state| Standing::of_state(state).map_err(codec))
}
