//! `atoll batch`: one pod of an Indexed Job, in which the pod with index 0 is the coordinator and all others are workers.

use crate::termination::TerminationArguments;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Settings file of the coordinator
    #[arg(long, value_name = "FILE")]
    coordinator_config: PathBuf,
    /// Settings file of the workers
    #[arg(long, value_name = "FILE")]
    worker_config: PathBuf,
    /// Index of this pod in its Job; 0 is the coordinator
    #[arg(long, value_name = "N", env = "JOB_COMPLETION_INDEX")]
    index: u32,
    #[command(flatten)]
    termination: TerminationArguments,
}

impl Arguments {
    /// What this pod runs instead.
    pub(crate) fn command_line(self) -> [OsString; 4] {
        self.termination.apply();
        let (role, config) = match self.index {
            0 => ("coordinator", self.coordinator_config),
            _ => ("worker", self.worker_config),
        };
        ["atoll".into(), role.into(), "--config".into(), config.into()]
    }
}
