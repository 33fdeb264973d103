//! What can go wrong in the command, and the exit code that says so.
//!
//! Kubernetes and systemd decide by these codes whether to start a process again. `docs/operations.md` lists them for
//! operators, and the Jobs of the chart act on them (`podFailurePolicy`).

use coordinator::ServeError;
use experiment::LoadError;
use experiment::document::Diagnostics;
use run::NameError;
use run::RunError;
use run::WriteError;
use run::naming::NamingError;
use run::players::LookUpError;
use store::StoreError;
use worker::{CallError, PoolError, WorkerError};

/// The exit codes of all commands, beside 0 for success and 128 + n for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Anything else: a restart may help.
    Other = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Another coordinator has taken the store over: a restart would only take it back.
    Succeeded = 3,
    /// A run has failed.
    Failed = 4,
    /// A run was cancelled.
    Cancelled = 5,
    /// The other side was not there for `give_up_after`: no coordinator, or no worker.
    Abandoned = 6,
    /// A process works on the run, so that it cannot be verified now: `EX_TEMPFAIL` of `sysexits.h`.
    InUse = 75,
    /// An operator has to change something first: a setting, an experiment, a token, a certificate, a permission, a
    /// version.
    Misconfigured = 78,
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A bad experiment or config.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A bad experiment or budget.
    #[error(transparent)]
    Diagnostics(#[from] Diagnostics),
    /// A bad name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A bad call.
    #[error("{0}")]
    Usage(String),
    /// A run that cannot be kept.
    #[error(transparent)]
    Keep(#[from] RunError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The threads.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A bad setting, or an experiment that a coordinator refuses.
    #[error("{0}")]
    Config(String),
    /// A coordinator that cannot serve.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A worker that cannot continue.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// An endgame database that can't be used.
    #[error(transparent)]
    Endgame(#[from] checkers::EndgameError),
    /// A checkers player that can't be had.
    #[error(transparent)]
    Player(#[from] crate::player::PlayerError),
    /// A player of a tournament that can't be had.
    #[error(transparent)]
    LookUp(Box<LookUpError>),
    /// A coordinator whose store another one keeps by now: to start it again would only take it back.
    #[error(
        "another coordinator has taken this store over and continues its runs; this one has stopped, and nothing is \
         lost"
    )]
    Succeeded,
    /// A run that failed while a coordinator or a worker ended with its runs.
    #[error("{0}")]
    RunFailed(String),
    /// The same for one that was cancelled.
    #[error("{0}")]
    Cancelled(String),
    /// A coordinator without workers.
    #[error("no worker was there for {} s (`give_up_after`)", .0.as_secs())]
    Abandoned(std::time::Duration),
    /// A run that a process works on.
    #[error("{0}")]
    InUse(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<LookUpError> for Failure {
    fn from(error: LookUpError) -> Self {
        Self::LookUp(Box::new(error))
    }
}

impl From<NamingError> for Failure {
    fn from(error: NamingError) -> Self {
        match error {
            NamingError::Several(reason) => Self::Usage(reason),
            NamingError::Missing(reason) => Self::Other(reason),
            NamingError::Run(RunError::Name(error)) => Self::Name(error),
            NamingError::Run(error) => Self::Keep(error),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Keep(error.into())
    }
}

impl Failure {
    /// The exit code that this failure ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Load(_)
            | Self::Diagnostics(_)
            | Self::Config(_)
            | Self::Player(_)
            | Self::Worker(WorkerError::Call(
                CallError::Token(_) | CallError::Distrust(_) | CallError::Incompatible(_),
            ))
            | Self::Store(
                StoreError::NoLocation { .. } | StoreError::Settings { .. } | StoreError::Format { .. },
            ) => Exit::Misconfigured,
            Self::Serve(error) if error.is_permanent() => Exit::Misconfigured,
            Self::Endgame(error) if !matches!(error, checkers::EndgameError::Io { .. }) => {
                Exit::Misconfigured
            }
            Self::LookUp(error) => match **error {
                LookUpError::Diagnostics(_)
                | LookUpError::Job { .. }
                | LookUpError::Missing { .. }
                | LookUpError::Contestant(_) => Exit::Misconfigured,
                LookUpError::Run(_) => Exit::Other,
                _ => Exit::Usage,
            },
            Self::Succeeded => Exit::Succeeded,
            Self::InUse(_) => Exit::InUse,
            Self::RunFailed(_) => Exit::Failed,
            Self::Cancelled(_) => Exit::Cancelled,
            Self::Abandoned(_) | Self::Worker(WorkerError::Call(CallError::GaveUp { .. })) => Exit::Abandoned,
            Self::Usage(_) | Self::Name(_) | Self::Keep(RunError::Budget { .. } | RunError::Kind { .. }) => {
                Exit::Usage
            }
            _ => Exit::Other,
        }
    }
}
