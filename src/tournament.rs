//! Tournaments on this machine: who plays is looked up, games are played, and tables, games and a page are made of them.

mod games;
mod look_up;
mod outcome;
mod page;
mod tables;

use look_up::look_up;
pub(crate) use outcome::Outcome;

use crate::cells;
use crate::drive::Driven;
use crate::failure::Failure;
use crate::run::How;
use crate::store_argument::StoreArgument;
use crate::terminal::{out, write_out};
use archipelago::CellProgress;
use archipelago::cell::CellPlan;
use archipelago::job;
use bytes::Bytes;
use clap::Subcommand;
use experiment::Plan;
use report::Document;
use run::RunId;
use run::jobs::StoredJobs;
use run::players::PlayerFiles;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use store::Store;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the estimated strength of each player
    Table(TableArguments),
    /// Print the games as PDN
    Games(games::Arguments),
    /// Write a page with all tables, plots and games
    Page(PageArguments),
}

/// A tournament in a store.
#[derive(clap::Args)]
pub(crate) struct TournamentArgument {
    /// The run of the tournament
    run: String,
    #[command(flatten)]
    store: StoreArgument,
}

#[derive(clap::Args)]
pub(crate) struct TableArguments {
    #[command(flatten)]
    tournament: TournamentArgument,
    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one row for each pairing, as CSV
    #[arg(long)]
    csv: bool,
}

#[derive(clap::Args)]
pub(crate) struct PageArguments {
    #[command(flatten)]
    tournament: TournamentArgument,
    /// Folder to write to [default: RUN-tournament]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(crate) async fn execute(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Table(arguments) => table(&arguments).await,
        Command::Games(arguments) => games::run(&arguments).await,
        Command::Page(arguments) => page(&arguments).await,
    }
}

impl TournamentArgument {
    /// What has been played.
    async fn read(&self) -> Result<(RunId, CellProgress), Failure> {
        let store = self.store.open().await?;
        let run = crate::run_name::find(&store, &self.run).await?;
        let played = PlayedTournament::read(&store, &run).await?;
        Ok((run, *played.progress))
    }
}

fn outcome(progress: &CellProgress) -> Outcome<'_> {
    Outcome::of(progress).expect("it is a tournament's")
}

async fn table(arguments: &TableArguments) -> Result<ExitCode, Failure> {
    let (run, progress) = arguments.tournament.read().await?;
    let outcome = outcome(&progress);
    if arguments.json {
        out!("{}", object(&run, &progress, &outcome));
    } else if arguments.csv {
        write_out!("{}", outcome.pairings_csv());
    } else {
        write_out!("{}", outcome.markdown());
    }
    Ok(ExitCode::SUCCESS)
}

async fn page(arguments: &PageArguments) -> Result<ExitCode, Failure> {
    let (run, progress) = arguments.tournament.read().await?;
    let folder = arguments.to.clone().unwrap_or_else(|| PathBuf::from(format!("{run}-tournament")));
    crate::export::write_all(&folder, &files(&run, &progress, &arguments.tournament.store.flag())?)
}

/// The page of a tournament, its tables and its games, by name.
fn files(run: &RunId, progress: &CellProgress, flag: &str) -> Result<Vec<(&'static str, String)>, Failure> {
    let outcome = outcome(progress);
    let page = report::html::render(&page::document(run, progress, &outcome, flag));
    let mut files = vec![("index.html", page)];
    files.extend(tables(run, progress, &outcome)?);
    Ok(files)
}

/// The page of a tournament as far as it is played.
pub(crate) async fn document(store: &Store, run: &RunId) -> Result<report::Document, Failure> {
    Ok(PlayedTournament::read(store, run).await?.document(""))
}

/// The files beside a page: tables, everything as JSON, and all games.
fn tables(
    run: &RunId,
    progress: &CellProgress,
    outcome: &Outcome<'_>,
) -> Result<Vec<(&'static str, String)>, Failure> {
    Ok(vec![
        ("players.csv", outcome.players_csv()),
        ("teams.csv", outcome.teams_csv()),
        ("pairings.csv", outcome.pairings_csv()),
        ("tournament.json", format!("{}\n", object(run, progress, outcome))),
        ("games.pdn", games::pdn(run, progress, |_| true)?),
    ])
}

fn object(run: &RunId, progress: &CellProgress, outcome: &Outcome<'_>) -> serde_json::Value {
    let mut object = outcome.json();
    object["run"] = json!(run.as_str());
    object["digest"] = json!(progress.digest().map(|digest| digest.to_string()));
    object
}

/// Looks up who plays in a plan. What a study evolves itself it finds later.
pub(crate) async fn look_up_plan(plan: Plan, how: &How) -> Result<(Plan, PlayerFiles), Failure> {
    let (plan, mut files) = with_player_files(plan)?;
    let plan = match plan {
        Plan::Tournament(games) => {
            let (games, found) = look_up(&games, job::look_ups(&games), how).await?;
            files.extend(found);
            Plan::Tournament(Box::new(games))
        }
        Plan::Study(study) => {
            let look_ups = job::outside_look_ups(&study);
            match &study.tournament {
                Some(games) if !look_ups.is_empty() => {
                    let (games, found) = look_up(games, look_ups, how).await?;
                    files.extend(found);
                    Plan::Study(Box::new(study.with_tournament(games)))
                }
                _ => Plan::Study(study),
            }
        }
        plan => plan,
    };
    Ok((plan, files))
}

/// A plan that names player files of this machine by their digests, and these files.
pub(crate) fn with_player_files(plan: Plan) -> Result<(Plan, PlayerFiles), Failure> {
    match plan {
        Plan::Tournament(games) => {
            let (games, files) = look_up::take_files_along(&games)?;
            Ok((Plan::Tournament(Box::new(games)), files))
        }
        Plan::Study(study) => match &study.tournament {
            Some(games) => {
                let (games, files) = look_up::take_files_along(games)?;
                let is_same = files.is_empty();
                let study = if is_same { study } else { Box::new(study.with_tournament(games)) };
                Ok((Plan::Study(study), files))
            }
            None => Ok((Plan::Study(study), PlayerFiles::new())),
        },
        plan => Ok((plan, PlayerFiles::new())),
    }
}

/// The text of a plan for a coordinator elsewhere, and the player files of this machine that it names.
pub(crate) fn text_with_player_files(file: &Path, text: String) -> Result<(String, Vec<Bytes>), Failure> {
    // Whatever is wrong with it the coordinator says as well.
    let Ok(plan) = experiment::parse(&file.display().to_string(), &text, None) else {
        return Ok((text, vec![]));
    };
    let (plan, files) = with_player_files(plan)?;
    let text = match plan {
        Plan::Tournament(games) => games.text().to_owned(),
        Plan::Study(study) if !files.is_empty() => study.text,
        _ => text,
    };
    Ok((text, files.into_values().collect()))
}

/// A tournament that has come to its end.
pub(crate) struct PlayedTournament {
    pub(crate) run: RunId,
    pub(crate) progress: Box<CellProgress>,
}

/// Prints the tables of a finished tournament.
pub(crate) async fn present(store: &Store, driven: &Driven, how: &How) -> Result<ExitCode, Failure> {
    Ok(PlayedTournament::read(store, &driven.run).await?.print(driven, how))
}

impl PlayedTournament {
    /// Reads what was played.
    pub(crate) async fn read(store: &Store, run: &RunId) -> Result<Self, Failure> {
        match cells::stored(store, run).await? {
            Some(plan @ CellPlan::Tournament(_)) => {
                let stored = StoredJobs::read(store, run, plan).await?.sound(run)?;
                let progress = Box::new(stored.progress);
                Ok(Self { run: run.clone(), progress })
            }
            _ => Err(Failure::Usage(format!("expected the run of a tournament, found `{run}`"))),
        }
    }

    /// Everything as one object.
    pub(crate) fn object(&self) -> serde_json::Value {
        object(&self.run, &self.progress, &outcome(&self.progress))
    }

    /// The page, the tables and the games, by name.
    pub(crate) fn files(&self, flag: &str) -> Result<Vec<(&'static str, String)>, Failure> {
        files(&self.run, &self.progress, flag)
    }

    /// The page of it, before it is written.
    pub(crate) fn document(&self, flag: &str) -> Document {
        page::document(&self.run, &self.progress, &outcome(&self.progress), flag)
    }

    /// The files beside its page, by name.
    pub(crate) fn tables(&self) -> Result<Vec<(String, String)>, Failure> {
        let files = tables(&self.run, &self.progress, &outcome(&self.progress))?;
        Ok(files.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
    }

    /// The tables that people read.
    pub(crate) fn markdown(&self) -> String {
        outcome(&self.progress).markdown()
    }

    fn print(&self, driven: &Driven, how: &How) -> ExitCode {
        let outcome = outcome(&self.progress);
        if how.json {
            let mut object = self.object();
            object["seconds"] = json!(driven.total().as_secs_f64());
            object["session_seconds"] = json!(driven.session().as_secs_f64());
            out!("{object}");
            return ExitCode::SUCCESS;
        }
        write_out!("{}", self.markdown());
        let digest = self.progress.digest().expect("all games are played");
        out!("{} games, {}", outcome.games(), driven.shown_session());
        out!("digest {digest}");
        let (run, flag) = (&self.run, how.store.flag());
        out!("next:");
        out!("  open the report                         atoll report {run}{flag}");
        out!("  print the games as PDN                  atoll tournament games {run}{flag}");
        out!("  verify stored data and recompute games  atoll verify {run}{flag}");
        ExitCode::SUCCESS
    }
}
