//! `atoll checkers species`: from a population of players to its species, a picture and an ensemble.

use super::BAD_INPUT;
use crate::terminal::out;
use checkers::{EnsembleError, MAX_DEPTH, Network, PlayerFile, PlayerFileError};
use clap::ValueEnum;
use ensembles::{Distance, Settings, Speciation, SpeciationError, Summary};
use species::{Distances, Noise};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The population: player files, or folders whose `.acp` files are all taken, in the order of their names
    #[arg(required = true)]
    population: Vec<PathBuf>,
    /// By what players are alike
    #[arg(long, value_enum, default_value = "weights")]
    distance: DistanceName,
    /// How far apart neighbours may be [default: the knee of the k-distance curve]
    #[arg(long)]
    epsilon: Option<f64>,
    /// Neighbours, itself counted, that make a player the core of a species
    #[arg(long, default_value_t = Settings::default().min_points)]
    min_points: usize,
    /// What becomes of players that nobody resembles
    #[arg(long, value_enum, default_value = "drop")]
    noise: NoiseName,
    /// Moves to look ahead when the members of a species play each other
    #[arg(long, default_value_t = Settings::default().depth,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Openings that each two members play, with both colours
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Decides which openings are played, and on which positions players are compared by behaviour
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Draw the population in two dimensions
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the best of each species as one player, which decides by vote
    #[arg(long, value_name = "FILE")]
    ensemble: Option<PathBuf>,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DistanceName {
    /// Their weights
    Weights,
    /// What they say of the same positions
    Behaviour,
}

#[derive(Clone, Copy, ValueEnum)]
enum NoiseName {
    /// They belong to no species
    Drop,
    /// Each is a species of its own
    Own,
    /// They belong to the nearest species
    Nearest,
}

#[derive(Debug, thiserror::Error)]
enum SpeciesError {
    #[error("{}: {error}", path.display())]
    Player { path: PathBuf, error: PlayerFileError },
    #[error("{}: expected a folder with player files (*.acp), found none", .0.display())]
    NoPlayers(PathBuf),
    #[error("expected at most {most} players, found more", most = Distances::MOST)]
    TooMany,
    #[error(transparent)]
    Speciation(#[from] SpeciationError),
    #[error("--ensemble: {0}; `--noise drop` or a larger `--epsilon` makes fewer species")]
    Ensemble(#[from] EnsembleError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: io::Error },
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    match find(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("atoll: {error}");
            ExitCode::from(if matches!(error, SpeciesError::Write { .. }) { 1 } else { BAD_INPUT })
        }
    }
}

fn find(arguments: &Arguments) -> Result<(), SpeciesError> {
    let population = Population::of(&arguments.population)?;
    let speciation = Speciation::of(&population.networks, &arguments.settings())?;
    if let Some(path) = &arguments.ensemble {
        write(path, &speciation.ensemble(&population.networks)?.to_player_file())?;
    }
    if let Some(path) = &arguments.svg {
        write(path, speciation.picture(&arguments.title(), &population.names).as_bytes())?;
    }
    let summary = speciation.summary(&population.names);
    if arguments.json {
        out!("{}", serde_json::to_string(&summary).expect("a summary is plain data"));
    } else {
        show(&summary);
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SpeciesError> {
    std::fs::write(path, bytes).map_err(|error| SpeciesError::Write { path: path.to_owned(), error })
}

fn show(summary: &Summary) {
    let Summary { population, species, outsiders, epsilon, .. } = summary;
    let (count, outside) = (species.len(), outsiders.len());
    out!("{population} players, {count} species, {outside} of no species (epsilon {epsilon})");
    for (number, species) in species.iter().enumerate() {
        let (number, members) = (number + 1, species.standings.len());
        let Some(best) = species.standings.first() else { continue };
        let (name, wins, losses, draws) = (&best.name, best.wins, best.losses, best.draws);
        out!(
            "  {number}: {members} players, represented by {name} ({wins} won, {losses} lost, {draws} drawn)"
        );
    }
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            distance: match self.distance {
                DistanceName::Weights => Distance::Weights,
                DistanceName::Behaviour => Distance::BEHAVIOUR,
            },
            epsilon: self.epsilon,
            min_points: self.min_points,
            noise: match self.noise {
                NoiseName::Drop => Noise::Drop,
                NoiseName::Own => Noise::Own,
                NoiseName::Nearest => Noise::Nearest,
            },
            depth: self.depth,
            pairs: self.pairs as usize,
            seed: self.seed,
            ..Settings::default()
        }
    }

    fn title(&self) -> String {
        let sources: Vec<String> = self.population.iter().map(|path| path.display().to_string()).collect();
        format!("Species of {}", sources.join(", "))
    }
}

/// Networks and what they are called.
#[derive(Default)]
struct Population {
    networks: Vec<Arc<Network>>,
    names: Vec<String>,
}

impl Population {
    /// Of everything that was named, in order.
    fn of(sources: &[PathBuf]) -> Result<Self, SpeciesError> {
        let mut population = Self::default();
        for source in sources {
            if source.is_dir() {
                population.add_folder(source)?;
            } else {
                population.add_file(source)?;
            }
        }
        Ok(population)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), SpeciesError> {
        let unreadable =
            |error: io::Error| SpeciesError::Player { path: folder.to_owned(), error: error.into() };
        let mut files = vec![];
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            files.extend(
                Some(path).filter(|path| path.extension().is_some_and(|extension| extension == "acp")),
            );
        }
        files.sort();
        if files.is_empty() {
            return Err(SpeciesError::NoPlayers(folder.to_owned()));
        }
        files.iter().try_for_each(|file| self.add_file(file))
    }

    fn add_file(&mut self, path: &Path) -> Result<(), SpeciesError> {
        let file =
            PlayerFile::load(path).map_err(|error| SpeciesError::Player { path: path.to_owned(), error })?;
        if self.networks.len() + file.networks().len() > Distances::MOST {
            return Err(SpeciesError::TooMany);
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        self.names.extend(match file {
            PlayerFile::Network(_) => vec![stem.into_owned()],
            PlayerFile::Ensemble(_) => {
                (0..file.networks().len()).map(|member| format!("{stem}.{member}")).collect()
            }
        });
        self.networks.extend_from_slice(file.networks());
        Ok(())
    }
}
