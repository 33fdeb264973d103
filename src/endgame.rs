//! `atoll endgame`: build the endgame database, count what is in it, and ask it.

use crate::failure::Failure;
use crate::progress::short;
use crate::terminal::{message, out};
use checkers::{BuildStep, Counts, Database, EndgameError, EndgameResult, PieceCounts, Position};
use clap::Subcommand;
use experiment::duration;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Build the database; resume if it was already started
    Build(Build),
    /// Count the wins, losses and draws of each slice
    Stats(Stats),
    /// Check random positions against the positions that follow
    Check(Check),
    /// Show the result of a position, and its best moves
    Probe(Probe),
}

/// Where the database is kept.
#[derive(clap::Args, Clone)]
pub(crate) struct Folder {
    /// The folder that holds the database
    #[arg(long = "dir", value_name = "DIR", env = "ATOLL_ENDGAME", default_value = "atoll-endgame")]
    pub(crate) path: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct Build {
    /// Largest number of pieces of both sides together
    #[arg(long, value_parser = pieces())]
    pieces: u32,
    #[command(flatten)]
    folder: Folder,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Stats {
    /// Largest number of pieces of both sides together; up to 4 are built if they are missing
    #[arg(long, value_parser = pieces())]
    pieces: u32,
    #[command(flatten)]
    folder: Folder,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct Check {
    /// Largest number of pieces of both sides together; up to 4 are built if they are missing
    #[arg(long, value_parser = pieces())]
    pieces: u32,
    /// Number of positions to check
    #[arg(long, default_value_t = 1_000_000)]
    samples: u64,
    /// Seed of the sample
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    folder: Folder,
}

#[derive(clap::Args)]
pub(crate) struct Probe {
    /// The position; with up to 4 pieces, a missing database is built
    #[arg(long)]
    fen: String,
    #[command(flatten)]
    folder: Folder,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn pieces() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(2..=i64::from(Database::MOST_PIECES))
}

pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Build(arguments) => build(arguments)?,
        Command::Stats(arguments) => stats(arguments)?,
        Command::Check(arguments) => check(arguments)?,
        Command::Probe(arguments) => probe(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn build(arguments: &Build) -> Result<(), Failure> {
    let mut progress = Progress::new();
    let database = Database::build(&arguments.folder.path, arguments.pieces, |step| {
        progress.show(step);
        true
    })?;
    let database = database.ok_or_else(|| Failure::Other("the build was stopped".to_owned()))?;
    let positions: u64 = database.slices().map(|(_, counts)| counts.positions()).sum();
    let seconds = progress.start.elapsed().as_secs_f64();
    if arguments.json {
        out!(
            "{}",
            json!({
                "pieces": arguments.pieces,
                "positions": positions,
                "found": progress.found,
                "seconds": seconds,
                "bytes": database.bytes(),
                "digest": database.digest(),
            })
        );
    } else {
        out!("{} pieces, {positions} positions in {seconds:.1} s", arguments.pieces);
        out!("  {} bytes in {}", database.bytes(), arguments.folder.path.display());
        out!("  digest {}", database.digest());
    }
    Ok(())
}

/// How far the build is, on stderr.
struct Progress {
    bar: Option<ProgressBar>,
    start: Instant,
    printed: Instant,
    found: u64,
}

impl Progress {
    const LINE_EVERY: Duration = Duration::from_secs(5);

    fn new() -> Self {
        let style =
            ProgressStyle::with_template("{bar:24.cyan} {wide_msg}").expect("the template is a constant");
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(style));
        let now = Instant::now();
        Self { bar, start: now, printed: now, found: 0 }
    }

    fn show(&mut self, step: &BuildStep) {
        self.found = step.found;
        let line = self.line(step);
        match &self.bar {
            Some(bar) if step.next.is_none() => bar.finish_and_clear(),
            Some(bar) => {
                bar.set_length(step.all);
                bar.set_position(step.done);
                bar.set_message(line);
                bar.tick();
            }
            None if self.printed.elapsed() >= Self::LINE_EVERY => {
                message!("{line}");
                self.printed = Instant::now();
            }
            None => {}
        }
    }

    fn line(&self, step: &BuildStep) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let built = step.done - step.found;
        if built == 0 {
            return format!("{} of {} positions", step.done, step.all);
        }
        let rate = built as f64 / seconds.max(1e-3);
        let next = step.next.map_or(String::new(), |slice| format!(", slice {}", slice.name()));
        let left = Duration::try_from_secs_f64((step.all - step.done) as f64 / rate.max(1.0));
        let left = left.map_or(String::new(), |left| format!(", {} left", duration::show(left)));
        format!("{} of {} positions{next}, {}/s{left}", step.done, step.all, short(rate))
    }
}

fn stats(arguments: &Stats) -> Result<(), Failure> {
    let database = open(&arguments.folder, arguments.pieces)?;
    let all = database.slices().fold(Counts::default(), |all, (_, counts)| all.plus(counts));
    if arguments.json {
        let slices: Vec<Value> = database.slices().map(|(slice, counts)| row(Some(slice), counts)).collect();
        let mut object = row(None, all);
        object["pieces"] = json!(arguments.pieces);
        object["digest"] = json!(database.digest());
        object["slices"] = json!(slices);
        out!("{object}");
        return Ok(());
    }
    out!("black white   positions        wins      losses       draws   (men+kings; black to move)");
    for (slice, counts) in database.slices() {
        let PieceCounts { black_men, black_kings, white_men, white_kings } = slice;
        out!("  {black_men}+{black_kings}   {white_men}+{white_kings} {}", columns(counts));
    }
    out!("all         {}", columns(all));
    Ok(())
}

fn columns(counts: Counts) -> String {
    let Counts { wins, losses, draws } = counts;
    format!("{:>11} {wins:>11} {losses:>11} {draws:>11}", counts.positions())
}

/// The counts of a slice, or of all, as an object.
fn row(slice: Option<PieceCounts>, counts: Counts) -> Value {
    let mut object = json!({
        "positions": counts.positions(),
        "wins": counts.wins,
        "losses": counts.losses,
        "draws": counts.draws,
    });
    if let Some(slice) = slice {
        object["black_men"] = json!(slice.black_men);
        object["black_kings"] = json!(slice.black_kings);
        object["white_men"] = json!(slice.white_men);
        object["white_kings"] = json!(slice.white_kings);
    }
    object
}

fn check(arguments: &Check) -> Result<(), Failure> {
    let Check { pieces, samples, seed, folder } = arguments;
    if let Some(position) = open(folder, *pieces)?.contradiction(*samples, *seed) {
        let found = format!("expected what the successors say, found another verdict for `{position}`");
        return Err(Failure::Other(found));
    }
    out!("{samples} positions of up to {pieces} pieces agree with their successors");
    Ok(())
}

fn probe(arguments: &Probe) -> Result<(), Failure> {
    let position: Position =
        arguments.fen.parse().map_err(|error| Failure::Config(format!("--fen: {error}")))?;
    let pieces = 32 - position.empty().count();
    if pieces > Database::MOST_PIECES {
        let most = Database::MOST_PIECES;
        return Err(Failure::Config(format!("--fen: expected at most {most} pieces, found `{pieces}`")));
    }
    let database = open(&arguments.folder, pieces.max(2))?;
    let unknown = || Failure::Other("the database does not know its own positions".to_owned());
    let verdict = database.probe(&position).ok_or_else(unknown)?;
    let best: Vec<String> =
        database.best_moves(&position).ok_or_else(unknown)?.iter().map(ToString::to_string).collect();
    let verdict = word(verdict);
    if arguments.json {
        out!("{}", json!({ "fen": position.to_string(), "verdict": verdict, "best": best }));
    } else {
        out!("{verdict} for {}, best {}", position.side_to_move(), best.join(" "));
    }
    Ok(())
}

fn word(verdict: EndgameResult) -> &'static str {
    match verdict {
        EndgameResult::Win => "win",
        EndgameResult::Draw => "draw",
        EndgameResult::Loss => "loss",
    }
}

/// The database, built on the spot if it is small and missing.
pub(crate) fn open(folder: &Folder, pieces: u32) -> Result<Database, EndgameError> {
    Database::open_or_build(&folder.path, pieces)
}
