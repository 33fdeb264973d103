//! What a worker holds: one piece of work and how far it is.

use crate::gauge::Gauges;
use crate::pool::{Message, Stop};
use archipelago::cell::CellResult;
use archipelago::job::JobResult;
use bytes::Bytes;
use evolution::activity::Activity;
use evolution::digest::Digest;
use evolution::epoch::Standing;
use proto::convert::{Work, digest_bytes};
use proto::v1;
use std::sync::Arc;
use tokio::time::Instant;

/// How far a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its inputs are on their way.
    Preparing,
    /// The pool has it.
    Running,
    /// The pool has left off in the middle.
    Stopped,
    /// It goes back to the coordinator, done or not.
    Delivering,
}

/// One piece of work.
pub(crate) struct Held {
    /// Grants are numbered here, so that what is late from one is not taken for the next.
    pub(crate) grant: u64,
    /// What the coordinator knows the lease by.
    pub(crate) token: u64,
    pub(crate) phase: Phase,
    pub(crate) stop: Stop,
    /// What its threads have done of it.
    pub(crate) activity: Activity,
    /// What an epoch or a job is made from; of an epoch also where it is shown, and what is to be kept of it.
    pub(crate) inputs: Option<Digest>,
    pub(crate) gauge: Option<(Arc<Gauges>, u32)>,
    pub(crate) checkpoint: Option<(Standing, Bytes)>,
    pub(crate) uploading: bool,
    /// Of cells: how many are wanted, and what came of those that are over.
    pub(crate) wanted: u32,
    pub(crate) cells: Vec<Option<(u32, CellResult)>>,
    pub(crate) begun: Instant,
    /// About how many bytes of memory it takes; before its inputs are there, what pieces take usually.
    pub(crate) memory: u64,
}

impl Held {
    pub(crate) fn new(grant: u64, token: u64, inputs: Option<Digest>, memory: u64) -> Self {
        Self {
            grant,
            token,
            phase: Phase::Preparing,
            stop: Stop::default(),
            activity: Activity::default(),
            inputs,
            gauge: None,
            checkpoint: None,
            uploading: false,
            wanted: 0,
            cells: vec![],
            begun: Instant::now(),
            memory,
        }
    }

    pub(crate) fn renewal(&self, work: &Work) -> v1::Renewal {
        let standing = self.gauge.as_ref().map(|(gauges, island)| gauges.of(*island).standing());
        v1::Renewal {
            piece: Some(work.into()),
            inputs: self.inputs.as_ref().map(digest_bytes).unwrap_or_default(),
            standing: standing.as_ref().map(v1::Standing::from),
            progress: self.activity.count(),
            token: self.token,
        }
    }
}

/// What the pool reports.
pub(crate) enum PieceReport {
    /// Of an epoch.
    Epoch { work: Work, grant: u64, message: Box<Message> },
    /// Of a cell: nothing if it was asked to stop.
    Cell { work: Work, grant: u64, number: u32, result: Result<Option<CellResult>, String> },
    /// Of a job.
    Job { work: Work, grant: u64, result: Result<JobResult, String> },
}

impl PieceReport {
    /// The grant that it belongs to.
    pub(crate) fn of(&self) -> (&Work, u64) {
        match self {
            Self::Epoch { work, grant, .. }
            | Self::Cell { work, grant, .. }
            | Self::Job { work, grant, .. } => (work, *grant),
        }
    }
}
