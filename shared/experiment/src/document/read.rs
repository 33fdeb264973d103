//! Reading the text of a document, however big or endless the file may be.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// The longest document that is read, in bytes.
pub const MAX_BYTES: u64 = 1 << 20;
/// The longest text of a plan as it is stored, in bytes: written in full, it is several times as long as the shortest way
/// to say the same.
pub const MAX_STORED: u64 = 8 * MAX_BYTES;

/// Why a text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused.
    #[error("{file}: expected a readable file, found: {source}")]
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
    let unreadable = |source| ReadError::Unreadable { file: file.clone(), source };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { found: kind_of(metadata.file_type()), file });
    }
    if metadata.len() > MAX_BYTES {
        return Err(ReadError::TooLong { file });
    }
    let opened = File::open(path).map_err(unreadable)?;
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
    String::from_utf8(bytes).map_err(|error| not_utf8(file, &error))
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
