//! What can go wrong between a caller and the stored bytes.

use crate::object::{FORMAT_VERSION, ObjectDamage};
use codec::CodecError;
use codec::Digest;
use object_store::path::Path;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Why the store did not do what it was asked; a variant for each thing that a caller may want to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the store is something else.
    #[error("expected the store `{}` to be a folder, found a file; name another folder", folder.display())]
    NotAFolder {
        /// The path as given.
        folder: PathBuf,
    },
    /// A store that should exist does not.
    #[error("no store in `{}`: start a run with `atoll run FILE`, or name another store with `--store` or a coordinator with `--coordinator`", folder.display())]
    NoSuchFolder {
        /// The path as given.
        folder: PathBuf,
    },
    /// What was given names no place for a store.
    #[error("expected a folder or `s3://BUCKET/PREFIX`, found {reason} in `{found}`")]
    NoLocation {
        /// The text as given.
        found: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The settings of a remote store cannot be used.
    #[error("cannot use `{place}` as a store: {reason}")]
    Settings {
        /// The store.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A remote store does not respond as one should.
    #[error(
        "cannot use `{place}` as a store: {}; check that the bucket exists, and AWS_ENDPOINT_URL, AWS_REGION \
         and the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or a role)", causes(source.as_ref())
    )]
    Unreachable {
        /// The store.
        place: String,
        /// What the service said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The folder cannot be named in every part of the program.
    #[error("expected the path of the store to be UTF-8, found `{}`; name another folder", folder.display())]
    NotUnicode {
        /// The path as given.
        folder: PathBuf,
    },
    /// The folder cannot be opened, or not be created, written or hard-linked in where that is wanted.
    #[error("cannot use `{}` as a store: {source}; name another folder, or change its permissions", folder.display())]
    Unusable {
        /// The path as given.
        folder: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Everything in the store was written by another version.
    #[error(
        "the store has format version `{found}`, expected `{FORMAT_VERSION}`; read it with the version of Atoll that \
         wrote it, or name another store"
    )]
    Format {
        /// The version in the headers of its objects.
        found: u16,
    },
    /// There is no such object.
    #[error("object `{path}` is missing")]
    Missing {
        /// The object.
        path: Path,
    },
    /// The object is there, but not whole, or not what was asked for.
    #[error("object `{path}` {damage}{}", advice(path))]
    Damaged {
        /// The object.
        path: Path,
        /// What is wrong with it.
        damage: ObjectDamage,
    },
    /// The object is whole, but its body is not the value that was expected.
    #[error("body of object `{path}` {problem}{}", advice(path))]
    Body {
        /// The object.
        path: Path,
        /// What is wrong with the body.
        problem: CodecError,
    },
    /// The object exists with other content, and objects are never overwritten.
    #[error("object `{path}` exists with other content: kept `{kept}`, refused `{offered}`")]
    Differs {
        /// The object.
        path: Path,
        /// The digest of the body that is stored.
        kept: Digest,
        /// The digest of the body that was to be stored.
        offered: Digest,
    },
    /// Something that is no object stands in the way, or the object was deleted meanwhile.
    #[error(
        "object `{path}` can neither be created nor read: a folder has its name, or it was deleted meanwhile"
    )]
    Obstructed {
        /// The object.
        path: Path,
    },
    /// A pipe, a device or a socket has the name of the object.
    #[error("object `{path}` is not a regular file: expected one, found a pipe, a device or a socket")]
    NotAFile {
        /// The object.
        path: Path,
    },
    /// The object is larger than the reader or the store allows.
    #[error("object `{path}` is too large: {size} bytes, expected at most {limit}")]
    TooLarge {
        /// The object.
        path: Path,
        /// Its size in bytes.
        size: u64,
        /// The largest size allowed.
        limit: u64,
    },
    /// A text is not UTF-8.
    #[error("object `{path}` is not text: expected UTF-8, found another byte at {at}")]
    NotText {
        /// The object.
        path: Path,
        /// How many bytes are valid.
        at: usize,
    },
    /// No space, quota or allowed file size is left. Nothing is half-written.
    #[error(
        "no room to write object `{path}`: {}; nothing of it was kept: free disk space and run the same command again",
        system_reason(source.as_ref())
    )]
    Full {
        /// The object.
        path: Path,
        /// What the operating system said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The rights do not suffice.
    #[error("not allowed to {doing} `{path}`: {}", system_reason(source.as_ref()))]
    Denied {
        /// What was tried.
        doing: &'static str,
        /// The object or folder.
        path: Path,
        /// What the operating system or service said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Anything else that the disk or the service reports.
    #[error("cannot {doing} `{path}`: {source}")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// The object or folder.
        path: Path,
        /// What the operating system or service said.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// What the operating system said, without the words of the layers above it.
fn system_reason(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(system) = found.downcast_ref::<io::Error>().filter(|found| found.raw_os_error().is_some())
        {
            return system.to_string();
        }
        cause = found.source();
    }
    error.to_string()
}

impl StoreError {
    /// Sorts an error of the layer below by its cause.
    pub fn failed(doing: &'static str, path: &Path, error: impl Error + Send + Sync + 'static) -> Self {
        let kind = io_kind(&error);
        let (path, source) = (path.clone(), Box::new(error));
        match kind {
            Some(kind) if is_no_room(kind) => Self::Full { path, source },
            Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                Self::Denied { doing, path, source }
            }
            _ => Self::Failed { doing, path, source },
        }
    }

    /// Sorts an error of a disk or a service by its cause: a service says itself that it does not allow something.
    pub(crate) fn of_backend(doing: &'static str, path: &Path, error: object_store::Error) -> Self {
        use object_store::Error::{PermissionDenied, Unauthenticated};
        match error {
            PermissionDenied { .. } | Unauthenticated { .. } if io_kind(&error).is_none() => {
                Self::Denied { doing, path: path.clone(), source: Box::new(error) }
            }
            error => Self::failed(doing, path, error),
        }
    }

    /// The same without a word of what to do about it.
    pub fn fact(&self) -> String {
        match self {
            Self::Damaged { path, damage } => format!("object `{path}` {damage}"),
            Self::Body { path, problem } => format!("body of object `{path}` {problem}"),
            error => error.to_string(),
        }
    }

    /// Whether this says that the object itself is wrong, rather than that the store failed.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Damaged { .. }
                | Self::Body { .. }
                | Self::NotAFile { .. }
                | Self::TooLarge { .. }
                | Self::NotText { .. }
        )
    }

    /// Whether a retry cannot succeed before an operator changes the path, the permissions or the credentials.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::NotAFolder { .. }
            | Self::NoSuchFolder { .. }
            | Self::NoLocation { .. }
            | Self::Settings { .. }
            | Self::NotUnicode { .. }
            | Self::Format { .. }
            | Self::Denied { .. } => true,
            Self::Unusable { source, .. } => matches!(
                source.kind(),
                ErrorKind::PermissionDenied
                    | ErrorKind::ReadOnlyFilesystem
                    | ErrorKind::NotFound
                    | ErrorKind::NotADirectory
                    | ErrorKind::Unsupported
            ),
            Self::Unreachable { source, .. } => is_rejection(source.as_ref()),
            _ => false,
        }
    }

    /// Whether the same, of an error at the first contact with a store. A disk that fills up later may be emptied while workers
    /// keep what they have; a name that never led anywhere is a slip of the pen.
    pub fn is_permanent_at_first(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Unusable { source, .. } if is_no_room(source.kind()) => true,
            Self::Unreachable { source, .. } if is_unknown_host(source.as_ref()) => true,
            error => error.is_permanent(),
        }
    }

    /// Whether this says that the object is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

/// An error with the causes that it does not mention itself: clients of HTTP keep the one that matters to themselves.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    for cause in std::iter::successors(error.source(), |&error| error.source()) {
        let cause = cause.to_string();
        if !words.contains(&cause) {
            words.extend([": ", &cause]);
        }
    }
    words
}

/// What to do about an object of a run that is damaged.
fn advice(path: &Path) -> String {
    let parts: Vec<_> = path.parts().take(3).collect();
    match &parts[..] {
        [runs, run, _] if runs.as_ref() == "runs" => {
            let run = run.as_ref();
            format!("; nothing was changed: `atoll repair {run}` shows what can be kept")
        }
        _ => String::new(),
    }
}

fn is_no_room(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Whether a service has answered that it will not do this: no such bucket, no permission, another region. A list has no error of
/// its own for these, only the status in its words.
fn is_rejection(error: &(dyn Error + 'static)) -> bool {
    use object_store::Error::{NotFound, PermissionDenied, Unauthenticated};
    /// A client that was too slow, or asks too often, may try again.
    const TRANSIENT: [&str; 2] = ["408", "429"];
    let mut chain = std::iter::successors(Some(error), |&error| error.source());
    chain.any(|error| {
        let words = error.to_string();
        let status = words.split_once("non-2xx status code: ").map_or("", |(_, rest)| rest);
        status.starts_with('4') && !TRANSIENT.iter().any(|transient| status.starts_with(transient))
            || words.contains("Received redirect without LOCATION")
            || matches!(
                error.downcast_ref(),
                Some(PermissionDenied { .. } | Unauthenticated { .. } | NotFound { .. })
            )
    })
}

/// Whether the name service answered that it has no such name, rather than that it cannot tell now. There is no code for it,
/// only the words of the C library (glibc, musl, BSD).
fn is_unknown_host(error: &(dyn Error + 'static)) -> bool {
    const ANSWERS: [&str; 4] = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "nodename nor servname provided",
    ];
    let mut chain = std::iter::successors(Some(error), |&error| error.source());
    chain.any(|error| {
        let words = error.to_string();
        ANSWERS.iter().any(|answer| words.contains(answer))
    })
}

/// The operating system's word, however deep it is wrapped.
fn io_kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.filter_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable(words: &str) -> StoreError {
        let source = object_store::Error::Generic { store: "S3", source: io::Error::other(words).into() };
        StoreError::Unreachable { place: "s3://bucket".to_owned(), source: source.into() }
    }

    #[test]
    fn a_full_disk_is_named_without_the_words_of_the_layers_above_it() {
        let full = io::Error::from_raw_os_error(28);
        let source = object_store::Error::Generic { store: "LocalFileSystem", source: full.into() };
        let error = StoreError::of_backend("create", &Path::from("runs/a/states/0"), source).to_string();
        assert!(error.contains("No space left on device"), "{error}");
        assert!(!error.contains("LocalFileSystem"), "{error}");
    }

    #[test]
    fn the_cause_of_an_outage_is_told() {
        #[derive(Debug, thiserror::Error)]
        #[error("error sending request")]
        struct Sending(#[source] io::Error);
        let source = Sending(io::Error::other("Name or service not known"));
        let source = object_store::Error::Generic { store: "S3", source: source.into() };
        let error = StoreError::Unreachable { place: "s3://bucket".to_owned(), source: source.into() };
        let told = error.to_string();
        assert!(
            told.contains("Generic S3 error: error sending request: Name or service not known; check"),
            "{told}"
        );
        assert_eq!(told.matches("error sending request").count(), 1, "{told}");
    }

    #[test]
    fn what_a_service_rejects_is_told_from_what_it_cannot_do_now() {
        for (status, is_permanent) in [
            ("404 Not Found: <Code>NoSuchBucket</Code>", true),
            ("403 Forbidden: <Code>InvalidAccessKeyId</Code>", true),
            ("400 Bad Request: <Code>AuthorizationHeaderMalformed</Code>", true),
            ("408 Request Timeout", false),
            ("429 Too Many Requests", false),
            ("503 Service Unavailable: 404", false),
        ] {
            let error = unreachable(&format!("Server returned non-2xx status code: {status}"));
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
        }
        assert!(
            unreachable("Received redirect without LOCATION, this normally indicates a region")
                .is_permanent()
        );
    }

    #[test]
    fn what_cannot_pass_at_the_first_contact_is_told_from_an_outage() {
        let full = || io::Error::from(ErrorKind::StorageFull);
        for error in [
            unreachable("dns error: failed to lookup address information: Name or service not known"),
            unreachable("dns error: failed to lookup address information: Name does not resolve"),
            StoreError::Unusable { folder: "store".into(), source: full() },
            StoreError::failed("create", &Path::from("trials/0"), full()),
        ] {
            assert!(error.is_permanent_at_first() && !error.is_permanent(), "{error}");
        }
        for error in [
            unreachable(
                "dns error: failed to lookup address information: Temporary failure in name resolution",
            ),
            unreachable("Connection refused (os error 111)"),
            StoreError::Unusable { folder: "store".into(), source: ErrorKind::TimedOut.into() },
        ] {
            assert!(!error.is_permanent_at_first(), "{error}");
        }
    }
}
