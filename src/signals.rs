//! Ctrl-C and SIGTERM.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
        let listen =
            |kind| signal(kind).map_err(|error| Failure::Other(format!("cannot listen to signals: {error}")));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(Self { interrupt, terminate, asked: None })
    }

    /// Waits until one comes; answers at once if one came before.
    pub(crate) async fn asked(&mut self) {
        if self.asked.is_none() {
            self.asked = Some(self.next().await);
        }
    }

    /// Waits until another one comes: somebody is in a hurry.
    pub(crate) async fn asked_again(&mut self) {
        self.asked = Some(self.next().await);
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Interrupt,
            _ = self.terminate.recv() => Asked::Terminate,
        }
    }

    /// The code that tells others by which signal we were stopped.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.asked {
            Some(Asked::Interrupt) => 130,
            _ => 143,
        }
    }
}
