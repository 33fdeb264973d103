//! Checkpoints and results as immutable objects, in a local folder, in a bucket of S3, or in memory.
//!
//! An object is created once and never changed. Creating it again with the same content is success, with other
//! content an error, and of many that create it at once exactly one wins; what exists is whole and durable. Every
//! object carries a header and a checksum ([`object`]), so that one that was cut short, altered, mistaken for another
//! or written by a newer version is refused by name. [`codec`] says how values become bodies. A [`Claim`] keeps a second
//! coordinator out of a whole store. Whether a store keeps these promises can be tried out: [`promises`].
//!
//! Buckets need the feature `s3`.
//!
//! This crate deliberately does not know what is in a body or where the objects of a run lie: that is `run`'s. It is
//! no cache, locks nothing, and overwrites nothing.
//!
//! ```
//! use store::{Created, Kind, Path, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::memory();
//! let state = Path::from("runs/maze/state");
//! let population = vec![1.5f32, 2.5];
//! assert_eq!(store.create_value(&state, Kind::IslandState, &population).await?, Created::New);
//! assert_eq!(store.create_value(&state, Kind::IslandState, &population).await?, Created::Same);
//! assert_eq!(store.read_value::<Vec<f32>>(&state, Kind::IslandState).await?, population);
//! assert_eq!(store.list(&Path::from("runs")).await?, [state]);
//! # Ok(())
//! # }
//! ```

mod batch;
#[cfg(feature = "s3")]
mod bucket;
mod claim;
mod error;
mod folder;
mod location;
pub mod number;
pub mod object;
mod patience;
pub mod promises;
mod store;

pub use batch::{Batch, BatchMark, LONGEST_BATCH};
pub use claim::{Claim, ClaimOwner, Nonce};
pub use error::StoreError;
pub use location::Location;
pub use object::{Kind, ObjectDamage};
pub use object_store::path::Path;
pub use store::{Created, Store};
