//! The local folder under a store: what `LocalFileSystem` leaves open.
//!
//! `LocalFileSystem` with fsync on creates an object as a staging file `<name>#<number>`, syncs it, hard-links it to
//! its name (which has exactly one winner), syncs the folder, and removes the staging file. Added here:
//! - the loser of a race must not report "it is there" before the winner's link is durable: [`Folder::settle`];
//! - a folder that another, perhaps killed, writer created may not be durable itself: the same;
//! - staging files of killed writers stay behind: [`Folder::sweep`];
//! - one file name that cannot be an object's must not end a listing with an error: [`Folder::list`];
//! - a pipe or a device in place of an object must not be waited for, nor read without end: [`Folder::read`];
//! - an unwritable folder, or one without hard links, is reported at once and not at the first object: [`probe`];
//! - past `RLIMIT_FSIZE` the kernel kills the process instead of failing the write: [`survive_file_size_limit`].

use crate::error::StoreError;
use object_store::path::Path;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path as FsPath, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The root of a store on the local disk. All methods block.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    /// Folders whose names are known to be durable, up to the root.
    settled: Mutex<BTreeSet<PathBuf>>,
}

/// What reading a file came to.
#[derive(Debug)]
pub(crate) enum FileRead {
    /// Its content.
    Bytes(Vec<u8>),
    /// There is no such file; a folder may have its name.
    Missing,
    /// It is a pipe, a device or a socket.
    NotAFile,
    /// It is larger than was allowed: its size in bytes.
    TooLarge(u64),
}

impl Folder {
    /// Opens a folder for writing, after creating it where it is missing.
    pub(crate) fn create(folder: &FsPath) -> Result<Self, StoreError> {
        check_name(folder)?;
        let unusable = |source| StoreError::Unusable { folder: folder.to_path_buf(), source };
        create_durably(folder).map_err(unusable)?;
        let opened = Self::open(folder)?;
        probe(&opened.root).map_err(unusable)?;
        Ok(opened)
    }

    /// Opens a folder that is already there, perhaps only to be read.
    pub(crate) fn open(folder: &FsPath) -> Result<Self, StoreError> {
        check_name(folder)?;
        let root = folder.canonicalize().map_err(|source| match source.kind() {
            ErrorKind::NotFound => StoreError::NoSuchFolder { folder: folder.to_path_buf() },
            _ => StoreError::Unusable { folder: folder.to_path_buf(), source },
        })?;
        check_name(&root)?;
        Ok(Self { root, settled: Mutex::default() })
    }

    pub(crate) fn root(&self) -> &FsPath {
        &self.root
    }

    /// Makes sure that an object that is there stays there: syncs its folder if that is not yet known to have
    /// happened, because it was `linked_by_other`, and once for each folder all folders from there to the root.
    pub(crate) fn settle(&self, object: &Path, linked_by_other: bool) -> io::Result<()> {
        let file = self.path(object);
        let parent = file.parent().unwrap_or(&self.root);
        if linked_by_other {
            sync(parent)?;
        }
        let is_settled = |folder: &FsPath| self.settled().contains(folder);
        if is_settled(parent) {
            return Ok(());
        }
        let unsettled = parent.ancestors().take_while(|folder| folder.starts_with(&self.root));
        let unsettled: Vec<&FsPath> = unsettled.take_while(|folder| !is_settled(folder)).collect();
        unsettled.iter().try_for_each(|folder| sync(folder))?;
        // The first one that is settled holds the name of the last one that was not.
        let above = unsettled.last().and_then(|folder| folder.parent());
        above.filter(|folder| folder.starts_with(&self.root)).map_or(Ok(()), sync)?;
        self.settled().extend(unsettled.into_iter().map(FsPath::to_path_buf));
        Ok(())
    }

    /// The folders whose names are known to stay, up to the root.
    fn settled(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every object below a prefix, in order.
    pub(crate) fn list(&self, prefix: &Path) -> io::Result<Vec<Path>> {
        let mut objects: Vec<Path> =
            self.files(prefix)?.iter().filter_map(|file| self.object(file)).collect();
        objects.sort_unstable();
        Ok(objects)
    }

    /// Reads a plain file of at most `limit` bytes; the size of a larger one is an answer, and not its content.
    ///
    /// Opening a pipe waits until it has a writer, and a device may never end: they are opened without waiting, looked
    /// at, and refused.
    pub(crate) fn read(&self, object: &Path, limit: u64) -> io::Result<FileRead> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = match File::options().read(true).custom_flags(flags).open(self.path(object)) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(FileRead::Missing);
            }
            // A socket cannot be opened.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                return Ok(FileRead::NotAFile);
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Ok(FileRead::Missing);
        }
        if !metadata.is_file() {
            return Ok(FileRead::NotAFile);
        }
        if metadata.len() > limit {
            return Ok(FileRead::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        let size = bytes.len() as u64;
        Ok(if size > limit { FileRead::TooLarge(size) } else { FileRead::Bytes(bytes) })
    }

    /// What the disk says of a file or whatever else has its name, without opening it; nothing if it is missing or a folder.
    pub(crate) fn metadata(&self, object: &Path) -> io::Result<Option<fs::Metadata>> {
        match fs::metadata(self.path(object)) {
            Ok(metadata) => Ok(Some(metadata).filter(|metadata| !metadata.is_dir())),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives a file another name, which nothing may have.
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        if to.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let parent = to.parent().unwrap_or(&self.root);
        create_durably(parent)?;
        fs::rename(&from, &to)?;
        sync(parent)?;
        sync(from.parent().unwrap_or(&self.root))
    }

    /// The folders directly below a prefix, in order.
    pub(crate) fn folders(&self, prefix: &Path) -> io::Result<Vec<Path>> {
        let mut folders = Vec::new();
        for entry in entries(&self.path(prefix))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.extend(self.relative(&path));
            }
        }
        folders.sort_unstable();
        Ok(folders)
    }

    /// Removes staging files below a prefix that were last written `older_than` ago, and returns their number.
    pub(crate) fn sweep(&self, prefix: &Path, older_than: Duration) -> io::Result<usize> {
        let now = SystemTime::now();
        let mut swept = 0;
        for file in self.files(prefix)? {
            if is_staging(&file) && is_older(&file, now, older_than) {
                swept += usize::from(remove(&file)?);
            }
        }
        Ok(swept)
    }

    /// The bytes of all objects below a prefix.
    pub(crate) fn size_below(&self, prefix: &Path) -> io::Result<u64> {
        let files = self.files(prefix)?;
        let objects = files.iter().filter(|file| self.object(file).is_some());
        // One that was deleted meanwhile takes no room.
        Ok(objects.filter_map(|file| fs::metadata(file).ok()).map(|metadata| metadata.len()).sum())
    }

    /// Removes a folder and those below it, as far as they are empty.
    pub(crate) fn remove_empty(&self, prefix: &Path) -> io::Result<()> {
        let mut folders = vec![self.path(prefix)];
        let mut at = 0;
        while let Some(folder) = folders.get(at).cloned() {
            for entry in entries(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                }
            }
            at += 1;
        }
        for folder in folders.iter().rev() {
            match fs::remove_dir(folder) {
                Err(error) if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::NotFound) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn path(&self, object: &Path) -> PathBuf {
        self.root.join(object.as_ref())
    }

    fn relative(&self, file: &FsPath) -> Option<Path> {
        Path::parse(file.strip_prefix(&self.root).ok()?.to_str()?).ok()
    }

    /// The object that a file holds; staging files and names that no object can have hold none.
    fn object(&self, file: &FsPath) -> Option<Path> {
        if is_staging(file) { None } else { self.relative(file) }
    }

    /// Every plain file below a prefix. Links to folders are not followed, so that this ends.
    fn files(&self, prefix: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut folders = vec![self.path(prefix)];
        while let Some(folder) = folders.pop() {
            for entry in entries(&folder)? {
                let entry = entry?;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => files.push(entry.path()),
                    _ => {}
                }
            }
        }
        Ok(files)
    }
}

/// The entries of a folder; none if it is missing or a file, as prefixes of an object store may be.
fn entries(folder: &FsPath) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None.into_iter().flatten())
        }
        Err(error) => Err(error),
    }
}

/// Whether a file is the staging file of some object: `<name>#<number>`.
fn is_staging(file: &FsPath) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let number = name.split_once('#').map_or("", |(_, number)| number);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// A file that cannot be asked counts as young: its writer may just have removed it.
fn is_older(file: &FsPath, now: SystemTime, than: Duration) -> bool {
    let written = fs::metadata(file).and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| now.duration_since(written).unwrap_or_default() >= than)
}

fn remove(file: &FsPath) -> io::Result<bool> {
    match fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn sync(folder: &FsPath) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// `LocalFileSystem` panics where it must show a path that is not Unicode.
fn check_name(folder: &FsPath) -> Result<(), StoreError> {
    let folder = folder.to_path_buf();
    if folder.to_str().is_none() {
        return Err(StoreError::NotUnicode { folder });
    }
    if folder.exists() && !folder.is_dir() {
        return Err(StoreError::NotAFolder { folder });
    }
    Ok(())
}

/// Creates a folder and what is missing above it, and syncs the names of all that are new.
fn create_durably(folder: &FsPath) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let missing: Vec<&FsPath> = folder.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    fs::create_dir_all(&folder)?;
    missing.iter().filter_map(|created| created.parent()).try_for_each(sync_if_readable)
}

/// The folder above the store is not ours: we may write in it and yet not be allowed to open it.
fn sync_if_readable(folder: &FsPath) -> io::Result<()> {
    match sync(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        result => result,
    }
}

/// Goes through the steps of creating an object, under names that a sweep removes should this be killed.
fn probe(root: &FsPath) -> io::Result<()> {
    let (staging, number) = stage_probe(root)?;
    let link = root.join(format!(".probe-link#{number}"));
    let linked = remove(&link).and_then(|_| fs::hard_link(&staging, &link)).and_then(|()| sync(root));
    remove(&staging)?;
    remove(&link)?;
    linked
}

fn stage_probe(root: &FsPath) -> io::Result<(PathBuf, u64)> {
    let mut number = u64::from(std::process::id());
    loop {
        let staging = root.join(format!(".probe#{number}"));
        match File::create_new(&staging) {
            Ok(_) => return Ok((staging, number)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Makes a write past `RLIMIT_FSIZE` an error: unless its signal is handled, the kernel ends the process.
#[cfg(unix)]
pub(crate) fn survive_file_size_limit() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    /// The number that it has on Linux (x86-64, ARM) and macOS.
    const SIGXFSZ: i32 = 25;
    // The handler stays when the listener goes.
    signal(SignalKind::from_raw(SIGXFSZ)).map(drop)
}

#[cfg(not(unix))]
pub(crate) fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}
