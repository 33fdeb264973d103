//! Digests, the encoding of values, and the few types that the engine, the store and the wire share.
//!
//! This is the leaf of the workspace: it depends on no other crate of ours, so that a store or a protocol can name a
//! digest without linking the engine that computes it. It deliberately knows no island state, event or message.
//!
//! ```
//! use codec::{Digest, decode, encode};
//!
//! let bytes = encode(&(7u64, "maze".to_owned()))?;
//! assert_eq!(decode::<(u64, String)>(&bytes)?, (7, "maze".to_owned()));
//! assert_eq!(Digest::of(&bytes).to_string().parse(), Ok(Digest::of(&bytes)));
//! # Ok::<(), codec::CodecError>(())
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod digest;
mod encoding;
mod standing;

pub use digest::Digest;
pub use encoding::{CodecError, MAX_ENCODED, decode, decode_dense, decode_prefix, encode, is_encoding};
pub use standing::Standing;
