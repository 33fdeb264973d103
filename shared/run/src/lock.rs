//! Advisory locks of a store in a folder: they end with the process that holds them.
//!
//! A process that writes a run on its own locks the run. A coordinator, which may be succeeded by another while it
//! hangs, only shows that it is there; its claim to the store is what fences it. In a bucket there are no such locks:
//! there a later writer fences an earlier one with its first event.

use crate::event::Owner;
use crate::head::RunError;
use crate::layout::RunId;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;
use store::{Store, StoreError};

const LOCKS: &str = "locks";
/// No run id begins with a capital letter.
const COORDINATOR: &str = "COORDINATOR";
/// The longest description of an owner that is read.
const MAX_OWNER: u64 = 1 << 10;
/// How often a lock is tried that another process has, and how long to wait in between.
const TRIES: u32 = 5;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A lock, until it is dropped. Without a folder it holds nothing.
#[derive(Debug, Default)]
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Locks a run for one process that writes it on its own.
    ///
    /// # Errors
    /// [`RunError::Busy`] if another process has it.
    pub fn take(store: &Store, run: &RunId, owner: &Owner) -> Result<Self, RunError> {
        let Some(path) = path(store, run.as_str()) else { return Ok(Self::default()) };
        let failed = |error: io::Error| RunError::from(StoreError::failed("lock", &run.folder(), error));
        let mut file = open(&path).map_err(failed)?;
        if !is_free(&file).map_err(failed)? {
            return Err(RunError::Busy { run: run.clone(), owner: read_holder(&mut file).to_string() });
        }
        write_owner(&mut file, owner).map_err(failed)?;
        Ok(Self { _file: Some(file) })
    }

    /// Shows that a coordinator serves the store.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn serve(store: &Store, owner: &Owner) -> Result<Self, StoreError> {
        let Some(path) = path(store, COORDINATOR) else { return Ok(Self::default()) };
        let share = || -> io::Result<File> {
            let mut file = open(&path)?;
            file.lock_shared()?;
            write_owner(&mut file, owner)?;
            Ok(file)
        };
        let failed = |error: io::Error| StoreError::failed("lock", &store::Path::from(LOCKS), error);
        Ok(Self { _file: Some(share().map_err(failed)?) })
    }

    /// The coordinator that serves a store, if there is one.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn server(store: &Store) -> Result<Option<Holder>, StoreError> {
        let failed = |error: io::Error| StoreError::failed("lock", &store::Path::from(LOCKS), error);
        match path(store, COORDINATOR) {
            Some(path) if path.exists() => holder(&path).map_err(failed),
            _ => Ok(None),
        }
    }

    /// The process that writes a run on its own, if there is one.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn holder(store: &Store, run: &RunId) -> Result<Option<Holder>, StoreError> {
        let failed = |error: io::Error| StoreError::failed("lock", &run.folder(), error);
        match path(store, run.as_str()) {
            Some(path) if path.exists() => holder(&path).map_err(failed),
            _ => Ok(None),
        }
    }
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(String);

impl Holder {
    /// Whether it is this process.
    pub fn is(&self, owner: &Owner) -> bool {
        self.0 == describe(owner)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.lines().next().unwrap_or("another process"))
    }
}

fn holder(path: &PathBuf) -> io::Result<Option<Holder>> {
    let mut file = open(path)?;
    Ok(if is_free(&file)? { None } else { Some(read_holder(&mut file)) })
}

/// Locks a file, unless it is locked. A process that only looks holds the lock for a moment; an owner holds it longer.
fn is_free(file: &File) -> io::Result<bool> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK_AGAIN),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

fn path(store: &Store, name: &str) -> Option<PathBuf> {
    Some(store.folder_on_disk()?.join(LOCKS).join(name))
}

fn open(path: &PathBuf) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Whatever has the name of a lock is not waited for, and a link to another file is not followed: a lock is overwritten.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits() as i32;
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).read(true).write(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let text = format!("expected a file at `{}`, found a pipe or a device", path.display());
    Err(io::Error::other(text))
}

fn write_owner(file: &mut File, owner: &Owner) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(describe(owner).as_bytes())
}

/// A line for people, and one that distinguishes two processes with the same id.
fn describe(owner: &Owner) -> String {
    format!("{owner}\nsince {} ms after 1970\n", owner.since)
}

/// The holder of the lock may be about to write its name.
fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    // A file that cannot be read names no holder.
    let _ = file.take(MAX_OWNER).read_to_string(&mut text);
    Holder(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn owner(process: u32) -> Owner {
        Owner { version: "1".to_owned(), host: "here".to_owned(), process, since: 5 }
    }

    #[tokio::test]
    async fn a_run_is_locked_once_and_names_its_owner_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let (store, run) = (Store::local(folder.path()).await.unwrap(), RunId::new("run").unwrap());
        assert_eq!(Lock::holder(&store, &run).unwrap(), None);
        let lock = Lock::take(&store, &run, &owner(17)).unwrap();
        assert!(Lock::holder(&store, &run).unwrap().is_some_and(|holder| holder.is(&owner(17))));
        match Lock::take(&store, &run, &owner(18)) {
            Err(RunError::Busy { owner, .. }) => assert_eq!(owner, "process 17 on host `here`"),
            other => panic!("{other:?}"),
        }
        drop(lock);
        assert_eq!(Lock::holder(&store, &run).unwrap(), None);
        Lock::take(&store, &run, &owner(18)).unwrap();
    }

    #[tokio::test]
    async fn a_link_in_place_of_a_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, run) = (Store::local(folder.path()).await.unwrap(), RunId::new("run").unwrap());
        let other = folder.path().join("other");
        fs::write(&other, "precious").unwrap();
        fs::create_dir(folder.path().join(LOCKS)).unwrap();
        for name in ["run", COORDINATOR] {
            std::os::unix::fs::symlink(&other, folder.path().join(LOCKS).join(name)).unwrap();
        }
        assert!(Lock::take(&store, &run, &owner(1)).is_err());
        assert!(Lock::serve(&store, &owner(1)).is_err());
        assert_eq!(fs::read_to_string(other).unwrap(), "precious");
    }

    #[tokio::test]
    async fn several_coordinators_may_show_that_they_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::local(folder.path()).await.unwrap();
        assert_eq!(Lock::server(&store).unwrap(), None);
        let one = Lock::serve(&store, &owner(1)).unwrap();
        let two = Lock::serve(&store, &owner(2)).unwrap();
        drop(one);
        assert!(Lock::server(&store).unwrap().is_some_and(|server| server.is(&owner(2))));
        drop(two);
        assert_eq!(Lock::server(&store).unwrap(), None);
    }
}
