//! An epoch: the generations of one island between two migrations, as a pure function from bytes to bytes.
//!
//! This is where the types of a problem are erased: code that plans, leases, stores or sends epochs sees [`EpochTask`]
//! go in and [`EpochOutcome`] come out, and no genes.

mod check;

use crate::algorithm::Tally;
use crate::gene::Gene;
use crate::island::{self, Champion, Island, IslandState, Setting};
use crate::migration::{Departure, Immigrants};
use crate::population::{Cost, MisfitError, PackedPopulation, Population};
use crate::problem::{Axis, Judging, Problem};
use crate::random::Key;
use crate::statistics::{EpochStatistics, ROWS, diversity};
use bincode::{Decode, Encode};
use bytes::Bytes;
pub use codec::Standing;
use codec::{CodecError, Digest};

/// One epoch to be run: everything that its outcome depends on, beside the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochTask {
    /// The island.
    pub island: u32,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// The island's age when the epoch ends. It begins at the age of its state.
    pub until: u64,
    /// What the island remembers; nothing at its founding.
    pub state: Option<Bytes>,
    /// What arrives, in ascending order of the senders.
    pub packets: Vec<Packet>,
}

/// The emigrants of one island at the end of one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The island they left.
    pub from: u32,
    /// The epoch at whose end they left.
    pub epoch: u64,
    /// An encoded [`Departure`].
    pub departure: Bytes,
}

/// The result of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct EpochOutcome {
    /// An encoded [`IslandState`].
    pub state: Bytes,
    /// An encoded [`Departure`].
    pub departure: Bytes,
    /// The digest of both: what the next epochs name their inputs by.
    pub left: Digest,
    /// The digest of state, departure and statistics; the standing is a part of the state.
    pub digest: Digest,
    /// What stopping rules look at: a copy of what the state begins with.
    pub standing: Standing,
    /// What reports look at.
    pub statistics: EpochStatistics,
}

impl EpochOutcome {
    /// An outcome as another process delivers it: digests and standing are derived from the bytes. Returns the digest of
    /// the bytes also if they hold no outcome.
    pub fn of_bytes(state: Bytes, departure: Bytes, statistics: &[u8]) -> (Digest, Result<Self, CodecError>) {
        let left = left_digest(&state, &departure);
        let digest = outcome_digest(&left, statistics);
        (digest, Self::decode(state, departure, statistics, left, digest))
    }

    fn decode(
        state: Bytes,
        departure: Bytes,
        statistics: &[u8],
        left: Digest,
        digest: Digest,
    ) -> Result<Self, CodecError> {
        let standing = Standing::of_state(&state)?;
        let encoded = statistics;
        let statistics: EpochStatistics = codec::decode_dense(encoded)?;
        if !codec::is_encoding(&statistics, encoded) {
            return Err(CodecError::Unusual);
        }
        Ok(Self { state, departure, left, digest, standing, statistics })
    }
}

/// An epoch that cannot be run, because its inputs do not fit the experiment.
#[derive(Debug, thiserror::Error)]
pub enum EpochError {
    /// Bytes that do not decode, or a state too large to be encoded.
    #[error("island {island}, epoch {epoch}: its state {error}")]
    Codec {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// Why.
        error: CodecError,
    },
    /// A population that does not fit.
    #[error("island {island}, epoch {epoch}: {error}")]
    Misfit {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// Why.
        error: MisfitError,
    },
    /// Bytes that decode, but cannot be what the epoch came to.
    #[error("island {island}, epoch {epoch}: expected {expected}, found something else")]
    Wrong {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// Something that the problem needs is not on this machine.
    #[error("{0}")]
    Missing(String),
    /// An island that does not exist.
    #[error("expected an island from 0 to {last}, found `{island}`")]
    Island {
        /// The island.
        island: u32,
        /// The last one.
        last: usize,
    },
}

/// Evolves the islands of one experiment, whatever its problem.
pub trait Evolver: Send + Sync {
    /// Begins an epoch.
    fn begin(&self, task: &EpochTask) -> Result<Box<dyn Evolving + '_>, EpochError>;

    /// Takes an epoch up at a checkpoint inside it.
    fn resume(&self, task: &EpochTask, checkpoint: &[u8]) -> Result<Box<dyn Evolving + '_>, EpochError>;

    /// Compares an outcome that another process has delivered with its task, as far as that is possible without
    /// computing the epoch again.
    fn check(&self, task: &EpochTask, outcome: &EpochOutcome) -> Result<(), EpochError>;

    /// The same of a checkpoint inside an epoch; returns where the island stands in it.
    fn check_checkpoint(&self, task: &EpochTask, checkpoint: &[u8]) -> Result<Standing, EpochError>;

    /// The champion in an island's state.
    fn champion(&self, state: &[u8]) -> Result<ChampionView, CodecError>;

    /// The individuals in an island's state, without its hall of fame.
    fn residents(&self, island: u32, state: &[u8]) -> Result<Vec<ResidentView>, CodecError>;

    /// The axes along which the problem describes individuals.
    fn axes(&self) -> Vec<Axis>;

    /// The champions of other islands' states as guests for every island here.
    fn guests(&self, states: &[Bytes]) -> Result<Bytes, EpochError>;

    /// What experiments all have in common.
    fn setting(&self) -> &Setting;

    /// What this machine lacks to compute any epoch.
    fn missing(&self) -> Option<String>;

    /// About how long one evaluation takes.
    fn cost(&self) -> Cost;

    /// About how many bytes an individual takes in a store.
    fn individual_bytes(&self) -> u64;
}

/// An epoch under way.
pub trait Evolving {
    /// One generation, if there is one left. Answers whether there was.
    fn generation(&mut self) -> bool;

    /// Where the island stands.
    fn standing(&self) -> Standing;

    /// All that is needed to take the epoch up here.
    fn checkpoint(&self) -> Result<Bytes, CodecError>;

    /// The outcome, after the last generation.
    fn finish(self: Box<Self>) -> Result<EpochOutcome, CodecError>;
}

/// A champion as numbers, for people and other programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ChampionView {
    /// Its fitness.
    pub fitness: f64,
    /// The generation in which it appeared.
    pub generation: u64,
    /// Its genes.
    pub genome: Vec<f64>,
}

/// An individual as numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidentView {
    /// Its fitness.
    pub fitness: f64,
    /// Its genes.
    pub genome: Vec<f64>,
    /// Where it lies on the axes of its problem, if it has any.
    pub descriptors: Vec<f32>,
}

/// A problem in the setting of an experiment.
pub struct World<P: Problem> {
    problem: P,
    setting: Setting,
}

impl<P: Problem> World<P> {
    /// The problem in this setting.
    pub fn new(problem: P, setting: Setting) -> Self {
        Self { problem, setting }
    }

    /// Nothing is computed without what the problem needs: that would be another result.
    fn ready(&self) -> Result<(), EpochError> {
        self.problem.missing().map_or(Ok(()), |missing| Err(EpochError::Missing(missing)))
    }

    fn island(&self, task: &EpochTask, state: IslandState<P::Gene>) -> Result<Island<'_, P>, EpochError> {
        Island::resume(&self.problem, &self.setting, task.island, state).map_err(|error| EpochError::Misfit {
            island: task.island,
            epoch: task.epoch,
            error,
        })
    }

    /// Whether migrants may come from an island, or from outside, to another.
    fn sends_migrants(&self, from: u32, to: u32) -> bool {
        let Setting { islands, edges, opponents, .. } = &self.setting;
        opponents.is_empty()
            || from as usize >= islands.len()
            || edges.iter().any(|edge| (edge.from, edge.to) == (from, to))
    }

    /// The immigrants and the opponents that a packet holds for the task's island.
    fn unpack(&self, task: &EpochTask, packet: &Packet) -> Result<[Immigrants<P::Gene>; 2], EpochError> {
        let departure: Departure<P::Gene> = decode(task, &packet.departure)?;
        let share = departure.share_of(task.island).to_vec();
        let opponents = departure.opponent_share_of(task.island).to_vec();
        Ok([
            self.group(task, packet, departure.emigrants, share)?,
            self.group(task, packet, departure.opponents, opponents)?,
        ])
    }

    /// Some of those who left together.
    fn group(
        &self,
        task: &EpochTask,
        packet: &Packet,
        left: PackedPopulation<P::Gene>,
        share: Vec<u32>,
    ) -> Result<Immigrants<P::Gene>, EpochError> {
        let axes = self.problem.axes().len();
        let everybody = Population::unpack(left, self.problem.shape(), axes);
        let misfit = |error| EpochError::Misfit { island: task.island, epoch: task.epoch, error };
        let everybody = everybody.map_err(misfit)?;
        let mut individuals = Population::empty_like(&everybody);
        for index in share.into_iter().map(|index| index as usize) {
            if index >= everybody.len() {
                let (expected, found) = (everybody.len(), index + 1);
                return Err(misfit(MisfitError::Count { what: "emigrants", expected, found }));
            }
            individuals.push_copy(&everybody, index, 0.0);
        }
        Ok(Immigrants { from: packet.from, epoch: packet.epoch, individuals })
    }
}

fn decode<T: Decode<()>>(task: &EpochTask, bytes: &[u8]) -> Result<T, EpochError> {
    let EpochTask { island, epoch, .. } = *task;
    codec::decode(bytes).map_err(|error| EpochError::Codec { island, epoch, error })
}

impl<P: Problem> Evolver for World<P> {
    fn begin(&self, task: &EpochTask) -> Result<Box<dyn Evolving + '_>, EpochError> {
        let last = self.setting.islands.len() - 1;
        if task.island as usize > last {
            return Err(EpochError::Island { island: task.island, last });
        }
        self.ready()?;
        let packets = task.packets.iter().map(|packet| self.unpack(task, packet));
        let arriving = packets.collect::<Result<Vec<_>, _>>()?;
        let (immigrants, opponents): (Vec<_>, Vec<_>) = arriving.into_iter().map(Into::into).unzip();
        let mut island = match &task.state {
            None => Island::found(&self.problem, &self.setting, task.island),
            Some(state) => self.island(task, decode(task, state)?)?,
        };
        island.meet(&opponents);
        // An island that sends only opponents here is none that migrants come from.
        let migrate = |group: &Immigrants<P::Gene>| self.sends_migrants(group.from, task.island);
        let arrivals = island.receive(immigrants.into_iter().filter(migrate).collect());
        let rows = if task.state.is_none() { vec![island.row()] } else { vec![] };
        let statistics = EpochStatistics { rows, arrivals, ..EpochStatistics::default() };
        let (from, epoch, until) = (island.age(), task.epoch, task.until);
        Ok(Box::new(Underway { island, epoch, from, until, statistics }))
    }

    fn resume(&self, task: &EpochTask, checkpoint: &[u8]) -> Result<Box<dyn Evolving + '_>, EpochError> {
        let Checkpoint { state, from, statistics } = decode(task, checkpoint)?;
        let island = self.island(task, state)?;
        self.ready()?;
        let (epoch, until) = (task.epoch, task.until);
        if from > island.age() || island.age() > until {
            let expected = "a checkpoint between the beginning and the end of the epoch";
            return Err(EpochError::Wrong { island: task.island, epoch, expected });
        }
        Ok(Box::new(Underway { island, epoch, from, until, statistics }))
    }

    fn check(&self, task: &EpochTask, outcome: &EpochOutcome) -> Result<(), EpochError> {
        self.check_outcome(task, outcome)
    }

    fn check_checkpoint(&self, task: &EpochTask, checkpoint: &[u8]) -> Result<Standing, EpochError> {
        World::check_checkpoint(self, task, checkpoint)
    }

    fn champion(&self, state: &[u8]) -> Result<ChampionView, CodecError> {
        let state: IslandState<P::Gene> = codec::decode(state)?;
        let Champion { genome, fitness, generation } = state.champion();
        let genome = genome.into_iter().map(Gene::number).collect();
        Ok(ChampionView { fitness, generation, genome })
    }

    fn residents(&self, island: u32, state: &[u8]) -> Result<Vec<ResidentView>, CodecError> {
        let state: IslandState<P::Gene> = codec::decode(state)?;
        let individuals: Vec<_> = state.population.individuals().collect();
        let algorithm = self.setting.islands.get(island as usize).map(|own| &own.algorithm);
        let everybody = individuals.len();
        let count = algorithm.map_or(everybody, |own| island::residents(&self.problem, own, everybody));
        let view = |(at, (fitness, genome)): (usize, (f64, &[P::Gene]))| ResidentView {
            fitness,
            genome: genome.iter().map(|gene| gene.number()).collect(),
            descriptors: state.population.descriptors(at).to_vec(),
        };
        Ok(individuals.into_iter().take(count).enumerate().map(view).collect())
    }

    fn axes(&self) -> Vec<Axis> {
        self.problem.axes()
    }

    fn guests(&self, states: &[Bytes]) -> Result<Bytes, EpochError> {
        let mut champions = Population::new(self.problem.shape(), self.problem.axes().len());
        for (island, state) in (0..).zip(states) {
            let codec = |error| EpochError::Codec { island, epoch: 0, error };
            let state: IslandState<P::Gene> = codec::decode(state).map_err(codec)?;
            let genome = state.champion.1;
            let (expected, found) = (self.problem.shape().length, genome.len());
            if found != expected {
                let error = MisfitError::Count { what: "genes", expected, found };
                return Err(EpochError::Misfit { island, epoch: 0, error });
            }
            champions.resize(champions.len() + 1);
            let last = champions.len() - 1;
            champions.genome_mut(last).copy_from_slice(&genome);
        }
        // They come from another experiment, so what it thought of them does not count here.
        let everybody = 0..champions.len();
        let judging = Judging::new(everybody.clone(), Key::of_run(self.setting.seed, u64::MAX));
        Tally::default().judge(&self.problem, &mut champions, judging, None);
        let share: Vec<u32> = everybody.map(|index| index as u32).collect();
        let shares = (0..self.setting.islands.len() as u32).map(|island| (island, share.clone())).collect();
        let opponents = Population::empty_like(&champions).pack();
        let departure = Departure { emigrants: champions.pack(), shares, opponents, opponent_shares: vec![] };
        codec::encode(&departure).map_err(|error| EpochError::Codec { island: 0, epoch: 0, error })
    }

    fn setting(&self) -> &Setting {
        &self.setting
    }

    fn missing(&self) -> Option<String> {
        self.problem.missing()
    }

    fn cost(&self) -> Cost {
        self.problem.cost()
    }

    fn individual_bytes(&self) -> u64 {
        (self.problem.shape().length * size_of::<P::Gene>() + self.problem.axes().len() * 4 + 8) as u64
    }
}

/// An island in the middle of an epoch.
struct Underway<'a, P: Problem> {
    island: Island<'a, P>,
    epoch: u64,
    /// The island's age when the epoch began, and when it will end.
    from: u64,
    until: u64,
    statistics: EpochStatistics,
}

/// What is stored of an epoch under way.
#[derive(Encode, Decode)]
struct Checkpoint<G: Gene> {
    state: IslandState<G>,
    from: u64,
    statistics: EpochStatistics,
}

impl<P: Problem> Evolving for Underway<'_, P> {
    fn generation(&mut self) -> bool {
        if self.island.age() >= self.until {
            return false;
        }
        self.island.generation();
        let every = (self.until - self.from).div_ceil(ROWS).max(1);
        if (self.until - self.island.age()).is_multiple_of(every) {
            self.statistics.rows.push(self.island.row());
        }
        true
    }

    fn standing(&self) -> Standing {
        self.island.standing()
    }

    fn checkpoint(&self) -> Result<Bytes, CodecError> {
        let (state, statistics) = (self.island.state(), self.statistics.clone());
        codec::encode(&Checkpoint { state, from: self.from, statistics })
    }

    fn finish(mut self: Box<Self>) -> Result<EpochOutcome, CodecError> {
        self.island.conclude();
        let departure = codec::encode(&self.island.depart(self.epoch))?;
        let state = codec::encode(&self.island.state())?;
        let standing = self.standing();
        self.statistics.diversity = diversity(self.island.population());
        self.statistics.unjudgeable = self.island.unjudgeable();
        let left = left_digest(&state, &departure);
        let digest = outcome_digest(&left, &codec::encode(&self.statistics)?);
        Ok(EpochOutcome { state, departure, left, digest, standing, statistics: self.statistics })
    }
}

/// The digest of what an epoch leaves behind: its state, which begins with its standing, and its departure.
pub fn left_digest(state: &[u8], departure: &[u8]) -> Digest {
    Digest::of_parts("atoll epoch left", [state, departure])
}

/// The digest of an epoch's outcome: of what it leaves behind, and of its encoded statistics.
pub fn outcome_digest(left: &Digest, statistics: &[u8]) -> Digest {
    Digest::of_parts("atoll epoch outcome", [&left.0[..], statistics])
}

/// Runs an epoch to its end: the pure function itself.
pub fn run(evolver: &dyn Evolver, task: &EpochTask) -> Result<EpochOutcome, EpochError> {
    let mut epoch = evolver.begin(task)?;
    while epoch.generation() {}
    let EpochTask { island, epoch: number, .. } = *task;
    epoch.finish().map_err(|error| EpochError::Codec { island, epoch: number, error })
}
