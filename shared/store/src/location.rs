//! Where a store is, as people write it: a folder, or `s3://BUCKET/PREFIX`.

use crate::error::StoreError;
use object_store::path::Path;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

const S3: &str = "s3://";

/// Where a store is.
///
/// ```
/// use store::Location;
///
/// let Location::S3 { bucket, prefix } = Location::parse("s3://experiments/maze/2026".as_ref())? else { panic!() };
/// assert_eq!((bucket.as_str(), prefix.as_ref()), ("experiments", "maze/2026"));
/// assert!(matches!(Location::parse("atoll-store".as_ref())?, Location::Folder(_)));
/// assert!(Location::parse("gs://experiments".as_ref()).is_err());
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A folder on this machine, or on what is mounted there.
    Folder(PathBuf),
    /// A bucket of S3, or of something that speaks as S3 does, and where in it.
    S3 {
        /// The bucket.
        bucket: String,
        /// What all names of objects begin with; may be empty.
        prefix: Path,
    },
}

impl Location {
    /// Reads a location. What names no scheme is a folder.
    ///
    /// # Errors
    /// If it names another scheme, no bucket, or a prefix that no object can have.
    pub fn parse(text: &OsStr) -> Result<Self, StoreError> {
        match text.to_str() {
            Some(url) if url.starts_with(S3) => Self::in_bucket(url),
            Some(url) if url.contains("://") => Err(unknown(url, "another scheme")),
            _ => Ok(Self::Folder(text.into())),
        }
    }

    fn in_bucket(url: &str) -> Result<Self, StoreError> {
        let rest = &url[S3.len()..];
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(is_plain) {
            return Err(unknown(
                url,
                "a bucket whose name is not one of 3 to 63 letters, digits, `-` and `.`",
            ));
        }
        let prefix = Path::parse(prefix).map_err(|_| unknown(url, "a prefix that no object can have"))?;
        Ok(Self::S3 { bucket: bucket.to_owned(), prefix })
    }
}

fn unknown(found: &str, reason: &'static str) -> StoreError {
    StoreError::NoLocation { found: found.to_owned(), reason }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "{}", folder.display()),
            Self::S3 { bucket, prefix } if prefix.as_ref().is_empty() => write!(f, "{S3}{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "{S3}{bucket}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_names_no_bucket_is_told() {
        for bad in [
            "s3://",
            "s3:///prefix",
            "s3://ab",
            "s3://a b c/x",
            "s3://bucket/a//b",
            "s3://bucket/..",
            "http://x",
        ] {
            let error = Location::parse(bad.as_ref()).unwrap_err().to_string();
            assert!(error.starts_with("expected a folder or `s3://BUCKET/PREFIX`, found"), "{error}");
            assert!(error.contains(bad), "{error}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_and_its_prefix_come_back(bucket in "[a-z0-9][a-z0-9.-]{1,60}[a-z0-9]", prefix in "([a-z0-9_]{1,9}(/[a-z0-9_]{1,9}){0,3})?") {
            let parsed = Location::parse(format!("s3://{bucket}/{prefix}").as_ref()).unwrap();
            prop_assert_eq!(&parsed, &Location::S3 { bucket, prefix: Path::from(prefix) });
            prop_assert_eq!(Location::parse(parsed.to_string().as_ref()).unwrap(), parsed);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = Location::parse(text.as_ref());
        }
    }
}
