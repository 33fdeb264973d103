//! Players as they are named on the command line: `material`, `random`, a player file, or a run's champion.

use crate::failure::Failure;
use crate::run_name;
use crate::store_argument::StoreArgument;
use checkers::{Architecture, Network, PlayerFile, PlayerSpec};
use experiment::document::nearest;
use problems::ProblemSpec;
use run::players::Reference;
use run::states::States;
use std::path::Path;
use store::{Store, StoreError};

/// What a player may be called, for `--help`.
pub(crate) const HELP: &str = "`material`, `random`, a player file, or a champion of a run: `RUN` (the best), \
                               `RUN/ISLAND` or `RUN/ISLAND@EPOCH`";

/// The same where no files are read.
const STORED_HELP: &str =
    "`material`, `random`, or a champion of a run: `RUN` (the best), `RUN/ISLAND` or `RUN/ISLAND@EPOCH`";

/// The player of this name, which searches `depth` plies.
pub(crate) async fn load(name: &str, depth: u32, store: &StoreArgument) -> Result<PlayerSpec, Failure> {
    match name {
        "material" => Ok(PlayerSpec::Material { depth }),
        "random" => Ok(PlayerSpec::Random),
        path if Path::new(path).is_file() => {
            let refused = |error| Failure::Config(format!("{path}: {error}"));
            Ok(PlayerFile::load(Path::new(path)).map_err(refused)?.player(depth))
        }
        text => {
            let reference = reference(text)?;
            let found = async {
                let store = store.open().await?;
                run_name::complete(&store, reference).await.map(|reference| (store, reference))
            };
            let (store, reference) = match (found.await, nearest(text, &["material", "random"])) {
                // A name that is nearly a player's, and no run's.
                (Err(_), Some(meant)) => {
                    let message = format!("there is no player `{text}`; did you mean `{meant}`?");
                    return Err(Failure::Usage(message));
                }
                // Without a store there are no runs either.
                (Err(Failure::Store(StoreError::NoSuchFolder { .. })), None) if !store.is_named() => {
                    return Err(Failure::Usage(format!("there is no player `{text}`: expected {HELP}")));
                }
                (found, _) => found?,
            };
            let champion = reference.champion(&store).await?;
            let refused = |error| Failure::Other(format!("{text}: {error}"));
            Ok(PlayerFile::from_bytes(&champion).map_err(refused)?.player(depth))
        }
    }
}

/// The player of this name that a store holds, or one that needs none; never a file of this machine.
pub(crate) async fn stored(name: &str, depth: u32, store: &Store) -> Result<PlayerSpec, Failure> {
    match name {
        "material" => Ok(PlayerSpec::Material { depth }),
        "random" => Ok(PlayerSpec::Random),
        text => {
            let refused = |_| Failure::Usage(format!("expected {STORED_HELP}, found `{text}`"));
            let reference = text.parse().map_err(refused)?;
            let champion = run_name::complete(store, reference).await?.champion(store).await?;
            let refused = |error| Failure::Other(format!("{text}: {error}"));
            Ok(PlayerFile::from_bytes(&champion).map_err(refused)?.player(depth))
        }
    }
}

/// A player, named by its run.
pub(crate) fn reference(text: &str) -> Result<Reference, Failure> {
    text.parse().map_err(|_| Failure::Usage(format!("expected {HELP}, found `{text}`")))
}

/// What the networks are like that a run evolves.
pub(crate) fn architecture(states: &States) -> Result<Architecture, Failure> {
    match &states.experiment.file().problem {
        ProblemSpec::Checkers(checkers) => Ok(checkers.architecture()),
        other => Err(Failure::Usage(format!(
            "the experiment `{}` is of the problem `{}`, not `checkers`",
            states.experiment.name(),
            other.kind()
        ))),
    }
}

/// The network of an exported genome.
pub(crate) fn network(architecture: Architecture, genome: &[f64]) -> Result<Network, Failure> {
    let weights: Vec<f32> = genome.iter().map(|&gene| gene as f32).collect();
    Network::new(architecture, &weights).map_err(|error| Failure::Other(error.to_string()))
}
