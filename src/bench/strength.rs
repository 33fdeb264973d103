//! `atoll bench strength`: how strong a player is, against opponents that never change.
//!
//! By depth and by nodes the result is the same on every machine. By CPU time each player is first timed on fixed
//! positions, and then plays with as many nodes as it visits in that time: a busy machine disturbs only the timing.

use crate::contender;
use crate::failure::Failure;
use crate::progress::Counter;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use ::bench::thread_cpu_seconds;
use checkers::{DrawRules, Game, Limits, MAX_DEPTH, PlayerSpec, sample_positions};
use clap::ValueEnum;
use serde_json::{Value, json};
use std::process::ExitCode;
use tournament::{
    CrossTable, Match, Rating, Ratings, Rung, RungKind, Tally, against_rung, deck_pairs, difference, ladder,
    material_rungs, performance, playing, privileged,
};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(help = contender::HELP, required_unless_present = "calibrate")]
    player: Option<String>,
    /// Equal depth: plies that both players look ahead
    #[arg(long, value_name = "PLIES", value_parser = clap::value_parser!(u32).range(1..=20))]
    depth: Option<u32>,
    /// Equal nodes: positions that the playing search of both players may visit for a move
    #[arg(long, conflicts_with = "depth", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    nodes: Option<u64>,
    /// Equal CPU time for a move, in milliseconds: each player gets the nodes it visits in that time
    #[arg(long, conflicts_with_all = ["depth", "nodes"], value_parser = clap::value_parser!(u64).range(1..=600_000))]
    milliseconds: Option<u64>,
    /// Rate a player of `--depth` plies on the whole ladder, in Elo; plain `material` at 4 plies is 0
    #[arg(long, conflicts_with_all = ["nodes", "milliseconds"])]
    ladder: bool,
    /// Knowledge of the player beside the position
    #[arg(long, value_enum, default_value_t = Privileges::All)]
    privileges: Privileges,
    /// Pairs of games against each opponent, each from one of the 156 openings of the deck with colours swapped
    #[arg(long, default_value_t = 156, value_parser = clap::value_parser!(u32).range(1..=156))]
    pairs: u32,
    /// Seed of the players' random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure the ladder itself, up to `--depth` (at least 4, default 10). Rungs are rated by games between neighbours
    #[arg(long, conflicts_with_all = ["player", "nodes", "milliseconds", "ladder"])]
    calibrate: bool,
    #[command(flatten)]
    store: StoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Privileges {
    /// The game's history, and the endgame database with 4 pieces wherever it knows the position
    All,
    /// No history and no database
    None,
}

/// Plies of the plain material player whose rating is 0.
const ZERO_PLIES: u32 = 4;

/// What a player scored against one opponent.
struct Row {
    opponent: Rung,
    /// The nodes of the player and of the opponent for a move, where time was limited.
    nodes: Option<[u64; 2]>,
    tally: Tally,
    /// Games by the reason of their end.
    draws: f64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Some(name) = arguments.player.as_deref() else {
        return calibrate(arguments);
    };
    let depth = arguments.depth.unwrap_or(4);
    let limited = arguments.nodes.is_some() || arguments.milliseconds.is_some();
    let own_depth = if limited { MAX_DEPTH } else { depth };
    let player = contender::load(name, own_depth, &arguments.store).await?;
    let player = match arguments.privileges {
        Privileges::All => privileged(player).map_err(|error| Failure::Other(error.to_string()))?,
        Privileges::None => player,
    };
    let opponents = opponents(arguments, depth);
    let mut rows = vec![];
    let progress = Counter::new("games", 2 * u64::from(arguments.pairs) * opponents.len() as u64);
    for rung in opponents {
        rows.push(meet(arguments, &player, rung, limited, &progress)?);
    }
    drop(progress);
    print(arguments, name, depth, &rows);
    Ok(ExitCode::SUCCESS)
}

/// Both kinds of material players at the same depth, or all rungs.
fn opponents(arguments: &Arguments, depth: u32) -> Vec<Rung> {
    if arguments.ladder { ladder().to_vec() } else { material_rungs(depth).to_vec() }
}

fn meet(
    arguments: &Arguments,
    player: &PlayerSpec,
    rung: Rung,
    limited: bool,
    progress: &Counter,
) -> Result<Row, Failure> {
    let rung = if limited { Rung { plies: MAX_DEPTH, ..rung } } else { rung };
    let failed = |error: checkers::EndgameError| Failure::Other(error.to_string());
    let nodes = match (arguments.nodes, arguments.milliseconds) {
        (Some(nodes), _) => Some([nodes; 2]),
        (_, Some(milliseconds)) => {
            let opponent = rung.player().map_err(failed)?;
            Some([player, &opponent].map(|one| nodes_in(one, milliseconds)))
        }
        _ => None,
    };
    let duel = against_rung(player.clone(), &rung, nodes, arguments.seed).map_err(failed)?;
    let pairs = deck_pairs(arguments.pairs as usize, arguments.seed);
    let tally = duel.play_counted(&pairs, || progress.add(2));
    let draws = tally.draws as f64 / tally.games().max(1) as f64;
    Ok(Row { opponent: rung, nodes, tally, draws })
}

/// Nodes that a player visits in `milliseconds` of CPU time, from positions of games.
fn nodes_in(player: &PlayerSpec, milliseconds: u64) -> u64 {
    const ROUNDS: u64 = 5;
    let mut player = playing(player.clone(), Limits::depth(MAX_DEPTH)).build();
    player.new_game(0);
    let seconds = milliseconds as f64 / 1000.0;
    let mut rates = vec![];
    let mut nodes = 2_000;
    for round in 0..ROUNDS {
        let (start, mut visited) = (thread_cpu_seconds(), 0);
        for position in sample_positions(round, 8) {
            let game = Game::from_position(position, DrawRules::default());
            let limits = Limits { nodes: Some(nodes), ..Limits::depth(MAX_DEPTH) };
            visited += player.think(&game, &limits).map_or(0, |thought| thought.nodes);
        }
        let rate = visited as f64 / (thread_cpu_seconds() - start).max(1e-9);
        rates.push(rate);
        nodes = ((rate * seconds) as u64).clamp(1_000, 1_000_000);
    }
    rates.sort_by(f64::total_cmp);
    ((rates[rates.len() / 2] * seconds) as u64).max(1)
}

fn print(arguments: &Arguments, name: &str, depth: u32, rows: &[Row]) {
    let met: Vec<(f64, Tally)> = rows.iter().filter_map(|row| Some((row.opponent.elo?, row.tally))).collect();
    let rating =
        if arguments.nodes.is_some() || arguments.milliseconds.is_some() { None } else { performance(&met) };
    if arguments.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect();
        out!(
            "{}",
            json!({ "player": name, "depth": depth, "nodes": arguments.nodes,
            "milliseconds": arguments.milliseconds, "seed": arguments.seed, "opponents": rows, "rating": rating })
        );
        return;
    }
    for row in rows {
        out!("{}", row.line());
    }
    if let Some(Rating { elo, low, high }) = rating {
        out!("rating {elo:+.0} Elo ({low:+.0} to {high:+.0}); plain material of 4 plies is 0");
    }
}

impl Row {
    /// What the opponent is called: where nodes end a search, plies say nothing.
    fn name(&self) -> String {
        if self.nodes.is_some() { self.opponent.name_without_plies() } else { self.opponent.name() }
    }

    fn json(&self) -> Value {
        let Tally { wins, draws, losses, pairs } = self.tally;
        let interval = self.tally.interval();
        let own = difference(&self.tally);
        json!({ "opponent": self.name(), "nodes": self.nodes, "wins": wins, "draws": draws,
            "losses": losses, "pairs": pairs, "score": self.tally.score(), "low": interval.low,
            "high": interval.high, "elo": own })
    }

    fn line(&self) -> String {
        let (score, interval, Rating { elo, low, high }) =
            (self.tally.score(), self.tally.interval(), difference(&self.tally));
        let nodes = self.nodes.map_or(String::new(), |[own, other]| format!(", {own} nodes against {other}"));
        format!(
            "{:<24} {score:.3} ({:.3} to {:.3}), {elo:+.0} Elo ({low:+.0} to {high:+.0}), {:.0} % drawn{nodes}",
            self.name(),
            interval.low,
            interval.high,
            100.0 * self.draws
        )
    }
}

/// Plays neighbouring rungs against each other: those of one kind two plies apart, and those of two kinds at most two.
fn calibrate(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let deepest = arguments.depth.unwrap_or(10);
    if deepest < ZERO_PLIES {
        let message = format!(
            "--calibrate needs `--depth` of at least {ZERO_PLIES}, because plain material of {ZERO_PLIES} plies is the zero of the \
             ladder; found `{deepest}`"
        );
        return Err(Failure::Usage(message));
    }
    // Only rungs that play are rated: to the others the model would give a rating without a game.
    let (met, others): (Vec<Rung>, Vec<Rung>) =
        ladder().iter().copied().partition(|rung| rung.plies <= deepest);
    let mut table = CrossTable::new(met.len());
    for (at, one) in met.iter().enumerate() {
        for (place, other) in met.iter().enumerate().skip(at + 1) {
            let apart = one.plies.abs_diff(other.plies);
            let are_neighbours = if one.kind == other.kind { apart == 2 } else { apart <= 2 };
            if are_neighbours {
                let failed = |error: checkers::EndgameError| Failure::Other(error.to_string());
                let players =
                    [one.player().map_err(failed)?, other.player().map_err(failed)?].map(Into::into);
                let duel = Match { players, rules: DrawRules::default(), limits: None, seed: arguments.seed };
                let tally = duel.play(&deck_pairs(arguments.pairs as usize, arguments.seed));
                message!("{} against {}: {:.3}", one.name(), other.name(), tally.score());
                table.add([at, place], &tally);
            }
        }
    }
    let ratings = Ratings::of(&table);
    let is_zero = |rung: &Rung| rung.kind == RungKind::Plain && rung.plies == ZERO_PLIES;
    let zero = met.iter().position(is_zero).map_or(0.0, |at| ratings.of_player(at).elo);
    let rated =
        (0..).zip(&met).map(|(at, rung)| Rung { elo: Some(ratings.of_player(at).elo - zero), ..*rung });
    let rungs: Vec<Rung> = rated.chain(others).collect();
    if arguments.json {
        let rungs: Vec<Value> = rungs.iter().map(rung_json).collect();
        out!(
            "{}",
            json!({ "seed": arguments.seed, "pairs": arguments.pairs, "depth": deepest, "rungs": rungs })
        );
        return Ok(ExitCode::SUCCESS);
    }
    out!("kind,plies,elo");
    for Rung { kind, plies, elo } in rungs {
        out!("{},{plies},{}", kind.name(), elo.map_or(String::new(), |elo| format!("{elo:.0}")));
    }
    Ok(ExitCode::SUCCESS)
}

fn rung_json(rung: &Rung) -> Value {
    json!({ "kind": rung.kind.name(), "plies": rung.plies, "elo": rung.elo })
}
