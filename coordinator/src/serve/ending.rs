//! When a coordinator that ends with its runs has come to its end, and how its workers learn of it.

use super::change_signal::Listener;
use super::permissions::{Refusals, RefusedWorkers};
use super::server::{CoordinatorSettings, ServeEnding};
use super::worker_api::ServedCluster;
use crate::cluster::Cluster;
use crate::state::{ClusterState, Misfit};
use std::time::Duration;
use store::{Batch, BatchMark};
use tokio::time::Instant;

/// How often workers are looked at that have to learn of the end.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait for workers to learn that there is nothing left to do.
const LINGERING: Duration = Duration::from_secs(10);
/// How long to wait for their goodbyes after that.
const GOODBYE: Duration = Duration::from_secs(1);
/// How long to wait for another worker at most after one was refused that can never work here.
const REFUSED: Duration = Duration::from_secs(30);
/// How long it is remembered that a worker cannot start or was refused, while others work: its Job ends them all.
const MISCONFIGURED: Duration = Duration::from_mins(2);
/// How long work may fit on no connected worker: a larger one may be about to join.
const TOO_LARGE: Duration = Duration::from_mins(1);

/// Informs workers why this coordinator will not serve any more, or never will.
pub(super) async fn stay_refused(served: &ServedCluster, settings: &CoordinatorSettings) {
    tokio::time::sleep(settings.linger).await;
    if tokio::time::timeout(settings.await_worker, served.has_told()).await.is_ok() {
        // The answer is on its way.
        tokio::time::sleep(GOODBYE).await;
    }
}

/// Why workers are sent away whose batch has lost its store.
pub(super) const TAKEN_OVER: &str = "another coordinator has taken the store over, which belongs to another batch: give each batch a store of its own";

/// How long a store may take to say whose the other coordinator is: it keeps nobody from stopping.
const LONGEST_LOOK: Duration = Duration::from_secs(3);

/// Whether the coordinator that has claimed the store is of another batch, which these workers never reach.
pub(super) async fn is_taken_over(batch: &Batch) -> bool {
    match tokio::time::timeout(LONGEST_LOOK, batch.is_succeeded()).await {
        Ok(Ok(is_taken_over)) => is_taken_over,
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot check whose the other coordinator is");
            false
        }
        Err(_) => false,
    }
}

/// Waits until all runs have ended and the workers know, or have had the time to learn it. What is submitted meanwhile is done
/// first.
pub(super) async fn all_done(cluster: &Cluster, settings: &CoordinatorSettings, batch: &Batch) {
    let mut changes = cluster.changes();
    loop {
        while !cluster.look(ClusterState::is_done) {
            changes.changed().await;
        }
        tokio::select! {
            biased;
            () = more_work(cluster) => {}
            () = notify_workers(cluster, settings, batch) => return,
        }
    }
}

/// Waits until there is something to do.
async fn more_work(cluster: &Cluster) {
    let mut changes = cluster.changes();
    while cluster.look(ClusterState::is_done) {
        changes.changed().await;
    }
}

async fn notify_workers(cluster: &Cluster, settings: &CoordinatorSettings, batch: &Batch) {
    let mut changes = cluster.changes();
    let one_was_told = |state: &ClusterState, _| state.workers.one_was_told;
    if !was_notified(batch).await {
        let start = Instant::now();
        linger(cluster, &mut changes, settings.linger, one_was_told).await;
        note_notified(cluster, batch).await;
        tokio::time::sleep_until(start + settings.linger).await;
        linger(cluster, &mut changes, settings.await_worker, one_was_told).await;
        note_notified(cluster, batch).await;
    }
    let knows = |state: &ClusterState, recently| state.workers.all_know_the_end(recently);
    linger(cluster, &mut changes, LINGERING, knows).await;
    // A goodbye that cannot be delivered would only make them wait.
    linger(cluster, &mut changes, GOODBYE, |state, _| state.workers.count() == 0).await;
}

/// Whether a worker of this batch knows of its end: its Job then ends all others.
async fn was_notified(batch: &Batch) -> bool {
    let notified = batch.has(BatchMark::Notified).await;
    notified.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot check whether workers were notified of the end");
        false
    })
}

async fn note_notified(cluster: &Cluster, batch: &Batch) {
    if cluster.look(|state| state.workers.one_was_told)
        && let Err(error) = batch.note(BatchMark::Notified).await
    {
        tracing::warn!(%error, "cannot note that a worker was notified of the end");
    }
}

/// Whether there is nothing left to do for a coordinator that is asked to stop, not even for the next one in its place.
pub(super) async fn is_over(cluster: &Cluster, settings: &CoordinatorSettings, batch: &Batch) -> bool {
    let (is_done, was_told) = cluster.look(|state| (state.is_done(), state.workers.one_was_told));
    if !is_done {
        return false;
    }
    note_notified(cluster, batch).await;
    let has_results = settings.finish.is_none() || cluster.look(|state| state.unfinished().is_some());
    // Without a worker that knows, the next coordinator has to wait for one.
    has_results && (was_told || settings.await_worker.is_zero() || was_notified(batch).await)
}

/// Waits for the workers, but not for long. The condition gets the time since which a worker counts as connected.
async fn linger(
    cluster: &Cluster,
    changes: &mut Listener,
    longest: Duration,
    is_over: impl Fn(&ClusterState, Duration) -> bool,
) {
    let deadline = Instant::now() + longest;
    while Instant::now() < deadline {
        let recently = cluster.now().elapsed.saturating_sub(LINGERING);
        if cluster.look(|state| is_over(state, recently)) {
            return;
        }
        let _ = tokio::time::timeout(LOOK, changes.changed()).await;
    }
}

/// Waits until no worker has been there for too long, or only workers that can never work here, or none that has room for the
/// work, if this coordinator ends with its runs.
pub(super) async fn abandoned(
    cluster: &Cluster,
    settings: &CoordinatorSettings,
    refusals: &Refusals,
) -> ServeEnding {
    if !settings.exit_when_done {
        return std::future::pending().await;
    }
    let mut absence = WorkerAbsence { since: Instant::now(), give_up_after: settings.give_up_after };
    let mut too_large = TooLarge::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let long_ago = cluster.now().elapsed.saturating_sub(MISCONFIGURED);
        let (is_alone, told, misfit) = cluster.look(|state| {
            // Once everything has ended, the other timeouts apply.
            let is_alone = state.workers.count() == 0 && !state.is_done();
            (is_alone, [state.refused.clone(), state.misconfigured.clone()], state.misfit())
        });
        if is_alone {
            let reason = told.into_iter().flatten().next().map(|(reason, _)| reason);
            let refused = reason.map_or_else(|| refusals.look(), RefusedWorkers::Again);
            if let Some(ending) = absence.ending(refused) {
                return ending;
            }
        } else {
            absence.since = Instant::now();
            // What was refused long ago while others work says nothing about those that come later.
            refusals.forget_before(MISCONFIGURED);
            if told.iter().flatten().any(|(_, at)| *at < long_ago) {
                cluster.apply(|state, _| state.forget_refusals(long_ago));
            }
        }
        if let Some(reason) = too_large.lasting(misfit) {
            return ServeEnding::Refused(reason);
        }
    }
}

/// Since when work fits on no connected worker while nothing else goes on.
#[derive(Default)]
struct TooLarge {
    /// Since when, and how many results were accepted until then.
    since: Option<(Instant, u64)>,
    /// Since when workers are busy.
    busy: Option<Instant>,
}

/// A worker that is asked to do what does not fit holds it for a moment; whoever is busy for longer computes something.
const ASKED: Duration = Duration::from_secs(10);

impl TooLarge {
    /// Why it goes no further, once that has lasted.
    fn lasting(&mut self, misfit: Option<Misfit>) -> Option<String> {
        let Some(Misfit { reason, is_idle, accepted }) = misfit else {
            *self = Self::default();
            return None;
        };
        self.busy = (!is_idle).then(|| self.busy.unwrap_or_else(Instant::now));
        let is_computing = self.busy.is_some_and(|busy| busy.elapsed() >= ASKED);
        match self.since {
            Some((since, known)) if known == accepted && !is_computing => {
                (is_idle && since.elapsed() >= TOO_LARGE).then_some(reason)
            }
            _ => {
                self.since = Some((Instant::now(), accepted));
                None
            }
        }
    }
}

/// A coordinator without workers.
struct WorkerAbsence {
    since: Instant,
    /// For ever if not given.
    give_up_after: Option<Duration>,
}

impl WorkerAbsence {
    /// How it ends by now, if a worker was refused since it is alone, or none was.
    fn ending(&self, refused: RefusedWorkers) -> Option<ServeEnding> {
        let limit = self.give_up_after.unwrap_or(Duration::MAX);
        match refused {
            RefusedWorkers::Again(reason) if self.since.elapsed() >= limit.min(REFUSED) => {
                Some(ServeEnding::Refused(reason))
            }
            RefusedWorkers::No if self.since.elapsed() >= limit => Some(ServeEnding::Abandoned(limit)),
            // Seconds later it is known whether that was a worker.
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_coordinator_without_workers_ends_by_what_happened_since_it_is_alone() {
        let since = Instant::now();
        let [patient, impatient] =
            [None, Some(Duration::from_mins(10))].map(|give_up_after| WorkerAbsence { since, give_up_after });
        let refused = || RefusedWorkers::Again("a token".to_owned());
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!([patient.ending(refused()), impatient.ending(refused())], [None, None]);
        tokio::time::advance(Duration::from_secs(1)).await;
        let ending = Some(ServeEnding::Refused("a token".to_owned()));
        assert_eq!([patient.ending(refused()), impatient.ending(refused())], [ending.clone(), ending]);
        assert_eq!(
            [patient.ending(RefusedWorkers::Once), impatient.ending(RefusedWorkers::Once)],
            [None, None]
        );
        tokio::time::advance(Duration::from_mins(10)).await;
        assert_eq!(
            [patient.ending(RefusedWorkers::Once), impatient.ending(RefusedWorkers::Once)],
            [None, None]
        );
        let gone = Some(ServeEnding::Abandoned(Duration::from_mins(10)));
        assert_eq!([patient.ending(RefusedWorkers::No), impatient.ending(RefusedWorkers::No)], [None, gone]);
    }
    #[tokio::test(start_paused = true)]
    async fn work_that_fits_nowhere_ends_a_batch_after_a_minute_without_results() {
        let misfit = |is_idle, accepted| Some(Misfit { reason: "large".to_owned(), is_idle, accepted });
        let mut too_large = TooLarge::default();
        let second = Duration::from_secs(1);
        for seconds in 0..60 {
            assert_eq!(too_large.lasting(misfit(true, 3)), None, "after {seconds} s");
            tokio::time::advance(second).await;
        }
        assert_eq!(too_large.lasting(misfit(false, 3)), None, "a worker tries it again");
        assert_eq!(too_large.lasting(misfit(true, 3)), Some("large".to_owned()));
        assert_eq!(too_large.lasting(misfit(true, 4)), None, "another piece did fit");
        tokio::time::advance(TOO_LARGE).await;
        assert_eq!(too_large.lasting(None), None, "a larger worker has joined");
        assert_eq!(too_large.lasting(misfit(true, 4)), None);
        assert_eq!(too_large.lasting(misfit(false, 4)), None);
        tokio::time::advance(TOO_LARGE).await;
        assert_eq!(too_large.lasting(misfit(false, 4)), None, "something else was computed");
        assert_eq!(too_large.lasting(misfit(true, 4)), None, "it may be tried again");
    }
}
