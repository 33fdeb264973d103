//! Reading the text of a document, however big or endless the file may be.

use super::suggest::nearest;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest document that is read, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// The longest text of a plan as it is stored, in bytes: written in full, it is several times as long as the shortest way
/// to say the same.
pub const MAX_STORED: u64 = 8 * MAX_BYTES;
/// How much of a file that is too long is looked at.
const START: u64 = 8 << 10;
/// How many files are compared with a name, and in how many folders they are looked for.
const MOST_NEIGHBOURS: usize = 10_000;
const MOST_FOLDERS: usize = 100;

/// Why a text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("file not found: {file}{}", .near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Missing {
        /// The name of the file.
        file: String,
        /// A file whose name is like it, beside it or in a folder near it.
        near: Option<String>,
    },
    /// The system refused.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The name of the file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A folder, a pipe or a device: reading those may never end.
    #[error("{file}: expected a file, found a {found}")]
    NotAFile {
        /// The name of the file.
        file: String,
        /// What it is instead.
        found: &'static str,
    },
    /// More than [`MAX_BYTES`].
    #[error("{file}: expected at most {MAX_BYTES} bytes, found more")]
    TooLong {
        /// The name of the file.
        file: String,
    },
    /// Bytes of a program, a picture or an archive.
    #[error("{file}: expected text in TOML, found binary data")]
    Binary {
        /// The name of the file.
        file: String,
    },
    /// Bytes that are no text.
    #[error("{file}:{line}:{column}: expected UTF-8 text, found the byte `0x{byte:02x}`")]
    NotUtf8 {
        /// The name of the file.
        file: String,
        /// Line of the first such byte, counted from 1.
        line: usize,
        /// Column of it in characters, counted from 1.
        column: usize,
        /// The byte.
        byte: u8,
    },
}

/// Reads a file of at most [`MAX_BYTES`].
///
/// What is too long by its own account is not opened; what lies about its length is not read further than that.
///
/// # Errors
/// When it cannot be read, is no regular file, is too long, or is not UTF-8.
pub fn read_limited(path: &Path) -> Result<String, ReadError> {
    let file = path.display().to_string();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::Missing { file: file.clone(), near: near_file(path) },
        _ => ReadError::Unreadable { file: file.clone(), source },
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { found: kind_of(metadata.file_type()), file });
    }
    let opened = File::open(path).map_err(unreadable)?;
    if metadata.len() > MAX_BYTES {
        let mut start = vec![];
        let is_binary = opened.take(START).read_to_end(&mut start).is_ok() && start.contains(&0);
        return Err(if is_binary { ReadError::Binary { file } } else { ReadError::TooLong { file } });
    }
    read_limited_from(&file, opened)
}

/// Reads at most [`MAX_BYTES`] from anything, such as the standard input; `file` is its name in messages.
///
/// # Errors
/// When it cannot be read, is too long, or is not UTF-8.
pub fn read_limited_from(file: &str, reader: impl Read) -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|source| ReadError::Unreadable { file: file.to_owned(), source })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLong { file: file.to_owned() });
    }
    if bytes.contains(&0) {
        return Err(ReadError::Binary { file: file.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(file, &error))
}

/// Why a file of any kind cannot be read, for people: a missing one with the name of the file that was probably meant.
pub fn explain(path: &Path, source: io::Error) -> String {
    let file = path.display().to_string();
    let error = match source.kind() {
        io::ErrorKind::NotFound => ReadError::Missing { file, near: near_file(path) },
        _ => ReadError::Unreadable { file, source },
    };
    error.to_string()
}

/// The file that was probably meant by the name of a missing one.
fn near_file(path: &Path) -> Option<String> {
    near(path, path.file_name()?.to_str()?, |file| file.file_name()?.to_str())
}

/// The experiment file that was probably meant by a path or a name, with or without its ending.
pub fn near_experiment(name: &str) -> Option<String> {
    let path = Path::new(name);
    let stem = path.file_name()?.to_str()?.trim_end_matches(".toml");
    near(path, stem, |file| file.file_name()?.to_str()?.strip_suffix(".toml"))
}

/// The file whose name is most like this one: in the folder of a path, in folders inside that, in folders whose name is like that
/// of a missing one, or among the examples.
fn near(path: &Path, found: &str, name: impl Fn(&Path) -> Option<&str>) -> Option<String> {
    let own = path.parent().unwrap_or(Path::new(""));
    let mut folders = vec![own.to_owned()];
    folders.extend(folders_in(own));
    folders.extend(near_folder(own));
    let examples = Path::new("examples");
    if path.is_relative() && !folders.iter().any(|folder| folder == examples) {
        folders.push(examples.to_owned());
    }
    let mut left = MOST_NEIGHBOURS;
    let mut files = vec![];
    for folder in folders.into_iter().take(MOST_FOLDERS) {
        let mut inside = entries(&folder, left);
        left -= inside.len();
        inside.sort();
        files.extend(inside.into_iter().filter(|file| file.is_file()));
    }
    let names: Vec<&str> = files.iter().filter_map(|file| name(file)).collect();
    let meant = nearest(found, &names)?;
    // Of several with this name, that of the first folder.
    let file = files.iter().find(|file| name(file) == Some(meant))?;
    Some(file.display().to_string())
}

/// The folder that was probably meant by the name of a missing one.
fn near_folder(folder: &Path) -> Option<PathBuf> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return None;
    }
    let others = folders_in(folder.parent()?);
    let names: Vec<&str> = others.iter().filter_map(|other| other.file_name()?.to_str()).collect();
    Some(folder.with_file_name(nearest(folder.file_name()?.to_str()?, &names)?))
}

/// The folders in a folder, by name; hidden ones hold no files that people name.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let is_hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
    let mut folders = entries(folder, MOST_NEIGHBOURS);
    folders.retain(|path| !is_hidden(path) && path.is_dir());
    folders.sort();
    folders
}

/// At most this many entries of a folder. The empty path is the current folder, whose entries are plain names.
fn entries(folder: &Path, most: usize) -> Vec<PathBuf> {
    let read = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(read) else { return vec![] };
    entries.take(most).filter_map(Result::ok).map(|entry| folder.join(entry.file_name())).collect()
}

fn not_utf8(file: &str, error: &std::string::FromUtf8Error) -> ReadError {
    let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
    let valid = String::from_utf8_lossy(valid);
    let last_line = valid.rsplit('\n').next().unwrap_or_default();
    ReadError::NotUtf8 {
        file: file.to_owned(),
        line: valid.matches('\n').count() + 1,
        column: last_line.chars().count() + 1,
        byte: rest[0],
    }
}

fn kind_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "folder" } else { "pipe or device" }
}
