//! The protocol between a coordinator, its workers and its operators, and the only place where it meets our own types.
//!
//! [`v1`] is what `atoll/v1/atoll.proto` says, [`convert`] turns it into the types of the domain and refuses whatever
//! is no such thing, [`calls`] is what a worker calls over any transport, [`chunks`] cuts large bodies into messages and puts them together
//! again, and [`gathered_writes`] spares connections small packets. The crate deliberately opens no connection and knows no
//! rule of a run.
//!
//! ```
//! use proto::convert::{Piece, Work};
//!
//! let work = Work { run: "maze-0a1b2c3d".to_owned(), piece: Piece::Epoch { island: 3, epoch: 7 } };
//! let wire = proto::v1::Piece::from(&work);
//! assert_eq!(Work::try_from(wire)?, work);
//! # Ok::<(), proto::convert::WireError>(())
//! ```

pub mod calls;
pub mod chunks;
pub mod convert;
pub mod gathered_writes;

/// What every message can do: say how long it is, for example.
pub use prost::Message;

/// Version 1 of the protocol, generated from `atoll.proto` (`tests/generated.rs` compares it).
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    include!("generated/atoll.v1.rs");

    /// The protocol's own description, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!("generated/atoll.v1.bin");
}

/// The largest message that either side reads: twice a chunk, so that what stands around the bytes fits as well.
pub const MAX_MESSAGE: usize = 2 * chunks::CHUNK;

/// The largest message of an operator: an experiment, and the player files of a tournament.
pub const MAX_SUBMISSION: usize = 32 * chunks::CHUNK;
