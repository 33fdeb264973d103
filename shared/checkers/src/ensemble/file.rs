//! Ensemble files: the members' player files one after the other.
//!
//! All numbers are little-endian: the magic `ATOLL-CE`; the format version and the number of members, 4 bytes each;
//! for each member the length of its player file, 4 bytes, and that file; the checksum of all before it (64-bit
//! FNV-1a), 8 bytes.

use super::Ensemble;
use crate::network::Network;
use crate::player_file::{self, CHECKSUM, PlayerFileError, check_sum, checksum, read};
use std::path::Path;
use std::sync::Arc;

/// What an ensemble file starts with.
pub(crate) const MAGIC: &[u8; 8] = b"ATOLL-CE";
const VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 4;
const LENGTH: usize = 4;

/// Bytes of an ensemble file with as many and as large members as there may be.
pub(crate) const LONGEST_FILE: usize =
    HEADER + Ensemble::MOST_MEMBERS * (LENGTH + player_file::LONGEST_FILE) + CHECKSUM;

impl Ensemble {
    /// The ensemble as a player file.
    pub fn to_player_file(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.members.len() as u32).to_le_bytes());
        for member in self.members.iter().map(|network| network.to_player_file()) {
            bytes.extend((member.len() as u32).to_le_bytes());
            bytes.extend(member);
        }
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// The ensemble of a player file.
    ///
    /// # Errors
    /// If the bytes are not exactly what [`Ensemble::to_player_file`] writes.
    pub fn from_player_file(bytes: &[u8]) -> Result<Self, PlayerFileError> {
        let members = cut(bytes, member_count(bytes)?)?;
        check_sum(bytes)?;
        let read = |(member, bytes)| {
            let network = Network::from_player_file(bytes);
            network.map(Arc::new).map_err(|error| PlayerFileError::Member { member, error: Box::new(error) })
        };
        let members = members.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self { members })
    }

    /// Reads an ensemble file.
    ///
    /// # Errors
    /// If it can't be read, or is no ensemble file.
    pub fn load(path: &Path) -> Result<Self, PlayerFileError> {
        Self::from_player_file(&read(path, LONGEST_FILE)?)
    }
}

/// What the header says, which is checked.
fn member_count(bytes: &[u8]) -> Result<usize, PlayerFileError> {
    let cut_short = PlayerFileError::Length { expected: HEADER, found: bytes.len() };
    let Some((magic, rest)) = bytes.split_first_chunk::<8>() else { return Err(cut_short) };
    if magic != MAGIC {
        return Err(PlayerFileError::Magic(magic.escape_ascii().to_string()));
    }
    let ([version, count, ..], _) = rest.as_chunks::<4>() else { return Err(cut_short) };
    let (version, count) = (u32::from_le_bytes(*version), u32::from_le_bytes(*count) as usize);
    match version {
        VERSION if (1..=Ensemble::MOST_MEMBERS).contains(&count) => Ok(count),
        VERSION => Err(PlayerFileError::Members(super::EnsembleError(count))),
        newer => Err(PlayerFileError::Version(newer)),
    }
}

/// The members' files, which with the checksum must fill all bytes.
fn cut(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>, PlayerFileError> {
    let mut at = HEADER;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        let length = u32::from_le_bytes(part(bytes, at, LENGTH)?.try_into().expect("as long as asked for"));
        let member = part(bytes, at + LENGTH, length as usize)?;
        at += LENGTH + member.len();
        members.push(member);
    }
    let (expected, found) = (at + CHECKSUM, bytes.len());
    if expected == found { Ok(members) } else { Err(PlayerFileError::Length { expected, found }) }
}

/// Some bytes that come before the checksum.
fn part(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], PlayerFileError> {
    let expected = at.saturating_add(length).saturating_add(CHECKSUM);
    let found = bytes.len();
    let cut_short = PlayerFileError::Length { expected, found };
    if expected > found { Err(cut_short) } else { Ok(&bytes[at..at + length]) }
}
