//! `atoll ratings`: the champions of a run's milestones in a tournament, so that one sees whether evolution progressed,
//! and when it stopped.

use crate::drive::{self, Ending, Wish};
use crate::failure::Failure;
use crate::protection::Credentials;
use crate::remote::{self, Remote, SILENCE};
use crate::run::How;
use crate::run_name;
use crate::signals::Signals;
use crate::terminal::{message, out};
use crate::tournament::{self, Outcome, PlayedTournament};
use ::tournament::Rating;
use evolution::epoch::ChampionView;
use experiment::file::ExperimentFile;
use experiment::tournament::{ConsultKey, MAX_PLAYERS, PlayerKeys, TournamentKeys};
use experiment::{Plan, Tournament};
use problems::{Checkers, Consult, ProblemSpec, Ties};
use proto::v1::SubmitRequest;
use proto::v1::run_status::State;
use run::export::{self, Parts};
use run::finished::best_champion;
use run::states::States;
use run::{LabelChange, RunId};
use serde::Deserialize;
use serde_json::json;
use std::process::ExitCode;

/// How often, of all that is said of a run, something may be called progress that is none.
const DOUBT: f64 = 0.05;
/// Those who play beside the champions.
const BENCHMARKS: [&str; 2] = ["material", "random"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run whose champions are rated
    run: String,
    /// Rate the champions of this island; may be given several times [default: the island of the fittest champion]
    #[arg(long, value_name = "N")]
    island: Vec<u32>,
    /// Rate the champions of all islands
    #[arg(long, conflicts_with = "island")]
    all_islands: bool,
    /// Maximum number of milestones of each island, including the first and the last
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    milestones: u32,
    /// Plies to search
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    depth: u32,
    /// Openings that each pair of players plays with both colours
    #[arg(long, default_value_t = 39, value_parser = clap::value_parser!(u32).range(1..=156))]
    openings: u32,
    /// Rate a run of a coordinator, by its workers, instead of one of a local store; also `ATOLL_COORDINATOR`
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    #[command(flatten)]
    how: How,
}

/// The champion of an island after an epoch.
struct Milestone {
    island: u32,
    epoch: u64,
    /// Its place among the players: champions that did not change are one.
    player: usize,
}

/// Who plays, and whose champions they are.
#[derive(Default)]
struct Field {
    players: Vec<PlayerKeys>,
    milestones: Vec<Milestone>,
    islands: Vec<u32>,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(url) = remote::chosen(arguments.coordinator.as_ref(), &arguments.how.store) {
        return run_there(&url, arguments).await;
    }
    let store = arguments.how.store.open().await?;
    let run = run_name::find(&store, &arguments.run).await?;
    let states = States::open(&store, &run).await?;
    let mut field = Field::of(&states, &run, arguments).await?;
    // As a coordinator looks them up: it is the same tournament there, with the same digest.
    let plan = Plan::Tournament(Box::new(field.tournament(arguments)?));
    let (plan, files) = tournament::look_up_plan(plan, &arguments.how).await?;
    let (plan, files) = (Box::new(plan), files.into_values().collect());
    let wish = Wish::Submit { plan, files, fresh: false, labels: LabelChange::default() };
    let mut signals = Signals::listen()?;
    let driven = drive::here(&store, wish, &arguments.how, &mut signals).await?;
    if driven.ending == Ending::Stopped {
        message!("stopped; all completed work is kept: resume with the same command");
        return Ok(ExitCode::from(signals.exit_code()));
    }
    let played = PlayedTournament::read(&store, &driven.run).await?;
    let outcome = Outcome::of(&played.progress).expect("it is a tournament's");
    field.join_equals(outcome.plan.players());
    field.print(&run, &played.run, &outcome, arguments.how.json);
    Ok(ExitCode::SUCCESS)
}

/// The same by a coordinator: it looks the champions up, and its workers play.
async fn run_there(url: &str, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut remote = Remote::connect(url, &arguments.credentials).await?;
    let run = RunId::new(remote.find(&arguments.run).await?)?;
    let parts = remote.parts(run.as_str()).await?;
    let mut field = Field::sent(&parts, &run, arguments)?;
    let (file, text) = ("ratings.toml".to_owned(), field.tournament(arguments)?.text().to_owned());
    let request =
        SubmitRequest { file, text, seed: None, priority: None, fresh: false, ..SubmitRequest::default() };
    let games = RunId::new(remote.submit(request).await?)?;
    let mut signals = Signals::listen()?;
    let status = tokio::select! {
        status = remote.watch(games.as_str(), SILENCE) => status?,
        () = signals.asked() => {
            message!("stopped waiting; the games continue: run the same command again");
            return Ok(ExitCode::from(signals.exit_code()));
        }
    };
    if status.state() != State::Finished {
        return Err(Failure::Other(format!("the games {games} did not finish: {}", status.reason)));
    }
    let progress = export::progress(games.as_str(), &remote.parts(games.as_str()).await?);
    let progress = progress.ok_or_else(|| unreadable(&games))?;
    let outcome = Outcome::of(&progress).ok_or_else(|| unreadable(&games))?;
    field.join_equals(outcome.plan.players());
    field.print(&run, &games, &outcome, arguments.how.json);
    Ok(ExitCode::SUCCESS)
}

fn unreadable(run: &RunId) -> Failure {
    Failure::Other(format!("what the coordinator sent of {run} cannot be read: is it of this version?"))
}

/// The islands that the command line names; nothing if it leaves them open.
fn named_islands(count: u32, run: &RunId, arguments: &Arguments) -> Result<Option<Vec<u32>>, Failure> {
    if let Some(missing) = arguments.island.iter().find(|&&island| island >= count) {
        let last = count.saturating_sub(1);
        let message = format!("expected an island of `{run}` from 0 to {last}, found `--island {missing}`");
        return Err(Failure::Usage(message));
    }
    if arguments.all_islands {
        return Ok(Some((0..count).collect()));
    }
    let mut chosen = arguments.island.clone();
    chosen.sort_unstable();
    chosen.dedup();
    Ok((!chosen.is_empty()).then_some(chosen))
}

/// The islands that are asked for; by default the one whose last champion is the fittest, of equals the first found.
async fn islands(states: &States, run: &RunId, arguments: &Arguments) -> Result<Vec<u32>, Failure> {
    let count = states.islands();
    if let Some(named) = named_islands(count, run, arguments)? {
        return Ok(named);
    }
    let (mut islands, mut champions) = (vec![], vec![]);
    for island in 0..count {
        let Some(&last) = states.epochs(island).last() else { continue };
        islands.push(island);
        champions.push(states.read(island, last).await?.champion);
    }
    Ok(best_champion(&champions).map(|best| islands[best]).into_iter().collect())
}

/// What a coordinator sends of an evolution, as far as it matters here.
#[derive(Deserialize)]
struct SentRun {
    experiment: ExperimentFile,
    champions: Vec<SentChampion>,
}

#[derive(Deserialize)]
struct SentChampion {
    island: u32,
    /// Nothing where it is not finite.
    fitness: Option<f64>,
    generation: u64,
}

impl Field {
    /// The champions of a run that a coordinator has sent: by name, for it to look up.
    fn sent(parts: &Parts, run: &RunId, arguments: &Arguments) -> Result<Self, Failure> {
        let sent = parts.get("run.json").and_then(|json| serde_json::from_slice::<SentRun>(json).ok());
        let (sent, epochs) = sent.zip(export::epochs(parts)).ok_or_else(|| unreadable(run))?;
        let ProblemSpec::Checkers(spec) = &sent.experiment.problem else {
            return Err(no_players(run, &sent.experiment.problem));
        };
        let islands = named_islands(epochs.len() as u32, run, arguments)?.unwrap_or_else(|| {
            let view = |champion: &SentChampion| ChampionView {
                fitness: champion.fitness.unwrap_or(f64::NEG_INFINITY),
                generation: champion.generation,
                genome: vec![],
            };
            let views: Vec<ChampionView> = sent.champions.iter().map(view).collect();
            best_champion(&views).map(|best| sent.champions[best].island).into_iter().collect()
        });
        let mut field = Self { islands, ..Self::default() };
        for island in field.islands.clone() {
            let stored = epochs.get(island as usize).map_or(&[][..], Vec::as_slice);
            field.add(run, island, &spread(stored, arguments.milestones as usize), spec);
        }
        field.finish(run)
    }

    /// The tournament of all of them and the benchmarks.
    fn tournament(&mut self, arguments: &Arguments) -> Result<Tournament, Failure> {
        for benchmark in BENCHMARKS {
            let (name, player) = (benchmark.to_owned(), Some(benchmark.to_owned()));
            self.players.push(PlayerKeys { name, player, ..PlayerKeys::default() });
        }
        let keys = TournamentKeys {
            openings: arguments.openings,
            depth: arguments.depth,
            ..TournamentKeys::new(self.players.clone())
        };
        Ok(Tournament::new("ratings", 0, keys)?)
    }

    /// Takes those for one player that turned out to be the same.
    fn join_equals(&mut self, looked_up: &[PlayerKeys]) {
        for (player, found) in self.players.iter_mut().zip(looked_up) {
            player.digest.clone_from(&found.digest);
        }
        for milestone in &mut self.milestones {
            let own = &self.players[milestone.player].digest;
            let first = self.players.iter().position(|player| player.digest == *own);
            milestone.player = first.unwrap_or(milestone.player);
        }
    }

    async fn of(states: &States, run: &RunId, arguments: &Arguments) -> Result<Self, Failure> {
        let ProblemSpec::Checkers(spec) = &states.experiment.file().problem else {
            return Err(no_players(run, &states.experiment.file().problem));
        };
        let islands = islands(states, run, arguments).await?;
        let mut field = Self { islands, ..Self::default() };
        for island in field.islands.clone() {
            let epochs = spread(&states.epochs(island), arguments.milestones as usize);
            field.add(run, island, &epochs, spec);
        }
        field.finish(run)
    }

    /// The field with all champions in it.
    fn finish(mut self, run: &RunId) -> Result<Self, Failure> {
        self.islands.retain(|island| self.milestones.iter().any(|milestone| milestone.island == *island));
        self.check(run)?;
        Ok(self)
    }

    fn check(&self, run: &RunId) -> Result<(), Failure> {
        let (most, found, islands) = (MAX_PLAYERS - BENCHMARKS.len(), self.players.len(), self.islands.len());
        let message = match found {
            0 => format!("expected a run with champions of milestones, found none in `{run}`"),
            found if found > most => format!(
                "expected at most {most} champions, found {found} on {islands} islands: choose islands by `--island`, or \
                 rate fewer of each with `--milestones`"
            ),
            _ => return Ok(()),
        };
        Err(Failure::Usage(message))
    }

    /// Adds the champions of an island after these epochs, by name. They play with what they knew when they evolved.
    fn add(&mut self, run: &RunId, island: u32, epochs: &[u64], spec: &Checkers) {
        for epoch in epochs.iter().copied() {
            let (name, player) = (format!("{island}@{epoch}"), Some(format!("{run}/{island}@{epoch}")));
            self.milestones.push(Milestone { island, epoch, player: self.players.len() });
            self.players.push(PlayerKeys { name, player, ..knowledge(spec) });
        }
    }

    fn print(&self, run: &RunId, games: &RunId, outcome: &Outcome<'_>, json: bool) {
        let progress: Vec<Progressed> =
            self.islands.iter().map(|&island| self.progress(island, outcome)).collect();
        if json {
            let rated = |milestone: &Milestone| {
                let Milestone { island, epoch, player } = milestone;
                json!({ "island": island, "epoch": epoch, "rating": outcome.ratings.of_player(*player) })
            };
            let milestones: Vec<_> = self.milestones.iter().map(rated).collect();
            let progress: Vec<_> = progress.iter().map(Progressed::to_json).collect();
            let object = json!({ "run": run.as_str(), "tournament": games.as_str(), "milestones": milestones,
                                 "benchmarks": self.benchmarks(outcome), "progress": progress,
                                 "comparisons": self.comparisons(), "confidence": 1.0 - DOUBT });
            out!("{object}");
            return;
        }
        out!("| island | epoch | Elo | 95 % |\n|---|---|---|---|");
        for Milestone { island, epoch, player } in &self.milestones {
            let Rating { elo, low, high } = outcome.ratings.of_player(*player);
            out!("| {island} | {epoch} | {elo:.0} | {low:.0} to {high:.0} |");
        }
        for (name, Rating { elo, low, high }) in self.benchmarks(outcome) {
            out!("| {name} | | {elo:.0} | {low:.0} to {high:.0} |");
        }
        for island in &progress {
            out!("{}", island.sentence());
        }
        match self.comparisons() {
            0 => {}
            1 => out!("significance: 95 % confidence"),
            more => {
                out!("significance: 95 % confidence for all {more} comparisons of champions together");
            }
        }
        out!("games: {games}");
    }

    fn benchmarks(&self, outcome: &Outcome<'_>) -> Vec<(String, Rating)> {
        let last = self.players.iter().enumerate().filter(|(_, player)| player.digest.is_none());
        last.map(|(at, player)| (player.name.clone(), outcome.ratings.of_player(at))).collect()
    }

    /// The champions of an island, each once, in the order of their milestones.
    fn champions(&self, island: u32) -> Vec<&Milestone> {
        let mut champions: Vec<&Milestone> = vec![];
        for milestone in self.milestones.iter().filter(|milestone| milestone.island == island) {
            if champions.iter().all(|known| known.player != milestone.player) {
                champions.push(milestone);
            }
        }
        champions
    }

    /// How many comparisons could be called progress: those of each two champions of an island, because which of them are
    /// compared depends on what came out before.
    fn comparisons(&self) -> usize {
        let pairs = |&island: &u32| {
            let champions = self.champions(island).len();
            champions * champions.saturating_sub(1) / 2
        };
        self.islands.iter().map(pairs).sum()
    }

    /// How sure a single comparison must be so that all of them together are (Bonferroni).
    fn sure(&self) -> f64 {
        1.0 - DOUBT / self.comparisons().max(1) as f64
    }

    /// How far an island's champions became significantly stronger.
    fn progress(&self, island: u32, outcome: &Outcome<'_>) -> Progressed {
        let sure = self.sure();
        let is_stronger = |one: &Milestone, other: &Milestone| {
            outcome.ratings.superiority(one.player, other.player) >= sure
        };
        let own: Vec<&Milestone> =
            self.milestones.iter().filter(|milestone| milestone.island == island).collect();
        let (peak, after) = climb(&own, |one, other| is_stronger(one, other));
        let elo = |milestone: &Milestone| outcome.ratings.of_player(milestone.player).elo;
        let (first, peak) = (own[0], own[peak]);
        Progressed { island, from: first.epoch, to: peak.epoch, gain: elo(peak) - elo(first), after }
    }
}

/// The place of the last that was stronger than the strongest before it, and how many came after it.
fn climb<T>(milestones: &[T], is_stronger: impl Fn(&T, &T) -> bool) -> (usize, u32) {
    let mut peak = 0;
    for at in 1..milestones.len() {
        if is_stronger(&milestones[at], &milestones[peak]) {
            peak = at;
        }
    }
    (peak, (milestones.len() - 1 - peak) as u32)
}

/// Only those who play can be rated.
fn no_players(run: &RunId, problem: &ProblemSpec) -> Failure {
    Failure::Usage(format!("`{run}` is a run of the problem `{}`, not `checkers`", problem.kind()))
}

/// A player with what those know who evolve, and who searches as they do.
fn knowledge(spec: &Checkers) -> PlayerKeys {
    let style = PlayerKeys {
        history: Some(spec.history),
        quiescence: (!spec.quiescence).then_some(false),
        ties: (spec.ties == Ties::Random).then_some(Ties::Random),
        book: spec.book.clone(),
        ..PlayerKeys::default()
    };
    let endgame = spec.endgame;
    if endgame.pieces == 0 {
        return style;
    }
    let (consult, unsure) = match endgame.consult {
        Consult::Always => (ConsultKey::Always, None),
        Consult::Unsure => (ConsultKey::Unsure, Some(vec![endgame.from.into(), endgame.to.into()])),
    };
    PlayerKeys { endgame: Some(endgame.pieces), consult: Some(consult), unsure, ..style }
}

/// How far an island came.
struct Progressed {
    island: u32,
    from: u64,
    to: u64,
    gain: f64,
    /// Milestones after the last significant progress.
    after: u32,
}

impl Progressed {
    fn sentence(&self) -> String {
        let Self { island, from, to, gain, after } = self;
        if from == to {
            return format!(
                "island {island}: no later champion is significantly stronger than that of epoch {from}"
            );
        }
        let since = match after {
            0 => "and may continue".to_owned(),
            1 => "and one later milestone shows no progress".to_owned(),
            more => format!("and {more} later milestones show no progress"),
        };
        format!("island {island}: progress from epoch {from} to {to} ({gain:+.0} Elo), {since}")
    }

    fn to_json(&self) -> serde_json::Value {
        let Self { island, from, to, gain, after } = self;
        json!({ "island": island, "from_epoch": from, "to_epoch": to, "gain": gain, "milestones_since": after })
    }
}

/// At most `count` of these, the first and the last among them.
fn spread(epochs: &[u64], most: usize) -> Vec<u64> {
    if epochs.len() <= most {
        return epochs.to_vec();
    }
    (0..most).map(|at| epochs[at * (epochs.len() - 1) / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use problems::Endgame;

    #[test]
    fn the_first_and_the_last_milestone_are_always_rated() {
        let epochs: Vec<u64> = (0..100).collect();
        assert_eq!(spread(&epochs, 4), [0, 33, 66, 99]);
        assert_eq!(spread(&epochs[..3], 4), [0, 1, 2]);
        assert_eq!(spread(&[], 4), [0; 0]);
    }

    fn milestone(island: u32, epoch: u64, player: usize) -> Milestone {
        Milestone { island, epoch, player }
    }

    #[test]
    fn the_more_is_compared_the_surer_each_comparison_must_be() {
        let milestones = (0..8).map(|epoch| milestone(3, epoch, epoch as usize)).collect();
        let field = Field { milestones, islands: vec![3], ..Field::default() };
        assert_eq!(field.comparisons(), 28);
        assert!((field.sure() - (1.0 - 0.05 / 28.0)).abs() < 1e-12);
        // Champions that did not change are not compared.
        let milestones = vec![milestone(0, 0, 0), milestone(0, 1, 0), milestone(0, 2, 1), milestone(1, 0, 2)];
        let field = Field { milestones, islands: vec![0, 1], ..Field::default() };
        assert_eq!(field.comparisons(), 1);
    }

    #[test]
    fn progress_ends_at_the_last_that_was_stronger() {
        let stronger = |one: &i32, other: &i32| *one >= other + 10;
        assert_eq!(climb(&[0, 5, 12, 20, 15, 21], stronger), (2, 3));
        assert_eq!(climb(&[0, 10, 20], stronger), (2, 0));
        assert_eq!(climb(&[7], stronger), (0, 0));
    }

    #[test]
    fn champions_are_rated_with_what_they_knew() {
        let endgame = Endgame { pieces: 4, from: 0.5, ..Endgame::default() };
        let keys = knowledge(&Checkers { endgame, ..Checkers::default() });
        assert_eq!((keys.endgame, keys.unsure), (Some(4), Some(vec![0.5, 0.75])));
        // Without an endgame database a champion still knows the positions that were on the board.
        assert_eq!(
            knowledge(&Checkers::default()),
            PlayerKeys { history: Some(true), ..PlayerKeys::default() }
        );
        let forgetful = Checkers { history: false, ..Checkers::default() };
        assert_eq!(knowledge(&forgetful), PlayerKeys { history: Some(false), ..PlayerKeys::default() });
    }
}
