//! The termination message: why this process ended, in a file that its supervisor reads.
//!
//! Kubernetes shows the text of `/dev/termination-log` in `kubectl describe pod`. The path is a flag or a variable and no
//! key of a config, so that a bad config can be reported there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The most bytes that Kubernetes reads.
const LONGEST: usize = 4096;

static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Where the reason goes.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct TerminationArguments {
    /// Write the reason of the exit to a file, such as `/dev/termination-log` in Kubernetes
    #[arg(long, value_name = "FILE", env = "ATOLL_TERMINATION_LOG")]
    termination_log: Option<PathBuf>,
}

impl TerminationArguments {
    /// From now on, the reason goes there.
    pub(crate) fn apply(self) {
        if let Some(file) = self.termination_log {
            let _ = FILE.set(file);
        }
    }
}

/// Where the reason goes of a command line that cannot be read: as far as it can, or as the environment says.
pub(crate) fn salvage(mut words: impl Iterator<Item = OsString>) {
    const FLAG: &str = "--termination-log";
    let mut named = None;
    while let Some(word) = words.next() {
        let joined = word.to_str().and_then(|word| word.strip_prefix(FLAG)?.strip_prefix('='));
        named = match joined {
            Some(path) => Some(path.into()),
            None if word == FLAG => words.next(),
            None => named,
        };
    }
    let named = named.or_else(|| std::env::var_os("ATOLL_TERMINATION_LOG"));
    TerminationArguments { termination_log: named.map(PathBuf::from) }.apply();
}

/// Writes the reason, cut to what is read of it. A file that cannot be written changes nothing: the log has the reason too.
pub(crate) fn write(reason: &str) {
    let Some(file) = FILE.get() else { return };
    let end = reason.floor_char_boundary(LONGEST - 1);
    if let Err(error) = std::fs::write(file, format!("{}\n", &reason[..end])) {
        let (file, reason) = (file.display(), error.to_string());
        tracing::warn!(%file, reason, "cannot write the termination message");
    }
}
