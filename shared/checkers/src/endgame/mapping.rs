//! Bytes in memory, or in a file that is mapped into it.
#![allow(unsafe_code, reason = "mapping a file")]

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Some bytes.
pub(super) enum Bytes {
    /// In memory of our own.
    Owned(Vec<u8>),
    /// A part of a mapped file, which processes share.
    Mapped(Mmap, Range<usize>),
}

impl Bytes {
    /// Maps a whole file.
    pub(super) fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is read only. Database files are written under another name, renamed when they are
        // complete, and never changed afterwards, so no file that is mapped is written to.
        let mapping = unsafe { Mmap::map(file) }?;
        let all = 0..mapping.len();
        Ok(Self::Mapped(mapping, all))
    }

    /// Only these of the bytes; the range must lie within them.
    pub(super) fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Owned(bytes) => Self::Owned(bytes[range].to_vec()),
            Self::Mapped(mapping, _) => Self::Mapped(mapping, range),
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Owned(bytes) => bytes,
            Self::Mapped(mapping, range) => &mapping[range.clone()],
        }
    }
}
