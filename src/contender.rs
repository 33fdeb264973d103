//! Players as they are named on the command line: `material`, `random`, a player file, or a run's champion.

use crate::failure::Failure;
use crate::store_argument::{StoreArgument, run_id};
use checkers::{Network, NodeKind, PlayerFile, PlayerSpec};
use coordinator::states::States;
use problems::ProblemSpec;
use std::path::Path;
use std::sync::Arc;

/// What a player may be called, for `--help`.
pub(crate) const HELP: &str = "`material`, `random`, a player file, or a champion of a run: `RUN`, `RUN/ISLAND` or \
                               `RUN/ISLAND@EPOCH`";

/// The player of this name, looking so many plies ahead.
pub(crate) async fn load(name: &str, depth: u32, store: &StoreArgument) -> Result<PlayerSpec, Failure> {
    match name {
        "material" => Ok(PlayerSpec::Material { depth }),
        "random" => Ok(PlayerSpec::Random),
        path if Path::new(path).is_file() => {
            let refused = |error| Failure::Config(format!("{path}: {error}"));
            Ok(PlayerFile::load(Path::new(path)).map_err(refused)?.player(depth))
        }
        reference => {
            let network = Arc::new(Reference::parse(reference)?.champion(store).await?);
            Ok(PlayerSpec::Network { network, depth })
        }
    }
}

/// A champion by the run it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) run: String,
    pub(crate) island: Option<u32>,
    /// The last one that is stored unless given.
    pub(crate) epoch: Option<u64>,
}

impl Reference {
    /// `RUN`, `RUN/ISLAND` or `RUN/ISLAND@EPOCH`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let refused = || Failure::Usage(format!("expected {HELP}, found `{text}`"));
        let (rest, epoch) = match text.split_once('@') {
            Some((rest, epoch)) => (rest, Some(epoch.parse().map_err(|_| refused())?)),
            None => (text, None),
        };
        let (run, island) = match rest.split_once('/') {
            Some((run, island)) => (run, Some(island.parse().map_err(|_| refused())?)),
            None => (rest, None),
        };
        Ok(Self { run: run.to_owned(), island, epoch })
    }

    /// The island, which may be left out where there is only one.
    pub(crate) fn island(&self, states: &States) -> Result<u32, Failure> {
        let count = states.islands();
        match self.island {
            Some(island) if island < count => Ok(island),
            None if count == 1 => Ok(0),
            _ => Err(Failure::Usage(format!(
                "expected an island of {run} from 0 to {}, such as `{run}/0`, found {}",
                count - 1,
                self.island.map_or("none".to_owned(), |island| format!("`{island}`")),
                run = self.run,
            ))),
        }
    }

    /// The epoch, whose state must be stored.
    pub(crate) fn epoch(&self, states: &States, island: u32) -> Result<u64, Failure> {
        let epochs = states.epochs(island);
        let found = match self.epoch {
            Some(epoch) => epochs.iter().copied().find(|&stored| stored == epoch),
            None => epochs.last().copied(),
        };
        found.ok_or_else(|| {
            let stored: Vec<String> = epochs.iter().map(u64::to_string).collect();
            Failure::Usage(format!(
                "expected an epoch of {}/{island} whose state is stored ({}), found {}",
                self.run,
                if stored.is_empty() { "there is none yet".to_owned() } else { stored.join(", ") },
                self.epoch.map_or("none".to_owned(), |epoch| format!("`{epoch}`")),
            ))
        })
    }

    async fn champion(&self, store: &StoreArgument) -> Result<Network, Failure> {
        let states = States::open(&store.open().await?, &run_id(&self.run)?).await?;
        let kind = node_kind(&states)?;
        let island = self.island(&states)?;
        let epoch = self.epoch(&states, island)?;
        network(kind, &states.read(island, epoch).await?.champion.genome)
    }
}

/// The kind of networks that a run evolves.
pub(crate) fn node_kind(states: &States) -> Result<NodeKind, Failure> {
    match &states.experiment.file().problem {
        ProblemSpec::Checkers(checkers) => Ok(checkers.nodes.kind()),
        _ => Err(Failure::Usage(format!(
            "expected a run of the problem `checkers`, found the experiment {} of another",
            states.experiment.name()
        ))),
    }
}

/// The network of an exported genome.
pub(crate) fn network(kind: NodeKind, genome: &[f64]) -> Result<Network, Failure> {
    let weights: Vec<f32> = genome.iter().map(|&gene| gene as f32).collect();
    Network::new(kind, &weights).map_err(|error| Failure::Other(error.to_string()))
}
