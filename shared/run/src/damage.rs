//! What is wrong with a stored run.

use crate::commit::WriteError;
use crate::head::RunError;
use crate::journal::JournalError;
use crate::layout::RunId;
use codec::Digest;
use std::fmt;
use store::StoreError;

/// Something of a run that is missing, cannot be read, or does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// An object, or the journal, cannot be read.
    Unreadable(String),
    /// The records of some epochs are missing.
    Records {
        /// The island.
        island: u32,
        /// The first epoch.
        first: u64,
        /// The last epoch.
        last: u64,
    },
    /// A state that a record promises, and that nothing may have deleted, is missing.
    State {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// The records of an island do not belong together from here on, or not to this experiment.
    Chain {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// A record says of an epoch that it ended elsewhere than it does.
    Generation {
        /// The island.
        island: u32,
        /// The epoch.
        epoch: u64,
    },
    /// The stored text of the experiment is not the one that the run was created with.
    Experiment {
        /// Its digest when the run was created.
        expected: Digest,
        /// Its digest now.
        found: Digest,
    },
    /// There is a journal, but no `experiment.toml`.
    NoExperiment,
    /// Something is wrong with a part of a study, which is a run of its own.
    Part {
        /// The run.
        run: RunId,
        /// What is wrong with it.
        reason: String,
    },
    /// There are results of a term that the journal does not know.
    Unexplained {
        /// The term.
        term: u64,
    },
    /// The journal ends before what was known of it when something else was written.
    Journal {
        /// How many events there were.
        expected: u64,
    },
    /// A summary says something else than the journal.
    Summary {
        /// Its path.
        path: String,
        /// What of it differs.
        field: &'static str,
    },
    /// A stored result cannot be that of its job, or differs from another one that is stored.
    Unfit {
        /// The job.
        number: u32,
    },
    /// A batch of results is missing that was written.
    Batch {
        /// The term that it was written in.
        term: u64,
        /// Its number in this term.
        number: u64,
    },
    /// Results of jobs are missing although the run is finished.
    Jobs {
        /// How many.
        count: u64,
        /// The first of them.
        first: u32,
    },
}

impl Damage {
    /// What is wrong with a part of a study.
    pub(crate) fn in_part(run: RunId, damage: &Self) -> Self {
        Self::Part { run, reason: damage.to_string() }
    }

    /// Why a part of a study cannot be read, unless it is the store that failed.
    pub(crate) fn of_part(run: RunId, error: RunError) -> Result<Self, RunError> {
        match error {
            RunError::Unknown { .. } => Ok(Self::Part { run, reason: "it is missing".to_owned() }),
            RunError::Damaged { damage, .. } => Ok(Self::in_part(run, &damage)),
            RunError::Write(WriteError::Store(error)) if error.is_damage() => {
                Ok(Self::in_part(run, &error.into()))
            }
            RunError::Write(error) => Err(error.into()),
            error => Ok(Self::Part { run, reason: error.to_string() }),
        }
    }
}

impl From<StoreError> for Damage {
    fn from(error: StoreError) -> Self {
        Self::Unreadable(error.fact())
    }
}

impl From<JournalError> for Damage {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Store(error) => Self::Unreadable(format!("the journal: {}", error.fact())),
            error => Self::Unreadable(format!("the journal: {error}")),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => formatter.write_str(error),
            Self::Records { island, first, last } if first == last => {
                write!(formatter, "island {island}: the record of epoch {first} is missing")
            }
            Self::Records { island, first, last } => {
                write!(formatter, "island {island}: the records of epochs {first} to {last} are missing")
            }
            Self::State { island, epoch } => {
                write!(formatter, "island {island}: the state of epoch {epoch} is missing")
            }
            Self::Chain { island, epoch } => {
                write!(formatter, "island {island}, epoch {epoch}: its chain of digests is broken")
            }
            Self::Generation { island, epoch } => {
                write!(formatter, "island {island}, epoch {epoch}: its record ends at another generation")
            }
            Self::Experiment { expected, found } => write!(
                formatter,
                "experiment.toml was altered: expected the checksum {expected}, found {found}; restore it from a copy"
            ),
            Self::NoExperiment => formatter.write_str("experiment.toml is missing: restore it from a copy"),
            Self::Part { run, reason } => {
                write!(formatter, "its part `{run}`: {reason} (`atoll repair {run}` repairs the part alone)")
            }
            Self::Unexplained { term } => {
                write!(
                    formatter,
                    "there are results of term {term}, which the journal does not know: events are missing"
                )
            }
            Self::Journal { expected } => {
                write!(
                    formatter,
                    "the journal: expected at least {expected} events that belong together, found others"
                )
            }
            Self::Unfit { number } => {
                write!(
                    formatter,
                    "job {number}: a stored result does not fit the job, or another result of it"
                )
            }
            Self::Summary { path, field } => {
                write!(formatter, "object `{path}`: its {field} is not that of the run")
            }
            Self::Batch { term, number } => {
                write!(formatter, "batch {number} of the results of term {term} is missing")
            }
            Self::Jobs { count: 1, first } => write!(formatter, "the result of job {first} is missing"),
            Self::Jobs { count, first } => {
                write!(formatter, "the results of {count} jobs are missing, the first is {first}")
            }
        }
    }
}
