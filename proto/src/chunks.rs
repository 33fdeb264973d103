//! Bodies in chunks: a population may be far larger than a message should be.

use crate::v1::Chunk;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

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

/// Chunks at most this long are put together, and copied: every message has its price.
const SMALL: usize = 16 << 10;

/// Cuts bodies that follow each other into chunks. Small ones that are neighbours share one.
pub fn cut_all(bodies: &[Bytes]) -> Vec<Chunk> {
    let is_small = |body: &Bytes| body.len() <= SMALL;
    let groups = bodies.chunk_by(|one, next| is_small(one) && is_small(next));
    groups
        .flat_map(|group| match group {
            [body] => cut(body).collect(),
            small => cut(&small.concat().into()).collect::<Vec<_>>(),
        })
        .collect()
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
    /// Of a body that is no longer than a chunk, what came in one piece is not copied.
    pieces: Vec<Bytes>,
}

impl Assembly {
    /// A body of this number of bytes, if that is allowed.
    pub fn new(announced: u64, limit: u64) -> Result<Self, ChunkError> {
        if announced > limit {
            return Err(ChunkError::TooLarge { limit, announced });
        }
        Ok(Self { announced, bytes: BytesMut::new(), pieces: vec![] })
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
        let is_last = found == self.announced;
        let is_piece = self.announced <= CHUNK as u64 && chunk.bytes.len() > SMALL;
        if is_piece || is_last && self.bytes.is_empty() {
            self.end_piece();
            self.pieces.push(chunk.bytes);
        } else {
            self.bytes.extend_from_slice(&chunk.bytes);
        }
        Ok(())
    }

    /// Notes that what was put together from small chunks is followed by a large one.
    fn end_piece(&mut self) {
        if !self.bytes.is_empty() {
            self.pieces.push(std::mem::take(&mut self.bytes).freeze());
        }
    }

    fn length(&self) -> u64 {
        (self.pieces.iter().map(Bytes::len).sum::<usize>() + self.bytes.len()) as u64
    }

    /// The whole body.
    pub fn finish(self) -> Result<Bytes, ChunkError> {
        self.finish_pieces().map(|pieces| join(&pieces))
    }

    /// The whole body, in pieces that follow each other.
    pub fn finish_pieces(mut self) -> Result<Vec<Bytes>, ChunkError> {
        let found = self.length();
        if found != self.announced {
            return Err(ChunkError::Length { announced: self.announced, found });
        }
        self.end_piece();
        Ok(self.pieces)
    }
}

/// Pieces that follow each other as one; a single one is not copied.
pub fn join(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [one] => one.clone(),
        several => several.concat().into(),
    }
}

/// Takes the first bytes of pieces that follow each other, without a copy if they lie in one piece; nothing if there are fewer.
pub fn take_first(pieces: &mut VecDeque<Bytes>, mut length: usize) -> Option<Bytes> {
    let mut taken = vec![];
    while length > 0 {
        let first = pieces.front_mut()?;
        let part = first.split_to(length.min(first.len()));
        if first.is_empty() {
            pieces.pop_front();
        }
        length -= part.len();
        taken.push(part);
    }
    Some(join(&taken))
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
        assert_eq!(chunks.len(), 3);
        let all = [&body[..], b"one body"].concat();
        assert_eq!(assemble(chunks, all.len() as u64, u64::MAX), Ok(all.into()));
    }

    #[test]
    fn what_came_in_one_piece_is_not_copied() {
        let [state, departure, statistics] = [40_000, 300, 900].map(|length| Bytes::from(vec![7; length]));
        let chunks = cut_all(&[state.clone(), departure, statistics.clone()]);
        assert_eq!(chunks.iter().map(|chunk| chunk.bytes.len()).collect::<Vec<_>>(), [40_000, 1200]);
        let mut assembly = Assembly::new(41_200, u64::MAX).unwrap();
        chunks.into_iter().try_for_each(|chunk| assembly.add(chunk)).unwrap();
        let mut pieces = VecDeque::from(assembly.finish_pieces().unwrap());
        let first = take_first(&mut pieces, 40_000).unwrap();
        assert_eq!((first.as_ptr(), first.len()), (state.as_ptr(), 40_000));
        assert_eq!(take_first(&mut pieces, 300).unwrap().len(), 300);
        assert_eq!(take_first(&mut pieces, 901), None, "there are 900");
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
