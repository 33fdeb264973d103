//! `atoll completions` and `atoll man`: the command for shells, and for readers of manual pages.

use crate::failure::Failure;
use crate::terminal::{out, write_out};
use clap_complete::Shell;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell to complete commands in
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script that completes commands in a shell.
pub(crate) fn completions(arguments: &CompletionsArguments, mut command: clap::Command) -> ExitCode {
    let mut script = vec![];
    clap_complete::generate(arguments.shell, &mut command, "atoll", &mut script);
    write_out!("{}", String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

#[derive(clap::Args)]
pub(crate) struct ManArguments {
    /// The folder to write to
    #[arg(long, value_name = "DIR", default_value = "man")]
    to: PathBuf,
}

/// A page whose examples have a heading of their own, and stay on lines of their own.
fn with_examples(page: &str) -> String {
    let Some((before, after)) = page.split_once(".SH EXTRA\nEXAMPLES:\n") else { return page.to_owned() };
    let (examples, rest) = after.split_once(".SH ").map_or((after, None), |(one, rest)| (one, Some(rest)));
    let rest = rest.map_or(String::new(), |rest| format!(".SH {rest}"));
    format!("{before}.SH EXAMPLES\n.nf\n{}\n.fi\n{rest}", examples.trim_end())
}

/// Writes a manual page for each command.
pub(crate) fn man(arguments: &ManArguments, command: clap::Command) -> Result<ExitCode, Failure> {
    let folder = &arguments.to;
    let failed = |error| Failure::Other(format!("cannot write to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(command, folder).map_err(failed)?;
    for entry in std::fs::read_dir(folder).map_err(failed)?.filter_map(Result::ok) {
        let path = entry.path();
        if path.extension().is_some_and(|section| section == "1") {
            let page = std::fs::read_to_string(&path).map_err(failed)?;
            std::fs::write(&path, with_examples(&page)).map_err(failed)?;
        }
    }
    out!("{}", folder.join("atoll.1").display());
    Ok(ExitCode::SUCCESS)
}
