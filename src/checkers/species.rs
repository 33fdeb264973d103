//! `atoll checkers species`: from a population of players to its species, a picture and an ensemble.

use crate::contender;
use crate::failure::Failure;
use crate::run_name;
use crate::store_argument::{StoreArgument, run_id};
use crate::terminal::out;
use checkers::{MAX_DEPTH, Network, PlayerFile, PlayerFileError, Style, Ties};
use clap::ValueEnum;
use ensembles::{Distance, Speciation, SpeciationSettings, SpeciationSummary};
use experiment::document::explain;
use run::players::Reference;
use run::states::States;
use species::{Distances, Noise};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    /// The population: player files (`.acp`), folders of player files, or a run:
    /// `RUN` (all islands), `RUN/ISLAND` or `RUN/ISLAND@EPOCH`
    #[arg(required = true)]
    population: Vec<String>,
    /// What the distance of two players is computed from
    #[arg(long, value_enum, default_value = "weights")]
    distance: DistanceName,
    /// How far apart neighbours may be [default: the knee of the k-distance curve]
    #[arg(long)]
    epsilon: Option<f64>,
    /// Number of neighbours, including itself, that make a player the core of a species
    #[arg(long, default_value_t = SpeciationSettings::default().min_points)]
    min_points: usize,
    /// What to do with players that resemble no other
    #[arg(long, value_enum, default_value = "drop")]
    noise: NoiseName,
    /// Plies to search when the members of a species play each other
    #[arg(long, default_value_t = SpeciationSettings::default().depth,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    depth: u32,
    /// Openings that each two members play, with both colours
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=156))]
    pairs: u32,
    /// Leave out members that are behind the leader beyond doubt, and stop when one is left: `--pairs` is then the most
    #[arg(long)]
    race: bool,
    /// Whether they search pending captures at the leaves to their end
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "true|false")]
    quiescence: bool,
    /// Which of equally good moves they play
    #[arg(long, value_enum, default_value = "order")]
    ties: TiesName,
    /// Count positions of the game so far as draws in their search
    #[arg(long)]
    history: bool,
    /// Decides which openings are played, and on which positions players are compared by behaviour
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Draw the population in two dimensions
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the best of each species as one player, which decides by vote
    #[arg(long, value_name = "FILE")]
    ensemble: Option<PathBuf>,
    #[command(flatten)]
    store: StoreArgument,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum DistanceName {
    /// Network weights
    Weights,
    /// Evaluations of the same positions
    Behaviour,
}

#[derive(Clone, Copy, ValueEnum)]
enum NoiseName {
    /// Treat as noise, in no species
    Drop,
    /// Make each a species of its own
    Own,
    /// Add to the nearest species
    Nearest,
}

#[derive(Clone, Copy, ValueEnum)]
enum TiesName {
    /// The first of the legal moves
    Order,
    /// A random one, by game and ply
    Random,
}

pub(super) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let population = Population::of(&arguments.population, &arguments.store).await?;
    let speciation = Speciation::of(&population.networks, &arguments.settings()).map_err(refused)?;
    if let Some(path) = &arguments.ensemble {
        let ensemble = speciation.ensemble(&population.networks);
        let fewer = "`--noise drop` or a larger `--epsilon` makes fewer species";
        let ensemble = ensemble.map_err(|error| refused(format!("--ensemble: {error}; {fewer}")))?;
        write(path, &ensemble.to_player_file())?;
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
    Ok(ExitCode::SUCCESS)
}

/// An input that can't be used.
fn refused(error: impl Display) -> Failure {
    Failure::Config(error.to_string())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::Other(format!("cannot write {}: {error}", path.display())))
}

fn show(summary: &SpeciationSummary) {
    let SpeciationSummary { population, species, outsiders, epsilon, .. } = summary;
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
    fn settings(&self) -> SpeciationSettings {
        SpeciationSettings {
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
            race: self.race,
            seed: self.seed,
            style: Style {
                history: self.history,
                quiescence: self.quiescence,
                ties: match self.ties {
                    TiesName::Order => Ties::Order,
                    TiesName::Random => Ties::Random,
                },
            },
            ..SpeciationSettings::default()
        }
    }

    fn title(&self) -> String {
        format!("Species of {}", self.population.join(", "))
    }
}

/// Networks and what they are called.
#[derive(Default)]
pub(crate) struct Population {
    pub(crate) networks: Vec<Arc<Network>>,
    names: Vec<String>,
}

impl Population {
    /// Of everything that was named, in order.
    pub(crate) async fn of(sources: &[String], store: &StoreArgument) -> Result<Self, Failure> {
        let mut population = Self::default();
        for source in sources {
            let path = Path::new(source);
            if path.is_dir() {
                population.add_folder(path)?;
            } else if Self::is_of_files(source) {
                population.add_file(path)?;
            } else {
                population.add_run(&contender::reference(source)?, store).await?;
            }
        }
        Ok(population)
    }

    /// Whether a source is a file or a folder of this machine, and no run.
    pub(crate) fn is_of_files(source: &str) -> bool {
        let path = Path::new(source);
        path.is_dir() || path.is_file() || is_player_file(path)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let unreadable = |error| refused(format!("{}: {error}", folder.display()));
        let mut files = vec![];
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            files.extend(Some(entry.map_err(unreadable)?.path()).filter(|path| is_player_file(path)));
        }
        files.sort();
        if files.is_empty() {
            let expected = "expected a folder with player files (*.acp), found none";
            return Err(refused(format!("{}: {expected}", folder.display())));
        }
        files.iter().try_for_each(|file| self.add_file(file))
    }

    fn add_file(&mut self, path: &Path) -> Result<(), Failure> {
        let unreadable = |error| match error {
            PlayerFileError::Read(error) => refused(explain(path, error)),
            error => refused(format!("{}: {error}", path.display())),
        };
        let file = PlayerFile::load(path).map_err(unreadable)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match &file {
            PlayerFile::Network(network) => self.add(stem.into_owned(), network.clone()),
            PlayerFile::Ensemble(ensemble) => {
                let members = ensemble.members().iter().enumerate();
                members
                    .into_iter()
                    .try_for_each(|(at, member)| self.add(format!("{stem}.{at}"), member.clone()))
            }
        }
    }

    /// Adds the last state of an island, or of all where none is named.
    async fn add_run(&mut self, reference: &Reference, store: &StoreArgument) -> Result<(), Failure> {
        let store = store.open().await?;
        let reference = &run_name::complete(&store, reference.clone()).await?;
        let states = States::open(&store, &run_id(&reference.run)?).await?;
        let islands = match reference.island {
            None if reference.epoch.is_none() => 0..states.islands(),
            _ => reference.island(&states).await.map(|island| island..island + 1)?,
        };
        let architecture = contender::architecture(&states)?;
        for island in islands {
            let epoch = reference.epoch(&states, island)?;
            for (at, resident) in states.read(island, epoch).await?.residents.iter().enumerate() {
                let network = contender::network(architecture, &resident.genome)?;
                self.add(format!("{}/{island}.{at}", reference.run), Arc::new(network))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, network: Arc<Network>) -> Result<(), Failure> {
        if self.networks.len() == Distances::MOST {
            return Err(refused(format!("expected at most {} players, found more", Distances::MOST)));
        }
        self.names.push(name);
        self.networks.push(network);
        Ok(())
    }
}

fn is_player_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "acp")
}
