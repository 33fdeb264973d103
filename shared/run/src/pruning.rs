//! What is deleted of a run because retention does not keep it. Deleting may take long, and nothing waits for it.

use crate::layout::{Place, RunId};
use futures::{StreamExt, TryStreamExt, stream};
use store::{Claim, Path, Store, StoreError};

/// How many objects are deleted at a time.
const AT_A_TIME: usize = 8;

/// Objects of one run that retention does not keep.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pruning {
    /// The run.
    pub run: RunId,
    /// The objects.
    pub places: Vec<Place>,
}

/// Whether they were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// They are gone.
    Yes,
    /// Another coordinator has claimed the store and may need them.
    NotOurs,
}

impl Pruning {
    /// Whether there is nothing to delete.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Deletes the objects, unless another coordinator has claimed the store.
    ///
    /// # Errors
    /// If the store fails; some of the objects may be gone then.
    pub async fn delete(&self, store: &Store, claim: Option<&Claim>) -> Result<Pruned, StoreError> {
        if !is_ours(claim).await? {
            return Ok(Pruned::NotOurs);
        }
        let paths = stream::iter(&self.places).map(|place| Ok(place.in_run(&self.run)));
        let delete = |path: Path| async move { store.delete(&path).await };
        paths.try_for_each_concurrent(AT_A_TIME, delete).await?;
        Ok(Pruned::Yes)
    }
}

/// Whether an object may be deleted: a later coordinator must find all that it has seen. Checked each time.
async fn is_ours(claim: Option<&Claim>) -> Result<bool, StoreError> {
    match claim {
        Some(claim) => claim.stands().await,
        None => Ok(true),
    }
}
