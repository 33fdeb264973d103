//! Checkpoints and results as immutable objects, in a local folder, in a bucket of S3, or in memory.
//!
//! An object is created once and never changed. Creating it again with the same content is success, with other
//! content an error, and of many who create it at once exactly one wins; what exists is whole and durable. Every
//! object carries a header and a checksum ([`object`]), so that one that was cut short, altered, mistaken for another
//! or written by a newer version is refused by name. [`layout`] knows where everything of a run lies, [`evolution::codec`] how
//! values become bodies, and [`Journal`] is the numbered list of events that also keeps a second coordinator out of a run, as a [`Claim`] keeps
//! it out of the whole store. Whether a store keeps these promises can be tried out: [`promises`].
//!
//! This crate deliberately does not know what is in a body: no island, epoch or event of evolution is named here,
//! nor what should be kept or thinned out. It is no cache, locks nothing, and overwrites nothing.
//!
//! ```
//! use store::{Created, Journal, Kind, Nonce, Place, RunId, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::memory();
//! let run = RunId::new("maze-20x20")?;
//!
//! let state = Place::State { island: 3, epoch: 0 }.in_run(&run);
//! let population = vec![1.5f32, 2.5];
//! assert_eq!(store.create_value(&state, Kind::IslandState, &population).await?, Created::New);
//! assert_eq!(store.create_value(&state, Kind::IslandState, &population).await?, Created::Same);
//! assert_eq!(store.read_value::<Vec<f32>>(&state, Kind::IslandState).await?, population);
//! assert_eq!(store.list(&run.island(3)).await?, [state]);
//!
//! let (mut journal, events) = Journal::open::<String>(&store, &run, Nonce(7)).await?;
//! assert!(events.is_empty());
//! assert_eq!(journal.append(&"created".to_string()).await?, 0);
//! # Ok(())
//! # }
//! ```

mod bucket;
mod claim;
mod error;
mod folder;
pub mod journal;
pub mod layout;
mod location;
pub mod object;
pub mod promises;
mod store;

pub use claim::Claim;
pub use error::StoreError;
pub use journal::{Event, Journal, JournalError, Nonce};
pub use layout::{ArtifactName, NameError, Place, RunId};
pub use location::Location;
pub use object::{Damage, Kind};
pub use object_store::path::Path;
pub use store::{Created, Store};
