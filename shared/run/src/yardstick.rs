//! How strong the champions of a run's milestones are, as far as that was measured: one artifact for each champion and
//! opponent. Nothing that counts depends on them: a run without them is whole.

use crate::damage::Damage;
use crate::epochs::outcome_of;
use crate::head::RunError;
use crate::layout::{ArtifactName, Place, RunId, StateName};
use crate::record::EpochRecord;
use archipelago::job::{self, Job, JobResult};
use archipelago::{Mark, Remains};
use bytes::Bytes;
use experiment::Experiment;
use experiment::yardstick::{Rating, YardstickKeys};
use futures::{StreamExt, stream};
use report::dashboard::StrengthView;
use std::collections::BTreeMap;
use store::{Kind, Store, StoreError};
use tournament::Tally;

/// What the names of these artifacts begin with.
const PREFIX: &str = "strength-";
/// How many are read at once.
const READ_AHEAD: usize = 32;

/// A champion that can be measured: the state that holds it, and the record of its epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Milestone {
    /// Where the state lies.
    pub name: StateName,
    /// What is known of the epoch.
    pub record: EpochRecord,
}

impl Milestone {
    /// The state, compared with its record.
    ///
    /// # Errors
    /// If it cannot be read, or is not what the record names.
    pub async fn state(&self, store: &Store, run: &RunId) -> Result<Bytes, RunError> {
        let path = Place::State(self.name).in_run(run);
        let remains: Remains = store.read_value(&path, Kind::IslandState).await?;
        if outcome_of(&remains, &self.record) != Some(self.record.mark.digest) {
            let StateName { island, epoch, .. } = self.name;
            return Err(RunError::Altered { run: run.clone(), island, epoch });
        }
        Ok(remains.state.into())
    }

    /// The artifact that holds what its champion scored against an opponent.
    pub fn artifact(&self, opponent: &str) -> ArtifactName {
        artifact(self.name.island, &self.record.mark, opponent)
    }
}

/// The artifact that holds what a champion scored against an opponent. It carries the digest of the epoch, so that what was
/// measured before results were retracted is not taken for what came after.
fn artifact(island: u32, mark: &Mark, opponent: &str) -> ArtifactName {
    let (epoch, digest) = (mark.epoch, mark.digest.to_string());
    let name = format!("{PREFIX}{epoch:010}-{island:05}-{}-{}", opponent.replace(' ', "-"), &digest[..8]);
    ArtifactName::new(name).expect("opponents have short and plain names")
}

/// Whether the artifact of this name is of games against an opponent.
fn is_against(name: &ArtifactName, opponent: &str) -> bool {
    let rest = name.as_str().rsplit_once('-').map_or("", |(rest, _)| rest);
    rest.ends_with(&format!("-{}", opponent.replace(' ', "-")))
}

/// The epoch and the island in the name of such an artifact.
fn place_of(name: &ArtifactName) -> Option<(u64, u32)> {
    let mut words = name.as_str().strip_prefix(PREFIX)?.splitn(3, '-');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// The job that measures the champion of a state against an opponent.
pub fn job(experiment: &str, keys: &YardstickKeys, opponent: &str) -> Job {
    Job::Strength {
        experiment: experiment.to_owned(),
        opponent: opponent.to_owned(),
        depth: keys.plies(),
        nodes: keys.nodes,
        pairs: keys.pairs,
    }
}

/// Whether an island's champion of this epoch is to be measured.
pub fn is_milestone(experiment: &Experiment, epoch: u64) -> bool {
    crate::commit::is_milestone(&experiment.file().retention, epoch)
}

/// The strength of one champion.
#[derive(Clone, Debug, PartialEq)]
pub struct Strength {
    /// The island.
    pub island: u32,
    /// The epoch.
    pub epoch: u64,
    /// The generation that the epoch ended with.
    pub generation: u64,
    /// The rating in Elo, with its interval.
    pub rating: Rating,
    /// What it scored against each opponent.
    pub tallies: Vec<Tally>,
}

/// What was measured of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strengths {
    keys: YardstickKeys,
    opponents: Vec<String>,
    /// By epoch and island: the generation, and what was scored against each opponent so far.
    measured: BTreeMap<(u64, u32), (u64, BTreeMap<usize, Tally>)>,
}

impl Strengths {
    /// Nothing yet; `None` if nothing is to be measured.
    pub fn new(experiment: &Experiment) -> Option<Self> {
        let keys = experiment.file().yardstick.clone()?;
        Some(Self { opponents: keys.opponents(), keys, measured: BTreeMap::new() })
    }

    /// What is stored of a run, whose records say which epochs count; and what of it cannot be read. Nothing if nothing is
    /// to be measured.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn read<'a>(
        store: &Store,
        run: &RunId,
        experiment: &Experiment,
        record: impl Fn(u32, u64) -> Option<&'a EpochRecord>,
    ) -> Result<(Option<Self>, Vec<Damage>), StoreError> {
        let Some(mut strengths) = Self::new(experiment) else { return Ok((None, vec![])) };
        let mut wanted = vec![];
        for path in store.list(&run.artifacts()).await? {
            let Some((_, Place::Artifact(name))) = Place::of(&path) else { continue };
            let Some((epoch, island)) = place_of(&name) else { continue };
            let Some(record) = record(island, epoch) else { continue };
            let is_of = |opponent: &String| artifact(island, &record.mark, opponent) == name;
            if let Some(opponent) = strengths.opponents.iter().position(is_of) {
                wanted.push((path, (epoch, island), record.mark.standing.generation, opponent));
            }
        }
        let read = async |(path, place, generation, opponent): (store::Path, _, u64, usize)| {
            let result = store.read_value::<JobResult>(&path, Kind::Artifact).await;
            (place, generation, opponent, result)
        };
        let mut damage = vec![];
        let mut reading = stream::iter(wanted).map(read).buffered(READ_AHEAD);
        while let Some(((epoch, island), generation, opponent, result)) = reading.next().await {
            match result {
                Ok(result) => {
                    if !strengths.add((epoch, island), generation, opponent, &result) {
                        let name = &strengths.opponents[opponent];
                        damage.push(Damage::Unreadable(format!(
                            "island {island}, epoch {epoch}: no result of games against {name}"
                        )));
                    }
                }
                Err(error) if error.is_damage() => damage.push(error.into()),
                Err(error) => return Err(error),
            }
        }
        Ok((Some(strengths), damage))
    }

    /// How champions are measured.
    pub fn keys(&self) -> &YardstickKeys {
        &self.keys
    }

    /// The names of the opponents.
    pub fn opponents(&self) -> &[String] {
        &self.opponents
    }

    /// Takes what a champion scored against an opponent; returns whether the result can be that.
    pub fn add(&mut self, place: (u64, u32), generation: u64, opponent: usize, result: &JobResult) -> bool {
        let Some(tally) = job::strength(result, self.keys.pairs) else { return false };
        self.measured.entry(place).or_insert((generation, BTreeMap::new())).1.insert(opponent, tally);
        true
    }

    /// What a champion scored against an opponent, if that is known.
    pub fn tally(&self, (epoch, island): (u64, u32), opponent: usize) -> Option<&Tally> {
        self.measured.get(&(epoch, island))?.1.get(&opponent)
    }

    /// Everything that was measured: epoch and island, the opponent's number, and what was scored.
    pub fn measured(&self) -> impl Iterator<Item = ((u64, u32), usize, &Tally)> {
        self.measured.iter().flat_map(|(&place, (_, tallies))| {
            tallies.iter().map(move |(&opponent, tally)| (place, opponent, tally))
        })
    }

    /// The champions that have met all opponents, by epoch and island.
    pub fn all(&self) -> impl Iterator<Item = Strength> {
        self.measured.iter().filter(|(_, (_, tallies))| tallies.len() == self.opponents.len()).map(
            |(&(epoch, island), (generation, tallies))| {
                let tallies: Vec<Tally> = tallies.values().copied().collect();
                let rating = self.keys.rating(&tallies);
                Strength { island, epoch, generation: *generation, rating, tallies }
            },
        )
    }

    /// What reports show of it.
    pub fn shown(&self) -> report::run::Strengths {
        let YardstickKeys { nodes, pairs, .. } = &self.keys;
        let search = match nodes {
            Some(nodes) => format!("{nodes} nodes for each move of both players"),
            None => format!("{} ahead", report::text::plies(self.keys.plies())),
        };
        let how = format!(
            "The champions of milestones against players that never change: {search}, {} games against each of {} \
             opponents, from openings of the deck with colours swapped. Champions know the game's history and ask the \
             endgame database, as in `atoll bench strength`. Elo: {}.",
            2 * pairs,
            self.opponents.len(),
            self.keys.zero()
        );
        let score = |tally: &Tally| {
            let interval = tally.interval();
            report::run::Score {
                games: [tally.wins, tally.draws, tally.losses],
                score: tally.score(),
                low: interval.low,
                high: interval.high,
            }
        };
        let champions = self.all().map(|Strength { island, epoch, generation, rating, tallies }| {
            let Rating { elo, low, high } = rating;
            let scores = tallies.iter().map(score).collect();
            report::run::Strength { island, epoch, generation, elo, low, high, scores }
        });
        report::run::Strengths { how, opponents: self.opponents.clone(), champions: champions.collect() }
    }

    /// What was measured last of a run that has this number of generations, as lists show it: of its newest epoch, whether
    /// that counts or not.
    pub async fn read_newest(
        store: &Store,
        run: &RunId,
        experiment: &Experiment,
        generations: u64,
    ) -> Option<StrengthView> {
        let mut strengths = Self::new(experiment)?;
        let paths = store.list(&run.artifacts()).await.ok()?;
        let mut found: BTreeMap<(u64, u32), BTreeMap<usize, store::Path>> = BTreeMap::new();
        for path in paths {
            let Some((_, Place::Artifact(name))) = Place::of(&path) else { continue };
            let Some((epoch, island)) = place_of(&name) else { continue };
            let is_of = |opponent: &String| is_against(&name, opponent);
            if let Some(opponent) = strengths.opponents.iter().position(is_of) {
                found.entry((epoch, island)).or_default().insert(opponent, path);
            }
        }
        found.retain(|_, paths| paths.len() == strengths.opponents.len());
        let newest = found.last_key_value()?.0.0;
        for (&(epoch, island), paths) in found.range((newest, 0)..) {
            let generation = (epoch + 1).saturating_mul(experiment.interval()).min(generations);
            for (&opponent, path) in paths {
                let result = store.read_value::<JobResult>(path, Kind::Artifact).await.ok()?;
                strengths.add((epoch, island), generation, opponent, &result);
            }
        }
        strengths.view()
    }

    /// The newest strength, as lists show it.
    pub fn view(&self) -> Option<StrengthView> {
        let Strength { island, epoch, generation, rating: Rating { elo, low, high }, .. } = self.newest()?;
        Some(StrengthView { island, epoch, generation, elo, low, high })
    }

    /// The strongest champion of the newest epoch with a measurement.
    pub fn newest(&self) -> Option<Strength> {
        let newest = self.all().last()?.epoch;
        let of_newest = self.all().filter(|strength| strength.epoch == newest);
        of_newest.max_by(|one, other| one.rating.elo.total_cmp(&other.rating.elo))
    }
}
