//! Reading the text of a document, however big or endless the file may be.

use super::suggest::nearest;
use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// The longest document that is read, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// The longest text of a plan as it is stored, in bytes: written in full, it is several times as long as the shortest way
/// to say the same.
pub const MAX_STORED: u64 = 8 * MAX_BYTES;
/// How much of a file that is too long is looked at.
const START: u64 = 8 << 10;
/// How many files of a folder are compared with a name.
const MOST_NEIGHBOURS: usize = 10_000;

/// Why a text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error("file not found: {file}{}", .near.as_ref().map_or(String::new(), |near| format!("; did you mean `{near}`?")))]
    Missing {
        /// The name of the file.
        file: String,
        /// A file beside it whose name is like it.
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
        io::ErrorKind::NotFound => ReadError::Missing { file: file.clone(), near: near(path) },
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
        io::ErrorKind::NotFound => ReadError::Missing { file, near: near(path) },
        _ => ReadError::Unreadable { file, source },
    };
    error.to_string()
}

/// The file beside a missing one that was probably meant.
fn near(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).ok()?.take(MOST_NEIGHBOURS).filter_map(Result::ok);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = nearest(path.file_name()?.to_str()?, &names)?;
    Some(path.with_file_name(name).display().to_string())
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
