//! Jobs beside epochs and cells: guests, champions and species that a plan takes from other runs. A job is a pure function of
//! its description and of inputs named by their digests, so any worker may compute it, any number of times.

use bincode::{Decode, Encode};
use bytes::Bytes;
use checkers::{Ensemble, Network, PlayerFile, Style};
use ensembles::{Distance, Speciation, SpeciationSettings};
use evolution::activity::Activity;
use evolution::codec;
use evolution::digest::Digest;
use experiment::document::Diagnostics;
use experiment::tournament::{DistanceKey, NoiseKey, PlayerKeys, SpeciesKeys};
use experiment::yardstick::SEED;
use experiment::{Experiment, Plan, Study, Tournament};
use problems::ProblemSpec;
use species::Noise;
use std::collections::BTreeMap;
use std::sync::Arc;
use tournament::{Match, Rung, Tally, deck_pairs};

/// What a job makes of its inputs, which are states of islands.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Job {
    /// The champions of all states as guests of an experiment.
    Guests {
        /// The experiment whose islands they visit.
        experiment: String,
    },
    /// The player file of the champion of one state.
    Champion {
        /// The experiment that evolved it.
        experiment: String,
    },
    /// The player file of the best of each species of all states together; then, if it is wanted, that of their
    /// ensemble.
    Species {
        /// The experiment that evolved them.
        experiment: String,
        /// The island of each state.
        islands: Vec<u32>,
        /// How species are distinguished, as the `[tournament.species]` table in JSON.
        settings: String,
        /// Whether the ensemble is wanted.
        ensemble: bool,
    },
    /// The score of the champion of one state against a player of the frozen ladder.
    Strength {
        /// The experiment that evolved it.
        experiment: String,
        /// The opponent, by its name.
        opponent: String,
        /// Plies that the champion looks ahead.
        depth: u32,
        /// Instead of plies: the positions that each may visit for a move.
        nodes: Option<u64>,
        /// Pairs of games.
        pairs: u32,
    },
}

/// The result of a job: files, in order.
pub type JobResult = Vec<Vec<u8>>;

/// A job that cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JobError(String);

fn wrong(error: impl std::fmt::Display) -> JobError {
    JobError(error.to_string())
}

impl Job {
    /// The digest of the job and its inputs: what its result depends on.
    pub fn inputs(&self, inputs: &[Bytes]) -> Digest {
        let own = codec::encode(self).expect("a description is far below any limit");
        let inputs: Vec<Digest> = inputs.iter().map(|input| Digest::of(input)).collect();
        let parts = std::iter::once(&own[..]).chain(inputs.iter().map(|digest| &digest.0[..]));
        Digest::of_parts("atoll job inputs", parts)
    }

    /// Computes the job.
    ///
    /// # Errors
    /// If the inputs do not fit the experiment, or no player can be made of them.
    pub fn compute(&self, inputs: &[Bytes]) -> Result<JobResult, JobError> {
        match self {
            Self::Guests { experiment } => {
                let guests = single(experiment)?.evolver().guests(inputs).map_err(wrong)?;
                Ok(vec![guests.to_vec()])
            }
            Self::Champion { experiment } => Ok(vec![champion(experiment, inputs)?]),
            Self::Species { experiment, islands, settings, ensemble } => {
                let networks = population(&single(experiment)?, islands, inputs)?;
                let keys: SpeciesKeys = serde_json::from_str(settings).map_err(wrong)?;
                species(&networks, &keys, *ensemble)
            }
            Self::Strength { experiment, opponent, depth, nodes, pairs } => {
                let file = PlayerFile::from_bytes(&champion(experiment, inputs)?).map_err(wrong)?;
                let rung = Rung::named(opponent);
                let rung = rung.ok_or_else(|| wrong(format!("there is no opponent `{opponent}`")))?;
                let player = tournament::privileged(file.player(*depth)).map_err(wrong)?;
                let nodes = nodes.map(|nodes| [nodes; 2]);
                let duel = tournament::against_rung(player, &rung, nodes, SEED).map_err(wrong)?;
                Ok(vec![tally_bytes(&play_in_order(&duel, *pairs))])
            }
        }
    }

    /// Whether a result can be that of this job, as far as can be seen without computing it.
    pub fn fits(&self, result: &JobResult) -> bool {
        match self {
            Self::Strength { pairs, .. } => strength(result, *pairs).is_some(),
            Self::Guests { .. } => are_guests(result),
            Self::Champion { .. } => result.len() == 1,
            Self::Species { .. } => !result.is_empty(),
        }
    }
}

/// The player file of the champion of a state.
fn champion(experiment: &str, inputs: &[Bytes]) -> Result<Vec<u8>, JobError> {
    let experiment = single(experiment)?;
    let state = inputs.first().ok_or_else(|| wrong("expected a state, found none"))?;
    let genome = experiment.evolver().champion(state).map_err(wrong)?.genome;
    let file = experiment.file().problem.player_file(&genome);
    file.ok_or_else(|| no_players(&experiment))
}

/// Plays pairs of the deck one after the other: epochs have the other threads.
fn play_in_order(duel: &Match, pairs: u32) -> Tally {
    let activity = Activity::current();
    let mut runner = duel.runner();
    let mut tally = Tally::default();
    for pair in deck_pairs(pairs as usize, SEED) {
        tally.count(&duel.pair(&mut runner, pair));
        if let Some(activity) = &activity {
            activity.add(2);
        }
    }
    tally
}

fn tally_bytes(tally: &Tally) -> Vec<u8> {
    let Tally { wins, draws, losses, pairs } = *tally;
    codec::encode(&([wins, draws, losses], pairs)).expect("it is far below any limit").to_vec()
}

/// The result of a strength job of this number of pairs, if it is plausible.
pub fn strength(result: &JobResult, pairs: u32) -> Option<Tally> {
    let [bytes] = &result[..] else { return None };
    let ([wins, draws, losses], scores): ([u64; 3], [u64; 5]) = codec::decode(bytes).ok()?;
    let most = 2 * u64::from(pairs);
    let is_small = [wins, draws, losses].iter().chain(&scores).all(|&count| count <= most);
    let tally = Tally { wins, draws, losses, pairs: scores };
    let halves = || (0..).zip(scores).map(|(halves, count)| halves * count).sum::<u64>();
    let adds_up = is_small && tally.games() == most && 2 * tally.pair_count() == most;
    (adds_up && 2 * wins + draws == halves()).then_some(tally)
}

/// The player file of the best of each species of a population; then, if it is wanted, that of their ensemble.
///
/// # Errors
/// If no species can be distinguished, or there are too many for an ensemble.
pub fn species(networks: &[Arc<Network>], keys: &SpeciesKeys, ensemble: bool) -> Result<JobResult, JobError> {
    let activity = Activity::current();
    let count = |done| activity.iter().for_each(|activity| activity.add(done));
    let found = Speciation::counted(networks, &speciation_settings(keys), &count).map_err(wrong)?;
    let best: Vec<Arc<Network>> =
        found.representatives().into_iter().map(|best| networks[best].clone()).collect();
    let mut files: JobResult = best.iter().map(|network| network.to_player_file()).collect();
    if ensemble {
        files.push(Ensemble::new(best).map_err(wrong)?.to_player_file());
    }
    Ok(files)
}

fn single(text: &str) -> Result<Experiment, JobError> {
    match experiment::parse("experiment.toml", text, None).map_err(wrong)? {
        Plan::Single(experiment) => Ok(*experiment),
        _ => Err(wrong("expected one experiment, found another plan")),
    }
}

fn no_players(experiment: &Experiment) -> JobError {
    let name = experiment.name();
    wrong(format!("expected a run of the problem `checkers`: the experiment `{name}` solves another problem"))
}

/// The networks of all individuals.
fn population(
    experiment: &Experiment,
    islands: &[u32],
    states: &[Bytes],
) -> Result<Vec<Arc<Network>>, JobError> {
    let ProblemSpec::Checkers(checkers) = &experiment.file().problem else {
        return Err(no_players(experiment));
    };
    let evolver = experiment.evolver();
    let mut networks = vec![];
    for (island, state) in islands.iter().zip(states) {
        for resident in evolver.residents(*island, state).map_err(wrong)? {
            let weights: Vec<f32> = resident.genome.iter().map(|&gene| gene as f32).collect();
            networks.push(Arc::new(Network::new(checkers.architecture(), &weights).map_err(wrong)?));
        }
    }
    Ok(networks)
}

/// How species are distinguished.
fn speciation_settings(keys: &SpeciesKeys) -> SpeciationSettings {
    SpeciationSettings {
        distance: match keys.distance {
            DistanceKey::Weights => Distance::Weights,
            DistanceKey::Behaviour => Distance::BEHAVIOUR,
        },
        epsilon: keys.epsilon,
        min_points: keys.min_points as usize,
        noise: match keys.noise {
            NoiseKey::Drop => Noise::Drop,
            NoiseKey::Own => Noise::Own,
            NoiseKey::Nearest => Noise::Nearest,
        },
        depth: keys.depth,
        pairs: keys.pairs as usize,
        race: keys.race,
        style: Style { history: keys.history, quiescence: keys.quiescence, ties: keys.ties.of_games() },
        ..SpeciationSettings::default()
    }
}

/// What a tournament has to look up: a champion, or the species of a population, each once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookUp {
    /// `RUN`, `RUN/ISLAND` or `RUN/ISLAND@EPOCH`, as the tournament names it.
    pub reference: String,
    /// Whether the species are wanted, rather than the champion.
    pub species: bool,
}

impl LookUp {
    /// The run that it names, or the part of a study.
    pub fn run(&self) -> &str {
        let end = self.reference.find(['/', '@']).unwrap_or(self.reference.len());
        &self.reference[..end]
    }
}

/// What a tournament has to look up before its first game, in a fixed order.
pub fn look_ups(tournament: &Tournament) -> Vec<LookUp> {
    let mut wanted: Vec<LookUp> = tournament.players().iter().filter_map(look_up).collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// What a study's tournament has to look up in runs that are none of its parts, before the study begins. It becomes a part of
/// the study: what such a run does later changes nothing.
pub fn outside_look_ups(study: &Study) -> Vec<LookUp> {
    let all = study.tournament.as_ref().map(look_ups).unwrap_or_default();
    let is_of_part = |one: &LookUp| study.parts.iter().any(|part| part.name == one.run());
    all.into_iter().filter(|one| !is_of_part(one)).collect()
}

fn look_up(player: &PlayerKeys) -> Option<LookUp> {
    if !player.is_looked_up() || player.digest().is_some() {
        return None;
    }
    let population = player.representatives.as_ref().or(player.ensemble.as_ref());
    let reference = population.or(player.player.as_ref())?.clone();
    Some(LookUp { reference, species: population.is_some() })
}

/// Whether an ensemble is made of a population.
pub fn wants_ensemble(tournament: &Tournament, look_up: &LookUp) -> bool {
    let mut players = tournament.players().iter();
    look_up.species && players.any(|player| player.ensemble.as_ref() == Some(&look_up.reference))
}

/// Whether this can be the result of a look-up: the right number of files, each of them a player.
pub fn is_found(tournament: &Tournament, look_up: &LookUp, result: &JobResult) -> bool {
    let least = 1 + usize::from(wants_ensemble(tournament, look_up));
    let is_enough = if look_up.species { result.len() >= least } else { result.len() == 1 };
    is_enough && result.iter().all(|file| PlayerFile::from_bytes(file).is_ok())
}

/// Whether this can be the guests of an experiment: one file.
pub fn are_guests(result: &JobResult) -> bool {
    matches!(&result[..], [guests] if !guests.is_empty())
}

/// The tournament with all players looked up, and their player files by their digests.
///
/// # Errors
/// If the tournament does not allow these players, or what was found are none.
pub fn resolve(
    tournament: &Tournament,
    found: &BTreeMap<LookUp, JobResult>,
) -> Result<(Tournament, BTreeMap<Digest, Bytes>), Box<Diagnostics>> {
    let mut files = BTreeMap::new();
    let mut players = vec![];
    for player in tournament.players() {
        let Some((look_up, result)) = look_up(player).and_then(|one| found.get_key_value(&one)) else {
            players.push(player.clone());
            continue;
        };
        let mut known = |bytes: &[u8]| {
            let digest = Digest::of(bytes);
            files.insert(digest, Bytes::copy_from_slice(bytes));
            PlayerKeys { digest: Some(digest.to_string()), ..player.clone() }
        };
        if player.representatives.is_some() {
            let best = result.len().saturating_sub(usize::from(wants_ensemble(tournament, look_up)));
            players.extend(result.iter().take(best).zip(1..).map(|(file, number)| PlayerKeys {
                name: format!("{}.{number}", player.name),
                team: Some(player.team().to_owned()),
                ..known(file)
            }));
        } else {
            players.extend(result.last().map(|file| known(file)));
        }
    }
    Ok((tournament.with_players(players).map_err(Box::new)?, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tallies_that_add_up_are_taken() {
        let tally = Tally { wins: 3, draws: 2, losses: 1, pairs: [0, 0, 1, 2, 0] };
        let result = |tally: &Tally| vec![tally_bytes(tally)];
        assert_eq!(strength(&result(&tally), 3), Some(tally));
        assert_eq!(strength(&result(&tally), 2), None, "other pairs");
        for wrong in [
            Tally { wins: 4, ..tally },
            Tally { wins: 4, losses: 0, ..tally },
            Tally { pairs: [0, 0, 2, 1, 0], ..tally },
            Tally { wins: u64::MAX, ..tally },
        ] {
            assert_eq!(strength(&result(&wrong), 3), None, "{wrong:?}");
        }
        assert_eq!(strength(&vec![], 3), None);
        assert_eq!(strength(&vec![vec![1, 2]], 3), None);
    }
}
