//! What was done in a batch: its pods are replaced, and a coordinator that starts again has to know it.
//!
//! A batch is known by an id that its supervisor gives it, such as the uid of a Job. Marks are empty objects that are only ever
//! created.

use crate::claim::{Claim, Nonce};
use crate::error::StoreError;
use crate::object::Kind;
use crate::store::Store;
use object_store::path::Path;

const BATCHES: &str = "batches";

/// The longest id of a batch.
pub const LONGEST_BATCH: usize = 100;

/// What is done once in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchMark {
    /// Its run was continued although it had failed or was cancelled.
    Revived,
    /// A worker was notified of its end.
    Notified,
    /// A coordinator of it, which has this nonce, is about to claim the store.
    Claimed(Nonce),
}

impl BatchMark {
    fn name(self) -> String {
        match self {
            Self::Revived => "revived".to_owned(),
            Self::Notified => "notified".to_owned(),
            Self::Claimed(nonce) => format!("claimed-{nonce}"),
        }
    }
}

/// The marks of one batch; without an id there are none.
#[derive(Clone, Debug)]
pub struct Batch {
    store: Store,
    id: String,
}

impl Batch {
    /// The batch of this id: letters, digits and `-`, at most [`LONGEST_BATCH`] of them, or empty for no batch.
    pub fn new(store: &Store, id: &str) -> Self {
        Self { store: store.clone(), id: id.to_owned() }
    }

    /// Whether an id can be that of a batch.
    pub fn is_id(id: &str) -> bool {
        id.len() <= LONGEST_BATCH && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    fn path(&self, mark: BatchMark) -> Path {
        Path::from(BATCHES).join(self.id.as_str()).join(mark.name())
    }

    /// Whether it was done in this batch.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn has(&self, mark: BatchMark) -> Result<bool, StoreError> {
        if self.id.is_empty() {
            return Ok(false);
        }
        Ok(self.store.read_optional(&self.path(mark), Kind::Batch).await?.is_some())
    }

    /// Whether a coordinator of another batch, or of none, has claimed the store. Without an id of its own, a batch cannot tell.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn is_succeeded(&self) -> Result<bool, StoreError> {
        match Claim::owner(&self.store).await? {
            Some(owner) if !self.id.is_empty() => Ok(!self.has(BatchMark::Claimed(owner.nonce)).await?),
            _ => Ok(false),
        }
    }

    /// Notes that it was done.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn note(&self, mark: BatchMark) -> Result<(), StoreError> {
        if !self.id.is_empty() {
            self.store.create(&self.path(mark), Kind::Batch, "").await?;
        }
        Ok(())
    }
}
