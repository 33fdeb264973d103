//! Ctrl-C and SIGTERM.

use crate::failure::Failure;
use crate::termination;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of SIGXFSZ on every system that has it.
const OUTGROWN: i32 = 25;

/// While the returned guard lives, exceeding a file-size limit is an I/O error instead of a fatal signal.
pub(crate) fn outlive_file_size_limits() -> Result<Signal, Failure> {
    listen(SignalKind::from_raw(OUTGROWN))
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::Other(format!("cannot listen to signals: {error}")))
}

/// The signals that ask this process to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    asked: Option<Asked>,
}

/// Which signal asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Interrupt,
    Terminate,
}

impl Signals {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, asked: None })
    }

    /// Waits until one has come.
    pub(crate) async fn asked(&mut self) {
        self.asked_or_again(false).await;
    }

    /// Waits until one has come, or until one comes `again`.
    pub(crate) async fn asked_or_again(&mut self, again: bool) {
        if again || self.asked.is_none() {
            self.asked = Some(tokio::select! {
                _ = self.interrupt.recv() => Asked::Interrupt,
                _ = self.terminate.recv() => Asked::Terminate,
            });
        }
    }

    /// The exit of a process that was asked to stop, with its termination message.
    pub(crate) fn exit(&self) -> ExitCode {
        let signal = if self.asked == Some(Asked::Interrupt) { "SIGINT" } else { "SIGTERM" };
        termination::write(&format!("stopped by {signal}; nothing is lost"));
        ExitCode::from(self.exit_code())
    }

    /// The exit code of a process that was stopped by this signal.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.asked {
            Some(Asked::Interrupt) => 130,
            _ => 143,
        }
    }
}
