//! How much space runs take in the store, measured once for all who ask in a while: measuring lists every object.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long what was measured is returned again: a multiple of what measuring it took, within limits.
const AGE: Duration = Duration::from_secs(2);
const OLDEST: Duration = Duration::from_mins(5);
const PATIENCE: u32 = 30;
/// The longest that a caller waits: a store with many runs may be slow.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What was measured last. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct DiskUse(Arc<Mutex<Option<Measured>>>);

struct Measured {
    /// Of which runs.
    runs: Vec<String>,
    bytes: Vec<u64>,
    at: Instant,
    cost: Duration,
}

impl Measured {
    fn is_fresh(&self) -> bool {
        self.at.elapsed() < (PATIENCE * self.cost).clamp(AGE, OLDEST)
    }
}

impl DiskUse {
    /// The bytes of each of these runs, as they were measured a moment ago or as `measure` finds them; nothing if it finds
    /// nothing, or not in time.
    pub(super) async fn of<F>(&self, runs: Vec<String>, measure: impl FnOnce(Vec<String>) -> F) -> Vec<u64>
    where
        F: Future<Output = Vec<u64>> + Send + 'static,
    {
        let measured = self.measured(runs, measure);
        tokio::time::timeout(LONGEST_WAIT, measured).await.unwrap_or_default()
    }

    async fn measured<F>(&self, runs: Vec<String>, measure: impl FnOnce(Vec<String>) -> F) -> Vec<u64>
    where
        F: Future<Output = Vec<u64>> + Send + 'static,
    {
        // One caller measures, and the others wait for what it finds.
        let mut last = self.0.clone().lock_owned().await;
        if let Some(known) = last.as_ref().filter(|known| known.is_fresh() && known.runs == runs) {
            return known.bytes.clone();
        }
        let start = Instant::now();
        let measuring = measure(runs.clone());
        // The task outlives its caller: what takes longer than callers wait is there for those who ask later.
        let task = tokio::spawn(async move {
            let bytes = measuring.await;
            let (at, cost) = (Instant::now(), start.elapsed());
            *last = Some(Measured { runs, bytes: bytes.clone(), at, cost });
            bytes
        });
        task.await.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    /// What is measured takes a time, and is the number of measurements so far.
    async fn measured(disk: &DiskUse, run: &str, takes: Duration, count: &Arc<AtomicU64>) -> Vec<u64> {
        let count = count.clone();
        let measure = move |runs: Vec<String>| async move {
            tokio::time::sleep(takes).await;
            let number = count.fetch_add(1, SeqCst) + 1;
            runs.iter().map(|_| number).collect()
        };
        disk.of(vec![run.to_owned()], measure).await
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_cost_one_measurement_in_a_while() {
        let (disk, count) = (DiskUse::default(), Arc::default());
        let short = Duration::from_millis(10);
        let all = (0..100).map(|_| measured(&disk, "run", short, &count));
        assert!(futures::future::join_all(all).await.iter().all(|found| *found == [1]));
        tokio::time::sleep(AGE / 2).await;
        assert_eq!(measured(&disk, "run", short, &count).await, [1]);
        assert_eq!(measured(&disk, "other", short, &count).await, [2], "other runs are measured");
        tokio::time::sleep(AGE).await;
        assert_eq!(measured(&disk, "other", short, &count).await, [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_measured_once_for_callers_who_come_later() {
        let (disk, count) = (DiskUse::default(), Arc::default());
        let long = 2 * LONGEST_WAIT;
        let all = (0..10).map(|_| measured(&disk, "run", long, &count));
        assert!(futures::future::join_all(all).await.iter().all(Vec::is_empty), "it takes too long");
        tokio::time::sleep(LONGEST_WAIT).await;
        assert_eq!(measured(&disk, "run", long, &count).await, [1]);
        tokio::time::sleep(OLDEST / 2).await;
        assert_eq!(measured(&disk, "run", long, &count).await, [1]);
        assert_eq!(count.load(SeqCst), 1);
    }
}
