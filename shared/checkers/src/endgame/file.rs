//! The file of a slice.
//!
//! All numbers are little-endian: the magic `ATOLL-EG`; the format version, 4 bytes; black men, black kings, white men
//! and white kings, a byte each; wins, losses and draws, 8 bytes each; the verdicts, five in a byte, the first in the
//! lowest digit (0 draw, 1 win, 2 loss); the BLAKE3 hash of all before it, 32 bytes. Black is to move.

use super::Database;
use super::index::Index;
use super::mapping::Bytes;
use super::piece_counts::PieceCounts;
use super::slice::{A_BYTE, Counts, Slice};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"ATOLL-EG";
const VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 4 + 3 * 8;
const HASH: usize = 32;

/// Why a database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum EndgameError {
    /// A file can't be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A slice has not been built.
    #[error(
        "{}: expected an endgame database of {pieces} pieces, found none with the slice `{slice}`: \
         build it with `atoll endgame build --pieces {pieces}`", folder.display()
    )]
    Missing {
        /// Where it was looked for.
        folder: PathBuf,
        /// The database that was asked for.
        pieces: u32,
        /// The name of the slice.
        slice: String,
    },
    /// A file is something else.
    #[error("{}: expected a slice that starts with ATOLL-EG, found `{found}`", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// How it starts.
        found: String,
    },
    /// A file was written by a newer release.
    #[error("{}: expected format version {VERSION}, found `{found}`", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file is cut short or too long.
    #[error("{}: expected {expected} bytes, found `{found}`", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// What its material makes it.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// A file holds another slice than its name says.
    #[error("{}: expected the slice of its name, found `{found}`", path.display())]
    Slice {
        /// The file.
        path: PathBuf,
        /// The slice in it.
        found: String,
    },
    /// A file was altered or damaged.
    #[error("{}: expected the hash {expected}, found `{found}`: delete the file and build it again", path.display())]
    Hash {
        /// The file.
        path: PathBuf,
        /// That of its bytes.
        expected: blake3::Hash,
        /// That which it carries.
        found: blake3::Hash,
    },
    /// No such database is possible.
    #[error("expected 2 to {most} pieces, found `{0}`", most = Database::MOST_PIECES)]
    Pieces(u32),
    /// One of so many pieces is read from files, and no folder was named.
    #[error(
        "expected a folder with the endgame database of {0} pieces, found none: name it with `endgame` in the worker's \
         settings, or with ATOLL_ENDGAME"
    )]
    Unnamed(u32),
}

/// Attaches the path to what the system says.
pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> EndgameError {
    let path = path.to_owned();
    move |error| EndgameError::Io { path, error }
}

/// The file of a slice in a folder.
pub(super) fn path_of(folder: &Path, material: PieceCounts) -> PathBuf {
    folder.join(format!("{}.slice", material.name()))
}

/// Writes the file of a slice: under another name first, so that whatever has its name is complete.
pub(super) fn write(folder: &Path, material: PieceCounts, slice: &Slice) -> Result<(), EndgameError> {
    let path = path_of(folder, material);
    let unfinished = path.with_extension(format!("unfinished-{}", std::process::id()));
    let write = || {
        let mut file = File::create(&unfinished)?;
        let header = header(material, slice.counts());
        let mut hasher = blake3::Hasher::new();
        for part in [&header, slice.bytes()] {
            hasher.update(part);
            file.write_all(part)?;
        }
        file.write_all(hasher.finalize().as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, &path)
    };
    write().map_err(io_error(&path))
}

fn header(material: PieceCounts, counts: Counts) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend([material.black_men, material.black_kings, material.white_men, material.white_kings]);
    for count in [counts.wins, counts.losses, counts.draws] {
        header.extend(count.to_le_bytes());
    }
    header
}

/// Maps the file of a slice after checking every byte of it; nothing if there is none.
pub(super) fn read(folder: &Path, index: &Index) -> Result<Option<Slice>, EndgameError> {
    let path = path_of(folder, index.material());
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(io_error(&path))?,
    };
    let found = file.metadata().map_err(io_error(&path))?.len();
    let expected = HEADER as u64 + u64::from(index.len().div_ceil(A_BYTE)) + HASH as u64;
    if found < HEADER as u64 {
        return Err(EndgameError::Length { path, expected, found });
    }
    let bytes = Bytes::map(&file).map_err(io_error(&path))?;
    let counts = check_header(&path, bytes.as_slice(), index.material())?;
    if found != expected || bytes.as_slice().len() as u64 != expected {
        return Err(EndgameError::Length { path, expected, found });
    }
    check_hash(&path, bytes.as_slice())?;
    let end = bytes.as_slice().len() - HASH;
    Ok(Some(Slice::from_bytes(bytes.part(HEADER..end), counts)))
}

/// Reads the counts of a header that is that of the material.
fn check_header(path: &Path, bytes: &[u8], material: PieceCounts) -> Result<Counts, EndgameError> {
    let path = || path.to_owned();
    let magic = &bytes[..8];
    if magic != MAGIC {
        return Err(EndgameError::Magic { path: path(), found: magic.escape_ascii().to_string() });
    }
    let version = u32::from_le_bytes(field(bytes, 8));
    if version != VERSION {
        return Err(EndgameError::Version { path: path(), found: version });
    }
    let [black_men, black_kings, white_men, white_kings] = field(bytes, 12);
    let found = PieceCounts { black_men, black_kings, white_men, white_kings };
    if found != material {
        return Err(EndgameError::Slice { path: path(), found: found.name() });
    }
    let [wins, losses, draws] = [16, 24, 32].map(|at| u64::from_le_bytes(field(bytes, at)));
    Ok(Counts { wins, losses, draws })
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("the header's length was checked")
}

fn check_hash(path: &Path, bytes: &[u8]) -> Result<(), EndgameError> {
    let (content, carried) = bytes.split_last_chunk::<HASH>().expect("the length was checked");
    let (expected, found) = (blake3::hash(content), blake3::Hash::from_bytes(*carried));
    if expected == found {
        Ok(())
    } else {
        Err(EndgameError::Hash { path: path.to_owned(), expected, found })
    }
}

impl Database {
    /// Opens the database of a folder, and checks every byte of it.
    ///
    /// # Errors
    /// If a slice is missing, cut or altered, or can't be read.
    pub fn open(folder: &Path, pieces: u32) -> Result<Self, EndgameError> {
        let mut database = Self::empty();
        for material in PieceCounts::up_to(super::build::checked(pieces)?) {
            let index = Arc::new(Index::new(material));
            let slice = read(folder, &index)?.ok_or_else(|| EndgameError::Missing {
                folder: folder.to_owned(),
                pieces,
                slice: material.name(),
            })?;
            database.insert(index, slice);
        }
        database.pieces = pieces;
        Ok(database)
    }
}
