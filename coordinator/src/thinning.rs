//! What is deleted of a run because nobody needs it any more. Disks may take long to do so, and nobody waits for it.

use futures::{StreamExt, TryStreamExt, stream};
use store::{Claim, Place, RunId, Store, StoreError};

/// How many objects are deleted at a time.
const AT_A_TIME: usize = 8;

/// Objects of one run that nobody needs any more.
pub(crate) struct Thinning {
    pub(crate) store: Store,
    pub(crate) run: RunId,
    pub(crate) claim: Option<Claim>,
    pub(crate) old: Vec<Place>,
}

/// Whether they were deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinned {
    Yes,
    /// The store is somebody else's by now, who may need them.
    NotOurs,
}

impl Thinning {
    pub(crate) fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// Deletes them, unless another coordinator has begun.
    pub(crate) async fn delete(&self) -> Result<Thinned, StoreError> {
        if !is_ours(self.claim.as_ref()).await? {
            return Ok(Thinned::NotOurs);
        }
        let paths = stream::iter(&self.old).map(|place| Ok(place.in_run(&self.run)));
        let delete = |path: store::Path| async move { self.store.delete(&path).await };
        paths.try_for_each_concurrent(AT_A_TIME, delete).await?;
        Ok(Thinned::Yes)
    }
}

/// Whether something may be deleted: a later coordinator must find all that it has seen. This is asked anew each time.
pub(crate) async fn is_ours(claim: Option<&Claim>) -> Result<bool, StoreError> {
    match claim {
        Some(claim) => claim.stands().await,
        None => Ok(true),
    }
}

/// Where a checkpoint lies.
pub(crate) fn checkpoint_place(island: u32, (epoch, generation): (u64, u64)) -> Place {
    Place::Checkpoint { island, epoch: epoch as u32, generation: generation as u32 }
}
