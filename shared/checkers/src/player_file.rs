//! Player files: a network with a header that says what it is, and a checksum; or an ensemble of them
//! ([`Ensemble::to_player_file`]).
//!
//! All numbers are little-endian: the magic `ATOLL-CP`; the format version and the number of weights, 4 bytes
//! each; the nodes of each hidden layer of a tower (91, 40, 10), 2 bytes each; the kind of nodes (0 weighted,
//! 1 sum), 2 bytes; the weights in the order of [`Network::new`], 4 bytes each; the checksum of all before it
//! (64-bit FNV-1a), 8 bytes.
//!
//! Version 1 is a network of the papers' shape. Other networks are of version 2, in which the shape (1 wide, 2 phases)
//! follows the kind of nodes, 2 bytes.

use crate::ensemble::{self, Ensemble, EnsembleError};
use crate::network::{Architecture, Network, NetworkError, NetworkShape, NodeKind};
use crate::player::PlayerSpec;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"ATOLL-CP";
/// Of the papers' shape, and of the others.
const VERSIONS: [u32; 2] = [1, 2];
const LAYERS: [u16; 3] = [91, 40, 10];
const HEADER: usize = 8 + 4 + 4 + 2 * 3 + 2;
/// What version 2 adds to the header.
const SHAPE: usize = 2;
/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 8;

/// Why bytes are no player file.
#[derive(Debug, thiserror::Error)]
pub enum PlayerFileError {
    /// The file can't be read.
    #[error("expected a readable player file: {0}")]
    Read(#[from] io::Error),
    /// It starts like something else.
    #[error("expected a player file that starts with ATOLL-CP or ATOLL-CE, found `{0}`")]
    Magic(String),
    /// It holds several networks where one is wanted.
    #[error("expected the player file of one network, found `ATOLL-CE`, an ensemble")]
    Ensemble,
    /// It was written by a newer release.
    #[error("expected format version 1 or 2, found `{0}`")]
    Version(u32),
    /// Its network has other layers.
    #[error("expected hidden layers of {LAYERS:?} nodes, found `{0:?}`")]
    Layers([u16; 3]),
    /// Its network has an unknown shape.
    #[error("expected shape 1 (wide) or 2 (phases), found `{0}`")]
    Shape(u16),
    /// Its network has unknown nodes.
    #[error("expected nodes of kind 0 (weighted) or 1 (sum), found `{0}`")]
    Kind(u16),
    /// It is cut short or too long.
    #[error("expected {expected} bytes, found `{found}`")]
    Length {
        /// What its header makes it.
        expected: usize,
        /// What it is; one more than the longest player file for anything longer.
        found: usize,
    },
    /// It was altered or damaged.
    #[error("expected checksum {expected:016x}, found `{found:016x}`")]
    Checksum {
        /// That of its bytes.
        expected: u64,
        /// That which it carries.
        found: u64,
    },
    /// Its weights are of no use.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// It is an ensemble of too few or too many.
    #[error(transparent)]
    Members(#[from] EnsembleError),
    /// A member of the ensemble is of no use.
    #[error("member {member}: {error}")]
    Member {
        /// Which one, from 0.
        member: usize,
        /// What is wrong with it.
        error: Box<PlayerFileError>,
    },
}

/// What a player file holds.
#[derive(Clone, Debug)]
pub enum PlayerFile {
    /// One network.
    Network(Arc<Network>),
    /// Networks that play as one.
    Ensemble(Arc<Ensemble>),
}

impl PlayerFile {
    /// Reads a player file of either kind.
    ///
    /// # Errors
    /// If it can't be read, or is no player file.
    pub fn load(path: &Path) -> Result<Self, PlayerFileError> {
        Self::from_bytes(&read(path, ensemble::LONGEST_FILE)?)
    }

    /// What the bytes of a player file of either kind hold.
    ///
    /// # Errors
    /// If they are no player file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PlayerFileError> {
        if bytes.starts_with(ensemble::MAGIC) {
            Ok(Self::Ensemble(Arc::new(Ensemble::from_player_file(bytes)?)))
        } else {
            Ok(Self::Network(Arc::new(Network::from_player_file(bytes)?)))
        }
    }

    /// The bytes that [`from_bytes`](Self::from_bytes) reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Network(network) => network.to_player_file(),
            Self::Ensemble(ensemble) => ensemble.to_player_file(),
        }
    }

    /// Its networks.
    pub fn networks(&self) -> &[Arc<Network>] {
        match self {
            Self::Network(network) => std::slice::from_ref(network),
            Self::Ensemble(ensemble) => ensemble.members(),
        }
    }

    /// The player that looks `depth` plies ahead with it.
    pub fn player(self, depth: u32) -> PlayerSpec {
        match self {
            Self::Network(network) => PlayerSpec::Network { network, depth },
            Self::Ensemble(ensemble) => PlayerSpec::Ensemble { ensemble, depth },
        }
    }
}

impl Network {
    /// The network as a player file.
    pub fn to_player_file(&self) -> Vec<u8> {
        let Architecture { nodes, shape } = self.architecture();
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSIONS[usize::from(shape != NetworkShape::Paper)].to_le_bytes());
        bytes.extend((self.weights().len() as u32).to_le_bytes());
        bytes.extend(LAYERS.iter().flat_map(|nodes| nodes.to_le_bytes()));
        bytes.extend(kind_number(nodes).to_le_bytes());
        if shape != NetworkShape::Paper {
            bytes.extend((shape as u16).to_le_bytes());
        }
        bytes.extend(self.weights().iter().flat_map(|weight| weight.to_le_bytes()));
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// The network of a player file.
    ///
    /// # Errors
    /// If the bytes are not exactly what [`Network::to_player_file`] writes.
    pub fn from_player_file(bytes: &[u8]) -> Result<Self, PlayerFileError> {
        let mut fields = Fields(bytes);
        let magic = fields.take::<8>()?;
        if &magic == ensemble::MAGIC {
            return Err(PlayerFileError::Ensemble);
        }
        if &magic != MAGIC {
            return Err(PlayerFileError::Magic(magic.escape_ascii().to_string()));
        }
        let version = u32::from_le_bytes(fields.take()?);
        if !VERSIONS.contains(&version) {
            return Err(PlayerFileError::Version(version));
        }
        let count = u32::from_le_bytes(fields.take()?) as usize;
        let nodes = fields.kind()?;
        let shape = if version == VERSIONS[0] { NetworkShape::Paper } else { fields.shape()? };
        let architecture = Architecture { nodes, shape };
        check_length(architecture, count, bytes.len())?;
        check_sum(bytes)?;
        let weights = &fields.0[..fields.0.len() - CHECKSUM];
        let weights: Vec<f32> = weights.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Ok(Self::new(architecture, &weights)?)
    }

    /// Reads a player file.
    ///
    /// # Errors
    /// If it can't be read, or is no player file.
    pub fn load(path: &Path) -> Result<Self, PlayerFileError> {
        Self::from_player_file(&read(path, LONGEST_FILE)?)
    }
}

/// The bytes of a file; one more than `longest` for anything longer.
pub(crate) fn read(path: &Path, longest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(longest as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is still to be read of a header.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], PlayerFileError> {
        let (field, rest) = self
            .0
            .split_first_chunk()
            .ok_or(PlayerFileError::Length { expected: HEADER, found: self.0.len() })?;
        self.0 = rest;
        Ok(*field)
    }

    /// The layers, which must be ours, and the kind of nodes.
    fn kind(&mut self) -> Result<NodeKind, PlayerFileError> {
        let mut layers = [0; 3];
        for nodes in &mut layers {
            *nodes = u16::from_le_bytes(self.take()?);
        }
        if layers != LAYERS {
            return Err(PlayerFileError::Layers(layers));
        }
        match u16::from_le_bytes(self.take()?) {
            0 => Ok(NodeKind::Weighted),
            1 => Ok(NodeKind::Sum),
            other => Err(PlayerFileError::Kind(other)),
        }
    }

    /// A shape that is not the papers'.
    fn shape(&mut self) -> Result<NetworkShape, PlayerFileError> {
        let number = u16::from_le_bytes(self.take()?);
        let shape = NetworkShape::ALL.get(usize::from(number)).filter(|shape| **shape != NetworkShape::Paper);
        shape.copied().ok_or(PlayerFileError::Shape(number))
    }
}

const fn kind_number(kind: NodeKind) -> u16 {
    match kind {
        NodeKind::Weighted => 0,
        NodeKind::Sum => 1,
    }
}

/// Bytes of a network's player file.
const fn file_length(architecture: Architecture) -> usize {
    let shape = if matches!(architecture.shape, NetworkShape::Paper) { 0 } else { SHAPE };
    HEADER + shape + 4 * architecture.weight_count() + CHECKSUM
}

/// Bytes of the longest player file of a network.
pub(crate) const LONGEST_FILE: usize =
    file_length(Architecture { nodes: NodeKind::Weighted, shape: NetworkShape::Phases });

fn check_length(architecture: Architecture, count: usize, found: usize) -> Result<(), PlayerFileError> {
    let (expected, weights) = (file_length(architecture), architecture.weight_count());
    if count != weights {
        return Err(NetworkError::Count { architecture, expected: weights, found: count }.into());
    }
    if found == expected { Ok(()) } else { Err(PlayerFileError::Length { expected, found }) }
}

/// Compares the checksum at the end of at least [`CHECKSUM`] bytes.
pub(crate) fn check_sum(bytes: &[u8]) -> Result<(), PlayerFileError> {
    let (content, carried) = bytes.split_last_chunk().expect("the length was checked");
    let (expected, found) = (checksum(content), u64::from_le_bytes(*carried));
    if expected == found { Ok(()) } else { Err(PlayerFileError::Checksum { expected, found }) }
}

/// 64-bit FNV-1a: any single altered byte changes it.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_gives_the_published_values() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
