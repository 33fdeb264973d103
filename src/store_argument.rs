//! The store that a command works on.

use crate::failure::Failure;
use run::RunId;
use std::path::PathBuf;
use store::{Location, Store};

/// Where runs are kept.
#[derive(clap::Args, Clone)]
pub(crate) struct StoreArgument {
    /// The folder that holds the runs, or `s3://BUCKET/PREFIX`
    #[arg(long = "store", value_name = "PLACE", env = "ATOLL_STORE", default_value = "atoll-store")]
    pub(crate) folder: PathBuf,
}

impl StoreArgument {
    /// The store, created if it is missing.
    pub(crate) async fn create(&self) -> Result<Store, Failure> {
        create(&self.location()?).await
    }

    /// The store, which must be there.
    pub(crate) async fn open(&self) -> Result<Store, Failure> {
        open(&self.location()?).await
    }

    fn location(&self) -> Result<Location, Failure> {
        Ok(Location::parse(self.folder.as_os_str())?)
    }

    /// Whether it is the one that is meant where none is named.
    pub(crate) fn is_default(&self) -> bool {
        self.folder.as_os_str() == "atoll-store"
    }

    /// What has to be added to a command to work on the same store.
    pub(crate) fn flag(&self) -> String {
        if self.is_default() { String::new() } else { format!(" --store {}", self.folder.display()) }
    }
}

/// The store at a location, created if it is missing. One of another format is refused as a whole.
pub(crate) async fn create(location: &Location) -> Result<Store, Failure> {
    let store = Store::create_at(location).await?;
    run::stored::check_format(&store).await?;
    Ok(store)
}

/// The store at a location, which must be there, in the format that this program reads.
pub(crate) async fn open(location: &Location) -> Result<Store, Failure> {
    let store = Store::open_at(location).await?;
    run::stored::check_format(&store).await?;
    Ok(store)
}

/// A run's name as it was typed.
pub(crate) fn run_id(name: &str) -> Result<RunId, Failure> {
    Ok(RunId::new(name)?)
}
