//! Notices that a run has ended.

use super::server::Aborting;
use crate::cluster::Cluster;
use futures::future::BoxFuture;
use report::dashboard::RunRow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often ended runs are looked for at most.
const LOOK: Duration = Duration::from_millis(500);
/// How long one notice may take, and how long the last ones may delay the end of a coordinator.
const LONGEST: Duration = Duration::from_secs(30);
const LAST: Duration = Duration::from_secs(5);

/// What is called with each run that has ended; one call at a time.
pub type Notify = Arc<dyn Fn(RunRow) -> BoxFuture<'static, ()> + Send + Sync>;

/// The task that does it.
pub(super) struct Notifier {
    task: Aborting<()>,
    close: watch::Sender<bool>,
}

impl Notifier {
    /// Sends a notice of each run that ends from now on.
    pub(super) fn start(cluster: Cluster, notify: Notify) -> Self {
        let (close, closing) = watch::channel(false);
        Self { task: Aborting(tokio::spawn(tell(cluster, notify, closing))), close }
    }

    /// Sends the notices of the runs that ended last, and stops. It takes a few seconds at most.
    pub(super) async fn finish(mut self) {
        let _ = self.close.send(true);
        let _ = tokio::time::timeout(LAST, &mut self.task.0).await;
    }
}

async fn tell(cluster: Cluster, notify: Notify, mut closing: watch::Receiver<bool>) {
    let mut changes = cluster.changes();
    let mut known: BTreeSet<(String, u64, String)> = ended(&cluster).iter().map(key).collect();
    loop {
        let is_last = tokio::select! {
            _ = closing.wait_for(|closing| *closing) => true,
            () = async { changes.changed().await; tokio::time::sleep(LOOK).await } => false,
        };
        let rows = ended(&cluster);
        let keys = rows.iter().map(key).collect();
        for row in rows.into_iter().filter(|row| !known.contains(&key(row))) {
            let run = row.run.clone();
            if tokio::time::timeout(LONGEST, notify(row)).await.is_err() {
                tracing::warn!(run, "the notice of its end took too long");
            }
        }
        // A run that is continued may end again.
        known = keys;
        if is_last {
            return;
        }
    }
}

fn ended(cluster: &Cluster) -> Vec<RunRow> {
    cluster.look(|state| state.rows(cluster.now())).into_iter().filter(RunRow::has_ended).collect()
}

fn key(row: &RunRow) -> (String, u64, String) {
    (row.run.clone(), row.done, row.state.clone())
}
