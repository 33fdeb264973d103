//! Digests: what two results are compared by.

use bincode::{Decode, Encode};
use std::fmt;
use std::str::FromStr;

/// A BLAKE3 digest of something that a result depends on or consists of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of a sequence of parts under a name. Lengths are part of it, so that no two sequences run together.
    pub fn of_parts<'a>(name: &'a str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in std::iter::once(name.as_bytes()).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// The first characters: enough to tell results apart on a screen.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a digest of 64 hexadecimal digits, found `{0}`")]
pub struct ParseDigestError(String);

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDigestError(text.chars().take(80).collect());
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| error())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        let one = Digest::of_parts("n", [b"ab".as_slice(), b"c"]);
        let other = Digest::of_parts("n", [b"a".as_slice(), b"bc"]);
        assert_ne!(one, other);
    }

    #[test]
    fn text_comes_back() {
        let digest = Digest::of(b"atoll");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("xyz".parse::<Digest>().is_err());
        assert!("+f".repeat(32).parse::<Digest>().is_err());
    }

    #[test]
    fn known_answer() {
        // The published BLAKE3 test vector for the empty input.
        let expected = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of(b"").to_string(), expected);
    }
}
