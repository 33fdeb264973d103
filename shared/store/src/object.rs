//! The envelope of every stored object: a header that describes what follows and proves that it is whole.
//!
//! | bytes  | field                                                          |
//! |--------|----------------------------------------------------------------|
//! | 0..8   | magic `ATOLLOBJ`                                               |
//! | 8..10  | format version, little-endian                                  |
//! | 10..12 | kind, little-endian                                            |
//! | 12..20 | length of the body, little-endian                              |
//! | 20..52 | BLAKE3 of bytes 0..20 followed by the body                     |
//! | 52..   | the body                                                       |
//!
//! These 52 bytes keep their meaning in every version to come; a new version changes what bodies mean. The
//! checksum can therefore be judged before the version, and a flipped bit never passes for a newer object.

use bytes::Bytes;
use codec::Digest;
use std::fmt;

/// The version that [`seal`] writes, and the only one that [`unseal`] reads.
pub const FORMAT_VERSION: u16 = 2;
/// The length of the header in front of every body.
pub const HEADER_LEN: usize = 52;
/// The longest body that is written or read, in bytes.
pub const MAX_BODY: u64 = 1 << 30;

const MAGIC: &[u8; 8] = b"ATOLLOBJ";
const SIGNED: usize = 20;

/// What an object is, so that one is never read as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Kind {
    /// One entry of a run's journal.
    Event = 1,
    /// Records of epochs: digests, standings, statistics.
    Commit = 2,
    /// All that an island remembers at the end of an epoch.
    IslandState = 3,
    /// An island between two generations of an unfinished epoch.
    Checkpoint = 4,
    /// Results of cells of a sweep, or of batches of games of a tournament.
    Jobs = 5,
    /// What there is to say of a run that has ended.
    Summary = 6,
    /// A champion, an ensemble, a level or another lasting outcome.
    Artifact = 7,
    /// A coordinator's claim to the store.
    Claim = 8,
    /// A removal of runs, and that it is done.
    Removal = 9,
    /// The labels of a run.
    Labels = 10,
    /// What was done in a batch, so that its next coordinator does not do it again.
    Batch = 11,
}

impl Kind {
    /// Every kind there is, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Event,
        Self::Commit,
        Self::IslandState,
        Self::Checkpoint,
        Self::Jobs,
        Self::Summary,
        Self::Artifact,
        Self::Claim,
        Self::Removal,
        Self::Labels,
        Self::Batch,
    ];

    fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event => "event",
            Self::Commit => "commit",
            Self::IslandState => "island state",
            Self::Checkpoint => "checkpoint",
            Self::Jobs => "jobs",
            Self::Summary => "summary",
            Self::Artifact => "artifact",
            Self::Claim => "claim",
            Self::Removal => "removal",
            Self::Labels => "labels",
            Self::Batch => "batch",
        })
    }
}

/// Why the bytes of an object were refused; reads on from "object `path`".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectDamage {
    /// The end is missing.
    #[error("is cut short: expected {expected} bytes, found {found}")]
    CutShort {
        /// Bytes that the header announces, or that a header needs.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// Something follows the body.
    #[error(
        "has {} bytes after its end: expected {expected} bytes, found {found}",
        found.saturating_sub(*expected)
    )]
    TrailingBytes {
        /// Bytes that the header announces.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// It does not begin as objects do.
    #[error(
        "is not an Atoll object: expected it to begin with `ATOLLOBJ`, found `{found}`; move it out of the store"
    )]
    NotAnObject {
        /// The first eight bytes, with unprintable ones escaped.
        found: String,
    },
    /// Header or body changed after it was written.
    #[error("was altered: expected checksum `{expected}`, found `{found}`")]
    Altered {
        /// The checksum in the header.
        expected: Digest,
        /// The checksum of what is there.
        found: Digest,
    },
    /// A version that this build does not know wrote it.
    #[error(
        "has format version `{found}`, expected `{FORMAT_VERSION}`; read it with the version of Atoll that wrote it"
    )]
    UnknownVersion {
        /// The version in the header.
        found: u16,
    },
    /// It is whole, but something else.
    #[error("holds {}, expected `{expected}`; it was moved or renamed: put it back", name_of(*found))]
    WrongKind {
        /// The kind that the reader asked for.
        expected: Kind,
        /// The number of the kind in the header.
        found: u16,
    },
}

fn name_of(kind: u16) -> String {
    Kind::from_number(kind).map_or_else(|| format!("unknown kind `{kind}`"), |kind| format!("`{kind}`"))
}

/// The header that belongs in front of `body`.
pub fn seal(kind: Kind, body: &[u8]) -> Bytes {
    let mut header = Vec::with_capacity(HEADER_LEN);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    header.extend_from_slice(&(kind as u16).to_le_bytes());
    header.extend_from_slice(&(body.len() as u64).to_le_bytes());
    let checksum = checksum(&header, body);
    header.extend_from_slice(&checksum.0);
    header.into()
}

/// The body of a whole object of the kind `expected`, without copying it.
///
/// # Errors
/// [`ObjectDamage`] describes what is wrong with any other bytes.
pub fn unseal(object: &Bytes, expected: Kind) -> Result<Bytes, ObjectDamage> {
    let header = Header::read(object)?;
    let body = object.slice(HEADER_LEN..);
    header.check_whole(&object[..SIGNED], &body)?;
    header.check_meaning(expected)?;
    Ok(body)
}

fn checksum(signed: &[u8], body: &[u8]) -> Digest {
    Digest(blake3::Hasher::new().update(signed).update(body).finalize().into())
}

struct Header {
    version: u16,
    kind: u16,
    body_len: u64,
    checksum: Digest,
}

impl Header {
    fn read(object: &[u8]) -> Result<Self, ObjectDamage> {
        let magic = &object[..object.len().min(MAGIC.len())];
        if !MAGIC.starts_with(magic) {
            return Err(ObjectDamage::NotAnObject { found: magic.escape_ascii().to_string() });
        }
        let short = ObjectDamage::CutShort { expected: HEADER_LEN as u64, found: object.len() as u64 };
        Self::fields(object).ok_or(short)
    }

    fn fields(object: &[u8]) -> Option<Self> {
        let (version, rest) = object.get(MAGIC.len()..)?.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        let (body_len, rest) = rest.split_first_chunk()?;
        let (checksum, _) = rest.split_first_chunk()?;
        Some(Self {
            version: u16::from_le_bytes(*version),
            kind: u16::from_le_bytes(*kind),
            body_len: u64::from_le_bytes(*body_len),
            checksum: Digest(*checksum),
        })
    }

    fn check_whole(&self, signed: &[u8], body: &[u8]) -> Result<(), ObjectDamage> {
        let expected = self.body_len.saturating_add(HEADER_LEN as u64);
        let found = (body.len() + HEADER_LEN) as u64;
        if found < expected {
            return Err(ObjectDamage::CutShort { expected, found });
        }
        if found > expected {
            return Err(ObjectDamage::TrailingBytes { expected, found });
        }
        let (expected, found) = (self.checksum, checksum(signed, body));
        if expected == found { Ok(()) } else { Err(ObjectDamage::Altered { expected, found }) }
    }

    fn check_meaning(&self, expected: Kind) -> Result<(), ObjectDamage> {
        if self.version != FORMAT_VERSION {
            return Err(ObjectDamage::UnknownVersion { found: self.version });
        }
        if self.kind != expected as u16 {
            return Err(ObjectDamage::WrongKind { expected, found: self.kind });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(kind: Kind, body: &[u8]) -> Vec<u8> {
        [&seal(kind, body), body].concat()
    }

    /// An object with a true checksum over whatever its header says.
    fn forged(version: u16, kind: u16, body: &[u8]) -> Bytes {
        let mut header = MAGIC.to_vec();
        header.extend(version.to_le_bytes());
        header.extend(kind.to_le_bytes());
        header.extend((body.len() as u64).to_le_bytes());
        let mut hasher = blake3::Hasher::new();
        hasher.update(&header).update(body);
        header.extend(hasher.finalize().as_bytes());
        header.extend(body);
        header.into()
    }

    #[test]
    fn a_sealed_body_comes_back() {
        for kind in Kind::ALL {
            let whole = Bytes::from(object(kind, b"body"));
            assert_eq!(unseal(&whole, kind).unwrap(), "body");
            assert_eq!(whole, forged(FORMAT_VERSION, kind as u16, b"body"));
        }
    }

    #[test]
    fn kinds_keep_their_numbers() {
        assert_eq!(Kind::ALL.map(|kind| kind as u16), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn the_header_is_pinned() {
        let golden = Bytes::from_static(include_bytes!("../tests/data/object-v2.bin"));
        assert_eq!(unseal(&golden, Kind::IslandState).unwrap(), "forty-two islands");
        assert_eq!(golden, object(Kind::IslandState, b"forty-two islands"));
    }

    #[test]
    fn an_object_of_version_1_is_refused_by_name() {
        let older = Bytes::from_static(include_bytes!("../tests/data/object-v1.bin"));
        assert_eq!(unseal(&older, Kind::IslandState), Err(ObjectDamage::UnknownVersion { found: 1 }));
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let newer = forged(FORMAT_VERSION + 1, Kind::Jobs as u16, b"body");
        assert_eq!(unseal(&newer, Kind::Jobs), Err(ObjectDamage::UnknownVersion { found: 3 }));
    }

    #[test]
    fn another_kind_is_named() {
        let cell = Bytes::from(object(Kind::Jobs, b"body"));
        let error = unseal(&cell, Kind::Event).unwrap_err();
        assert_eq!(error, ObjectDamage::WrongKind { expected: Kind::Event, found: 5 });
        assert!(error.to_string().starts_with("holds `jobs`, expected `event`"), "{error}");
        let unknown = unseal(&forged(FORMAT_VERSION, 900, b""), Kind::Event).unwrap_err();
        assert!(unknown.to_string().starts_with("holds unknown kind `900`"), "{unknown}");
    }

    #[test]
    fn strangers_are_recognised() {
        let stranger =
            Bytes::from_static(b"#!/bin/sh\n and so on, for much longer than a header would be, indeed");
        assert_eq!(
            unseal(&stranger, Kind::Jobs),
            Err(ObjectDamage::NotAnObject { found: "#!/bin/s".to_string() })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn every_flipped_bit_is_found(body in prop::collection::vec(any::<u8>(), 0..60), kind in 0..Kind::ALL.len()) {
            let kind = Kind::ALL[kind];
            let whole = object(kind, &body);
            for bit in 0..whole.len() * 8 {
                let mut altered = whole.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                let altered = Bytes::from(altered);
                for asked in Kind::ALL {
                    prop_assert!(unseal(&altered, asked).is_err(), "bit {bit} as {asked}");
                }
            }
        }

        #[test]
        fn every_cut_and_every_tail_is_found(body in prop::collection::vec(any::<u8>(), 0..60), tail in prop::collection::vec(any::<u8>(), 1..9)) {
            let whole = object(Kind::Summary, &body);
            for len in 0..whole.len() {
                let cut = unseal(&Bytes::copy_from_slice(&whole[..len]), Kind::Summary);
                let is_cut_short = matches!(cut, Err(ObjectDamage::CutShort { found, .. }) if found == len as u64);
                prop_assert!(is_cut_short, "{cut:?} at {len}");
            }
            let long = unseal(&[whole, tail].concat().into(), Kind::Summary);
            let is_too_long = matches!(long, Err(ObjectDamage::TrailingBytes { .. }));
            prop_assert!(is_too_long, "{long:?}");
        }

        #[test]
        fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), with_magic: bool) {
            let bytes = if with_magic { [MAGIC.to_vec(), bytes].concat() } else { bytes };
            prop_assert!(unseal(&bytes.into(), Kind::Event).is_err());
        }
    }
}
