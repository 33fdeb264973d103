//! What can go wrong in the command, and the exit code that says so.

use coordinator::ServeError;
use experiment::LoadError;
use experiment::document::Report;
use run::NameError;
use run::RunError;
use run::WriteError;
use run::players::LookUpError;
use store::StoreError;
use worker::{CallError, PoolError, WorkerError};

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A bad experiment or config.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A bad experiment or budget.
    #[error(transparent)]
    Report(#[from] Report),
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
    /// A worker that cannot go on.
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
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl From<LookUpError> for Failure {
    fn from(error: LookUpError) -> Self {
        Self::LookUp(Box::new(error))
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Keep(error.into())
    }
}

impl Failure {
    /// 78 for a bad experiment, 2 for a bad call, 3 for a coordinator that was succeeded, 1 otherwise.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Load(_)
            | Self::Report(_)
            | Self::Config(_)
            | Self::Player(_)
            | Self::Worker(WorkerError::Call(CallError::Token(_) | CallError::Distrust(_)))
            | Self::Store(StoreError::NoLocation { .. } | StoreError::Settings { .. }) => 78,
            Self::Endgame(error) if !matches!(error, checkers::EndgameError::Io { .. }) => 78,
            Self::LookUp(error) => match **error {
                LookUpError::Report(_)
                | LookUpError::Elsewhere(_)
                | LookUpError::Missing { .. }
                | LookUpError::Contestant(_) => 78,
                LookUpError::Run(_) => 1,
                _ => 2,
            },
            Self::Succeeded => 3,
            Self::Usage(_) | Self::Name(_) | Self::Keep(RunError::Budget { .. }) => 2,
            _ => 1,
        }
    }
}
