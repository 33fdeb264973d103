//! How a coordinator begins: its store is opened, tried out, claimed and read.

use super::server::{CoordinatorSettings, First, ServeError};
use super::standby;
use super::worker_api::ServedCluster;
use crate::cluster::{Background, Clock, Cluster};
use crate::rejection::Rejection;
use crate::state::leases::Terms;
use crate::state::{AuditTerms, Rules, Submission, run_name};
use crate::write::open::look_up;
use evolution::digest::Digest;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use store::promises::{self, BrokenPromise};
use store::{Batch, BatchMark, Claim, Nonce, Store, StoreError};

/// How long to wait before a store is opened again that could not be opened, at first and at most.
const REOPENING: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Opens the store of a coordinator. It is called again if that may help.
pub type OpenStore = Arc<dyn Fn() -> BoxFuture<'static, Result<Store, StoreError>> + Send + Sync>;

/// A store that is open already.
pub fn opened(store: Store) -> OpenStore {
    Arc::new(move || Box::pin(std::future::ready(Ok(store.clone()))))
}

/// A coordinator without a server, for a worker in the same process: it has the runs that it is asked for, and no others
/// of the store.
pub fn start_local(
    store: Store,
    nonce: Nonce,
    version: &str,
    unix: fn() -> u64,
) -> BoxFuture<'static, Result<(Cluster, Background), Rejection>> {
    // Its worker lives as long as it does, and often reports its progress.
    let lease = Duration::from_hours(24);
    let terms = Terms { lease, renew: Duration::from_millis(100), hedge_after: lease, ..Terms::default() };
    let rules = Rules {
        terms,
        nonce,
        version: version.to_owned(),
        exit_when_done: true,
        max_runs: usize::MAX,
        only_submitted: true,
        patient: false,
        audit: AuditTerms::default(),
    };
    Box::pin(Cluster::start(store, None, rules, Clock::new(unix), false))
}

/// A coordinator without a server, which claims the whole store and continues all of its runs, unless only what is
/// submitted is to be computed.
pub async fn start(
    store: Store,
    settings: &CoordinatorSettings,
    unix: fn() -> u64,
) -> Result<(Cluster, Background), ServeError> {
    let store = open_store(&opened(store), settings).await?;
    let Opened { cluster, background, .. } = open(store, settings, Clock::new(unix), None).await?;
    Ok((cluster, background))
}

/// A store that is served.
pub(super) struct Opened {
    pub(super) cluster: Cluster,
    pub(super) background: Background,
    /// The name of the run that it began with, which follows from players of a tournament, too.
    pub(super) first: Option<String>,
}

/// Opens the store and tries it out. A coordinator that ends with its runs tries again for a while, in place of being started
/// again by its Job: probes and workers are answered meanwhile, and in the end all learn the reason. Workers have waited as
/// long and wait for `give_up_after` in all, so that half of it is left to tell them.
pub(super) async fn open_store(
    open: &OpenStore,
    settings: &CoordinatorSettings,
) -> Result<Store, ServeError> {
    let longest = settings.give_up_after.map(|limit| limit / 2);
    let start = tokio::time::Instant::now();
    let [mut pause, longest_pause] = REOPENING;
    let mut attempt = 0;
    loop {
        let error = match try_store(open, settings, attempt).await {
            Err(error) if settings.exit_when_done && !error.is_permanent() => error,
            opened => return opened,
        };
        if let ServeError::Promise(BrokenPromise::Store(cause)) | ServeError::Store(cause) = &error
            && cause.is_permanent_at_first()
        {
            return Err(ServeError::Closed(error.to_string()));
        }
        let Some(longest) = longest else { return Err(error) };
        let after = start.elapsed();
        if after + pause > longest {
            let seconds = after.as_secs();
            return Err(ServeError::Closed(format!(
                "the store could not be opened for {seconds} s: {error}"
            )));
        }
        tracing::warn!(reason = %error, "the store cannot be opened; trying again");
        tokio::time::sleep(pause).await;
        pause = longest_pause.min(pause * 2);
        attempt += 1;
    }
}

async fn try_store(
    open: &OpenStore,
    settings: &CoordinatorSettings,
    attempt: u128,
) -> Result<Store, ServeError> {
    let store = open().await.map_err(ServeError::Store)?;
    if let Some(trial) = settings.trial {
        // What an earlier attempt has left behind is not raced with.
        let nonce = Nonce(settings.nonce.0.wrapping_add(attempt));
        promises::try_out(&store, nonce, trial).await?;
    }
    Ok(store)
}

/// Waits for its owner if it stands by, claims the store, and reads what is in it.
pub(super) async fn open(
    store: Store,
    settings: &CoordinatorSettings,
    clock: Clock,
    served: Option<&ServedCluster>,
) -> Result<Opened, ServeError> {
    if let Some(takeover_after) = settings.takeover_after {
        let stand_by = |standby| served.into_iter().for_each(|served| served.stand_by(standby));
        stand_by(true);
        let probe = standby::OwnerProbe::new(settings.tls.as_ref());
        standby::wait(&store, &settings.address, &probe, takeover_after).await.map_err(Rejection::from)?;
        stand_by(false);
    }
    let batch = Batch::new(&store, &settings.batch);
    // A coordinator of the same batch, which this one replaces, leaves its workers to it.
    batch.note(BatchMark::Claimed(settings.nonce)).await.map_err(Rejection::from)?;
    let claim = Claim::take(&store, settings.nonce, &settings.address).await.map_err(Rejection::from)?;
    let rules = Rules {
        terms: settings.terms,
        nonce: settings.nonce,
        version: settings.version.clone(),
        exit_when_done: settings.exit_when_done,
        max_runs: settings.max_runs,
        only_submitted: settings.only_submitted,
        patient: true,
        audit: settings.audit,
    };
    let reading = tokio::time::Instant::now();
    let (cluster, background) = Cluster::start(store, Some(claim), rules, clock, settings.inline).await?;
    tracing::info!(milliseconds = reading.elapsed().as_millis() as u64, "read the store");
    let mut first = None;
    if let Some(First { file, text, players }) = &settings.first {
        let plan = Box::new(experiment::parse(file, text, None).map_err(Rejection::from)?);
        // What a tournament is called follows from its players.
        let files = players.iter().map(|bytes| (Digest::of(bytes), bytes.clone())).collect();
        let submission = Submission { plan, files, priority: None, fresh: false };
        let Submission { plan, files, .. } = look_up(&cluster, submission).await?;
        let name = run_name(&plan);
        // That it cannot be read says nothing of the run: it has not failed.
        if let Some(unread) = cluster.take_unread(&name) {
            return Err(unread.into());
        }
        // A caller that waits for one run gets no end of it before its results are there.
        if matches!(
            cluster.status(&name).map(|status| status.state()),
            Ok(proto::v1::run_status::State::Finished)
        ) {
            let id = run::RunId::new(&name).map_err(Rejection::from)?;
            run::stored::check(cluster.store(), &id).await.map_err(Rejection::from)?;
        }
        // What was cancelled in this very batch stays cancelled, although its pods are replaced.
        let revives = settings.revive && !batch.has(BatchMark::Revived).await.map_err(Rejection::from)?;
        if revives || !cluster.apply(|state, _| state.leave_ended(&name)) {
            cluster.submit(*plan, files.into_values().collect(), None, false).await?;
        }
        if revives {
            batch.note(BatchMark::Revived).await.map_err(Rejection::from)?;
        }
        first = Some(name);
    }
    Ok(Opened { cluster, background, first })
}
