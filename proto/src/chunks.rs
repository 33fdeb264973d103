//! Bodies in chunks: a population may be far larger than a message should be.

use crate::v1::Chunk;
use bytes::{Bytes, BytesMut};

/// How many bytes travel in one message.
pub const CHUNK: usize = 1 << 20;

/// A body that is not as long as was announced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// More was announced than is allowed.
    #[error("expected a body of at most {limit} bytes, found one of `{announced}`")]
    TooLarge {
        /// What is allowed.
        limit: u64,
        /// What was announced.
        announced: u64,
    },
    /// It ended early, or did not end.
    #[error("expected {announced} bytes as announced, found `{found}`")]
    Length {
        /// What was announced.
        announced: u64,
        /// What came, at least.
        found: u64,
    },
}

/// Cuts bodies that follow each other into chunks: a single one if they fit, because every message has its price.
pub fn cut_all(bodies: &[Bytes]) -> Vec<Chunk> {
    let length: usize = bodies.iter().map(Bytes::len).sum();
    if length <= CHUNK && bodies.len() > 1 {
        return vec![Chunk { bytes: bodies.concat().into() }];
    }
    bodies.iter().flat_map(cut).collect()
}

/// Cuts a body into chunks.
pub fn cut(body: &Bytes) -> impl Iterator<Item = Chunk> + use<> {
    let body = body.clone();
    (0..body.len()).step_by(CHUNK).map(move |at| Chunk { bytes: body.slice(at..body.len().min(at + CHUNK)) })
}

/// A body that is being put together. It never takes more memory than has arrived, nor more than was announced.
#[derive(Debug)]
pub struct Assembly {
    announced: u64,
    bytes: BytesMut,
    /// A body that came in one chunk is not copied.
    whole: Option<Bytes>,
}

impl Assembly {
    /// A body of this number of bytes, if that is allowed.
    pub fn new(announced: u64, limit: u64) -> Result<Self, ChunkError> {
        if announced > limit {
            return Err(ChunkError::TooLarge { limit, announced });
        }
        Ok(Self { announced, bytes: BytesMut::new(), whole: None })
    }

    /// Adds the next chunk.
    pub fn add(&mut self, chunk: Chunk) -> Result<(), ChunkError> {
        let found = self.length() + chunk.bytes.len() as u64;
        if found > self.announced {
            return Err(ChunkError::Length { announced: self.announced, found });
        }
        if chunk.bytes.is_empty() {
            return Ok(());
        }
        if self.bytes.is_empty() && found == self.announced {
            self.whole = Some(chunk.bytes);
        } else {
            self.bytes.extend_from_slice(&chunk.bytes);
        }
        Ok(())
    }

    fn length(&self) -> u64 {
        self.whole.as_ref().map_or(self.bytes.len(), Bytes::len) as u64
    }

    /// The whole body.
    pub fn finish(self) -> Result<Bytes, ChunkError> {
        let found = self.length();
        if found != self.announced {
            return Err(ChunkError::Length { announced: self.announced, found });
        }
        Ok(self.whole.unwrap_or_else(|| self.bytes.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn assemble(
        chunks: impl IntoIterator<Item = Chunk>,
        announced: u64,
        limit: u64,
    ) -> Result<Bytes, ChunkError> {
        let mut assembly = Assembly::new(announced, limit)?;
        chunks.into_iter().try_for_each(|chunk| assembly.add(chunk))?;
        assembly.finish()
    }

    #[test]
    fn a_body_of_several_chunks_comes_back() {
        let body = Bytes::from((0..3 * CHUNK / 2).map(|at| (at % 251) as u8).collect::<Vec<u8>>());
        let chunks: Vec<Chunk> = cut(&body).collect();
        assert_eq!(chunks.len(), 2);
        assert_eq!(assemble(chunks, body.len() as u64, u64::MAX), Ok(body.clone()));
        let small = [Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b" body")];
        let chunks = cut_all(&small);
        assert_eq!(chunks.len(), 1);
        assert_eq!(assemble(chunks, 8, 8), Ok(Bytes::from_static(b"one body")));
        let [one, _, rest] = small;
        let chunks = cut_all(&[body.clone(), one, rest]);
        assert_eq!(chunks.len(), 4);
        let all = [&body[..], b"one body"].concat();
        assert_eq!(assemble(chunks, all.len() as u64, u64::MAX), Ok(all.into()));
    }

    #[test]
    fn empty_chunks_change_nothing() {
        let body = Bytes::from_static(b"whole");
        let empty = || Chunk { bytes: Bytes::new() };
        let chunks = [empty(), Chunk { bytes: body.clone() }, empty()];
        assert_eq!(assemble(chunks, 5, 5), Ok(body));
    }

    proptest! {
        #[test]
        fn only_what_was_announced_is_accepted(pieces in prop::collection::vec(0usize..50, 0..6), announced in 0u64..200) {
            let chunks = pieces.iter().map(|&length| Chunk { bytes: vec![7; length].into() });
            let length = pieces.iter().sum::<usize>() as u64;
            let assembled = assemble(chunks, announced, 100);
            prop_assert_eq!(assembled.is_ok(), announced == length && announced <= 100);
        }
    }
}
