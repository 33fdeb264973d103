//! `atoll checkers`: count moves, ask a player for one, find the species of a population.

pub(crate) mod species;

use crate::contender;
use crate::duel;
use crate::failure::Failure;
use crate::player::{KnowledgeArguments, PlayerError};
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use checkers::{
    DrawRules, Ensemble, EnsemblePlayer, FenError, Found, Game, Knowing, Knowledge, Limits, MAX_DEPTH,
    Material, NetworkEvaluator, Player, PlayerSpec, Position, RandomPlayer, Reuse, Search, SharpStart, Votes,
    eleven_man_starts, perft, perft_merged, sharpest, try_start,
};
use clap::Subcommand;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Count the move sequences of a given length
    Perft(Perft),
    /// Show the best move of a player
    Best(Best),
    /// Play a match between two players
    Match(duel::Arguments),
    /// Find sharp starts: positions with 11 men on each side from which few games are drawn
    Sharp(Sharp),
    /// Find the species of a population, and build an ensemble of their best
    Species(species::Arguments),
}

#[derive(clap::Args)]
pub(crate) struct Perft {
    /// The position [default: the initial one]
    #[arg(long)]
    fen: Option<String>,
    /// Length in plies
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=DEEPEST_PERFT))]
    depth: u32,
    /// Count moves that lead to the same position once
    #[arg(long)]
    merge: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Best {
    #[arg(long, help = contender::HELP)]
    player: String,
    /// The position [default: the initial one]
    #[arg(long)]
    fen: Option<String>,
    /// Plies to search
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Milliseconds after which to take the best move found so far
    #[arg(long)]
    milliseconds: Option<u64>,
    /// How many of the best moves to show; an ensemble shows all that have votes
    #[arg(long, default_value_t = 1)]
    lines: usize,
    #[command(flatten)]
    knowledge: KnowledgeArguments,
    /// Count positions of the game so far as draws in the search
    #[arg(long)]
    history: bool,
    #[command(flatten)]
    store: StoreArgument,
    /// Seed of the player's random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Sharp {
    /// How many to find
    #[arg(long, default_value_t = 312)]
    count: usize,
    /// Games from each position
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(4..=1000))]
    games: u32,
    /// Look only at every n-th position
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    every: u32,
}

/// Why a command failed: always an input that can't be used.
#[derive(Debug, thiserror::Error)]
enum InputError {
    #[error("--fen: {0}")]
    Fen(#[from] FenError),
    #[error(transparent)]
    Player(#[from] PlayerError),
    #[error("--fen: expected a position with a legal move, found `{0}`")]
    NoMove(Position),
}

/// Deeper counts would take longer than a life, and each ply takes some of the stack.
const DEEPEST_PERFT: i64 = 40;

pub(crate) async fn run(command: &Command) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Perft(arguments) => run_perft(arguments),
        Command::Best(arguments) => {
            let player = contender::load(&arguments.player, arguments.depth, &arguments.store).await?;
            run_best(arguments, player)
        }
        Command::Match(arguments) => return duel::run(arguments).await,
        Command::Sharp(arguments) => {
            run_sharp(arguments);
            Ok(())
        }
        Command::Species(arguments) => return species::run(arguments).await,
    };
    done.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::Config(error.to_string()))
}

fn position(fen: Option<&str>) -> Result<Position, FenError> {
    fen.map_or(Ok(Position::START), str::parse)
}

fn run_sharp(arguments: &Sharp) {
    let starts: Vec<Position> = eleven_man_starts().into_iter().step_by(arguments.every as usize).collect();
    // Most starts are given up after a quarter of the games: those from which nearly all are drawn, or won by one side.
    let tried = starts.par_iter().filter_map(|&position| {
        let first = try_start(position, arguments.games / 4);
        let promising = first.results[1] * 2 <= arguments.games / 4;
        promising.then(|| try_start(position, arguments.games))
    });
    let found = sharpest(tried.collect(), arguments.count);
    out!("number,fen;black won,drawn,white won");
    for (number, SharpStart { position, results: [black, drawn, white] }) in (1001..).zip(found) {
        out!("{number},{position};{black},{drawn},{white}");
    }
}

fn run_perft(arguments: &Perft) -> Result<(), InputError> {
    let position = position(arguments.fen.as_deref())?;
    let count = if arguments.merge { perft_merged } else { perft };
    let leaves = count(&position, arguments.depth);
    if arguments.json {
        let Perft { depth, merge, .. } = arguments;
        out!("{}", json!({ "fen": position.to_string(), "depth": depth, "merge": merge, "leaves": leaves }));
    } else {
        out!("{leaves}");
    }
    Ok(())
}

fn run_best(arguments: &Best, player: PlayerSpec) -> Result<(), InputError> {
    let position = position(arguments.fen.as_deref())?;
    let knowledge = arguments.knowledge.load(arguments.history)?;
    let endgames = knowledge.endgames.clone();
    let mut search = Search::with_style(TABLE_BITS, Reuse::EqualDepth, knowledge.style);
    search.follow(&Game::from_position(position, DrawRules::default()), arguments.seed);
    let limits = arguments.limits();
    let book = knowledge.book.as_ref().and_then(|book| book.choose(&position, arguments.seed));
    let found = match (book, player) {
        (Some(best), _) => Some(json!({ "best": best.to_string(), "book": true })),
        (None, PlayerSpec::Network { network, .. }) => {
            let mut own = Knowing::new(NetworkEvaluator::new(network), endgames);
            own.search(&mut search, &position, &limits).map(|found| answer(&found, &search))
        }
        (None, PlayerSpec::Material { .. }) => {
            let mut own = Knowing::new(Material { seed: arguments.seed }, endgames);
            own.search(&mut search, &position, &limits).map(|found| answer(&found, &search))
        }
        (None, PlayerSpec::Ensemble { ensemble, .. }) => vote(&ensemble, &knowledge, &position, arguments),
        (None, _) => choose_at_random(&position, arguments),
    };
    let answer = found.ok_or(InputError::NoMove(position))?;
    if arguments.json {
        out!("{answer}");
    } else {
        out!("{}", answer["best"].as_str().unwrap_or_default());
        message!("{answer:#}");
    }
    Ok(())
}

fn choose_at_random(position: &Position, arguments: &Best) -> Option<Value> {
    let mut player = RandomPlayer::new();
    player.new_game(arguments.seed);
    let best = player.choose(&Game::from_position(*position, DrawRules::default()))?;
    Some(json!({ "best": best.to_string() }))
}

/// Bits of a table that suits deep searches.
const TABLE_BITS: u32 = 20;

impl Best {
    fn limits(&self) -> Limits {
        let time = self.milliseconds.map(Duration::from_millis);
        Limits { time, lines: self.lines, ..Limits::depth(self.depth) }
    }
}

fn vote(ensemble: &Ensemble, knowledge: &Knowledge, position: &Position, arguments: &Best) -> Option<Value> {
    let mut player = EnsemblePlayer::with_limits(ensemble, knowledge, arguments.limits(), TABLE_BITS);
    let votes = player.votes(position);
    let show = |votes: &Votes| {
        json!({ "move": votes.mv.to_string(), "votes": votes.voters.len(), "voters": votes.voters,
                "score": votes.score })
    };
    let shown: Vec<Value> = votes.iter().filter(|votes| !votes.voters.is_empty()).map(show).collect();
    Some(
        json!({ "best": votes.first()?.mv.to_string(), "members": ensemble.members().len(), "votes": shown }),
    )
}

fn answer(found: &Found, search: &Search) -> Value {
    let lines: Vec<Value> = search
        .lines()
        .iter()
        .map(|line| {
            let moves: Vec<String> = line.moves.iter().map(ToString::to_string).collect();
            json!({ "score": line.score.to_string(), "value": line.score.value(), "moves": moves })
        })
        .collect();
    json!({
        "best": found.best.to_string(),
        "score": found.score.to_string(),
        "value": found.score.value(),
        "depth": found.depth,
        "nodes": found.nodes,
        "evaluations": found.evaluations,
        "lines": lines,
    })
}
