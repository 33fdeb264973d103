//! `atoll ratings`: the champions of a run's milestones in a tournament, so that one sees whether evolution progressed,
//! and when it stopped.

use crate::failure::Failure;
use crate::run::How;
use crate::store_argument::run_id;
use crate::terminal::out;
use crate::tournament::{self, Outcome, Played};
use ::tournament::Rating;
use coordinator::players::{PlayerFiles, Reference};
use coordinator::states::States;
use evolution::digest::Digest;
use experiment::Tournament;
use experiment::tournament::{PlayerKeys, TournamentKeys};
use serde_json::json;
use std::process::ExitCode;
use store::{RunId, Store};

/// How sure one must be that a champion is stronger than an earlier one to call it progress.
const SURE: f64 = 0.95;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The run whose champions are rated
    run: String,
    /// Only this island
    #[arg(long, value_name = "N")]
    island: Option<u32>,
    /// The most milestones of each island, the first and the last among them
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=100))]
    milestones: u32,
    /// Plies to look ahead
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    depth: u32,
    /// Openings of the deck that each two play with both colours
    #[arg(long, default_value_t = 39, value_parser = clap::value_parser!(u32).range(1..=156))]
    openings: u32,
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
    files: PlayerFiles,
    milestones: Vec<Milestone>,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (store, run) = (arguments.how.store.open().await?, run_id(&arguments.run)?);
    let mut field = Field::of(&store, &run, arguments).await?;
    for benchmark in ["material", "random"] {
        let (name, player) = (benchmark.to_owned(), Some(benchmark.to_owned()));
        field.players.push(PlayerKeys { name, player, ..PlayerKeys::default() });
    }
    let keys = TournamentKeys {
        openings: arguments.openings,
        depth: arguments.depth,
        ..TournamentKeys::new(field.players.clone())
    };
    let plan = Tournament::new("ratings", 0, keys)?;
    match tournament::play(&store, &plan, &field.files, false, &arguments.how).await? {
        Played::Stopped(code) => Ok(code),
        Played::Done(played) => {
            let outcome = Outcome::of(&played.progress).expect("it is a tournament's");
            field.print(&run, &played.run, &outcome, arguments.how.json);
            Ok(ExitCode::SUCCESS)
        }
    }
}

impl Field {
    async fn of(store: &Store, run: &RunId, arguments: &Arguments) -> Result<Self, Failure> {
        let states = States::open(store, run).await?;
        let islands: Vec<u32> = match arguments.island {
            Some(island) => vec![island],
            None => (0..states.islands()).collect(),
        };
        let mut field = Self::default();
        for island in islands {
            for epoch in spread(&states.epochs(island), arguments.milestones as usize) {
                let reference = Reference { run: run.to_string(), island: Some(island), epoch: Some(epoch) };
                field.add(island, epoch, reference.champion(store).await?);
            }
        }
        if field.milestones.is_empty() {
            let message = format!("expected a run with champions of milestones, found none in `{run}`");
            return Err(Failure::Usage(message));
        }
        Ok(field)
    }

    fn add(&mut self, island: u32, epoch: u64, champion: bytes::Bytes) {
        let digest = Digest::of(&champion);
        self.files.insert(digest, champion);
        let digest = Some(digest.to_string());
        let known = self.players.iter().position(|player| player.digest == digest);
        let player = known.unwrap_or(self.players.len());
        if known.is_none() {
            let name = format!("{island}@{epoch}");
            self.players.push(PlayerKeys {
                player: Some(name.clone()),
                name,
                digest,
                ..PlayerKeys::default()
            });
        }
        self.milestones.push(Milestone { island, epoch, player });
    }

    fn print(&self, run: &RunId, games: &RunId, outcome: &Outcome<'_>, json: bool) {
        if json {
            let rated = |milestone: &Milestone| {
                let Milestone { island, epoch, player } = milestone;
                json!({ "island": island, "epoch": epoch, "rating": outcome.ratings.of_player(*player) })
            };
            let milestones: Vec<_> = self.milestones.iter().map(rated).collect();
            let progress: Vec<_> =
                self.islands().map(|island| self.progress(island, outcome).to_json()).collect();
            let object = json!({ "run": run.as_str(), "tournament": games.as_str(), "milestones": milestones,
                                 "benchmarks": self.benchmarks(outcome), "progress": progress });
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
        self.islands().for_each(|island| out!("{}", self.progress(island, outcome).sentence()));
        out!("games: {games}");
    }

    fn benchmarks(&self, outcome: &Outcome<'_>) -> Vec<(String, Rating)> {
        let last = self.players.iter().enumerate().filter(|(_, player)| player.digest.is_none());
        last.map(|(at, player)| (player.name.clone(), outcome.ratings.of_player(at))).collect()
    }

    fn islands(&self) -> impl Iterator<Item = u32> {
        let mut islands: Vec<u32> = self.milestones.iter().map(|milestone| milestone.island).collect();
        islands.dedup();
        islands.into_iter()
    }

    /// How far an island's champions became stronger beyond doubt.
    fn progress(&self, island: u32, outcome: &Outcome<'_>) -> Progressed {
        let mut milestones = self.milestones.iter().filter(|milestone| milestone.island == island);
        let first = milestones.next().expect("an island has milestones");
        let (mut peak, mut after) = (first, 0);
        for milestone in milestones {
            if outcome.ratings.superiority(milestone.player, peak.player) >= SURE {
                (peak, after) = (milestone, 0);
            } else {
                after += 1;
            }
        }
        let elo = |milestone: &Milestone| outcome.ratings.of_player(milestone.player).elo;
        Progressed { island, from: first.epoch, to: peak.epoch, gain: elo(peak) - elo(first), after }
    }
}

/// How far an island came.
struct Progressed {
    island: u32,
    from: u64,
    to: u64,
    gain: f64,
    /// Milestones after the last that was better beyond doubt.
    after: u32,
}

impl Progressed {
    fn sentence(&self) -> String {
        let Self { island, from, to, gain, after } = self;
        if from == to {
            return format!(
                "island {island}: no champion is stronger than that of epoch {from} beyond doubt"
            );
        }
        let since = match after {
            0 => "and may go on".to_owned(),
            1 => "and one milestone since then shows no more".to_owned(),
            more => format!("and {more} milestones since then show no more"),
        };
        format!("island {island}: progress from epoch {from} to {to} ({gain:+.0} Elo), {since}")
    }

    fn to_json(&self) -> serde_json::Value {
        let Self { island, from, to, gain, after } = self;
        json!({ "island": island, "from_epoch": from, "to_epoch": to, "gain": gain, "milestones_since": after })
    }
}

/// So many of these, the first and the last among them.
fn spread(epochs: &[u64], most: usize) -> Vec<u64> {
    if epochs.len() <= most {
        return epochs.to_vec();
    }
    (0..most).map(|at| epochs[at * (epochs.len() - 1) / (most - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn the_first_and_the_last_milestone_are_always_rated() {
        let epochs: Vec<u64> = (0..100).collect();
        assert_eq!(spread(&epochs, 4), [0, 33, 66, 99]);
        assert_eq!(spread(&epochs[..3], 4), [0, 1, 2]);
        assert_eq!(spread(&[], 4), [0; 0]);
    }
}
