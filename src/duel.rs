//! `atoll checkers match`: two players against each other, in pairs of games with colours swapped.

use crate::contender;
use crate::failure::Failure;
use crate::player::KnowledgeArguments;
use crate::progress::Counter;
use crate::store_argument::StoreArgument;
use crate::terminal::out;
use checkers::{DrawRules, Limits, MAX_DEPTH, openings};
use std::process::ExitCode;
use std::time::Duration;
use tournament::{Interval, Match, Tally, deck_pairs, playing, privileged};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(help = contender::HELP)]
    player: String,
    /// The opponent
    opponent: String,
    /// Plies to search
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Play by nodes instead of depth: positions that the playing search may visit for a move
    #[arg(long, conflicts_with = "depth", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    nodes: Option<u64>,
    /// Play by time instead of depth: milliseconds of the playing search for a move
    #[arg(long, conflicts_with_all = ["depth", "nodes"], value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: Option<u64>,
    /// Plies to search for the opponent [default: same as the player, by depth, nodes or time]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    opponent_depth: Option<u32>,
    /// Give the opponent the game's history and the endgame database with 4 pieces
    #[arg(long)]
    opponent_privileges: bool,
    /// Pairs of games, each from one of the 156 openings of the deck; more only if a player plays at random
    #[arg(long, default_value_t = 156, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pairs: u32,
    /// Seed of the players' random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten, next_help_heading = "Knowledge of the player (not of the opponent)")]
    knowledge: KnowledgeArguments,
    /// Count positions of the game so far as draws in the search
    #[arg(long, help_heading = "Knowledge of the player (not of the opponent)")]
    history: bool,
    #[command(flatten, next_help_heading = "Options")]
    store: StoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { player, opponent, depth, store, .. } = arguments;
    let opponent_depth = arguments.opponent_depth.unwrap_or(*depth);
    let player = contender::load(player, *depth, store).await?;
    let player = arguments.knowledge.inform(player, arguments.history)?;
    let opponent = contender::load(opponent, opponent_depth, store).await?;
    let opponent = if arguments.opponent_privileges {
        privileged(opponent).map_err(|error| Failure::Other(error.to_string()))?
    } else {
        opponent
    };
    let players = match (arguments.limits(), arguments.opponent_depth) {
        (None, _) => [player, opponent],
        (Some(limits), None) => [playing(player, limits), playing(opponent, limits)],
        (Some(limits), Some(_)) => [playing(player, limits), opponent],
    };
    let (players, rules, limits) = (players.map(Into::into), DrawRules::default(), None);
    let duel = Match { players, rules, limits, seed: arguments.seed };
    let (pairs, deck) = (arguments.pairs, openings().len());
    if duel.repeats_itself() && pairs as usize > deck {
        let message = format!(
            "expected at most {deck} pairs, one for each opening, found `--pairs {pairs}`: neither player leaves anything to \
             chance, so further pairs would be the same games again"
        );
        return Err(Failure::Usage(message));
    }
    let progress = Counter::new("games", 2 * u64::from(pairs));
    let tally = duel.play_counted(&deck_pairs(pairs as usize, arguments.seed), || progress.add(2));
    drop(progress);
    print(arguments, &tally);
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// What a move may take, if that is not a fixed depth.
    fn limits(&self) -> Option<Limits> {
        let time = self.milliseconds.map(Duration::from_millis);
        let limited = self.nodes.is_some() || time.is_some();
        limited.then_some(Limits { nodes: self.nodes, time, ..Limits::depth(MAX_DEPTH) })
    }

    /// How far both players look, in words.
    fn effort(&self) -> String {
        match (self.nodes, self.milliseconds) {
            (Some(nodes), _) => format!("{nodes} nodes a move"),
            (_, Some(milliseconds)) => format!("{milliseconds} ms a move"),
            _ => report::text::plies(self.depth),
        }
    }
}

fn print(arguments: &Arguments, tally: &Tally) {
    let Arguments { player, opponent, depth, nodes, milliseconds, .. } = arguments;
    let (score, Interval { low, high }) = (tally.score(), tally.interval());
    if arguments.json {
        let object = serde_json::json!({
            "player": player, "opponent": opponent, "depth": depth, "nodes": nodes, "milliseconds": milliseconds,
            "opponent_depth": arguments.opponent_depth.unwrap_or(*depth), "seed": arguments.seed,
            "wins": tally.wins, "draws": tally.draws, "losses": tally.losses, "pairs": tally.pairs,
            "score": score, "low": low, "high": high,
        });
        out!("{object}");
        return;
    }
    let Tally { wins, draws, losses, .. } = tally;
    let effort = arguments.effort();
    out!("{player} against {opponent}, {effort}: {wins} won, {draws} drawn, {losses} lost");
    out!("score {score:.3}, with 95 % confidence between {low:.3} and {high:.3}");
}
