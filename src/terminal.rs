//! What the command says on stdout.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// What a shell reports of a program that wrote to a closed pipe.
const BROKEN_PIPE: i32 = 128 + 13;

/// Prints a line on stdout. If the pipe is closed (`atoll bench | head`), the command ends quietly, and never with 0,
/// which would say that a run is finished.
macro_rules! out {
    ($($text:tt)*) => {
        $crate::terminal::write(format_args!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use out;

/// Prints text on stdout as it is; see [`out`].
macro_rules! write_out {
    ($($text:tt)*) => {
        $crate::terminal::write(format_args!($($text)*))
    };
}
pub(crate) use write_out;

pub(crate) fn write(text: Arguments<'_>) {
    let mut stdout = stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(BROKEN_PIPE),
        Err(error) => {
            eprintln!("error: cannot write to stdout: {error}");
            std::process::exit(1);
        }
    }
}
