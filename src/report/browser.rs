//! Opening a page in a browser.

use crate::failure::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

/// What opens pages on this system, unless `$BROWSER` names something else.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

/// Opens a page, and does not wait for the browser.
pub(super) fn open(page: &Path) -> Result<(), Failure> {
    let program = std::env::var_os("BROWSER").unwrap_or_else(|| OPENER.into());
    let mut command = Command::new(&program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).map_err(|error| {
        let (program, page) = (Path::new(&program).display(), page.display());
        Failure::Other(format!(
            "cannot open {page} with `{program}`: {error}; set BROWSER, or open it yourself"
        ))
    })
}
