//! `atoll level`: single levels of either game, from a file or standard input, and those that runs have found.

mod figures;
pub(crate) mod ladder;
mod raster;
mod rung;
mod study;
mod tmx;

use crate::failure::Failure;
use crate::terminal;
use crate::terminal::message;
use clap::{Parser, Subcommand, ValueEnum};
use experiment::document::explain;
use lockkey::{AStar, Heuristic, Method, Ties};
use match3::{Game, Player};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use thiserror::Error;

/// Files larger than this are no levels.
const LARGEST: u64 = 1 << 20;

#[derive(Parser)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print a level and its properties
    Show {
        #[command(flatten)]
        source: Source,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure how hard a level is
    Rate {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        playing: Playing,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Convert a level to another format
    Export {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        playing: Playing,
        /// What to write
        #[arg(long, value_enum)]
        to: Form,
        /// Output file [default: stdout]; the tile sheet of a Tiled map is written beside it
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Write the levels that runs have found, and a page to play them on
    Ladder(ladder::Arguments),
    /// Evaluate logs of people who played levels: ranks of difficulty, scores, and the order of play
    Study(study::Arguments),
}

#[derive(clap::Args)]
struct Source {
    /// Level file, text or JSON [default: stdin]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// How a Match-3 board is played, and how A* goes through a lock-and-key level.
#[derive(clap::Args, Clone, Copy)]
struct Playing {
    #[command(flatten)]
    search: SearchArguments,
    /// Who plays a Match-3 board: random, greedy, look-ahead:DEPTH or mixture:SKILL
    #[arg(long, default_value = "random")]
    player: Player,
    /// Number of plays of a Match-3 board
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    plays: u32,
    /// The seed of the plays
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How A* chooses the next node of a lock-and-key level.
#[derive(clap::Args, Clone, Copy, Default)]
struct SearchArguments {
    /// Lock-and-key levels: how A* estimates the steps to a goal: manhattan, euclidean, chebyshev or none
    #[arg(long, default_value = "manhattan", value_parser = word::<Heuristic>)]
    heuristic: Heuristic,
    /// Lock-and-key levels: which of several nodes with equal f and h is visited first: low-cell, high-cell, oldest or
    /// newest
    #[arg(long, default_value = "low-cell", value_parser = word::<Ties>)]
    ties: Ties,
}

impl SearchArguments {
    fn astar(self) -> AStar {
        AStar { heuristic: self.heuristic, ties: self.ties }
    }
}

impl From<AStar> for SearchArguments {
    fn from(AStar { heuristic, ties }: AStar) -> Self {
        Self { heuristic, ties }
    }
}

/// A word of an experiment file as an argument.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(text.into()).map_err(|error: serde_json::Error| error.to_string())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The text form
    Text,
    /// JSON with the level's figures
    Json,
    /// A picture; a lock-and-key level has a heat map of the visited cells and the path
    Svg,
    /// The same picture in pixels; needs `--output`
    Png,
    /// A picture of the scores of a Match-3 board
    Histogram,
    /// A map for the Tiled editor: XML if the file is called `.tmx`, JSON otherwise
    Tiled,
    /// A map for the Tiled editor in XML
    Tmx,
}

#[derive(Debug, Error)]
enum Problem {
    #[error("{0}")]
    Unreadable(String),
    #[error("expected a level of at most {LARGEST} bytes in {name}, found more")]
    TooLarge { name: String },
    #[error("expected text (UTF-8) in {name}, found other bytes")]
    NotText { name: String },
    #[error("{name}: {error}")]
    Malformed { name: String, error: Box<dyn std::error::Error> },
    #[error("expected a Match-3 level for a histogram of scores, found a lock-and-key level")]
    NoScores,
    #[error("expected `--output FILE` for a picture in pixels, found none")]
    NoFile,
    #[error("cannot write {name}: {error}")]
    Unwritable { name: String, error: io::Error },
}

impl Problem {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unreadable(_) | Self::TooLarge { .. } | Self::NotText { .. } | Self::Malformed { .. } => {
                ExitCode::from(78)
            }
            Self::NoScores | Self::NoFile => ExitCode::from(2),
            Self::Unwritable { .. } => ExitCode::FAILURE,
        }
    }
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let done = match &arguments.command {
        Command::Ladder(arguments) => return ladder::run(arguments).await,
        Command::Study(arguments) => return study::run(arguments),
        Command::Show { source, json } => show(source, *json),
        Command::Rate { source, playing, json } => rate_one(source, playing, *json),
        Command::Export { source, playing, to, output } => export(source, playing, *to, output.as_deref()),
    };
    Ok(done.map_or_else(
        |problem| {
            message!("error: {problem}");
            problem.exit_code()
        },
        |()| ExitCode::SUCCESS,
    ))
}

fn show(source: &Source, json: bool) -> Result<(), Problem> {
    let level = read(source)?;
    write_out(None, &if json { line(&level.description()) } else { level.shown() })
}

fn rate_one(source: &Source, playing: &Playing, json: bool) -> Result<(), Problem> {
    let level = read(source)?;
    let rating = level.rating(playing).map_err(|error| Problem::Malformed { name: source.name(), error })?;
    write_out(None, &if json { line(&rating) } else { figures::listing(&rating) })
}

fn export(source: &Source, playing: &Playing, to: Form, output: Option<&Path>) -> Result<(), Problem> {
    let level = read(source)?;
    let is_tmx = output.and_then(Path::extension).is_some_and(|end| end.eq_ignore_ascii_case("tmx"));
    let to = if to == Form::Tiled && is_tmx { Form::Tmx } else { to };
    let written = level.exported(to, playing, &source.name())?;
    match output {
        Some(output) if to == Form::Png => return write_png(output, &written),
        None if to == Form::Png => return Err(Problem::NoFile),
        output => write_out(output, &written)?,
    }
    match output {
        Some(output) if matches!(to, Form::Tiled | Form::Tmx) => {
            let (name, sheet) = level.tile_sheet();
            write_out(Some(&output.with_file_name(name)), &sheet)
        }
        _ => Ok(()),
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

/// Keys and values, one a line.
fn listing(value: &Value) -> String {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| format!("{key:<12} {value}\n")).collect::<Vec<_>>().concat()
}

impl Source {
    fn name(&self) -> String {
        match &self.file {
            Some(file) if file.as_os_str() != "-" => file.display().to_string(),
            _ => "stdin".to_owned(),
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read>> {
        match &self.file {
            Some(file) if file.as_os_str() != "-" => Ok(Box::new(File::open(file)?)),
            _ => Ok(Box::new(io::stdin())),
        }
    }
}

fn read(source: &Source) -> Result<Level, Problem> {
    let name = source.name();
    let mut bytes = vec![];
    let read = source.open().and_then(|reader| reader.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| Problem::Unreadable(explain(Path::new(&name), error)))?;
    // No text holds a zero: the size of a program says nothing.
    if bytes.contains(&0) {
        return Err(Problem::NotText { name });
    }
    if bytes.len() as u64 > LARGEST {
        return Err(Problem::TooLarge { name });
    }
    let text = String::from_utf8(bytes).map_err(|_| Problem::NotText { name: name.clone() })?;
    Level::parse(&text).map_err(|error| Problem::Malformed { name, error })
}

fn write_out(file: Option<&Path>, text: &str) -> Result<(), Problem> {
    let Some(file) = file else {
        terminal::write(format_args!("{text}"));
        return Ok(());
    };
    let unwritable = |error| Problem::Unwritable { name: file.display().to_string(), error };
    std::fs::write(file, text).map_err(unwritable)
}

/// Writes a picture in pixels, twice as large as it is drawn.
fn write_png(file: &Path, svg: &str) -> Result<(), Problem> {
    let unwritable = |error| Problem::Unwritable { name: file.display().to_string(), error };
    std::fs::write(file, raster::to_png(svg, 2).map_err(unwritable)?).map_err(unwritable)
}

/// A level of either game.
enum Level {
    LockKey(lockkey::Level),
    Match3(match3::Level),
}

type Malformed = Box<dyn std::error::Error>;

impl Level {
    /// Detects the game by the `format` key of an object, or by the walls that only one of them has.
    fn parse(text: &str) -> Result<Self, Malformed> {
        if !text.trim_start().starts_with('{') {
            return Ok(if text.contains(['#', '<', '>']) {
                Self::LockKey(text.parse()?)
            } else {
                Self::Match3(match3::Level::of_board(text.parse()?)?)
            });
        }
        let value: Value = serde_json::from_str(text)?;
        match value["format"].as_str().unwrap_or("") {
            lockkey::FORMAT => Ok(Self::LockKey(lockkey::Level::from_json(text)?)),
            match3::FORMAT => Ok(Self::Match3(match3::Level::from_json(text)?)),
            found => Err(format!(
                "expected the format `{}` or `{}`, found `{found}`",
                lockkey::FORMAT,
                match3::FORMAT
            )
            .into()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::LockKey(level) => level.to_string(),
            Self::Match3(level) => level.board.to_string(),
        }
    }

    fn shown(&self) -> String {
        let mut description = self.description();
        if let Some(object) = description.as_object_mut() {
            object.remove("rows");
        }
        format!("{}{}", self.text(), listing(&description))
    }

    fn description(&self) -> Value {
        let rows: Vec<String> = self.text().lines().map(str::to_owned).collect();
        match self {
            Self::LockKey(level) => json!({
                "game": "lock-key",
                "width": level.grid().width(),
                "height": level.grid().height(),
                "locks": level.locks().len(),
                "keys": level.keys().len(),
                "paired": level.is_paired(),
                "fault": level.validate().err().map(|fault| fault.to_string()),
                "idle_locks": level.idle_locks(),
                "rows": rows,
            }),
            Self::Match3(level) => json!({ "game": "match3", "rules": level.rules, "rows": rows }),
        }
    }

    fn rating(&self, playing: &Playing) -> Result<Value, Malformed> {
        match self {
            Self::LockKey(level) => {
                let mut figures = json!(level.difficulty_by(playing.search.astar())?);
                merge(&mut figures, json!(level.verdict()));
                Ok(figures)
            }
            Self::Match3(level) => Ok(json!(rate(level, playing)?)),
        }
    }

    fn exported(&self, to: Form, playing: &Playing, name: &str) -> Result<String, Problem> {
        let malformed = |error: Malformed| Problem::Malformed { name: name.to_owned(), error };
        Ok(match (to, self) {
            (Form::Text, level) => level.text(),
            (Form::Json, Self::LockKey(level)) => {
                let mut object = level.to_json(None);
                object["proof"] = json!(level.verdict());
                line(&object)
            }
            (Form::Json, Self::Match3(level)) => {
                line(&level.to_json(Some(&rate(level, playing).map_err(malformed)?), None))
            }
            (Form::Svg | Form::Png, Self::LockKey(level)) => {
                level.to_svg(level.survey_by(Method::Plain, playing.search.astar()).ok().as_ref())
            }
            (Form::Svg | Form::Png, Self::Match3(level)) => level.board.to_svg(),
            (Form::Histogram, Self::LockKey(_)) => return Err(Problem::NoScores),
            (Form::Histogram, Self::Match3(level)) => histogram(level, playing).map_err(malformed)?,
            (Form::Tiled, Self::LockKey(level)) => line(&level.to_tiled()),
            (Form::Tiled, Self::Match3(level)) => line(&level.to_tiled()),
            (Form::Tmx, Self::LockKey(level)) => tmx::of_map(&level.to_tiled()),
            (Form::Tmx, Self::Match3(level)) => tmx::of_map(&level.to_tiled()),
        })
    }

    fn tile_sheet(&self) -> (&'static str, String) {
        match self {
            Self::LockKey(_) => (lockkey::TILE_SHEET, lockkey::tile_sheet()),
            Self::Match3(_) => (match3::TILE_SHEET, match3::tile_sheet()),
        }
    }
}

fn rate(level: &match3::Level, playing: &Playing) -> Result<match3::Rating, Malformed> {
    Ok(Game::new(&level.rules)?.rate(&level.board, playing.player, playing.seed, playing.plays)?)
}

fn histogram(level: &match3::Level, playing: &Playing) -> Result<String, Malformed> {
    let game = Game::new(&level.rules)?;
    let scores = game.scores(&level.board, playing.player, playing.seed, playing.plays)?;
    Ok(match3::histogram_svg(&scores, level.rules.pass))
}

fn merge(object: &mut Value, other: Value) {
    if let (Some(object), Value::Object(other)) = (object.as_object_mut(), other) {
        object.extend(other);
    }
}
