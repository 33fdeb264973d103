//! Why calls are rejected.

use crate::state::queue::QueueError;
use crate::state::workers::WorkerRejection;
use evolution::codec::CodecError;
use experiment::document::Diagnostics;
use proto::convert::{WireError, Work};
use run::NameError;
use run::players::LookUpError;
use run::{JournalError, LabelError, RunError, WriteError};
use store::StoreError;
use tonic::Status;

/// Why a call was rejected.
#[derive(Debug, thiserror::Error)]
pub enum Rejection {
    /// The worker.
    #[error(transparent)]
    Worker(#[from] WorkerRejection),
    /// The state of the run.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The bytes in it.
    #[error("the delivered bytes: {0}")]
    Codec(#[from] CodecError),
    /// What was delivered cannot be right.
    #[error("{0}")]
    Corrupt(String),
    /// The experiment.
    #[error(transparent)]
    Diagnostics(#[from] Diagnostics),
    /// A player of a tournament.
    #[error(transparent)]
    Player(Box<LookUpError>),
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Too much of something.
    #[error("expected at most {most} {what}, found one more")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many are allowed.
        most: usize,
    },
    /// The run has no work any more.
    #[error("run `{0}` has no work any more")]
    Over(String),
    /// The run cannot be changed like this.
    #[error("run `{run}`: {reason}")]
    Unsuitable {
        /// The run.
        run: String,
        /// Why not.
        reason: String,
    },
    /// The piece is not needed.
    #[error("{0} is not handed out")]
    NotLeased(Work),
    /// What another caller was rejected for, who asked for the same.
    #[error("{0}")]
    Repeated(String),
    /// What was delivered has to be examined first, and was not.
    #[error("this delivery was not examined yet: try again")]
    Unexamined,
    /// Another coordinator has the store by now.
    #[error("another coordinator has taken this store over: ask that one")]
    Succeeded,
    /// The store, or the run in it.
    #[error(transparent)]
    Keep(#[from] RunError),
}

impl Rejection {
    /// A part of a study, whose budget is the study's.
    pub(crate) fn part_of(run: &str, study: &str) -> Self {
        let reason = format!(
            "it is a part of the study `{study}`, whose result depends on its file alone: run the part's experiment \
             on its own to change its budget"
        );
        Self::Unsuitable { run: run.to_owned(), reason }
    }

    /// Whether the store failed, which says nothing of what it holds, and a retry may succeed.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Keep(RunError::Write(error)) if error.is_outage())
    }

    /// Whether a retry cannot succeed before an operator changes a file, a permission or a version.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Keep(RunError::Write(
                WriteError::Store(error) | WriteError::Journal(JournalError::Store(error)),
            )) => error.is_permanent(),
            Self::Keep(RunError::Write(_) | RunError::Busy { .. }) => false,
            Self::Keep(_)
            | Self::Diagnostics(_)
            | Self::Player(_)
            | Self::Name(_)
            | Self::TooMany { .. }
            | Self::Unsuitable { .. } => true,
            _ => false,
        }
    }
}

impl From<LookUpError> for Rejection {
    fn from(error: LookUpError) -> Self {
        match error {
            LookUpError::Run(error) => Self::Keep(error),
            error => Self::Player(Box::new(error)),
        }
    }
}

impl From<LabelError> for Rejection {
    fn from(error: LabelError) -> Self {
        match error {
            LabelError::Store(error) => error.into(),
            LabelError::TooMany { run, found } => {
                let reason = format!("expected at most {} labels, found {found}", run::labels::MOST);
                Self::Unsuitable { run: run.to_string(), reason }
            }
        }
    }
}

impl From<StoreError> for Rejection {
    fn from(error: StoreError) -> Self {
        Self::Keep(error.into())
    }
}

impl From<Rejection> for Status {
    fn from(rejection: Rejection) -> Self {
        let text = rejection.to_string();
        match rejection {
            // It should begin again: join, and then repeat what it asked.
            Rejection::Worker(WorkerRejection::Unknown(_)) => Self::aborted(text),
            Rejection::Queue(QueueError::Unknown(_))
            | Rejection::NotLeased(_)
            | Rejection::Over(_)
            | Rejection::Keep(RunError::Unknown { .. }) => Self::not_found(text),
            Rejection::Worker(WorkerRejection::Quarantined { .. }) | Rejection::Corrupt(_) => {
                Self::permission_denied(text)
            }
            Rejection::Worker(WorkerRejection::TooMany | WorkerRejection::Later(_))
            | Rejection::TooMany { .. } => Self::resource_exhausted(text),
            Rejection::Worker(WorkerRejection::Semantics { .. })
            | Rejection::Queue(QueueError::Ended(_))
            | Rejection::Unsuitable { .. }
            | Rejection::Repeated(_)
            | Rejection::Keep(RunError::Budget { .. } | RunError::Busy { .. } | RunError::Kind { .. }) => {
                Self::failed_precondition(text)
            }
            Rejection::Worker(WorkerRejection::Name(_) | WorkerRejection::Id(_))
            | Rejection::Wire(_)
            | Rejection::Codec(_)
            | Rejection::Diagnostics(_)
            | Rejection::Player(_)
            | Rejection::Keep(RunError::Completion(_))
            | Rejection::Name(_) => Self::invalid_argument(text),
            Rejection::Succeeded | Rejection::Unexamined => Self::unavailable(text),
            Rejection::Keep(RunError::Write(error)) if error.may_pass() => Self::unavailable(text),
            Rejection::Keep(_) => Self::internal(text),
        }
    }
}
