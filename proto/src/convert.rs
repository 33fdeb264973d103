//! Wire to domain and back. What does not convert is refused by name; nothing here can panic on what came in.

use crate::v1;
use bytes::Bytes;
use codec::Digest;
use codec::Standing;

/// No run has a longer name; one that is longer is not even looked for, or logged.
const LONGEST_RUN: usize = 255;

/// A piece of work of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// The run's name, not yet checked.
    pub run: String,
    /// The piece of it.
    pub piece: Piece,
}

/// What one lease is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Piece {
    /// An epoch of an island.
    Epoch {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// Cells of a sweep.
    Cells {
        /// The first one.
        first: u32,
        /// How many.
        count: u32,
    },
    /// A job of a study.
    Job {
        /// Its number.
        number: u32,
    },
}

impl Work {
    /// The island, if it is an epoch of one.
    pub fn island(&self) -> Option<u32> {
        match self.piece {
            Piece::Epoch { island, .. } => Some(island),
            Piece::Cells { .. } | Piece::Job { .. } => None,
        }
    }

    /// The epoch, if it is one.
    pub fn epoch(&self) -> Option<u64> {
        match self.piece {
            Piece::Epoch { epoch, .. } => Some(epoch),
            Piece::Cells { .. } | Piece::Job { .. } => None,
        }
    }
}

/// A message that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Something is not there.
    #[error("expected `{0}`, found nothing")]
    Missing(&'static str),
    /// A digest of another length.
    #[error("expected a digest of 32 bytes in `{field}`, found `{found}`")]
    Digest {
        /// Where.
        field: &'static str,
        /// How many bytes there were.
        found: usize,
    },
    /// A name that no run has.
    #[error("expected the name of a run of at most {LONGEST_RUN} bytes, found `{0}`")]
    Run(usize),
    /// Something that fitness never is.
    #[error("expected a fitness, found `NaN`")]
    Fitness,
}

impl std::fmt::Display for Work {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "run {}, {}", self.run, self.piece)
    }
}

impl std::fmt::Display for Piece {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Epoch { island, epoch } => write!(formatter, "island {island}, epoch {epoch}"),
            Self::Cells { first, count: 1 } => write!(formatter, "cell {first}"),
            Self::Cells { first, count } => write!(formatter, "{count} cells from {first}"),
            Self::Job { number } => write!(formatter, "job {number}"),
        }
    }
}

impl From<&Work> for v1::Piece {
    fn from(work: &Work) -> Self {
        let what = match work.piece {
            Piece::Epoch { island, epoch } => v1::piece::What::Epoch(v1::EpochPiece { island, epoch }),
            Piece::Cells { first, count } => v1::piece::What::Cells(v1::CellsPiece { first, count }),
            Piece::Job { number } => v1::piece::What::Job(v1::JobPiece { number }),
        };
        Self { run: work.run.clone(), what: Some(what) }
    }
}

impl TryFrom<v1::Piece> for Work {
    type Error = WireError;

    fn try_from(wire: v1::Piece) -> Result<Self, WireError> {
        let piece = match wire.what.ok_or(WireError::Missing("piece.what"))? {
            v1::piece::What::Epoch(v1::EpochPiece { island, epoch }) => Piece::Epoch { island, epoch },
            v1::piece::What::Cells(v1::CellsPiece { first, count }) => Piece::Cells { first, count },
            v1::piece::What::Job(v1::JobPiece { number }) => Piece::Job { number },
        };
        if wire.run.len() > LONGEST_RUN {
            return Err(WireError::Run(wire.run.len()));
        }
        Ok(Self { run: wire.run, piece })
    }
}

/// The work that a message names.
pub fn work(wire: Option<v1::Piece>) -> Result<Work, WireError> {
    wire.ok_or(WireError::Missing("piece"))?.try_into()
}

/// The digest in a field.
pub fn digest(field: &'static str, bytes: &[u8]) -> Result<Digest, WireError> {
    bytes.try_into().map(Digest).map_err(|_| WireError::Digest { field, found: bytes.len() })
}

/// A digest as a field.
pub fn digest_bytes(digest: &Digest) -> Bytes {
    Bytes::copy_from_slice(&digest.0)
}

impl From<&Standing> for v1::Standing {
    fn from(standing: &Standing) -> Self {
        let Standing { generation, evaluations, best } = *standing;
        Self { generation, evaluations, best }
    }
}

/// Where an island stands. Fitness is never NaN.
pub fn standing(wire: Option<v1::Standing>) -> Result<Standing, WireError> {
    let v1::Standing { generation, evaluations, best } = wire.ok_or(WireError::Missing("standing"))?;
    if best.is_nan() { Err(WireError::Fitness) } else { Ok(Standing { generation, evaluations, best }) }
}

/// Bytes to be sent, within the message or by name only.
pub fn body(bytes: &Bytes, inline: bool) -> v1::Body {
    named_body(bytes, &Digest::of(bytes), inline)
}

/// The same, of bytes whose digest is known.
pub fn named_body(bytes: &Bytes, digest: &Digest, inline: bool) -> v1::Body {
    v1::Body {
        digest: digest_bytes(digest),
        length: bytes.len() as u64,
        inline: inline.then(|| bytes.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_cell_is_named_alone() {
        let name = |first, count| Piece::Cells { first, count }.to_string();
        assert_eq!([name(0, 1), name(4, 3)], ["cell 0", "3 cells from 4"]);
    }

    proptest! {
        #[test]
        fn work_comes_back(run in "[a-z0-9-]{1,20}", island: u32, epoch: u64, cells: bool) {
            let piece = if cells { Piece::Cells { first: island, count: epoch as u32 } } else { Piece::Epoch { island, epoch } };
            let sent = Work { run, piece };
            prop_assert_eq!(Work::try_from(v1::Piece::from(&sent)), Ok(sent));
        }

        #[test]
        fn a_digest_has_32_bytes(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            prop_assert_eq!(digest("inputs", &bytes).is_ok(), bytes.len() == 32);
        }
    }

    #[test]
    fn names_of_runs_have_a_length() {
        let what = Some(v1::piece::What::Job(v1::JobPiece { number: 1 }));
        let piece = |length| work(Some(v1::Piece { run: "r".repeat(length), what }));
        assert!(piece(255).is_ok());
        assert_eq!(piece(256), Err(WireError::Run(256)));
    }

    #[test]
    fn fitness_is_never_nan() {
        let wire = v1::Standing { generation: 1, evaluations: 2, best: f64::NAN };
        assert_eq!(standing(Some(wire)), Err(WireError::Fitness));
        assert_eq!(standing(None), Err(WireError::Missing("standing")));
    }
}
