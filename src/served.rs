//! Whether a coordinator has a run that a command is about to write, where no lock of the run shows it: in a bucket, or after
//! its end.
//!
//! The claim to a store holds the address of the coordinator that made it. One that answers there still has the store. One that
//! is silent is fenced by the first event of this process, as any earlier writer is.

use crate::failure::Failure;
use crate::run::How;
use run::{Lock, Recorded, RunError, RunEvent, RunId, journal};
use store::{Claim, ClaimOwner, Nonce, Store};

/// The coordinator that has claimed a bucket and answers.
async fn coordinator(store: &Store) -> Result<Option<ClaimOwner>, Failure> {
    if store.folder_on_disk().is_some() {
        return Ok(None);
    }
    let owner = Claim::owner(store).await?.filter(|owner| !owner.address.is_empty());
    Ok(match owner {
        Some(owner) if coordinator::answers(&owner.address).await => Some(owner),
        _ => None,
    })
}

/// Rejects a bucket that a coordinator serves, because the whole of it is to be claimed.
pub(crate) async fn check_free(store: &Store, how: &How) -> Result<(), Failure> {
    match coordinator(store).await? {
        Some(ClaimOwner { address, .. }) => Err(Failure::Other(format!(
            "the store {} is served by the coordinator at {address}: submit the run there, or stop it first",
            how.store.folder().display()
        ))),
        None => Ok(()),
    }
}

/// Rejects a store that a coordinator serves, because what is to be written there is shown by the coordinator as well.
pub(crate) async fn check_unserved(store: &Store) -> Result<(), Failure> {
    let server = match Lock::server(store)? {
        Some(server) => Some(server.to_string()),
        None => coordinator(store).await?.map(|owner| format!("at {}", owner.address)),
    };
    server.map_or(Ok(()), |server| {
        let advice = "use `--coordinator URL`, so that the coordinator shows the change";
        Err(Failure::Other(format!("a coordinator serves this store ({server}): {advice}")))
    })
}

/// Rejects a run that is in a store that a coordinator serves, unless it is finished and is only to be shown: the coordinator
/// would go on showing what it knows of it.
pub(crate) async fn check_unlisted(store: &Store, run: &RunId, is_extended: bool) -> Result<(), Failure> {
    let server = match Lock::server(store)? {
        Some(server) => Some(format!("the coordinator, {server},")),
        None => coordinator(store).await?.map(|owner| format!("the coordinator at {}", owner.address)),
    };
    let Some(server) = server else { return Ok(()) };
    if !run::stored::is_run(store, run).await? {
        return Ok(());
    }
    let recorded = run::listing::recorded(store, run).await;
    if !is_extended && recorded.is_ok_and(|recorded| recorded.finished.is_some()) {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "run `{run}` is in a store that {server} serves: submit or extend it there, or stop the coordinator first"
    )))
}

/// Rejects a run of a bucket that a coordinator works on. A run that the coordinator does not have may be run beside it.
pub(crate) async fn check_idle(store: &Store, run: &RunId) -> Result<(), Failure> {
    let Some(ClaimOwner { nonce, address, .. }) = coordinator(store).await? else { return Ok(()) };
    if run::stored::is_run(store, run).await? && writer(store, run).await == Some(nonce) {
        let owner = format!("the coordinator at {address}");
        return Err(RunError::Busy { run: run.clone(), owner }.into());
    }
    Ok(())
}

/// The process that has an open run. A journal that cannot be read is reported by what reads the run next.
async fn writer(store: &Store, run: &RunId) -> Option<Nonce> {
    let events = journal::read_all::<RunEvent>(store, run).await.ok()?;
    let is_open = Recorded::of(events.iter().map(|event| &event.body)).status.is_open();
    let opened = events.iter().rfind(|event| matches!(event.body, RunEvent::Opened { .. }))?;
    is_open.then_some(opened.writer)
}
