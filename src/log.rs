//! Log lines on stderr. Fields hold words of others: each stays on its line, is cut where it is long, and looks the same
//! however it was logged.

use crate::failure::Failure;
use crate::settings::Settings;
use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatFields, debug_fn};
use tracing_subscriber::prelude::*;
use tracing_subscriber::{field::MakeExt, registry};

/// The most characters of one field.
const LONGEST: usize = 1000;

/// Whether lines are JSON: then all of them are.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Says what people wait for, whatever the filter of the log is; to machines, as a line of the log.
pub(crate) fn say(what: &str, url: &str) {
    if IS_JSON.load(SeqCst) {
        tracing::info!(url, "{what}");
    } else {
        eprintln!("{what} {url}");
    }
}

/// The last line: why a command failed.
pub(crate) fn fail(failure: &Failure) {
    if IS_JSON.load(SeqCst) {
        tracing::error!(reason = %failure, exit_code = failure.exit() as u8, "failed");
    } else {
        eprintln!("error: {failure}");
    }
}

/// Logs on stderr, as much as the settings ask for.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let filter: Targets = settings.parsed("log", "a log filter such as `info`")?;
    // The reader of the log may go away; the coordinator must not, and would if it wrote about that to stderr.
    let layer = tracing_subscriber::fmt::layer().log_internal_errors(false).with_writer(std::io::stderr);
    match settings.text("log_format")?.as_str() {
        "text" => registry().with(layer.with_ansi(false).fmt_fields(fields()).with_filter(filter)).init(),
        "json" => {
            registry().with(layer.json().with_filter(filter)).init();
            IS_JSON.store(true, SeqCst);
        }
        other => {
            return Err(settings.bad("log_format", &format!("expected `text` or `json`, found `{other}`")));
        }
    }
    Ok(())
}

/// Fields of a line of text, such as `run=maze-1 reason="it was asked to"`.
fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer, field, value| {
        let text = shortened(value);
        match field.name() {
            "message" => write!(writer, "{}", escaped(&text)),
            name => write!(writer, "{name}={}", plain(&text)),
        }
    })
    .delimited(" ")
}

/// What a value looks like, and not more than is read.
fn shortened(value: &dyn Debug) -> String {
    let mut text = Bounded { text: String::new(), left: LONGEST };
    // It ends early where there is no room left.
    let _ = write!(text, "{value:?}");
    if text.left == 0 {
        text.text.push('…');
    }
    text.text
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(c);
        }
        Ok(())
    }
}

/// A value without quotes where it is one word, and in quotes otherwise, whichever it came with.
fn plain(text: &str) -> String {
    let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let is_word = |text: &str| {
        !text.is_empty()
            && !text.contains(|c: char| c.is_whitespace() || c.is_control() || "\"\\=".contains(c))
    };
    match unquoted {
        Some(word) if is_word(word) => word.to_owned(),
        // It was quoted by itself, and what is in it is escaped.
        Some(_) => escaped(text),
        None if is_word(text) => text.to_owned(),
        None => format!("{text:?}"),
    }
}

/// Text that stays on its line and moves no cursor.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged, without the times.
    fn logged(log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().without_time().with_ansi(false).fmt_fields(fields());
        let layer = layer.with_target(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(registry().with(layer), log);
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_field_looks_the_same_however_it_was_logged() {
        let name = "maze-1".to_owned();
        let reason = "it was asked to";
        let text = logged(|| {
            tracing::info!(run = name, reason, number = 3, "one");
            tracing::info!(run = %name, reason = %reason, number = 3, "one");
        });
        let line = " INFO one run=maze-1 reason=\"it was asked to\" number=3";
        assert_eq!(text.lines().collect::<Vec<_>>(), [line, line]);
    }

    #[test]
    fn words_of_others_stay_on_their_line_and_are_cut() {
        let forged = "1.0\n2026-01-01 INFO run=other finished\x1b[2J\u{9b}31m";
        let text = logged(|| {
            tracing::info!(version = forged, "joined");
            tracing::info!(version = %forged, "joined");
            tracing::info!(forged = ?Some(forged), "joined {forged}");
            tracing::info!(version = "x".repeat(1_500_000), "joined");
        });
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(!text.contains(['\x1b', '\u{9b}']), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < LONGEST + 50), "{}", text.len());
        assert!(text.contains(r"1.0\n2026-01-01 INFO"), "{text}");
    }
}
