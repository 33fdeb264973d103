//! `atoll tournament games`: the games that were played, as PDN.

use super::TournamentArgument;
use crate::failure::Failure;
use crate::terminal::write_out;
use archipelago::CellProgress;
use archipelago::cell::CellPlan;
use clap::ValueEnum;
use experiment::document::nearest;
use run::RunId;
use std::process::ExitCode;
use tournament::{GameEnding, GameRecord, Points};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    tournament: TournamentArgument,
    /// Only games of this player
    #[arg(long, value_name = "NAME")]
    player: Option<String>,
    /// Only games against this player
    #[arg(long, value_name = "NAME", requires = "player")]
    opponent: Option<String>,
    /// Only games that the player (without `--player`, Black) won, lost or drew
    #[arg(long, value_enum)]
    result: Option<ResultName>,
    /// Only games that ended for this reason: `no-move`, `repetition`, `no-progress`, `too-long`, `illegal-move`, `crash`,
    /// `time` or `adjudicated`
    #[arg(long, value_parser = parse_ending)]
    reason: Option<GameEnding>,
    /// Only games from this opening, by its number in the list of the American Checker Federation, or of a
    /// sharp start
    #[arg(long, value_name = "NUMBER")]
    opening: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ResultName {
    Won,
    Lost,
    Drawn,
}

fn parse_ending(word: &str) -> Result<GameEnding, String> {
    let words: Vec<&str> = GameEnding::ALL.iter().map(|ending| ending.word()).collect();
    let found = GameEnding::ALL.into_iter().find(|ending| ending.word() == word);
    found.ok_or_else(|| format!("expected {}", words.join(", ")))
}

/// A game, and who played it.
pub(super) struct Seen<'a> {
    players: [&'a str; 2],
    game: &'a GameRecord,
}

pub(super) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (run, progress) = arguments.tournament.read().await?;
    arguments.check(&progress)?;
    write_out!("{}", pdn(&run, &progress, |seen| arguments.wants(seen))?);
    Ok(ExitCode::SUCCESS)
}

/// The games that are wanted.
pub(super) fn pdn(
    run: &RunId,
    progress: &CellProgress,
    wants: impl Fn(&Seen<'_>) -> bool,
) -> Result<String, Failure> {
    let CellPlan::Tournament(plan) = progress.plan() else { return Ok(String::new()) };
    let mut text = String::new();
    for (pairing, place, pair) in progress.games() {
        let players = plan.schedule().pairings()[pairing].map(|player| plan.players()[player].name.as_str());
        for (number, game) in pair.iter().enumerate() {
            if !wants(&Seen { players, game }) {
                continue;
            }
            let round = format!("{}.{}.{}", pairing + 1, place + 1, number + 1);
            let game = game.to_pdn(players, run.as_str(), &round);
            let game = game.map_err(|error| Failure::Other(format!("game {round}: {error}")))?;
            text.push_str(&game.to_string());
        }
    }
    Ok(text)
}

impl Arguments {
    /// Names that no player has are errors.
    fn check(&self, progress: &CellProgress) -> Result<(), Failure> {
        let CellPlan::Tournament(plan) = progress.plan() else { return Ok(()) };
        for name in self.player.iter().chain(&self.opponent) {
            if !plan.players().iter().any(|player| player.name == *name) {
                let names: Vec<&str> = plan.players().iter().map(|player| player.name.as_str()).collect();
                let meant =
                    nearest(name, &names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let message = format!(
                    "expected a player of the tournament ({}), found `{name}`{meant}",
                    names.join(", ")
                );
                return Err(Failure::Usage(message));
            }
        }
        Ok(())
    }

    fn wants(&self, seen: &Seen<'_>) -> bool {
        let Seen { players, game } = seen;
        let seat = self.player.as_ref().map(|name| players.iter().position(|player| player == name));
        // Without a player it is Black's result that counts.
        let seat = match seat {
            Some(None) => return false,
            Some(Some(seat)) => seat,
            None => usize::from(!game.first_is_black),
        };
        let opponent = self.opponent.as_ref().is_none_or(|name| players[1 - seat] == name);
        let result = match (game.points, seat) {
            (Points::Draw, _) => ResultName::Drawn,
            (Points::Win, 0) | (Points::Loss, 1) => ResultName::Won,
            _ => ResultName::Lost,
        };
        opponent
            && self.result.is_none_or(|wanted| wanted == result)
            && self.reason.is_none_or(|wanted| wanted == game.ending)
            && self.opening.is_none_or(|wanted| wanted == game.opening)
    }
}
