//! The players of a tournament: looked up once, and kept with its run by their digests, so that nothing else is needed to
//! play its games.

use crate::finished::best_champion;
use crate::head::RunError;
use crate::layout::{ArtifactName, NameError, Place, RunId};
use crate::states::States;
use bytes::Bytes;
use codec::Digest;
use experiment::Tournament;
use experiment::document::Diagnostics;
use experiment::tournament::ContestantError;
use std::collections::BTreeMap;
use store::{Kind, Path, Store, StoreError};

/// Player files by their digests.
pub type PlayerFiles = BTreeMap<Digest, Bytes>;

/// Why a player cannot be looked up.
#[derive(Debug, thiserror::Error)]
pub enum LookUpError {
    /// It is no reference.
    #[error("expected `RUN`, `RUN/ISLAND` or `RUN/ISLAND@EPOCH`, found `{0}`")]
    Text(String),
    /// There is no such island.
    #[error("expected an island of {run} from 0 to {last}, such as `{run}/0`, found {found}")]
    Island {
        /// The run.
        run: String,
        /// Its last island.
        last: u32,
        /// What was named.
        found: String,
    },
    /// There is no such state.
    #[error("expected an epoch of {run}/{island} whose state is stored ({stored}), found {found}")]
    Epoch {
        /// The run.
        run: String,
        /// The island.
        island: u32,
        /// The states that there are.
        stored: String,
        /// What was named.
        found: String,
    },
    /// Those who were evolved do not play.
    #[error("expected a run of the problem `checkers`: the experiment `{0}` solves another problem")]
    NoPlayers(String),
    /// No player can be made of what was found.
    #[error("{reference}: {reason}")]
    Job {
        /// What was named.
        reference: String,
        /// Why not.
        reason: String,
    },
    /// Its player file did not come along.
    #[error("player {name}: expected a player file with the digest {digest}, found none")]
    Missing {
        /// What it is called.
        name: String,
        /// Its digest.
        digest: Digest,
    },
    /// What came along is no player.
    #[error(transparent)]
    Contestant(#[from] ContestantError),
    /// A run's name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The tournament with these players.
    #[error(transparent)]
    Diagnostics(#[from] Diagnostics),
}

impl From<StoreError> for LookUpError {
    fn from(error: StoreError) -> Self {
        Self::Run(error.into())
    }
}

/// A player, named by the run that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The run.
    pub run: String,
    /// The island; the one with the best champion unless given.
    pub island: Option<u32>,
    /// The last one that is stored unless given.
    pub epoch: Option<u64>,
}

impl std::str::FromStr for Reference {
    type Err = LookUpError;

    /// `RUN`, `RUN/ISLAND` or `RUN/ISLAND@EPOCH`.
    fn from_str(text: &str) -> Result<Self, LookUpError> {
        let refused = || LookUpError::Text(text.to_owned());
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
}

impl Reference {
    /// The island that is meant: where none is named, the one with the best champion, and of equals the one that found it
    /// first.
    pub async fn island(&self, states: &States) -> Result<u32, LookUpError> {
        let count = states.islands();
        match self.island {
            Some(island) if island < count => return Ok(island),
            None if count == 1 => return Ok(0),
            Some(island) => {
                let (run, last) = (self.run.clone(), count.saturating_sub(1));
                return Err(LookUpError::Island { run, last, found: format!("`{island}`") });
            }
            None => {}
        }
        let mut champions = vec![];
        for island in 0..count {
            let epoch = self.epoch(states, island)?;
            champions.push(states.read(island, epoch).await?.champion);
        }
        Ok(best_champion(&champions).map_or(0, |best| best as u32))
    }

    /// The epoch that is meant, whose state must be stored.
    pub fn epoch(&self, states: &States, island: u32) -> Result<u64, LookUpError> {
        let epochs = states.epochs(island);
        let found = match self.epoch {
            Some(epoch) => epochs.iter().copied().find(|&stored| stored == epoch),
            None => epochs.last().copied(),
        };
        found.ok_or_else(|| {
            let stored: Vec<String> = epochs.iter().map(u64::to_string).collect();
            LookUpError::Epoch {
                run: self.run.clone(),
                island,
                stored: if stored.is_empty() { "there is none yet".to_owned() } else { stored.join(", ") },
                found: self.epoch.map_or("none".to_owned(), |epoch| format!("`{epoch}`")),
            }
        })
    }

    /// The player file of the champion.
    pub async fn champion(&self, store: &Store) -> Result<Bytes, LookUpError> {
        let states = States::open(store, &RunId::new(&self.run)?).await?;
        let island = self.island(&states).await?;
        let epoch = self.epoch(&states, island)?;
        let genome = states.read(island, epoch).await?.champion.genome;
        let file = states.experiment.file().problem.player_file(&genome);
        file.map(Bytes::from).ok_or_else(|| LookUpError::NoPlayers(states.experiment.name().to_owned()))
    }
}

/// Keeps the player files of a tournament with its run.
///
/// # Errors
/// If one is missing, or is no player.
pub async fn keep(
    store: &Store,
    run: &RunId,
    tournament: &Tournament,
    files: &PlayerFiles,
) -> Result<(), LookUpError> {
    // Once they are kept, workers rely on them.
    tournament.check_files(files)?;
    for player in tournament.players() {
        let Some(digest) = player.digest() else { continue };
        match files.get(&digest) {
            Some(bytes) => drop(store.create(&path(run, &digest), Kind::Artifact, bytes.clone()).await?),
            None if store.size(&path(run, &digest)).await.is_ok() => {}
            None => return Err(LookUpError::Missing { name: player.name.clone(), digest }),
        }
    }
    Ok(())
}

/// The player files that are kept with a run.
pub async fn read(store: &Store, run: &RunId, tournament: &Tournament) -> Result<PlayerFiles, LookUpError> {
    let mut files = PlayerFiles::new();
    for player in tournament.players() {
        let Some(digest) = player.digest() else { continue };
        let bytes = store.read(&path(run, &digest), Kind::Artifact).await?;
        if Digest::of(&bytes) != digest {
            return Err(LookUpError::Missing { name: player.name.clone(), digest });
        }
        files.insert(digest, bytes);
    }
    Ok(files)
}

fn path(run: &RunId, digest: &Digest) -> Path {
    let name = ArtifactName::new(format!("player-{digest}")).expect("a digest is plain");
    Place::Artifact(name).in_run(run)
}
