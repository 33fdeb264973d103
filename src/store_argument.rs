//! The store that a command works on.

use crate::failure::Failure;
use clap::builder::{OsStringValueParser, TypedValueParser};
use run::RunId;
use std::path::{Path, PathBuf};
use store::{Location, Store, StoreError};

/// Where runs are kept.
#[derive(clap::Args, Clone)]
pub(crate) struct StoreArgument {
    /// Folder that holds the runs, or `s3://BUCKET/PREFIX` [default: atoll-store]
    // The parser of paths takes no empty variable.
    #[arg(long = "store", value_name = "PLACE", env = "ATOLL_STORE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    named: Option<PathBuf>,
}

/// The folder of runs unless another is named.
const DEFAULT: &str = "atoll-store";

impl StoreArgument {
    /// A store that was named elsewhere, such as in a settings file.
    pub(crate) fn at(place: PathBuf) -> Self {
        Self { named: Some(place) }
    }

    /// The store, created if it is missing.
    pub(crate) async fn create(&self) -> Result<Store, Failure> {
        Ok(create(&self.location()?).await?)
    }

    /// The store, which must be there.
    pub(crate) async fn open(&self) -> Result<Store, Failure> {
        open(&self.location()?).await
    }

    fn location(&self) -> Result<Location, Failure> {
        Ok(Location::parse(self.folder().as_os_str())?)
    }

    /// The folder, or what names a bucket.
    pub(crate) fn folder(&self) -> &Path {
        self.named().unwrap_or(Path::new(DEFAULT))
    }

    /// Whether it was named, by the flag or by the environment: then it is meant, and no coordinator.
    pub(crate) fn is_named(&self) -> bool {
        self.named().is_some()
    }

    /// The place that was named. An empty variable names none.
    fn named(&self) -> Option<&Path> {
        let is_unset = || std::env::var_os("ATOLL_STORE").is_some_and(|place| place.is_empty());
        self.named.as_deref().filter(|place| !place.as_os_str().is_empty() || !is_unset())
    }

    /// What has to be added to a command to work on the same store.
    pub(crate) fn flag(&self) -> String {
        let folder = self.folder();
        if folder == Path::new(DEFAULT) { String::new() } else { format!(" --store {}", folder.display()) }
    }
}

/// The store at a location, created if it is missing. One of another format is refused as a whole.
pub(crate) async fn create(location: &Location) -> Result<Store, StoreError> {
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
