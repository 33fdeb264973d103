//! How long calls take, from their first bytes to their answer.

use crate::histogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// All calls of workers and operators. Other names are not timed: any caller can invent them.
const CALLS: [&str; 19] = [
    "/atoll.v1.Worker/Join",
    "/atoll.v1.Worker/Acquire",
    "/atoll.v1.Worker/Plan",
    "/atoll.v1.Worker/Fetch",
    "/atoll.v1.Worker/Renew",
    "/atoll.v1.Worker/Checkpoint",
    "/atoll.v1.Worker/Complete",
    "/atoll.v1.Worker/Release",
    "/atoll.v1.Worker/Leave",
    "/atoll.v1.Operator/Submit",
    "/atoll.v1.Operator/ListRuns",
    "/atoll.v1.Operator/Status",
    "/atoll.v1.Operator/Pause",
    "/atoll.v1.Operator/Cancel",
    "/atoll.v1.Operator/Extend",
    "/atoll.v1.Operator/Export",
    "/atoll.v1.Operator/View",
    "/atoll.v1.Operator/Label",
    "/atoll.v1.Operator/Drain",
];

/// The times of calls, by their names. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallTimes(Arc<Mutex<BTreeMap<&'static str, Histogram>>>);

/// A call that is under way.
#[derive(Debug)]
pub(crate) struct Timer {
    call: &'static str,
    start: Instant,
    times: CallTimes,
}

impl CallTimes {
    /// A call begins, if its path is that of one.
    pub(crate) fn begin(&self, path: &str) -> Option<Timer> {
        let known = CALLS.into_iter().find(|known| *known == path)?;
        let (_, call) = known.rsplit_once('/')?;
        Some(Timer { call, start: Instant::now(), times: self.clone() })
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, Histogram> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Timer {
    /// The call is answered.
    pub(crate) fn stop(self) {
        let time = self.start.elapsed();
        let mut times = self.times.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(self.call).or_default().add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn all_calls_of_the_protocol_are_timed() {
        let protocol = include_str!("../../../proto/atoll/v1/atoll.proto");
        let rpcs = protocol.lines().filter_map(|line| line.trim().strip_prefix("rpc ")?.split('(').next());
        let timed = CALLS.map(|call| call.rsplit_once('/').unwrap().1);
        assert_eq!(rpcs.collect::<Vec<_>>(), timed);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_timed_and_inventions_are_not() {
        let times = CallTimes::default();
        let timer = times.begin("/atoll.v1.Worker/Renew").unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        timer.stop();
        assert!(times.begin("/atoll.v1.Worker/Renewal").is_none());
        let all = times.all();
        assert_eq!((all.len(), all["Renew"].count(), all["Renew"].sum()), (1, 1, 2.0));
    }
}
