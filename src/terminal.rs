//! What the command prints: results on stdout, messages for people on stderr.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stderr, stdout};

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

/// Prints a line on stderr. If that is closed (`atoll run FILE 2>&1 | head`) or on a full disk, the command continues: its work
/// is worth more than its messages.
macro_rules! message {
    ($($text:tt)*) => {
        $crate::terminal::write_message(format_args!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use message;

pub(crate) fn write_message(text: Arguments<'_>) {
    // One call for each line, so that lines of several processes in one log stay whole.
    let _ = stderr().write_all(text.to_string().as_bytes());
}

pub(crate) fn write(text: Arguments<'_>) {
    let mut stdout = stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(BROKEN_PIPE),
        Err(error) => {
            message!("error: cannot write to stdout: {error}");
            std::process::exit(1);
        }
    }
}
